//! Limits of another process, by prlimit.

use std::io;

use super::check;
use crate::ResourceLimits;

/// Limits process `pid`, a child that was just started. One that has exited already needs none.
pub(crate) fn set_limits(pid: u32, limits: &ResourceLimits) -> io::Result<()> {
    let cpu = limits.cpu_seconds;
    let wanted = [
        (libc::RLIMIT_CORE, Some((0, 0))),
        (libc::RLIMIT_AS, limits.address_space.map(|n| (n, n))),
        (libc::RLIMIT_NOFILE, limits.open_files.map(|n| (n, n))),
        (libc::RLIMIT_NPROC, limits.processes.map(|n| (n, n))),
        // The soft limit's SIGXCPU says what happened; the hard one's SIGKILL does not.
        (libc::RLIMIT_CPU, cpu.map(|n| (n, n.saturating_add(1)))),
    ];
    for (resource, limit) in wanted {
        let Some((soft, hard)) = limit else { continue };
        let pid = pid as libc::pid_t;
        let mut now = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: a null pointer for the new limit only asks, and `now` lives through the call.
        let asked = unsafe { libc::prlimit64(pid, resource, std::ptr::null(), &mut now) };
        let new = libc::rlimit64 { rlim_cur: soft.min(now.rlim_max), rlim_max: hard.min(now.rlim_max) };
        let set = check(asked).and_then(|_| {
            // SAFETY: `new` lives through the call, and the old limit is not asked for.
            check(unsafe { libc::prlimit64(pid, resource, &new, std::ptr::null_mut()) })
        });
        match set {
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Ok(()),
            set => set?,
        };
    }
    Ok(())
}
