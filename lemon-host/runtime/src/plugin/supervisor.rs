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
use super::offers::Pending;
use super::spec::PluginSpec;
use super::state::{Command, CommandError, Event, StateKind};
use super::watch::stderr_text;
use crate::error::{ProcessEnd, StartError};
use crate::host::Core;
use crate::report::{FailureReport, ProcessStatus, SessionProcess};
use crate::wire::{Peer, PeerEvent};

/// The handle of one plugin's actor.
pub(crate) struct Supervisor {
    inbox: mpsc::Sender<Message>,
    snapshot: watch::Receiver<Snapshot>,
    offered: Arc<Offered>,
    session: Option<String>,
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

/// Where a plugin's process runs.
pub(crate) struct Place {
    /// The folder, if its spec does not say.
    pub(crate) cwd: PathBuf,
    /// The id of the session that it serves alone, if it is a further process of a plugin that serves one at a time.
    pub(crate) session: Option<String>,
}

/// What there is to see of a plugin.
#[derive(Clone, Default)]
pub(crate) struct Snapshot {
    pub(crate) state: StateKind,
    /// It is being found out whether the plugin need run.
    pub(crate) is_undecided: bool,
    pub(crate) generation: Generation,
    pub(crate) failure: Option<StartError>,
    pub(crate) retry_in: Option<Duration>,
    pub(crate) restarts: u32,
    pub(crate) last_failure: Option<FailureReport>,
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

/// A start may go on.
pub(super) struct Turn {
    pub(super) permit: OwnedSemaphorePermit,
    /// What the plugin is made of, if its offer is to be remembered.
    pub(super) offer: Option<Pending>,
    /// Why it may not start all the same.
    pub(super) fault: Option<StartError>,
}

/// What reaches the actor.
pub(super) enum Message {
    Command(Command, oneshot::Sender<Result<(), CommandError>>),
    /// A call wants the plugin; answered when the machine has taken it in.
    Demand(oneshot::Sender<()>),
    ShutDown(oneshot::Sender<()>),
    /// The tools that the plugin has without running, if it need not run.
    Known(Option<ToolList>),
    Turn(Generation, Turn),
    Handshaken(Generation, Result<Offer, StartError>),
    Lost(Generation, ProcessEnd),
    Peer(Generation, PeerEvent),
    Listed(Generation, Option<ToolList>),
    Event(Event),
}

impl Supervisor {
    /// Starts the plugin.
    pub(crate) fn start(spec: Arc<PluginSpec>, place: Place, core: Arc<Core>) -> Self {
        /// Messages that wait for the actor; its tasks wait when it is full.
        const INBOX: usize = 64;
        let (sender, inbox) = mpsc::channel(INBOX);
        let (publisher, snapshot) = watch::channel(Snapshot::default());
        let offered = Arc::new(Offered::default());
        let alive = CancellationToken::new();
        let session = place.session.clone();
        let actor = Actor::new(spec, (place, core), inbox, sender.clone(), publisher, offered.clone(), alive.clone());
        tokio::spawn(actor.run());
        Self { inbox: sender, snapshot, offered, session, _alive: alive.drop_guard() }
    }

    /// Carries a command out; returns when it has taken effect.
    pub(crate) async fn command(&self, command: Command) -> Result<(), CommandError> {
        let verdict = ask(&self.inbox, |sender| Message::Command(command, sender)).await;
        verdict.unwrap_or(Err(CommandError::ShuttingDown))
    }

    /// Ends all processes and the actor.
    pub(crate) async fn shut_down(&self) {
        let _ = ask(&self.inbox, Message::ShutDown).await;
    }

    /// The state of a process that serves one session alone.
    pub(crate) fn of_session(&self) -> SessionProcess {
        let snapshot = self.snapshot();
        SessionProcess {
            session: self.session.clone().unwrap_or_default(),
            state: snapshot.state,
            error: snapshot.failure.as_ref().map(ToString::to_string),
            retry_in_ms: snapshot.retry_in,
            restarts: snapshot.restarts,
            last_failure: snapshot.last_failure,
            generation: snapshot.generation,
            process: snapshot.process.as_ref().map(ProcessView::status),
        }
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
        match snapshot.wait_for(|snapshot| snapshot.state.is_at_rest() && !snapshot.is_undecided).await {
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
        let _ = ask(&self.inbox, Message::Demand).await;
        let snapshot = self.at_rest().await;
        self.live().ok_or(snapshot)
    }
}

/// Sends the actor a message and waits for its answer; none if the actor is gone.
async fn ask<T>(inbox: &mpsc::Sender<Message>, message: impl FnOnce(oneshot::Sender<T>) -> Message) -> Option<T> {
    let (sender, mut receiver) = oneshot::channel();
    inbox.send(message(sender)).await.ok()?;
    tokio::select! {
        biased;
        answer = &mut receiver => answer.ok(),
        // A message that is sent in the moment in which the actor ends stays in the inbox, with its way to answer, for
        // as long as there is a handle: that is longer than this waits.
        () = inbox.closed() => receiver.try_recv().ok(),
    }
}

#[cfg(test)]
mod tests {
    use futures_util::poll;

    use super::*;

    #[tokio::test]
    async fn a_message_that_an_actor_at_its_end_never_read_is_not_waited_for() {
        let (sender, mut inbox) = mpsc::channel(1);
        let mut asking = std::pin::pin!(ask(&sender, Message::Demand));
        assert!(poll!(&mut asking).is_pending());
        inbox.close();
        assert_eq!(asking.await, None);
    }

    #[tokio::test]
    async fn what_an_actor_answered_before_its_end_is_heard() {
        let (sender, mut inbox) = mpsc::channel(1);
        let mut asking = std::pin::pin!(ask(&sender, Message::ShutDown));
        assert!(poll!(&mut asking).is_pending());
        let Some(Message::ShutDown(answer)) = inbox.recv().await else { panic!("another message") };
        answer.send(()).unwrap();
        drop(inbox);
        assert_eq!(asking.await, Some(()));
    }
}
