//! Requests of the plugin's own that wait for the host's answer.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use lemon_protocol::{ErrorObject, RequestId};
use serde_json::value::RawValue;
use tokio::sync::oneshot;

/// What the host answered.
pub(crate) type Answered = Result<Box<RawValue>, ErrorObject>;

#[derive(Default)]
pub(crate) struct Pending {
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    last: i64,
    closed: bool,
    requests: HashMap<i64, oneshot::Sender<Answered>>,
}

impl Pending {
    /// A new id and what its answer arrives at; none when no answer can come any more.
    pub(crate) fn open(&self) -> Option<(i64, oneshot::Receiver<Answered>)> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.closed {
            return None;
        }
        waiting.last += 1;
        let id = waiting.last;
        let (sender, receiver) = oneshot::channel();
        waiting.requests.insert(id, sender);
        Some((id, receiver))
    }

    /// Forgets a request; says whether it was still waiting.
    pub(crate) fn forget(&self, id: i64) -> bool {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).requests.remove(&id).is_some()
    }

    /// Hands an answer to whoever waits for it. One that nobody waits for is dropped.
    pub(crate) fn answer(&self, id: Option<RequestId<'_>>, outcome: Result<&RawValue, &RawValue>) {
        let Some(RequestId::Number(id)) = id else { return };
        let sender = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).requests.remove(&id);
        let Some(sender) = sender else { return };
        let outcome = match outcome {
            Ok(result) => Ok(result.to_owned()),
            Err(error) => Err(serde_json::from_str(error.get()).unwrap_or_else(|_| ErrorObject {
                code: ErrorObject::INTERNAL,
                message: "an error that can't be read".to_owned(),
                data: None,
            })),
        };
        // Whoever asked may have gone.
        let _ = sender.send(outcome);
    }

    /// Ends all waiting, as no answer will come.
    pub(crate) fn close(&self) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.closed = true;
        waiting.requests.clear();
    }
}
