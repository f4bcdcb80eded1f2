//! What is read of tools: the result of a call, and what a list says of them.

use lemon_protocol::{CallToolResult, meta};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::output::Content;

/// What a tool answered, be it another's tool called through the [`Host`](crate::Host) or, in a test, the plugin's own.
///
/// It serialises to the result as the protocol has it, members included that have no method here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallResult {
    raw: CallToolResult,
}

impl CallResult {
    /// The texts of the result, joined by line ends.
    pub fn text(&self) -> String {
        let texts = self.raw.content.iter().filter(|block| block.kind == "text");
        let texts: Vec<&str> = texts.filter_map(|block| block.members.get("text")?.as_str()).collect();
        texts.join("\n")
    }

    /// Whether the tool failed; the text says how.
    pub fn is_error(&self) -> bool {
        self.raw.is_error == Some(true)
    }

    /// The blocks of the result. One of a type that this version does not know is left out.
    pub fn content(&self) -> Vec<Content> {
        let blocks = self.raw.content.iter();
        blocks.filter_map(|block| serde_json::to_value(block).and_then(serde_json::from_value).ok()).collect()
    }

    /// The structured result, if there is one that is a `T`.
    pub fn structured<T: DeserializeOwned>(&self) -> Option<T> {
        self.raw.structured_content.as_ref().and_then(|value| T::deserialize(value).ok())
    }

    /// The details for programs, if there are any.
    pub fn details(&self) -> Option<&Value> {
        self.raw.meta.get(meta::DETAILS)
    }
}

/// A tool as it is listed: by the host, or, in a test, by the plugin itself.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolInfo {
    /// The name that calls use.
    pub name: String,
    /// A name for people.
    #[serde(default)]
    pub title: Option<String>,
    /// What the tool does, for the model.
    #[serde(default)]
    pub description: Option<String>,
    /// The JSON Schema of the arguments.
    pub input_schema: Value,
    /// The JSON Schema of the structured result.
    #[serde(default)]
    pub output_schema: Option<Value>,
    /// MCP's hints, such as `readOnlyHint`, which nobody vouches for.
    #[serde(default)]
    pub annotations: Option<Value>,
    /// MCP's metadata; what Lemon adds stands under `dev.lemon/tool`.
    #[serde(rename = "_meta", default)]
    pub meta: serde_json::Map<String, Value>,
}

/// A list of tools.
#[derive(Deserialize)]
pub(crate) struct Listed {
    pub(crate) tools: Vec<ToolInfo>,
}
