//! The actor that owns a plugin's processes: it feeds the [`Machine`] and carries out what that decides.
//!
//! Everything that happens to a plugin arrives in one inbox, tagged with its generation. Slow work (a handshake, an
//! end, a list) is done by tasks that report back; the actor itself waits for its inbox only.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use lemon_process::stderr::StderrTail;
use lemon_process::{Control, Grace};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::generation::Generation;
use super::handshake::Handshake;
use super::launch::{self, Started};
use super::live::{Live, Offer, ToolList};
use super::machine::Machine;
use super::spec::PluginSpec;
use super::state::{CommandError, Effect, Event, Manner, StateKind, TicketId};
use super::supervisor::{Message, ProcessView, Snapshot};
use super::watch::{stderr_text, watch_process};
use crate::catalog::listing;
use crate::error::{CallError, ProcessEnd, StartError};
use crate::event;
use crate::host::Core;
use crate::wire::{CallOptions, Peer, PeerEvent, PluginApiClient};

/// How long a process that did not get ready has to go when its input is closed.
const BRIEF: Duration = Duration::from_millis(200);
/// How often a ready plugin's health is looked at.
const CHECKUP: Duration = Duration::from_secs(5);

struct Process {
    control: Control,
    peer: Peer,
    stderr: StderrTail,
    started: Instant,
    started_at: SystemTime,
    ready_after: Option<Duration>,
    live: Option<Arc<Live>>,
    stderr_task: JoinHandle<()>,
    listing: Listing,
    pinging: bool,
}

/// Whether the tools are being listed again.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Listing {
    Current,
    UnderWay,
    /// They changed once more in the meantime.
    UnderWayAndStale,
}

pub(super) struct Actor {
    spec: Arc<PluginSpec>,
    core: Arc<Core>,
    machine: Machine,
    inbox: mpsc::Receiver<Message>,
    sender: mpsc::Sender<Message>,
    publisher: watch::Sender<Snapshot>,
    live: Arc<RwLock<Option<Arc<Live>>>>,
    processes: HashMap<Generation, Process>,
    /// Generations that wait for their turn to be started.
    unborn: HashSet<Generation>,
    tickets: HashMap<TicketId, oneshot::Sender<Result<(), CommandError>>>,
    last_ticket: u64,
    is_ending: bool,
    alive: CancellationToken,
    /// Those who wait for the end.
    ending: Vec<oneshot::Sender<()>>,
}

impl Actor {
    /// An actor that has begun to start its plugin.
    pub(super) fn new(
        spec: Arc<PluginSpec>,
        core: Arc<Core>,
        inbox: mpsc::Receiver<Message>,
        sender: mpsc::Sender<Message>,
        publisher: watch::Sender<Snapshot>,
        live: Arc<RwLock<Option<Arc<Live>>>>,
        alive: CancellationToken,
    ) -> Self {
        let mut actor = Self {
            spec,
            core,
            machine: Machine::new(crate::random::fraction),
            inbox,
            sender,
            publisher,
            live,
            processes: HashMap::new(),
            unborn: HashSet::new(),
            tickets: HashMap::new(),
            last_ticket: 0,
            is_ending: false,
            ending: Vec::new(),
            alive,
        };
        // Whoever looks at the plugin from now on sees that it is being started.
        actor.feed(Event::Demand);
        actor.publish();
        actor
    }

    pub(super) async fn run(mut self) {
        let mut checkup = tokio::time::interval(CHECKUP);
        checkup.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while !self.is_ending || !self.processes.is_empty() || self.machine.state() != StateKind::Dormant {
            tokio::select! {
                message = self.inbox.recv() => match message {
                    Some(message) => self.message(message),
                    None => break,
                },
                _ = checkup.tick() => self.checkup(),
                () = self.alive.cancelled(), if !self.is_ending => self.shut_down(),
            }
            self.publish();
        }
        for waiting in self.ending.drain(..) {
            let _ = waiting.send(());
        }
    }

    fn message(&mut self, message: Message) {
        match message {
            Message::Command(command, sender) => {
                self.last_ticket += 1;
                let ticket = TicketId(self.last_ticket);
                self.tickets.insert(ticket, sender);
                self.feed(Event::Command(command, ticket));
            }
            Message::Demand(sender) => {
                self.feed(Event::Demand);
                self.publish();
                let _ = sender.send(());
            }
            Message::ShutDown(sender) => {
                self.ending.push(sender);
                self.shut_down();
            }
            Message::Permit(generation, permit) => self.launch(generation, permit),
            Message::Handshaken(generation, outcome) => self.handshaken(generation, outcome),
            Message::Lost(generation, end) => self.lost(generation, end),
            Message::Peer(generation, event) => self.peer_event(generation, event),
            Message::Listed(generation, tools) => self.listed(generation, tools),
            Message::Event(event) => {
                if let Event::PingAnswered(generation) | Event::PingLate(generation) = &event
                    && let Some(process) = self.processes.get_mut(generation)
                {
                    process.pinging = false;
                }
                if let Event::Ended(generation) = &event
                    && let Some(process) = self.processes.remove(generation)
                {
                    process.stderr_task.abort();
                }
                self.feed(event);
            }
        }
    }

    fn shut_down(&mut self) {
        self.is_ending = true;
        self.feed(Event::ShutDown);
    }

    fn feed(&mut self, event: Event) {
        for effect in self.machine.on(event, Instant::now()) {
            self.carry_out(effect);
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Launch(generation) => {
                self.unborn.insert(generation);
                let (permits, sender) = (self.core.starts.clone(), self.sender.clone());
                tokio::spawn(async move {
                    if let Ok(permit) = permits.acquire_owned().await {
                        let _ = sender.send(Message::Permit(generation, permit)).await;
                    }
                });
            }
            Effect::Switch(generation) => {
                let live = self.processes.get(&generation).and_then(|process| process.live.clone());
                self.set_live(live);
            }
            Effect::Drain(generation) => {
                if self.live_generation() == Some(generation) {
                    self.set_live(None);
                }
                let Some(process) = self.processes.get(&generation) else {
                    return;
                };
                let (peer, patience) = (process.peer.clone(), self.core.timeouts.drain_ms.get());
                self.report(async move {
                    let _ = tokio::time::timeout(patience, peer.idle()).await;
                    Event::Drained(generation)
                });
            }
            Effect::End(generation, manner) => self.end(generation, manner),
            Effect::Wait(generation, delay) => self.report(async move {
                tokio::time::sleep(delay).await;
                Event::BackoffOver(generation)
            }),
            Effect::Resolve(ticket, verdict) => {
                if let Some(sender) = self.tickets.remove(&ticket) {
                    let _ = sender.send(verdict.map_err(|refusal| refusal.0));
                }
            }
        }
    }

    /// Runs a task whose outcome is an event for the machine.
    fn report(&self, task: impl Future<Output = Event> + Send + 'static) {
        let sender = self.sender.clone();
        tokio::spawn(async move {
            let event = task.await;
            let _ = sender.send(Message::Event(event)).await;
        });
    }

    fn launch(&mut self, generation: Generation, permit: OwnedSemaphorePermit) {
        if !self.unborn.remove(&generation) {
            return;
        }
        let started = match launch::start(&self.spec, generation, &self.core) {
            Ok(started) => started,
            Err(error) => return self.feed(Event::StartFailed(generation, error)),
        };
        let Started { control, peer, stderr, stderr_task, stderr_done } = started;
        let process = Process {
            control: control.clone(),
            peer: peer.clone(),
            stderr: stderr.clone(),
            started: Instant::now(),
            started_at: SystemTime::now(),
            ready_after: None,
            live: None,
            stderr_task,
            listing: Listing::Current,
            pinging: false,
        };
        self.processes.insert(generation, process);
        self.feed(Event::Spawned(generation));
        tokio::spawn(watch_process(generation, peer.clone(), control, stderr_done, self.sender.clone()));
        let (spec, core, sender) = (self.spec.clone(), self.core.clone(), self.sender.clone());
        tokio::spawn(async move {
            let default = if spec.is_launcher() { core.timeouts.start_launcher_ms } else { core.timeouts.start_ms };
            let allowed = spec.start_timeout.unwrap_or(default.get());
            let handshake = Handshake {
                spec: &spec,
                limits: &core.limits,
                client: &core.client,
                secrets: &*core.secrets,
                redactor: &core.redactor,
                deadline: Instant::now() + allowed,
                allowed,
            };
            let outcome = handshake.run(&peer, || stderr_text(&stderr)).await;
            drop(permit);
            let _ = sender.send(Message::Handshaken(generation, outcome)).await;
        });
    }

    fn handshaken(&mut self, generation: Generation, outcome: Result<Offer, StartError>) {
        let Some(process) = self.processes.get_mut(&generation) else {
            return;
        };
        match outcome {
            Ok(offer) => {
                process.ready_after = Some(process.started.elapsed());
                if generation == self.machine.current() {
                    self.machine.set_exclusive(offer.exclusive);
                }
                process.live = Some(Arc::new(Live::new(generation, process.peer.clone(), offer)));
                self.feed(Event::Ready(generation));
            }
            Err(error) => self.feed(Event::StartFailed(generation, error)),
        }
    }

    fn lost(&mut self, generation: Generation, end: ProcessEnd) {
        let Some(process) = self.processes.get(&generation) else {
            return;
        };
        let stderr = stderr_text(&process.stderr);
        let plugin = self.spec.name.clone();
        process.peer.close(CallError::Crashed { plugin, status: end, stderr: stderr.clone() });
        // A process that is not ready yet is told of by its handshake, which knows what was under way.
        if process.live.is_some() {
            self.feed(Event::Lost(generation, StartError::Crashed { status: end, stderr }));
        }
    }

    fn peer_event(&mut self, generation: Generation, event: PeerEvent) {
        let Some(process) = self.processes.get_mut(&generation) else {
            return;
        };
        match event {
            PeerEvent::GoodReply => self.feed(Event::GoodReply(generation)),
            PeerEvent::ToolsChanged if process.live.is_some() => {
                if process.listing == Listing::Current {
                    self.list_again(generation);
                } else {
                    process.listing = Listing::UnderWayAndStale;
                }
            }
            PeerEvent::Abandoned => {
                // An MCP server has no way to tell that a cancelled call ended.
                let tells = process.live.as_ref().is_some_and(|live| live.offer.dialect.is_lemon());
                if tells && process.peer.abandoned() >= self.core.limits.abandoned_calls {
                    self.feed(Event::TooManyAbandoned(generation));
                }
            }
            PeerEvent::Flood => {
                let noise = process.peer.noise();
                let first = noise.first.values().next().cloned().unwrap_or_default();
                let limit = self.core.limits.noise_lines;
                self.give_up(generation, StartError::Noise { lines: noise.total(), limit, first });
            }
            PeerEvent::NotReading => {
                let bytes = process.peer.outbox_bytes();
                self.give_up(generation, StartError::NotReading { bytes });
            }
            PeerEvent::StdoutClosed | PeerEvent::ToolsChanged => {}
        }
    }

    /// A process that is alive and can't be used any more.
    fn give_up(&mut self, generation: Generation, error: StartError) {
        let Some(process) = self.processes.get(&generation) else {
            return;
        };
        let (plugin, state) = (self.spec.name.clone(), StateKind::Stopping);
        process.peer.close(CallError::NotReady { plugin, state, reason: Some(error.to_string()) });
        let event = match process.live {
            Some(_) => Event::Lost(generation, error),
            None => Event::StartFailed(generation, error),
        };
        self.feed(event);
    }

    fn list_again(&mut self, generation: Generation) {
        let Some(process) = self.processes.get_mut(&generation) else {
            return;
        };
        process.listing = Listing::UnderWay;
        let (peer, core, sender) = (process.peer.clone(), self.core.clone(), self.sender.clone());
        tokio::spawn(async move {
            tokio::time::sleep(core.timeouts.list_debounce_ms.get()).await;
            let patience = core.timeouts.start_ms.get();
            let listed = tokio::time::timeout(patience, listing::list_tools(&peer, &core.limits)).await;
            let tools = listed.ok().and_then(Result::ok);
            if tools.is_none() {
                peer.note("list_failed", || "tools/list after a change had no usable answer".to_owned());
            }
            let _ = sender.send(Message::Listed(generation, tools)).await;
        });
    }

    fn listed(&mut self, generation: Generation, tools: Option<ToolList>) {
        let Some(process) = self.processes.get_mut(&generation) else {
            return;
        };
        let stale = process.listing == Listing::UnderWayAndStale;
        process.listing = Listing::Current;
        if let (Some(live), Some(tools)) = (&process.live, tools) {
            live.set_tools(tools);
            self.core.catalog_changed();
            self.core.events.event(&event::Event::ToolsChanged { plugin: self.spec.name.clone() });
        }
        if stale {
            self.list_again(generation);
        }
    }

    fn end(&mut self, generation: Generation, manner: Manner) {
        if self.live_generation() == Some(generation) {
            self.set_live(None);
        }
        let Some(process) = self.processes.get(&generation) else {
            // It was never born.
            self.unborn.remove(&generation);
            return self.feed(Event::Ended(generation));
        };
        let (peer, control, live) = (process.peer.clone(), process.control.clone(), process.live.clone());
        let (core, plugin) = (self.core.clone(), self.spec.name.clone());
        let reason = match () {
            () if self.is_ending => "exit",
            () if generation != self.machine.current() => "reload",
            () if self.machine.is_restarting() => "restart",
            () => "stop",
        };
        self.report(async move {
            let error = CallError::ShuttingDown { plugin };
            peer.closing();
            peer.settle_all(&error);
            match manner {
                Manner::Kill => {
                    peer.close(error);
                    control.kill().await;
                }
                Manner::Brief => {
                    control.closing_stdin();
                    peer.finish_writing();
                    control.end(Grace { eof: BRIEF, term: core.timeouts.term_ms.get() }).await;
                    peer.close(error);
                }
                Manner::Polite => {
                    if live.is_some_and(|live| live.offer.dialect.is_lemon()) {
                        let deadline = Some(core.timeouts.shutdown_ms.get());
                        let options = CallOptions { deadline, control: true };
                        // Whatever it answers, the end comes.
                        let _ = peer.with(options).shutdown(reason).await;
                    }
                    control.closing_stdin();
                    peer.finish_writing();
                    let timeouts = &core.timeouts;
                    control.end(Grace { eof: timeouts.eof_ms.get(), term: timeouts.term_ms.get() }).await;
                    peer.close(error);
                }
            }
            Event::Ended(generation)
        });
    }

    /// Looks after the health of a process that has nothing to do.
    fn checkup(&mut self) {
        let (generation, state) = (self.machine.current(), self.machine.state());
        if !matches!(state, StateKind::Ready | StateKind::Degraded) {
            return;
        }
        let Some(process) = self.processes.get_mut(&generation) else {
            return;
        };
        let (open, _) = process.peer.load();
        if open > 0 || process.pinging {
            return;
        }
        if state == StateKind::Ready && process.peer.silence() < self.core.timeouts.ping_idle_ms.get() {
            return;
        }
        process.pinging = true;
        let (peer, deadline) = (process.peer.clone(), self.core.timeouts.ping_ms.get());
        self.report(async move {
            let options = CallOptions { deadline: Some(deadline), control: true };
            match peer.with(options).ping().await.map_err(crate::wire::call_error) {
                Err(Ok(CallError::Timeout { .. })) => Event::PingLate(generation),
                // Even an error is a sign of life; the end of the process is told elsewhere.
                _ => Event::PingAnswered(generation),
            }
        });
        if state == StateKind::Degraded {
            self.feed(Event::Idle(generation));
        }
    }

    fn live_generation(&self) -> Option<Generation> {
        self.live.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(|live| live.generation)
    }

    fn set_live(&self, live: Option<Arc<Live>>) {
        *self.live.write().unwrap_or_else(PoisonError::into_inner) = live;
        self.core.catalog_changed();
    }

    fn publish(&self) {
        let generation = self.machine.current();
        let failure = self.machine.failure();
        let snapshot = Snapshot {
            state: self.machine.state(),
            generation,
            retry_in: failure.and_then(|(_, at)| at).map(|at| at.saturating_duration_since(Instant::now())),
            failure: failure.map(|(failure, _)| failure.clone()),
            restarts: self.machine.restarts(),
            process: self.processes.get(&generation).map(|process| ProcessView {
                pid: process.control.pid(),
                started: process.started_at,
                ready_after: process.ready_after,
                peer: process.peer.clone(),
                stderr: process.stderr.clone(),
            }),
        };
        let before = {
            let before = self.publisher.borrow();
            (before.state, before.generation)
        };
        let (state, reason) = (snapshot.state, snapshot.failure.as_ref().map(ToString::to_string));
        self.publisher.send_replace(snapshot);
        if before != (state, generation) {
            tracing::debug!(plugin = %self.spec.name, %generation, %state, reason, "state");
            let plugin = self.spec.name.clone();
            self.core.events.event(&event::Event::State { plugin, generation, state, reason });
        }
    }
}
