//! Threads for work that would hold up the runtime, or that recurses deeper than its stacks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Semaphore, oneshot};

/// A validator recurses through the schema for each level of the values. Only what is used of it takes memory.
const STACK_BYTES: usize = 64 * 1024 * 1024;
/// The most threads at once, in the whole program; further work waits.
static THREADS: Semaphore = Semaphore::const_new(8);

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

/// Does some work on a thread of its own. Nobody waits for the thread's end: the work is told when the future is
/// dropped, and should then give up.
///
/// # Errors
/// See [`ThreadFault`].
pub(crate) async fn on_large_stack<T: Send + 'static>(
    work: impl FnOnce(&Arc<AtomicBool>) -> T + Send + 'static,
) -> Result<T, ThreadFault> {
    let permit = THREADS.acquire().await.map_err(|_| ThreadFault::None)?;
    let (done, result) = oneshot::channel();
    let stopped = Arc::new(AtomicBool::new(false));
    let _stop = StopOnDrop(stopped.clone());
    let thread = std::thread::Builder::new().name("lemon-schema".to_owned()).stack_size(STACK_BYTES);
    let work = move || {
        let _permit = permit;
        // Whoever waited may have lost patience.
        let _ = done.send(work(&stopped));
    };
    thread.spawn(work).map_err(|_| ThreadFault::None)?;
    result.await.map_err(|_| ThreadFault::Panic)
}

struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
