//! Running a tool of the embedding program's.

use std::sync::Arc;
use std::time::Duration;

use lemon_protocol::method;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{FAR, ToolResult};
use crate::catalog::{HostTool, ToolCall};
use crate::error::{CallError, Callee};
use crate::host::Host;

/// How long a tool may take.
pub(super) struct Times {
    /// In all.
    pub(super) total: Option<Duration>,
    /// Without progress.
    pub(super) idle: Option<Duration>,
    /// To end when nobody wants its answer any more.
    pub(super) linger: Duration,
}

/// Runs a tool until it has its answer, its time is over, or nobody wants the answer any more.
///
/// In the last two cases the caller is told at once, and the tool may linger for a while before it is dropped.
pub(super) async fn run(
    host: &Host,
    tool: &HostTool,
    call: ToolCall,
    times: Times,
    cancel: &CancellationToken,
) -> Result<ToolResult, CallError> {
    let callee = || Callee::Tool(tool.name().to_owned());
    let Times { total, idle, linger } = times;
    let late = |after: Option<Duration>, idle| CallError::Timeout {
        callee: callee(),
        method: method::TOOLS_CALL,
        after: after.unwrap_or(FAR),
        idle,
        dropped: 0,
    };
    let session = call.session().clone();
    let (too_late, heard) = (call.context.scope.deadline.unwrap_or_else(|| Instant::now() + FAR), call.heard.clone());
    let (running, ending) = host.own_tools();
    let ended = call.context.ended.clone().drop_guard();
    let mut running = Running { task: running.spawn(tool.run(call)), linger, _ended: ended };
    let done = tokio::select! {
        done = &mut running.task => done,
        () = cancel.cancelled() => return Err(CallError::Cancelled { callee: callee() }),
        () = ending.cancelled() => return Err(CallError::SessionOver { session: session.id().to_owned() }),
        () = tokio::time::sleep_until(too_late) => return Err(late(total, false)),
        () = silence(&heard, idle) => return Err(late(idle, true)),
    };
    Ok(done.unwrap_or_else(|failed| {
        let what = if failed.is_panic() { "panicked" } else { "was ended with the program" };
        ToolResult::error(format!("the tool {} {what}", tool.name()))
    }))
}

/// Waits until nothing was heard for so long; for ever if that does not matter.
async fn silence(heard: &Arc<Notify>, idle: Option<Duration>) {
    let Some(idle) = idle else { return std::future::pending().await };
    while tokio::time::timeout(idle, heard.notified()).await.is_ok() {}
}

/// A tool that runs. Dropped, it is told that nobody waits, and ended when it does not end by itself.
struct Running {
    task: JoinHandle<ToolResult>,
    linger: Duration,
    _ended: DropGuard,
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.task.is_finished() {
            return;
        }
        let (task, linger) = (self.task.abort_handle(), self.linger);
        let Ok(runtime) = Handle::try_current() else { return task.abort() };
        runtime.spawn(async move {
            tokio::time::sleep(linger).await;
            task.abort();
        });
    }
}
