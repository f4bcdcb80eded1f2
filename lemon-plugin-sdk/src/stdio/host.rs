//! The host's death, seen by its process and not by the pipe.
//!
//! Linux gives a descriptor that tells of it; elsewhere, and where a sandbox forbids that, the process is looked for once
//! a second. A host that is not there may be dead, or live where its processes can't be seen, as with a plugin in a
//! container or behind ssh: it counts as dead only if it was seen before, among the processes that started this one.

use lemon_protocol::HostProcess;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::Pid;

/// What to look at.
pub(super) enum HostDeath {
    /// A descriptor that can be read once the process is dead.
    #[cfg(target_os = "linux")]
    Told(std::os::fd::OwnedFd),
    /// The process is looked for.
    Probed(Pid),
    /// It was dead already when its offer was read.
    Happened,
}

/// The processes that started this one, each with its start time. They are in the same namespace as this one.
#[derive(Clone, Default)]
pub(super) struct Ancestors(Vec<(u32, u64)>);

impl HostDeath {
    /// None if the host can't be seen from here, as when it lives in another container.
    pub(super) fn of(host: &HostProcess, ancestors: &Ancestors) -> Option<Self> {
        let pid = Pid::from_raw(i32::try_from(host.pid).ok()?)?;
        let gone = || ancestors.have(host).then_some(Self::Happened);
        let death = match Self::open(pid) {
            Ok(death) => death,
            Err(Errno::SRCH) => return gone(),
            Err(_) => Self::Probed(pid),
        };
        if death.happened() {
            return gone();
        }
        // Another process has that id if the host died meanwhile, or if the id is one of another container.
        if host.start_time.is_some() && start_time(host.pid) != host.start_time {
            return gone();
        }
        Some(death)
    }

    #[cfg(target_os = "linux")]
    fn open(pid: Pid) -> Result<Self, Errno> {
        rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).map(Self::Told)
    }

    #[cfg(not(target_os = "linux"))]
    fn open(pid: Pid) -> Result<Self, Errno> {
        Ok(Self::Probed(pid))
    }

    /// Adds what to wait for, and gives how long to wait at most.
    pub(super) fn watch<'a>(&'a self, fds: &mut Vec<PollFd<'a>>) -> Option<Timespec> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Told(process) => {
                fds.push(PollFd::new(process, PollFlags::IN));
                None
            }
            Self::Probed(_) => Some(Timespec { tv_sec: 1, tv_nsec: 0 }),
            Self::Happened => Some(Timespec { tv_sec: 0, tv_nsec: 0 }),
        }
    }

    /// Whether the host is dead.
    pub(super) fn happened(&self) -> bool {
        match self {
            #[cfg(target_os = "linux")]
            Self::Told(process) => {
                let mut fds = [PollFd::new(process, PollFlags::IN)];
                matches!(rustix::event::poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(1..))
            }
            Self::Probed(pid) => rustix::process::test_kill_process(*pid) == Err(Errno::SRCH),
            Self::Happened => true,
        }
    }
}

impl Ancestors {
    /// More than this stand between a host and its plugin only where something is wrong.
    const MOST: usize = 64;

    /// Those of now.
    pub(super) fn look() -> Self {
        let mut found = Vec::new();
        let mut pid = parent(std::process::id());
        while let Some((above, start)) = pid.and_then(|pid| Some((pid, start_time(pid)?))) {
            found.push((above, start));
            if found.len() == Self::MOST {
                break;
            }
            pid = parent(above);
        }
        Self(found)
    }

    fn have(&self, host: &HostProcess) -> bool {
        host.start_time.is_some_and(|start| self.0.contains(&(host.pid, start)))
    }
}

/// Field 22 of `/proc/PID/stat`: no other process with that id has the same.
fn start_time(pid: u32) -> Option<u64> {
    stat(pid, 22)
}

/// Field 4; zero, which no process is, for one that was started from another namespace.
fn parent(pid: u32) -> Option<u32> {
    u32::try_from(stat(pid, 4)?).ok()
}

/// A field of `/proc/PID/stat`, counted from behind the program's name, the second, which may have spaces in it.
#[cfg(target_os = "linux")]
fn stat(pid: u32, field: usize) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(field - 3)?.parse().ok()
}

/// There is no such file elsewhere.
#[cfg(not(target_os = "linux"))]
fn stat(_pid: u32, _field: usize) -> Option<u64> {
    None
}
