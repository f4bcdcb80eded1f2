//! Whether plugins may call tools of others.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use lemon_host::{Approval, Approver, CallRequest};

use crate::output::Output;

/// Decides on the calls that plugins make: those within a call with `--yes` are allowed. Clones are the same.
#[derive(Clone)]
pub(crate) struct Consent {
    /// The tools of the calls with `--yes` that are under way.
    allowed: Arc<Mutex<Vec<String>>>,
    output: Output,
}

/// A call with `--yes`, until it is dropped.
pub(crate) struct Allowed<'a> {
    consent: &'a Consent,
    tool: String,
}

impl Consent {
    pub(super) fn new(output: &Output) -> Self {
        Self { allowed: Arc::default(), output: output.clone() }
    }

    /// Allows the calls that are made on behalf of this tool.
    pub(super) fn allow(&self, tool: &str) -> Allowed<'_> {
        let tool = tool.to_owned();
        self.with(|allowed| allowed.push(tool.clone()));
        Allowed { consent: self, tool }
    }

    fn with<T>(&self, change: impl FnOnce(&mut Vec<String>) -> T) -> T {
        change(&mut self.allowed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn allows(&self, chain: &[String]) -> bool {
        self.with(|allowed| match chain.first() {
            Some(outermost) => allowed.contains(outermost),
            // It is made on behalf of the session, while such a call is under way.
            None => !allowed.is_empty(),
        })
    }
}

impl Drop for Allowed<'_> {
    fn drop(&mut self) {
        self.consent.with(|allowed| {
            if let Some(at) = allowed.iter().position(|tool| *tool == self.tool) {
                allowed.swap_remove(at);
            }
        });
    }
}

impl Approver for Consent {
    fn approve<'a>(&'a self, request: CallRequest<'a>) -> Pin<Box<dyn Future<Output = Approval> + Send + 'a>> {
        let approval = if self.allows(request.chain) {
            Approval::Allow
        } else {
            self.output.warning(format!(
                "{} wanted to call the tool `{}` and was refused; `--yes` allows it",
                request.caller, request.tool
            ));
            Approval::deny("the user did not allow plugins to call other tools (lemon call --yes)")
        };
        Box::pin(std::future::ready(approval))
    }
}
