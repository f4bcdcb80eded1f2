//! The plugin: what it offers, told to a builder, and then served.

use std::sync::Arc;
use std::time::Duration;

use lemon_protocol::Implementation;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use tokio_util::task::AbortOnDropHandle;

use crate::config::Declared;
use crate::connection;
use crate::context::Context;
use crate::definition::{Definition, Parts};
use crate::error::{ConfigError, ServeError};
use crate::output::IntoToolOutput;
use crate::stdio;
use crate::testing::{self, Client};
use crate::tool::Tool;

/// A plugin, from its name to its end.
///
/// What is wrong with it, such as an argument type that is no object in JSON, is told when it is served and not when a
/// tool is called.
#[must_use = "a plugin does nothing until it is served"]
pub struct Plugin {
    parts: Parts,
    problem: Option<ServeError>,
}

impl Plugin {
    /// A plugin that offers nothing yet. Its name and version are for people: hosts know it by their own name for it.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        let info = Implementation { name: name.into(), version: version.into(), title: None };
        Self {
            parts: Parts {
                info,
                instructions: None,
                multi_session: false,
                exclusive: false,
                config: None,
                on_shutdown: Vec::new(),
                cancel_grace: Duration::from_secs(2),
                tools: Vec::new(),
            },
            problem: None,
        }
    }

    /// Adds a tool: a name, what it does in words for the model, and an `async fn` or closure of the arguments and the
    /// [`Context`]. See [`Tool::new`].
    pub fn tool<In, Out, Fut, F>(self, name: impl Into<String>, description: impl Into<String>, handler: F) -> Self
    where
        In: DeserializeOwned + JsonSchema + Send + 'static,
        Out: IntoToolOutput,
        Fut: Future<Output = Out> + Send + 'static,
        F: Fn(In, Context) -> Fut + Send + Sync + 'static,
    {
        self.add_tool(Tool::new(name, description, handler))
    }

    /// Adds a tool of which more is said.
    pub fn add_tool(mut self, tool: Tool) -> Self {
        self.parts.tools.push(tool);
        self
    }

    /// A name for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.parts.info.title = Some(title.into());
        self
    }

    /// A hint for the model on how to use the plugin as a whole.
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.parts.instructions = Some(text.into());
        self
    }

    /// One process may serve many sessions at once; else the host starts one for each (LPP-SESS-08).
    pub fn multi_session(mut self, yes: bool) -> Self {
        self.parts.multi_session = yes;
        self
    }

    /// Two processes of this plugin must never run at the same time, not even for a moment at a reload (LPP-INIT-08).
    pub fn exclusive(mut self, yes: bool) -> Self {
        self.parts.exclusive = yes;
        self
    }

    /// Declares the configuration: the host checks the user's values against the type's schema, fills in its defaults
    /// and sends them before any call. Handlers read them with [`Context::config`].
    ///
    /// Mark what is secret, so that the host puts a secret there, with `#[schemars(extend("secret" = true))]`:
    ///
    /// ```
    /// use lemon_plugin_sdk::{ConfigError, Context, JsonSchema, NoArgs, Plugin, ToolError};
    ///
    /// #[derive(serde::Deserialize, JsonSchema)]
    /// struct Config {
    ///     /// The key of the service.
    ///     #[schemars(extend("secret" = true))]
    ///     api_key: String,
    ///     /// How often to try.
    ///     #[serde(default = "three")]
    ///     retries: u32,
    /// }
    /// fn three() -> u32 { 3 }
    ///
    /// let plugin = Plugin::new("service", "1.0.0")
    ///     .config::<Config>()
    ///     .check_config(|config: &Config| {
    ///         if config.api_key.is_empty() {
    ///             return Err(ConfigError::at("/api_key", "it is empty; make one in the service's settings"));
    ///         }
    ///         Ok(())
    ///     })
    ///     .tool("retries", "Says how often it tries.", async |_: NoArgs, ctx: Context| {
    ///         Ok::<_, ToolError>(ctx.config::<Config>()?.retries.to_string())
    ///     });
    /// ```
    pub fn config<T: DeserializeOwned + JsonSchema + Send + Sync + 'static>(mut self) -> Self {
        if self.parts.config.as_ref().is_some_and(|declared| !declared.is_of::<T>()) {
            let problem = ServeError::Config("it is declared as two types".to_owned());
            self.problem.get_or_insert(problem);
        } else {
            self.parts.config.get_or_insert_with(Declared::new::<T>);
        }
        self
    }

    /// Checks what the schema can't say. Values that are refused never come into force: those before stay.
    pub fn check_config<T, F>(self, check: F) -> Self
    where
        T: DeserializeOwned + JsonSchema + Send + Sync + 'static,
        F: Fn(&T) -> Result<(), ConfigError> + Send + Sync + 'static,
    {
        self.on_configure(move |values: Arc<T>| std::future::ready(check(&values)))
    }

    /// Does something with new values before they come into force, or refuses them. It also runs when the user changes
    /// them later; it does not run where the client sends none, as a plain MCP client does.
    pub fn on_configure<T, Fut, F>(self, handler: F) -> Self
    where
        T: DeserializeOwned + JsonSchema + Send + Sync + 'static,
        Fut: Future<Output = Result<(), ConfigError>> + Send + 'static,
        F: Fn(Arc<T>) -> Fut + Send + Sync + 'static,
    {
        let mut plugin = self.config::<T>();
        if let Some(declared) = plugin.parts.config.as_mut().filter(|declared| declared.is_of::<T>()) {
            declared.accept(handler);
        }
        plugin
    }

    /// Puts away what the plugin must keep, once, before its end: it has about a second, and half of one after SIGTERM.
    pub fn on_shutdown<Fut, F>(mut self, handler: F) -> Self
    where
        Fut: Future<Output = ()> + Send + 'static,
        F: Fn() -> Fut + Send + Sync + 'static,
    {
        self.parts.on_shutdown.push(Box::new(move || Box::pin(handler())));
        self
    }

    /// How long a handler may go on after its call was cancelled, before its future is dropped; two seconds unless
    /// set. Hosts give up on a cancelled call after ten.
    pub fn cancel_grace(mut self, grace: Duration) -> Self {
        self.parts.cancel_grace = grace;
        self
    }

    /// Serves on standard input and output until the host ends the plugin, on a runtime of its own in this thread.
    ///
    /// While it runs, standard input is empty and whatever is printed goes to stderr: the protocol has the real ones
    /// for itself. The plugin ends with its input, with the host, or by SIGTERM; handlers then have a little more than
    /// a second to end, after SIGTERM half a second. Two seconds after the end began, and one after SIGTERM, the process
    /// exits with status 0 whatever it does, without running destructors.
    ///
    /// # Errors
    /// The plugin is not defined as it has to be, or standard input or output can't be used.
    pub fn run(self) -> Result<(), ServeError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|source| ServeError::Io { action: "start the runtime", source })?;
        let outcome = runtime.block_on(self.serve());
        // A handler that blocks a thread must not hold up the end.
        runtime.shutdown_background();
        outcome
    }

    /// The same as [`run`](Self::run) on the runtime that the caller has.
    ///
    /// It is meant for the last thing that a program does: the real standard streams do not come back, and what the
    /// program does afterwards is bounded as handlers are. The process is gone two seconds after the plugin's input
    /// has ended, even if the runtime waits for a thread that blocks.
    ///
    /// When the future is dropped, handlers are too. The end of the input, of the host, and SIGTERM still end the process.
    ///
    /// # Errors
    /// The plugin is not defined as it has to be, or standard input or output can't be used.
    pub async fn serve(self) -> Result<(), ServeError> {
        let definition = self.checked()?;
        let wire = stdio::take().map_err(|source| ServeError::Io { action: "take over stdin and stdout", source })?;
        let watch = stdio::Watch::start(wire.input_end);
        let (watch, signals) = watch.map_err(|source| ServeError::Io { action: "watch for the end", source })?;
        // A task, and not part of what the caller awaits: a runtime prefers that to tasks, and handlers are tasks.
        let serving = connection::serve(definition, wire.input, wire.output, Some(watch), signals);
        let outcome = AbortOnDropHandle::new(tokio::spawn(serving)).await;
        let outcome = outcome.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        outcome.map_err(|source| ServeError::Io { action: "read stdin", source })
    }

    /// A client in memory, as a Lemon host with one session open, for tests. See [`testing`].
    ///
    /// # Errors
    /// The plugin is not defined as it has to be, or refuses its configuration.
    pub async fn test_client(self) -> Result<Client, testing::Error> {
        Client::builder().connect(self).await
    }

    pub(crate) fn checked(self) -> Result<Arc<Definition>, ServeError> {
        match self.problem {
            Some(problem) => Err(problem),
            None => Definition::check(self.parts).map(Arc::new),
        }
    }
}

impl std::fmt::Debug for Plugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Implementation { name, version, .. } = &self.parts.info;
        f.debug_struct("Plugin").field("name", name).field("version", version).finish_non_exhaustive()
    }
}
