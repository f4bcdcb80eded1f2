//! What is read from a process: answers settle calls, requests become tasks, everything else is a notification or
//! noise. Nothing here waits for the writer.

use std::borrow::Cow;

use lemon_protocol::{
    CancelledParams, ErrorObject, Kind, LineSplitter, Message, Piece, ProgressParams, RequestId, Settled, TopLevelId,
    meta, method,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::inbound::InboundRequest;
use super::noise::Reaction;
use super::peer::{Peer, PeerEvent, Stage};
use super::pending::Unmatched;
use super::trace::Direction;
use crate::error::CallError;
use crate::pipeline::{Progress, ToolResult};
use crate::report::PluginText;

impl Peer {
    pub(super) async fn read(&self, mut stdout: impl AsyncRead + Unpin) {
        /// The buffer of a quiet process is small; one that has much to say gets a larger one.
        const BUFFER: std::ops::RangeInclusive<usize> = 4 * 1024..=64 * 1024;
        /// After so many lines the other tasks of a single-threaded runtime get their turn.
        const TURN: usize = 256;
        let mut lines = LineSplitter::new(self.0.options.limits.inbound_message_bytes);
        let mut buffer = vec![0; *BUFFER.start()];
        // Whether the oversized line that is streaming by has been told of.
        let mut told = false;
        while let Ok(read @ 1..) = stdout.read(&mut buffer).await {
            self.0.heard.now();
            lines.extend(&buffer[..read]);
            if read == buffer.len() && read < *BUFFER.end() {
                buffer.resize(read * 2, 0);
            }
            let mut turn = 0;
            while let Some(piece) = lines.next_piece() {
                match piece {
                    Piece::Line(line) => self.line(line),
                    Piece::Oversized { bytes, id, is_request } => {
                        self.oversized(bytes, id, is_request, std::mem::take(&mut told));
                    }
                }
                turn += 1;
                if turn % TURN == 0 {
                    tokio::task::yield_now().await;
                }
            }
            if let Some((bytes, message)) = lines.unfinished() {
                // Whoever waits for the message need not wait for its end, which may never come.
                if let (Some(id), true) = (message.get(), message.is_answer()) {
                    let _ = self.0.pending.settle(id, |_| Err(self.too_large(bytes)));
                }
                if !std::mem::replace(&mut told, true) {
                    self.bad_line("oversized", || format!("a line of more than {bytes} bytes"));
                }
            }
        }
        if lines.remainder() > 0 {
            let bytes = lines.remainder();
            self.bad_line("unfinished_line", || format!("{bytes} bytes without a line end at the end of the stream"));
        }
    }

    fn line(&self, line: &[u8]) {
        self.trace(Direction::FromPlugin, Some(line));
        match Message::parse(line) {
            Ok(Message::Response { id: Some(id), outcome }) => self.response(id, outcome),
            Ok(Message::Response { id: None, outcome }) => {
                let error = outcome.err().map_or("", RawValue::get);
                self.note("null_id_error", || format!("an error answer without an id: {error}"));
            }
            Ok(Message::Request { id, method, params }) => self.request(id.into_owned(), &method, params),
            Ok(Message::Notification { method, params }) => self.notification(&method, params),
            Err(fault) => {
                // Whoever waits for the broken message need not wait for a deadline.
                let mut id = TopLevelId::default();
                // Text that merely has a message in it is none.
                if line.trim_ascii_start().starts_with(b"{") {
                    id.feed(line);
                }
                let detail = format!("the message is not acceptable: {fault}");
                match id.get() {
                    Some(id_of_request) if id.is_request() => {
                        let error = ErrorObject { code: ErrorObject::INVALID_REQUEST, message: detail, data: None };
                        self.answer(&RequestId::Number(id_of_request), Err(&error));
                    }
                    Some(id) => {
                        let _ = self.0.pending.settle(id, |method| Err(self.broken(method, detail)));
                    }
                    None => {}
                }
                self.bad_line(fault.kind.as_str(), || format!("{fault}: {}", excerpt(line)));
            }
        }
    }

    fn broken(&self, method: &'static str, detail: String) -> CallError {
        CallError::Protocol { plugin: self.plugin().clone(), method, detail: self.told(&detail) }
    }

    fn response(&self, id: RequestId<'_>, outcome: Result<&RawValue, &RawValue>) {
        let number = match &id {
            RequestId::Number(number) => *number,
            RequestId::Text(text) => {
                let id = text.parse().unwrap_or(0);
                let detail = format!("the answer's id is the string {text:?}, the request's was a number");
                let settled = self.0.pending.settle(id, |method| Err(self.broken(method, detail)));
                self.note("string_id", || match settled {
                    Ok(()) => format!("an answer with the id {id} as a string"),
                    Err(_) => format!("an answer with an id that the host never used: {text:?}"),
                });
                return;
            }
        };
        let settled = self.0.pending.settle(number, |method| match outcome {
            Ok(result) => Ok(result.to_owned()),
            Err(error) => Err(self.answered(method, error)),
        });
        match settled {
            Ok(()) => self.replied(),
            Err(Unmatched::Late) => {
                self.note("late_answer", || format!("an answer to request {number} after it was given up"));
            }
            Err(Unmatched::Extra) => {
                self.note("extra_answer", || format!("one more answer to request {number}"));
            }
            Err(Unmatched::Unknown) => {
                self.note("unknown_id", || format!("an answer to request {number}, which the host never sent"));
            }
        }
    }

    fn answered(&self, method: &'static str, error: &RawValue) -> CallError {
        match serde_json::from_str::<ErrorObject>(error.get()) {
            Ok(ErrorObject { code, message, data }) => {
                let data = data.and_then(|data| serde_json::from_str(&self.redacted(&data.to_string())).ok());
                CallError::Answered { plugin: self.plugin().clone(), code, message: self.told(&message), data }
            }
            Err(fault) => self.broken(method, format!("the error is no error object: {fault}")),
        }
    }

    fn oversized(&self, bytes: usize, id: Option<i64>, is_request: bool, told: bool) {
        let (limit, key) = (self.0.options.limits.inbound_message_bytes, "limits.inbound_message_bytes");
        match id {
            Some(id) if is_request => {
                let error = format!("the request has {bytes} bytes, the limit is {limit} ({key})");
                self.answer(&RequestId::Number(id), Err(&ErrorObject::of(Kind::TooLarge, error)));
            }
            Some(id) => {
                let _ = self.0.pending.settle(id, |_| Err(self.too_large(bytes)));
            }
            None => {}
        }
        if !told {
            self.bad_line("oversized", || format!("a line of {bytes} bytes; the limit is {limit}"));
        }
    }

    fn too_large(&self, bytes: usize) -> CallError {
        let (limit, key) = (self.0.options.limits.inbound_message_bytes, "limits.inbound_message_bytes");
        CallError::TooLarge { plugin: self.plugin().clone(), what: "the answer", bytes, limit, key }
    }

    fn request(&self, id: RequestId<'static>, method: &str, params: Option<&RawValue>) {
        if method == method::PING {
            return self.answer(&id, Ok(&empty_object()));
        }
        let refusal = match self.stage() {
            Stage::Handshake => Some(ErrorObject::of(Kind::NotReady, "the handshake is not over yet")),
            Stage::Closing => Some(ErrorObject::of(Kind::ShuttingDown, "the host answers no new requests any more")),
            Stage::Open | Stage::Draining => None,
        };
        let begun = match refusal {
            Some(refusal) => Err(refusal),
            None => self.0.inbound.begin(&id, params.map_or(0, |params| params.get().len())),
        };
        let (cancel, slot) = match begun {
            Ok(begun) => begun,
            Err(refusal) => return self.answer(&id, Err(&refusal)),
        };
        let request = InboundRequest {
            peer: self.clone(),
            method: method.to_owned(),
            params: params.map(ToOwned::to_owned),
            cancel: cancel.clone(),
        };
        let peer = self.clone();
        self.0.tasks.spawn(async move {
            let handler = peer.0.options.inbound.clone().request(request);
            // The slot is held until the answer is in the outbox: a plugin that does not read gets no more of them.
            let answered = async {
                let outcome = handler.await;
                peer.0.outbox.room().await;
                outcome
            };
            tokio::select! {
                biased;
                () = cancel.cancelled() => {}
                outcome = answered => {
                    // Whoever reads the answer may use the id again at once.
                    peer.0.inbound.end(&id);
                    drop(slot);
                    return peer.answer(&id, outcome.as_deref());
                }
            }
            peer.0.inbound.end(&id);
        });
    }

    fn notification(&self, method: &str, params: Option<&RawValue>) {
        let text = params.map_or("{}", RawValue::get);
        match method {
            method::PROGRESS => self.progress(text),
            method::TOOLS_LIST_CHANGED => self.raise(PeerEvent::ToolsChanged),
            method::CANCELLED => {
                if let Some(CancelledParams { request_id, .. }) = self.payload(method, text) {
                    self.0.inbound.cancel(&request_id);
                }
            }
            method::SETTLED => {
                if let Some(Settled { request_id: RequestId::Number(id) }) = self.payload(method, text)
                    && !self.0.pending.ended(id)
                {
                    self.note("unknown_id", || format!("lemon/settled for request {id}, which was not given up"));
                }
            }
            _ => self.0.options.inbound.notification(self, method, text),
        }
    }

    fn progress(&self, text: &str) {
        let Some(params) = self.payload::<ProgressParams>(method::PROGRESS, text) else {
            return;
        };
        let ProgressParams { progress_token, progress, total, message } = params;
        let token = match progress_token {
            RequestId::Number(token) => token,
            RequestId::Text(_) => 0,
        };
        let message = message.map(|message| self.told(&message));
        let note = Progress { progress, total, message, partial: self.partial(text) };
        if !self.0.pending.progress(token, note) {
            self.note("late_progress", || format!("progress for {token}, which is not under way"));
        }
    }

    /// The partial result of a progress note; one that can't be read counts as none (LPP-PROG-12).
    fn partial(&self, text: &str) -> Option<ToolResult> {
        #[derive(Deserialize)]
        struct Params<'a> {
            #[serde(borrow, rename = "_meta")]
            meta: Meta<'a>,
        }
        #[derive(Deserialize)]
        struct Meta<'a> {
            #[serde(borrow, rename = "dev.lemon/partial")]
            partial: &'a RawValue,
        }
        debug_assert_eq!(meta::PARTIAL, "dev.lemon/partial");
        // Most progress has none, and a look for the name is cheaper than a parse.
        let Params { meta: Meta { partial } } = text.contains("_meta").then(|| serde_json::from_str(text).ok())??;
        let (bytes, most) = (partial.get().len(), self.0.options.limits.partial_result_bytes);
        if bytes > most {
            self.note("partial_too_large", || {
                format!("a partial result of {bytes} bytes; the limit is {most} (limits.partial_result_bytes)")
            });
            return None;
        }
        ToolResult::from_raw(partial.to_owned()).ok()
    }

    /// Reads the params of a notification; bad ones are noise.
    pub(crate) fn payload<'a, P: Deserialize<'a>>(&self, method: &str, text: &'a str) -> Option<P> {
        // A struct can be read from an array as well, which the protocol does not allow.
        let read = match text.trim_ascii_start().as_bytes().first() {
            Some(b'{') => serde_json::from_str(text).map_err(|fault| fault.to_string()),
            _ => Err("the params are no object".to_owned()),
        };
        match read {
            Ok(params) => Some(params),
            Err(fault) => {
                self.bad_line("bad_params", || format!("{method}: {fault}"));
                None
            }
        }
    }

    fn redacted<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.0.options.redactor.redact(text)
    }

    /// What the other side says, as it may be told: free of secrets, and not longer than anyone reads.
    fn told(&self, text: &str) -> PluginText {
        const LENGTH: usize = 4096;
        let text = self.redacted(text);
        match text.char_indices().nth(LENGTH) {
            Some((end, _)) => PluginText::new(format!("{}… ({} bytes in all)", &text[..end], text.len())),
            None => PluginText::new(text),
        }
    }

    /// Counts noise that does no harm in any number.
    pub(crate) fn note(&self, kind: &'static str, what: impl FnOnce() -> String) {
        let reaction = self.0.noise.note(kind, || self.told(&what()));
        self.react(kind, &reaction);
    }

    fn bad_line(&self, kind: &'static str, what: impl FnOnce() -> String) {
        let reaction = self.0.noise.bad_line(kind, || self.told(&what()));
        self.react(kind, &reaction);
    }

    fn react(&self, kind: &'static str, reaction: &Reaction) {
        match reaction {
            Reaction::Count => {}
            Reaction::Tell => {
                let first = self.0.noise.report().first.get(kind).cloned();
                self.0.options.inbound.noise(self, kind, &first.unwrap_or_default());
            }
            Reaction::Flood => self.raise(PeerEvent::Flood),
        }
    }
}

/// The start of a line, for a report.
fn excerpt(line: &[u8]) -> String {
    const LENGTH: usize = 200;
    let text = String::from_utf8_lossy(&line[..line.len().min(LENGTH)]).into_owned();
    if line.len() > LENGTH { format!("{text}…") } else { text }
}

/// `{}`, the answer to a ping.
fn empty_object() -> Box<RawValue> {
    RawValue::from_string("{}".to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
