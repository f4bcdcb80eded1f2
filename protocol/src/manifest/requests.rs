//! What an extension asks for: variables, and methods of the host, each with the reason that a user is shown.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// One variable of the user's environment that an extension wants. In short form it is the reason alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "EnvForm")]
pub struct EnvRequest {
    /// What the variable is for, as the user is told.
    pub why: String,
    /// The extension does not start without it.
    pub required: bool,
    /// Its value is not to be shown.
    pub secret: bool,
}

/// The two forms of a request for a variable.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum EnvForm {
    /// What the variable is for, as the user is told.
    Why(#[schemars(with = "Text")] String),
    Whole {
        /// What the variable is for, as the user is told.
        #[schemars(with = "Text")]
        why: String,
        /// The extension does not start without it.
        #[serde(default)]
        required: bool,
        /// Its value is not to be shown.
        #[serde(default)]
        secret: bool,
    },
}

impl From<EnvForm> for EnvRequest {
    fn from(form: EnvForm) -> Self {
        match form {
            EnvForm::Why(why) => Self { why, required: false, secret: false },
            EnvForm::Whole { why, required, secret } => Self { why, required, secret },
        }
    }
}

/// A part of what the host offers to plugins: the requests whose method begins with `host/` and this name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Permission {
    /// Listing and calling tools of the session.
    Tools,
    /// Reading what the session is.
    Session,
    /// Asking the user and telling them things.
    Ui,
    /// Asking the session's model.
    Model,
    /// Running programs through the host.
    Exec,
    /// Messages to and from other plugins.
    Bus,
    /// Files of the plugin's own that the host keeps.
    Storage,
    /// State of the session that the plugin keeps.
    State,
}

impl Permission {
    /// All permissions.
    pub const ALL: [Self; 8] =
        [Self::Tools, Self::Session, Self::Ui, Self::Model, Self::Exec, Self::Bus, Self::Storage, Self::State];

    /// The name in a manifest.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Session => "session",
            Self::Ui => "ui",
            Self::Model => "model",
            Self::Exec => "exec",
            Self::Bus => "bus",
            Self::Storage => "storage",
            Self::State => "state",
        }
    }

    /// The permission that a request to the host needs; none for a method that is not the host's.
    pub fn for_method(method: &str) -> Option<Self> {
        let area = method.strip_prefix("host/")?.split('/').next()?;
        Self::ALL.into_iter().find(|permission| permission.as_str() == area)
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why something is asked for, as the user is told: a text, or an object with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "ReasonForm")]
pub struct Reason {
    /// The text.
    pub why: String,
}

/// The two forms of a reason.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum ReasonForm {
    /// What it is for, as the user is told.
    Why(#[schemars(with = "Text")] String),
    Whole {
        /// What it is for, as the user is told.
        #[schemars(with = "Text")]
        why: String,
    },
}

impl From<ReasonForm> for Reason {
    fn from(form: ReasonForm) -> Self {
        match form {
            ReasonForm::Why(why) | ReasonForm::Whole { why } => Self { why },
        }
    }
}

/// Schema of a text that is not only white space.
pub(super) struct Text;

impl JsonSchema for Text {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Text".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": r"\S" })
    }
}

/// Schema of a program with its arguments.
pub(super) struct Argv;

impl JsonSchema for Argv {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Argv".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "array",
            "minItems": 1,
            "prefixItems": [{ "type": "string", "pattern": r"\S" }],
            "items": { "type": "string" }
        })
    }
}

/// Schema of a map that has only known permissions as keys.
pub(super) struct Permissions;

impl JsonSchema for Permissions {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Permissions".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let reason = generator.subschema_for::<Reason>();
        let properties: BTreeMap<_, _> = Permission::ALL.iter().map(|one| (one.as_str(), reason.clone())).collect();
        json_schema!({ "type": "object", "properties": properties, "additionalProperties": false })
    }
}
