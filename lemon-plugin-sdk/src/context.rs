//! What a handler has beside its arguments: cancellation, progress, logs, the session, the configuration, the host.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use lemon_protocol::RequestId;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use crate::connection::Connection;
use crate::connection::era::Era;
use crate::error::ConfigError;
use crate::host::Host;
use crate::output::ToolOutput;
use crate::progress::{Amount, Progress, Total};
use crate::session::Session;

/// One running call. It can be cloned and moved into tasks; once the call is over it sends nothing more.
#[derive(Clone)]
pub struct Context {
    call: Arc<Call>,
}

/// How much a log message matters; syslog's levels, as MCP has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// For whoever looks for a defect.
    Debug,
    /// For whoever wants to know what happens.
    Info,
    /// Normal, but worth a look.
    Notice,
    /// Something may go wrong.
    Warning,
    /// Something went wrong.
    Error,
    /// A part does not work.
    Critical,
    /// Someone has to act now.
    Alert,
    /// Nothing works.
    Emergency,
}

impl Level {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }
}

/// What is known of a running call.
pub(crate) struct Call {
    pub(crate) connection: Arc<Connection>,
    pub(crate) id: RequestId<'static>,
    pub(crate) era: Era,
    pub(crate) token: CancellationToken,
    pub(crate) progress: Option<Progress>,
    pub(crate) session: Option<Session>,
    pub(crate) call_id: Option<String>,
    /// The level from which a modern client wants logs of this call; none if it wants none.
    pub(crate) log_level: Option<Level>,
    /// Held while something is sent on behalf of the call, and set when it is over.
    pub(crate) over: Mutex<bool>,
}

impl Call {
    /// Runs `send` unless the call is over, which it can't become meanwhile. For clients without Lemon it is over with
    /// its cancellation; Lemon hosts wait for the handler's end.
    pub(crate) fn while_live<T>(&self, send: impl FnOnce() -> T) -> Option<T> {
        let over = self.over.lock().unwrap_or_else(PoisonError::into_inner);
        (!*over && (self.era == Era::Lemon || !self.is_cancelled())).then(send)
    }

    /// Whether nobody wants the result any more, which the end of the plugin does not mean.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.connection.is_cancelled(&self.id)
    }

    /// From here on nothing is sent on behalf of the call.
    pub(crate) fn finish(&self) {
        *self.over.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }

    /// Whether the call has ended.
    pub(crate) fn is_over(&self) -> bool {
        *self.over.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Context {
    pub(crate) fn new(call: Arc<Call>) -> Self {
        Self { call }
    }

    /// Waits until the call is cancelled, or the plugin comes to its end. In a task that outlives the call's handler, it
    /// also ends with the call.
    ///
    /// A handler need not look: two seconds after the cancellation (see
    /// [`Plugin::cancel_grace`](crate::Plugin::cancel_grace)) its future is dropped where it awaits something. One
    /// that has something to put in order waits for this and returns; what it returns is dropped.
    ///
    /// ```
    /// # use lemon_plugin_sdk::{Context, NoArgs, ToolError};
    /// # async fn work() -> String { String::new() }
    /// # async fn undo() {}
    /// async fn handler(_: NoArgs, ctx: Context) -> Result<String, ToolError> {
    ///     tokio::select! {
    ///         done = work() => Ok(done),
    ///         () = ctx.cancelled() => {
    ///             undo().await;
    ///             Err("cancelled".into())
    ///         }
    ///     }
    /// }
    /// ```
    pub async fn cancelled(&self) {
        self.call.token.cancelled().await;
    }

    /// Whether the call was cancelled or is over, or the plugin comes to its end.
    pub fn is_cancelled(&self) -> bool {
        self.call.token.is_cancelled()
    }

    /// The token that is cancelled with the call, at the latest at its end, for libraries that take one.
    pub fn cancellation_token(&self) -> &CancellationToken {
        &self.call.token
    }

    /// Says how far the call has got, if its caller wants to know. An empty message is left out.
    ///
    /// `done` only ever grows: a value that does not is left out. Of more than twenty a second, which nobody can follow,
    /// some are left out, but never the last one. `total` is a number, an `Option` of one, or `()` where it is not
    /// known.
    ///
    /// ```
    /// # fn handler(ctx: lemon_plugin_sdk::Context, files: Vec<String>, size: Option<u64>) {
    /// for (done, file) in files.iter().enumerate() {
    ///     ctx.progress(done, files.len(), file);
    /// }
    /// ctx.progress(4_096, size, "");
    /// ctx.progress(8_192, (), "cleaning up");
    /// # }
    /// ```
    pub fn progress(&self, done: impl Amount, total: impl Total, message: impl Into<String>) {
        let message = Some(message.into()).filter(|text| !text.is_empty());
        if let Some(progress) = &self.call.progress {
            progress.report(&self.call, done.amount(), total.total(), message);
        }
    }

    /// Shows the whole result so far, in place of the one shown before. Only Lemon hosts are told of it, and only where
    /// the caller wants to know; others see progress. Content and details count, the rest of the output does not.
    ///
    /// They are sent no more often than progress, and larger ones less often. Where making one costs something, use
    /// [`partial_with`](Self::partial_with).
    pub fn partial(&self, output: ToolOutput) {
        if let Some(progress) = self.for_partial() {
            progress.partial(&self.call, output);
        }
    }

    /// The same, where the result so far is only made if it will be shown: not for a client that takes none, and not
    /// while one made just before still waits for its turn.
    ///
    /// ```
    /// # use lemon_plugin_sdk::{Context, ToolOutput};
    /// fn found(lines: &[String], ctx: &Context) {
    ///     ctx.partial_with(|| ToolOutput::text(lines.join("\n")));
    /// }
    /// ```
    pub fn partial_with(&self, output: impl FnOnce() -> ToolOutput) {
        if let Some(progress) = self.for_partial().filter(|progress| !progress.has_partial()) {
            // Not under a lock: this is the plugin's code.
            progress.partial(&self.call, output());
        }
    }

    fn for_partial(&self) -> Option<&Progress> {
        self.call.progress.as_ref().filter(|_| self.call.era == Era::Lemon)
    }

    /// Sends a log message to the client, if it wants such. Logs for whoever runs the plugin go to stderr instead.
    pub fn log(&self, level: Level, text: impl AsRef<str>) {
        if self.call.era == Era::Modern && self.call.log_level.is_none_or(|least| level < least) {
            return;
        }
        let _ = self.call.while_live(|| self.call.connection.log(self.call.era, level, text.as_ref()));
    }

    /// The session's working directory; without a session, as with a plain MCP client, the process's own.
    pub fn cwd(&self) -> PathBuf {
        match &self.call.session {
            Some(session) => session.cwd(),
            None => std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
        }
    }

    /// The session that the call belongs to; none with a plain MCP client.
    pub fn session(&self) -> Option<&Session> {
        self.call.session.as_ref()
    }

    /// The configuration, of the type that [`Plugin::config`](crate::Plugin::config) declared.
    ///
    /// A plain MCP client sends none: then this is what the type reads from `{}`, its defaults.
    ///
    /// # Errors
    /// None was sent, and a value without a default is needed; or it was declared as another type.
    pub fn config<T: DeserializeOwned + Send + Sync + 'static>(&self) -> Result<Arc<T>, ConfigError> {
        self.call.connection.config::<T>()
    }

    /// The call's id, the same in all that the host reports of it; none with a plain MCP client.
    pub fn call_id(&self) -> Option<&str> {
        self.call.call_id.as_deref()
    }

    /// The host, asked on behalf of this call.
    pub fn host(&self) -> Host {
        Host::of_call(self.call.clone())
    }

    /// Whether the other side is a Lemon host.
    pub fn is_lemon(&self) -> bool {
        self.call.era == Era::Lemon
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("request", &self.call.id).finish_non_exhaustive()
    }
}
