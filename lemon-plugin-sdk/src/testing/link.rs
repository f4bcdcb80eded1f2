//! The client's end of the pipe in memory: requests go out, answers and notifications find whom they are for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lemon_protocol::{ErrorObject, LineSplitter, Message, Piece, RequestId, meta, method};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::call::{Call, LogSeen, ProgressSeen};
use crate::connection::outbox::Outbox;

/// Answers what the plugin asks of the host: the method and its params.
pub(super) type HostAnswers = Arc<dyn Fn(&str, Value) -> Result<Value, ErrorObject> + Send + Sync>;

pub(super) struct Link {
    /// What a test says is never dropped, and never waits for the plugin: the calls that begin it can't.
    outbox: Outbox,
    state: Mutex<State>,
    host: Option<HostAnswers>,
}

#[derive(Default)]
struct State {
    last_id: i64,
    closed: bool,
    waiting: HashMap<i64, Waiting>,
    logs: Vec<LogSeen>,
}

struct Waiting {
    /// None comes when the plugin says that a cancelled call has settled.
    answer: oneshot::Sender<Option<Result<Box<RawValue>, ErrorObject>>>,
    progress: Arc<Mutex<Vec<ProgressSeen>>>,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Link {
    /// Connects to a plugin; its input ends when `over` is cancelled.
    pub(super) fn open(stream: DuplexStream, host: Option<HostAnswers>, over: CancellationToken) -> Arc<Self> {
        let (mut from_plugin, mut to_plugin) = tokio::io::split(stream);
        let link = Arc::new(Self { outbox: Outbox::unbounded(), state: Mutex::default(), host });
        let writer = link.clone();
        tokio::spawn(async move {
            let _ = writer.outbox.write_to(&mut to_plugin).await;
            let _ = to_plugin.shutdown().await;
        });
        let ending = link.clone();
        tokio::spawn(async move {
            over.cancelled().await;
            ending.outbox.close();
        });
        let reader = link.clone();
        tokio::spawn(async move {
            let mut lines = LineSplitter::new(usize::MAX);
            let mut buffer = vec![0; 64 * 1024];
            while let Ok(length @ 1..) = from_plugin.read(&mut buffer).await {
                lines.extend(&buffer[..length]);
                while let Some(Piece::Line(line)) = lines.next_piece() {
                    reader.received(line);
                }
            }
            reader.close();
        });
        link
    }

    pub(super) fn logs(&self) -> Vec<LogSeen> {
        lock(&self.state).logs.clone()
    }

    fn send(&self, message: &Value) {
        // It is closed when the client was dropped.
        let _ = self.outbox.push_now(message, usize::MAX);
    }

    pub(super) fn notify(&self, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    pub(super) fn request(self: &Arc<Self>, method: &str, params: impl FnOnce(i64) -> Value) -> Call {
        let (answer, receiver) = oneshot::channel();
        let progress = Arc::default();
        let mut state = lock(&self.state);
        state.last_id += 1;
        let id = state.last_id;
        if !state.closed {
            state.waiting.insert(id, Waiting { answer, progress: Arc::clone(&progress) });
        }
        drop(state);
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params(id)}));
        Call { link: self.clone(), id, answer: receiver, progress }
    }

    fn settle(&self, id: Option<RequestId<'_>>, outcome: Option<Result<Box<RawValue>, ErrorObject>>) {
        if let Some(RequestId::Number(id)) = id
            && let Some(waiting) = lock(&self.state).waiting.remove(&id)
        {
            let _ = waiting.answer.send(outcome);
        }
    }

    fn received(&self, line: &[u8]) {
        match Message::parse(line) {
            Ok(Message::Response { id, outcome }) => {
                let outcome = match outcome {
                    Ok(result) => Ok(result.to_owned()),
                    Err(error) => Err(serde_json::from_str(error.get()).unwrap_or_else(|_| ErrorObject {
                        code: 0,
                        message: error.get().to_owned(),
                        data: None,
                    })),
                };
                self.settle(id, Some(outcome));
            }
            Ok(Message::Request { id, method, params }) => {
                let params = params.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
                let outcome = match &self.host {
                    Some(host) => host(&method, params),
                    None => {
                        Err(ErrorObject { code: ErrorObject::METHOD_NOT_FOUND, message: method.into(), data: None })
                    }
                };
                self.send(&match outcome {
                    Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
                    Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
                });
            }
            Ok(Message::Notification { method, params }) => {
                let params = params.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
                self.notified(&method, params);
            }
            Err(_) => {}
        }
    }

    fn notified(&self, method: &str, params: Value) {
        match method {
            method::PROGRESS => {
                let Some(token) = params["progressToken"].as_i64() else { return };
                let Ok(mut seen) = ProgressSeen::deserialize(&params) else { return };
                let partial = &params["_meta"][meta::PARTIAL]["content"];
                seen.partial = Vec::deserialize(partial).ok();
                if let Some(waiting) = lock(&self.state).waiting.get(&token) {
                    lock(&waiting.progress).push(seen);
                }
            }
            method::SETTLED => self.settle(params["requestId"].as_i64().map(RequestId::Number), None),
            method::MESSAGE => {
                if let Ok(seen) = LogSeen::deserialize(&params) {
                    lock(&self.state).logs.push(seen);
                }
            }
            _ => {}
        }
    }

    fn close(&self) {
        let mut state = lock(&self.state);
        state.closed = true;
        state.waiting.clear();
    }
}
