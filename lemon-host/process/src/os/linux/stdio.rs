//! The pipes of a process, and the host's line to the guard.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use nix::fcntl::OFlag;

/// A pipe: its reading and its writing end, both closed when a program is executed.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(nix::unistd::pipe2(OFlag::O_CLOEXEC)?)
}

/// Writes all of `bytes` at once or fails, without SIGPIPE whatever the program does about it.
pub(crate) fn send(socket: &UnixStream, bytes: &[u8]) -> io::Result<()> {
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: the pointer and the length are those of a living slice.
    let sent = unsafe { libc::send(socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) };
    match usize::try_from(sent) {
        Err(_) => Err(io::Error::last_os_error()),
        Ok(sent) if sent < bytes.len() => Err(io::ErrorKind::WriteZero.into()),
        Ok(_) => Ok(()),
    }
}
