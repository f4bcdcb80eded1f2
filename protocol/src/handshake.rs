//! The handshake, the configuration and the end (LPP-INIT, LPP-CONF, LPP-END).
//!
//! The shapes are MCP's, revision 2025-11-25. Lemon's part is a body under [`LEMON_ID`](crate::LEMON_ID) in the
//! capability maps: in `experimental` in full, in `extensions` as a mark, as some published SDKs drop the latter.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::LEMON_ID;
use crate::version::ProtocolVersion;

/// A program's name and version, as it says them of itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Implementation {
    /// The program's name.
    #[serde(default)]
    pub name: String,
    /// The program's version, in a form of its own.
    #[serde(default)]
    pub version: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// The params of `initialize`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitializeParams {
    /// The MCP revision that the host prefers.
    pub protocol_version: String,
    /// What the host can do.
    pub capabilities: Capabilities,
    /// Who the host is.
    pub client_info: Implementation,
}

/// The result of `initialize`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitializeResult {
    /// The MCP revision that the plugin speaks.
    pub protocol_version: String,
    /// What the plugin can do.
    #[serde(default)]
    pub capabilities: Capabilities,
    /// Who the plugin is.
    #[serde(default)]
    pub server_info: Implementation,
    /// A hint for the model on how to use the plugin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
}

/// MCP's capability object of either side. Capabilities that Lemon has no use for are ignored.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Capabilities {
    /// The plugin has tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ListChanged>,
    /// The host answers `roots/list`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roots: Option<ListChanged>,
    /// Extensions of the protocol, by id, with their body.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub experimental: BTreeMap<String, Value>,
    /// Extensions of the protocol, by id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extensions: BTreeMap<String, Value>,
}

/// A capability that may announce changes of its list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListChanged {
    /// Whether a notification tells that the list is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_changed: Option<bool>,
}

impl Capabilities {
    /// The body of Lemon's part: the fuller one of `experimental` and `extensions`, none if neither is there.
    pub fn lemon(&self) -> Option<&Value> {
        let places = [self.experimental.get(LEMON_ID), self.extensions.get(LEMON_ID)];
        let has_members = |body: &&&Value| body.as_object().is_some_and(|members| !members.is_empty());
        places.iter().flatten().find(has_members).or_else(|| places.iter().flatten().next()).copied()
    }

    /// Puts Lemon's part in both places.
    ///
    /// # Panics
    /// Never for the types of this crate, which all serialise.
    pub fn set_lemon(&mut self, body: &impl Serialize) {
        let body = serde_json::to_value(body).unwrap_or_default();
        self.experimental.insert(LEMON_ID.to_owned(), body);
        self.extensions.insert(LEMON_ID.to_owned(), Value::Object(Map::new()));
    }
}

/// Lemon's part of the host's capabilities.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostOffer {
    /// The protocol versions that the host speaks; the plugin picks one.
    pub versions: Vec<ProtocolVersion>,
    /// The requests that the host answers.
    #[serde(default)]
    pub methods: Vec<String>,
    /// The longest line that the host reads, in bytes.
    pub max_message_bytes: u64,
    /// The host's process, for a plugin that wants to notice its death.
    pub process: HostProcess,
}

/// The host's process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostProcess {
    /// Its id.
    pub pid: u32,
    /// Its start in the operating system's own unit, which tells it from a later process with the same id: on Linux
    /// clock ticks since boot, field 22 of `/proc/PID/stat`. Absent where it can't be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<u64>,
}

/// Lemon's part of the plugin's capabilities. Its presence makes an MCP server a Lemon plugin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginAnswer {
    /// The version that the plugin picked from the host's offer.
    pub version: ProtocolVersion,
    /// One process may serve many sessions.
    #[serde(default)]
    pub multi_session: bool,
    /// Two processes of this plugin must never run at once, so a reload stops the old one first.
    #[serde(default)]
    pub exclusive: bool,
    /// The JSON Schema of the plugin's configuration; its presence asks for `lemon/configure`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_schema: Option<Value>,
}

/// The params of `lemon/configure`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigureParams {
    /// The configuration with its defaults filled in.
    pub values: Map<String, Value>,
    /// Counts the configurations that this process was given, from 1.
    pub generation: u64,
}

/// The params of `lemon/shutdown`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShutdownParams {
    /// Why: `exit`, `stop`, `restart` or `reload`.
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lemons_part_is_read_from_either_place() {
        let read = |capabilities: Value| serde_json::from_value::<Capabilities>(capabilities).unwrap().lemon().cloned();
        let body = json!({"version": "1.0"});
        assert_eq!(read(json!({"extensions": {LEMON_ID: body}})), Some(body.clone()));
        assert_eq!(read(json!({"extensions": {LEMON_ID: {}}, "experimental": {LEMON_ID: body}})), Some(body.clone()));
        assert_eq!(read(json!({"extensions": {LEMON_ID: body}, "experimental": {LEMON_ID: {}}})), Some(body));
        assert_eq!(read(json!({"extensions": {LEMON_ID: {}}})), Some(json!({})));
        assert_eq!(read(json!({"tools": {}, "completions": {}})), None);
    }
}
