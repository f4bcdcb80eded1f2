//! How a process ended, and what it took.

use std::fmt;
use std::time::Duration;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ExitStatus {
    /// It exited by itself with this status.
    Code(i32),
    /// This signal killed it; `true` if it dumped core.
    Signal(i32, bool),
    /// Nobody knows: other code of this program reaped it first, or it outlived SIGKILL
    /// because it hangs in the kernel.
    Unknown,
}

impl ExitStatus {
    /// Whether it is exit status 0.
    pub fn success(self) -> bool {
        self == Self::Code(0)
    }
}

/// `exit status 3`, `signal 9 (SIGKILL)`, `signal 11 (SIGSEGV), core dumped` or
/// `exit status unknown`.
impl fmt::Display for ExitStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Code(code) => write!(f, "exit status {code}"),
            Self::Unknown => f.write_str("exit status unknown"),
            Self::Signal(number, core_dumped) => {
                write!(f, "signal {number}")?;
                if let Ok(signal) = nix::sys::signal::Signal::try_from(number) {
                    write!(f, " ({})", signal.as_str())?;
                }
                if core_dumped {
                    f.write_str(", core dumped")?;
                }
                Ok(())
            }
        }
    }
}

/// A signal that the host sends to a process group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Signal {
    /// SIGINT
    Int,
    /// SIGHUP
    Hup,
    /// SIGTERM
    Term,
    /// SIGKILL
    Kill,
    /// SIGSTOP
    Stop,
    /// SIGCONT
    Cont,
}

/// How long a process may take to go by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grace {
    /// From the end of its stdin to SIGTERM.
    pub eof: Duration,
    /// From SIGTERM to SIGKILL.
    pub term: Duration,
}

/// Two seconds after the end of stdin, one after SIGTERM.
impl Default for Grace {
    fn default() -> Self {
        Self { eof: Duration::from_secs(2), term: Duration::from_secs(1) }
    }
}

/// What made a process end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// It had exited before it was asked to: a crash, or its own decision.
    AlreadyExited,
    /// It went when its stdin ended, within the grace.
    Eof,
    /// It went within the grace after SIGTERM.
    Term,
    /// It had to be killed.
    Kill,
}

/// The end of a process and its descendants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    /// How the process itself ended.
    pub status: ExitStatus,
    /// What it took.
    pub step: Step,
    /// How many descendants were still there and had to be killed.
    pub swept: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_reads_as_a_sentence_part() {
        let shown = |status: ExitStatus| status.to_string();
        assert_eq!(shown(ExitStatus::Code(3)), "exit status 3");
        assert_eq!(shown(ExitStatus::Signal(9, false)), "signal 9 (SIGKILL)");
        assert_eq!(shown(ExitStatus::Signal(11, true)), "signal 11 (SIGSEGV), core dumped");
        assert_eq!(shown(ExitStatus::Signal(40, false)), "signal 40");
    }
}
