//! Signals to groups, and the ones that this process ignores.

use nix::errno::Errno;
use nix::sys::signal::{self, SigHandler, killpg};
use nix::unistd::Pid;

use crate::Signal;

/// Signals every process of a group. The caller knows that the group's number is still its own,
/// since it has not reaped the leader.
pub(crate) fn kill_group(leader: u32, signal: Signal) {
    let Ok(group) = i32::try_from(leader) else {
        return;
    };
    // 0 and 1 would mean the host's own group and everyone.
    if group > 1 {
        // No such group: all have gone. Not permitted: what is left runs as another user.
        let _: Result<(), Errno> = killpg(Pid::from_raw(group), to_nix(signal));
    }
}

fn to_nix(signal: Signal) -> signal::Signal {
    match signal {
        Signal::Int => signal::Signal::SIGINT,
        Signal::Hup => signal::Signal::SIGHUP,
        Signal::Term => signal::Signal::SIGTERM,
        Signal::Kill => signal::Signal::SIGKILL,
        Signal::Stop => signal::Signal::SIGSTOP,
        Signal::Cont => signal::Signal::SIGCONT,
    }
}

pub(super) fn number(signal: Signal) -> libc::c_int {
    to_nix(signal) as libc::c_int
}

/// Makes this process deaf to what a terminal or a tidy user sends.
pub(crate) fn ignore_signals() {
    use signal::Signal::{SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM};
    for signal in [SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM] {
        // SAFETY: to ignore a signal installs no handler.
        let _ = unsafe { signal::signal(signal, SigHandler::SigIgn) };
    }
}
