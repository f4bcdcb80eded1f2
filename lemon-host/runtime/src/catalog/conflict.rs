//! Which tools have one name, who won, and what could not be loaded at all.

use serde::Serialize;

use super::source::ToolSource;
use crate::plugin::{PluginName, Provenance};

/// Tools of one name: one is called, the others are hidden.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Conflict {
    /// The name.
    pub tool_name: String,
    /// Whose tool is called.
    pub winner: ToolSource,
    /// Whose tools are hidden, in the order in which they would win.
    pub shadowed: Vec<ToolSource>,
}

/// How the names of all tools were settled, and which plugins are missing.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ConflictReport {
    /// The names that several tools have, by name.
    pub conflicts: Vec<Conflict>,
    /// Tools that can be called.
    pub total_tools: usize,
    /// Those of them that are built in.
    pub builtin_count: usize,
    /// Those of them that were registered at run time.
    pub registered_count: usize,
    /// Those of them that are of extensions.
    pub extension_count: usize,
    /// Those of them that are of MCP servers.
    pub mcp_count: usize,
    /// Tools that are hidden by one of the same name.
    pub shadowed_count: usize,
    /// Plugins that could not be started or were given up.
    pub load_errors: Vec<LoadError>,
}

/// A plugin that could not be started or was given up.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LoadError {
    /// The plugin.
    pub plugin: PluginName,
    /// What brought it in.
    pub source: Provenance,
    /// Why, for a person.
    pub error_message: String,
}
