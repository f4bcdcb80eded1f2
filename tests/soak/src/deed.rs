//! What a call can have a plugin do. The caller says it in the arguments, and knows what may come of it.

use serde::{Deserialize, Serialize};

/// What the plugin does when it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Deed {
    /// Answers.
    Answer,
    /// Answers with as much text as it was sent.
    Large,
    /// Answers after some milliseconds; a cancelled call ends without an answer.
    Late,
    /// The same, but deaf to its cancellation.
    LateDeaf,
    /// Never answers; tells when it is cancelled.
    Never,
    /// Never answers, and does not tell.
    NeverDeaf,
    /// Answers with a result that says that the tool failed.
    Fail,
    /// Answers with a JSON-RPC error.
    Error,
    /// Exits before it answers.
    CrashBefore,
    /// Exits in the middle of the answer.
    CrashMid,
    /// Exits right after the answer.
    CrashAfter,
    /// Kills itself before it answers.
    Killed,
    /// Writes some lines that are no messages around its answer.
    Garbage,
    /// Writes more such lines than the host puts up with, then answers.
    Flood,
    /// Answers twice.
    Twice,
    /// Before its answer, answers requests that nobody made.
    StrangeIds,
    /// Closes stdout and lives on.
    CloseStdout,
    /// Closes stdin and lives on.
    CloseStdin,
    /// Sends a thousand notes on progress before it answers.
    ProgressStorm,
    /// Sends a thousand log messages before it answers.
    LogStorm,
    /// Tells a hundred times that its list of tools is another one before it answers.
    ListStorm,
    /// Writes a mebibyte to stderr before it answers.
    Stderr,
    /// Answers with a line over the host's limit.
    Oversized,
    /// Leaves a process behind that holds its stdout and ignores SIGTERM, then answers.
    Child,
    /// The same, in a session of its own.
    ChildOwnSession,
    /// Has the healthy plugin answer, through the host.
    Relay,
    /// Reads nothing more.
    StopReading,
    /// Reads a byte a second from now on.
    ReadSlowly,
    /// Writes an answer of a gibibyte that has no end, then does nothing more.
    EndlessLine,
    /// Sends 64 log messages that are nearly as large as a line may be before it answers.
    LargeNotes,
    /// Has the healthy plugin called by 64 requests that are nearly as large as a line may be, then does nothing more.
    LargeRequests,
    /// Asks the host a million things and reads none of the answers.
    Requests,
    /// Stops itself by SIGSTOP.
    StopItself,
    /// Answers, and ignores the end of its stdin and SIGTERM from now on.
    OutliveEnd,
}

impl Deed {
    /// Whether the plugin answers this call if nothing else comes in between.
    pub(crate) fn is_answered(self) -> bool {
        !matches!(
            self,
            Self::Never
                | Self::NeverDeaf
                | Self::CrashBefore
                | Self::CrashMid
                | Self::Killed
                | Self::CloseStdout
                | Self::CloseStdin
                | Self::StopReading
                | Self::ReadSlowly
                | Self::StopItself
                | Self::EndlessLine
                | Self::LargeRequests
                | Self::Requests
                | Self::Oversized
        )
    }

    /// Whether the call runs into its deadline if nothing else comes in between.
    pub(crate) fn is_silent(self) -> bool {
        matches!(self, Self::Never | Self::NeverDeaf | Self::StopReading | Self::StopItself)
    }

    /// Whether the process is of no use any more, though this call may be answered.
    pub(crate) fn is_the_end(self) -> bool {
        matches!(
            self,
            Self::CrashBefore
                | Self::CrashMid
                | Self::CrashAfter
                | Self::Killed
                | Self::Flood
                | Self::CloseStdout
                | Self::CloseStdin
                | Self::StopReading
                | Self::StopItself
        )
    }

    /// Whether it is left to chance that the host finds out: a pipe stays open as long as a process that was left behind
    /// holds it, and nobody notices that nobody reads one that nothing is written to.
    pub(crate) fn may_stay_unnoticed(self) -> bool {
        matches!(self, Self::CloseStdout | Self::CloseStdin)
    }
}

/// The arguments of a call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Arguments {
    /// Names the call; the answer has to repeat it.
    pub(crate) token: String,
    pub(crate) deed: Deed,
    /// Milliseconds, for what is late.
    #[serde(default)]
    pub(crate) after: u64,
    /// What the answer has to repeat as well.
    #[serde(default)]
    pub(crate) pad: String,
}

/// How the process of [`Deed::CrashBefore`] and its like exits.
pub(crate) const CRASH_STATUS: i32 = 7;

/// The longest line that the host of a soak reads.
pub(crate) const INBOUND: usize = 1024 * 1024;

/// Lines that are no messages, at which the host of a soak gives a plugin up.
pub(crate) const NOISE_LINES: u64 = 1000;
