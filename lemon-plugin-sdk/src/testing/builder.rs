//! What a test says of its client before the plugin starts.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use lemon_protocol::ErrorObject;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::link::{HostAnswers, Link};
use super::{Client, Error};
use crate::connection;
use crate::plugin::Plugin;
use crate::stdio::Signals;

/// Sets up a [`Client`].
#[must_use]
pub struct ClientBuilder {
    pub(super) lemon: bool,
    pub(super) cwd: PathBuf,
    pub(super) state: Map<String, Value>,
    pub(super) config: Option<Value>,
    pub(super) max_message_bytes: u64,
    pub(super) host: Option<HostAnswers>,
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

    /// The configuration's values, an object; what is absent has the default of the plugin's schema. A plugin that
    /// declares no configuration refuses it.
    pub fn config(mut self, values: Value) -> Self {
        self.config = Some(values);
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
        let plugin = tokio::spawn(connection::serve(definition, read, write, None, Signals::default()));
        let over = CancellationToken::new();
        let link = Link::open(ours, self.host.clone(), over.clone());
        let mut client = Client {
            link,
            lemon: self.lemon,
            config_schema: None,
            version: Mutex::new(0),
            generation: AtomicU64::new(0),
            over: over.drop_guard(),
            plugin,
        };
        client.shake_hands(self).await?;
        Ok(client)
    }
}

impl std::fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientBuilder").field("lemon", &self.lemon).field("cwd", &self.cwd).finish_non_exhaustive()
    }
}
