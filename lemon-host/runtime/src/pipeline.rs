//! One call, from its request to its result.

use std::borrow::Cow;
use std::future::IntoFuture;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lemon_protocol::{SessionRef, meta, method};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::sync::{OwnedSemaphorePermit, broadcast};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::catalog::Entry;
use crate::discovery::CallTimeout;
use crate::error::CallError;
use crate::host::Host;
use crate::plugin::live::Live;
use crate::report::PluginText;
use crate::session::Session;
use crate::wire::{CallContext, Outgoing};

/// How far a call has got.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// How far it is.
    pub progress: f64,
    /// How far it will go, if that is known.
    pub total: Option<f64>,
    /// What is being done.
    pub message: Option<PluginText>,
}

/// The progress notes of one call, until it ends. A reader that is slow misses the oldest ones.
#[derive(Debug)]
pub struct ProgressStream(broadcast::Receiver<Progress>);

impl ProgressStream {
    /// The next note; none when the call has ended.
    pub async fn next(&mut self) -> Option<Progress> {
        loop {
            match self.0.recv().await {
                Ok(note) => return Some(note),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}

/// A tool's result, as its plugin wrote it.
#[derive(Debug, Clone)]
pub struct ToolResult {
    raw: Box<RawValue>,
    is_error: bool,
    content: Vec<Box<RawValue>>,
}

impl ToolResult {
    /// Looks at a result without taking it apart.
    fn read(raw: Box<RawValue>) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct View {
            #[serde(default)]
            is_error: bool,
            #[serde(default)]
            content: Vec<Box<RawValue>>,
        }
        // A sequence would be taken for a struct, too.
        if !raw.get().starts_with('{') {
            return Err(serde::de::Error::custom("it is not an object"));
        }
        let View { is_error, content } = serde_json::from_str(raw.get())?;
        Ok(Self { raw, is_error, content })
    }

    /// Whether the tool says that it failed.
    pub fn is_error(&self) -> bool {
        self.is_error
    }

    /// The whole result, byte for byte.
    pub fn raw(&self) -> &RawValue {
        &self.raw
    }

    /// The content blocks, byte for byte.
    pub fn content(&self) -> &[Box<RawValue>] {
        &self.content
    }

    /// The text of each text block.
    pub fn texts(&self) -> impl Iterator<Item = PluginText> {
        #[derive(Deserialize)]
        struct Block<'a> {
            #[serde(borrow)]
            r#type: Cow<'a, str>,
            #[serde(borrow, default)]
            text: Cow<'a, str>,
        }
        self.content.iter().filter_map(|block| {
            let block: Block<'_> = serde_json::from_str(block.get()).ok()?;
            (block.r#type == "text").then(|| PluginText::new(block.text))
        })
    }
}

/// As good as never.
const FAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// A call that has not been made yet. Await it to make it; drop the future to cancel it.
#[must_use = "a call is not made until it is awaited"]
#[derive(Debug)]
pub struct Call {
    session: Session,
    tool: String,
    arguments: String,
    total: Option<Duration>,
    cancel: Option<CancellationToken>,
    progress: Option<broadcast::Sender<Progress>>,
    parent: Option<CallContext>,
}

impl Call {
    pub(crate) fn new(session: Session, tool: String, arguments: String) -> Self {
        Self { session, tool, arguments, total: None, cancel: None, progress: None, parent: None }
    }

    /// How long the call may take in all, in place of what the tool and the config say.
    pub fn deadline(mut self, total: Duration) -> Self {
        self.total = Some(total);
        self
    }

    /// Cancels the call when the token is cancelled.
    pub fn cancelled_by(mut self, cancel: CancellationToken) -> Self {
        self.cancel = Some(cancel);
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

    /// Makes it a call that a plugin makes from within another call.
    pub(crate) fn within(mut self, parent: CallContext) -> Self {
        self.parent = Some(parent);
        self
    }

    async fn make(self) -> Result<ToolResult, CallError> {
        let arguments = canonical(&self.arguments)?;
        let host = self.session.living_host()?;
        let entry = host.find(&self.tool)?;
        let chain = self.chain(&host, &entry)?;
        let (total, idle) = self.limits(&host, &entry);
        let deadline = total.and_then(|total| Instant::now().checked_add(total));
        let context = CallContext { session: self.session.clone(), chain, ended: CancellationToken::new(), deadline };
        let call = host.next_call();
        let mut before: Option<(Arc<Live>, CallError)> = None;
        let result = loop {
            self.session.living_host()?;
            let (live, permit) = self.process(&entry, total, deadline, host.limits().calls).await?;
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
                // Each attempt ends for itself.
                context: Some(CallContext { ended: CancellationToken::new(), ..context.clone() }),
                control: false,
            };
            let params = |id| params(id, &entry, &arguments, live.announce(&self.session), &call);
            match live.peer.call(method::TOOLS_CALL, params, outgoing).await {
                // The process is being replaced and has not heard of the call: it goes to the next one.
                Err(error @ CallError::NotReady { reason: None, .. }) => before = Some((live, error)),
                result => break result,
            }
        };
        ToolResult::read(result?).map_err(|fault| CallError::Protocol {
            plugin: entry.plugin.name().clone(),
            method: method::TOOLS_CALL,
            detail: PluginText::new(format!("its result can't be read: {fault}")),
        })
    }

    /// The process that takes the call, with a slot in it.
    async fn process(
        &self,
        entry: &Entry,
        total: Option<Duration>,
        deadline: Option<Instant>,
        slots: usize,
    ) -> Result<(Arc<Live>, Option<OwnedSemaphorePermit>), CallError> {
        let plugin = || entry.plugin.name().clone();
        let cancel = self.cancel.clone().unwrap_or_default();
        let too_late = deadline.unwrap_or_else(|| Instant::now() + FAR);
        let unsent = |reason| CallError::Unsent { plugin: plugin(), after: total.unwrap_or(FAR), reason };
        let live = tokio::select! {
            live = entry.plugin.live_for(&self.session) => live?,
            () = cancel.cancelled() => return Err(CallError::Cancelled { plugin: plugin() }),
            () = tokio::time::sleep_until(too_late) => return Err(unsent("it is still being started".to_owned())),
        };
        // A call from within a call takes no slot, or full plugins that call each other would wait for ever.
        if self.parent.is_some() {
            return Ok((live, None));
        }
        let permit = tokio::select! {
            permit = live.peer.slot() => permit,
            () = cancel.cancelled() => return Err(CallError::Cancelled { plugin: plugin() }),
            () = tokio::time::sleep_until(too_late) => {
                return Err(unsent(format!("all of its {slots} slots are taken (limits.calls)")));
            }
        };
        Ok((live, permit))
    }

    /// The tools that will be waiting, this one included.
    fn chain(&self, host: &Host, entry: &Entry) -> Result<Vec<String>, CallError> {
        let mut chain = self.parent.as_ref().map(|parent| parent.chain.clone()).unwrap_or_default();
        let name = entry.name.to_string();
        let (cycle, depth) = (chain.contains(&name), host.limits().call_depth);
        chain.push(name);
        let shown = chain.join(" → ");
        if cycle {
            let reason = format!("the call would come back to a tool that is waiting for it: {shown}");
            return Err(CallError::Chain { kind: lemon_protocol::Kind::Cycle, reason });
        }
        if chain.len() > depth {
            let reason = format!("calls within calls are limited to {depth} (limits.call_depth): {shown}");
            return Err(CallError::Chain { kind: lemon_protocol::Kind::TooDeep, reason });
        }
        Ok(chain)
    }

    /// How long the call may take: what the caller says, else the config, the tool, and the default; and never
    /// longer than the call that it is made from.
    fn limits(&self, host: &Host, entry: &Entry) -> (Option<Duration>, Option<Duration>) {
        let hint = entry.tool.hints().timeout_ms;
        let own = match (self.total, entry.plugin.spec().call_timeout, hint) {
            (Some(total), _, _) => Some(total),
            (None, CallTimeout::Never, _) | (None, CallTimeout::Unset, Some(0)) => None,
            (None, CallTimeout::After(total), _) => Some(total),
            (None, CallTimeout::Unset, Some(hint)) => Some(Duration::from_millis(hint)),
            (None, CallTimeout::Unset, None) => host.timeouts().call_ms.limit(),
        };
        let left = self
            .parent
            .as_ref()
            .and_then(|parent| parent.deadline)
            .map(|deadline| deadline.saturating_duration_since(Instant::now()));
        (own.into_iter().chain(left).min(), host.timeouts().call_idle_ms.limit())
    }
}

impl IntoFuture for Call {
    type Output = Result<ToolResult, CallError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.make())
    }
}

/// The arguments as the tool gets them: one line, otherwise as they were given.
fn canonical(text: &str) -> Result<Box<RawValue>, CallError> {
    let bad = |reason: String| CallError::Arguments { reason };
    let raw: Box<RawValue> = serde_json::from_str(text).map_err(|fault| bad(format!("they are not JSON: {fault}")))?;
    if !raw.get().starts_with('{') {
        return Err(bad("they are not a JSON object".to_owned()));
    }
    if !raw.get().contains(['\n', '\r']) {
        return Ok(raw);
    }
    // JSON has line ends between its tokens only, where a space does as well.
    RawValue::from_string(raw.get().replace(['\n', '\r'], " ")).map_err(|fault| bad(fault.to_string()))
}

fn params(id: i64, entry: &Entry, arguments: &RawValue, session: Option<SessionRef>, call: &str) -> Bytes {
    #[derive(Serialize)]
    struct Params<'a> {
        name: &'a str,
        arguments: &'a RawValue,
        _meta: Meta<'a>,
    }
    #[derive(Serialize)]
    struct Meta<'a> {
        #[serde(rename = "progressToken")]
        progress_token: i64,
        #[serde(rename = "dev.lemon/session", skip_serializing_if = "Option::is_none")]
        session: Option<SessionRef>,
        #[serde(rename = "dev.lemon/call", skip_serializing_if = "Option::is_none")]
        call: Option<&'a str>,
    }
    debug_assert_eq!(
        (meta::PROGRESS_TOKEN, meta::SESSION, meta::CALL),
        ("progressToken", "dev.lemon/session", "dev.lemon/call")
    );
    let call = session.is_some().then_some(call);
    let params = Params { name: &entry.tool.name, arguments, _meta: Meta { progress_token: id, session, call } };
    serde_json::to_vec(&params).unwrap_or_default().into()
}
