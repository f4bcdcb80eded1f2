//! Tools that the embedding program brings along as code of its own.
//!
//! They go the same way as the tools of plugins: checked arguments, gates, deadline, cancellation, size cap.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use lemon_protocol::Tool;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::sync::{Notify, broadcast};

use super::annotations::ToolAnnotations;
use super::names::{MCP_PREFIX, Source, public_name};
use crate::discovery::CallTimeout;
use crate::limits::Limits;
use crate::pipeline::{Call, Progress, ToolResult};
use crate::seams::Caller;
use crate::session::Session;
use crate::wire::CallContext;

type Answer = Pin<Box<dyn Future<Output = ToolResult> + Send>>;

/// A tool that the embedding program provides, as part of itself or at run time.
///
/// ```
/// use lemon_host::{HostTool, HostToolError};
/// use serde_json::json;
///
/// # fn main() -> Result<(), HostToolError> {
/// let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
/// let double = HostTool::new("double", "Doubles a number", schema, |call| async move {
///     call.arguments::<serde_json::Value>().map(|arguments| format!("{}", arguments["n"].as_i64().unwrap_or(0) * 2))
/// })?;
/// assert_eq!(double.name(), "double");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct HostTool {
    pub(crate) tool: Arc<Tool>,
    pub(crate) timeout: CallTimeout,
    run: Arc<dyn Fn(ToolCall) -> Answer + Send + Sync>,
}

/// Why a [`HostTool`] can't be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostToolError {
    /// Models take other names only.
    #[error("{name:?} can't be a tool's name: it must be 1 to 64 of A-Z, a-z, 0-9, _ and -")]
    Name {
        /// The name.
        name: String,
    },
    /// The name looks like one of an MCP server's tools.
    #[error("{name:?} can't be a tool's name: names that begin with {MCP_PREFIX} belong to MCP servers")]
    Reserved {
        /// The name.
        name: String,
    },
    /// A schema is invalid, could cost too much, or the one of the arguments describes no object.
    #[error("a schema of the tool {name:?} can't be used: {reason}")]
    Schema {
        /// The tool's name.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl HostTool {
    /// A tool with a name, a description for the model, the JSON Schema of its arguments, and what it does.
    ///
    /// `run` gets each call with arguments that fit the schema, unless a [`Gate`](crate::Gate) put others in their place.
    /// What it returns is made a [`ToolResult`]: a string is text, an `Err` is a result that says that the tool failed,
    /// and so is a panic. A function that holds the [`Host`](crate::Host) keeps it alive for ever; a call has its
    /// [session](ToolCall::session).
    ///
    /// # Errors
    /// A name that no model takes, or one that is reserved, or a schema that can't be used.
    pub fn new<F, A>(
        name: impl Into<String>,
        description: impl Into<String>,
        input_schema: Value,
        run: impl Fn(ToolCall) -> F + Send + Sync + 'static,
    ) -> Result<Self, HostToolError>
    where
        F: Future<Output = A> + Send + 'static,
        A: Into<ToolResult>,
    {
        let name = name.into();
        if name.starts_with(MCP_PREFIX) {
            return Err(HostToolError::Reserved { name });
        }
        if public_name(Source::Plain, &name).as_str() != name {
            return Err(HostToolError::Name { name });
        }
        if input_schema["type"] != "object" {
            return Err(HostToolError::Schema { name, reason: "its root has no \"type\": \"object\"".to_owned() });
        }
        check(&name, &input_schema)?;
        let run = Arc::new(run);
        let tool = Tool {
            name,
            title: None,
            description: Some(description.into()),
            input_schema,
            output_schema: None,
            annotations: None,
            meta: Map::new(),
        };
        Ok(Self {
            tool: Arc::new(tool),
            timeout: CallTimeout::Unset,
            run: Arc::new(move |call| {
                let run = run.clone();
                // Within the future, so that a panic of the function itself is caught as well.
                Box::pin(async move { run(call).await.into() })
            }),
        })
    }

    /// Gives the tool a name for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        Arc::make_mut(&mut self.tool).title = Some(title.into());
        self
    }

    /// Says what the structured result looks like, as a JSON Schema.
    ///
    /// # Errors
    /// A schema that can't be used.
    pub fn output_schema(mut self, schema: Value) -> Result<Self, HostToolError> {
        check(self.name(), &schema)?;
        Arc::make_mut(&mut self.tool).output_schema = Some(schema);
        Ok(self)
    }

    /// Says what effects the tool has.
    #[must_use]
    pub fn annotations(mut self, annotations: ToolAnnotations) -> Self {
        // A few booleans have a JSON form.
        Arc::make_mut(&mut self.tool).annotations = serde_json::to_value(annotations).ok();
        self
    }

    /// Says how long a call may take in all; zero means for ever. Otherwise it is `Timeouts::call_ms`.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = if timeout.is_zero() { CallTimeout::Never } else { CallTimeout::After(timeout) };
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.tool.name
    }

    pub(crate) fn run(&self, call: ToolCall) -> Answer {
        (self.run)(call)
    }
}

/// The program's own schemas are held to the usual bounds, whatever a host's are.
fn check(name: &str, schema: &Value) -> Result<(), HostToolError> {
    match crate::schema::check(schema, &Limits::default()) {
        Ok(_) => Ok(()),
        Err(fault) => Err(HostToolError::Schema { name: name.to_owned(), reason: fault.to_string() }),
    }
}

impl fmt::Debug for HostTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostTool").field("name", &self.tool.name).finish_non_exhaustive()
    }
}

/// One call, as a [`HostTool`] gets it.
#[derive(Debug)]
pub struct ToolCall {
    pub(crate) id: String,
    pub(crate) caller: Caller,
    pub(crate) arguments: Box<RawValue>,
    pub(crate) context: CallContext,
    /// Weak, as the notes end with the call and not with whoever keeps this.
    pub(crate) progress: Option<broadcast::WeakSender<Progress>>,
    /// Rings at each note of progress.
    pub(crate) heard: Arc<Notify>,
}

impl ToolCall {
    /// The name of the call, the same in all that is told of it.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Who makes it.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The arguments, read into a type.
    ///
    /// # Errors
    /// When they fit the schema, but not the type.
    pub fn arguments<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.arguments.get())
    }

    /// The arguments as JSON, every digit of their numbers included.
    pub fn raw_arguments(&self) -> &RawValue {
        &self.arguments
    }

    /// The session that the call belongs to.
    pub fn session(&self) -> &Session {
        &self.context.scope.session
    }

    /// Waits until nobody wants the answer any more: it was cancelled, or its deadline has passed. The call then has
    /// `Timeouts::linger_ms` to come to its end before its future is dropped.
    pub async fn cancelled(&self) {
        self.context.ended.cancelled().await;
    }

    /// Tells how far the call has got.
    pub fn progress(&self, progress: Progress) {
        self.heard.notify_one();
        if let Some(notes) = self.progress.as_ref().and_then(broadcast::WeakSender::upgrade) {
            // Nobody may be listening any more.
            let _ = notes.send(progress);
        }
    }

    /// A call of another tool from within this one: it shares its deadline, its end and its caller, so that what a model
    /// asked for is approved wherever it runs. A tool that vouches for what it calls says
    /// [`made_by`](Call::made_by)`(Caller::Program)`.
    pub fn call(&self, tool: impl Into<String>, arguments: impl Into<String>) -> Call {
        self.session().call(tool, arguments).made_by(self.caller.clone()).within(self.context.clone())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_that_no_model_takes_is_refused_where_it_is_given() {
        let made = |name: &str| {
            HostTool::new(name, "", json!({ "type": "object" }), |_| async { "" }).map(|tool| tool.name().to_owned())
        };
        assert_eq!(made("read-File_2").as_deref(), Ok("read-File_2"));
        let long = "x".repeat(65);
        for name in ["", " ", "read file", "read.file", "é", &long] {
            assert_eq!(made(name), Err(HostToolError::Name { name: name.to_owned() }));
        }
        assert_eq!(made("mcp_x"), Err(HostToolError::Reserved { name: "mcp_x".to_owned() }));
        for schema in [json!({ "type": "string" }), json!({ "type": "object", "properties": 5 })] {
            let tool = HostTool::new("x", "", schema, |_| async { "" });
            assert!(matches!(tool, Err(HostToolError::Schema { .. })));
        }
    }
}
