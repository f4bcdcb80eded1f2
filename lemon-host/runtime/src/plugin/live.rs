//! A process that is ready: what it offered, and the sessions that it knows of.

use std::sync::{Arc, Mutex, PoisonError};

use lemon_protocol::{
    Implementation, ProtocolVersion, SessionClosed, SessionDelta, SessionOpen, SessionRef, Tool, method,
};
use rustc_hash::FxHashMap;
use serde::Serialize;

use super::drift::Drift;
use super::generation::Generation;
use super::offers::Listed;
use crate::report::PluginText;
use crate::session::{Session, SessionKey};
use crate::wire::Peer;

/// Which protocol a process speaks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "protocol", content = "version")]
#[non_exhaustive]
pub enum Dialect {
    /// Lemon's, in this version.
    Lemon(ProtocolVersion),
    /// MCP's, in this revision.
    Mcp(String),
}

impl Dialect {
    pub(crate) fn is_lemon(&self) -> bool {
        matches!(self, Self::Lemon(_))
    }
}

/// What a handshake brought.
#[derive(Debug, Clone)]
pub(crate) struct Offer {
    pub(crate) dialect: Dialect,
    pub(crate) server: Implementation,
    pub(crate) multi_session: bool,
    pub(crate) exclusive: bool,
    pub(crate) tools: ToolList,
    /// In what it differs from its manifest, its tools aside.
    pub(crate) drift: Vec<Drift>,
}

/// The tools of a process, and what of its list was not taken.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolList {
    pub(crate) listed: Listed,
    pub(crate) tools: Vec<Arc<Tool>>,
    pub(crate) quarantined: Vec<Quarantined>,
    /// In what the tools differ from those of the manifest.
    pub(crate) drift: Vec<Drift>,
}

/// A tool that is not offered, and why.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Quarantined {
    /// The tool's name, as far as it has one.
    pub tool: PluginText,
    /// What is wrong with it.
    pub reason: PluginText,
}

pub(crate) struct Live {
    pub(crate) generation: Generation,
    pub(crate) peer: Peer,
    pub(crate) offer: Offer,
    sessions: Mutex<Sessions>,
}

#[derive(Default)]
struct Sessions {
    last_handle: u32,
    known: FxHashMap<SessionKey, Known>,
}

struct Known {
    handle: u32,
    /// The version of the state that the process was told; none before the first.
    version: Option<u64>,
    session: Session,
}

impl Live {
    pub(crate) fn new(generation: Generation, peer: Peer, offer: Offer) -> Self {
        Self { generation, peer, offer, sessions: Mutex::default() }
    }

    /// Makes sure that the process knows the session and its state, and gives the session's name on this pipe. None
    /// for MCP servers, which know nothing of sessions.
    ///
    /// The messages are in the outbox before this returns, so they go before the call that they are for.
    pub(crate) fn announce(&self, session: &Session) -> Option<SessionRef> {
        if !self.offer.dialect.is_lemon() {
            return None;
        }
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let Sessions { last_handle, known } = &mut *sessions;
        let known = known.entry(session.key()).or_insert_with(|| {
            *last_handle += 1;
            Known { handle: *last_handle, version: None, session: session.clone() }
        });
        let up_to_date = SessionRef { handle: known.handle, version: known.version };
        if known.version == Some(session.version()) {
            return Some(up_to_date);
        }
        match known.version.and_then(|version| session.changes_since(version)) {
            Some(changes) => {
                for (version, changes) in changes {
                    known.version = Some(version);
                    let delta = SessionDelta { handle: known.handle, version, changes };
                    self.peer.notify_now(method::SESSION, &delta, false);
                }
            }
            None => {
                let (state, version) = session.state();
                known.version = Some(version);
                let open = SessionOpen {
                    handle: known.handle,
                    id: session.id().to_owned(),
                    cwd: session.cwd().to_string_lossy().into_owned(),
                    scope: session.scope().to_owned(),
                    state,
                    version,
                };
                self.peer.notify_now(method::SESSION, &open, false);
            }
        }
        Some(SessionRef { handle: known.handle, version: known.version })
    }

    /// The session that the process knows under a handle.
    pub(crate) fn session(&self, handle: u32) -> Option<Session> {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.known.values().find(|known| known.handle == handle).map(|known| known.session.clone())
    }

    /// Tells the process that a session is over, if it knew it.
    pub(crate) fn close_session(&self, key: SessionKey) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Known { handle, .. }) = sessions.known.remove(&key) {
            self.peer.notify_now(method::SESSION_CLOSED, &SessionClosed { handle }, false);
        }
    }
}
