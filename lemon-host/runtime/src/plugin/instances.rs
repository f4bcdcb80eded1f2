//! One plugin with its processes: one that all sessions share, or one for each session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::generation::Generation;
use super::live::Live;
use super::name::PluginName;
use super::spec::PluginSpec;
use super::state::{Command, CommandError};
use super::supervisor::{Snapshot, Supervisor};
use super::watch::stderr_text;
use crate::catalog::Catalog;
use crate::error::CallError;
use crate::host::Core;
use crate::report::{PluginStatus, PluginText, ProcessStatus};
use crate::session::{Session, SessionKey};

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
    others: HashMap<SessionKey, Arc<Supervisor>>,
}

impl Plugin {
    pub(crate) fn start(spec: PluginSpec, core: Arc<Core>) -> Self {
        let spec = Arc::new(spec);
        let primary = Supervisor::start(spec.clone(), core.clone());
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

    /// The first process, if it is ready.
    pub(crate) fn live(&self) -> Option<Arc<Live>> {
        self.primary.live()
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
            let start = || Arc::new(Supervisor::start(self.spec.clone(), self.core.clone()));
            sessions.others.entry(session.key()).or_insert_with(start).clone()
        };
        own.demand().await.map_err(|snapshot| self.not_ready(snapshot))
    }

    fn not_ready(&self, snapshot: Snapshot) -> CallError {
        let reason = snapshot.failure.as_ref().map(|failure| self.redact(&failure.to_string()));
        CallError::NotReady { plugin: self.name().clone(), state: snapshot.state, reason }
    }

    fn supervisors(&self) -> Vec<Arc<Supervisor>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).others.values().cloned().collect()
    }

    pub(crate) async fn close_session(&self, key: SessionKey) {
        let own = {
            let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
            sessions.others.remove(&key)
        };
        if let Some(live) = self.primary.live() {
            live.close_session(key);
        }
        if let Some(own) = own {
            own.shut_down().await;
        }
    }

    pub(crate) async fn command(&self, command: Command) -> Result<(), CommandError> {
        for other in self.supervisors() {
            other.command(command).await?;
        }
        self.primary.command(command).await
    }

    pub(crate) async fn shut_down(&self) {
        let others = self.supervisors();
        futures_util::future::join_all(others.iter().map(|other| other.shut_down())).await;
        self.primary.shut_down().await;
    }

    pub(crate) fn session_of(&self, generation: Generation, handle: u32) -> Option<Session> {
        let others = self.supervisors();
        let mut lives = others.iter().map(|other| other.live()).chain([self.primary.live()]).flatten();
        lives.find(|live| live.generation == generation)?.session(handle)
    }

    pub(crate) fn status(&self, catalog: &Catalog) -> PluginStatus {
        let snapshot = self.primary.snapshot();
        let live = self.live();
        PluginStatus {
            name: self.name().clone(),
            class: self.spec.class,
            provenance: self.spec.provenance.clone(),
            command: self.spec.command.iter().map(|word| self.redact(word)).collect(),
            state: snapshot.state,
            error: snapshot.failure.as_ref().map(|failure| self.redact(&failure.to_string())),
            failure: snapshot.failure,
            retry_in_ms: snapshot.retry_in,
            restarts: snapshot.restarts,
            generation: snapshot.generation,
            process: snapshot.process.map(|process| {
                let (calls, lingering) = process.peer.load();
                let mut noise = process.peer.noise();
                for first in noise.first.values_mut() {
                    *first = PluginText::new(self.redact(first.raw()));
                }
                ProcessStatus {
                    pid: process.pid,
                    started: process.started,
                    ready_after_ms: process.ready_after,
                    calls,
                    lingering,
                    abandoned: process.peer.abandoned(),
                    outbox_bytes: process.peer.outbox_bytes(),
                    noise,
                    stderr: stderr_text(&process.stderr),
                }
            }),
            server_name: live.as_ref().map(|live| PluginText::new(live.offer.server.name.clone())),
            server_version: live.as_ref().map(|live| PluginText::new(live.offer.server.version.clone())),
            dialect: live.as_ref().map(|live| live.offer.dialect.clone()),
            tools: live.as_ref().map_or(0, |live| live.tools().tools.len()),
            quarantined: catalog.quarantined.get(self.name()).cloned().unwrap_or_default(),
        }
    }
}
