//! Notices that the plugin has to end, on a thread of its own: the end of its input, SIGTERM, the host's death.
//!
//! The thread tells the connection, which lets handlers end. If the process is still there when it should be gone, as
//! when a handler blocks the only thread of the runtime, it exits from here. The host's death is watched as well as
//! the input's end, since someone else may hold the pipe open (LPP-END-04, LPP-INIT-06).

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use lemon_protocol::HostProcess;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio_util::sync::CancellationToken;

use super::host::{Ancestors, HostDeath};

/// How long after the end of its input or of the host the process is gone, whatever its handlers do.
const LAST_MOMENT: Duration = Duration::from_millis(1_900);
/// The same after SIGTERM.
const TERMINATED: Duration = Duration::from_millis(900);

/// The thread. It ends when this is dropped.
pub(crate) struct Watch {
    ending: CancellationToken,
    tell: HostTeller,
    signal: signal_hook::SigId,
}

/// Tells the thread which process the host is.
pub(crate) struct HostTeller {
    host: mpsc::SyncSender<HostDeath>,
    wake: UnixStream,
    /// As they were at the start, when the host was most likely still alive.
    ancestors: Ancestors,
}

impl Watch {
    pub(crate) fn start(input_end: OwnedFd) -> io::Result<Self> {
        let ending = CancellationToken::new();
        let (host, told) = mpsc::sync_channel(1);
        let (wake, woken) = UnixStream::pair()?;
        let (terminate, terminated) = UnixStream::pair()?;
        let signal = signal_hook::low_level::pipe::register(signal_hook::consts::SIGTERM, terminate)?;
        let thread = Thread { input_end, terminated, woken, told, host: None, ending: ending.clone() };
        std::thread::Builder::new().name("lemon-watch".to_owned()).stack_size(128 * 1024).spawn(|| thread.run())?;
        Ok(Self { ending, tell: HostTeller { host, wake, ancestors: Ancestors::look() }, signal })
    }

    /// Cancelled by a signal or the host's death; the end of the input is noticed by who reads it.
    pub(crate) fn ending(&self) -> CancellationToken {
        self.ending.clone()
    }

    /// Takes the host's process from its offer.
    pub(crate) fn host_teller(&self) -> io::Result<HostTeller> {
        let HostTeller { host, wake, ancestors } = &self.tell;
        Ok(HostTeller { host: host.clone(), wake: wake.try_clone()?, ancestors: ancestors.clone() })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        signal_hook::low_level::unregister(self.signal);
        // The thread may have ended already, which is what this asks for.
        let _ = self.tell.wake.shutdown(std::net::Shutdown::Both);
    }
}

impl HostTeller {
    /// Looks the host up here and not on the thread: until its `initialize` is answered, it most likely lives. There is
    /// one host for the life of the process: what comes after the first changes nothing.
    pub(crate) fn tell(&self, host: &HostProcess) {
        if let Some(death) = HostDeath::of(host, &self.ancestors)
            && self.host.try_send(death).is_ok()
        {
            let _ = (&self.wake).write(&[0]);
        }
    }
}

struct Thread {
    input_end: OwnedFd,
    terminated: UnixStream,
    woken: UnixStream,
    told: mpsc::Receiver<HostDeath>,
    host: Option<HostDeath>,
    ending: CancellationToken,
}

impl Thread {
    fn run(mut self) {
        if let Some(grace) = self.watch()
            && !self.over_within(grace)
        {
            exit();
        }
    }

    /// Waits until the plugin has to end, and says how long it may take; none when nobody watches any more.
    fn watch(&mut self) -> Option<Duration> {
        loop {
            let mut fds = vec![
                // Asks for nothing, so that only the end of the input wakes the thread, and not each message.
                PollFd::new(&self.input_end, PollFlags::empty()),
                PollFd::new(&self.terminated, PollFlags::IN),
                PollFd::new(&self.woken, PollFlags::IN),
            ];
            let pause = self.host.as_ref().and_then(|host| host.watch(&mut fds));
            let happened: Vec<bool> = match poll(&mut fds, pause.as_ref()) {
                Ok(_) => fds.iter().map(|fd| !fd.revents().is_empty()).collect(),
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => return None,
            };
            if happened[0] {
                return Some(LAST_MOMENT);
            }
            if happened[1] {
                self.ending.cancel();
                return Some(TERMINATED);
            }
            if happened[2] {
                if !matches!(self.woken.read(&mut [0; 8]), Ok(1..)) {
                    return None;
                }
                self.host = self.host.take().or_else(|| self.told.try_recv().ok());
            } else if self.host.as_ref().is_some_and(HostDeath::happened) {
                self.ending.cancel();
                return Some(LAST_MOMENT);
            }
        }
    }

    /// Whether the plugin came to its end by itself in that time.
    fn over_within(&mut self, grace: Duration) -> bool {
        let end = Instant::now() + grace;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let pause = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
            let mut fds = [PollFd::new(&self.woken, PollFlags::IN)];
            if matches!(poll(&mut fds, Some(&pause)), Ok(1..)) && !matches!(self.woken.read(&mut [0; 8]), Ok(1..)) {
                return true;
            }
        }
    }
}

/// Only reached when handlers hold up the end, which the host asked for: it is no failure.
#[expect(clippy::exit, reason = "the process has to be gone, and its main thread is stuck")]
fn exit() {
    std::process::exit(0);
}
