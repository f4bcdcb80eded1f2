//! Where a tool comes from, which decides who wins when two have one name.

use std::fmt;

use serde::Serialize;

use crate::plugin::{Class, Plugin, PluginName};

/// Who provides a tool. The order is the order of precedence: of two tools with one name the lesser source wins.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase", tag = "class")]
#[non_exhaustive]
pub enum ToolSource {
    /// The embedding program itself, as part of it ([`HostBuilder::builtin`](crate::HostBuilder::builtin)).
    Builtin,
    /// The embedding program, by the [`ToolRegistry`](crate::ToolRegistry).
    Registered,
    /// A plugin whose tools keep their names.
    Extension {
        /// The plugin.
        plugin: PluginName,
    },
    /// An MCP server, whose tools are `mcp_<server>_<tool>`.
    Mcp {
        /// The server.
        plugin: PluginName,
    },
}

impl ToolSource {
    /// The plugin that provides the tool, if it is one.
    pub fn plugin(&self) -> Option<&PluginName> {
        match self {
            Self::Builtin | Self::Registered => None,
            Self::Extension { plugin } | Self::Mcp { plugin } => Some(plugin),
        }
    }

    pub(crate) fn of(plugin: &Plugin) -> Self {
        let name = plugin.name().clone();
        match plugin.spec().class {
            Class::Extension => Self::Extension { plugin: name },
            Class::Mcp => Self::Mcp { plugin: name },
        }
    }
}

impl fmt::Display for ToolSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Builtin => f.write_str("the program (built in)"),
            Self::Registered => f.write_str("the program (registered)"),
            Self::Extension { plugin } => write!(f, "plugin {plugin}"),
            Self::Mcp { plugin } => write!(f, "MCP server {plugin}"),
        }
    }
}
