//! Tools: listing them and calling them, with progress and cancellation (LPP-TOOL, LPP-CALL, LPP-PROG, LPP-CANCEL).
//!
//! Schemas, annotations and arguments pass through as they were written; the host's catalogue decides what to make
//! of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::id::RequestId;
use crate::meta;

/// One tool of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// The name that calls use, unique within the plugin.
    pub name: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the tool does, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of the arguments; its root describes an object.
    pub input_schema: Value,
    /// The JSON Schema of the structured result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// MCP's hints, which nobody vouches for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Value>,
    /// MCP's metadata; Lemon's own stands under [`meta::TOOL`].
    #[serde(rename = "_meta", default, skip_serializing_if = "Map::is_empty")]
    pub meta: Map<String, Value>,
}

impl Tool {
    /// What the plugin says of the tool beyond MCP's fields; unknown members and wrong types count as absent.
    pub fn hints(&self) -> ToolHints {
        self.meta.get(meta::TOOL).and_then(|hints| ToolHints::deserialize(hints).ok()).unwrap_or_default()
    }
}

/// Lemon's metadata of a tool, under [`meta::TOOL`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolHints {
    /// How long a call may take in all, in milliseconds; 0 means for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// The params of `tools/list`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListToolsParams {
    /// Where the page before ended. The empty string is a cursor too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// The result of `tools/list`. Each entry of `tools` is a [`Tool`]; one that can't be read does not spoil the others.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListToolsResult {
    /// One page of tools.
    #[schemars(with = "Vec<Tool>")]
    pub tools: Vec<Box<RawValue>>,
    /// Where the next page starts; absent or null on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// The params of `tools/call`, and of `host/tools/call`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallToolParams {
    /// The tool's name.
    pub name: String,
    /// The arguments.
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// `progressToken` and Lemon's keys.
    #[serde(rename = "_meta", default, skip_serializing_if = "Map::is_empty")]
    pub meta: Map<String, Value>,
}

/// The result of `tools/call`, and of `host/tools/call`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallToolResult {
    /// What the model sees.
    pub content: Vec<ContentBlock>,
    /// The result as a value that fits the tool's output schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Value>,
    /// The tool failed, and the content says how.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// MCP's metadata and Lemon's keys.
    #[serde(rename = "_meta", default, skip_serializing_if = "Map::is_empty")]
    pub meta: Map<String, Value>,
}

/// One block of a result's content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContentBlock {
    /// One of MCP's types: `text`, `image`, `audio`, `resource_link` or `resource` (LPP-CALL-06).
    #[serde(rename = "type")]
    pub kind: String,
    /// The members that the type has, as they were written.
    #[serde(flatten)]
    pub members: Map<String, Value>,
}

/// The params of `notifications/progress`. Its `_meta` may have a [`PartialResult`] under [`meta::PARTIAL`], which is
/// read apart: one that can't be read does not spoil the progress (LPP-PROG-12).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = add_partial)]
pub struct ProgressParams {
    /// The token that the call carried.
    pub progress_token: RequestId<'static>,
    /// How far it is; only ever grows within a call.
    pub progress: f64,
    /// How far it will go, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// What is being done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The result of a call so far, which takes the place of the one before it (LPP-PROG-09, LPP-PROG-10).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PartialResult {
    /// What the model would see if the call ended now.
    pub content: Vec<ContentBlock>,
    /// Details for programs, of the plugin's own making.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

/// Says in the schema where a partial result stands.
fn add_partial(schema: &mut schemars::Schema) {
    let partial = json!({ "$ref": "#/$defs/PartialResult" });
    let meta = json!({ "type": "object", "properties": { meta::PARTIAL: partial } });
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert("_meta".to_owned(), meta);
    }
}

/// The params of `notifications/cancelled`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CancelledParams {
    /// The id of the request whose answer is no longer wanted.
    pub request_id: RequestId<'static>,
    /// Why, for a log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The params of `notifications/message`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogMessage {
    /// A level of syslog: `debug`, `info`, `notice`, `warning`, `error`, `critical`, `alert` or `emergency`.
    pub level: String,
    /// The part of the plugin that speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logger: Option<String>,
    /// A text, or any other value.
    #[serde(default)]
    pub data: Value,
}
