//! Threads for work that would hold up the runtime, or that recurses deeper than its stacks.
//!
//! They are few, and whose work is done is fair: each source of tools has a [`Share`] of those for calls, and
//! configuration has some of its own, so that nobody's calls keep a plugin from starting.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit, oneshot};

/// A validator recurses through the schema for each level of the values. Only what is used of it takes memory.
const STACK_BYTES: usize = 64 * 1024 * 1024;
/// The most threads at once for calls, in the whole program; further work waits.
static FOR_CALLS: Semaphore = Semaphore::const_new(8);
/// The same for configuration.
pub(crate) const CONFIGURATIONS: usize = 4;
static FOR_CONFIGURATION: Semaphore = Semaphore::const_new(CONFIGURATIONS);
/// The most threads at once for the tools of one source.
const SHARE: usize = 2;

/// Why work was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ThreadFault {
    /// The system gave no thread.
    #[error("no thread could be started")]
    None,
    /// It panicked.
    #[error("the work broke down")]
    Panic,
}

/// What one source of tools may have of the threads: its further work waits for its own, and for nobody else's longer
/// than for the others' shares.
#[derive(Debug, Clone)]
pub(crate) struct Share(Arc<Semaphore>);

impl Default for Share {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(SHARE)))
    }
}

impl Share {
    /// Does some work on a thread of its own when it is its turn. Nobody waits for the thread's end: the work is told
    /// when the future is dropped, and should then give up.
    ///
    /// # Errors
    /// See [`ThreadFault`].
    pub(crate) async fn on_large_stack<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Arc<AtomicBool>) -> T + Send + 'static,
    ) -> Result<T, ThreadFault> {
        let own = self.0.clone().acquire_owned().await.map_err(|_| ThreadFault::None)?;
        Turn::of(&FOR_CALLS, Some(own)).await?.on_large_stack(work).await
    }

    /// Whether nothing is done for it any more.
    pub(super) fn is_idle(&self) -> bool {
        Arc::strong_count(&self.0) == 1 && self.0.available_permits() == SHARE
    }
}

/// The right to a thread.
#[derive(Debug)]
pub(crate) struct Turn {
    _any: SemaphorePermit<'static>,
    _own: Option<OwnedSemaphorePermit>,
}

impl Turn {
    async fn of(threads: &'static Semaphore, own: Option<OwnedSemaphorePermit>) -> Result<Self, ThreadFault> {
        let any = threads.acquire().await.map_err(|_| ThreadFault::None)?;
        Ok(Self { _any: any, _own: own })
    }

    /// Waits for a thread that checks a configuration.
    ///
    /// # Errors
    /// See [`ThreadFault`].
    pub(crate) async fn for_configuration() -> Result<Self, ThreadFault> {
        Self::of(&FOR_CONFIGURATION, None).await
    }

    /// As [`Share::on_large_stack`], at once.
    ///
    /// # Errors
    /// See [`ThreadFault`].
    pub(crate) async fn on_large_stack<T: Send + 'static>(
        self,
        work: impl FnOnce(&Arc<AtomicBool>) -> T + Send + 'static,
    ) -> Result<T, ThreadFault> {
        let (done, result) = oneshot::channel();
        let stopped = Arc::new(AtomicBool::new(false));
        let _stop = StopOnDrop(stopped.clone());
        let thread = std::thread::Builder::new().name("lemon-schema".to_owned()).stack_size(STACK_BYTES);
        let work = move || {
            let _turn = self;
            // Whoever waited may have lost patience.
            let _ = done.send(work(&stopped));
        };
        thread.spawn(work).map_err(|_| ThreadFault::None)?;
        result.await.map_err(|_| ThreadFault::Panic)
    }
}

struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Keeps a share's threads busy until the sender is gone.
    fn keep_busy(share: &Share, jobs: usize) -> (mpsc::Sender<()>, Vec<tokio::task::JoinHandle<()>>) {
        let (gone, wait) = mpsc::channel::<()>();
        let wait = Arc::new(std::sync::Mutex::new(wait));
        let job = || {
            let (share, wait) = (share.clone(), wait.clone());
            tokio::spawn(async move {
                let _ = share.on_large_stack(move |_| wait.lock().unwrap().recv()).await;
            })
        };
        (gone, (0..jobs).map(|_| job()).collect())
    }

    #[tokio::test]
    async fn one_source_does_not_keep_the_others_from_their_turn() {
        let greedy = Share::default();
        let (gone, jobs) = keep_busy(&greedy, 64);
        tokio::task::yield_now().await;
        assert_eq!(Share::default().on_large_stack(|_| 1).await, Ok(1));
        assert_eq!(Turn::for_configuration().await.unwrap().on_large_stack(|_| 2).await, Ok(2));
        drop(gone);
        for job in jobs {
            job.await.unwrap();
        }
        while !greedy.is_idle() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn work_is_told_when_nobody_waits_for_it() {
        let (told, was_told) = oneshot::channel();
        let share = Share::default();
        let mut work = Box::pin(share.on_large_stack(move |stopped| {
            while !stopped.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            told.send(()).unwrap();
        }));
        assert!(futures_util::poll!(&mut work).is_pending());
        drop(work);
        was_told.await.unwrap();
    }
}
