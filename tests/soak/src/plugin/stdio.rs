//! The real streams, without the buffers of the standard library: what is written is what leaves the process.

use std::io::{self, Read};
use std::sync::{Mutex, PoisonError};

/// What the host writes, line by line.
#[derive(Default)]
pub(super) struct Lines {
    rest: Vec<u8>,
}

impl Lines {
    /// Waits for lines; none at the end of the input.
    pub(super) fn read(&mut self) -> io::Result<Option<Vec<Vec<u8>>>> {
        let mut buffer = [0; 64 * 1024];
        let read = io::stdin().lock().read(&mut buffer)?;
        if read == 0 {
            return Ok(None);
        }
        self.rest.extend_from_slice(&buffer[..read]);
        let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else { return Ok(Some(Vec::new())) };
        let rest = self.rest.split_off(end + 1);
        let lines = std::mem::replace(&mut self.rest, rest);
        Ok(Some(lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect()))
    }
}

/// Lines that wait to be written, so that many go out at once.
#[derive(Default)]
pub(super) struct Stdout(Mutex<Vec<u8>>);

impl Stdout {
    /// Adds a line.
    pub(super) fn add(&self, line: impl AsRef<[u8]>) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.extend_from_slice(line.as_ref());
        waiting.push(b'\n');
    }

    /// Writes all lines.
    pub(super) fn flush(&self) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        write_all(&waiting);
        waiting.clear();
    }

    /// Writes all lines, and then something that need not be one.
    pub(super) fn raw(&self, bytes: &[u8]) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.extend_from_slice(bytes);
        write_all(&waiting);
        waiting.clear();
    }
}

fn write_all(mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match nix::unistd::write(io::stdout(), bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(nix::Error::EINTR) => {}
            // The host reads no more: what becomes of it is seen by the end of the input.
            Err(_) => return,
        }
    }
}

/// Closes a stream by its number, for good.
pub(super) fn close(stream: std::os::fd::RawFd) {
    // It was open.
    let _ = nix::unistd::close(stream);
}

/// Reads a byte a second, and does nothing else.
pub(super) fn read_slowly() -> ! {
    loop {
        // At the end of the input there is nothing to do either.
        let _ = nix::unistd::read(io::stdin(), &mut [0]);
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
}

/// Does nothing more.
pub(super) fn wait_for_ever() -> ! {
    loop {
        std::thread::park();
    }
}
