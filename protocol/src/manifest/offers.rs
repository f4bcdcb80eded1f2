//! What an extension offers beside tools, as far as that can be said before it runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A command for people, such as `/review`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandDeclaration {
    /// The name, without a slash.
    #[schemars(regex(pattern = "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"))]
    pub name: String,
    /// What it does, in a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What may follow the name, such as `[FILE]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<String>,
}

/// An event that an extension wants to see or to decide on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookDeclaration {
    /// The event, such as `tool_call`.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]{0,63}$"))]
    pub event: String,
    /// Whether it only watches.
    #[serde(default)]
    pub mode: HookMode,
    /// Of events about tools only those about these; `*` stands for any characters. All if it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// How long the hook may take, in milliseconds.
    #[serde(default, alias = "timeout_ms", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub timeout_ms: Option<u64>,
    /// What holds when the hook fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailurePolicy>,
}

/// What a hook may do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum HookMode {
    /// It is told.
    #[default]
    Observe,
    /// It is asked, and its answer decides.
    Intercept,
}

impl HookMode {
    /// The names in a manifest.
    pub const NAMES: [&str; 2] = ["observe", "intercept"];
}

impl HookDeclaration {
    /// Whether calls of tools may be stopped by it: then none is made while it is not there.
    pub fn is_gate(&self) -> bool {
        self.mode == HookMode::Intercept && (self.event == "tool_call" || self.failure == Some(FailurePolicy::Closed))
    }
}

/// What holds when a hook fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum FailurePolicy {
    /// What the hook would have decided on goes on.
    Open,
    /// What the hook would have decided on is refused.
    Closed,
}

impl FailurePolicy {
    /// The names in a manifest.
    pub const NAMES: [&str; 2] = ["open", "closed"];
}

/// The events that are known.
#[derive(Debug, Clone, Copy)]
pub struct HookEvent;

impl HookEvent {
    /// Their names. A manifest may name others, which a newer host may know.
    pub const NAMES: [&str; 12] = [
        "session_start",
        "session_shutdown",
        "agent_start",
        "agent_end",
        "turn_start",
        "turn_end",
        "message_start",
        "message_end",
        "tool_call",
        "tool_result",
        "tool_execution_start",
        "tool_execution_end",
    ];
}

/// Something that an extension provides beside tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderDeclaration {
    /// What it is.
    #[serde(rename = "type")]
    pub kind: ProviderType,
    /// Its name.
    #[schemars(regex(pattern = r"\S"))]
    pub name: String,
}

/// What an extension may provide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ProviderType {
    /// A model.
    Model,
    /// A memory.
    Memory,
    /// Something that runs tools.
    ToolExecutor,
    /// A place to keep things.
    Storage,
}

impl ProviderType {
    /// The names in a manifest.
    pub const NAMES: [&str; 4] = ["model", "memory", "tool_executor", "storage"];

    /// The name in a manifest.
    pub const fn as_str(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}
