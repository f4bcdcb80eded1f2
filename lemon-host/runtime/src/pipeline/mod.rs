//! One call, from its request to its result, the same way for every caller and every tool.
//!
//! Look-up, arguments, gates, approval, the call itself with its deadline, the size cap: in this order. What can't be
//! called, or not with these arguments, reaches no gate; what a gate or the user refuses reaches no tool.

mod admission;
mod cap;
mod chain;
mod own;
mod progress;
mod result;

use std::fmt;
use std::future::IntoFuture;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use lemon_protocol::{SessionRef, meta, method};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use tokio::sync::{OwnedSemaphorePermit, broadcast};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::arguments::Arguments;
use crate::catalog::{Entry, Provider, ToolCall};
use crate::discovery::CallTimeout;
use crate::error::{CallError, Callee};
use crate::event::Event;
use crate::host::Host;
use crate::plugin::Plugin;
use crate::plugin::live::Live;
use crate::report::PluginText;
use crate::seams::{CallRequest, Caller};
use crate::session::Session;
use crate::wire::{CallContext, CallScope, Outgoing};

pub use cap::TextCap;
pub(crate) use chain::Chain;
pub use progress::{Progress, ProgressStream};
pub use result::ToolResult;

/// As good as never.
const FAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// A call that has not been made yet. Await it to make it; drop the future to cancel it.
#[must_use = "a call is not made until it is awaited"]
#[derive(Debug)]
pub struct Call {
    session: Session,
    tool: String,
    arguments: String,
    caller: Caller,
    total: Option<Duration>,
    cancel: Option<CancellationToken>,
    progress: Option<broadcast::Sender<Progress>>,
    cap: Option<TextCap>,
    parent: Option<CallContext>,
}

/// A call that may be made: what is known of it before anything runs.
struct Admitted {
    host: Host,
    entry: Arc<Entry>,
    arguments: Box<RawValue>,
    id: CallId,
    chain: Chain,
}

/// The name of one call of a host.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallId(pub(crate) u64);

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "call-{}", self.0)
    }
}

impl Call {
    pub(crate) fn new(session: Session, tool: String, arguments: String) -> Self {
        Self {
            session,
            tool,
            arguments,
            caller: Caller::Program,
            total: None,
            cancel: None,
            progress: None,
            cap: None,
            parent: None,
        }
    }

    /// Says who makes the call, if it is not the program itself. Calls of others need approval.
    pub fn made_by(mut self, caller: Caller) -> Self {
        self.caller = caller;
        self
    }

    /// How long the call may take in all, in place of what the tool and the config say. It begins when the call is
    /// approved.
    pub fn deadline(mut self, total: Duration) -> Self {
        self.total = Some(total);
        self
    }

    /// Cancels the call when the token is cancelled.
    pub fn cancelled_by(mut self, cancel: CancellationToken) -> Self {
        self.cancel = Some(cancel);
        self
    }

    /// Takes no more than so much text of the result; all of it by default.
    pub fn cap(mut self, cap: TextCap) -> Self {
        self.cap = Some(cap);
        self
    }

    /// The call's progress.
    pub fn progress(&mut self) -> ProgressStream {
        /// The channel has room for all notes from the start.
        const MOST: usize = 64 * 1024;
        let notes = self.session.host().map_or(1, |host| host.limits().progress_notes);
        let sender = self.progress.get_or_insert_with(|| broadcast::channel(notes.clamp(1, MOST)).0);
        ProgressStream(sender.subscribe())
    }

    /// Makes it a call that a tool makes from within another call, which ends with that one.
    pub(crate) fn within(mut self, parent: CallContext) -> Self {
        self.parent = Some(parent);
        self
    }

    async fn make(self) -> Result<ToolResult, CallError> {
        let Some(parent) = &self.parent else { return self.carry_out().await };
        let (ended, callee) = (parent.ended.clone(), Callee::Tool(self.tool.clone()));
        tokio::select! {
            biased;
            // What is under way is cancelled by being dropped.
            () = ended.cancelled() => Err(CallError::Cancelled { callee }),
            result = self.carry_out() => result,
        }
    }

    async fn carry_out(mut self) -> Result<ToolResult, CallError> {
        let cap = self.cap.take();
        let admitted = self.admitted().await?;
        let result = match &admitted.entry.provider {
            Provider::Plugin(plugin) => self.ask(plugin, &admitted).await?,
            Provider::Program(tool) => {
                self.session.living_host()?;
                let (total, idle, deadline) = self.limits(&admitted);
                let scope = self.scope(&admitted.chain, deadline);
                let call = ToolCall {
                    id: admitted.id.to_string(),
                    caller: self.caller.clone(),
                    arguments: admitted.arguments.clone(),
                    context: CallContext { scope, ended: CancellationToken::new() },
                    progress: self.progress.as_ref().map(broadcast::Sender::downgrade),
                    heard: Arc::default(),
                };
                let times = own::Times { total, idle, linger: admitted.host.timeouts().linger_ms.get() };
                let cancel = self.cancel.clone().unwrap_or_default();
                own::run(&admitted.host, tool, call, times, &cancel).await?
            }
        };
        let Some(cap) = cap else { return Ok(result) };
        let id = admitted.id.to_string();
        self.unless_cancelled(&admitted.entry, async { Ok(cap.apply(result, &id).await) }).await
    }

    /// Ends something early when the call is cancelled.
    async fn unless_cancelled<T>(
        &self,
        entry: &Entry,
        work: impl Future<Output = Result<T, CallError>>,
    ) -> Result<T, CallError> {
        let Some(cancel) = &self.cancel else { return work.await };
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(CallError::Cancelled { callee: entry.callee() }),
            done = work => done,
        }
    }

    /// Everything that comes before the call itself.
    async fn admitted(&self) -> Result<Admitted, CallError> {
        let host = self.session.living_host()?;
        let entry = host.find(&self.tool, self.session.filter())?;
        self.unless_cancelled(&entry, self.admit(host, entry.clone())).await
    }

    async fn admit(&self, host: Host, entry: Arc<Entry>) -> Result<Admitted, CallError> {
        let chain = self.chain(&host, &entry)?;
        let arguments = self.checked(&host, &entry).await?;
        let id = host.next_call();
        let needs_nobody = host.gates().is_empty() && self.caller == Caller::Program;
        let in_place = if needs_nobody { None } else { self.review(&host, &entry, &arguments, id).await? };
        let arguments = in_place.unwrap_or_else(|| arguments.into_sent());
        Ok(Admitted { host, entry, arguments, id, chain })
    }

    /// The arguments, as they fit the tool.
    async fn checked(&self, host: &Host, entry: &Entry) -> Result<Arguments, CallError> {
        let schema = host.schemas().of(&entry.tool, &entry.source, host.limits()).await;
        if let Some(note) = schema.untold_note() {
            let (tool, reason) = (entry.name.to_string(), PluginText::new(note));
            host.tell(&Event::SchemaIgnored { tool, reason });
        }
        let arguments = Arguments::read(&self.arguments, &schema, host.limits()).await;
        arguments.map_err(|fault| CallError::Arguments { tool: entry.name.to_string(), fault })
    }

    /// Asks the gates and the approver. Gives the arguments that gates put in place of the caller's, if any did.
    async fn review(
        &self,
        host: &Host,
        entry: &Entry,
        arguments: &Arguments,
        id: CallId,
    ) -> Result<Option<Box<RawValue>>, CallError> {
        let waiting = self.parent.as_ref().map(|parent| parent.scope.chain.names()).unwrap_or_default();
        let request = CallRequest {
            call: &id.to_string(),
            caller: &self.caller,
            tool: entry.name.as_str(),
            source: &entry.source,
            arguments: arguments.given(),
            session: &self.session,
            chain: &waiting,
        };
        admission::admit(host.gates(), host.approver(), request, arguments.sent(), host.limits()).await
    }

    /// Has the plugin run the tool.
    async fn ask(&self, plugin: &Arc<Plugin>, admitted: &Admitted) -> Result<ToolResult, CallError> {
        let Admitted { host, entry, arguments, id, chain } = admitted;
        let (total, idle, deadline) = self.limits(admitted);
        let mut before: Option<(Arc<Live>, CallError)> = None;
        let result = loop {
            self.session.living_host()?;
            let (live, permit) = self.process(plugin, total, deadline, host.limits().calls).await?;
            if let Some((_, error)) = before.filter(|(before, _)| Arc::ptr_eq(before, &live)) {
                break Err(error);
            }
            let outgoing = Outgoing {
                total,
                deadline,
                idle,
                cancel: self.cancel.clone(),
                progress: self.progress.clone(),
                permit,
                scope: Some(self.scope(chain, deadline)),
                control: false,
            };
            let params = |number, bytes: &mut Vec<u8>| {
                write_params(bytes, number, entry, arguments, live.announce(&self.session), *id);
            };
            match live.peer.call(method::TOOLS_CALL, params, outgoing).await {
                // The process is being replaced and has not heard of the call: it goes to the next one.
                Err(error @ CallError::NotReady { reason: None, .. }) => before = Some((live, error)),
                result => break result,
            }
        };
        ToolResult::from_raw(result?).map_err(|fault| CallError::Protocol {
            plugin: plugin.name().clone(),
            method: method::TOOLS_CALL,
            detail: PluginText::new(format!("its result can't be read: {fault}")),
        })
    }

    fn scope(&self, chain: &Chain, deadline: Option<Instant>) -> CallScope {
        CallScope { session: self.session.clone(), chain: chain.clone(), deadline }
    }

    /// The process that takes the call, with a slot in it.
    async fn process(
        &self,
        plugin: &Plugin,
        total: Option<Duration>,
        deadline: Option<Instant>,
        slots: usize,
    ) -> Result<(Arc<Live>, Option<OwnedSemaphorePermit>), CallError> {
        // Most calls wait for nothing.
        if let Some(live) = plugin.live_now(&self.session) {
            let permit = if self.parent.is_some() { None } else { live.peer.free_slot() };
            if permit.is_some() || self.parent.is_some() {
                return Ok((live, permit));
            }
        }
        let name = || plugin.name().clone();
        let cancel = self.cancel.clone().unwrap_or_default();
        let too_late = deadline.unwrap_or_else(|| Instant::now() + FAR);
        let unsent = |reason| CallError::Unsent { plugin: name(), after: total.unwrap_or(FAR), reason };
        let live = tokio::select! {
            live = plugin.live_for(&self.session) => live?,
            () = cancel.cancelled() => return Err(CallError::Cancelled { callee: name().into() }),
            () = tokio::time::sleep_until(too_late) => return Err(unsent("it is still being started".to_owned())),
        };
        // A call from within a call takes no slot, or full plugins that call each other would wait for ever.
        if self.parent.is_some() {
            return Ok((live, None));
        }
        let permit = tokio::select! {
            permit = live.peer.slot() => permit,
            () = cancel.cancelled() => return Err(CallError::Cancelled { callee: name().into() }),
            () = tokio::time::sleep_until(too_late) => {
                return Err(unsent(format!("all of its {slots} slots are taken (limits.calls)")));
            }
        };
        Ok((live, permit))
    }

    /// The tools that will be waiting, this one included.
    fn chain(&self, host: &Host, entry: &Arc<Entry>) -> Result<Chain, CallError> {
        let before = self.parent.as_ref().map(|parent| parent.scope.chain.clone()).unwrap_or_default();
        let (comes_back, depth) = (before.contains(entry.name.as_str()), host.limits().call_depth);
        let chain = before.with(entry.clone());
        if comes_back {
            let reason = format!("the call would come back to a tool that is waiting for it: {chain}");
            return Err(CallError::Chain { kind: lemon_protocol::Kind::Cycle, reason });
        }
        if chain.len() > depth {
            let reason = format!("calls within calls are limited to {depth} (limits.call_depth): {chain}");
            return Err(CallError::Chain { kind: lemon_protocol::Kind::TooDeep, reason });
        }
        Ok(chain)
    }

    /// How long the call may take in all, without progress, and until when: what the caller says, else the config, the
    /// tool, and the default; and never longer than the call that it is made from.
    fn limits(&self, admitted: &Admitted) -> (Option<Duration>, Option<Duration>, Option<Instant>) {
        let Admitted { host, entry, .. } = admitted;
        let (given, hint) = match &entry.provider {
            Provider::Plugin(plugin) => (plugin.spec().call_timeout, entry.tool.hints().timeout_ms),
            Provider::Program(tool) => (tool.timeout, None),
        };
        let own = match (self.total, given, hint) {
            (Some(total), _, _) => Some(total),
            (None, CallTimeout::Never, _) | (None, CallTimeout::Unset, Some(0)) => None,
            (None, CallTimeout::After(total), _) => Some(total),
            (None, CallTimeout::Unset, Some(hint)) => Some(Duration::from_millis(hint)),
            (None, CallTimeout::Unset, None) => host.timeouts().call_ms.limit(),
        };
        let left = self
            .parent
            .as_ref()
            .and_then(|parent| parent.scope.deadline)
            .map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let total = own.into_iter().chain(left).min();
        let deadline = total.and_then(|total| Instant::now().checked_add(total));
        (total, host.timeouts().call_idle_ms.limit(), deadline)
    }
}

impl IntoFuture for Call {
    type Output = Result<ToolResult, CallError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.make())
    }
}

/// Writes the params of `tools/call`.
fn write_params(
    bytes: &mut Vec<u8>,
    number: i64,
    entry: &Entry,
    arguments: &RawValue,
    session: Option<SessionRef>,
    call: CallId,
) {
    #[derive(Serialize)]
    struct Meta {
        #[serde(rename = "progressToken")]
        progress_token: i64,
        #[serde(rename = "dev.lemon/session", skip_serializing_if = "Option::is_none")]
        session: Option<SessionRef>,
        #[serde(rename = "dev.lemon/call", skip_serializing_if = "Option::is_none", serialize_with = "shown")]
        call: Option<CallId>,
    }
    fn shown<S: Serializer>(call: &Option<CallId>, serializer: S) -> Result<S::Ok, S::Error> {
        match call {
            Some(call) => serializer.collect_str(call),
            None => serializer.serialize_none(),
        }
    }
    debug_assert_eq!(
        (meta::PROGRESS_TOKEN, meta::SESSION, meta::CALL),
        ("progressToken", "dev.lemon/session", "dev.lemon/call")
    );
    /// What the rest takes at most.
    const AROUND: usize = 256;
    bytes.reserve(entry.call_head.len() + arguments.get().len() + AROUND);
    bytes.extend_from_slice(entry.call_head.as_bytes());
    bytes.extend_from_slice(arguments.get().as_bytes());
    bytes.extend_from_slice(br#","_meta":"#);
    let call = session.is_some().then_some(call);
    // Strings and numbers can be written, and a vector takes them.
    let _ = serde_json::to_writer(&mut *bytes, &Meta { progress_token: number, session, call });
    bytes.push(b'}');
}
