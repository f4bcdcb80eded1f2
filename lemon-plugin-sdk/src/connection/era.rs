//! Which dialect a request is in, told by what arrives: Lemon's, MCP's up to 2025-11-25, or MCP's of 2026-07-28.
//!
//! A request is modern if its `_meta` names a protocol version. A client that has only ever sent such requests must
//! name it in each; one that shook hands speaks the older dialect, and may mix in modern requests.

use std::borrow::Cow;

use lemon_protocol::{ErrorObject, HostOffer, RequestId, SessionRef};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::json;
use serde_json::value::RawValue;

use crate::context::Level;
use crate::excerpt::{NAME, excerpt};

/// The revision of MCP that has no handshake.
pub(crate) const MODERN: &str = "2026-07-28";

/// The dialect of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    /// MCP with a handshake in which both sides said that they speak Lemon.
    Lemon,
    /// MCP with a handshake.
    Legacy,
    /// MCP without a handshake.
    Modern,
}

/// What is known of the other side.
#[derive(Debug, Default)]
pub(crate) struct Peer {
    /// Lemon's part of the handshake.
    pub(crate) offer: Option<HostOffer>,
    /// `initialize` was answered.
    pub(crate) shook_hands: bool,
    /// A modern request came.
    pub(crate) modern: bool,
    /// What `logging/setLevel` asked for; without it everything is sent.
    pub(crate) log_level: Option<Level>,
    /// The newest `lemon/configure` (LPP-CONF-06).
    pub(crate) generation: u64,
    /// `lemon/shutdown` came.
    pub(crate) shutting_down: bool,
}

/// The members of a request's `_meta` that matter. A member of the wrong type counts as absent, as MCP's are open to
/// anyone's keys.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct RequestMeta<'a> {
    #[serde(rename = "progressToken", borrow, default)]
    progress_token: Option<&'a RawValue>,
    #[serde(rename = "dev.lemon/session", borrow, default)]
    session: Option<&'a RawValue>,
    #[serde(rename = "dev.lemon/call", borrow, default)]
    call: Option<&'a RawValue>,
    #[serde(rename = "io.modelcontextprotocol/protocolVersion", borrow, default)]
    version: Option<&'a RawValue>,
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities", borrow, default)]
    capabilities: Option<&'a RawValue>,
    #[serde(rename = "io.modelcontextprotocol/logLevel", borrow, default)]
    log_level: Option<&'a RawValue>,
}

impl RequestMeta<'_> {
    pub(crate) fn progress_token(&self) -> Option<RequestId<'static>> {
        self.progress_token.and_then(|raw| serde_json::from_str(raw.get()).ok())
    }

    pub(crate) fn session(&self) -> Option<SessionRef> {
        self.session.and_then(|raw| serde_json::from_str(raw.get()).ok())
    }

    pub(crate) fn call(&self) -> Option<String> {
        self.call.and_then(|raw| serde_json::from_str(raw.get()).ok())
    }

    pub(crate) fn log_level(&self) -> Option<Level> {
        self.log_level.and_then(|raw| serde_json::from_str(raw.get()).ok())
    }
}

impl Peer {
    /// The dialect of a request with this `_meta`; `only_modern` says that no other dialect has the method.
    ///
    /// # Errors
    /// A modern request that lacks what each must have, or asks for a version that is not spoken here.
    pub(crate) fn era(&mut self, meta: &RequestMeta<'_>, only_modern: bool) -> Result<Era, ErrorObject> {
        let Some(version) = meta.version else {
            if only_modern || self.modern && !self.shook_hands {
                return Err(lacks("io.modelcontextprotocol/protocolVersion"));
            }
            return Ok(if self.offer.is_some() { Era::Lemon } else { Era::Legacy });
        };
        let version: Cow<'_, str> = serde_json::from_str::<String>(version.get())
            .map(Cow::Owned)
            .map_err(|_| lacks("io.modelcontextprotocol/protocolVersion"))?;
        if version != MODERN {
            let version = excerpt(&version, NAME);
            return Err(ErrorObject {
                code: -32022,
                message: format!("this server speaks {MODERN} without a handshake, and not {version}"),
                data: Some(json!({"supported": [MODERN], "requested": version})),
            });
        }
        let object = |raw: &&RawValue| raw.get().starts_with('{');
        if meta.capabilities.as_ref().filter(|raw| object(raw)).is_none() {
            return Err(lacks("io.modelcontextprotocol/clientCapabilities"));
        }
        // Only now: a request that is refused says nothing of those that follow.
        self.modern = true;
        Ok(Era::Modern)
    }
}

fn lacks(key: &str) -> ErrorObject {
    let message = format!("a request of {MODERN} has {key} in its _meta");
    ErrorObject { code: ErrorObject::INVALID_PARAMS, message, data: None }
}

/// Reads a `_meta`. One that is no object counts as absent, as do members of the wrong type.
fn lenient<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<RequestMeta<'a>, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?;
    if !raw.get().starts_with('{') {
        return Ok(RequestMeta::default());
    }
    serde_json::from_str(raw.get()).map_err(serde::de::Error::custom)
}

/// Params of which only `_meta` matters.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct OnlyMeta<'a> {
    #[serde(rename = "_meta", borrow, default, deserialize_with = "lenient")]
    pub(crate) meta: RequestMeta<'a>,
}

/// The params of `tools/call`, borrowed from the line.
#[derive(Debug, Deserialize)]
pub(crate) struct CallParams<'a> {
    #[serde(borrow)]
    pub(crate) name: Cow<'a, str>,
    /// Null is something else than nothing: it is no object (LPP-CALL-02).
    #[serde(borrow, default, deserialize_with = "present")]
    pub(crate) arguments: Option<&'a RawValue>,
    #[serde(rename = "_meta", borrow, default, deserialize_with = "lenient")]
    pub(crate) meta: RequestMeta<'a>,
}

fn present<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// The params of `tools/list`.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct ListParams<'a> {
    #[serde(default)]
    pub(crate) cursor: Option<IgnoredAny>,
    #[serde(rename = "_meta", borrow, default, deserialize_with = "lenient")]
    pub(crate) meta: RequestMeta<'a>,
}
