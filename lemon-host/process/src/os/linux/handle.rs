//! A process by its pidfd: a handle that means this process and never a later one.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::check;
use super::signals::number;
use crate::{ExitStatus, Signal};

/// A process, dead or alive. It is readable when the process has exited.
#[derive(Debug)]
pub(crate) struct Handle(OwnedFd);

impl Handle {
    /// The process that has this number now.
    pub(crate) fn open(pid: u32) -> io::Result<Self> {
        // SAFETY: the call takes two integers.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0) };
        let fd = RawFd::try_from(fd).unwrap_or(-1);
        check(fd)?;
        // SAFETY: the kernel has just made this descriptor, so nothing else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Lets the runtime watch for the exit. Must be called within one that has io enabled.
    pub(crate) fn watched(self) -> io::Result<AsyncFd<Self>> {
        // SAFETY: a `Handle` owns one descriptor, never exchanges it, and closes it when it is dropped.
        let watched = unsafe { AsyncFd::register_with_interest(self, Interest::READABLE) };
        Ok(watched?)
    }

    /// Signals the process, if it is still there.
    pub(crate) fn signal(&self, signal: Signal) {
        let (fd, number) = (self.0.as_raw_fd(), number(signal));
        let no_info = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: the descriptor is open, and no siginfo is allowed. An error means that the process
        // has gone or belongs to another user; in both cases there is nothing more to do.
        unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, number, no_info, 0) };
    }

    /// Waits until the process has exited; `None` waits for ever. False if the time is up.
    pub(crate) fn wait(&self, at_most: Option<Duration>) -> bool {
        let timeout = match at_most {
            None => PollTimeout::NONE,
            Some(time) => PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX),
        };
        loop {
            let mut fds = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
            match poll(&mut fds, timeout) {
                Err(nix::errno::Errno::EINTR) => {}
                result => return result.is_ok_and(|ready| ready > 0),
            }
        }
    }

    /// How this child ended, if it has. It stays a zombie, so its number stays taken.
    pub(crate) fn status(&self) -> Option<ExitStatus> {
        match self.waitid(libc::WEXITED | libc::WNOHANG | libc::WNOWAIT) {
            Ok(status) => status,
            // Not our child, or no longer: the program reaps all children, or ignores SIGCHLD.
            Err(_) => self.wait(Some(Duration::ZERO)).then_some(ExitStatus::Unknown),
        }
    }

    /// Reaps this child if it has exited. Its number may be another process's from then on.
    pub(crate) fn reap(&self) {
        let _ = self.waitid(libc::WEXITED | libc::WNOHANG);
    }

    fn waitid(&self, options: libc::c_int) -> io::Result<Option<ExitStatus>> {
        let id = self.0.as_raw_fd() as libc::id_t;
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        // SAFETY: the descriptor is open and `info` is large enough for what is written to it.
        check(unsafe { libc::waitid(libc::P_PIDFD, id, info.as_mut_ptr(), options) })?;
        // SAFETY: all zeros are a valid siginfo_t, and the call has left it so or filled it.
        let info = unsafe { info.assume_init() };
        // SAFETY: waitid sets these two fields, or leaves the zeros if nothing has exited.
        let (pid, status) = unsafe { (info.si_pid(), info.si_status()) };
        Ok((pid != 0).then_some(match info.si_code {
            libc::CLD_EXITED => ExitStatus::Code(status),
            code => ExitStatus::Signal(status, code == libc::CLD_DUMPED),
        }))
    }
}

/// Waits for a killed child without a handle, and reaps it.
pub(crate) fn wait_for(pid: u32) {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    // SAFETY: `info` is large enough for what is written to it, and not read.
    unsafe { libc::waitid(libc::P_PID, pid, info.as_mut_ptr(), libc::WEXITED) };
}

impl AsRawFd for Handle {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl AsFd for Handle {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}
