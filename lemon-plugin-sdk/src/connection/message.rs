//! The lines that go out, as they are serialised.

use std::borrow::Cow;

use lemon_protocol::{ErrorObject, RequestId};
use serde::Serialize;
use serde_json::value::RawValue;

use super::era::Era;
use crate::output::{Content, ToolOutput};

/// JSON-RPC's version, which each message carries.
#[derive(Serialize)]
pub(crate) enum Version {
    #[serde(rename = "2.0")]
    V2,
}

/// An answer.
#[derive(Serialize)]
pub(crate) struct Answer<'a, R> {
    pub(crate) jsonrpc: Version,
    pub(crate) id: &'a RequestId<'a>,
    pub(crate) result: R,
}

/// An answer that the request failed; without an id where that could not be read.
#[derive(Serialize)]
pub(crate) struct Refusal<'a> {
    pub(crate) jsonrpc: Version,
    pub(crate) id: Option<&'a RequestId<'a>>,
    pub(crate) error: &'a ErrorObject,
}

/// A message that asks for no answer.
#[derive(Serialize)]
pub(crate) struct Notification<'a, P> {
    pub(crate) jsonrpc: Version,
    pub(crate) method: &'a str,
    pub(crate) params: P,
}

/// A request of the plugin's own.
#[derive(Serialize)]
pub(crate) struct Request<'a, P> {
    pub(crate) jsonrpc: Version,
    pub(crate) id: i64,
    pub(crate) method: &'a str,
    pub(crate) params: P,
}

/// `{}`.
#[derive(Serialize)]
pub(crate) struct Empty {}

/// Members that every result of the 2026 revision has, and none of the others.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Marked<'a, R> {
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<&'static str>,
    /// How long a list or a description may be kept before it is asked for again, and by whom.
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_scope: Option<&'static str>,
    #[serde(flatten)]
    result: R,
    #[serde(rename = "_meta", skip_serializing_if = "Meta::is_empty")]
    meta: Meta<'a>,
}

#[derive(Default, Serialize)]
struct Meta<'a> {
    #[serde(rename = "io.modelcontextprotocol/serverInfo", skip_serializing_if = "Option::is_none")]
    server_info: Option<&'a RawValue>,
    #[serde(rename = "dev.lemon/details", skip_serializing_if = "Option::is_none")]
    details: Option<&'a serde_json::Value>,
}

impl Meta<'_> {
    fn is_empty(&self) -> bool {
        self.server_info.is_none() && self.details.is_none()
    }
}

/// Five minutes: what is offered never changes while a process runs, but the next one may be of another version.
const TTL_MS: u64 = 300_000;

impl<'a, R: Serialize> Marked<'a, R> {
    /// A result that may not be kept.
    pub(crate) fn result(era: Era, server_info: &'a RawValue, result: R) -> Self {
        let modern = era == Era::Modern;
        Self {
            result_type: modern.then_some("complete"),
            ttl_ms: None,
            cache_scope: None,
            result,
            meta: Meta { server_info: modern.then_some(server_info), details: None },
        }
    }

    /// A result that may be kept.
    pub(crate) fn list(era: Era, server_info: &'a RawValue, result: R) -> Self {
        let modern = era == Era::Modern;
        let ttl_ms = modern.then_some(TTL_MS);
        Self { ttl_ms, cache_scope: modern.then_some("public"), ..Self::result(era, server_info, result) }
    }
}

/// The result of `tools/call`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallResult<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<&'static str>,
    content: &'a [Content],
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_error: bool,
    #[serde(rename = "_meta", skip_serializing_if = "Meta::is_empty")]
    meta: Meta<'a>,
}

impl<'a> CallResult<'a> {
    pub(crate) fn of(output: &'a ToolOutput, era: Era, server_info: &'a RawValue) -> Self {
        let modern = era == Era::Modern;
        Self {
            result_type: modern.then_some("complete"),
            content: &output.content,
            structured_content: output.structured.as_deref(),
            is_error: output.is_error,
            meta: Meta {
                server_info: modern.then_some(server_info),
                details: output.details.as_ref().filter(|_| era == Era::Lemon),
            },
        }
    }
}

/// The result of `tools/list`.
#[derive(Serialize)]
pub(crate) struct ToolList<'a> {
    pub(crate) tools: &'a RawValue,
}

/// The params of `notifications/progress`, with the partial result if there is one (LPP-PROG-09).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Progress<'a> {
    pub(crate) progress_token: &'a RequestId<'a>,
    pub(crate) progress: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) total: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<&'a str>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub(crate) meta: Option<PartialMeta<'a>>,
}

#[derive(Serialize)]
pub(crate) struct PartialMeta<'a> {
    #[serde(rename = "dev.lemon/partial")]
    pub(crate) partial: Partial<'a>,
}

#[derive(Serialize)]
pub(crate) struct Partial<'a> {
    content: &'a [Content],
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a serde_json::Value>,
}

impl<'a> Partial<'a> {
    pub(crate) fn of(output: &'a ToolOutput) -> Self {
        Self { content: &output.content, details: output.details.as_ref() }
    }
}

/// The params of `notifications/message`.
#[derive(Serialize)]
pub(crate) struct Log<'a> {
    pub(crate) level: &'a str,
    pub(crate) logger: Cow<'a, str>,
    pub(crate) data: &'a str,
}
