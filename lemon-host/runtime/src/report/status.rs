//! The state of all plugins at one moment, as data.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use lemon_process::ExitStatus;
use serde::Serialize;

use crate::catalog::{ConflictReport, HiddenBy};
use crate::error::{Phase, ProcessEnd, StartError};
use crate::plugin::drift::Drift;
use crate::plugin::live::{Dialect, Quarantined};
use crate::plugin::{Class, Generation, Listed, PluginName, Provenance, StateKind};
use crate::report::PluginText;
use crate::wire::NoiseReport;

/// The state of the host and of all its plugins.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Status {
    /// What ends the plugins if the host is killed: `guard`, or `parent-death-signal` as the weaker fallback.
    pub protection: &'static str,
    /// The plugins, in order.
    pub plugins: Vec<PluginStatus>,
    /// Plugins that were not started, as another one has their name.
    pub losers: Vec<Loser>,
    /// Which tools have one name, and which plugins are missing.
    pub conflicts: ConflictReport,
    /// Tools that a filter hides.
    pub hidden: Vec<Hidden>,
    /// Patterns of the filter that match no tool: most likely they are misspelt, or their plugin is missing.
    pub idle_filters: Vec<String>,
}

/// A tool that is there and must not be used.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Hidden {
    /// The tool.
    pub tool: String,
    /// What hides it.
    #[serde(flatten)]
    pub rule: HiddenBy,
}

/// A plugin that was not started, as another one that came first has its name.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Loser {
    /// The name.
    pub name: PluginName,
    /// What brought the loser in.
    pub provenance: Provenance,
    /// What brought the winner in.
    pub winner: Provenance,
}

/// The state of one plugin.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PluginStatus {
    /// Its identity.
    pub name: PluginName,
    /// Where the user put it.
    pub class: Class,
    /// What brought it in.
    pub provenance: Provenance,
    /// The program and its arguments, free of known secrets.
    pub command: Vec<String>,
    /// What it is doing.
    pub state: StateKind,
    /// Why it is not running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The same as data, not free of secrets.
    #[serde(skip)]
    pub failure: Option<StartError>,
    /// When it will be started again, in milliseconds from now.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "millis")]
    pub retry_in_ms: Option<Duration>,
    /// How often it was started after the first time.
    pub restarts: u32,
    /// The last failure, also if the plugin is well again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<FailureReport>,
    /// The number of its process.
    pub generation: Generation,
    /// Its process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessStatus>,
    /// Its other processes: one for each further session, if it serves one session only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub session_processes: Vec<SessionProcess>,
    /// The name that it has for itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_name: Option<PluginText>,
    /// The version that it has for itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_version: Option<PluginText>,
    /// What it speaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dialect: Option<Dialect>,
    /// How many tools it offers, hidden ones included.
    pub tools: usize,
    /// Where those were listed; none if nothing has listed them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listed: Option<Listed>,
    /// Tools that it lists and that are not offered.
    pub quarantined: Vec<Quarantined>,
    /// The manifest that describes it, if one does.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "super::lossy::some_path")]
    pub manifest: Option<PathBuf>,
    /// In what it differs from its manifest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drift: Vec<Drift>,
}

/// What became of one process of a plugin's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FailureReport {
    /// Why, in words, with the end of its stderr where that helps.
    pub error: String,
    /// What it was doing: a part of the start, or none once it was ready or if it never ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Its exit status, if it exited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The number of the signal that ended it, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// The number of the process.
    pub generation: Generation,
    /// When, in milliseconds since 1970.
    #[serde(rename = "atMs", serialize_with = "unix_millis")]
    pub at: SystemTime,
    /// From its spawn until then, in milliseconds; none if it could not be spawned.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "millis")]
    pub ran_for_ms: Option<Duration>,
}

impl FailureReport {
    pub(crate) fn new(error: &StartError, generation: Generation, ran_for: Option<Duration>) -> Self {
        let status = match error.end() {
            Some(ProcessEnd::Exited(status)) => Some(status),
            _ => None,
        };
        Self {
            error: error.to_string(),
            phase: error.phase(),
            exit_code: status.and_then(|status| if let ExitStatus::Code(code) = status { Some(code) } else { None }),
            signal: status.and_then(|status| if let ExitStatus::Signal(n, _) = status { Some(n) } else { None }),
            generation,
            at: SystemTime::now(),
            ran_for_ms: ran_for,
        }
    }
}

/// The process that a plugin has for one further session, as it serves one session at a time.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SessionProcess {
    /// The session's id.
    pub session: String,
    /// What it is doing.
    pub state: StateKind,
    /// Why it is not running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When it will be started again, in milliseconds from now.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "millis")]
    pub retry_in_ms: Option<Duration>,
    /// How often it was started after the first time.
    pub restarts: u32,
    /// The last failure, also if it is well again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<FailureReport>,
    /// The number of the process.
    pub generation: Generation,
    /// The process, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessStatus>,
}

/// The state of a plugin's process.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ProcessStatus {
    /// Its process id.
    pub pid: u32,
    /// When it was started, in milliseconds since 1970.
    #[serde(rename = "startedAtMs", serialize_with = "unix_millis")]
    pub started: SystemTime,
    /// From the spawn to the end of the handshake, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "millis")]
    pub ready_after_ms: Option<Duration>,
    /// Calls under way.
    pub calls: usize,
    /// Calls that were given up and may still be running.
    pub lingering: usize,
    /// Given-up calls that never ended.
    pub abandoned: u32,
    /// Bytes that wait to be written to it.
    pub outbox_bytes: usize,
    /// What it wrote that is no message, or none that the host waits for.
    pub noise: NoiseReport,
    /// The end of its stderr.
    pub stderr: PluginText,
}

fn millis<S: serde::Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    match duration {
        Some(duration) => serializer.serialize_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)),
        None => serializer.serialize_none(),
    }
}

fn unix_millis<S: serde::Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    millis(&Some(since), serializer)
}
