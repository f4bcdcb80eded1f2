//! Notices that the plugin has to end, on a thread of its own: the end of its input, SIGTERM, the host's death.
//!
//! The thread tells the connection, which lets handlers end. If the process is still there when it should be gone, as
//! when a handler blocks the only thread of the runtime, it exits from here. The host's death is watched as well as
//! the input's end, since someone else may hold the pipe open (LPP-END-04, LPP-INIT-06).
//!
//! Once started the thread is never called off. When the plugin has been served, its program may still hang, as in a
//! runtime that waits for a blocked thread.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use lemon_protocol::HostProcess;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio_util::sync::CancellationToken;

use super::host::{Ancestors, HostDeath};

/// How long after the end of its input or of the host the process is gone, whatever its handlers do.
const LAST_MOMENT: Duration = Duration::from_millis(1_900);
/// The same after SIGTERM, which a host follows up with SIGKILL after a second (LPP-END-05).
const TERMINATED: Duration = Duration::from_millis(900);

/// What to ask of the input, so that only its end wakes the thread, and not each message. A pipe tells of its end
/// unasked; a socket that was shut down in one direction only does not.
#[cfg(target_os = "linux")]
const INPUT_END: PollFlags = PollFlags::RDHUP;
#[cfg(not(target_os = "linux"))]
const INPUT_END: PollFlags = PollFlags::empty();

/// What the thread says.
#[derive(Clone, Default)]
pub(crate) struct Signals {
    /// The plugin comes to its end, by a signal or the host's death. The end of the input is noticed by who reads it.
    pub(crate) ending: CancellationToken,
    /// SIGTERM came: there is less time.
    pub(crate) hurry: CancellationToken,
}

/// Tells the thread what only the connection knows.
pub(crate) struct Watch {
    host: mpsc::SyncSender<HostDeath>,
    ends: Arc<AtomicBool>,
    wake: UnixStream,
    /// As they were at the start, when the host was most likely still alive.
    ancestors: Ancestors,
}

impl Watch {
    /// Starts the thread.
    pub(crate) fn start(input_end: OwnedFd) -> io::Result<(Self, Signals)> {
        let (signals, ends) = (Signals::default(), Arc::<AtomicBool>::default());
        let (host, told) = mpsc::sync_channel(1);
        let (wake, woken) = UnixStream::pair()?;
        let (terminate, terminated) = UnixStream::pair()?;
        signal_hook::low_level::pipe::register(signal_hook::consts::SIGTERM, terminate)?;
        let thread = Thread {
            input_end,
            terminated,
            _wake: wake.try_clone()?,
            woken,
            told,
            ends: ends.clone(),
            host: None,
            signals: signals.clone(),
        };
        std::thread::Builder::new().name("lemon-watch".to_owned()).stack_size(128 * 1024).spawn(|| thread.run())?;
        Ok((Self { host, ends, wake, ancestors: Ancestors::look() }, signals))
    }

    /// Takes the host's process from its offer. It is looked up here and not on the thread: until its `initialize` is
    /// answered, it most likely lives. There is one host for the life of the process: what comes after the first
    /// changes nothing.
    pub(crate) fn host_is(&self, host: &HostProcess) {
        if let Some(death) = HostDeath::of(host, &self.ancestors)
            && self.host.try_send(death).is_ok()
        {
            let _ = (&self.wake).write(&[0]);
        }
    }

    /// The connection comes to its end, for whatever reason.
    pub(crate) fn ends(&self) {
        self.ends.store(true, Ordering::Release);
        let _ = (&self.wake).write(&[0]);
    }
}

struct Thread {
    input_end: OwnedFd,
    terminated: UnixStream,
    /// Keeps the other end open.
    _wake: UnixStream,
    woken: UnixStream,
    told: mpsc::Receiver<HostDeath>,
    ends: Arc<AtomicBool>,
    host: Option<HostDeath>,
    signals: Signals,
}

impl Thread {
    fn run(mut self) {
        // None where the system does not let us watch.
        if let Some(grace) = self.watch() {
            self.wait(grace);
            exit();
        }
    }

    /// Waits until the plugin has to end, and says how long it may take.
    fn watch(&mut self) -> Option<Duration> {
        loop {
            let mut fds = vec![
                PollFd::new(&self.input_end, INPUT_END),
                PollFd::new(&self.terminated, PollFlags::IN),
                PollFd::new(&self.woken, PollFlags::IN),
            ];
            let pause = self.host.as_ref().and_then(|host| host.watch(&mut fds));
            let happened: Vec<bool> = match poll(&mut fds, pause.as_ref()) {
                Ok(_) => fds.iter().map(|fd| !fd.revents().is_empty()).collect(),
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => return None,
            };
            // That the input has ended as well makes no longer time of it.
            if happened[1] {
                self.signals.hurry.cancel();
                self.signals.ending.cancel();
                return Some(TERMINATED);
            }
            if happened[0] {
                return Some(LAST_MOMENT);
            }
            if happened[2] {
                let _ = self.woken.read(&mut [0; 8]);
                if self.ends.load(Ordering::Acquire) {
                    return Some(LAST_MOMENT);
                }
                self.host = self.host.take().or_else(|| self.told.try_recv().ok());
            } else if self.host.as_ref().is_some_and(HostDeath::happened) {
                self.signals.ending.cancel();
                return Some(LAST_MOMENT);
            }
        }
    }

    /// Lets the time pass in which the plugin should come to its end by itself; a SIGTERM makes it shorter.
    fn wait(&self, grace: Duration) {
        let mut end = Instant::now() + grace;
        let mut hurry = self.signals.hurry.is_cancelled();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let pause = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
            let mut fds = [PollFd::new(&self.terminated, PollFlags::IN)];
            // Nothing is waited for once it came.
            if matches!(poll(&mut fds[usize::from(hurry)..], Some(&pause)), Ok(1..)) {
                hurry = true;
                self.signals.hurry.cancel();
                end = end.min(Instant::now() + TERMINATED);
            }
        }
    }
}

/// Only reached when something holds up the end, which the host asked for: it is no failure. Nothing else is run on the
/// way, neither what was registered for the exit nor the writing of what is still buffered: that may hang as well.
fn exit() {
    signal_hook::low_level::exit(0);
}
