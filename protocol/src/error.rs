//! Error objects, and the one table of Lemon's own error codes (LPP-ERR-01 to -04).

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The `error` member of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorObject {
    /// JSON-RPC's codes lie in -32768…-32000, Lemon's own outside of that range.
    pub code: i64,
    /// One sentence for a person.
    #[serde(default)]
    pub message: String,
    /// More, for a program. Lemon's own errors have a `kind` in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl ErrorObject {
    /// The message is no request that can be understood.
    pub const INVALID_REQUEST: i64 = -32600;
    /// No such method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The params do not fit the method.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The answering side failed in a way that has no better code.
    pub const INTERNAL: i64 = -32603;

    /// An error of Lemon's own, with its code and `data.kind`.
    pub fn of(kind: Kind, message: impl Into<String>) -> Self {
        Self { code: kind.code(), message: message.into(), data: Some(json!({ "kind": kind.as_str() })) }
    }

    /// An error of Lemon's own, with more members in `data`.
    pub fn with(kind: Kind, message: impl Into<String>, mut data: serde_json::Map<String, Value>) -> Self {
        data.insert("kind".to_owned(), kind.as_str().into());
        Self { code: kind.code(), message: message.into(), data: Some(Value::Object(data)) }
    }

    /// The kind, by `data.kind`, and by the code where that names none (LPP-ERR-04).
    pub fn kind(&self) -> Option<Kind> {
        let named = self.data.as_ref().and_then(|data| data.get("kind")).and_then(Value::as_str);
        let by_name = Kind::ALL.into_iter().find(|kind| named == Some(kind.as_str()));
        by_name.or_else(|| Kind::ALL.into_iter().find(|kind| self.code == kind.code()))
    }
}

impl fmt::Display for ErrorObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (code {})", self.message, self.code)
    }
}

macro_rules! kinds {
    ($($variant:ident = $code:literal $name:literal: $doc:literal;)*) => {
        /// The errors that are Lemon's own.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Kind { $(#[doc = $doc] $variant,)* }

        impl Kind {
            /// All kinds, in the order of their codes.
            pub const ALL: [Self; [$($code),*].len()] = [$(Self::$variant),*];

            /// The stable name in `data.kind`.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The error code.
            pub const fn code(self) -> i64 {
                match self { $(Self::$variant => $code,)* }
            }

            /// What the kind means, in one sentence.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $doc.trim_ascii(),)* }
            }
        }
    };
}

kinds! {
    Timeout = 4001 "timeout": " The deadline passed while the other side was alive.";
    Cancelled = 4002 "cancelled": " The caller no longer wanted the answer.";
    Crashed = 4003 "crashed": " The process that should have answered has ended.";
    NotReady = 4004 "not_ready": " The plugin has not started yet, or has failed.";
    Changed = 4005 "changed": " The tool is another one than the caller was shown.";
    Stale = 4006 "stale": " The parent or session that a request names is not open for this process.";
    Cycle = 4007 "cycle": " The call would come back to a tool that is waiting for it.";
    TooDeep = 4008 "too_deep": " The chain of calls within calls is longer than eight.";
    Busy = 4009 "busy": " More requests at once than the limit allows.";
    TooLarge = 4010 "too_large": " A message is larger than the limit.";
    Config = 4011 "config": " The configuration is not acceptable; `data.pointer` names the place.";
    UnsupportedVersion = 4012 "unsupported_version": " The two sides have no protocol version in common.";
    UnknownTool = 4013 "unknown_tool": " There is no tool of that name.";
    Denied = 4014 "denied": " A policy or the user refused the request.";
    ShuttingDown = 4015 "shutting_down": " The host is coming to its end.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_codes_lie_outside_of_json_rpcs_range_and_are_unique() {
        for (index, kind) in Kind::ALL.into_iter().enumerate() {
            assert!(!(-32768..=-32000).contains(&kind.code()));
            assert!(Kind::ALL[..index].iter().all(|other| other.code() != kind.code()));
            assert_eq!(ErrorObject::of(kind, "").kind(), Some(kind));
        }
    }

    #[test]
    fn a_kind_that_is_named_counts_for_more_than_the_code() {
        let mut error = ErrorObject::of(Kind::Config, "");
        error.code = Kind::Timeout.code();
        assert_eq!(error.kind(), Some(Kind::Config));
        error.data = Some(json!({ "kind": "of another program" }));
        assert_eq!(error.kind(), Some(Kind::Timeout));
    }
}
