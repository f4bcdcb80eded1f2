//! The actor that owns a plugin's processes: it feeds the [`Machine`] and carries out what that decides.
//!
//! Everything that happens to a plugin arrives in one inbox, tagged with its generation. Slow work (a handshake, an
//! end, a list) is done by tasks that report back; the actor itself waits for its inbox only.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use lemon_process::stderr::StderrTail;
use lemon_process::{Control, Grace};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::breaker::RestartPolicy;
use super::drift::{self, Drift};
use super::generation::Generation;
use super::handshake::Handshake;
use super::launch::{self, Started};
use super::live::{Live, Offer, ToolList};
use super::machine::Machine;
use super::offers::{self, Pending};
use super::spec::PluginSpec;
use super::state::{Command, CommandError, Effect, Event, Manner, StateKind, TicketId};
use super::supervisor::{Message, Offered, Place, ProcessView, Snapshot, Turn};
use super::watch::{stderr_text, watch_process};
use crate::catalog::listing;
use crate::discovery::BoundEntry;
use crate::error::{CallError, ProcessEnd, StartError};
use crate::event;
use crate::host::Core;
use crate::report::{FailureReport, PluginText};
use crate::wire::{CallOptions, Peer, PeerEvent, PluginApiClient};

/// How long a process that did not get ready has to go when its input is closed.
const BRIEF: Duration = Duration::from_millis(200);
/// How long the log of a process that is gone may take to be written.
const LAST_LINES: Duration = Duration::from_secs(2);
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
    /// What it is made of, if its offer is to be remembered.
    pending: Option<Pending>,
    stderr_task: JoinHandle<()>,
    listing: Listing,
    pinging: bool,
    /// How it ended, once it has.
    ended: Option<(ProcessEnd, PluginText)>,
    /// How it is being ended.
    ending: Option<Manner>,
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
    /// Where it runs if its spec does not say.
    cwd: PathBuf,
    /// The session that it serves alone, if it is a further process of a plugin that serves one at a time.
    session: Option<String>,
    core: Arc<Core>,
    machine: Machine,
    inbox: mpsc::Receiver<Message>,
    sender: mpsc::Sender<Message>,
    publisher: watch::Sender<Snapshot>,
    offered: Arc<Offered>,
    processes: HashMap<Generation, Process>,
    /// Tasks that write what is to be there when the plugin has ended: its log, and its offer.
    last_writes: JoinSet<()>,
    /// The last failure, also when the plugin has come up again since.
    last_failure: Option<FailureReport>,
    /// In what it was told to differ from its manifest.
    told_drift: Vec<Drift>,
    /// Generations that wait for their turn to be started.
    unborn: HashSet<Generation>,
    tickets: HashMap<TicketId, oneshot::Sender<Result<(), CommandError>>>,
    last_ticket: u64,
    is_ending: bool,
    /// It is being found out whether the plugin need run.
    is_undecided: bool,
    alive: CancellationToken,
    /// Those who wait for the end.
    ending: Vec<oneshot::Sender<()>>,
}

impl Actor {
    /// An actor that has begun to start its plugin.
    pub(super) fn new(
        spec: Arc<PluginSpec>,
        (Place { cwd, session }, core): (Place, Arc<Core>),
        inbox: mpsc::Receiver<Message>,
        sender: mpsc::Sender<Message>,
        publisher: watch::Sender<Snapshot>,
        offered: Arc<Offered>,
        alive: CancellationToken,
    ) -> Self {
        let policy = RestartPolicy::new(&core.limits, &core.timeouts);
        let mut actor = Self {
            spec,
            cwd,
            session,
            core,
            machine: Machine::new(policy, crate::random::fraction),
            inbox,
            sender,
            publisher,
            offered,
            processes: HashMap::new(),
            last_writes: JoinSet::new(),
            last_failure: None,
            told_drift: Vec::new(),
            unborn: HashSet::new(),
            tickets: HashMap::new(),
            last_ticket: 0,
            is_ending: false,
            is_undecided: false,
            ending: Vec::new(),
            alive,
        };
        // Whoever looks at the plugin from now on sees that it is being started, or that this is not decided yet.
        if actor.core.lazy_start && actor.session.is_none() && actor.spec.fault.is_none() {
            actor.is_undecided = true;
            actor.find_out();
        } else {
            actor.feed(Event::Demand);
        }
        actor.publish();
        actor
    }

    pub(super) async fn run(mut self) {
        let mut checkup = tokio::time::interval(CHECKUP);
        checkup.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while !self.is_over() {
            tokio::select! {
                message = self.inbox.recv() => match message {
                    Some(message) => self.message(message),
                    None => break,
                },
                _ = checkup.tick() => self.checkup(),
                Some(_) = self.last_writes.join_next() => {}
                () = self.alive.cancelled(), if !self.is_ending => self.shut_down(),
            }
            self.publish();
        }
        for waiting in self.ending.drain(..) {
            let _ = waiting.send(());
        }
    }

    /// Whether it was told to end, and nothing is left: no process, and no line that is not in its log.
    fn is_over(&self) -> bool {
        self.is_ending
            && self.processes.is_empty()
            && self.last_writes.is_empty()
            && self.machine.state() == StateKind::Dormant
    }

    fn message(&mut self, message: Message) {
        match message {
            Message::Command(Command::Start | Command::Restart | Command::Reload, sender) if self.is_ending => {
                let _ = sender.send(Err(CommandError::ShuttingDown));
            }
            Message::Command(command, sender) => {
                self.last_ticket += 1;
                let ticket = TicketId(self.last_ticket);
                self.tickets.insert(ticket, sender);
                self.feed(Event::Command(command, ticket));
                // It offers nothing while it is stopped, also if it did not run.
                if self.machine.state() == StateKind::Dormant {
                    self.set_tools(None);
                }
            }
            Message::Demand(sender) => {
                if !self.is_ending {
                    self.feed(Event::Demand);
                    self.publish();
                }
                let _ = sender.send(());
            }
            Message::ShutDown(sender) => {
                self.ending.push(sender);
                self.shut_down();
            }
            Message::Known(tools) => self.known(tools),
            Message::Turn(generation, turn) => self.launch(generation, turn),
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
                    // Its last lines are still on their way to the log; an escaped process may hold the pipe for ever.
                    let mut logging = process.stderr_task;
                    self.last_writes.spawn(async move {
                        if tokio::time::timeout(LAST_LINES, &mut logging).await.is_err() {
                            logging.abort();
                        }
                    });
                }
                self.feed(event);
            }
        }
    }

    /// Looks for the tools of a plugin that need not run.
    fn find_out(&self) {
        let (spec, cwd, core, sender) = (self.spec.clone(), self.cwd.clone(), self.core.clone(), self.sender.clone());
        tokio::spawn(async move {
            let tools = offers::known(&spec, &cwd, &core).await;
            let _ = sender.send(Message::Known(tools)).await;
        });
    }

    fn known(&mut self, tools: Option<ToolList>) {
        self.is_undecided = false;
        // A call or a command may have been faster.
        if self.is_ending || self.last_ticket > 0 || self.machine.state() != StateKind::Dormant {
            return;
        }
        match tools {
            Some(tools) => self.set_tools(Some(Arc::new(tools))),
            None => self.feed(Event::Demand),
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
                let bound = self.spec.bound.clone();
                let code = self.session.is_none().then(|| (self.spec.clone(), self.cwd.clone(), self.core.clone()));
                tokio::spawn(async move {
                    if let Ok(permit) = permits.acquire_owned().await {
                        let offer = match &code {
                            Some((spec, cwd, core)) => offers::starting(spec, cwd, core).await,
                            None => None,
                        };
                        let fault = still_trusted(bound).await.err();
                        let _ = sender.send(Message::Turn(generation, Turn { permit, offer, fault })).await;
                    }
                });
            }
            Effect::Switch(generation) => {
                let live = self.processes.get(&generation).and_then(|process| process.live.clone());
                // Whoever finds the process finds its tools as well.
                if let Some(live) = &live {
                    self.set_tools(Some(Arc::new(live.offer.tools.clone())));
                }
                self.set_live(live);
            }
            Effect::Drain(generation) => {
                if self.live_generation() == Some(generation) {
                    self.set_live(None);
                }
                // A process that was never born has nothing to finish.
                let peer = self.processes.get(&generation).map(|process| process.peer.clone());
                let patience = self.core.timeouts.drain_ms.get();
                self.report(async move {
                    if let Some(peer) = peer {
                        peer.draining();
                        let _ = tokio::time::timeout(patience, peer.idle()).await;
                    }
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

    fn launch(&mut self, generation: Generation, Turn { permit, offer, fault }: Turn) {
        if !self.unborn.remove(&generation) {
            return;
        }
        if let Some(fault) = fault {
            return self.fail_start(generation, fault);
        }
        let started = match launch::start(&self.spec, generation, &self.cwd, &self.core) {
            Ok(started) => started,
            Err(error) => return self.fail_start(generation, error),
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
            pending: offer,
            stderr_task,
            listing: Listing::Current,
            pinging: false,
            ended: None,
            ending: None,
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
            // It ended when all had been said and before that was taken in.
            Ok(_) if process.ended.is_some() => {
                let ended = process.ended.clone();
                let error =
                    ended.map_or(StartError::Stopped, |(status, stderr)| StartError::Crashed { status, stderr });
                self.fail_start(generation, error);
            }
            Ok(offer) => {
                process.ready_after = Some(process.started.elapsed());
                if let Some(pending) = process.pending.take() {
                    let (spec, cwd, core) = (self.spec.clone(), self.cwd.clone(), self.core.clone());
                    let list = offer.tools.clone();
                    self.last_writes.spawn(async move { pending.remember(&spec, &cwd, &core, list).await });
                }
                let drift = [offer.drift.as_slice(), &offer.tools.drift].concat();
                let exclusive = offer.exclusive;
                let changed = std::mem::replace(&mut process.listing, Listing::Current) != Listing::Current;
                process.live = Some(Arc::new(Live::new(generation, process.peer.clone(), offer)));
                self.tell_drift(&drift);
                self.feed(Event::Ready(generation));
                if generation == self.machine.current() {
                    self.machine.set_exclusive(exclusive);
                }
                if changed {
                    self.list_again(generation);
                }
            }
            Err(error) => self.fail_start(generation, error),
        }
    }

    /// Tells once in what the plugin differs from its manifest, however often it is started.
    fn tell_drift(&mut self, drift: &[Drift]) {
        for drift in drift {
            if !self.told_drift.contains(drift) && self.told_drift.len() < self.core.limits.tools {
                self.told_drift.push(drift.clone());
                let told = event::Event::Drift { plugin: self.spec.name.clone(), drift: drift.clone() };
                self.core.events.event(&told);
            }
        }
    }

    fn fail_start(&mut self, generation: Generation, error: StartError) {
        self.note_failure(generation, &error);
        self.feed(Event::StartFailed(generation, error));
    }

    fn fail_ready(&mut self, generation: Generation, error: StartError) {
        self.note_failure(generation, &error);
        self.feed(Event::Lost(generation, error));
    }

    /// Keeps for reports what a process died of, unless its end is the host's own wish.
    fn note_failure(&mut self, generation: Generation, error: &StartError) {
        let process = self.processes.get(&generation);
        if process.is_some_and(|process| process.ending.is_some()) {
            return;
        }
        let ran_for = process.map(|process| process.started.elapsed());
        self.last_failure = Some(FailureReport::new(error, generation, ran_for));
    }

    fn lost(&mut self, generation: Generation, end: ProcessEnd) {
        let Some(process) = self.processes.get_mut(&generation) else { return };
        let stderr = stderr_text(&process.stderr);
        let plugin = self.spec.name.clone();
        process.ended = Some((end, stderr.clone()));
        process.peer.close(match process.ending {
            // The end was the host's wish and not the call's fault.
            Some(_) => CallError::ShuttingDown { plugin },
            None => CallError::Crashed { plugin, status: end, stderr: stderr.clone() },
        });
        // A process that is not ready yet is told of by its handshake, which knows what was under way.
        if process.live.is_some() {
            self.fail_ready(generation, StartError::Crashed { status: end, stderr });
        }
    }

    fn peer_event(&mut self, generation: Generation, event: PeerEvent) {
        let Some(process) = self.processes.get_mut(&generation) else {
            return;
        };
        match event {
            PeerEvent::GoodReply => self.feed(Event::GoodReply(generation)),
            PeerEvent::ToolsChanged => {
                if process.listing == Listing::Current && process.live.is_some() {
                    self.list_again(generation);
                } else {
                    // Before the plugin is ready its first list is under way.
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
            // The process's watch waits for these.
            PeerEvent::StdoutClosed | PeerEvent::StdinClosed => {}
        }
    }

    /// A process that is alive and can't be used any more.
    fn give_up(&mut self, generation: Generation, error: StartError) {
        let Some(process) = self.processes.get(&generation) else {
            return;
        };
        let (plugin, state) = (self.spec.name.clone(), StateKind::Stopping);
        process.peer.close(CallError::NotReady { plugin, state, reason: Some(error.to_string()) });
        match process.live {
            Some(_) => self.fail_ready(generation, error),
            None => self.fail_start(generation, error),
        }
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
        let is_ready = process.live.is_some();
        if let (true, Some(mut tools)) = (is_ready, tools) {
            if let Some(manifest) = &self.spec.manifest {
                drift::hold_tools(manifest, &mut tools);
            }
            self.tell_drift(&tools.drift);
            if self.live_generation() == Some(generation) {
                self.set_tools(Some(Arc::new(tools)));
            }
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
        let reason = match () {
            () if self.is_ending => "exit",
            () if generation != self.machine.current() => "reload",
            () if self.machine.is_restarting() => "restart",
            () => "stop",
        };
        let Some(process) = self.processes.get_mut(&generation) else {
            // It was never born.
            self.unborn.remove(&generation);
            return self.feed(Event::Ended(generation));
        };
        match process.ending {
            // It is being ended already; that can only be cut short.
            Some(_) if manner != Manner::Kill => return,
            Some(Manner::Kill) => return,
            _ => process.ending = Some(manner),
        }
        let (peer, control, live) = (process.peer.clone(), process.control.clone(), process.live.clone());
        let (core, plugin) = (self.core.clone(), self.spec.name.clone());
        // From here on nothing new is sent, but for what belongs to the end.
        peer.closing();
        peer.give_up_all(&CallError::ShuttingDown { plugin: plugin.clone() });
        self.report(async move {
            let error = CallError::ShuttingDown { plugin };
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
        self.offered.live().map(|live| live.generation)
    }

    /// Replaces the list of tools that stays when the process goes.
    fn set_tools(&self, tools: Option<Arc<ToolList>>) {
        self.offered.set_tools(tools);
        self.core.catalog_changed();
    }

    fn set_live(&self, live: Option<Arc<Live>>) {
        self.offered.set_live(live);
        self.core.catalog_changed();
    }

    fn publish(&self) {
        let generation = self.machine.current();
        let failure = self.machine.failure();
        let snapshot = Snapshot {
            state: self.machine.state(),
            is_undecided: self.is_undecided,
            generation,
            retry_in: failure.and_then(|(_, at)| at).map(|at| at.saturating_duration_since(Instant::now())),
            failure: failure.map(|(failure, _)| failure.clone()),
            restarts: self.machine.restarts(),
            last_failure: self.last_failure.clone(),
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
        let (restarts, retry_in) = (snapshot.restarts, snapshot.retry_in);
        self.publisher.send_replace(snapshot);
        if before != (state, generation) {
            // A plugin that was stopped offers nothing; one that failed still has what it offered, for the error.
            if state == StateKind::Dormant {
                self.set_tools(None);
            }
            tracing::debug!(plugin = %self.spec.name, %generation, %state, reason, "state");
            let plugin = self.spec.name.clone();
            let session = self.session.clone();
            let told = event::Event::State { plugin, session, generation, state, reason, restarts, retry_in };
            self.core.events.event(&told);
        }
    }
}

/// Whether an entry of a project's config is what the user has trusted, this time as well.
async fn still_trusted(bound: Option<Arc<BoundEntry>>) -> Result<(), StartError> {
    let Some(bound) = bound else { return Ok(()) };
    let checked = tokio::task::spawn_blocking(move || bound.check()).await;
    let checked = checked.unwrap_or_else(|_| Err("its files could not be looked at".to_owned()));
    checked.map_err(|reason| StartError::Untrusted { reason })
}
