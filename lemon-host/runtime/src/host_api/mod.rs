//! What plugins may ask of the host.
//!
//! The methods are a jsonrpsee trait; every request is resolved to a [`Requester`] first, from the request that it acts
//! for or, for background work, from the session that it names (LPP-REV-02 to -04).

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Weak};

use jsonrpsee::core::async_trait;
use jsonrpsee::core::server::{ConnectionId, MethodCallback, Methods};
use jsonrpsee::proc_macros::rpc;
use jsonrpsee::types::{ErrorObjectOwned, Id, Params};
use jsonrpsee::{Extensions, MethodResponse};
use lemon_protocol::manifest::Permission;
use lemon_protocol::{ErrorObject, Kind, LogMessage, Message, SessionInfo, SessionRef, Tool, Toolbox, meta, method};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::catalog::Entry;
use crate::event::Event;
use crate::host::{Host, HostInner};
use crate::plugin::{PluginName, PluginSpec};
use crate::report::PluginText;
use crate::seams::Caller;
use crate::session::Session;
use crate::wire::{CallContext, Inbound, InboundRequest, Peer};

/// The methods that the host's offer lists.
pub(crate) const METHODS: [&str; 3] = [method::HOST_SESSION_GET, method::HOST_TOOLS_LIST, method::HOST_TOOLS_CALL];

/// The levels of a log message; another one counts as `info` (LPP-LOG-07).
const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// Who asks, and what the request inherits.
#[derive(Clone)]
struct Requester {
    plugin: PluginName,
    session: Session,
    /// The call that the request acts for; none for background work.
    parent: Option<CallContext>,
    cancel: CancellationToken,
}

#[rpc(server)]
trait HostApi {
    #[method(name = "host/session/get", param_kind = map, with_extensions)]
    async fn session_get(&self) -> Result<SessionInfo, ErrorObjectOwned>;

    #[method(name = "host/tools/list", param_kind = map, with_extensions)]
    async fn tools_list(&self) -> Result<Toolbox, ErrorObjectOwned>;

    #[method(name = "host/tools/call", param_kind = map, with_extensions)]
    async fn tools_call(
        &self,
        name: String,
        arguments: Option<Box<RawValue>>,
    ) -> Result<Box<RawValue>, ErrorObjectOwned>;
}

struct Api;

#[async_trait]
impl HostApiServer for Api {
    async fn session_get(&self, extensions: &Extensions) -> Result<SessionInfo, ErrorObjectOwned> {
        let Requester { session, .. } = requester(extensions)?;
        let (state, version) = session.state();
        Ok(SessionInfo {
            id: session.id().to_owned(),
            cwd: session.cwd().to_string_lossy().into_owned(),
            scope: session.scope().to_owned(),
            state,
            version,
        })
    }

    async fn tools_list(&self, extensions: &Extensions) -> Result<Toolbox, ErrorObjectOwned> {
        let Requester { session, .. } = requester(extensions)?;
        let host = host(&session)?;
        let catalog = host.catalog();
        let visible = catalog.entries().filter(|entry| entry.hidden_by(session.filter()).is_none());
        let named = |entry: &Arc<Entry>| Tool { name: entry.name.to_string(), ..(*entry.tool).clone() };
        Ok(Toolbox { tools: visible.map(named).collect() })
    }

    async fn tools_call(
        &self,
        extensions: &Extensions,
        name: String,
        arguments: Option<Box<RawValue>>,
    ) -> Result<Box<RawValue>, ErrorObjectOwned> {
        let Requester { plugin, session, parent, cancel } = requester(extensions)?;
        let arguments = arguments.map_or_else(|| "{}".to_owned(), |arguments| arguments.get().to_owned());
        let mut call = session.call(name, arguments).made_by(Caller::Plugin(plugin)).cancelled_by(cancel);
        if let Some(parent) = parent {
            call = call.within(parent);
        }
        match call.await {
            Ok(result) => Ok(result.raw().to_owned()),
            Err(error) => Err(to_rpc(&error.to_wire())),
        }
    }
}

fn requester(extensions: &Extensions) -> Result<Requester, ErrorObjectOwned> {
    extensions.get::<Requester>().cloned().ok_or_else(|| internal("nobody is known to have made the request"))
}

fn host(session: &Session) -> Result<Host, ErrorObjectOwned> {
    session.host().ok_or_else(|| to_rpc(&ErrorObject::of(Kind::ShuttingDown, "the host is gone")))
}

fn internal(message: &str) -> ErrorObjectOwned {
    ErrorObjectOwned::owned(-32603, message.to_owned(), None::<()>)
}

fn to_rpc(error: &ErrorObject) -> ErrorObjectOwned {
    let code = i32::try_from(error.code).unwrap_or(-32603);
    ErrorObjectOwned::owned(code, error.message.clone(), error.data.clone())
}

/// All methods, made once.
pub(crate) fn methods() -> Methods {
    Api.into_rpc().into()
}

/// Answers one plugin's processes.
pub(crate) struct PluginInbound {
    host: Weak<HostInner>,
    plugin: PluginName,
    roots: Vec<PathBuf>,
    /// The methods that its manifest has no permission for.
    refused: Vec<&'static str>,
}

impl PluginInbound {
    pub(crate) fn new(host: Weak<HostInner>, spec: &PluginSpec) -> Self {
        let refused = METHODS.into_iter().filter(|method| !spec.may_ask(method)).collect();
        Self { host, plugin: spec.name.clone(), roots: spec.roots.clone(), refused }
    }

    async fn answer(&self, request: InboundRequest) -> Result<Box<RawValue>, ErrorObject> {
        let unknown = |method: &str| ErrorObject {
            code: ErrorObject::METHOD_NOT_FOUND,
            message: format!("this host does not answer {:?}", PluginText::new(method).raw()),
            data: None,
        };
        if request.method == method::ROOTS_LIST && !self.roots.is_empty() {
            return Ok(raw(&self.roots()));
        }
        let Some(host) = self.host.upgrade().map(Host::from_inner) else {
            return Err(ErrorObject::of(Kind::ShuttingDown, "the host is gone"));
        };
        if self.refused.contains(&request.method.as_str()) {
            let permission = Permission::for_method(&request.method).map_or("", Permission::as_str);
            let reason = format!("{} needs {permission:?} among the manifest's permissions", request.method);
            request.peer.note("beyond_manifest", || reason.clone());
            return Err(ErrorObject::of(Kind::Denied, reason));
        }
        let Some(callback) = host.methods().method(&request.method) else {
            return Err(unknown(&request.method));
        };
        let requester = self.requester(&host, &request)?;
        let mut extensions = Extensions::new();
        extensions.insert(requester);
        let params = Params::new(request.params.as_deref().map(RawValue::get)).into_owned();
        let response: MethodResponse = match callback {
            MethodCallback::Sync(call) => call(Id::Number(0), params, usize::MAX, extensions),
            MethodCallback::Async(call) => call(Id::Number(0), params, ConnectionId(0), usize::MAX, extensions).await,
            _ => return Err(unknown(&request.method)),
        };
        outcome(response.as_json())
    }

    fn roots(&self) -> Value {
        let root = |path: &PathBuf| {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            json!({ "uri": file_uri(path), "name": name })
        };
        json!({ "roots": self.roots.iter().map(root).collect::<Vec<_>>() })
    }

    /// Finds out whom the request acts for.
    fn requester(&self, host: &Host, request: &InboundRequest) -> Result<Requester, ErrorObject> {
        #[derive(Deserialize, Default)]
        struct Naming {
            #[serde(rename = "_meta", default)]
            meta: serde_json::Map<String, Value>,
        }
        let text = request.params.as_deref().map_or("{}", RawValue::get);
        let Naming { meta: named } = serde_json::from_str(text).map_err(|fault| ErrorObject {
            code: ErrorObject::INVALID_PARAMS,
            message: format!("the params can't be read: {fault}"),
            data: None,
        })?;
        let (plugin, cancel) = (self.plugin.clone(), request.cancel.clone());
        let stale = |what: String| ErrorObject::of(Kind::Stale, what);
        if let Some(parent) = named.get(meta::PARENT) {
            let context = parent.as_i64().and_then(|id| request.peer.context(id));
            let context = context.ok_or_else(|| stale(format!("{} {parent} is no request under way", meta::PARENT)))?;
            return Ok(Requester { plugin, session: context.scope.session.clone(), parent: Some(context), cancel });
        }
        let session = named.get(meta::SESSION).and_then(|session| SessionRef::deserialize(session).ok());
        let Some(SessionRef { handle, .. }) = session else {
            return Err(ErrorObject {
                code: ErrorObject::INVALID_PARAMS,
                message: format!("_meta names neither {} nor {}", meta::PARENT, meta::SESSION),
                data: None,
            });
        };
        let session =
            host.session_of(&request.peer, handle).ok_or_else(|| stale(format!("the session {handle} is not open")))?;
        Ok(Requester { plugin, session, parent: None, cancel })
    }
}

impl Inbound for PluginInbound {
    fn request(
        self: Arc<Self>,
        request: InboundRequest,
    ) -> Pin<Box<dyn Future<Output = Result<Box<RawValue>, ErrorObject>> + Send>> {
        Box::pin(async move { self.answer(request).await })
    }

    fn notification(&self, peer: &Peer, method: &str, params: &str) {
        let Some(host) = self.host.upgrade().map(Host::from_inner) else {
            return;
        };
        if method != method::MESSAGE {
            return peer.note("unknown_notification", || format!("a notification {method:?}"));
        }
        if let Some(LogMessage { level, logger, data }) = peer.payload(method, params) {
            let text = match data {
                Value::String(text) => text,
                other => other.to_string(),
            };
            let text = logger.map_or_else(|| text.clone(), |logger| format!("{logger}: {text}"));
            let text = PluginText::new(host.redactor().redact(&text));
            let level = if LEVELS.contains(&level.as_str()) { level } else { "info".to_owned() };
            let level = PluginText::new(level);
            host.tell(&Event::Log { plugin: self.plugin.clone(), level, text });
        }
    }

    fn noise(&self, _: &Peer, kind: &'static str, first: &PluginText) {
        if let Some(host) = self.host.upgrade().map(Host::from_inner) {
            let first = PluginText::new(host.redactor().redact(first.raw()));
            host.tell(&Event::Noise { plugin: self.plugin.clone(), kind, first });
        }
    }
}

/// Takes jsonrpsee's ready-made answer apart: the wire puts the request's own id in.
fn outcome(response: &RawValue) -> Result<Box<RawValue>, ErrorObject> {
    match Message::parse(response.get().as_bytes()) {
        Ok(Message::Response { outcome: Ok(result), .. }) => Ok(result.to_owned()),
        Ok(Message::Response { outcome: Err(error), .. }) => Err(serde_json::from_str(error.get())
            .unwrap_or_else(|fault| ErrorObject { code: -32603, message: fault.to_string(), data: None })),
        _ => Err(ErrorObject { code: -32603, message: "the answer could not be made".to_owned(), data: None }),
    }
}

fn raw(value: &Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// The `file:` URI of an absolute path.
fn file_uri(path: &Path) -> String {
    /// What may stand in the path of a URI as it is, beside letters and digits (RFC 3986, section 3.3).
    const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    format!("file://{}", percent_encode(path.as_os_str().as_encoded_bytes(), PLAIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_is_a_uri_whatever_its_folder_is_called() {
        assert_eq!(file_uri(Path::new("/a b/é#?/c.d")), "file:///a%20b/%C3%A9%23%3F/c.d");
    }
}
