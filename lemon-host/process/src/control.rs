//! Watches one process and ends it with all its descendants.

use std::fmt;
use std::future::pending;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::unix::AsyncFd;
use tokio::sync::{Notify, SetOnce};
use tokio::task::spawn_blocking;

use crate::guard::Link;
use crate::os::{self, Handle};
use crate::sweep::{Mark, sweep};
use crate::{Ending, ExitStatus, Grace, Signal, Step};

/// How long a killed process may take to be gone. Only one that hangs in the kernel takes longer, and
/// it is not worth hanging with it.
const KILLED: Duration = Duration::from_secs(2);

/// Watches one process and ends it. Clones are the same control, and it may outlive the
/// [`Process`](crate::Process).
///
/// The process is reaped by [`end`](Self::end) or [`kill`](Self::kill) alone, after the sweep, so its
/// number means it and no other as long as a signal may be sent. When the last control is
/// dropped without either, the drop does the same at once, with SIGKILL and without a runtime.
#[derive(Clone)]
pub struct Control {
    inner: Arc<Inner>,
}

struct Inner {
    name: String,
    pid: u32,
    mark: Mark,
    handle: AsyncFd<Handle>,
    life: Mutex<Life>,
    /// Set by `kill`, for an ending that is still in its grace.
    hurry: Notify,
    ending: SetOnce<Ending>,
    guard: Option<Arc<Link>>,
}

/// What changes in a process's life, in one lock: no signal is sent while it is being reaped.
#[derive(Debug)]
struct Life {
    status: Option<ExitStatus>,
    reaped: bool,
    /// Whether somebody has begun to end it.
    ending: bool,
    /// The strongest that was done to it yet.
    step: Step,
}

impl Control {
    /// On an error the process lives on, and the caller has to end it.
    pub(crate) fn new(
        name: String,
        pid: u32,
        mark: Mark,
        handle: Handle,
        guard: Option<Arc<Link>>,
    ) -> io::Result<Self> {
        let handle = handle.watched()?;
        let life = Life { status: None, reaped: false, ending: false, step: Step::AlreadyExited };
        let inner = Inner {
            name,
            pid,
            mark,
            handle,
            life: Mutex::new(life),
            hurry: Notify::new(),
            ending: SetOnce::new(),
            guard,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The process's number, which is also that of its group and session.
    pub fn pid(&self) -> u32 {
        self.inner.pid
    }

    /// The label that its spec gave it.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Resolves when the process has exited. Its descendants may live, and hold its pipes open.
    /// Any number of callers may wait, at any time.
    pub async fn exited(&self) -> ExitStatus {
        self.inner.exited().await
    }

    /// How the process ended, if it has.
    pub fn try_exited(&self) -> Option<ExitStatus> {
        self.inner.status(&mut self.inner.life())
    }

    /// Signals the process and all of its group. Does nothing once it has been ended.
    pub fn signal_group(&self, signal: Signal) {
        self.inner.signal_group(signal);
    }

    /// Notes that the caller is about to close stdin, so that an exit from now on counts as
    /// [`Step::Eof`]. Without it, a process that goes faster than [`end`](Self::end) is called
    /// looks like one that had exited by itself.
    pub fn closing_stdin(&self) {
        self.inner.try_step(Step::Eof);
    }

    /// Ends the process and all its descendants, then reaps it.
    ///
    /// The caller has closed stdin, after [`closing_stdin`](Self::closing_stdin). The process has `grace.eof` to go by itself, then `grace.term`
    /// after SIGTERM, then it is killed. What is left of its descendants is killed once it has gone. If
    /// it had exited already, only that is done.
    ///
    /// All callers get the same ending, and the grace of the first counts. An ending that has begun goes
    /// on if its callers are cancelled. With every process that hangs in the kernel given up after two
    /// seconds it takes at most some seconds more than the grace.
    pub async fn end(&self, grace: Grace) -> Ending {
        self.begin(grace);
        *self.inner.ending.wait().await
    }

    /// Ends the process and all its descendants without any grace, also if [`end`](Self::end) is
    /// waiting at the time.
    pub async fn kill(&self) -> Ending {
        self.inner.hurry.notify_one();
        self.end(Grace { eof: Duration::ZERO, term: Duration::ZERO }).await
    }

    /// In a task of its own, so that no caller can leave it half done, nor keep others waiting by not
    /// polling it.
    fn begin(&self, grace: Grace) {
        let begun = std::mem::replace(&mut self.inner.life().ending, true);
        if !begun {
            let inner = Arc::clone(&self.inner);
            tokio::spawn(async move {
                let ending = Inner::end(&inner, grace).await;
                // Only this task sets it.
                let _ = inner.ending.set(ending);
            });
        }
    }
}

impl Inner {
    async fn end(this: &Arc<Self>, grace: Grace) -> Ending {
        let mut swept = 0;
        if this.try_step(Step::Eof) && !this.goes_within(grace.eof).await && this.try_step(Step::Term) {
            this.signal_group(Signal::Term);
            // A stopped process would not notice.
            this.signal_group(Signal::Cont);
            this.goes_within(grace.term).await;
        }
        if this.try_step(Step::Kill) {
            swept += this.sweep().await;
            let _ = tokio::time::timeout(KILLED, this.exited()).await;
        }
        swept += this.sweep().await;
        this.reap();
        let life = this.life();
        Ending { status: life.status.unwrap_or(ExitStatus::Unknown), step: life.step, swept }
    }

    /// Notes what is about to be done to the process, unless it has exited.
    fn try_step(&self, step: Step) -> bool {
        let mut life = self.life();
        if self.status(&mut life).is_some() {
            return false;
        }
        life.step = life.step.max(step);
        true
    }

    /// True if the process has exited; false if the time is up or someone wants it killed.
    async fn goes_within(&self, time: Duration) -> bool {
        tokio::select! {
            biased;
            _ = self.exited() => true,
            () = self.hurry.notified() => {
                // It is in a hurry for the next grace too.
                self.hurry.notify_one();
                false
            }
            () = tokio::time::sleep(time) => false,
        }
    }

    async fn exited(&self) -> ExitStatus {
        loop {
            if let Some(status) = self.status(&mut self.life()) {
                return status;
            }
            let Ok(mut ready) = self.handle.readable().await else {
                // The runtime is going down, and every task in it.
                return pending().await;
            };
            if self.status(&mut self.life()).is_none() {
                ready.clear_ready();
            }
        }
    }

    /// Learns how it ended, once.
    fn status(&self, life: &mut Life) -> Option<ExitStatus> {
        if life.status.is_none() && !life.reaped {
            life.status = self.handle.get_ref().status();
        }
        life.status
    }

    fn signal_group(&self, signal: Signal) {
        let mut life = self.life();
        // Of unknown status means reaped by someone else: the number may be a stranger's.
        let is_ours = !life.reaped && self.status(&mut life) != Some(ExitStatus::Unknown);
        if is_ours {
            os::kill_group(self.pid, signal);
        }
    }

    async fn sweep(self: &Arc<Self>) -> usize {
        let this = Arc::clone(self);
        let sweeping = spawn_blocking(move || this.sweep_now());
        sweeping.await.unwrap_or_default()
    }

    fn sweep_now(&self) -> usize {
        sweep(&self.mark, || self.signal_group(Signal::Kill))
    }

    fn reap(&self) {
        let mut life = self.life();
        self.status(&mut life);
        if !std::mem::replace(&mut life.reaped, true) {
            self.handle.get_ref().reap();
        }
        drop(life);
        if let Some(guard) = &self.guard {
            guard.forget(&self.mark.cookie);
        }
    }

    fn life(&self) -> MutexGuard<'_, Life> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.life().reaped {
            return;
        }
        self.sweep_now();
        self.handle.get_ref().wait(Some(KILLED));
        self.reap();
    }
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control")
            .field("name", &self.inner.name)
            .field("pid", &self.inner.pid)
            .field("life", &self.inner.life())
            .finish_non_exhaustive()
    }
}
