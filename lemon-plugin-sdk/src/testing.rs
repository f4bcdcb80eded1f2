//! A client in memory, for tests of a plugin: it plays the host, with no process and no pipe.
//!
//! ```
//! use lemon_plugin_sdk::{Context, JsonSchema, Plugin};
//! use serde_json::json;
//!
//! #[derive(serde::Deserialize, JsonSchema)]
//! struct Greet {
//!     name: String,
//! }
//!
//! fn plugin() -> Plugin {
//!     Plugin::new("hello", "1.0.0").tool("greet", "Greets someone.", async |args: Greet, ctx: Context| {
//!         ctx.progress(1, 2.0, "thinking");
//!         format!("Hello, {}!", args.name)
//!     })
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), lemon_plugin_sdk::testing::Error> {
//! let client = plugin().test_client().await?;
//! let result = client.call("greet", json!({"name": "Ann"})).await?;
//! assert_eq!(result.text(), "Hello, Ann!");
//!
//! let result = client.call("greet", json!({"name": 5})).await?;
//! assert!(result.is_error() && result.text().contains("name"));
//!
//! let call = client.start("greet", json!({"name": "Ben"}));
//! let done = call.finished().await;
//! assert_eq!(done.progress[0].message.as_deref(), Some("thinking"));
//! # Ok(())
//! # }
//! ```
//!
//! [`Client::builder`] sets the working directory, the state of the session, the configuration, and what the host
//! answers; or makes it a plain MCP client. The plugin ends when the client is dropped.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lemon_protocol::{
    CallToolResult, Capabilities, ErrorObject, HostOffer, HostProcess, InitializeResult, Kind, LEMON_ID, LineSplitter,
    ListToolsResult, Message, Piece, ProtocolVersion, RequestId, SessionDelta, SessionOpen, SessionRef, Tool, meta,
    method,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::connection::{self, Ending};
use crate::error::ServeError;
use crate::output::Content;
use crate::plugin::Plugin;
use crate::result::CallResult;

/// Why a test's client got no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The plugin is not defined as it has to be.
    #[error(transparent)]
    Plugin(#[from] ServeError),
    /// The plugin answered with an error, and not with a result.
    #[error("the plugin refused: {}", .0.message)]
    Refused(ErrorObject),
    /// The plugin has ended, or the call was cancelled.
    #[error("no answer will come")]
    NoAnswer,
    /// The plugin's answer is not what the method gives.
    #[error("the answer can't be read: {0}")]
    Unreadable(#[from] serde_json::Error),
}

impl Error {
    /// The kind of the protocol's error table, if the answer named one.
    pub fn kind(&self) -> Option<Kind> {
        match self {
            Self::Refused(error) => error.kind(),
            _ => None,
        }
    }
}

/// Answers what the plugin asks of the host: the method and its params.
type HostAnswers = Arc<dyn Fn(&str, Value) -> Result<Value, ErrorObject> + Send + Sync>;

/// Sets up a [`Client`].
#[must_use]
pub struct ClientBuilder {
    lemon: bool,
    cwd: PathBuf,
    state: Map<String, Value>,
    config: Option<Map<String, Value>>,
    max_message_bytes: u64,
    host: Option<HostAnswers>,
}

impl ClientBuilder {
    /// Makes it a plain MCP client, which has no session, sends no configuration and answers no requests.
    pub fn plain_mcp(mut self) -> Self {
        self.lemon = false;
        self
    }

    /// The session's working directory, `/` unless set.
    pub fn cwd(mut self, path: impl AsRef<Path>) -> Self {
        path.as_ref().clone_into(&mut self.cwd);
        self
    }

    /// A member of the session's state from its start.
    pub fn state(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.state.insert(name.to_owned(), value.into());
        self
    }

    /// The configuration's values, an object; what is absent has the default of the plugin's schema.
    pub fn config(mut self, values: Value) -> Self {
        self.config = values.as_object().cloned();
        self
    }

    /// The longest line that the client takes, 16 MiB unless set.
    pub fn max_message_bytes(mut self, bytes: u64) -> Self {
        self.max_message_bytes = bytes;
        self
    }

    /// Answers what the plugin asks of the host. Without it nothing is offered to the plugin.
    ///
    /// The closure is given the method, such as `host/tools/call`, and its params. It must not wait for anything.
    pub fn host(mut self, answer: impl Fn(&str, Value) -> Result<Value, ErrorObject> + Send + Sync + 'static) -> Self {
        self.host = Some(Arc::new(answer));
        self
    }

    /// Starts the plugin in memory, shakes hands, configures it and opens a session.
    ///
    /// # Errors
    /// The plugin is not defined as it has to be, or refuses its configuration.
    pub async fn connect(self, plugin: Plugin) -> Result<Client, Error> {
        let definition = plugin.checked()?;
        let (ours, theirs) = tokio::io::duplex(256 * 1024);
        let (read, write) = tokio::io::split(theirs);
        let ending = Ending { token: CancellationToken::new(), host_process: None };
        let plugin = tokio::spawn(connection::serve(definition, read, write, ending));
        let (mut from_plugin, mut to_plugin) = tokio::io::split(ours);
        let (sender, mut outgoing) = mpsc::channel::<Vec<u8>>(1024);
        let over = CancellationToken::new();
        let end = over.clone();
        tokio::spawn(async move {
            loop {
                let line = tokio::select! {
                    biased;
                    Some(line) = outgoing.recv() => line,
                    () = end.cancelled() => break,
                };
                if to_plugin.write_all(&line).await.is_err() {
                    break;
                }
            }
            // The plugin's input ends.
            let _ = to_plugin.shutdown().await;
        });
        let shared = Arc::new(Shared { sender, state: Mutex::default(), host: self.host.clone() });
        tokio::spawn({
            let shared = shared.clone();
            async move {
                let mut lines = LineSplitter::new(64 << 20);
                let mut buffer = vec![0; 64 * 1024];
                while let Ok(length @ 1..) = from_plugin.read(&mut buffer).await {
                    lines.extend(&buffer[..length]);
                    while let Some(Piece::Line(line)) = lines.next_piece() {
                        shared.received(line);
                    }
                }
                shared.close();
            }
        });
        let mut client = Client {
            shared,
            lemon: self.lemon,
            config_schema: None,
            version: Mutex::new(0),
            over: over.drop_guard(),
            plugin,
        };
        client.shake_hands(self).await?;
        Ok(client)
    }
}

/// The other side of a plugin in memory.
pub struct Client {
    shared: Arc<Shared>,
    lemon: bool,
    config_schema: Option<Value>,
    /// The version of the session's state.
    version: Mutex<u64>,
    /// The plugin's input ends with the client.
    over: DropGuard,
    plugin: JoinHandle<std::io::Result<()>>,
}

/// How far a call has got, as it told.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct ProgressSeen {
    /// How far it is.
    pub progress: f64,
    /// How far it will go.
    #[serde(default)]
    pub total: Option<f64>,
    /// What is being done.
    #[serde(default)]
    pub message: Option<String>,
    /// The result so far, if it came with one.
    #[serde(skip)]
    pub partial: Option<Vec<Content>>,
}

/// A log message that the plugin sent.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct LogSeen {
    /// Its level, such as `warning`.
    pub level: String,
    /// Its text.
    pub data: Value,
}

/// A call that has ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct Finished {
    /// What it answered; [`Error::NoAnswer`] if it was cancelled.
    pub outcome: Result<CallResult, Error>,
    /// What it told on its way.
    pub progress: Vec<ProgressSeen>,
}

struct Shared {
    sender: mpsc::Sender<Vec<u8>>,
    state: Mutex<State>,
    host: Option<HostAnswers>,
}

#[derive(Default)]
struct State {
    last_id: i64,
    closed: bool,
    waiting: HashMap<i64, Waiting>,
    logs: Vec<LogSeen>,
}

struct Waiting {
    /// None comes when the plugin says that a cancelled call has settled.
    answer: oneshot::Sender<Option<Result<Box<RawValue>, ErrorObject>>>,
    progress: Arc<Mutex<Vec<ProgressSeen>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn send(&self, message: &Value) {
        let mut line = message.to_string().into_bytes();
        line.push(b'\n');
        // Full only if a test starts a thousand calls without ever waiting; the answer then never comes.
        let _ = self.sender.try_send(line);
    }

    fn notify(&self, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn request(self: &Arc<Self>, method: &str, params: impl FnOnce(i64) -> Value) -> Call {
        let (answer, receiver) = oneshot::channel();
        let progress = Arc::default();
        let mut state = lock(&self.state);
        state.last_id += 1;
        let id = state.last_id;
        if !state.closed {
            state.waiting.insert(id, Waiting { answer, progress: Arc::clone(&progress) });
        }
        drop(state);
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params(id)}));
        Call { shared: self.clone(), id, answer: receiver, progress }
    }

    fn settle(&self, id: Option<RequestId<'_>>, outcome: Option<Result<Box<RawValue>, ErrorObject>>) {
        if let Some(RequestId::Number(id)) = id
            && let Some(waiting) = lock(&self.state).waiting.remove(&id)
        {
            let _ = waiting.answer.send(outcome);
        }
    }

    fn received(&self, line: &[u8]) {
        match Message::parse(line) {
            Ok(Message::Response { id, outcome }) => {
                let outcome = match outcome {
                    Ok(result) => Ok(result.to_owned()),
                    Err(error) => Err(serde_json::from_str(error.get()).unwrap_or_else(|_| ErrorObject {
                        code: 0,
                        message: error.get().to_owned(),
                        data: None,
                    })),
                };
                self.settle(id, Some(outcome));
            }
            Ok(Message::Request { id, method, params }) => {
                let params = params.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
                let outcome = match &self.host {
                    Some(host) => host(&method, params),
                    None => {
                        Err(ErrorObject { code: ErrorObject::METHOD_NOT_FOUND, message: method.into(), data: None })
                    }
                };
                self.send(&match outcome {
                    Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
                    Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
                });
            }
            Ok(Message::Notification { method, params }) => {
                let params = params.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
                self.notified(&method, params);
            }
            Err(_) => {}
        }
    }

    fn notified(&self, method: &str, params: Value) {
        match method {
            method::PROGRESS => {
                let Some(token) = params["progressToken"].as_i64() else { return };
                let Ok(mut seen) = ProgressSeen::deserialize(&params) else { return };
                let partial = &params["_meta"][meta::PARTIAL]["content"];
                seen.partial = Vec::deserialize(partial).ok();
                if let Some(waiting) = lock(&self.state).waiting.get(&token) {
                    lock(&waiting.progress).push(seen);
                }
            }
            method::SETTLED => self.settle(params["requestId"].as_i64().map(RequestId::Number), None),
            method::MESSAGE => {
                if let Ok(seen) = LogSeen::deserialize(&params) {
                    lock(&self.state).logs.push(seen);
                }
            }
            _ => {}
        }
    }

    fn close(&self) {
        let mut state = lock(&self.state);
        state.closed = true;
        state.waiting.clear();
    }
}

/// The session that a client has open.
const HANDLE: u32 = 1;

impl Client {
    /// Sets up a client; without further words it is a Lemon host with one session open.
    pub fn builder() -> ClientBuilder {
        ClientBuilder {
            lemon: true,
            cwd: PathBuf::from("/"),
            state: Map::new(),
            config: None,
            max_message_bytes: 16 << 20,
            host: None,
        }
    }

    async fn shake_hands(&mut self, set: ClientBuilder) -> Result<(), Error> {
        let mut capabilities = Capabilities::default();
        if set.lemon {
            let methods = [method::HOST_SESSION_GET, method::HOST_TOOLS_LIST, method::HOST_TOOLS_CALL];
            capabilities.set_lemon(&HostOffer {
                versions: ProtocolVersion::OFFERED.to_vec(),
                methods: if set.host.is_some() { methods.map(str::to_owned).to_vec() } else { Vec::new() },
                max_message_bytes: set.max_message_bytes,
                process: HostProcess { pid: std::process::id(), start_time: None },
            });
        }
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1.0.0"},
        });
        let answer = self.request(method::INITIALIZE, params).await?;
        let answer: InitializeResult = serde_json::from_str(answer.get())?;
        let lemon = answer.capabilities.experimental.get(LEMON_ID);
        self.config_schema = lemon.and_then(|lemon| lemon.get("configSchema")).cloned();
        self.shared.notify(method::INITIALIZED, &json!({}));
        if !set.lemon {
            return Ok(());
        }
        if self.config_schema.is_some() {
            self.configure(Value::Object(set.config.unwrap_or_default())).await?;
        }
        let open = SessionOpen {
            handle: HANDLE,
            id: "test".to_owned(),
            cwd: set.cwd.display().to_string(),
            scope: "main".to_owned(),
            state: set.state,
            version: 0,
        };
        self.shared.notify(method::SESSION, &serde_json::to_value(open)?);
        Ok(())
    }

    /// The tools as the plugin lists them.
    ///
    /// # Errors
    /// The plugin has ended.
    pub async fn tools(&self) -> Result<Vec<Tool>, Error> {
        let answer = self.request(method::TOOLS_LIST, json!({})).await?;
        let list: ListToolsResult = serde_json::from_str(answer.get())?;
        Ok(list.tools.iter().map(|tool| serde_json::from_str(tool.get())).collect::<Result<_, _>>()?)
    }

    /// Calls a tool and waits for its result. A failure of the tool is a result too.
    ///
    /// # Errors
    /// The plugin refused the call, as for an unknown tool, or has ended.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<CallResult, Error> {
        self.start(tool, arguments).result().await
    }

    /// Calls a tool and does not wait.
    pub fn start(&self, tool: &str, arguments: Value) -> Call {
        self.shared.request(method::TOOLS_CALL, |id| {
            let mut data = json!({ meta::PROGRESS_TOKEN: id });
            if self.lemon {
                data[meta::SESSION] = json!(SessionRef { handle: HANDLE, version: Some(*lock(&self.version)) });
                data[meta::CALL] = format!("test-{id}").into();
            }
            json!({"name": tool, "arguments": arguments, "_meta": data})
        })
    }

    /// Configures the plugin anew; what is absent has the default of its schema.
    ///
    /// # Errors
    /// The plugin refuses the values, or declares no configuration.
    pub async fn configure(&self, values: Value) -> Result<(), Error> {
        let mut complete = Map::new();
        let properties = self.config_schema.as_ref().and_then(|schema| schema.get("properties")?.as_object());
        for (name, property) in properties.into_iter().flatten() {
            if let Some(default) = property.get("default") {
                complete.insert(name.clone(), default.clone());
            }
        }
        complete.extend(values.as_object().cloned().unwrap_or_default());
        self.request(method::CONFIGURE, json!({"values": complete, "generation": 1})).await.map(drop)
    }

    /// Changes a member of the session's state; null removes it. Calls that are started later see it.
    pub fn set_state(&self, name: &str, value: impl Into<Value>) {
        let mut version = lock(&self.version);
        *version += 1;
        let changes = Map::from_iter([(name.to_owned(), value.into())]);
        let delta = SessionDelta { handle: HANDLE, version: *version, changes };
        self.shared.notify(method::SESSION, &serde_json::to_value(delta).unwrap_or_default());
    }

    /// Closes the session.
    pub fn close_session(&self) {
        self.shared.notify(method::SESSION_CLOSED, &json!({"handle": HANDLE}));
    }

    /// What the plugin has logged so far.
    pub fn logs(&self) -> Vec<LogSeen> {
        lock(&self.shared.state).logs.clone()
    }

    /// Sends any request and gives its raw result.
    ///
    /// # Errors
    /// The plugin refused the request or has ended.
    pub async fn request(&self, method: &str, params: Value) -> Result<Box<RawValue>, Error> {
        let call = self.shared.request(method, |_| params);
        match call.answer.await {
            Ok(Some(Ok(result))) => Ok(result),
            Ok(Some(Err(error))) => Err(Error::Refused(error)),
            Ok(None) | Err(_) => Err(Error::NoAnswer),
        }
    }

    /// Ends the plugin as a host does, and waits until it has ended.
    ///
    /// # Errors
    /// The plugin answered `lemon/shutdown` with an error, or did not end.
    pub async fn shutdown(self) -> Result<(), Error> {
        if self.lemon {
            self.request(method::SHUTDOWN, json!({"reason": "exit"})).await?;
        }
        drop(self.over);
        let ended = tokio::time::timeout(Duration::from_secs(5), self.plugin).await;
        ended.map_err(|_| Error::NoAnswer)?.map_err(|_| Error::NoAnswer)?.map_err(|_| Error::NoAnswer)
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("lemon", &self.lemon).finish_non_exhaustive()
    }
}

/// A call that a test has started.
pub struct Call {
    shared: Arc<Shared>,
    id: i64,
    answer: oneshot::Receiver<Option<Result<Box<RawValue>, ErrorObject>>>,
    progress: Arc<Mutex<Vec<ProgressSeen>>>,
}

impl Call {
    /// Cancels the call. Its handler goes on until it notices; [`finished`](Self::finished) waits for its end.
    pub fn cancel(&self) {
        self.shared.notify(method::CANCELLED, &json!({"requestId": self.id, "reason": "test"}));
    }

    /// What it has told so far.
    pub fn progress(&self) -> Vec<ProgressSeen> {
        lock(&self.progress).clone()
    }

    /// Waits for the result.
    ///
    /// # Errors
    /// The plugin refused the call, the call was cancelled, or the plugin has ended.
    pub async fn result(self) -> Result<CallResult, Error> {
        self.finished().await.outcome
    }

    /// Waits for the end of the handler: for the answer, or, if the call was cancelled, for the word that it settled.
    pub async fn finished(self) -> Finished {
        let outcome = match self.answer.await {
            Ok(Some(Ok(result))) => {
                serde_json::from_str::<CallToolResult>(result.get()).map(CallResult::new).map_err(Error::Unreadable)
            }
            Ok(Some(Err(error))) => Err(Error::Refused(error)),
            Ok(None) | Err(_) => Err(Error::NoAnswer),
        };
        let progress = std::mem::take(&mut *lock(&self.progress));
        Finished { outcome, progress }
    }
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call").field("id", &self.id).finish_non_exhaustive()
    }
}
