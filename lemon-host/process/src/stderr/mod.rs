//! What a process writes on stderr: always read, kept in part, logged on demand.
//!
//! A process whose stderr nobody reads stops at 64 KiB, so [`drain`] reads to the end whatever
//! happens. Each line passes the host's filter before it is kept anywhere, so that a secret reaches
//! neither the tail in memory nor the log file.

mod drain;
mod lines;
mod log;
mod tail;
mod timestamp;

pub use drain::{Filter, StderrSink, drain};
pub use log::{LogError, LogFile};
pub use tail::StderrTail;
