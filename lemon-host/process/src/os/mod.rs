//! The seam to the operating system, and the only place with unsafe code.
//!
//! Everything above it is the same on every system. Linux is what there is; what another
//! system has to provide are the functions and types re-exported below. On macOS:
//!
//! - `spawn`: posix_spawn has POSIX_SPAWN_SETSID, `addchdir_np` and POSIX_SPAWN_CLOEXEC_DEFAULT (in
//!   place of `addclosefrom_np`). There is no prlimit: limits need a helper that sets its own
//!   and then executes the program.
//! - `spawn_tied`: there is no parent-death signal. Without the guard nothing protects, which
//!   [`Protection`](crate::Protection) would have to say.
//! - `Handle`: kqueue's EVFILT_PROC tells of an exit (NOTE_EXIT), and `waitid` with WNOWAIT of the
//!   status. Signals go by number, safe for the unreaped leader; for others the start time has to be
//!   compared right before, since nothing like pidfd_send_signal closes the gap.
//! - `stat`, `pids`, `carries`: proc_listpids, PROC_PIDTBSDINFO (which has the start time in
//!   microseconds) and sysctl KERN_PROCARGS2 for the environment, which the system hides for its
//!   own protected programs.
//! - `own_program`: `_NSGetExecutablePath`, which a replaced program makes stale.

#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "posix_spawn, pidfds and prlimit have no safe interface that does what is needed here")]
mod linux;
#[cfg(target_os = "linux")]
pub(crate) use linux::{
    Carried, Handle, Stat, carries, ignore_signals, kill_group, name_process, open_append, open_nofollow, own_program,
    pids, pipe, send, set_limits, spawn, spawn_tied, start_time, stat, wait_for,
};

#[cfg(not(target_os = "linux"))]
compile_error!("lemon-process runs on Linux; src/os/mod.rs says what another system needs");

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// A program to start, with everything decided. In a session of its own, without a controlling
/// terminal, all signals at their defaults and none blocked, no file but `stdio`.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) program: PathBuf,
    /// With the program's own name first.
    pub(crate) argv: Vec<OsString>,
    /// The whole environment, each name once.
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) cwd: PathBuf,
    /// stdin, stdout and stderr.
    pub(crate) stdio: [OwnedFd; 3],
}

impl Launch {
    pub(crate) fn try_clone(&self) -> std::io::Result<Self> {
        let [stdin, stdout, stderr] = &self.stdio;
        Ok(Self {
            program: self.program.clone(),
            argv: self.argv.clone(),
            env: self.env.clone(),
            cwd: self.cwd.clone(),
            stdio: [stdin.try_clone()?, stdout.try_clone()?, stderr.try_clone()?],
        })
    }
}
