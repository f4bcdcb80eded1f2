//! Whether a call ended as it may: with the answer that belongs to it, or with an error that its own deed, its own caller
//! or, for a plugin with many callers, another one explains.

use std::time::Duration;

use lemon_host::{CallError, ExitStatus, ProcessEnd, ToolResult};

use crate::deed::{CRASH_STATUS, Deed};
use crate::plan::{Change, Planned, Role};

/// How much later than its deadline a call may end, on a machine that is busy.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// A call that has ended.
pub(crate) struct Ended<'a> {
    pub(crate) role: Role,
    pub(crate) planned: &'a Planned,
    /// The text that the answer has to have.
    pub(crate) expected: &'a str,
    /// The caller's change of mind, if it came to that.
    pub(crate) changed: Option<Change>,
    pub(crate) took: Duration,
}

/// The name under which the end is counted.
pub(crate) fn kind(outcome: &Result<ToolResult, CallError>) -> &'static str {
    match outcome {
        Ok(result) if result.is_error() => "answered, failed",
        Ok(_) => "answered",
        Err(CallError::Answered { .. }) => "answered with an error",
        Err(CallError::Crashed { .. }) => "crashed",
        Err(CallError::NotReady { .. }) => "not ready",
        Err(CallError::Timeout { .. }) => "timed out",
        Err(CallError::Unsent { .. }) => "timed out unsent",
        Err(CallError::Cancelled { .. }) => "cancelled",
        Err(CallError::TooLarge { .. }) => "too large",
        Err(CallError::NotReading { .. }) => "not reading",
        Err(CallError::ShuttingDown { .. }) => "stopped",
        Err(CallError::UnknownTool { .. }) => "no such tool",
        Err(CallError::SessionOver { .. }) => "session over",
        Err(CallError::Protocol { .. }) => "protocol broken",
        Err(_) => "other",
    }
}

impl Ended<'_> {
    /// Says what is wrong with the end of the call.
    pub(crate) fn fault(&self, outcome: &Result<ToolResult, CallError>) -> Option<String> {
        let Self { role, planned, changed, took, .. } = self;
        let deed = planned.deed;
        if *took > planned.deadline + GRACE {
            return Some(format!("it took {took:?}, with a deadline of {:?}", planned.deadline));
        }
        let error = match outcome {
            Ok(result) => return self.wrong_answer(result),
            Err(error) => error,
        };
        let explained = match error {
            CallError::Cancelled { .. } => *changed == Some(Change::Cancel),
            CallError::SessionOver { .. } => *changed == Some(Change::Close),
            CallError::Timeout { after, .. } | CallError::Unsent { after, .. } => {
                let is_due = *took >= planned.deadline && *after == planned.deadline;
                is_due && (*role == Role::Wild || deed.is_silent() || deed.may_stay_unnoticed())
            }
            CallError::Answered { message, .. } => deed == Deed::Error && message.raw() == self.expected,
            CallError::TooLarge { .. } => deed == Deed::Oversized,
            // The late answer to another call got into its half.
            CallError::Protocol { .. } => deed == Deed::CrashMid && *role == Role::Wild,
            CallError::Crashed { status, .. } => match role {
                Role::Wild => true,
                Role::Solo => is_own_end(deed, *status),
                Role::Healthy | Role::Replaced => false,
            },
            CallError::NotReady { .. } => match role {
                Role::Wild => true,
                Role::Solo => deed == Deed::Flood,
                Role::Healthy | Role::Replaced => false,
            },
            // The session's own process ends with the session.
            CallError::ShuttingDown { .. } => *role == Role::Wild,
            CallError::UnknownTool { .. } | CallError::NotReading { .. } => *role == Role::Wild,
            _ => false,
        };
        (!explained).then(|| error.to_string())
    }

    fn wrong_answer(&self, result: &ToolResult) -> Option<String> {
        let deed = self.planned.deed;
        if !deed.is_answered() || deed == Deed::Error {
            return Some("it was answered, which its plugin did not do".to_owned());
        }
        let texts: Vec<_> = result.texts().collect();
        let [text] = &texts[..] else { return Some(format!("its answer has {} texts", texts.len())) };
        // A reverse call is refused when its process is on its way out or its session is closed.
        let may_be_refused = self.role == Role::Wild || self.changed == Some(Change::Close);
        if deed == Deed::Relay && result.is_error() && may_be_refused {
            return None;
        }
        if result.is_error() != (deed == Deed::Fail) || text.raw() != self.expected {
            let start: String = text.raw().chars().take(80).collect();
            return Some(format!("it has the answer of another call: {start:?}"));
        }
        None
    }
}

/// Whether a process ended as the deed ends it.
fn is_own_end(deed: Deed, end: ProcessEnd) -> bool {
    match (deed, end) {
        (Deed::CrashBefore | Deed::CrashMid, ProcessEnd::Exited(ExitStatus::Code(code))) => code == CRASH_STATUS,
        (Deed::Killed, ProcessEnd::Exited(ExitStatus::Signal(number, _))) => number == 9,
        (Deed::CloseStdout, end) => end == ProcessEnd::ClosedStdout,
        (Deed::CloseStdin, end) => end == ProcessEnd::ClosedStdin,
        _ => false,
    }
}
