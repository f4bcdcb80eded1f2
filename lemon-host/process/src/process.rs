//! A started process: its three pipes and its clock.

use std::time::Instant;

use tokio::net::unix::pipe;

use crate::Control;

/// A started process. Take the pipes out of it; what it does else goes through [`Control`].
///
/// Dropping it closes the pipes that were not taken. Only when the last `Control` is gone too
/// is the process killed with all its descendants.
#[derive(Debug)]
pub struct Process {
    /// What the process reads. Dropping it is the end of file.
    pub stdin: Option<pipe::Sender>,
    /// What the process writes as its answer.
    pub stdout: Option<pipe::Receiver>,
    /// What the process writes as its log. It has to be [drained](crate::stderr::drain).
    pub stderr: Option<pipe::Receiver>,
    pub(crate) started: Instant,
    pub(crate) control: Control,
}

impl Process {
    /// The process's number, which is also that of its group and session.
    pub fn pid(&self) -> u32 {
        self.control.pid()
    }

    /// When it was started.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// The handle by which it is watched and ended.
    pub fn control(&self) -> Control {
        self.control.clone()
    }
}
