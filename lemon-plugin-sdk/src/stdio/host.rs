//! The host's death, seen by its process and not by the pipe.
//!
//! Linux gives a descriptor that tells of it; elsewhere the process is looked for once a second.

use lemon_protocol::HostProcess;
use rustix::event::{PollFd, Timespec};
use rustix::process::Pid;

#[cfg(target_os = "linux")]
pub(super) struct HostDeath(std::os::fd::OwnedFd);

#[cfg(target_os = "linux")]
impl HostDeath {
    /// None if the host can't be seen from here, as when it lives in another container.
    pub(super) fn of(host: &HostProcess) -> Option<Self> {
        let pid = Pid::from_raw(i32::try_from(host.pid).ok()?)?;
        let process = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()?;
        // Another process has that id if the host died meanwhile, or if the id is one of another container.
        (host.start_time.is_none() || start_time(host.pid) == host.start_time).then_some(Self(process))
    }

    /// Adds what to wait for, and gives how long to wait at most.
    pub(super) fn watch<'a>(&'a self, fds: &mut Vec<PollFd<'a>>) -> Option<Timespec> {
        fds.push(PollFd::new(&self.0, rustix::event::PollFlags::IN));
        None
    }

    /// Whether the host is dead.
    pub(super) fn happened(&self) -> bool {
        let mut fds = [PollFd::new(&self.0, rustix::event::PollFlags::IN)];
        matches!(rustix::event::poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(1..))
    }
}

/// Field 22 of `/proc/PID/stat`, counted from behind the program's name, which may have spaces in it.
#[cfg(target_os = "linux")]
fn start_time(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(not(target_os = "linux"))]
pub(super) struct HostDeath(Pid);

#[cfg(not(target_os = "linux"))]
impl HostDeath {
    pub(super) fn of(host: &HostProcess) -> Option<Self> {
        let death = Self(Pid::from_raw(i32::try_from(host.pid).ok()?)?);
        (!death.happened()).then_some(death)
    }

    pub(super) fn watch<'a>(&'a self, _fds: &mut Vec<PollFd<'a>>) -> Option<Timespec> {
        Some(Timespec { tv_sec: 1, tv_nsec: 0 })
    }

    pub(super) fn happened(&self) -> bool {
        rustix::process::test_kill_process(self.0) == Err(rustix::io::Errno::SRCH)
    }
}
