//! The result of a call, as its caller reads it.

use lemon_protocol::{CallToolResult, meta};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::output::Content;

/// What a tool answered, be it another's tool called through the [`Host`](crate::Host) or, in a test, the plugin's own.
#[derive(Debug, Clone, PartialEq)]
pub struct CallResult {
    raw: CallToolResult,
}

impl CallResult {
    pub(crate) fn new(raw: CallToolResult) -> Self {
        Self { raw }
    }

    /// The texts of the result, joined by line ends.
    pub fn text(&self) -> String {
        let texts = self.raw.content.iter().filter(|block| block.kind == "text");
        let texts: Vec<&str> = texts.filter_map(|block| block.members.get("text")?.as_str()).collect();
        texts.join("\n")
    }

    /// Whether the tool failed; the text says how.
    pub fn is_error(&self) -> bool {
        self.raw.is_error == Some(true)
    }

    /// The blocks of the result. One of a type that this version does not know is left out.
    pub fn content(&self) -> Vec<Content> {
        let blocks = self.raw.content.iter();
        blocks.filter_map(|block| serde_json::to_value(block).and_then(serde_json::from_value).ok()).collect()
    }

    /// The structured result, if there is one that is a `T`.
    pub fn structured<T: DeserializeOwned>(&self) -> Option<T> {
        self.raw.structured_content.as_ref().and_then(|value| T::deserialize(value).ok())
    }

    /// The details for programs, if there are any.
    pub fn details(&self) -> Option<&Value> {
        self.raw.meta.get(meta::DETAILS)
    }

    /// The result as the protocol has it.
    pub fn into_raw(self) -> CallToolResult {
        self.raw
    }
}
