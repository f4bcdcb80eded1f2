//! Standard input and output, taken away from everybody else.
//!
//! The real ones move to private descriptors that no child process inherits. In their place stand `/dev/null` and
//! stderr, so that a stray `println!` or a child's output ends up in the plugin's log and not between two messages.

mod host;
mod watch;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::FileType;
use tokio::io::{AsyncRead, AsyncWrite};

pub(crate) use watch::{Signals, Watch};

/// The real standard input and output.
pub(crate) struct Wire {
    pub(crate) input: Box<dyn AsyncRead + Send + Unpin>,
    pub(crate) output: Box<dyn AsyncWrite + Send + Unpin>,
    /// The input once more, to notice its end while nobody reads.
    pub(crate) input_end: OwnedFd,
}

/// Takes them over, in the context of a runtime.
pub(crate) fn take() -> io::Result<Wire> {
    let input = private(rustix::stdio::stdin())?;
    let output = private(rustix::stdio::stdout())?;
    let null = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    // Where there is no stderr, what is printed has nowhere to go.
    if rustix::stdio::dup2_stdout(rustix::stdio::stderr()).is_err() {
        rustix::stdio::dup2_stdout(&null)?;
    }
    Ok(Wire { input_end: private(input.as_fd())?, input: reader(input)?, output: writer(output)? })
}

/// Another descriptor of the same file, above the standard ones and closed in children.
fn private(fd: impl AsFd) -> io::Result<OwnedFd> {
    Ok(rustix::io::fcntl_dupfd_cloexec(fd, 3)?)
}

fn reader(fd: OwnedFd) -> io::Result<Box<dyn AsyncRead + Send + Unpin>> {
    Ok(match kind(&fd)? {
        FileType::Fifo => Box::new(tokio::net::unix::pipe::Receiver::from_owned_fd(own_description(fd, false))?),
        FileType::Socket => Box::new(socket(fd)?),
        _ => Box::new(tokio::fs::File::from_std(File::from(fd))),
    })
}

fn writer(fd: OwnedFd) -> io::Result<Box<dyn AsyncWrite + Send + Unpin>> {
    Ok(match kind(&fd)? {
        FileType::Fifo => Box::new(tokio::net::unix::pipe::Sender::from_owned_fd(own_description(fd, true))?),
        FileType::Socket => Box::new(socket(fd)?),
        _ => Box::new(tokio::fs::File::from_std(File::from(fd))),
    })
}

fn kind(fd: &OwnedFd) -> io::Result<FileType> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode))
}

/// Node starts its children with sockets for their standard streams.
fn socket(fd: OwnedFd) -> io::Result<tokio::net::UnixStream> {
    let socket = std::os::unix::net::UnixStream::from(fd);
    socket.set_nonblocking(true)?;
    tokio::net::UnixStream::from_std(socket)
}

/// The same pipe, opened anew where the system lets us: to read without blocking is a property of what was opened, and
/// others, such as a stderr that is the same pipe, must not be surprised by it.
#[cfg(target_os = "linux")]
fn own_description(fd: OwnedFd, write: bool) -> OwnedFd {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::OpenOptionsExt;

    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    match File::options().read(!write).write(write).custom_flags(flags).open(path) {
        Ok(file) => file.into(),
        Err(_) => fd,
    }
}

#[cfg(not(target_os = "linux"))]
fn own_description(fd: OwnedFd, _write: bool) -> OwnedFd {
    fd
}
