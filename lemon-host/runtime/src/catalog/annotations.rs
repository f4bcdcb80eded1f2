//! What a tool says of its own effects, in MCP's words.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// MCP's annotations of a tool: what it says of its own effects. None of them is a promise that anybody keeps; a policy may
/// become stricter by them, and must not become laxer for a plugin that nobody vouches for.
///
/// ```
/// use lemon_host::ToolAnnotations;
///
/// let reads = ToolAnnotations::default().read_only(true).open_world(false);
/// assert_eq!(reads.read_only_hint, Some(true));
/// assert_eq!(reads.destructive_hint, None, "not said");
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ToolAnnotations {
    /// It changes nothing.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient")]
    pub read_only_hint: Option<bool>,
    /// What it changes may be lost by that.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient")]
    pub destructive_hint: Option<bool>,
    /// The same call a second time changes nothing more.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient")]
    pub idempotent_hint: Option<bool>,
    /// It deals with a world that is not closed, such as the web.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient")]
    pub open_world_hint: Option<bool>,
}

impl ToolAnnotations {
    /// Says whether the tool changes nothing.
    #[must_use]
    pub fn read_only(mut self, hint: bool) -> Self {
        self.read_only_hint = Some(hint);
        self
    }

    /// Says whether what the tool changes may be lost by that.
    #[must_use]
    pub fn destructive(mut self, hint: bool) -> Self {
        self.destructive_hint = Some(hint);
        self
    }

    /// Says whether the same call a second time changes nothing more.
    #[must_use]
    pub fn idempotent(mut self, hint: bool) -> Self {
        self.idempotent_hint = Some(hint);
        self
    }

    /// Says whether the tool deals with an open world, such as the web.
    #[must_use]
    pub fn open_world(mut self, hint: bool) -> Self {
        self.open_world_hint = Some(hint);
        self
    }

    /// As a plugin wrote them; what is of another type counts as not said.
    pub(crate) fn read(annotations: Option<&Value>) -> Self {
        annotations.and_then(|annotations| Self::deserialize(annotations).ok()).unwrap_or_default()
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

fn lenient<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    Ok(Value::deserialize(deserializer)?.as_bool())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_of_another_type_counts_as_not_said() {
        let read = |annotations: Value| ToolAnnotations::read(Some(&annotations));
        let written = json!({ "readOnlyHint": true, "destructiveHint": "no", "title": 5 });
        assert_eq!(read(written), ToolAnnotations::default().read_only(true));
        assert!(read(json!([])).is_empty() && ToolAnnotations::read(None).is_empty());
    }
}
