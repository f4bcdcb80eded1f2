//! What to start: program, arguments, folder, environment and limits, all explicit.

use std::ffi::OsString;
use std::path::PathBuf;

/// Everything that the start of one process depends on. Nothing comes from the host but this.
#[derive(Debug, Clone)]
pub struct ProcessSpec {
    /// A label for messages and logs; it reaches the process in no way.
    pub name: String,
    /// The program, absolute and already resolved (see [`lookup`](crate::lookup)): no `PATH` is
    /// searched and no shell is involved.
    pub program: PathBuf,
    /// The arguments after the program's own name, which is `program` itself.
    pub args: Vec<OsString>,
    /// The folder that the process starts in.
    pub cwd: PathBuf,
    /// The whole environment. The spawner adds [`Cookie::ENV`](crate::Cookie::ENV) to it; of a key
    /// that comes twice, the last one counts.
    pub env: Vec<(OsString, OsString)>,
    /// What the process may use.
    pub limits: ResourceLimits,
}

/// Limits of the kernel, set right after the start; descendants inherit them.
///
/// `None` leaves the host's own limit. A limit is never raised above what the host may
/// raise it to: it is lowered to that silently. Core dumps are always off.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourceLimits {
    /// Bytes of address space *of each process*. Runtimes that reserve a lot without using
    /// it (Node, Go, Java) don't start under a tight one.
    pub address_space: Option<u64>,
    /// Open files of each process.
    pub open_files: Option<u64>,
    /// Processes and threads *of the whole user*, not of this process: the kernel counts no
    /// other way. It binds no process of root.
    pub processes: Option<u64>,
    /// Seconds of processor time of each process: SIGXCPU there, SIGKILL one second later.
    pub cpu_seconds: Option<u64>,
}
