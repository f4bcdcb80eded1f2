//! The other end of one process's pipes.
//!
//! A peer is made of three tasks: the reader, which settles calls and starts the work on inbound requests and waits
//! for neither; the writer, which alone touches stdin; and one timer for all deadlines. It lives as long as its
//! process and knows nothing of restarts: what it can't decide it raises as a [`PeerEvent`].

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use lemon_process::Control;
use lemon_protocol::{CancelledParams, ErrorObject, Kind, RequestId, method};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::io::AsyncRead;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, broadcast, oneshot};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::inbound::{Inbound, InboundCalls};
use super::input::Input;
use super::noise::{Noise, NoiseReport};
use super::outbox::{Outbox, Refused, with_buffer, write_request};
use super::pending::{CallContext, CallScope, GivenUp, Opening, Outcome, Overdue, Pending, Ticket};
use super::trace::{Direction, Tracer};
use crate::error::CallError;
use crate::limits::{Limits, Timeouts};
use crate::pipeline::Progress;
use crate::plugin::{Generation, PluginName, StateKind};
use crate::report::Redactor;

/// What a peer tells the owner of its process. Raised once each, in no order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum PeerEvent {
    /// Nothing more will be read.
    StdoutClosed = 1,
    /// Too many lines were no message.
    Flood = 2,
    /// The outbox reached its hard bound.
    NotReading = 4,
    /// The list of tools is another one.
    ToolsChanged = 8,
    /// A request was answered, by now or a moment ago.
    GoodReply = 16,
    /// A given-up call was abandoned.
    Abandoned = 32,
    /// Nothing more can be written.
    StdinClosed = 64,
}

impl PeerEvent {
    const ALL: [Self; 7] = [
        Self::GoodReply,
        Self::ToolsChanged,
        Self::Abandoned,
        Self::Flood,
        Self::NotReading,
        Self::StdinClosed,
        Self::StdoutClosed,
    ];
}

/// How far the peer has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Stage {
    /// The other side's requests are refused.
    Handshake,
    /// Both sides' requests are taken.
    Open,
    /// The host makes no new calls; the other side's requests are taken.
    Draining,
    /// Neither side's requests are taken, but for what belongs to the end.
    Closing,
}

pub(crate) struct PeerOptions {
    pub(crate) plugin: PluginName,
    pub(crate) generation: Generation,
    pub(crate) limits: Arc<Limits>,
    pub(crate) timeouts: Arc<Timeouts>,
    pub(crate) inbound: Arc<dyn Inbound>,
    pub(crate) tracer: Option<Tracer>,
    /// What the process says in errors passes through it.
    pub(crate) redactor: Redactor,
    /// The process, so that a deadline can tell a dead one from a slow one.
    pub(crate) control: Option<Control>,
}

/// A request to the other side.
#[derive(Default)]
pub(crate) struct Outgoing {
    pub(crate) total: Option<Duration>,
    /// When the total is over, if it began before the call.
    pub(crate) deadline: Option<Instant>,
    pub(crate) idle: Option<Duration>,
    pub(crate) cancel: Option<CancellationToken>,
    pub(crate) progress: Option<broadcast::Sender<Progress>>,
    pub(crate) permit: Option<OwnedSemaphorePermit>,
    pub(crate) scope: Option<CallScope>,
    /// It is about the process: it goes before all data, is taken to the end, and the other side is never told that it
    /// was given up. MCP forbids that for `initialize`.
    pub(crate) control: bool,
}

#[derive(Clone)]
pub(crate) struct Peer(pub(super) Arc<Shared>);

pub(super) struct Shared {
    pub(super) options: PeerOptions,
    pub(super) outbox: Outbox,
    pub(super) pending: Pending,
    pub(super) noise: Noise,
    pub(super) calls: Arc<Semaphore>,
    pub(super) inbound: InboundCalls,
    pub(super) stage: AtomicU8,
    /// Lemon's plugins take longer lines than MCP servers.
    pub(super) is_lemon: AtomicBool,
    pub(super) raised: AtomicU32,
    pub(super) raise: Notify,
    pub(super) heard: Heard,
    /// The reader and the writer.
    pub(super) pipes: OnceLock<[AbortHandle; 2]>,
    pub(super) tasks: TaskTracker,
}

/// When the process last wrote something. The reader alone changes it, so that an answer costs no lock.
pub(super) struct Heard {
    start: Instant,
    /// In milliseconds after the start.
    last: AtomicU64,
    /// An answer that comes by then is told of.
    tell_reply: AtomicU64,
}

impl Heard {
    pub(super) fn now(&self) {
        let passed = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(passed, Ordering::Relaxed);
    }

    fn silence(&self) -> Duration {
        self.start.elapsed().saturating_sub(Duration::from_millis(self.last.load(Ordering::Relaxed)))
    }
}

impl Peer {
    /// Starts the tasks. They end with [`close`](Self::close).
    pub(crate) fn start(
        options: PeerOptions,
        stdin: impl Input,
        stdout: impl AsyncRead + Unpin + Send + 'static,
    ) -> Self {
        let limits = options.limits.clone();
        let shared = Shared {
            outbox: Outbox::new(limits.outbox_soft_bytes, limits.outbox_hard_bytes),
            pending: Pending::default(),
            noise: Noise::new(limits.noise_lines, options.timeouts.noise_window_ms.get()),
            calls: Arc::new(Semaphore::new(limits.calls.min(Semaphore::MAX_PERMITS))),
            inbound: InboundCalls::new(limits.inbound_requests, limits.inbound_request_bytes),
            stage: AtomicU8::new(Stage::Handshake as u8),
            is_lemon: AtomicBool::new(true),
            raised: AtomicU32::new(0),
            raise: Notify::new(),
            heard: Heard { start: Instant::now(), last: AtomicU64::new(0), tell_reply: AtomicU64::new(0) },
            pipes: OnceLock::new(),
            tasks: TaskTracker::new(),
            options,
        };
        let peer = Self(Arc::new(shared));
        let (writer, reader, timer) = (peer.clone(), peer.clone(), peer.clone());
        let writing = peer.0.tasks.spawn(async move {
            if writer.0.outbox.write_to(stdin).await.is_err() {
                writer.raise(PeerEvent::StdinClosed);
            }
        });
        let reading = peer.0.tasks.spawn(async move {
            reader.read(stdout).await;
            reader.raise(PeerEvent::StdoutClosed);
        });
        peer.0.tasks.spawn(async move { timer.keep_time().await });
        peer.0.pipes.get_or_init(|| [writing.abort_handle(), reading.abort_handle()]);
        peer
    }

    pub(crate) fn plugin(&self) -> &PluginName {
        &self.0.options.plugin
    }

    pub(crate) fn generation(&self) -> Generation {
        self.0.options.generation
    }

    /// Whether both are the same process's.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The handshake is over: requests of the other side are answered from now on.
    pub(crate) fn open(&self, is_lemon: bool) {
        self.0.is_lemon.store(is_lemon, Ordering::Relaxed);
        if is_lemon {
            self.0.pending.expect_ends();
        }
        self.advance(Stage::Open);
    }

    /// No new calls are made from now on.
    pub(crate) fn draining(&self) {
        self.advance(Stage::Draining);
    }

    /// The end is near: nothing new is taken from either side.
    pub(crate) fn closing(&self) {
        self.advance(Stage::Closing);
    }

    /// A stage is never gone back to.
    fn advance(&self, stage: Stage) {
        self.0.stage.fetch_max(stage as u8, Ordering::AcqRel);
    }

    pub(super) fn stage(&self) -> Stage {
        match self.0.stage.load(Ordering::Acquire) {
            0 => Stage::Handshake,
            1 => Stage::Open,
            2 => Stage::Draining,
            _ => Stage::Closing,
        }
    }

    /// Refuses a call that comes too late for this process.
    fn check_open(&self, control: bool) -> Result<(), CallError> {
        let plugin = || self.plugin().clone();
        match self.stage() {
            Stage::Handshake | Stage::Open => Ok(()),
            _ if control => Ok(()),
            Stage::Draining => Err(CallError::NotReady { plugin: plugin(), state: StateKind::Draining, reason: None }),
            // The reason of the end, if there is one; else it has not heard of the call, and another may.
            Stage::Closing => Err(self.0.pending.closed().unwrap_or_else(|| CallError::NotReady {
                plugin: plugin(),
                state: StateKind::Stopping,
                reason: None,
            })),
        }
    }

    /// A slot for a top-level tool call, if one is free.
    pub(crate) fn free_slot(&self) -> Option<OwnedSemaphorePermit> {
        self.0.calls.clone().try_acquire_owned().ok()
    }

    /// A slot for a top-level tool call; waits while all are taken.
    pub(crate) async fn slot(&self) -> Option<OwnedSemaphorePermit> {
        self.0.calls.clone().acquire_owned().await.ok()
    }

    /// Sends a request, whose params are written when its id is known, and waits for its outcome. When the caller goes
    /// away, the call is cancelled.
    pub(crate) fn call(
        &self,
        method: &'static str,
        params: impl FnOnce(i64, &mut Vec<u8>),
        outgoing: Outgoing,
    ) -> impl Future<Output = Outcome> {
        // Not within the future, which every call would make larger by all of what it is opened with.
        let opened = self.opened(method, outgoing);
        async move {
            let Opened { guard, mut outcome, cancel, control } = opened?;
            let id = guard.id;
            if !control && cancel.as_ref().is_some_and(CancellationToken::is_cancelled) {
                self.cancel(id);
            } else if control || self.0.outbox.has_room() {
                self.send_request(id, method, params, control);
            } else {
                // A call that has its outcome before there is room is not sent at all.
                tokio::select! {
                    biased;
                    outcome = &mut outcome => return guard.settled(outcome),
                    () = cancelled(cancel.as_ref()) => self.cancel(id),
                    () = self.0.outbox.room() => self.send_request(id, method, params, control),
                }
            }
            tokio::select! {
                biased;
                outcome = &mut outcome => return guard.settled(outcome),
                () = cancelled(cancel.as_ref()) => self.cancel(id),
            }
            guard.settled(outcome.await)
        }
    }

    fn opened(&self, method: &'static str, outgoing: Outgoing) -> Result<Opened<'_>, CallError> {
        let Outgoing { total, deadline, idle, cancel, progress, permit, scope, control } = outgoing;
        self.check_open(control)?;
        let noise_before = self.0.noise.total();
        let opening = Opening { method, total, deadline, idle, progress, permit, scope, noise_before, control };
        let Ticket { id, outcome } = self.0.pending.open(opening)?;
        Ok(Opened { guard: GiveUp { peer: self, id, armed: true }, outcome, cancel, control })
    }

    fn send_request(&self, id: i64, method: &str, params: impl FnOnce(i64, &mut Vec<u8>), control: bool) {
        let give_up = |error| self.0.pending.give_up(id, Duration::ZERO, error);
        if let Err(error) = self.check_open(control) {
            give_up(error);
            return;
        }
        let (limit, key) = self.outbound_limit();
        with_buffer(|message| {
            write_request(message, id, method, |bytes| params(id, bytes));
            if message.len() > limit + 1 {
                let (bytes, plugin) = (message.len() - 1, self.plugin().clone());
                give_up(CallError::TooLarge { plugin, what: "the request to", bytes, limit, key });
                return;
            }
            let trace = self.0.options.tracer.as_ref().map(|_| message.clone());
            let outbox = &self.0.outbox;
            let pushed = self
                .0
                .pending
                .send(id, || if control { outbox.push_control(message) } else { outbox.push_data(message, Some(id)) });
            match pushed {
                Some(Ok(())) => self.trace(Direction::ToPlugin, trace.as_deref()),
                Some(Err(Refused::Full)) => {
                    give_up(CallError::NotReading { plugin: self.plugin().clone(), bytes: outbox.waiting() });
                    self.raise(PeerEvent::NotReading);
                }
                // It has its outcome, or the end of the process settles it with its reason.
                None | Some(Err(Refused::Closed)) => {}
            }
        });
    }

    /// Gives a call up because its caller wants no answer any more.
    pub(crate) fn cancel(&self, id: i64) {
        let error = CallError::Cancelled { callee: self.plugin().clone().into() };
        self.give_up(id, error, "cancelled");
    }

    fn give_up(&self, id: i64, error: CallError, reason: &'static str) {
        if self.0.pending.give_up(id, self.0.options.timeouts.linger_ms.get(), error) != GivenUp::Lingering {
            return;
        }
        if self.0.outbox.revoke(id) {
            self.0.pending.ended(id);
            return;
        }
        let params = CancelledParams { request_id: RequestId::Number(id), reason: Some(reason.to_owned()) };
        self.notify_now(method::CANCELLED, &params, true);
    }

    /// Gives up every call that is under way, and tells the other side.
    pub(crate) fn give_up_all(&self, error: &CallError) {
        for id in self.0.pending.open_calls() {
            self.give_up(id, error.clone(), "stopped");
        }
    }

    /// Sends a notification without waiting for room, in order with the data or, as control, before it.
    pub(crate) fn notify_now(&self, method: &str, params: &impl Serialize, control: bool) {
        #[derive(Serialize)]
        struct Notification<'a, P> {
            jsonrpc: &'a str,
            method: &'a str,
            params: &'a P,
        }
        self.push_json(&Notification { jsonrpc: "2.0", method, params }, control);
    }

    fn push_json(&self, message: &impl Serialize, control: bool) {
        with_buffer(|line| {
            if serde_json::to_writer(&mut *line, message).is_err() {
                return;
            }
            line.push(b'\n');
            self.trace(Direction::ToPlugin, Some(line));
            let outbox = &self.0.outbox;
            let pushed = if control { outbox.push_control(line) } else { outbox.push_data(line, None) };
            if pushed == Err(Refused::Full) {
                self.raise(PeerEvent::NotReading);
            }
        });
    }

    /// Answers a request of the other side.
    pub(super) fn answer(&self, id: &RequestId<'_>, outcome: Result<&RawValue, &ErrorObject>) {
        #[derive(Serialize)]
        struct Answer<'a> {
            jsonrpc: &'a str,
            id: &'a RequestId<'a>,
            #[serde(skip_serializing_if = "Option::is_none")]
            result: Option<&'a RawValue>,
            #[serde(skip_serializing_if = "Option::is_none")]
            error: Option<&'a ErrorObject>,
        }
        let (limit, key) = self.outbound_limit();
        let too_large;
        let (result, error) = match outcome {
            Ok(result) if result.get().len() + 64 > limit => {
                let message = format!("the result has {} bytes, the limit is {limit} ({key})", result.get().len());
                too_large = ErrorObject::of(Kind::TooLarge, message);
                (None, Some(&too_large))
            }
            Ok(result) => (Some(result), None),
            Err(error) => (None, Some(error)),
        };
        self.push_json(&Answer { jsonrpc: "2.0", id, result, error }, false);
    }

    fn outbound_limit(&self) -> (usize, &'static str) {
        let limits = &self.0.options.limits;
        if self.0.is_lemon.load(Ordering::Relaxed) {
            (limits.outbound_message_bytes, "limits.outbound_message_bytes")
        } else {
            (limits.foreign_outbound_message_bytes, "limits.foreign_outbound_message_bytes")
        }
    }

    /// The context of the call that a request of the other side says it acts for.
    pub(crate) fn context(&self, call: i64) -> Option<CallContext> {
        self.0.pending.context(call)
    }

    /// Waits for the next event.
    pub(crate) async fn event(&self) -> PeerEvent {
        loop {
            let notified = self.0.raise.notified();
            let raised = self.0.raised.load(Ordering::Acquire);
            if let Some(event) = PeerEvent::ALL.into_iter().find(|event| raised & *event as u32 != 0) {
                self.0.raised.fetch_and(!(event as u32), Ordering::AcqRel);
                return event;
            }
            notified.await;
        }
    }

    pub(crate) fn raise(&self, event: PeerEvent) {
        self.0.raised.fetch_or(event as u32, Ordering::AcqRel);
        self.0.raise.notify_one();
    }

    /// Raises that a request was answered: now and then, as it wakes the process's owner, and one answer shows no more
    /// than those around it.
    pub(super) fn replied(&self) {
        const EVERY_MS: u64 = 1000;
        let Heard { last, tell_reply, .. } = &self.0.heard;
        let now = last.load(Ordering::Relaxed);
        if now >= tell_reply.load(Ordering::Relaxed) {
            tell_reply.store(now + EVERY_MS, Ordering::Relaxed);
            self.raise(PeerEvent::GoodReply);
        }
    }

    /// Lets the writer write what waits and close stdin.
    pub(crate) fn finish_writing(&self) {
        self.0.outbox.finish();
    }

    /// Settles every call with `error` and ends the tasks, whatever they are doing.
    pub(crate) fn close(&self, error: CallError) {
        self.closing();
        self.0.pending.close(error);
        self.0.outbox.close();
        self.0.inbound.cancel_all();
        self.0.pipes.get().into_iter().flatten().for_each(AbortHandle::abort);
        self.0.tasks.close();
    }

    /// Waits until no call is under way.
    pub(crate) async fn idle(&self) {
        self.0.pending.idle().await;
    }

    pub(crate) fn noise(&self) -> NoiseReport {
        self.0.noise.report()
    }

    /// Calls under way, and given-up ones that may still be running.
    pub(crate) fn load(&self) -> (usize, usize) {
        self.0.pending.counts()
    }

    pub(crate) fn abandoned(&self) -> u32 {
        self.0.pending.abandoned()
    }

    pub(crate) fn outbox_bytes(&self) -> usize {
        self.0.outbox.waiting()
    }

    /// How long the process has written nothing.
    pub(crate) fn silence(&self) -> Duration {
        self.0.heard.silence()
    }

    pub(super) fn trace(&self, direction: Direction, line: Option<&[u8]>) {
        if let (Some(tracer), Some(line)) = (&self.0.options.tracer, line) {
            tracer.line(self.plugin(), self.generation(), direction, line);
        }
    }

    async fn keep_time(&self) {
        while let Some(overdue) = self.0.pending.overdue().await {
            // Calls of a dead process are left to its end, which knows the reason.
            if self.0.options.control.as_ref().is_some_and(|control| control.try_exited().is_some()) {
                continue;
            }
            for Overdue { id, method, after, idle, noise_before, sent } in overdue {
                let dropped = self.0.noise.total() - noise_before;
                let plugin = self.plugin().clone();
                let error = if sent {
                    CallError::Timeout { callee: plugin.into(), method, after, idle, dropped }
                } else {
                    let waiting = self.0.outbox.waiting();
                    let reason = format!("it has yet to read {waiting} bytes (limits.outbox_soft_bytes)");
                    CallError::Unsent { plugin, after, reason }
                };
                self.give_up(id, error, "timeout");
            }
            if self.0.pending.abandoned() > 0 {
                self.raise(PeerEvent::Abandoned);
            }
        }
    }
}

/// Comes when the caller wants no answer any more.
async fn cancelled(cancel: Option<&CancellationToken>) {
    match cancel {
        Some(cancel) => cancel.cancelled().await,
        None => std::future::pending().await,
    }
}

/// A call that has an id and may be sent.
struct Opened<'a> {
    guard: GiveUp<'a>,
    outcome: oneshot::Receiver<Outcome>,
    cancel: Option<CancellationToken>,
    control: bool,
}

/// Cancels the call when its caller is dropped before the outcome.
struct GiveUp<'a> {
    peer: &'a Peer,
    id: i64,
    armed: bool,
}

impl GiveUp<'_> {
    fn settled(mut self, outcome: Result<Outcome, oneshot::error::RecvError>) -> Outcome {
        self.armed = false;
        // The sender is dropped without an outcome only when the whole peer is.
        outcome.unwrap_or_else(|_| Err(CallError::ShuttingDown { plugin: self.peer.plugin().clone() }))
    }
}

impl Drop for GiveUp<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.peer.cancel(self.id);
        }
    }
}

#[cfg(test)]
#[path = "peer_tests.rs"]
mod tests;
