//! One plugin with its processes: one that all sessions share, or one for each session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::join_all;
use lemon_protocol::manifest::Placeholder;

use super::live::{Live, ToolList};
use super::name::PluginName;
use super::offers::Listed;
use super::spec::PluginSpec;
use super::state::{Command, CommandError};
use super::supervisor::{Place, ProcessView, Snapshot, Supervisor};
use crate::catalog::{Catalog, ToolSource};
use crate::discovery::ManifestFile;
use crate::error::CallError;
use crate::host::Core;
use crate::report::{PluginStatus, PluginText};
use crate::session::{Session, SessionKey};
use crate::wire::Peer;

/// One plugin: its spec and its processes, usually one.
pub(crate) struct Plugin {
    spec: Arc<PluginSpec>,
    core: Arc<Core>,
    primary: Supervisor,
    sessions: Mutex<Sessions>,
}

/// Who uses which process of a plugin that serves one session only.
#[derive(Default)]
struct Sessions {
    /// The session that the first process serves. It is told of no other one, even when this one is over
    /// (LPP-SESS-08); it stays for its list of tools.
    primary: Option<SessionKey>,
    /// The host is at its end: no process is started any more.
    closed: bool,
    others: HashMap<SessionKey, Arc<Supervisor>>,
}

impl Plugin {
    pub(crate) fn start(spec: PluginSpec, core: Arc<Core>) -> Self {
        let spec = Arc::new(spec);
        let primary = Supervisor::start(spec.clone(), Place { cwd: core.cwd.clone(), session: None }, core.clone());
        Self { spec, core, primary, sessions: Mutex::default() }
    }

    pub(crate) fn name(&self) -> &PluginName {
        &self.spec.name
    }

    /// Takes secrets out of a text.
    pub(crate) fn redact(&self, text: &str) -> String {
        self.core.redactor.redact(text).into_owned()
    }

    pub(crate) fn spec(&self) -> &PluginSpec {
        &self.spec
    }

    /// Waits until the first process is ready, or is not about to be.
    pub(crate) async fn at_rest(&self) {
        self.primary.at_rest().await;
    }

    /// Whether it does not run, and its tools are known without it.
    pub(crate) fn is_asleep(&self) -> bool {
        self.primary.live().is_none() && self.tools().is_some_and(|list| list.listed != Listed::Live)
    }

    /// Starts the first process, if there is none. Whether that went well is in the status.
    pub(crate) async fn wake(&self) {
        let _ = self.primary.demand().await;
    }

    /// What the plugin offers, or offered before it failed.
    pub(crate) fn tools(&self) -> Option<Arc<ToolList>> {
        self.primary.tools()
    }

    /// The first process, if it is ready.
    fn live(&self) -> Option<Arc<Live>> {
        self.primary.live()
    }

    /// The process that serves a session, if it is ready and known to be that.
    pub(crate) fn live_now(&self, session: &Session) -> Option<Arc<Live>> {
        let live = self.primary.live()?;
        let serves = || self.sessions.lock().unwrap_or_else(PoisonError::into_inner).primary == Some(session.key());
        (live.offer.multi_session || serves()).then_some(live)
    }

    /// The process that serves a session: one that is shared by all, or one of the session's own.
    pub(crate) async fn live_for(&self, session: &Session) -> Result<Arc<Live>, CallError> {
        let live = self.primary.demand().await.map_err(|snapshot| self.not_ready(snapshot))?;
        if live.offer.multi_session {
            return Ok(live);
        }
        let own = {
            let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
            if *sessions.primary.get_or_insert(session.key()) == session.key() {
                return Ok(live);
            }
            if sessions.closed {
                return Err(CallError::ShuttingDown { plugin: self.name().clone() });
            }
            if live.offer.exclusive {
                let reason =
                    format!("plugin {} is exclusive and serves one session at a time; another one has it", self.name());
                return Err(CallError::Denied { reason: PluginText::new(reason) });
            }
            if session.is_closed() {
                return Err(CallError::SessionOver { session: session.id().to_owned() });
            }
            let start = || {
                let place = Place { cwd: session.cwd().to_owned(), session: Some(session.id().to_owned()) };
                Arc::new(Supervisor::start(self.spec.clone(), place, self.core.clone()))
            };
            sessions.others.entry(session.key()).or_insert_with(start).clone()
        };
        own.demand().await.map_err(|snapshot| self.not_ready(snapshot))
    }

    fn not_ready(&self, snapshot: Snapshot) -> CallError {
        let reason = snapshot.failure.as_ref().map(ToString::to_string);
        CallError::NotReady { plugin: self.name().clone(), state: snapshot.state, reason }
    }

    fn supervisors(&self) -> Vec<Arc<Supervisor>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).others.values().cloned().collect()
    }

    /// Ends what the session had, in a task of its own: whoever closes a session may not wait for that.
    pub(crate) async fn close_session(self: &Arc<Self>, key: SessionKey) {
        let plugin = self.clone();
        let _ = tokio::spawn(async move { plugin.end_session(key).await }).await;
    }

    async fn end_session(&self, key: SessionKey) {
        let (own, was_primary) = {
            let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
            (sessions.others.get(&key).cloned(), sessions.primary == Some(key))
        };
        if let Some(live) = self.primary.live() {
            live.close_session(key);
            // The one process that may run has served its session: the next one gets a fresh process. If that does
            // not get ready, the next call tells.
            if was_primary && live.offer.exclusive && !live.offer.multi_session {
                let _ = self.primary.command(Command::Restart).await;
                self.sessions.lock().unwrap_or_else(PoisonError::into_inner).primary = None;
            }
        }
        if let Some(own) = own {
            // Until it has ended it is among the others, where a shutdown of the host finds it.
            own.shut_down().await;
            self.sessions.lock().unwrap_or_else(PoisonError::into_inner).others.remove(&key);
        }
    }

    /// Carries a command out in all processes. The first error is told, if there is one.
    pub(crate) async fn command(&self, command: Command) -> Result<(), CommandError> {
        let others = self.supervisors();
        let all = others.iter().map(|other| other.command(command));
        let (own, others) = futures_util::future::join(self.primary.command(command), join_all(all)).await;
        own.and(others.into_iter().collect())
    }

    pub(crate) async fn shut_down(&self) {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        let others = self.supervisors();
        let all = others.iter().map(|other| other.shut_down());
        futures_util::future::join(self.primary.shut_down(), join_all(all)).await;
    }

    /// The session that one of this plugin's processes knows under a handle.
    pub(crate) fn session_of(&self, peer: &Peer, handle: u32) -> Option<Session> {
        let others = self.supervisors();
        let mut lives = others.iter().map(|other| other.live()).chain([self.primary.live()]).flatten();
        lives.find(|live| live.peer.is(peer))?.session(handle)
    }

    /// The program and its arguments as they are shown: what differs between sessions is left as it was written.
    fn shown_command(&self) -> Vec<String> {
        let value = |placeholder: Placeholder, manifest: &ManifestFile| {
            Ok::<_, std::convert::Infallible>(match placeholder {
                Placeholder::ExtensionDir => manifest.folder.to_string_lossy().into_owned(),
                other => other.to_string(),
            })
        };
        let Ok(command) = self.spec.argv(value);
        command
    }

    pub(crate) fn status(&self, catalog: &Catalog) -> PluginStatus {
        let snapshot = self.primary.snapshot();
        let live = self.live();
        let quarantined = catalog.quarantined(&ToolSource::of(self));
        // Tools whose names the catalogue refused are among those that were listed well.
        let tools = self
            .tools()
            .map_or(0, |list| (list.tools.len() + list.quarantined.len()).saturating_sub(quarantined.len()));
        PluginStatus {
            name: self.name().clone(),
            class: self.spec.class,
            provenance: self.spec.provenance.clone(),
            command: self.shown_command().iter().map(|word| self.redact(word)).collect(),
            state: snapshot.state,
            error: snapshot.failure.as_ref().map(ToString::to_string),
            failure: snapshot.failure,
            retry_in_ms: snapshot.retry_in,
            restarts: snapshot.restarts,
            last_failure: snapshot.last_failure,
            generation: snapshot.generation,
            process: snapshot.process.as_ref().map(ProcessView::status),
            session_processes: self.supervisors().iter().map(|other| other.of_session()).collect(),
            server_name: live.as_ref().map(|live| PluginText::new(live.offer.server.name.clone())),
            server_version: live.as_ref().map(|live| PluginText::new(live.offer.server.version.clone())),
            dialect: live.as_ref().map(|live| live.offer.dialect.clone()),
            tools,
            listed: self.tools().map(|list| list.listed),
            quarantined,
            manifest: self.spec.manifest.as_ref().map(|manifest| manifest.path.clone()),
            drift: live
                .iter()
                .flat_map(|live| live.offer.drift.clone())
                .chain(self.tools().iter().flat_map(|list| list.drift.clone()))
                .collect(),
        }
    }
}
