//! Sessions as the host tells of them: a mirror of each one's state, read without asking anybody (LPP-SESS).

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use lemon_protocol::SessionRef;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::connection::Connection;
use crate::host::Host;

/// One conversation of a user. A handle that can be cloned and kept: it is what work in the background belongs to.
#[derive(Clone)]
pub struct Session {
    shared: Arc<Shared>,
}

struct Shared {
    handle: u32,
    connection: Weak<Connection>,
    mirror: RwLock<Mirror>,
    closed: CancellationToken,
}

/// A session as [`Host::session`](crate::Host::session) reads it from the host.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct SessionInfo {
    /// The session's id, the same for all plugins.
    pub id: String,
    /// The session's working directory, absolute.
    pub cwd: PathBuf,
    /// What kind of session it is: `main`, or a name that the embedding program gives.
    pub scope: String,
    /// The session's state.
    pub state: Map<String, Value>,
    /// The state's version, which counts its changes.
    pub version: u64,
}

#[derive(Debug, Default)]
struct Mirror {
    id: String,
    cwd: PathBuf,
    scope: String,
    state: Arc<Map<String, Value>>,
    version: u64,
    freshness: Freshness,
    /// The newest version that was heard of.
    newest: u64,
}

/// Whether the mirror may be used (LPP-SESS-10).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Freshness {
    /// It has every change that was heard of.
    #[default]
    Fresh,
    /// There was a gap in the versions, and the state is being read anew.
    Refreshing,
    /// There was a gap, and the host did not give the state. It is asked again when the session is next heard of.
    Stale,
}

impl Session {
    /// The session's id, the same for all plugins.
    pub fn id(&self) -> String {
        self.read(|mirror| mirror.id.clone())
    }

    /// The session's working directory, absolute.
    pub fn cwd(&self) -> PathBuf {
        self.read(|mirror| mirror.cwd.clone())
    }

    /// What kind of session it is: `main`, or a name that the embedding program gives.
    pub fn scope(&self) -> String {
        self.read(|mirror| mirror.scope.clone())
    }

    /// The whole state as the host has last sent it; none while a change is missing and the state is read anew.
    pub fn state(&self) -> Option<Arc<Map<String, Value>>> {
        self.read(|mirror| (mirror.freshness == Freshness::Fresh).then(|| mirror.state.clone()))
    }

    /// One member of the state; none if it is absent, is not a `T`, or the state is being read anew.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        self.state().and_then(|state| T::deserialize(state.get(name)?).ok())
    }

    /// The state's version, which counts its changes.
    pub fn version(&self) -> u64 {
        self.read(|mirror| mirror.version)
    }

    /// Whether the session is still open.
    pub fn is_open(&self) -> bool {
        !self.shared.closed.is_cancelled()
    }

    /// Waits for the session's end, or the plugin's.
    pub async fn closed(&self) {
        self.shared.closed.cancelled().await;
    }

    /// The host, asked on behalf of the session and not of a call: for work in the background.
    pub fn host(&self) -> Host {
        Host::of_session(self.clone())
    }

    pub(crate) fn connection(&self) -> Option<Arc<Connection>> {
        self.shared.connection.upgrade()
    }

    pub(crate) fn reference(&self) -> SessionRef {
        SessionRef { handle: self.shared.handle, version: None }
    }

    pub(crate) fn token(&self) -> &CancellationToken {
        &self.shared.closed
    }

    fn read<T>(&self, get: impl FnOnce(&Mirror) -> T) -> T {
        get(&self.shared.mirror.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write<T>(&self, change: impl FnOnce(&mut Mirror) -> T) -> T {
        change(&mut self.shared.mirror.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes in that a call names this version of the state: a mirror that is older lacks a change (LPP-SESS-04).
    pub(crate) fn heard_of(&self, version: Option<u64>) {
        // What names no version says nothing of changes.
        if self.write(|mirror| mirror.heard_of(version.unwrap_or(0))) {
            tokio::spawn(self.clone().refresh());
        }
    }

    /// Reads the state anew after a gap, until nothing newer was heard of meanwhile.
    async fn refresh(self) {
        const ATTEMPTS: usize = 8;
        let host = self.host();
        for _ in 0..ATTEMPTS {
            let Ok(info) = host.session().await else { break };
            if self.write(|mirror| mirror.read_anew(info)) {
                return;
            }
        }
        self.write(Mirror::give_up);
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("id", &self.id()).field("open", &self.is_open()).finish_non_exhaustive()
    }
}

/// The open sessions of a connection.
#[derive(Default)]
pub(crate) struct Sessions {
    open: Mutex<HashMap<u32, Session>>,
}

/// The params of `lemon/session` in either form.
#[derive(Deserialize)]
#[serde(untagged)]
enum Told {
    Open(lemon_protocol::SessionOpen),
    Delta(lemon_protocol::SessionDelta),
}

impl Sessions {
    /// The open session of that handle.
    pub(crate) fn get(&self, handle: u32) -> Option<Session> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).get(&handle).cloned()
    }

    /// Takes in a `lemon/session`. What can't be read or names no open session is ignored (LPP-SESS-09).
    pub(crate) fn told(&self, params: &RawValue, connection: &Arc<Connection>) {
        match serde_json::from_str(params.get()) {
            Ok(Told::Open(open)) => {
                let mirror = Mirror {
                    id: open.id,
                    cwd: open.cwd.into(),
                    scope: open.scope,
                    state: Arc::new(open.state),
                    version: open.version,
                    freshness: Freshness::Fresh,
                    newest: open.version,
                };
                match self.get(open.handle) {
                    Some(session) => session.write(|old| *old = mirror),
                    None => {
                        let shared = Arc::new(Shared {
                            handle: open.handle,
                            connection: Arc::downgrade(connection),
                            mirror: RwLock::new(mirror),
                            closed: CancellationToken::new(),
                        });
                        let mut sessions = self.open.lock().unwrap_or_else(PoisonError::into_inner);
                        sessions.insert(open.handle, Session { shared });
                    }
                }
            }
            Ok(Told::Delta(delta)) => {
                let Some(session) = self.get(delta.handle) else { return };
                if session.write(|mirror| mirror.change(delta)) {
                    tokio::spawn(session.refresh());
                }
            }
            Err(_) => {}
        }
    }

    /// Takes in a `lemon/session_closed`.
    pub(crate) fn closed(&self, params: &RawValue) {
        let Ok(closed) = serde_json::from_str::<lemon_protocol::SessionClosed>(params.get()) else { return };
        let session = self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&closed.handle);
        if let Some(session) = session {
            session.shared.closed.cancel();
        }
    }

    /// Closes all, at the end of the plugin.
    pub(crate) fn close_all(&self) {
        let sessions = std::mem::take(&mut *self.open.lock().unwrap_or_else(PoisonError::into_inner));
        sessions.values().for_each(|session| session.shared.closed.cancel());
    }
}

impl Mirror {
    /// Changes the state; says whether it has to be read anew from now on.
    fn change(&mut self, delta: lemon_protocol::SessionDelta) -> bool {
        if self.freshness != Freshness::Fresh || delta.version != self.version + 1 {
            return self.heard_of(delta.version);
        }
        (self.version, self.newest) = (delta.version, delta.version);
        let state = Arc::make_mut(&mut self.state);
        for (name, value) in delta.changes {
            if value.is_null() {
                state.remove(&name);
            } else {
                state.insert(name, value);
            }
        }
        false
    }

    /// Notes that there is such a version; says whether the state has to be read anew from now on.
    fn heard_of(&mut self, version: u64) -> bool {
        self.newest = self.newest.max(version);
        let begins = match self.freshness {
            Freshness::Fresh => self.newest > self.version,
            Freshness::Refreshing => false,
            Freshness::Stale => true,
        };
        if begins {
            self.freshness = Freshness::Refreshing;
        }
        begins
    }

    /// Takes in what the host gave; says whether that is all for now.
    fn read_anew(&mut self, info: SessionInfo) -> bool {
        // The host has sent the whole state meanwhile (LPP-SESS-13).
        if self.freshness == Freshness::Fresh {
            return true;
        }
        let SessionInfo { id, cwd, scope, state, version } = info;
        let newest = self.newest.max(version);
        let freshness = if newest > version { Freshness::Refreshing } else { Freshness::Fresh };
        *self = Self { id, cwd, scope, state: Arc::new(state), version, freshness, newest };
        freshness == Freshness::Fresh
    }

    fn give_up(&mut self) {
        if self.freshness == Freshness::Refreshing {
            self.freshness = Freshness::Stale;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn delta(version: u64, changes: Value) -> lemon_protocol::SessionDelta {
        serde_json::from_value(json!({"handle": 1, "version": version, "changes": changes})).unwrap()
    }

    #[test]
    fn members_are_replaced_as_a_whole_and_null_removes_one() {
        let state = json!({"model": {"name": "small", "size": 1}, "draft": "x"}).as_object().cloned().unwrap();
        let mut mirror = Mirror { state: Arc::new(state), ..Mirror::default() };
        assert!(!mirror.change(delta(1, json!({"model": {"name": "large"}, "draft": null}))));
        assert_eq!(Value::Object((*mirror.state).clone()), json!({"model": {"name": "large"}}));
        assert_eq!(mirror.version, 1);
    }

    #[test]
    fn after_a_gap_the_mirror_is_not_used() {
        let mut mirror = Mirror::default();
        assert!(mirror.change(delta(2, json!({"a": 1}))), "it has to be read anew");
        assert!(mirror.freshness == Freshness::Refreshing && mirror.state.is_empty());
        assert!(!mirror.change(delta(3, json!({"a": 2}))), "which is being done already");
        assert_eq!(mirror.newest, 3);
    }

    #[test]
    fn a_mirror_that_could_not_be_read_anew_is_tried_again() {
        let mut mirror = Mirror::default();
        assert!(mirror.heard_of(1), "a call names a version that never came");
        mirror.give_up();
        assert!(mirror.heard_of(1), "and so does the next call");
        mirror.give_up();
        assert!(mirror.change(delta(2, json!({}))), "and a change");
        let info = |version| SessionInfo { version, ..SessionInfo::default() };
        assert!(!mirror.read_anew(info(1)), "something newer is known");
        assert!(mirror.read_anew(info(2)));
        assert_eq!((mirror.version, mirror.freshness), (2, Freshness::Fresh));
        assert!(!mirror.heard_of(2));
    }

    #[test]
    fn what_was_asked_for_before_the_whole_state_came_does_not_replace_it() {
        let mut mirror = Mirror { version: 5, newest: 5, ..Mirror::default() };
        assert!(mirror.read_anew(SessionInfo { version: 4, ..SessionInfo::default() }));
        assert_eq!(mirror.version, 5);
    }
}
