//! What can go wrong, as data: why a plugin did not start, and why a call has no result.

use std::time::Duration;

use lemon_process::{ExitStatus, SpawnError, lookup::LookupError};
use lemon_protocol::{ErrorObject, Kind, NoCommonVersion};

use crate::arguments::ArgumentsFault;
use crate::catalog::HiddenBy;
use crate::discovery::{ManifestError, NotLoadable};
use crate::plugin::{PluginName, StateKind};
use crate::report::PluginText;

/// Why a call has no result. A tool that ran and failed is no such error: it answers with `isError`.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// Nobody offers the tool.
    #[error("there is no tool named {:?}{}", name, nearest.as_ref().map(|n| format!("; did you mean {n:?}?")).unwrap_or_default())]
    UnknownTool {
        /// The name that was asked for.
        name: String,
        /// The most similar name there is.
        nearest: Option<String>,
    },
    /// The tool is there and must not be used.
    #[error("the tool {tool:?} is not enabled: {rule}")]
    Disabled {
        /// The tool.
        tool: String,
        /// What hides it.
        rule: HiddenBy,
    },
    /// The arguments are no JSON object, or none that fits the tool's schema.
    #[error("the arguments for {tool:?} are not acceptable: {fault}")]
    Arguments {
        /// The tool.
        tool: String,
        /// All that is wrong with them.
        fault: ArgumentsFault,
    },
    /// The plugin is not running.
    #[error("plugin {plugin} is not ready ({state}){}", reason.as_ref().map(|r| format!(": {r}")).unwrap_or_default())]
    NotReady {
        /// The plugin.
        plugin: PluginName,
        /// What it is instead.
        state: StateKind,
        /// Why, where that is known.
        reason: Option<String>,
    },
    /// The deadline passed while the process was alive.
    #[error("{callee} did not answer {method} within {}{}{}", seconds(*after), if *idle { " without progress" } else { "" }, dropped_note(*dropped))]
    Timeout {
        /// Who did not answer.
        callee: Callee,
        /// The request's method.
        method: &'static str,
        /// How long the request was given.
        after: Duration,
        /// Whether it was the time without progress that ran out, not the total.
        idle: bool,
        /// Messages of the plugin that were dropped in the meantime; one of them may have been meant as the answer.
        dropped: u64,
    },
    /// The deadline passed before the call could be sent.
    #[error("the call to plugin {plugin} could not be sent within {}: {reason}", seconds(*after))]
    Unsent {
        /// The plugin.
        plugin: PluginName,
        /// How long the call was given.
        after: Duration,
        /// What it waited for.
        reason: String,
    },
    /// The caller did not want the answer any more.
    #[error("the call to {callee} was cancelled")]
    Cancelled {
        /// Who was asked.
        callee: Callee,
    },
    /// The process ended with the call under way.
    #[error("plugin {plugin} ended during the call: {status}{}", stderr_note(stderr))]
    Crashed {
        /// The plugin.
        plugin: PluginName,
        /// How it ended.
        status: ProcessEnd,
        /// The last lines that it wrote to stderr.
        stderr: PluginText,
    },
    /// The plugin answered with a JSON-RPC error.
    #[error("plugin {plugin} answered with an error: {} (code {code})", message.line())]
    Answered {
        /// The plugin.
        plugin: PluginName,
        /// The error's code.
        code: i64,
        /// The error's message.
        message: PluginText,
        /// The error's data.
        data: Option<serde_json::Value>,
    },
    /// The plugin's answer is not what the protocol says.
    #[error("plugin {plugin} broke the protocol in its answer to {method}: {}", detail.line())]
    Protocol {
        /// The plugin.
        plugin: PluginName,
        /// The request's method.
        method: &'static str,
        /// What is wrong.
        detail: PluginText,
    },
    /// A message is over its limit.
    #[error("{what} of plugin {plugin} is too large: {bytes} bytes, the limit is {limit} ({key})")]
    TooLarge {
        /// The plugin.
        plugin: PluginName,
        /// The message: the request to it, or the answer of it.
        what: &'static str,
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
        /// The limit's key in the config.
        key: &'static str,
    },
    /// The process does not read what it is sent.
    #[error("plugin {plugin} does not read its input: {bytes} bytes are waiting")]
    NotReading {
        /// The plugin.
        plugin: PluginName,
        /// What waits.
        bytes: usize,
    },
    /// The call would come back to a tool that is waiting for it, or the chain is too long.
    #[error("{reason}")]
    Chain {
        /// `cycle` or `too_deep`.
        kind: Kind,
        /// The chain, by name.
        reason: String,
    },
    /// The tool is not the one that the caller [expects](crate::Call::expecting).
    #[error("the tool {tool} is another one than was listed; list the tools again")]
    Changed {
        /// The tool.
        tool: String,
    },
    /// A policy or the user refused the call.
    #[error("the call was refused: {}", reason.line())]
    Denied {
        /// Why; whoever refused it may quote what it was asked.
        reason: PluginText,
    },
    /// The session was closed, or its host is gone.
    #[error("session {session} is over")]
    SessionOver {
        /// The session's id.
        session: String,
    },
    /// The host or the plugin is coming to its end.
    #[error("plugin {plugin} is being stopped")]
    ShuttingDown {
        /// The plugin.
        plugin: PluginName,
    },
}

impl CallError {
    /// The stable name of the reason, under which a plugin that made the call is told; none for what JSON-RPC has codes
    /// for: unacceptable arguments, an error that the plugin answered with, a breach of the protocol.
    pub fn kind(&self) -> Option<Kind> {
        Some(match self {
            Self::Arguments { .. } | Self::Answered { .. } | Self::Protocol { .. } => return None,
            Self::UnknownTool { .. } => Kind::UnknownTool,
            Self::NotReady { .. } => Kind::NotReady,
            Self::Timeout { .. } | Self::Unsent { .. } => Kind::Timeout,
            Self::Cancelled { .. } => Kind::Cancelled,
            Self::TooLarge { .. } => Kind::TooLarge,
            Self::NotReading { .. } => Kind::Busy,
            Self::Chain { kind, .. } => *kind,
            Self::Disabled { .. } | Self::Denied { .. } => Kind::Denied,
            Self::ShuttingDown { .. } | Self::SessionOver { .. } => Kind::ShuttingDown,
            Self::Crashed { .. } => Kind::Crashed,
            Self::Changed { .. } => Kind::Changed,
        })
    }

    /// The error as a plugin that made the call gets it.
    pub(crate) fn to_wire(&self) -> ErrorObject {
        match self {
            Self::Answered { code, message, data, .. } => {
                ErrorObject { code: *code, message: message.raw().to_owned(), data: data.clone() }
            }
            Self::Arguments { .. } => {
                ErrorObject { code: ErrorObject::INVALID_PARAMS, message: self.to_string(), data: None }
            }
            _ => match self.kind() {
                Some(kind) => ErrorObject::of(kind, self.to_string()),
                None => ErrorObject { code: ErrorObject::INTERNAL, message: self.to_string(), data: None },
            },
        }
    }
}

/// Who was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Callee {
    /// A plugin.
    Plugin(PluginName),
    /// A tool of the embedding program's, by its public name.
    Tool(String),
}

impl From<PluginName> for Callee {
    fn from(plugin: PluginName) -> Self {
        Self::Plugin(plugin)
    }
}

impl std::fmt::Display for Callee {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Plugin(plugin) => write!(f, "plugin {plugin}"),
            Self::Tool(tool) => write!(f, "the tool {tool}"),
        }
    }
}

/// How a process came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProcessEnd {
    /// It exited, or was ended by a signal.
    Exited(ExitStatus),
    /// It closed its stdout and lived on, so the host ended it.
    ClosedStdout,
    /// It closed its stdin and lived on, so the host ended it.
    ClosedStdin,
}

impl std::fmt::Display for ProcessEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited(status) => write!(f, "{status}"),
            Self::ClosedStdout => f.write_str("it closed its stdout and lived on"),
            Self::ClosedStdin => f.write_str("it closed its stdin and lived on"),
        }
    }
}

/// Why a plugin did not start, or was given up.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The program was not found or can't be run.
    #[error(transparent)]
    Lookup(#[from] std::sync::Arc<LookupError>),
    /// The operating system refused to start the program.
    #[error(transparent)]
    Spawn(#[from] std::sync::Arc<SpawnError>),
    /// The manifest is not valid.
    #[error(transparent)]
    Manifest(std::sync::Arc<ManifestError>),
    /// The manifest describes something that can't be run here.
    #[error(transparent)]
    NotLoadable(#[from] NotLoadable),
    /// It is not what the user trusted any more.
    #[error("it has changed since it was trusted: {reason}")]
    Untrusted {
        /// What has changed, or can't be looked at.
        reason: String,
    },
    /// The manifest requires a variable that the user did not give.
    #[error("it requires the variable {name}, which it is not given: {}", why.line())]
    Variable {
        /// The variable.
        name: String,
        /// What the plugin wants it for.
        why: PluginText,
    },
    /// A placeholder of the manifest's command has no value.
    #[error("{placeholder} in its command has no value: {reason}")]
    Placeholder {
        /// The placeholder.
        placeholder: lemon_protocol::manifest::Placeholder,
        /// Why.
        reason: String,
    },
    /// A secret that the plugin's entry asks for is not there.
    #[error("the secret {name:?} is not set; it is asked for by {wanted_by}")]
    Secret {
        /// The secret's name.
        name: String,
        /// The config key that asks for it.
        wanted_by: String,
    },
    /// The process ended before it was ready.
    #[error("it ended during {phase}: {status}{}", stderr_note(stderr))]
    Exited {
        /// What was under way.
        phase: Phase,
        /// How it ended.
        status: ProcessEnd,
        /// The last lines that it wrote to stderr.
        stderr: PluginText,
    },
    /// The process is alive and was not ready in time.
    #[error("it did not finish {phase} within {}{}{}", seconds(*after), dropped_note(*dropped), stderr_note(stderr))]
    Timeout {
        /// What was under way.
        phase: Phase,
        /// The time that the whole start had.
        after: Duration,
        /// Lines that were no message.
        dropped: u64,
        /// The last lines that it wrote to stderr.
        stderr: PluginText,
    },
    /// The plugin answered a request of the start with an error.
    #[error("it answered {phase} with an error: {} (code {code})", message.line())]
    Refused {
        /// What was under way.
        phase: Phase,
        /// The error's code.
        code: i64,
        /// The error's message.
        message: PluginText,
    },
    /// The plugin does not accept its configuration.
    #[error("it does not accept its configuration{}: {}", pointer.as_ref().map(|p| format!(" at {:?}", p.raw())).unwrap_or_default(), message.line())]
    Config {
        /// The JSON pointer of the offending value.
        pointer: Option<PluginText>,
        /// What is wrong with it.
        message: PluginText,
    },
    /// The plugin and the host speak no common version.
    #[error(transparent)]
    Version(#[from] NoCommonVersion),
    /// The MCP revision that the server picked is none that the host speaks.
    #[error("it speaks MCP revision {:?}; this host speaks {}", version.raw(), lemon_protocol::MCP_VERSIONS.join(", "))]
    McpVersion {
        /// What the server answered.
        version: PluginText,
    },
    /// The plugin broke the protocol.
    #[error("it broke the protocol during {phase}: {}", detail.line())]
    Protocol {
        /// What was under way.
        phase: Phase,
        /// What is wrong.
        detail: PluginText,
    },
    /// The plugin wrote too much that is no message.
    #[error("it wrote {lines} lines that are no message (limit {limit}, limits.noise_lines); the first: {}", first.line())]
    Noise {
        /// How many.
        lines: u64,
        /// The limit.
        limit: u64,
        /// The first one.
        first: PluginText,
    },
    /// The plugin does not read its input.
    #[error("it does not read its input: {bytes} bytes are waiting (limits.outbox_hard_bytes)")]
    NotReading {
        /// What waits.
        bytes: usize,
    },
    /// It failed too often in too short a time.
    #[error("it failed {failures} times in a row or in too short a time; the last time: {last}")]
    CircuitOpen {
        /// How often.
        failures: u32,
        /// The last failure.
        last: String,
    },
    /// The process ended while the plugin was ready.
    #[error("it ended: {status}{}", stderr_note(stderr))]
    Crashed {
        /// How it ended.
        status: ProcessEnd,
        /// The last lines that it wrote to stderr.
        stderr: PluginText,
    },
    /// The host's own supervision of the plugin failed.
    #[error("the host's own supervision of it has failed; this is a fault of the host's")]
    Internal,
    /// The user or the host stopped it.
    #[error("it was stopped")]
    Stopped,
}

impl From<ManifestError> for StartError {
    fn from(error: ManifestError) -> Self {
        Self::Manifest(error.into())
    }
}

impl StartError {
    /// What was under way in the start that failed.
    pub fn phase(&self) -> Option<Phase> {
        match self {
            Self::Exited { phase, .. }
            | Self::Timeout { phase, .. }
            | Self::Refused { phase, .. }
            | Self::Protocol { phase, .. } => Some(*phase),
            Self::Config { .. } => Some(Phase::Configure),
            Self::Version(_) | Self::McpVersion { .. } => Some(Phase::Initialize),
            _ => None,
        }
    }

    /// How the process ended, if it ended by itself.
    pub fn end(&self) -> Option<ProcessEnd> {
        match self {
            Self::Exited { status, .. } | Self::Crashed { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Whether both are an end in the same phase of a start with the same status.
    pub(crate) fn is_same_exit(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Exited { phase, status: ProcessEnd::Exited(status), .. },
                Self::Exited { phase: other_phase, status: ProcessEnd::Exited(other_status), .. },
            ) => phase == other_phase && status == other_status,
            _ => false,
        }
    }

    /// Trying again can't help: the program, the config or the protocol would have to change.
    pub fn is_deterministic(&self) -> bool {
        matches!(
            self,
            Self::Lookup(_)
                | Self::Manifest(_)
                | Self::NotLoadable(_)
                | Self::Untrusted { .. }
                | Self::Variable { .. }
                | Self::Placeholder { .. }
                | Self::Secret { .. }
                | Self::Config { .. }
                | Self::Version(_)
                | Self::McpVersion { .. }
                | Self::Refused { .. }
                | Self::Protocol { .. }
        ) || matches!(self, Self::Spawn(error) if !matches!(**error, SpawnError::Os { .. }))
    }
}

/// What a start is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Phase {
    /// The `initialize` request.
    Initialize,
    /// The `lemon/configure` request.
    Configure,
    /// The first `tools/list`.
    List,
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Initialize => "the handshake (initialize)",
            Self::Configure => "the configuration (lemon/configure)",
            Self::List => "the first list of tools (tools/list)",
        })
    }
}

fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_millis() as f64 / 1000.0)
}

fn dropped_note(dropped: u64) -> String {
    match dropped {
        0 => String::new(),
        1 => "; one line that it wrote was dropped as noise".to_owned(),
        n => format!("; {n} lines that it wrote were dropped as noise"),
    }
}

fn stderr_note(stderr: &PluginText) -> String {
    if stderr.raw().trim().is_empty() {
        return "; it wrote nothing to stderr".to_owned();
    }
    format!("; its stderr ends with:\n{}", stderr.block())
}
