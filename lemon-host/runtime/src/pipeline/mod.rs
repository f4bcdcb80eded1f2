//! One call, from its request to its result, the same way for every caller and every tool.
//!
//! Look-up, arguments, gates, approval, the call itself with its deadline, the size cap: in this order. What can't be
//! called, or not with these arguments, reaches no gate; what a gate or the user refuses reaches no tool.

mod admission;
mod cap;
mod chain;
mod members;
mod own;
mod progress;
mod result;

use std::borrow::Cow;
use std::fmt;
use std::future::IntoFuture;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use lemon_protocol::{SessionRef, meta, method};
use serde_json::value::RawValue;
use tokio::sync::{OwnedSemaphorePermit, broadcast};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::arguments::{Arguments, json};
use crate::catalog::{Entry, Fingerprint, HostTool, Provider, ToolCall};
use crate::discovery::CallTimeout;
use crate::error::{CallError, Callee};
use crate::event::Event;
use crate::host::Host;
use crate::plugin::live::Live;
use crate::plugin::{Listed, Plugin};
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
    // Few calls have these, and a call is moved more than once.
    cap: Option<Box<TextCap>>,
    parent: Option<Box<CallContext>>,
    expected: Option<Box<Fingerprint>>,
}

/// A call that may be made: what is known of it before anything runs.
struct Admitted<'a> {
    host: Host,
    entry: Arc<Entry>,
    arguments: Cow<'a, str>,
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
            expected: None,
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

    /// Makes the call only if the tool is still what it was when it was [listed](crate::ToolInfo::fingerprint): whoever
    /// decided on the call was shown that.
    pub fn expecting(mut self, fingerprint: Fingerprint) -> Self {
        self.expected = Some(Box::new(fingerprint));
        self
    }

    /// Cancels the call when the token is cancelled.
    pub fn cancelled_by(mut self, cancel: CancellationToken) -> Self {
        self.cancel = Some(cancel);
        self
    }

    /// Takes no more than so much text of the result; all of it by default.
    pub fn cap(mut self, cap: TextCap) -> Self {
        self.cap = Some(Box::new(cap));
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
        self.parent = Some(Box::new(parent));
        self
    }

    async fn make(&self) -> Result<ToolResult, CallError> {
        let carried_out = pin!(self.carry_out());
        let Some(parent) = &self.parent else { return carried_out.await };
        tokio::select! {
            biased;
            // What is under way is cancelled by being dropped.
            () = parent.ended.cancelled() => Err(CallError::Cancelled { callee: Callee::Tool(self.tool.clone()) }),
            result = carried_out => result,
        }
    }

    async fn carry_out(&self) -> Result<ToolResult, CallError> {
        let admitted = self.admitted().await?;
        let result = match &admitted.entry.provider {
            Provider::Plugin(plugin) => self.ask(plugin, &admitted).await?,
            Provider::Program(tool) => Box::pin(self.run(tool, &admitted)).await?,
        };
        let Some(cap) = &self.cap else { return Ok(result) };
        let id = admitted.id.to_string();
        let capped = Box::pin(async { Ok(cap.apply(result, &id).await) });
        self.unless_cancelled(&admitted.entry, capped).await
    }

    /// Has the tool of the program's own run.
    async fn run(&self, tool: &HostTool, admitted: &Admitted<'_>) -> Result<ToolResult, CallError> {
        self.session.check_open(&admitted.host)?;
        let (total, idle, deadline) = self.limits(admitted);
        let scope = self.scope(&admitted.chain, deadline);
        let call = ToolCall {
            id: admitted.id.to_string(),
            caller: self.caller.clone(),
            arguments: Self::json(&admitted.entry, &admitted.arguments)?.to_owned(),
            context: CallContext { scope, ended: CancellationToken::new() },
            progress: self.progress.as_ref().map(broadcast::Sender::downgrade),
            heard: Arc::default(),
        };
        let times = own::Times { total, idle, linger: admitted.host.timeouts().linger_ms.get() };
        let cancel = self.cancel.clone().unwrap_or_default();
        own::run(&admitted.host, tool, call, times, &cancel).await
    }

    /// Ends something early when the call is cancelled.
    async fn unless_cancelled<T>(
        &self,
        entry: &Entry,
        work: impl Future<Output = Result<T, CallError>> + Unpin,
    ) -> Result<T, CallError> {
        let Some(cancel) = &self.cancel else { return work.await };
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(CallError::Cancelled { callee: entry.callee() }),
            done = work => done,
        }
    }

    /// Everything that comes before the call itself.
    async fn admitted(&self) -> Result<Admitted<'_>, CallError> {
        let host = self.session.living_host()?;
        let entry = host.find(&self.tool, self.session.filter())?;
        if self.cancel.is_none() {
            return self.admit(host, entry).await;
        }
        let admission = Box::pin(self.admit(host, entry.clone()));
        self.unless_cancelled(&entry, admission).await
    }

    async fn admit(&self, host: Host, mut entry: Arc<Entry>) -> Result<Admitted<'_>, CallError> {
        if entry.listed != Listed::Live {
            entry = Box::pin(self.awake(&host, &entry)).await?;
        }
        if self.expected.as_ref().is_some_and(|expected| **expected != entry.fingerprint()) {
            return Err(CallError::Changed { tool: entry.name.to_string() });
        }
        let chain = self.chain(&host, &entry)?;
        let arguments = self.checked(&host, &entry).await?;
        let id = host.next_call();
        let needs_nobody = host.gates().is_empty() && self.caller == Caller::Program;
        let in_place = if needs_nobody { None } else { Box::pin(self.review(&host, &entry, &arguments, id)).await? };
        let arguments =
            in_place.map_or_else(|| arguments.into_sent(), |json| Cow::Owned(Box::<str>::from(json).into()));
        Ok(Admitted { host, entry, arguments, id, chain })
    }

    /// The tool as its process lists it. What is known of it from before is good for a list only: the arguments are held
    /// against what the plugin says now, and gates and the user are shown that.
    async fn awake(&self, host: &Host, entry: &Entry) -> Result<Arc<Entry>, CallError> {
        if let Provider::Plugin(plugin) = &entry.provider {
            let Some(total) = self.total else {
                plugin.live_for(&self.session).await?;
                return host.find(&self.tool, self.session.filter());
            };
            let live = tokio::time::timeout(total, plugin.live_for(&self.session)).await;
            live.map_err(|_| CallError::Unsent {
                plugin: plugin.name().clone(),
                after: total,
                reason: "it is still being started".to_owned(),
            })??;
        }
        host.find(&self.tool, self.session.filter())
    }

    /// The arguments, as they fit the tool.
    async fn checked(&self, host: &Host, entry: &Entry) -> Result<Arguments<'_>, CallError> {
        let schema = host.schemas().of(&entry.tool, &entry.source, host.limits()).await;
        if let Some(note) = schema.untold_note() {
            let (tool, reason) = (entry.name.to_string(), PluginText::new(note));
            host.tell(&Event::SchemaIgnored { tool, reason });
        }
        let arguments = Arguments::read(&self.arguments, &schema, host.limits()).await;
        arguments.map_err(|fault| {
            let fault = fault.redacted(|text| entry.redacted(text));
            CallError::Arguments { tool: entry.name.to_string(), fault }
        })
    }

    fn json<'a>(entry: &Entry, arguments: &'a str) -> Result<&'a RawValue, CallError> {
        json(arguments).map_err(|fault| CallError::Arguments { tool: entry.name.to_string(), fault })
    }

    /// Asks the gates and the approver. Gives the arguments that gates put in place of the caller's, if any did.
    async fn review(
        &self,
        host: &Host,
        entry: &Entry,
        arguments: &Arguments<'_>,
        id: CallId,
    ) -> Result<Option<Box<RawValue>>, CallError> {
        let waiting = self.parent.as_ref().map(|parent| parent.scope.chain.names()).unwrap_or_default();
        let description = entry.description();
        let request = CallRequest {
            call: &id.to_string(),
            caller: &self.caller,
            tool: entry.name.as_str(),
            description: description.as_ref(),
            annotations: entry.annotations(),
            source: &entry.source,
            arguments: Self::json(entry, arguments.given())?,
            session: &self.session,
            chain: &waiting,
        };
        let sent = Self::json(entry, arguments.sent())?;
        admission::admit(host.gates(), host.approver(), request, sent, host.limits()).await
    }

    /// Has the plugin run the tool.
    async fn ask(&self, plugin: &Arc<Plugin>, admitted: &Admitted<'_>) -> Result<ToolResult, CallError> {
        let Admitted { host, entry, arguments, id, chain } = admitted;
        let (total, idle, deadline) = self.limits(admitted);
        let mut before: Option<(Arc<Live>, CallError)> = None;
        let result = loop {
            self.session.check_open(host)?;
            let (live, permit) = match self.process_now(plugin) {
                Some(process) => process,
                None => Box::pin(self.process(plugin, total, deadline, host.limits().calls)).await?,
            };
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

    /// The process that takes the call, with a slot in it, if there is nothing to wait for, as is so for most calls.
    fn process_now(&self, plugin: &Plugin) -> Option<(Arc<Live>, Option<OwnedSemaphorePermit>)> {
        let live = plugin.live_now(&self.session)?;
        // A call from within a call takes no slot, or full plugins that call each other would wait for ever.
        if self.parent.is_some() {
            return Some((live, None));
        }
        let permit = live.peer.free_slot()?;
        Some((live, Some(permit)))
    }

    /// The same, once there is one.
    async fn process(
        &self,
        plugin: &Plugin,
        total: Option<Duration>,
        deadline: Option<Instant>,
        slots: usize,
    ) -> Result<(Arc<Live>, Option<OwnedSemaphorePermit>), CallError> {
        let name = || plugin.name().clone();
        let cancel = self.cancel.clone().unwrap_or_default();
        let too_late = deadline.unwrap_or_else(|| Instant::now() + FAR);
        let unsent = |reason| CallError::Unsent { plugin: name(), after: total.unwrap_or(FAR), reason };
        let live = tokio::select! {
            live = plugin.live_for(&self.session) => live?,
            () = cancel.cancelled() => return Err(CallError::Cancelled { callee: name().into() }),
            () = tokio::time::sleep_until(too_late) => return Err(unsent("it is still being started".to_owned())),
        };
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
    fn limits(&self, admitted: &Admitted<'_>) -> (Option<Duration>, Option<Duration>, Option<Instant>) {
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
        // The block holds the call once; the arguments of an async function are held twice.
        Box::pin(async move { self.make().await })
    }
}

/// Writes the params of `tools/call`.
fn write_params(
    bytes: &mut Vec<u8>,
    number: i64,
    entry: &Entry,
    arguments: &str,
    session: Option<SessionRef>,
    call: CallId,
) {
    debug_assert_eq!(
        (meta::PROGRESS_TOKEN, meta::SESSION, meta::CALL),
        ("progressToken", "dev.lemon/session", "dev.lemon/call")
    );
    /// What the rest takes at most.
    const AROUND: usize = 256;
    bytes.reserve(entry.call_head.len() + arguments.len() + AROUND);
    bytes.extend_from_slice(entry.call_head.as_bytes());
    bytes.extend_from_slice(arguments.as_bytes());
    // Numbers can be written, and a vector takes them.
    let mut number_after = |text: &[u8], number: u64| {
        bytes.extend_from_slice(text);
        let _ = serde_json::to_writer(&mut *bytes, &number);
    };
    number_after(br#","_meta":{"progressToken":"#, number.unsigned_abs());
    if let Some(SessionRef { handle, version }) = session {
        number_after(br#","dev.lemon/session":{"handle":"#, handle.into());
        if let Some(version) = version {
            number_after(br#","version":"#, version);
        }
        number_after(br#"},"dev.lemon/call":"call-"#, call.0);
        bytes.push(b'"');
    }
    bytes.extend_from_slice(b"}}");
}
