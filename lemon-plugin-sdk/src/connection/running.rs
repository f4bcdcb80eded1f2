//! Requests that take their time: a task each, answered once, never when cancelled, and never the end of the process.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use lemon_protocol::{ErrorObject, Kind, RequestId};
use serde::Serialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::Connection;
use super::calls::Owed;
use super::era::Era;
use super::message::{Answer, CallResult, Refusal, Version};
use super::outbox::Unsent;
use crate::context::Call;
use crate::excerpt::{NAME, excerpt};
use crate::output::ToolOutput;
use crate::tool::{Running, panicked};

/// Runs a future; its panic is an error and not the end of the task.
pub(super) async fn caught<F: Future>(future: F) -> Result<F::Output, Box<dyn Any + Send>> {
    let mut future = pin!(future);
    std::future::poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
        Err(panic) => Poll::Ready(Err(panic)),
    })
    .await
}

/// How long a handler that was told to stop may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// As long as the plugin says for its handlers.
    Grace,
    /// Until the plugin is gone, as what it does can't be stopped, or must not be.
    ToTheEnd,
}

impl Connection {
    /// Runs a handler to its end and answers its call.
    pub(super) async fn run(self: Arc<Self>, call: Arc<Call>, handler: Running, patience: Patience) {
        // The future is dropped with this statement, before anything is said of its end.
        let output = tokio::select! {
            biased;
            output = caught(handler) => Some(output.unwrap_or_else(|panic| panicked(&*panic))),
            () = self.abandoned(&call.token, patience) => None,
        };
        // Whatever was told on the way goes before the answer.
        if let Some(progress) = &call.progress {
            progress.flush(&call);
        }
        call.finish();
        // What could not be stopped goes on after it was given up.
        let has_ended = output.is_some() || patience == Patience::Grace;
        let owed = match output {
            Some(output) => self.answer_call(&call, output).await,
            None => self.settle(&call.id, || {
                self.refuse(&call.id, &ErrorObject::of(Kind::ShuttingDown, "the plugin comes to its end"));
            }),
        };
        if owed == Owed::Nothing && call.era == Era::Lemon && has_ended {
            self.settled(&call.id);
        }
        // For tasks that the handler has left behind.
        call.token.cancel();
    }

    /// Answers a call with what its handler gave, once there is room for it, unless it is cancelled until then.
    async fn answer_call(&self, call: &Call, mut output: ToolOutput) -> Owed {
        let (id, limit) = (&call.id, self.limit());
        let (mut held, mut shortened, mut told) = (None, false, false);
        loop {
            let mut drained = pin!(self.outbox.drained());
            drained.as_mut().enable();
            match self.calls.settle_with(id, || self.outbox.try_push(&self.call_answer(call, &output), limit).map(drop))
            {
                Ok(owed) => return owed,
                // Nothing is written any more.
                Err(Unsent::Closed) => return Owed::Answer,
                Err(Unsent::TooLarge { bytes }) => {
                    let text = format!("the result has {bytes} bytes, more than the {limit} that a message may have");
                    if shortened {
                        return self.settle(id, || self.refuse(id, &ErrorObject::of(Kind::TooLarge, text)));
                    }
                    (output, held, shortened) = (ToolOutput::error(text), None, true);
                }
                Err(Unsent::Full) => {
                    if held.is_none() {
                        held = self.outbox.hold(&self.call_answer(call, &output));
                    }
                    if held.is_none() {
                        let text = "the tool ran, but its result was given up: too many answers wait to be read";
                        return self.settle(id, || self.refuse(id, &ErrorObject::of(Kind::Busy, text)));
                    }
                    tokio::select! {
                        () = drained => {}
                        // The end of the plugin cancels too, and the answer is still owed then.
                        () = call.token.cancelled(), if !told => told = true,
                    }
                }
            }
        }
    }

    fn call_answer<'a>(&'a self, call: &'a Call, output: &'a ToolOutput) -> Answer<'a, CallResult<'a>> {
        let result = CallResult::of(output, call.era, &self.definition.server_info);
        Answer { jsonrpc: Version::V2, id: &call.id, result }
    }

    /// Ends a request with an answer that needs no room, unless its cancellation was read.
    pub(super) fn settle(&self, id: &RequestId<'static>, answer: impl FnOnce()) -> Owed {
        let sent = self.calls.settle_with(id, || {
            answer();
            Ok(())
        });
        sent.unwrap_or(Owed::Nothing)
    }

    /// Works on a request other than a call. It is cancelled like one: its future is dropped.
    pub(super) fn spawn_request<F>(self: &Arc<Self>, id: RequestId<'static>, era: Era, patience: Patience, work: F)
    where
        F: Future<Output = Result<(), ErrorObject>> + Send + 'static,
    {
        let token = CancellationToken::new();
        if !self.take(&id, &token) {
            return;
        }
        let connection = self.clone();
        self.tasks.spawn(async move {
            let outcome = tokio::select! {
                biased;
                outcome = caught(work) => outcome.unwrap_or_else(|_| {
                    Err(ErrorObject { code: ErrorObject::INTERNAL, message: "the plugin panicked".into(), data: None })
                }),
                () = connection.abandoned(&token, patience) => {
                    Err(ErrorObject::of(Kind::ShuttingDown, "the plugin comes to its end"))
                }
            };
            let owed = connection.settle(&id, || match outcome {
                Ok(()) => connection.answer(&id, super::message::Empty {}),
                Err(error) => connection.refuse(&id, &error),
            });
            if owed == Owed::Nothing && era == Era::Lemon {
                connection.settled(&id);
            }
        });
    }

    /// Until a handler that was told to stop has had its time for it.
    async fn abandoned(&self, token: &CancellationToken, patience: Patience) {
        if patience == Patience::ToTheEnd {
            return self.abandon.cancelled().await;
        }
        token.cancelled().await;
        tokio::select! {
            () = tokio::time::sleep(self.definition.cancel_grace) => {}
            () = self.abandon.cancelled() => {}
        }
    }

    /// Takes a request in hand; else it is refused.
    pub(super) fn take(&self, id: &RequestId<'static>, token: &CancellationToken) -> bool {
        use super::calls::Untaken;
        let problem = match self.calls.insert(id.clone(), token.clone()) {
            Ok(()) => return true,
            Err(Untaken::SameId) => ErrorObject {
                code: ErrorObject::INVALID_REQUEST,
                message: format!("another request with the id {} is in flight", excerpt(&id.to_string(), NAME)),
                data: None,
            },
            Err(Untaken::TooMany) => ErrorObject::of(Kind::Busy, "too many requests at once"),
        };
        self.refuse(id, &problem);
        false
    }

    pub(super) fn answer(&self, id: &RequestId<'_>, result: impl Serialize) {
        let limit = self.limit();
        let answer = Answer { jsonrpc: Version::V2, id, result };
        if let Err(Unsent::TooLarge { bytes }) = self.outbox.push_now(&answer, limit) {
            let text = format!("the result has {bytes} bytes, the limit is {limit}");
            self.refuse(id, &ErrorObject::of(Kind::TooLarge, text));
        }
    }

    /// Answers with an error; with a shorter one if it does not fit, as whoever asked waits for it.
    pub(super) fn refuse(&self, id: &RequestId<'_>, error: &ErrorObject) {
        let limit = self.limit();
        let refusal = |id, error| self.outbox.push_now(&Refusal { jsonrpc: Version::V2, id, error }, limit);
        let Err(Unsent::TooLarge { .. }) = refusal(Some(id), error) else { return };
        let data = error.kind().map(|kind| json!({ "kind": kind.as_str() }));
        let short = ErrorObject { code: error.code, message: excerpt(&error.message, NAME).into_owned(), data };
        if let Err(Unsent::TooLarge { .. }) = refusal(Some(id), &short) {
            // The id itself is longer than what the other side reads.
            let _ = refusal(None, &short);
        }
    }
}
