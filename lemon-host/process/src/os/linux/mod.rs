//! Linux 5.4 or later: posix_spawn, pidfds, prlimit and /proc.

mod files;
mod handle;
mod limits;
mod procfs;
mod signals;
mod spawn;
mod stdio;
mod tied;

pub(crate) use files::{open_append, open_nofollow};
pub(crate) use handle::{Handle, wait_for};
pub(crate) use limits::set_limits;
pub(crate) use procfs::{Carried, Stat, carries, name_process, own_program, pids, start_time, stat};
pub(crate) use signals::{ignore_signals, kill_group};
pub(crate) use spawn::spawn;
pub(crate) use stdio::{pipe, send};
pub(crate) use tied::spawn_tied;

use std::io;

/// The error of a libc call that returns -1 and sets errno.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}
