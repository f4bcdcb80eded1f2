//! What happens in the host, as it happens.

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
        /// The process that the state is about.
        generation: Generation,
        /// The state.
        state: StateKind,
        /// Why, for a failure.
        reason: Option<String>,
    },
    /// A plugin's list of tools is another one.
    ToolsChanged {
        /// The plugin.
        plugin: PluginName,
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
