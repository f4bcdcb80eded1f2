//! One tool: what is said of it, and the handler that runs it.

use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::time::Duration;

use lemon_protocol::{ToolHints, meta};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::context::Context;
use crate::error::ServeError;
use crate::excerpt::{NAME, excerpt};
use crate::output::{IntoToolOutput, ToolOutput};
use crate::read::Misfit;
use crate::schema;

/// The arguments of a tool that takes none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(description = "")]
pub struct NoArgs {}

/// A tool with all that can be said of it. [`Plugin::tool`](crate::Plugin::tool) is the short way for most.
///
/// ```
/// use std::time::Duration;
/// use lemon_plugin_sdk::{Context, JsonSchema, Plugin, Tool};
///
/// #[derive(serde::Deserialize, JsonSchema)]
/// struct Search {
///     /// What to look for.
///     text: String,
/// }
///
/// let search = Tool::new("search", "Searches the notes.", async |args: Search, _ctx| format!("no {}", args.text))
///     .title("Search notes")
///     .read_only(true)
///     .timeout(Duration::from_secs(10));
/// let plugin = Plugin::new("notes", "1.0.0").add_tool(search);
/// ```
#[must_use]
pub struct Tool {
    pub(crate) name: String,
    title: Option<String>,
    description: String,
    input_schema: Result<Value, String>,
    output_schema: Option<Value>,
    annotations: Annotations,
    timeout: Option<Duration>,
    /// Its handler can't be dropped.
    pub(crate) blocking: bool,
    handler: Box<dyn Handler>,
}

#[derive(Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Annotations {
    #[serde(skip_serializing_if = "Option::is_none")]
    read_only_hint: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    destructive_hint: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotent_hint: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    open_world_hint: Option<bool>,
}

impl Tool {
    /// A tool whose handler is an `async fn` or closure of the arguments and the [`Context`].
    ///
    /// The type of the arguments gives the input schema: its doc comments become descriptions, a field with a default
    /// is optional. `name` should match `[A-Za-z0-9_-]{1,64}`, which every model takes.
    ///
    /// An `async` closure that captures something can't be called twice at once in today's Rust; write it as a closure
    /// that clones what it captured into an `async move` block:
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// use lemon_plugin_sdk::{Context, NoArgs, Tool};
    ///
    /// let calls = Arc::new(AtomicU64::new(0));
    /// let tool = Tool::new("count", "Counts its calls.", move |_: NoArgs, _: Context| {
    ///     let calls = calls.clone();
    ///     async move { format!("{}", calls.fetch_add(1, Ordering::Relaxed) + 1) }
    /// });
    /// ```
    pub fn new<In, Out, Fut, F>(name: impl Into<String>, description: impl Into<String>, handler: F) -> Self
    where
        In: DeserializeOwned + JsonSchema + Send + 'static,
        Out: IntoToolOutput,
        Fut: Future<Output = Out> + Send + 'static,
        F: Fn(In, Context) -> Fut + Send + Sync + 'static,
    {
        Self {
            name: name.into(),
            title: None,
            description: description.into(),
            input_schema: schema::object(schema::of_input::<In>()),
            output_schema: Out::output_schema(),
            annotations: Annotations::default(),
            timeout: None,
            blocking: false,
            handler: Box::new(Typed { function: handler, types: PhantomData }),
        }
    }

    /// A tool whose handler blocks its thread: it runs on tokio's threads for that, so that other calls go on.
    ///
    /// Such a handler can't be dropped when its call is cancelled, so a long one should look at
    /// [`Context::is_cancelled`] now and then. [`Plugin::cancel_grace`](crate::Plugin::cancel_grace) is not for it: a
    /// Lemon host hears that the call has settled when the handler has returned.
    pub fn blocking<In, Out, F>(name: impl Into<String>, description: impl Into<String>, handler: F) -> Self
    where
        In: DeserializeOwned + JsonSchema + Send + 'static,
        Out: IntoToolOutput + Send + 'static,
        F: Fn(In, Context) -> Out + Send + Sync + 'static,
    {
        let handler = std::sync::Arc::new(handler);
        let tool = Self::new(name, description, move |arguments: In, context: Context| {
            let handler = handler.clone();
            async move {
                match tokio::task::spawn_blocking(move || handler(arguments, context)).await {
                    Ok(output) => output,
                    Err(error) => match error.try_into_panic() {
                        Ok(panic) => std::panic::resume_unwind(panic),
                        Err(error) => std::panic::panic_any(error.to_string()),
                    },
                }
            }
        });
        Self { blocking: true, ..tool }
    }

    /// A name for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Puts another schema in the place of the one that the type of the arguments gives, for arguments that are only
    /// known at run time; take them as [`serde_json::Value`] or `Map<String, Value>` then.
    pub fn input_schema(mut self, schema: Value) -> Self {
        let is_object = schema.get("type").is_some_and(|kind| kind == "object");
        self.input_schema =
            if is_object { Ok(schema) } else { Err(r#"the root of its input schema has no "type": "object""#.into()) };
        self
    }

    /// MCP's hint that the tool changes nothing.
    pub fn read_only(mut self, hint: bool) -> Self {
        self.annotations.read_only_hint = Some(hint);
        self
    }

    /// MCP's hint that the tool may destroy something.
    pub fn destructive(mut self, hint: bool) -> Self {
        self.annotations.destructive_hint = Some(hint);
        self
    }

    /// MCP's hint that a second call with the same arguments changes nothing more.
    pub fn idempotent(mut self, hint: bool) -> Self {
        self.annotations.idempotent_hint = Some(hint);
        self
    }

    /// MCP's hint that the tool deals with the world outside, such as the web.
    pub fn open_world(mut self, hint: bool) -> Self {
        self.annotations.open_world_hint = Some(hint);
        self
    }

    /// How long a call may take in all, in whole milliseconds; zero means for ever. Without it the host's own limit holds
    /// (LPP-TOOL-05).
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// The tool as it is listed.
    pub(crate) fn listed(&self) -> Result<lemon_protocol::Tool, ServeError> {
        let fault = |problem: String| ServeError::Tool { tool: self.name.clone(), problem };
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
        if !(1..=128).contains(&self.name.len()) || !self.name.bytes().all(legal) {
            return Err(fault("a tool's name has 1 to 128 of the characters A-Z a-z 0-9 _ - .".into()));
        }
        let input =
            self.input_schema.clone().map_err(|problem| fault(format!("the type of its arguments: {problem}")))?;
        let output = self.output_schema.clone().map(schema::object).transpose();
        let output = output.map_err(|problem| fault(format!("the type of its result: {problem}")))?;
        let mut meta_data = Map::new();
        if let Some(timeout) = self.timeout {
            // Up, as a short time is not the zero that means for ever.
            let milliseconds = timeout.as_nanos().div_ceil(1_000_000);
            let hints = ToolHints { timeout_ms: Some(u64::try_from(milliseconds).unwrap_or(u64::MAX)) };
            meta_data.insert(meta::TOOL.to_owned(), serde_json::to_value(hints).unwrap_or_default());
        }
        let annotations = (self.annotations != Annotations::default())
            .then(|| serde_json::to_value(&self.annotations).unwrap_or_default());
        Ok(lemon_protocol::Tool {
            name: self.name.clone(),
            title: self.title.clone(),
            description: Some(self.description.clone()).filter(|text| !text.is_empty()),
            input_schema: input,
            output_schema: output,
            annotations,
            meta: meta_data,
        })
    }

    /// Reads the arguments, a JSON object, and makes the future that runs the handler. Nothing of this panics.
    ///
    /// # Errors
    /// The result that tells the model why it can't be called so.
    pub(crate) fn start(&self, arguments: &str, context: Context) -> Result<Running, ToolOutput> {
        catch_unwind(AssertUnwindSafe(|| self.handler.start(arguments, context)))
            .unwrap_or_else(|panic| Err(panicked(&*panic)))
            .map_err(|problem| ToolOutput { is_error: true, ..problem })
    }
}

impl std::fmt::Debug for Tool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tool").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A handler that runs.
pub(crate) type Running = Pin<Box<dyn Future<Output = ToolOutput> + Send>>;

/// A handler without its types.
trait Handler: Send + Sync {
    fn start(&self, arguments: &str, context: Context) -> Result<Running, ToolOutput>;
}

struct Typed<F, In> {
    function: F,
    types: PhantomData<fn(In)>,
}

impl<In, Out, Fut, F> Handler for Typed<F, In>
where
    In: DeserializeOwned + 'static,
    Out: IntoToolOutput,
    Fut: Future<Output = Out> + Send + 'static,
    F: Fn(In, Context) -> Fut + Send + Sync,
{
    fn start(&self, arguments: &str, context: Context) -> Result<Running, ToolOutput> {
        let arguments = read(arguments).map_err(ToolOutput::error)?;
        let running = (self.function)(arguments, context);
        Ok(Box::pin(async move { running.await.into_tool_output() }))
    }
}

/// Reads arguments; the error names the place that does not fit.
fn read<T: DeserializeOwned>(arguments: &str) -> Result<T, String> {
    crate::read::read(arguments).map_err(|Misfit { path, reason }| {
        let path = path.to_string();
        let path = excerpt(&path, NAME);
        if path == "." { format!("the arguments do not fit: {reason}") } else { format!("argument {path}: {reason}") }
    })
}

/// The result of a handler that panicked. Rust's panic hook has told of it on stderr.
pub(crate) fn panicked(panic: &(dyn std::any::Any + Send)) -> ToolOutput {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    ToolOutput::error(match text {
        Some(text) => format!("the tool panicked: {text}"),
        None => "the tool panicked".to_owned(),
    })
}
