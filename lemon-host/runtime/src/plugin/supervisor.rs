//! The handle of one plugin's actor: commands go in, snapshots and the process that takes calls come out.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use lemon_process::stderr::StderrTail;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::actor::Actor;
use super::generation::Generation;
use super::live::{Live, Offer, ToolList};
use super::spec::PluginSpec;
use super::state::{Command, CommandError, Event, StateKind};
use super::watch::stderr_text;
use crate::error::{ProcessEnd, StartError};
use crate::host::Core;
use crate::report::ProcessStatus;
use crate::wire::{Peer, PeerEvent};

/// The handle of one plugin's actor.
pub(crate) struct Supervisor {
    inbox: mpsc::Sender<Message>,
    snapshot: watch::Receiver<Snapshot>,
    offered: Arc<Offered>,
    /// A host that is dropped without a shutdown ends its plugins all the same.
    _alive: DropGuard,
}

/// What calls and lists take without asking the actor, which alone changes it.
#[derive(Default)]
pub(super) struct Offered {
    live: RwLock<Option<Arc<Live>>>,
    tools: RwLock<Option<Arc<ToolList>>>,
}

impl Offered {
    pub(super) fn live(&self) -> Option<Arc<Live>> {
        self.live.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_live(&self, live: Option<Arc<Live>>) {
        *self.live.write().unwrap_or_else(PoisonError::into_inner) = live;
    }

    fn tools(&self) -> Option<Arc<ToolList>> {
        self.tools.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_tools(&self, tools: Option<Arc<ToolList>>) {
        *self.tools.write().unwrap_or_else(PoisonError::into_inner) = tools;
    }
}

/// What there is to see of a plugin.
#[derive(Clone, Default)]
pub(crate) struct Snapshot {
    pub(crate) state: StateKind,
    pub(crate) generation: Generation,
    pub(crate) failure: Option<StartError>,
    pub(crate) retry_in: Option<Duration>,
    pub(crate) restarts: u32,
    pub(crate) process: Option<ProcessView>,
}

/// What there is to see of a process.
#[derive(Clone)]
pub(crate) struct ProcessView {
    pub(crate) pid: u32,
    pub(crate) started: SystemTime,
    /// From the spawn to the end of the handshake.
    pub(crate) ready_after: Option<Duration>,
    pub(crate) peer: Peer,
    pub(crate) stderr: StderrTail,
}

impl ProcessView {
    /// The process as a report shows it.
    pub(super) fn status(&self) -> ProcessStatus {
        let (calls, lingering) = self.peer.load();
        ProcessStatus {
            pid: self.pid,
            started: self.started,
            ready_after_ms: self.ready_after,
            calls,
            lingering,
            abandoned: self.peer.abandoned(),
            outbox_bytes: self.peer.outbox_bytes(),
            noise: self.peer.noise(),
            stderr: stderr_text(&self.stderr),
        }
    }
}

/// What reaches the actor.
pub(super) enum Message {
    Command(Command, oneshot::Sender<Result<(), CommandError>>),
    /// A call wants the plugin; answered when the machine has taken it in.
    Demand(oneshot::Sender<()>),
    ShutDown(oneshot::Sender<()>),
    Permit(Generation, OwnedSemaphorePermit),
    Handshaken(Generation, Result<Offer, StartError>),
    Lost(Generation, ProcessEnd),
    Peer(Generation, PeerEvent),
    Listed(Generation, Option<ToolList>),
    Event(Event),
}

impl Supervisor {
    /// Starts the plugin. `cwd` is where it runs if its spec does not say.
    pub(crate) fn start(spec: Arc<PluginSpec>, cwd: PathBuf, core: Arc<Core>) -> Self {
        /// Messages that wait for the actor; its tasks wait when it is full.
        const INBOX: usize = 64;
        let (sender, inbox) = mpsc::channel(INBOX);
        let (publisher, snapshot) = watch::channel(Snapshot::default());
        let offered = Arc::new(Offered::default());
        let alive = CancellationToken::new();
        let actor = Actor::new(spec, (cwd, core), inbox, sender.clone(), publisher, offered.clone(), alive.clone());
        tokio::spawn(actor.run());
        Self { inbox: sender, snapshot, offered, _alive: alive.drop_guard() }
    }

    /// Carries a command out; returns when it has taken effect.
    pub(crate) async fn command(&self, command: Command) -> Result<(), CommandError> {
        let (sender, receiver) = oneshot::channel();
        let _ = self.inbox.send(Message::Command(command, sender)).await;
        receiver.await.unwrap_or(Err(CommandError::ShuttingDown))
    }

    /// Ends all processes and the actor.
    pub(crate) async fn shut_down(&self) {
        let (sender, receiver) = oneshot::channel();
        let _ = self.inbox.send(Message::ShutDown(sender)).await;
        let _ = receiver.await;
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let snapshot = self.snapshot.borrow().clone();
        if self.snapshot.has_changed().is_err() && snapshot.state != StateKind::Dormant {
            // The actor is gone and did not come to its end.
            return Snapshot { state: StateKind::Failed, failure: Some(StartError::Internal), ..snapshot };
        }
        snapshot
    }

    /// Waits until the plugin is ready, or is not about to be.
    pub(crate) async fn at_rest(&self) -> Snapshot {
        let mut snapshot = self.snapshot.clone();
        match snapshot.wait_for(|snapshot| snapshot.state.is_at_rest()).await {
            Ok(snapshot) => snapshot.clone(),
            Err(_) => self.snapshot(),
        }
    }

    /// What the plugin offers, or offered before it failed.
    pub(crate) fn tools(&self) -> Option<Arc<ToolList>> {
        self.offered.tools()
    }

    /// The process that takes calls now.
    pub(crate) fn live(&self) -> Option<Arc<Live>> {
        self.offered.live()
    }

    /// The process that takes calls; a plugin that is not running is started if that is allowed.
    pub(crate) async fn demand(&self) -> Result<Arc<Live>, Snapshot> {
        if let Some(live) = self.live() {
            return Ok(live);
        }
        let (sender, receiver) = oneshot::channel();
        let _ = self.inbox.send(Message::Demand(sender)).await;
        let _ = receiver.await;
        let snapshot = self.at_rest().await;
        self.live().ok_or(snapshot)
    }
}
