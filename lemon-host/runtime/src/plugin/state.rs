//! The words of the supervision of a plugin: its states, what can be asked of it, what happens to it, and what is done
//! about that.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::generation::Generation;
use super::name::PluginName;
use crate::error::StartError;

/// What a plugin is doing, without the reasons.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum StateKind {
    /// No process, and none is wanted.
    #[default]
    Dormant,
    /// A process is being started.
    Spawning,
    /// The process runs and is getting ready.
    Handshaking,
    /// Calls are taken.
    Ready,
    /// Calls are taken, but the plugin is slow to react or has left calls behind.
    Degraded,
    /// No new calls are taken; those under way are waited for.
    Draining,
    /// The process is being ended.
    Stopping,
    /// The process ended by itself; what it left behind is being cleared away.
    Exited,
    /// The plugin failed and will be started again.
    Backoff,
    /// The plugin failed and is not started again by itself.
    Failed,
}

impl fmt::Display for StateKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Dormant => "dormant",
            Self::Spawning => "spawning",
            Self::Handshaking => "handshaking",
            Self::Ready => "ready",
            Self::Degraded => "degraded",
            Self::Draining => "draining",
            Self::Stopping => "stopping",
            Self::Exited => "exited",
            Self::Backoff => "backoff",
            Self::Failed => "failed",
        })
    }
}

impl StateKind {
    /// Nothing happens until a command, a demand or a time comes.
    pub(crate) fn is_at_rest(self) -> bool {
        matches!(self, Self::Ready | Self::Degraded | Self::Dormant | Self::Backoff | Self::Failed)
    }
}

/// A user's wish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    /// Be ready.
    Start,
    /// Have no process, and stay so until a start.
    Stop,
    /// Have another process.
    Restart,
    /// Have another process, and keep the old one if the new one does not get ready.
    Reload,
    /// Have no process, at once.
    Kill,
}

/// Names a command that somebody waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TicketId(pub(crate) u64);

/// Why a command did not take effect.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The plugin did not get ready.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A later command wants something else.
    #[error("a later command took its place")]
    Superseded,
    /// A reload is under way, or the process that it replaced has not ended yet.
    #[error("a reload is already under way")]
    Reloading,
    /// The host is at its end.
    #[error("the host is shutting down")]
    ShuttingDown,
    /// There is no such plugin.
    #[error("there is no plugin named {plugin}")]
    Unknown {
        /// The name.
        plugin: PluginName,
    },
}

#[derive(Debug, Clone)]
pub(crate) enum Event {
    Command(Command, TicketId),
    /// A call wants the plugin.
    Demand,
    Spawned(Generation),
    Ready(Generation),
    /// The process did not get ready. It may still be there.
    StartFailed(Generation, StartError),
    /// A ready process ended by itself or has to be given up.
    Lost(Generation, StartError),
    /// No call is under way any more, or the time for that is over.
    Drained(Generation),
    /// The process is gone, with all that it left behind.
    Ended(Generation),
    PingLate(Generation),
    PingAnswered(Generation),
    /// Too many given-up calls never ended.
    TooManyAbandoned(Generation),
    /// No call is under way.
    Idle(Generation),
    /// A request was answered.
    GoodReply(Generation),
    BackoffOver(Generation),
    /// The host is at its end.
    ShutDown,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    /// Start a process.
    Launch(Generation),
    /// From now on calls go to this process.
    Switch(Generation),
    /// Report when no call is under way in this process.
    Drain(Generation),
    /// End this process.
    End(Generation, Manner),
    /// Report when the time is over.
    Wait(Generation, Duration),
    /// Tell the command's sender.
    Resolve(TicketId, Verdict),
}

/// How a process is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Asked, with all its time.
    Polite,
    /// It did not get ready, so there is nothing to ask: its input is closed and it gets a moment.
    Brief,
    /// At once.
    Kill,
}

/// The answer to a command.
pub(crate) type Verdict = Result<(), Refusal>;

/// A [`CommandError`] that can be compared.
#[derive(Debug, Clone)]
pub(crate) struct Refusal(pub(crate) CommandError);

impl PartialEq for Refusal {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_string() == other.0.to_string()
    }
}
