//! Running a tool of the embedding program's.

use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{FAR, ToolResult};
use crate::catalog::{HostTool, ToolCall};
use crate::error::{CallError, Callee};

/// Runs a tool until it has its answer, its deadline passes, or nobody wants the answer any more.
///
/// In the last two cases the caller is told at once, and the tool has `linger` to end before it is dropped.
pub(super) async fn run(
    tool: &HostTool,
    call: ToolCall,
    total: Option<Duration>,
    cancel: &CancellationToken,
    linger: Duration,
) -> Result<ToolResult, CallError> {
    let callee = || Callee::Tool(tool.name().to_owned());
    let too_late = call.context.scope.deadline.unwrap_or_else(|| Instant::now() + FAR);
    let ended = call.context.ended.clone().drop_guard();
    let mut running = Running { task: tokio::spawn(tool.run(call)), linger, _ended: ended };
    let done = tokio::select! {
        done = &mut running.task => done,
        () = cancel.cancelled() => return Err(CallError::Cancelled { callee: callee() }),
        () = tokio::time::sleep_until(too_late) => {
            let after = total.unwrap_or(FAR);
            return Err(CallError::Timeout { callee: callee(), method: "its call", after, idle: false, dropped: 0 });
        }
    };
    Ok(done.unwrap_or_else(|failed| {
        let what = if failed.is_panic() { "panicked" } else { "was ended with the program" };
        ToolResult::error(format!("the tool {} {what}", tool.name()))
    }))
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
