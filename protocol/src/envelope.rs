//! From a line to a message, in one pass and without copying the payload (LPP-FRAME-05 to -18).
//!
//! What is present and what is null are different things: `"result": null` is an answer, an absent `result` is not
//! one, and an error answer may carry `"id": null` when its sender could not read the request's id.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer as _, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::id::RequestId;

/// One JSON-RPC 2.0 message, borrowed from its line.
#[derive(Debug)]
pub enum Message<'a> {
    /// Asks for an answer with the same id.
    Request {
        /// The sender's id.
        id: RequestId<'a>,
        /// The method; borrowed unless it was written with escapes.
        method: Cow<'a, str>,
        /// The `params` as they were written.
        params: Option<&'a RawValue>,
    },
    /// Asks for nothing.
    Notification {
        /// The method; borrowed unless it was written with escapes.
        method: Cow<'a, str>,
        /// The `params` as they were written.
        params: Option<&'a RawValue>,
    },
    /// Answers a request.
    Response {
        /// The request's id; none stands for `null`, which only an error answer may carry.
        id: Option<RequestId<'a>>,
        /// The `result` or the `error` as it was written.
        outcome: Result<&'a RawValue, &'a RawValue>,
    },
}

/// A line that is no message, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind}{}", detail.as_deref().map(|d| format!(" ({d})")).unwrap_or_default())]
pub struct Fault {
    /// What is wrong; faults are counted by it.
    pub kind: FaultKind,
    /// The parser's own words, where it has any.
    pub detail: Option<String>,
}

/// What can be wrong with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FaultKind {
    /// Nothing but white space.
    Blank,
    /// Bytes that are not UTF-8.
    NotUtf8,
    /// Text that is not JSON.
    NotJson,
    /// JSON, but an array: batches are not part of the protocol.
    Batch,
    /// JSON, but no object.
    NotObject,
    /// `jsonrpc` is absent or is not `"2.0"`.
    BadVersion,
    /// A member of the envelope stands there twice.
    DuplicateMember,
    /// The id is neither an integer nor a string (nor null in an error answer).
    BadId,
    /// `method` is not a string.
    BadMethod,
    /// Both `result` and `error`, or one of them beside `method`.
    Ambiguous,
    /// Neither `method` nor `result` nor `error`.
    Empty,
}

impl FaultKind {
    /// The kind's stable name in reports and vectors.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Blank => "blank",
            Self::NotUtf8 => "not_utf8",
            Self::NotJson => "not_json",
            Self::Batch => "batch",
            Self::NotObject => "not_object",
            Self::BadVersion => "bad_version",
            Self::DuplicateMember => "duplicate_member",
            Self::BadId => "bad_id",
            Self::BadMethod => "bad_method",
            Self::Ambiguous => "ambiguous",
            Self::Empty => "empty",
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Blank => "blank line",
            Self::NotUtf8 => "bytes that are not UTF-8",
            Self::NotJson => "text that is not JSON",
            Self::Batch => "a JSON array, but batches are not part of the protocol",
            Self::NotObject => "JSON that is not an object",
            Self::BadVersion => "no \"jsonrpc\": \"2.0\"",
            Self::DuplicateMember => "a member that stands there twice",
            Self::BadId => "an id that is neither an integer nor a string",
            Self::BadMethod => "a method that is not a string",
            Self::Ambiguous => "more than one of method, result and error",
            Self::Empty => "none of method, result and error",
        })
    }
}

impl From<FaultKind> for Fault {
    fn from(kind: FaultKind) -> Self {
        Self { kind, detail: None }
    }
}

/// What JSON takes for white space; a form feed, which ASCII's own idea has too, is not.
const JSON_WHITE_SPACE: [char; 4] = [' ', '\t', '\n', '\r'];

impl<'a> Message<'a> {
    /// Reads one line, without its line end.
    ///
    /// Members that JSON-RPC does not know are ignored. The payload is checked to be JSON and left as it stands.
    ///
    /// # Errors
    /// A [`Fault`] says why the line is no message. It never means that the lines after it can't be read.
    pub fn parse(line: &'a [u8]) -> Result<Self, Fault> {
        let text = std::str::from_utf8(line)
            .map_err(|error| Fault { kind: FaultKind::NotUtf8, detail: Some(error.to_string()) })?;
        // Some programs start their output with a byte order mark.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).trim_matches(JSON_WHITE_SPACE);
        match text.as_bytes().first() {
            None => return Err(FaultKind::Blank.into()),
            Some(b'{') => {}
            Some(_) => return Err(not_an_object(text)),
        }
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let members =
            deserializer.deserialize_map(MembersVisitor).and_then(|members| deserializer.end().map(|()| members));
        match members {
            Ok(members) => members.into_message(),
            Err(error) => Err(MembersVisitor::fault(&error)),
        }
    }
}

fn not_an_object(text: &str) -> Fault {
    match serde_json::from_str::<IgnoredAny>(text) {
        Ok(_) if text.starts_with('[') => FaultKind::Batch.into(),
        Ok(_) => FaultKind::NotObject.into(),
        Err(error) => Fault { kind: FaultKind::NotJson, detail: Some(error.to_string()) },
    }
}

#[derive(Default)]
struct Members<'a> {
    jsonrpc: Option<bool>,
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

impl<'a> Members<'a> {
    fn into_message(self) -> Result<Message<'a>, Fault> {
        if self.jsonrpc != Some(true) {
            return Err(FaultKind::BadVersion.into());
        }
        match (self.method, self.result, self.error) {
            (Some(method), None, None) => {
                let method = text(method).ok_or(FaultKind::BadMethod)?;
                let params = self.params;
                match self.id {
                    Some(raw) => Ok(Message::Request { id: parse_id(raw)?.ok_or(FaultKind::BadId)?, method, params }),
                    None => Ok(Message::Notification { method, params }),
                }
            }
            (None, Some(result), None) => {
                let id = self.id.map(parse_id).transpose()?.flatten().ok_or(FaultKind::BadId)?;
                Ok(Message::Response { id: Some(id), outcome: Ok(result) })
            }
            (None, None, Some(error)) => {
                // An absent id is treated like null: some programs leave it out when they could not read the request's.
                let id = self.id.map(parse_id).transpose()?.flatten();
                Ok(Message::Response { id, outcome: Err(error) })
            }
            (None, None, None) => Err(FaultKind::Empty.into()),
            _ => Err(FaultKind::Ambiguous.into()),
        }
    }
}

/// A JSON string's text, borrowed where it has no escapes.
fn text(raw: &RawValue) -> Option<Cow<'_, str>> {
    // Trying costs more than the whole rest of a small message: the error is made, formatted and read again.
    if !raw.get().starts_with('"') {
        return None;
    }
    match serde_json::from_str::<&str>(raw.get()) {
        Ok(text) => Some(Cow::Borrowed(text)),
        Err(_) => serde_json::from_str::<String>(raw.get()).ok().map(Cow::Owned),
    }
}

fn parse_id(raw: &RawValue) -> Result<Option<RequestId<'_>>, Fault> {
    if raw.get() == "null" {
        return Ok(None);
    }
    if let Some(text) = text(raw) {
        return Ok(Some(RequestId::Text(text)));
    }
    // So is nearly every id. More digits may be more than 64 bits.
    const DIGITS: usize = 18;
    if raw.get().len() <= DIGITS
        && raw.get().bytes().all(|byte| byte.is_ascii_digit())
        && let Ok(number) = raw.get().parse()
    {
        return Ok(Some(RequestId::Number(number)));
    }
    serde_json::from_str(raw.get())
        .map(Some)
        .map_err(|error| Fault { kind: FaultKind::BadId, detail: Some(error.to_string()) })
}

struct MembersVisitor;

impl MembersVisitor {
    /// Marks the one error of ours among the parser's.
    const TWICE: &'static str = "duplicate envelope member ";

    fn fault(error: &serde_json::Error) -> Fault {
        let detail = error.to_string();
        match detail.strip_prefix(Self::TWICE) {
            Some(rest) => {
                let member = rest.split(' ').next().unwrap_or(rest);
                Fault { kind: FaultKind::DuplicateMember, detail: Some(member.to_owned()) }
            }
            None => Fault { kind: FaultKind::NotJson, detail: Some(detail) },
        }
    }
}

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON-RPC message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Members::default();
        while let Some(Key(key)) = map.next_key::<Key<'de>>()? {
            let slot = match &*key {
                "jsonrpc" => {
                    if members.jsonrpc.is_some() {
                        return Err(A::Error::custom(format_args!("{}jsonrpc", Self::TWICE)));
                    }
                    let raw: &RawValue = map.next_value()?;
                    members.jsonrpc = Some(raw.get() == "\"2.0\"" || text(raw).is_some_and(|version| version == "2.0"));
                    continue;
                }
                "id" => &mut members.id,
                "method" => &mut members.method,
                "params" => &mut members.params,
                "result" => &mut members.result,
                "error" => &mut members.error,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            if slot.is_some() {
                return Err(A::Error::custom(format_args!("{}{key}", Self::TWICE)));
            }
            *slot = Some(map.next_value()?);
        }
        Ok(members)
    }
}

/// A member's name: like the method, it may be written with escapes.
struct Key<'a>(Cow<'a, str>);

impl<'de> serde::Deserialize<'de> for Key<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a member's name")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Key(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(line: &[u8]) -> FaultKind {
        Message::parse(line).expect_err("no message").kind
    }

    #[test]
    fn null_is_not_absent() {
        let message = Message::parse(br#"{"jsonrpc":"2.0","id":3,"result":null}"#).unwrap();
        assert!(
            matches!(message, Message::Response { id: Some(RequestId::Number(3)), outcome: Ok(r) } if r.get() == "null")
        );
        assert_eq!(kind(br#"{"jsonrpc":"2.0","id":3}"#), FaultKind::Empty);
        let message = Message::parse(br#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}"#).unwrap();
        assert!(matches!(message, Message::Response { id: None, outcome: Err(_) }));
        assert_eq!(kind(br#"{"jsonrpc":"2.0","id":null,"result":1}"#), FaultKind::BadId);
        assert_eq!(kind(br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#), FaultKind::BadId);
        assert_eq!(kind(br#"{"jsonrpc":"2.0","id":1,"result":null,"error":null}"#), FaultKind::Ambiguous);
    }

    #[test]
    fn names_may_be_written_with_escapes() {
        let message = Message::parse(br#"{"jsonrpc":"2.0","\u0069d":1,"m\u0065thod":"pi\u006eg"}"#).unwrap();
        assert!(matches!(message, Message::Request { id: RequestId::Number(1), method, .. } if method == "ping"));
        assert!(Message::parse(br#"{"jsonrpc":"\u0032.0","method":"m"}"#).is_ok());
    }

    #[test]
    fn a_string_id_is_borrowed_unless_it_has_escapes() {
        let id = |line| match Message::parse(line) {
            Ok(Message::Request { id: RequestId::Text(text), .. }) => text,
            other => panic!("{other:?}"),
        };
        assert!(matches!(id(br#"{"jsonrpc":"2.0","id":"a","method":"m"}"#), Cow::Borrowed("a")));
        assert_eq!(id(br#"{"jsonrpc":"2.0","id":"\u0061","method":"m"}"#), "a");
    }

    #[test]
    fn only_jsons_own_white_space_may_stand_around_a_message() {
        assert!(Message::parse(b" \t\r{\"jsonrpc\":\"2.0\",\"method\":\"m\"} \r").is_ok());
        assert_eq!(kind(b"\x0c{\"jsonrpc\":\"2.0\",\"method\":\"m\"}"), FaultKind::NotJson);
        assert_eq!(kind(b"{\"jsonrpc\":\"2.0\",\"method\":\"m\"}\0"), FaultKind::NotJson);
    }

    #[test]
    fn the_payload_is_left_as_it_was_written() {
        let line = br#"{"jsonrpc":"2.0","method":"m","params":{"n":12345678901234567890123, "f":1.10}}"#;
        let Ok(Message::Notification { params: Some(params), .. }) = Message::parse(line) else { panic!() };
        assert_eq!(params.get(), r#"{"n":12345678901234567890123, "f":1.10}"#);
    }

    #[test]
    fn depth_is_bounded_by_the_parser_and_not_by_the_stack() {
        let deep =
            format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        // The payload is skipped without recursion, so it is not the envelope that refuses it.
        let _ = Message::parse(deep.as_bytes());
        assert_eq!(kind(&b"[".repeat(100_000)), FaultKind::NotJson);
    }
}
