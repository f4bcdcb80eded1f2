//! From a line to what is done about it.

use std::sync::{Arc, Mutex};

use lemon_protocol::{
    ConfigureParams, ErrorObject, Fault, FaultKind, Kind, Message, RequestId, ShutdownParams, TopLevelId, method,
};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::Connection;
use super::era::{CallParams, Era, ListParams, OnlyMeta};
use super::message::{Empty, Marked, Notification, Refusal, ToolList, Version};
use super::running::Patience;
use crate::context::{Call, Context, Level};
use crate::excerpt::{NAME, REASON, excerpt};
use crate::progress::Progress;
use crate::read::reason;

/// JSON-RPC's code for text that is not JSON.
const NOT_JSON: i64 = -32700;

/// What a dialect does not have.
fn no_method(method: &str) -> ErrorObject {
    let message = format!("there is no method {}", excerpt(method, NAME));
    ErrorObject { code: ErrorObject::METHOD_NOT_FOUND, message, data: None }
}

/// Params that can't be taken.
pub(super) fn bad_params(error: impl std::fmt::Display) -> ErrorObject {
    let message = format!("unacceptable params: {error}");
    ErrorObject { code: ErrorObject::INVALID_PARAMS, message, data: None }
}

/// Reads params; absent ones are `{}`. A struct could be read from a JSON array too, which params never are.
pub(super) fn read<'a, T: Deserialize<'a>>(params: Option<&'a RawValue>) -> Result<T, ErrorObject> {
    let text = params.map_or("{}", RawValue::get);
    if !text.starts_with('{') {
        return Err(bad_params("they are no object"));
    }
    serde_json::from_str(text).map_err(|error| bad_params(reason(&error)))
}

impl Connection {
    pub(super) fn received(self: &Arc<Self>, line: &[u8]) {
        match Message::parse(line) {
            Ok(Message::Request { id, method, params }) => {
                if let Err(error) = self.request(&id, &method, params) {
                    self.refuse(&id, &error);
                }
            }
            Ok(Message::Notification { method, params }) => self.notified(&method, params),
            Ok(Message::Response { id, outcome }) => self.pending.answer(id, outcome),
            Err(fault) => self.broken(line, &fault),
        }
    }

    /// A line over the limit, of which only the id is known.
    pub(super) fn oversized(&self, bytes: usize, message: &TopLevelId) {
        let text = format!("the request has {bytes} bytes, more than the {} that are read", super::INBOUND);
        self.refuse_broken(message, &ErrorObject::of(Kind::TooLarge, text));
    }

    /// A line that is no message: whoever waits for an answer to it need not wait for ever.
    fn broken(&self, line: &[u8], fault: &Fault) {
        let mut message = TopLevelId::default();
        let code = match fault.kind {
            FaultKind::Batch => {
                // Nobody knows which of its ids to answer.
                let text = "a batch is not part of the protocol; send one message a line".to_owned();
                let error = ErrorObject { code: ErrorObject::INVALID_REQUEST, message: text, data: None };
                let _ = self.outbox.push_now(&Refusal { jsonrpc: Version::V2, id: None, error: &error }, self.limit());
                return;
            }
            FaultKind::Blank | FaultKind::NotObject => return,
            FaultKind::NotJson | FaultKind::NotUtf8 => NOT_JSON,
            _ => ErrorObject::INVALID_REQUEST,
        };
        // Text that merely has a message in it is none.
        if line.trim_ascii_start().starts_with(b"{") {
            message.feed(line);
        }
        let text = format!("the request is not acceptable: {}", excerpt(&fault.to_string(), REASON));
        self.refuse_broken(&message, &ErrorObject { code, message: text, data: None });
    }

    /// Refuses what has a method and an id, under that id, or without one where it can't be read (LPP-FRAME-11).
    fn refuse_broken(&self, message: &TopLevelId, error: &ErrorObject) {
        if !message.has_id() || message.is_answer() {
            return;
        }
        match message.id() {
            Some(id) => self.refuse(id, error),
            None if message.is_request() => {
                let _ = self.outbox.push_now(&Refusal { jsonrpc: Version::V2, id: None, error }, self.limit());
            }
            None => {}
        }
    }

    /// Answers a request, or starts what will. An error is the answer.
    fn request(
        self: &Arc<Self>,
        id: &RequestId<'_>,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<(), ErrorObject> {
        // Before anything else, as it is by far the most frequent.
        if method == method::TOOLS_CALL {
            return self.call(id, params);
        }
        if method == method::INITIALIZE {
            return self.initialize(id, params);
        }
        if method == method::TOOLS_LIST {
            let params: ListParams<'_> = read(params)?;
            let era = self.admit(&params.meta, false)?;
            if params.cursor.is_some() {
                return Err(bad_params("there is no page of that cursor"));
            }
            let tools = ToolList { tools: &self.definition.listed };
            self.answer(id, Marked::list(era, &self.definition.server_info, tools));
            return Ok(());
        }
        if method == method::PING && !self.is_modern(params) {
            self.answer(id, Empty {});
            return Ok(());
        }
        let OnlyMeta { meta } = read(params)?;
        let only_modern = matches!(method, "server/discover" | "subscriptions/listen");
        let era = self.admit(&meta, only_modern)?;
        match (method, era) {
            ("server/discover", Era::Modern) => self.discover(id),
            ("subscriptions/listen", Era::Modern) => return self.listen(id, params),
            ("logging/setLevel", Era::Lemon | Era::Legacy) => {
                #[derive(Deserialize)]
                struct Params {
                    level: Level,
                }
                let Params { level } = read(params)?;
                self.peer().log_level = Some(level);
                self.answer(id, Empty {});
            }
            (method::CONFIGURE, Era::Lemon) if self.definition.config.is_some() => return self.configure(id, params),
            (method::SHUTDOWN, Era::Lemon) => {
                read::<ShutdownParams>(params)?;
                self.peer().shutting_down = true;
                let put_away = self.put_away();
                self.spawn_request(id.clone().into_owned(), era, Patience::ToTheEnd, async move {
                    put_away.await;
                    Ok(())
                });
            }
            _ => return Err(no_method(method)),
        }
        Ok(())
    }

    /// The dialect of a request, and whether it may be answered now.
    fn admit(&self, meta: &super::era::RequestMeta<'_>, only_modern: bool) -> Result<Era, ErrorObject> {
        let mut peer = self.peer();
        if peer.shutting_down {
            return Err(ErrorObject::of(Kind::ShuttingDown, "the plugin comes to its end"));
        }
        peer.era(meta, only_modern)
    }

    /// Whether a ping is a whole request of the dialect that has none. Any other is answered, whatever it carries
    /// (LPP-INIT-21).
    fn is_modern(&self, params: Option<&RawValue>) -> bool {
        read(params).is_ok_and(|OnlyMeta { meta }| self.peer().era(&meta, false) == Ok(Era::Modern))
    }

    fn call(self: &Arc<Self>, id: &RequestId<'_>, params: Option<&RawValue>) -> Result<(), ErrorObject> {
        let CallParams { name, arguments, meta } = read(params)?;
        let era = self.admit(&meta, false)?;
        let arguments = match arguments.map(RawValue::get) {
            None => "{}",
            Some(object) if object.starts_with('{') => object,
            Some(_) => return Err(bad_params("arguments are no object")),
        };
        let Some(tool) = self.definition.tool(&name) else {
            return Err(ErrorObject {
                code: ErrorObject::INVALID_PARAMS,
                message: format!("there is no tool {}", excerpt(&name, NAME)),
                data: Some(json!({ "kind": Kind::UnknownTool.as_str() })),
            });
        };
        let session = match meta.session().filter(|_| era == Era::Lemon) {
            None => None,
            Some(named) => match self.sessions.get(named.handle) {
                Some(session) => {
                    session.heard_of(named.version);
                    Some(session)
                }
                None => {
                    let text = format!("session {} is not open", named.handle);
                    return Err(ErrorObject::of(Kind::Stale, text));
                }
            },
        };
        // Only calls have results of any size; a shutdown is never too much.
        if self.outbox.is_crowded() {
            return Err(ErrorObject::of(Kind::Busy, "too many answers wait to be read"));
        }
        let id = id.clone().into_owned();
        let token = CancellationToken::new();
        if !self.take(&id, &token) {
            return Ok(());
        }
        let call = Arc::new(Call {
            connection: self.clone(),
            id,
            era,
            token,
            progress: meta.progress_token().map(Progress::new),
            session,
            call_id: if era == Era::Lemon { meta.call() } else { None },
            log_level: meta.log_level(),
            over: Mutex::new(false),
        });
        // The arguments are read here, straight from the line, and the handler then runs on its own.
        let handler = tool.start(arguments, Context::new(call.clone()));
        let handler = handler.unwrap_or_else(|problem| Box::pin(std::future::ready(problem)));
        let patience = if tool.blocking { Patience::ToTheEnd } else { Patience::Grace };
        self.tasks.spawn(self.clone().run(call, handler, patience));
        Ok(())
    }

    fn configure(self: &Arc<Self>, id: &RequestId<'_>, params: Option<&RawValue>) -> Result<(), ErrorObject> {
        let params: ConfigureParams = read(params)?;
        let generation = params.generation;
        {
            let mut peer = self.peer();
            if generation <= peer.generation {
                let newest = peer.generation;
                return Err(bad_params(format!("generation {newest} came before, and {generation} is not newer")));
            }
            peer.generation = generation;
        }
        let values = serde_json::Value::Object(params.values).to_string();
        let connection = self.clone();
        self.spawn_request(id.clone().into_owned(), Era::Lemon, Patience::Grace, async move {
            let Some(declared) = &connection.definition.config else { return Ok(()) };
            connection.config.configure(declared, generation, &values).await.map_err(|error| {
                let data = json!({ "pointer": error.pointer() }).as_object().cloned().unwrap_or_default();
                ErrorObject::with(Kind::Config, error.message(), data)
            })
        });
        Ok(())
    }

    /// Holds a stream of changes, of which there are none: what the plugin offers is fixed from its start. The client
    /// ends it by a cancellation, and the plugin's end by its result.
    fn listen(self: &Arc<Self>, id: &RequestId<'_>, params: Option<&RawValue>) -> Result<(), ErrorObject> {
        #[derive(Deserialize)]
        #[expect(dead_code, reason = "that it is there is all that matters")]
        struct Params<'a> {
            #[serde(borrow)]
            notifications: &'a RawValue,
        }
        let _: Params<'_> = read(params)?;
        let id = id.clone().into_owned();
        let subscription = json!({
            "notifications": {},
            "_meta": { "io.modelcontextprotocol/subscriptionId": id },
        });
        let token = CancellationToken::new();
        if self.take(&id, &token) {
            let method = "notifications/subscriptions/acknowledged";
            let acknowledged = Notification { jsonrpc: Version::V2, method, params: subscription };
            let _ = self.outbox.push_now(&acknowledged, self.limit());
            let connection = self.clone();
            self.tasks.spawn(async move {
                token.cancelled().await;
                let over = Marked::result(Era::Modern, &connection.definition.server_info, Empty {});
                connection.settle(&id, || connection.answer(&id, over));
            });
        }
        Ok(())
    }

    fn notified(self: &Arc<Self>, method: &str, params: Option<&RawValue>) {
        let Some(params) = params else { return };
        match method {
            method::CANCELLED => {
                if let Ok(cancelled) = serde_json::from_str::<lemon_protocol::CancelledParams>(params.get()) {
                    self.calls.cancel(&cancelled.request_id);
                }
            }
            method::SESSION if self.peer().offer.is_some() => self.sessions.told(params, self),
            method::SESSION_CLOSED if self.peer().offer.is_some() => self.sessions.closed(params),
            _ => {}
        }
    }
}
