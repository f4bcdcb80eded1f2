//! What the embedding program may bring along. Each seam has a safe default.

use std::future::Future;
use std::pin::Pin;

use serde_json::value::RawValue;

use crate::event::Event;
use crate::plugin::PluginName;

/// Where secrets come from. The default reads environment variables.
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

/// A call that a plugin wants to make of another tool.
#[derive(Debug)]
#[non_exhaustive]
pub struct ApprovalRequest<'a> {
    /// The plugin that asks.
    pub plugin: &'a PluginName,
    /// The tool that it wants to run.
    pub tool: &'a str,
    /// The arguments, as the tool would get them.
    pub arguments: &'a RawValue,
    /// The tools that are waiting for the answer, outermost first.
    pub chain: &'a [String],
}

/// What an [`Approver`] says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Approval {
    /// The call is made.
    Allow,
    /// The call is refused; the plugin is told why.
    Deny {
        /// Why, in a few words.
        reason: String,
    },
}

/// Decides on calls that plugins make. The default denies them all.
pub trait Approver: Send + Sync {
    /// Decides on one call. The future may take its time: the calling tool's deadline goes on.
    fn approve<'a>(&'a self, request: ApprovalRequest<'a>) -> Pin<Box<dyn Future<Output = Approval> + Send + 'a>>;
}

/// Denies every call that a plugin makes.
#[derive(Debug, Clone, Copy, Default)]
pub struct DenyAll;

impl Approver for DenyAll {
    fn approve<'a>(&'a self, _: ApprovalRequest<'a>) -> Pin<Box<dyn Future<Output = Approval> + Send + 'a>> {
        let reason = "this host does not let plugins call other tools".to_owned();
        Box::pin(std::future::ready(Approval::Deny { reason }))
    }
}
