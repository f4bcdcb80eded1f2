//! A tool's result, byte for byte as its provider wrote it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::members::Members;
use crate::report::PluginText;

/// A tool's result, as its provider wrote it. Nothing in it is read and written anew, so no digit of a number is lost.
///
/// A [`HostTool`](crate::HostTool) makes one of a text, or of a `Result` whose error says what went wrong.
#[derive(Debug, Clone)]
pub struct ToolResult {
    raw: Box<RawValue>,
    is_error: bool,
    spilled: Option<PathBuf>,
}

impl ToolResult {
    /// Takes a whole result in MCP's form: an object with `content` and, for a tool that failed, `isError`.
    ///
    /// # Errors
    /// When it is no object, or when one of these members is of the wrong type.
    pub fn from_raw(raw: Box<RawValue>) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct View<'a> {
            #[serde(default)]
            is_error: bool,
            #[serde(borrow)]
            content: Option<&'a RawValue>,
        }
        if let Some(is_error) = usual_is_error(raw.get()).or_else(|| plain_is_error(raw.get())) {
            return Ok(Self { raw, is_error, spilled: None });
        }
        // A sequence would be taken for a struct, too.
        if !raw.get().starts_with('{') {
            return Err(serde::de::Error::custom("it is not an object"));
        }
        let View { is_error, content } = serde_json::from_str(raw.get())?;
        if content.is_some_and(|content| !content.get().starts_with('[')) {
            return Err(serde::de::Error::custom("its content is not an array"));
        }
        Ok(Self { raw, is_error, spilled: None })
    }

    /// A result of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::made(&text.into(), None, false)
    }

    /// The result of a tool that failed, with what the model should know of it.
    pub fn error(text: impl Into<String>) -> Self {
        Self::made(&text.into(), None, true)
    }

    /// A structured result, which is also its own text.
    ///
    /// # Errors
    /// When the value can't be written as JSON.
    pub fn structured(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        let value = to_raw_value(value)?;
        Ok(Self::made(value.get(), Some(&value), false))
    }

    fn made(text: &str, structured: Option<&RawValue>, is_error: bool) -> Self {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Whole<'a> {
            content: [&'a RawValue; 1],
            #[serde(skip_serializing_if = "Option::is_none")]
            structured_content: Option<&'a RawValue>,
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            is_error: bool,
        }
        let raw = written(&Whole { content: [&text_block(text)], structured_content: structured, is_error });
        Self { raw, is_error, spilled: None }
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
    pub fn content(&self) -> Vec<&RawValue> {
        #[derive(Deserialize)]
        struct View<'a> {
            #[serde(borrow, default)]
            content: Vec<&'a RawValue>,
        }
        // It is known to be an array, or not there.
        serde_json::from_str(self.raw.get()).map_or_else(|_| Vec::new(), |View { content }| content)
    }

    /// The text of each text block. In place of one that can't be read, such as one with half of a surrogate pair, a
    /// note that says so.
    pub fn texts(&self) -> impl Iterator<Item = PluginText> {
        self.content().into_iter().filter_map(|block| match Block::of(block) {
            Block::Text(text) => Some(PluginText::new(text)),
            Block::Unreadable => Some(PluginText::new(format!("[{} bytes that can't be read]", block.get().len()))),
            Block::Resource(_) | Block::Media { .. } | Block::Other => None,
        })
    }

    /// The structured content, byte for byte.
    pub fn structured_content(&self) -> Option<&RawValue> {
        self.member("structuredContent")
    }

    /// MCP's metadata, byte for byte.
    pub fn meta(&self) -> Option<&RawValue> {
        self.member("_meta")
    }

    fn member(&self, name: &str) -> Option<&RawValue> {
        let members: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(self.raw.get()).ok()?;
        members.get(name).copied().filter(|value| value.get() != "null")
    }

    /// The file that has all of the text, if a [`TextCap`](crate::TextCap) took some of it away.
    pub fn spilled(&self) -> Option<&Path> {
        self.spilled.as_deref()
    }

    /// The same result with other content.
    pub(super) fn with_content(&self, content: &[Cow<'_, RawValue>], spilled: Option<PathBuf>) -> Self {
        let mut members: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(self.raw.get()).unwrap_or_default();
        let replaced = written(&content);
        members.insert(Cow::Borrowed("content"), &replaced);
        Self { raw: written(&members), is_error: self.is_error, spilled }
    }
}

/// Whether a result says that the tool failed, if it is written as nearly all are: `content` first, `isError` last or not
/// at all, and neither name anywhere else, however deep, nor an escape that could hide one. It is known to be JSON, so
/// three searches that look at many bytes at once do for a walk.
fn usual_is_error(json: &str) -> Option<bool> {
    static NAMES: LazyLock<[Finder<'static>; 3]> =
        LazyLock::new(|| [r#""content""#, r#""isError""#, r"\u"].map(Finder::new));
    let rest = json.strip_prefix(r#"{"content":["#)?;
    let (rest, is_error) = match rest.strip_suffix(r#"],"isError":false}"#) {
        Some(rest) => (rest, false),
        None => rest.strip_suffix(r#"],"isError":true}"#).map_or((rest, false), |rest| (rest, true)),
    };
    NAMES.iter().all(|name| name.find(rest.as_bytes()).is_none()).then_some(is_error)
}

/// Whether a result says that the tool failed, if it is one as most are: the two members that matter stand there once at
/// most, have the right types and are written without escapes. It is known to be JSON, so its values are passed over.
fn plain_is_error(json: &str) -> Option<bool> {
    let (mut content, mut is_error) = (None, None);
    for (name, value) in Members::of(json)? {
        let is_unusual = match name {
            "content" => content.replace(value.starts_with('[').then_some(())?).is_some(),
            "isError" => is_error.replace(value.parse().ok()?).is_some(),
            _ => name.contains('\\'),
        };
        if is_unusual {
            return None;
        }
    }
    Some(is_error.unwrap_or_default())
}

/// What a block of content is to a model.
pub(super) enum Block<'a> {
    /// A text.
    Text(Cow<'a, str>),
    /// The text of an embedded resource.
    Resource(Cow<'a, str>),
    /// An image, a sound or a file, with so many bytes of base64.
    Media {
        /// The length of the base64.
        base64: usize,
    },
    /// Something else.
    Other,
    /// No block, or one with text that is no text.
    Unreadable,
}

impl<'a> Block<'a> {
    pub(super) fn of(block: &'a RawValue) -> Self {
        #[derive(Deserialize)]
        struct View<'a> {
            #[serde(borrow)]
            r#type: Cow<'a, str>,
            #[serde(borrow, default)]
            text: Option<Cow<'a, str>>,
            #[serde(borrow, default)]
            data: Option<Cow<'a, str>>,
            #[serde(borrow, default)]
            resource: Option<Resource<'a>>,
        }
        #[derive(Deserialize)]
        struct Resource<'a> {
            #[serde(borrow, default)]
            text: Option<Cow<'a, str>>,
            #[serde(borrow, default)]
            blob: Option<Cow<'a, str>>,
        }
        let Ok(View { r#type, text, data, resource }) = serde_json::from_str(block.get()) else {
            return Self::Unreadable;
        };
        match (&*r#type, text, data, resource) {
            ("text", Some(text), ..) => Self::Text(text),
            ("text", None, ..) => Self::Unreadable,
            ("image" | "audio", _, Some(data), _) => Self::Media { base64: data.len() },
            ("resource", _, _, Some(Resource { text: Some(text), .. })) => Self::Resource(text),
            ("resource", _, _, Some(Resource { blob: Some(blob), .. })) => Self::Media { base64: blob.len() },
            _ => Self::Other,
        }
    }
}

/// A text block.
pub(super) fn text_block(text: &str) -> Box<RawValue> {
    #[derive(Serialize)]
    struct Block<'a> {
        r#type: &'static str,
        text: &'a str,
    }
    written(&Block { r#type: "text", text })
}

/// What is made of strings and JSON can be written as JSON.
fn written(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

impl From<String> for ToolResult {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<&str> for ToolResult {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl<T: Into<Self>, E: Display> From<Result<T, E>> for ToolResult {
    fn from(result: Result<T, E>) -> Self {
        match result {
            Ok(result) => result.into(),
            Err(error) => Self::error(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_taken_as_it_is_or_refused() {
        let raw =
            r#"{"content":[{"type":"text","text":"a"}],"structuredContent":{"n":12345678901234567890123,"f":0.10}}"#;
        let result = ToolResult::from_raw(RawValue::from_string(raw.to_owned()).unwrap()).unwrap();
        assert_eq!((result.raw().get(), result.is_error()), (raw, false));
        let read = |raw: &str| ToolResult::from_raw(RawValue::from_string(raw.to_owned()).unwrap());
        let twice = [r#"{"content":[],"content":[]}"#, r#"{"isError":true,"isEr\u0072or":true}"#];
        for wrong in ["[]", "[false,[]]", "null", r#"{"content":{}}"#, r#"{"isError":1}"#].into_iter().chain(twice) {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        let wrong = [
            r#"{"content":[],"isError":false,"isError":false}"#,
            r#"{"content":[],"c\u006fntent":[]}"#,
            r#"{"content":[],"is\u0045rror":1,"x":[]}"#,
            r#"{"content":[],"isError":1,"x":[],"isError":false}"#,
        ];
        for wrong in wrong {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        for (json, is_error) in [
            (r#"{"content":[]}"#, false),
            (r#"{"content":[{"type":"text","text":"],\"isError\":true}"}]}"#, false),
            (r#"{"content":[{"type":"text","text":"\u0041"}],"isError":true}"#, true),
            (r#"{"content":[],"isError":true,"structuredContent":[{}],"_meta":{"isError":false}}"#, true),
            (r#"{"content":[],"structuredContent":{"x":[],"isError":true}}"#, false),
            (r#"{"content":[],"isError":false}"#, false),
            (r#"{"content":[],"isError":true}"#, true),
        ] {
            assert_eq!(read(json).unwrap().is_error(), is_error, "{json}");
        }
        for failed in [r#"{ "content" : [{"isError":false}] , "isError" : true }"#, r#"{"isEr\u0072or":true,"x":"}"}"#]
        {
            assert!(read(failed).unwrap().is_error(), "{failed}");
        }
        assert!(!read(r#"{"content":null,"x":{"isError":true}}"#).unwrap().is_error());
    }

    #[test]
    fn a_result_is_made_of_a_text_or_of_an_error() {
        let made = |result: ToolResult| result.raw().get().to_owned();
        assert_eq!(made("a\n".into()), r#"{"content":[{"type":"text","text":"a\n"}]}"#);
        let failed: Result<String, _> = "x".parse::<u8>().map(|n| n.to_string());
        let failed = ToolResult::from(failed);
        assert!(failed.is_error() && made(failed).contains("invalid digit"));
        let structured = ToolResult::structured(&[1]).unwrap();
        assert_eq!(made(structured), r#"{"content":[{"type":"text","text":"[1]"}],"structuredContent":[1]}"#);
    }
}
