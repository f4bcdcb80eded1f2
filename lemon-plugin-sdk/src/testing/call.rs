//! A call that a test has started, and what it saw of it.

use std::sync::{Arc, Mutex};

use lemon_protocol::{ErrorObject, method};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::Error;
use super::link::{Link, lock};
use crate::output::Content;
use crate::result::CallResult;

/// How far a call has got, as it told.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct ProgressSeen {
    /// How far it is.
    pub progress: f64,
    /// How far it will go.
    #[serde(default)]
    pub total: Option<f64>,
    /// What is being done.
    #[serde(default)]
    pub message: Option<String>,
    /// The result so far, if it came with one.
    #[serde(skip)]
    pub partial: Option<Vec<Content>>,
}

/// A log message that the plugin sent.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct LogSeen {
    /// Its level, such as `warning`.
    pub level: String,
    /// Its text.
    pub data: Value,
}

/// A call that has ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct Finished {
    /// What it answered; [`Error::NoAnswer`] if it was cancelled.
    pub outcome: Result<CallResult, Error>,
    /// What it told on its way.
    pub progress: Vec<ProgressSeen>,
}

/// A call that a test has started.
pub struct Call {
    pub(super) link: Arc<Link>,
    pub(super) id: i64,
    pub(super) answer: oneshot::Receiver<Option<Result<Box<RawValue>, ErrorObject>>>,
    pub(super) progress: Arc<Mutex<Vec<ProgressSeen>>>,
}

impl Call {
    /// Cancels the call. Its handler goes on until it notices; [`finished`](Self::finished) waits for its end.
    pub fn cancel(&self) {
        self.link.notify(method::CANCELLED, &json!({"requestId": self.id, "reason": "test"}));
    }

    /// What it has told so far.
    pub fn progress(&self) -> Vec<ProgressSeen> {
        lock(&self.progress).clone()
    }

    /// Waits for the result.
    ///
    /// # Errors
    /// The plugin refused the call, the call was cancelled, or the plugin has ended.
    pub async fn result(self) -> Result<CallResult, Error> {
        self.finished().await.outcome
    }

    /// Waits for the end of the handler: for the answer, or, if the call was cancelled, for the word that it settled.
    pub async fn finished(self) -> Finished {
        let outcome = match self.answer.await {
            Ok(Some(Ok(result))) => serde_json::from_str(result.get()).map_err(Error::Unreadable),
            Ok(Some(Err(error))) => Err(Error::Refused(error)),
            Ok(None) | Err(_) => Err(Error::NoAnswer),
        };
        let progress = std::mem::take(&mut *lock(&self.progress));
        Finished { outcome, progress }
    }
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call").field("id", &self.id).finish_non_exhaustive()
    }
}
