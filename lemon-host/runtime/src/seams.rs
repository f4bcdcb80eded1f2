//! What the embedding program may bring along. Each seam has a safe default.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use serde_json::value::RawValue;

use crate::catalog::{ToolAnnotations, ToolSource};
use crate::event::Event;
use crate::plugin::PluginName;
use crate::report::PluginText;
use crate::session::Session;

/// Where secrets come from. The default reads environment variables.
///
/// ```
/// use lemon_host::{Host, Secrets};
///
/// /// Those of a keychain, say.
/// struct Keychain;
///
/// impl Secrets for Keychain {
///     fn get(&self, name: &str) -> Option<String> {
///         (name == "API_KEY").then(|| "a value that passes no report".to_owned())
///     }
/// }
///
/// let builder = Host::builder().secrets(Keychain);
/// ```
pub trait Secrets: Send + Sync {
    /// The secret of that name. May block for a moment; it is asked at the start of a plugin.
    fn get(&self, name: &str) -> Option<String>;
}

/// Secrets from the environment of the host's own process.
#[derive(Debug, Clone, Copy, Default)]
pub struct Environment;

impl Secrets for Environment {
    fn get(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }
}

/// Takes what happens in the host. The default drops it.
///
/// ```
/// use std::sync::mpsc;
///
/// use lemon_host::{Event, EventSink, Host};
///
/// /// Sends on what a user wants to know.
/// struct Failures(mpsc::Sender<String>);
///
/// impl EventSink for Failures {
///     fn event(&self, event: &Event) {
///         if let Event::State { plugin, state, reason: Some(reason), .. } = event {
///             // Fails when nobody wants to know any more.
///             let _ = self.0.send(format!("{plugin} is {state}: {reason}"));
///         }
///     }
/// }
///
/// let (sender, failures) = mpsc::channel();
/// let builder = Host::builder().events(Failures(sender));
/// ```
pub trait EventSink: Send + Sync {
    /// One event. Called on the host's own tasks; must not block.
    fn event(&self, event: &Event);
}

/// Drops every event.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoEvents;

impl EventSink for NoEvents {
    fn event(&self, _: &Event) {}
}

/// Who makes a call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Caller {
    /// The embedding program, of its own accord. It needs nobody's approval.
    #[default]
    Program,
    /// A model, through the embedding program.
    Model,
    /// A plugin.
    Plugin(PluginName),
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program => f.write_str("the program"),
            Self::Model => f.write_str("the model"),
            Self::Plugin(plugin) => write!(f, "plugin {plugin}"),
        }
    }
}

/// A call whose arguments are known to fit its tool, before it is made.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct CallRequest<'a> {
    /// The name of the call, the same in all that is told of it.
    pub call: &'a str,
    /// Who makes it.
    pub caller: &'a Caller,
    /// The tool's public name.
    pub tool: &'a str,
    /// What the tool's provider says that it does.
    pub description: Option<&'a PluginText>,
    /// What the tool's provider says of its effects.
    pub annotations: ToolAnnotations,
    /// Who provides the tool.
    pub source: &'a ToolSource,
    /// The arguments, on one line. A [`Gate`] sees those that the caller gave, an [`Approver`] those that the tool will
    /// get.
    pub arguments: &'a RawValue,
    /// The session that the call belongs to.
    pub session: &'a Session,
    /// The tools that are waiting for the answer, outermost first; empty unless a tool makes the call.
    pub chain: &'a [String],
}

impl<'a> CallRequest<'a> {
    /// A call that the program makes of a tool of its own, for a test of a [`Gate`] or an [`Approver`]; each field can be
    /// given another value.
    pub fn new(session: &'a Session, tool: &'a str, arguments: &'a RawValue) -> Self {
        Self {
            call: "call-0",
            caller: &Caller::Program,
            tool,
            description: None,
            annotations: ToolAnnotations::default(),
            source: &ToolSource::Builtin,
            arguments,
            session,
            chain: &[],
        }
    }
}

/// What a [`Gate`] says.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Verdict {
    /// The call goes on.
    Allow,
    /// The call goes on with other arguments. They are not held against the tool's schema.
    #[non_exhaustive]
    Replace {
        /// A JSON object.
        arguments: Box<RawValue>,
    },
    /// The call is not made.
    #[non_exhaustive]
    Block {
        /// Why, in a few words; whoever made the call is told.
        reason: String,
    },
}

impl Verdict {
    /// The call goes on with these arguments.
    pub fn replace(arguments: Box<RawValue>) -> Self {
        Self::Replace { arguments }
    }

    /// The call is not made, for this reason.
    pub fn block(reason: impl Into<String>) -> Self {
        Self::Block { reason: reason.into() }
    }
}

/// Looks at every call before it is made, whoever makes it and whatever provides the tool.
///
/// Gates are asked one after the other, in the order in which they were given. Each sees the arguments as the caller
/// gave them; of several that replace them the last one wins; after the first that blocks none is asked. A gate that
/// panics blocks.
///
/// ```
/// use std::future::ready;
/// use std::pin::Pin;
///
/// use lemon_host::{CallRequest, Gate, Host, SessionOptions, Verdict};
/// use serde_json::{Value, value::to_raw_value};
///
/// /// Nothing outside of the session's folder is deleted.
/// struct Inside;
///
/// impl Gate for Inside {
///     fn name(&self) -> &str {
///         "inside"
///     }
///
///     fn review<'a>(&'a self, request: CallRequest<'a>) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
///         // Read, not searched: JSON can write one path in many ways.
///         let given: Value = serde_json::from_str(request.arguments.get()).unwrap_or_default();
///         let escapes = given["path"].as_str().is_none_or(|path| path.starts_with('/') || path.contains(".."));
///         Box::pin(ready(if request.tool == "delete" && escapes { Verdict::block("it is outside") } else { Verdict::Allow }))
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), serde_json::Error> {
/// // A gate can be tried without a plugin.
/// let host = Host::builder().start();
/// let session = host.session(SessionOptions::default());
/// let arguments = to_raw_value(&serde_json::json!({ "path": "/etc/passwd" }))?;
/// let verdict = Inside.review(CallRequest::new(&session, "delete", &arguments)).await;
/// assert!(matches!(verdict, Verdict::Block { reason, .. } if reason == "it is outside"));
/// # Ok(())
/// # }
/// ```
pub trait Gate: Send + Sync {
    /// What it is called where its verdicts are told.
    fn name(&self) -> &str;

    /// Looks at one call. The call's deadline starts after all gates and the approval.
    fn review<'a>(&'a self, request: CallRequest<'a>) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>>;
}

/// What an [`Approver`] says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Approval {
    /// The call is made.
    Allow,
    /// The call is refused; whoever made it is told why.
    #[non_exhaustive]
    Deny {
        /// Why, in a few words.
        reason: String,
    },
}

impl Approval {
    /// The call is refused, for this reason.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::Deny { reason: reason.into() }
    }
}

/// Decides on calls that the program does not make itself: those of models and of plugins. The default denies them all.
///
/// It is asked after all gates, about what will really run. One that panics denies.
///
/// ```
/// use std::future::ready;
/// use std::pin::Pin;
///
/// use lemon_host::{Approval, Approver, CallRequest, Host};
///
/// /// Lets a model use the program's own tools that change nothing.
/// struct OwnReaders;
///
/// impl Approver for OwnReaders {
///     fn approve<'a>(&'a self, request: CallRequest<'a>) -> Pin<Box<dyn Future<Output = Approval> + Send + 'a>> {
///         // What a plugin says of its tools is no reason to trust it.
///         let own = request.source.plugin().is_none();
///         let allowed = own && request.annotations.read_only_hint == Some(true);
///         Box::pin(ready(if allowed { Approval::Allow } else { Approval::deny("only the program's readers may run") }))
///     }
/// }
///
/// let builder = Host::builder().approver(OwnReaders);
/// ```
pub trait Approver: Send + Sync {
    /// Decides on one call. The future may take its time; a call that waits for this one has its own deadline.
    fn approve<'a>(&'a self, request: CallRequest<'a>) -> Pin<Box<dyn Future<Output = Approval> + Send + 'a>>;
}

/// Denies every call that the program does not make itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct DenyAll;

impl Approver for DenyAll {
    fn approve<'a>(&'a self, request: CallRequest<'a>) -> Pin<Box<dyn Future<Output = Approval> + Send + 'a>> {
        let denied = Approval::deny(format!("this host does not let {} call tools", request.caller));
        Box::pin(std::future::ready(denied))
    }
}
