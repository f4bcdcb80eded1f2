//! One session of an agent: where it works, and the state that plugins mirror.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use serde_json::{Map, Value};

use crate::catalog::{ToolFilter, ToolInfo};
use crate::error::CallError;
use crate::host::{Host, HostInner};
use crate::pipeline::Call;

/// Tells sessions of one host apart without looking at their ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SessionKey(pub(crate) u64);

/// What a session is made of.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SessionOptions {
    /// The session's id; a random one if there is none.
    pub id: Option<String>,
    /// Where the session works; the host's folder if there is none.
    pub cwd: Option<PathBuf>,
    /// What kind of session it is.
    pub scope: String,
    /// Tools that this session does not see, beside those that the host hides from all.
    pub filter: ToolFilter,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self { id: None, cwd: None, scope: "main".to_owned(), filter: ToolFilter::default() }
    }
}

impl SessionOptions {
    /// Gives the session an id of the caller's choice.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Says where the session works.
    #[must_use]
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    /// Says what kind of session it is; `main` by default.
    #[must_use]
    pub fn scope(mut self, scope: impl Into<String>) -> Self {
        self.scope = scope.into();
        self
    }

    /// Hides tools from this session.
    #[must_use]
    pub fn filter(mut self, filter: ToolFilter) -> Self {
        self.filter = filter;
        self
    }
}

/// One session. Clones are the same session; it ends with [`close`](Self::close) or with its host.
#[derive(Clone)]
pub struct Session(Arc<Inner>);

struct Inner {
    host: Weak<HostInner>,
    key: SessionKey,
    id: String,
    cwd: PathBuf,
    scope: String,
    filter: ToolFilter,
    state: Mutex<State>,
    /// The state's version, so that a call need not look at the state to know that nothing has changed.
    version: AtomicU64,
    closed: AtomicBool,
}

/// The state and the last changes that led to it, one a version.
#[derive(Default)]
struct State {
    values: Map<String, Value>,
    version: u64,
    changes: VecDeque<Map<String, Value>>,
}

/// Changes that are remembered; a plugin that missed more than these gets the whole state.
const REMEMBERED: usize = 64;

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("id", &self.0.id).field("cwd", &self.0.cwd).finish_non_exhaustive()
    }
}

impl Session {
    pub(crate) fn new(host: &Arc<HostInner>, key: SessionKey, options: SessionOptions) -> Self {
        let cwd = options.cwd.unwrap_or_else(|| host.cwd().to_owned());
        Self(Arc::new(Inner {
            host: Arc::downgrade(host),
            key,
            id: options.id.unwrap_or_else(crate::random::id),
            cwd,
            scope: options.scope,
            filter: options.filter,
            state: Mutex::default(),
            version: AtomicU64::new(0),
            closed: AtomicBool::new(false),
        }))
    }

    pub(crate) fn key(&self) -> SessionKey {
        self.0.key
    }

    pub(crate) fn host(&self) -> Option<Host> {
        self.0.host.upgrade().map(Host::from_inner)
    }

    /// The session's id.
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// Where the session works.
    pub fn cwd(&self) -> &Path {
        &self.0.cwd
    }

    /// What kind of session it is.
    pub fn scope(&self) -> &str {
        &self.0.scope
    }

    pub(crate) fn filter(&self) -> &ToolFilter {
        &self.0.filter
    }

    /// The tools that this session can call, in order of precedence.
    pub fn tools(&self) -> Vec<ToolInfo> {
        let Some(host) = self.host() else { return Vec::new() };
        let catalog = host.catalog();
        let visible = catalog.entries().filter(|entry| entry.hidden_by(&self.0.filter).is_none());
        visible.map(|entry| entry.info()).collect()
    }

    /// A call of the tool of that name. Nothing happens until it is awaited.
    ///
    /// `arguments` is a JSON object, as text. It is held against the tool's schema; a value of another type that
    /// plainly stands for one of the right type is made that, all else reaches the tool as it was written.
    pub fn call(&self, tool: impl Into<String>, arguments: impl Into<String>) -> Call {
        Call::new(self.clone(), tool.into(), arguments.into())
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state and its version.
    pub fn state(&self) -> (Map<String, Value>, u64) {
        let state = self.locked();
        (state.values.clone(), state.version)
    }

    /// Changes the state; null removes a member. Plugins learn of it with the next call that they get.
    pub fn set_state(&self, changes: Map<String, Value>) {
        let mut state = self.locked();
        for (key, value) in &changes {
            match value {
                Value::Null => state.values.remove(key),
                value => state.values.insert(key.clone(), value.clone()),
            };
        }
        state.version += 1;
        self.0.version.store(state.version, Ordering::Release);
        state.changes.push_back(changes);
        if state.changes.len() > REMEMBERED {
            state.changes.pop_front();
        }
    }

    /// How often the state has changed.
    pub(crate) fn version(&self) -> u64 {
        self.0.version.load(Ordering::Acquire)
    }

    /// The changes after a version, each with the version that it led to; none if they are not all remembered.
    pub(crate) fn changes_since(&self, version: u64) -> Option<Vec<(u64, Map<String, Value>)>> {
        let state = self.locked();
        let missed = usize::try_from(state.version.saturating_sub(version)).unwrap_or(usize::MAX);
        let skip = state.changes.len().checked_sub(missed)?;
        Some((version + 1..).zip(state.changes.iter().skip(skip).cloned()).collect())
    }

    /// Ends the session: plugins are told, and processes that served it alone are ended. Calls are refused from now on.
    pub async fn close(&self) {
        self.0.closed.store(true, Ordering::Release);
        if let Some(host) = self.host() {
            host.close_session(self).await;
        }
    }

    /// Whether the session is over.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.closed.load(Ordering::Acquire)
    }

    /// The host, or the error of a call after its end.
    pub(crate) fn living_host(&self) -> Result<Host, CallError> {
        let host = self.host().ok_or_else(|| self.over())?;
        self.check_open(&host)?;
        Ok(host)
    }

    /// Refuses a call after the session's end, or that of its host.
    pub(crate) fn check_open(&self, host: &Host) -> Result<(), CallError> {
        if self.is_closed() || host.is_ending() { Err(self.over()) } else { Ok(()) }
    }

    fn over(&self) -> CallError {
        CallError::SessionOver { session: self.0.id.clone() }
    }
}
