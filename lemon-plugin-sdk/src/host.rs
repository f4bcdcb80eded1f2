//! What a plugin asks of the host (LPP-REV): only what the host offers, on behalf of a call or of a session.

use std::sync::Arc;

use lemon_protocol::{ErrorObject, RequestId, SessionRef, meta, method};
use serde::de::DeserializeOwned;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use tokio_util::sync::CancellationToken;

use crate::connection::{Connection, message, outbox::Unsent};
use crate::context::Call;
use crate::error::HostError;
use crate::result::{CallResult, Listed, ToolInfo};
use crate::session::{Session, SessionInfo};

/// The host, as a call or a session sees it. Every request ends when that call or session does.
///
/// A request whose future is dropped is cancelled. Plain MCP clients offer none of these requests.
///
/// ```
/// use lemon_plugin_sdk::{Context, HostError, NoArgs, Plugin, ToolError};
/// use serde_json::json;
///
/// async fn review(_: NoArgs, ctx: Context) -> Result<String, ToolError> {
///     let file = ctx.host().call_tool("read_file", json!({"path": "a.txt"})).await?;
///     Ok(format!("{} looks fine", file.text()))
/// }
/// let plugin = Plugin::new("review", "1.0.0").tool("review", "Reviews a.txt.", review);
/// ```
#[derive(Clone)]
pub struct Host {
    origin: Origin,
}

#[derive(Clone)]
enum Origin {
    Call(Arc<Call>),
    Session(Session),
}

impl Host {
    pub(crate) fn of_call(call: Arc<Call>) -> Self {
        Self { origin: Origin::Call(call) }
    }

    pub(crate) fn of_session(session: Session) -> Self {
        Self { origin: Origin::Session(session) }
    }

    /// Calls a tool of the session by the name that [`tools`](Self::tools) gives; `arguments` is an object in JSON.
    /// The tool's own failure is a result whose [`is_error`](CallResult::is_error) is true.
    ///
    /// # Errors
    /// The host does not offer it, refuses it (`unknown_tool`, `denied`, `cycle`, …), or the call is over.
    pub async fn call_tool(&self, name: &str, arguments: impl Serialize) -> Result<CallResult, HostError> {
        #[derive(Serialize)]
        struct Params<'a, A> {
            name: &'a str,
            arguments: A,
            #[serde(rename = "_meta")]
            meta: &'a Meta,
        }
        // A value first: what can't be written as JSON must not leave half a line in the outbox.
        let arguments = serde_json::value::to_raw_value(&arguments)
            .map_err(|error| HostError::Unreadable(format!("the arguments can't be written as JSON: {error}")))?;
        let params = Params { name, arguments, meta: &self.meta() };
        self.request(method::HOST_TOOLS_CALL, &params).await
    }

    /// All tools of the session, each under the name that [`call_tool`](Self::call_tool) takes.
    ///
    /// # Errors
    /// The host does not offer it, or the call is over.
    pub async fn tools(&self) -> Result<Vec<ToolInfo>, HostError> {
        let listed: Listed = self.request(method::HOST_TOOLS_LIST, &OnlyMeta { meta: &self.meta() }).await?;
        Ok(listed.tools)
    }

    /// The session with its state, read from the host and not from the mirror.
    ///
    /// # Errors
    /// The host does not offer it, or the call is over.
    pub async fn session(&self) -> Result<SessionInfo, HostError> {
        self.request(method::HOST_SESSION_GET, &OnlyMeta { meta: &self.meta() }).await
    }

    /// Whether the host offers a request, such as `host/tools/call`.
    pub fn offers(&self, method: &str) -> bool {
        self.connection().is_some_and(|connection| connection.offers(method))
    }

    fn connection(&self) -> Option<Arc<Connection>> {
        match &self.origin {
            Origin::Call(call) => Some(call.connection.clone()),
            Origin::Session(session) => session.connection(),
        }
    }

    fn meta(&self) -> Meta {
        match &self.origin {
            Origin::Call(call) => Meta::Parent(call.id.clone()),
            Origin::Session(session) => Meta::Session(session.reference()),
        }
    }

    async fn request<T: DeserializeOwned>(
        &self,
        method: &'static str,
        params: &impl Serialize,
    ) -> Result<T, HostError> {
        let connection = self.connection().ok_or(HostError::Gone)?;
        if !connection.offers(method) {
            return Err(HostError::NotOffered { method });
        }
        let limit = connection.limit();
        let (id, answer) = connection.pending.open().ok_or(HostError::Gone)?;
        let guard = Guard { host: self, connection: &connection, id };
        let message = message::Request { jsonrpc: message::Version::V2, id, method, params };
        self.while_open(|| connection.outbox.push_now(&message, limit)).ok_or(HostError::Over)?.map_err(|unsent| {
            match unsent {
                Unsent::TooLarge { bytes } => HostError::TooLarge { bytes, limit },
                Unsent::Closed | Unsent::Full => HostError::Gone,
            }
        })?;
        let answered = tokio::select! {
            biased;
            answered = answer => answered,
            () = self.ended().cancelled() => return Err(match &self.origin {
                Origin::Call(call) if !call.is_over() => HostError::Cancelled,
                Origin::Call(_) | Origin::Session(_) => HostError::Over,
            }),
        };
        drop(guard);
        let answered: Result<_, ErrorObject> = answered.map_err(|_| HostError::Gone)?;
        let result = answered.map_err(HostError::Refused)?;
        serde_json::from_str(result.get())
            .map_err(|error| HostError::Unreadable(format!("the host's answer to {method} can't be read: {error}")))
    }

    /// Runs `send` unless the call is over or the session closed.
    fn while_open<T>(&self, send: impl FnOnce() -> T) -> Option<T> {
        match &self.origin {
            Origin::Call(call) => call.while_live(send),
            Origin::Session(session) => session.is_open().then(send),
        }
    }

    fn ended(&self) -> &CancellationToken {
        match &self.origin {
            Origin::Call(call) => &call.token,
            Origin::Session(session) => session.token(),
        }
    }
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host").finish_non_exhaustive()
    }
}

/// Cancels a request that nobody waits for any more (LPP-CANCEL-12).
struct Guard<'a> {
    host: &'a Host,
    connection: &'a Connection,
    id: i64,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if self.connection.pending.forget(self.id) {
            let params = lemon_protocol::CancelledParams { request_id: RequestId::Number(self.id), reason: None };
            self.host.while_open(|| self.connection.notify_now(method::CANCELLED, &params));
        }
    }
}

/// On whose behalf a request is made (LPP-REV-02).
enum Meta {
    Parent(RequestId<'static>),
    Session(SessionRef),
}

impl Serialize for Meta {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        match self {
            Self::Parent(id) => map.serialize_entry(meta::PARENT, id)?,
            Self::Session(session) => map.serialize_entry(meta::SESSION, session)?,
        }
        map.end()
    }
}

#[derive(Serialize)]
struct OnlyMeta<'a> {
    #[serde(rename = "_meta")]
    meta: &'a Meta,
}
