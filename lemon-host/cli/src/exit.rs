//! The exit codes, which `lemon --help` documents.

use std::process::ExitCode;

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    Done = 0,
    /// The tool answered with an error.
    ToolError = 1,
    /// The command line, the arguments or the config are wrong.
    Usage = 2,
    NoSuchTool = 3,
    /// A plugin did not start, crashed, was not ready or broke the protocol.
    Plugin = 4,
    TimedOut = 5,
    /// The program itself failed.
    Internal = 6,
    Hangup = 128 + 1,
    Interrupt = 128 + 2,
    Terminate = 128 + 15,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
