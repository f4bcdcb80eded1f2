//! What happens in the host, as it happens.

use std::time::Duration;

use crate::catalog::ToolSource;
use crate::plugin::drift::Drift;
use crate::plugin::{Generation, PluginName, StateKind};
use crate::report::PluginText;

/// One thing that happened.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// A plugin is in another state.
    State {
        /// The plugin.
        plugin: PluginName,
        /// The id of the session that the process serves alone; none for the process that is there for all.
        session: Option<String>,
        /// The process that the state is about.
        generation: Generation,
        /// The state.
        state: StateKind,
        /// Why, for a failure.
        reason: Option<String>,
        /// How often the plugin was started after the first time.
        restarts: u32,
        /// When it will be started again by itself, if it will.
        retry_in: Option<Duration>,
    },
    /// A plugin's list of tools is another one.
    ToolsChanged {
        /// The plugin.
        plugin: PluginName,
    },
    /// A tool can't be called, as another one has its name; told once for each.
    Shadowed {
        /// The name.
        tool: String,
        /// Whose tool is hidden.
        source: ToolSource,
        /// Whose tool is called.
        winner: ToolSource,
    },
    /// A part of a tool's schema is not held against its arguments; told once for each tool.
    SchemaIgnored {
        /// The tool.
        tool: String,
        /// What is ignored, and why.
        reason: PluginText,
    },
    /// A running plugin differs from its manifest; told once for each difference.
    Drift {
        /// The plugin.
        plugin: PluginName,
        /// The difference.
        drift: Drift,
    },
    /// A plugin logged something.
    Log {
        /// The plugin.
        plugin: PluginName,
        /// The level, as the plugin gave it.
        level: PluginText,
        /// The message, free of secrets.
        text: PluginText,
    },
    /// A plugin wrote something of a kind that is dropped; told once for each kind.
    Noise {
        /// The plugin.
        plugin: PluginName,
        /// The kind.
        kind: &'static str,
        /// What was wrong, with an excerpt.
        first: PluginText,
    },
    /// A plugin's log file can't be written; the plugin goes on.
    LogFile {
        /// The plugin.
        plugin: PluginName,
        /// Why.
        reason: String,
    },
}
