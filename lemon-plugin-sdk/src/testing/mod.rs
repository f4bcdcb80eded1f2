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
//!         ctx.progress(1, 2, "thinking");
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

mod builder;
mod call;
mod link;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lemon_protocol::{
    Capabilities, ErrorObject, HostOffer, HostProcess, InitializeResult, Kind, LEMON_ID, ProtocolVersion, SessionDelta,
    SessionOpen, SessionRef, meta, method,
};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::DropGuard;

pub use self::builder::ClientBuilder;
pub use self::call::{Call, Finished, LogSeen, ProgressSeen};
use self::link::{Link, lock};
use crate::error::ServeError;
use crate::result::{CallResult, Listed, ToolInfo};

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

/// The other side of a plugin in memory.
pub struct Client {
    link: Arc<Link>,
    lemon: bool,
    config_schema: Option<Value>,
    /// The version of the session's state.
    version: Mutex<u64>,
    /// Counts the configurations.
    generation: AtomicU64,
    /// The plugin's input ends with the client.
    over: DropGuard,
    plugin: JoinHandle<std::io::Result<()>>,
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
        self.link.notify(method::INITIALIZED, &json!({}));
        if !set.lemon {
            return Ok(());
        }
        if self.config_schema.is_some() || set.config.is_some() {
            self.configure(set.config.unwrap_or_else(|| json!({}))).await?;
        }
        let open = SessionOpen {
            handle: HANDLE,
            id: "test".to_owned(),
            cwd: set.cwd.display().to_string(),
            scope: "main".to_owned(),
            state: set.state,
            version: 0,
        };
        self.link.notify(method::SESSION, &serde_json::to_value(open)?);
        Ok(())
    }

    /// The tools as the plugin lists them.
    ///
    /// # Errors
    /// The plugin has ended.
    pub async fn tools(&self) -> Result<Vec<ToolInfo>, Error> {
        let answer = self.request(method::TOOLS_LIST, json!({})).await?;
        let listed: Listed = serde_json::from_str(answer.get())?;
        Ok(listed.tools)
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
        self.link.request(method::TOOLS_CALL, |id| {
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
        // What is no object is the plugin's to refuse.
        let Value::Object(values) = values else { return self.send_configuration(values).await };
        let mut complete = Map::new();
        let properties = self.config_schema.as_ref().and_then(|schema| schema.get("properties")?.as_object());
        for (name, property) in properties.into_iter().flatten() {
            if let Some(default) = property.get("default") {
                complete.insert(name.clone(), default.clone());
            }
        }
        complete.extend(values);
        self.send_configuration(Value::Object(complete)).await
    }

    async fn send_configuration(&self, values: Value) -> Result<(), Error> {
        let generation = self.generation.fetch_add(1, Ordering::Relaxed) + 1;
        self.request(method::CONFIGURE, json!({"values": values, "generation": generation})).await.map(drop)
    }

    /// Changes a member of the session's state; null removes it. Calls that are started later see it.
    pub fn set_state(&self, name: &str, value: impl Into<Value>) {
        let mut version = lock(&self.version);
        *version += 1;
        let changes = Map::from_iter([(name.to_owned(), value.into())]);
        let delta = SessionDelta { handle: HANDLE, version: *version, changes };
        self.link.notify(method::SESSION, &serde_json::to_value(delta).unwrap_or_default());
    }

    /// Closes the session.
    pub fn close_session(&self) {
        self.link.notify(method::SESSION_CLOSED, &json!({"handle": HANDLE}));
    }

    /// What the plugin has logged so far.
    pub fn logs(&self) -> Vec<LogSeen> {
        self.link.logs()
    }

    /// Sends any request and gives its raw result.
    ///
    /// # Errors
    /// The plugin refused the request or has ended.
    pub async fn request(&self, method: &str, params: Value) -> Result<Box<RawValue>, Error> {
        let call = self.link.request(method, |_| params);
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
