//! What a tool gives back: content for the model, optionally a structured value and details for programs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::error::ToolError;
use crate::schema;

/// One block of what the model sees.
///
/// More kinds and more members may come; blocks are made with the functions, and matched with `..`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Content {
    /// Text.
    #[non_exhaustive]
    Text {
        /// The text.
        text: String,
    },
    /// A picture.
    #[non_exhaustive]
    Image {
        /// Its bytes in base64.
        data: String,
        /// Its type, such as `image/png`.
        mime_type: String,
    },
    /// A sound.
    #[non_exhaustive]
    Audio {
        /// Its bytes in base64.
        data: String,
        /// Its type, such as `audio/wav`.
        mime_type: String,
    },
    /// Says where something can be read.
    #[non_exhaustive]
    ResourceLink {
        /// Where.
        uri: String,
        /// What it is called.
        name: String,
        /// What it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// Its type, such as `text/markdown`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
    },
    /// The content of something that has a URI.
    #[non_exhaustive]
    Resource {
        /// What it is.
        resource: Resource,
    },
}

impl Content {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// A picture, given as the bytes of its file.
    pub fn image(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        Self::Image { data: STANDARD.encode(bytes), mime_type: mime_type.into() }
    }

    /// A sound, given as the bytes of its file.
    pub fn audio(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        Self::Audio { data: STANDARD.encode(bytes), mime_type: mime_type.into() }
    }

    /// A link.
    pub fn link(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self::ResourceLink { uri: uri.into(), name: name.into(), description: None, mime_type: None }
    }
}

impl From<Resource> for Content {
    fn from(resource: Resource) -> Self {
        Self::Resource { resource }
    }
}

/// The content of something that has a URI.
///
/// ```
/// use lemon_plugin_sdk::{Resource, ToolOutput};
///
/// let page = Resource::text("file:///notes/a.md", "# A").mime_type("text/markdown");
/// let archive = Resource::bytes("file:///notes.zip", b"PK").mime_type("application/zip");
/// let output = ToolOutput::new().and(page).and(archive);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Resource {
    /// Its URI.
    pub uri: String,
    /// Its type, such as `text/markdown`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// What is in it.
    #[serde(flatten)]
    pub body: ResourceBody,
}

/// What is in a [`Resource`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ResourceBody {
    /// A text.
    Text(String),
    /// Bytes, in base64.
    Blob(String),
}

impl Resource {
    /// A resource that is a text.
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self { uri: uri.into(), mime_type: None, body: ResourceBody::Text(text.into()) }
    }

    /// A resource that is no text, given as its bytes.
    pub fn bytes(uri: impl Into<String>, bytes: impl AsRef<[u8]>) -> Self {
        Self { uri: uri.into(), mime_type: None, body: ResourceBody::Blob(STANDARD.encode(bytes)) }
    }

    /// Says what type it has.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }
}

/// A result of a tool, built block by block.
///
/// ```
/// use lemon_plugin_sdk::ToolOutput;
///
/// let output = ToolOutput::text("2 of 3 tests passed")
///     .and_text("tests/b.rs failed")
///     .and_image(b"\x89PNG", "image/png")
///     .details(serde_json::json!({"failed": ["tests/b.rs"]}))
///     .failed();
/// ```
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct ToolOutput {
    pub(crate) content: Vec<Content>,
    pub(crate) structured: Option<Box<RawValue>>,
    pub(crate) is_error: bool,
    pub(crate) details: Option<Value>,
}

impl ToolOutput {
    /// A result without any content.
    pub fn new() -> Self {
        Self::default()
    }

    /// A result of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new().and_text(text)
    }

    /// A failure that the model reads; the same as `text(…).failed()`.
    pub fn error(text: impl Into<String>) -> Self {
        Self::text(text).failed()
    }

    /// Adds a text.
    pub fn and_text(self, text: impl Into<String>) -> Self {
        self.and(Content::text(text))
    }

    /// Adds a picture, given as the bytes of its file.
    pub fn and_image(self, bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        self.and(Content::image(bytes, mime_type))
    }

    /// Adds a sound, given as the bytes of its file.
    pub fn and_audio(self, bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        self.and(Content::audio(bytes, mime_type))
    }

    /// Adds a link.
    pub fn and_link(self, uri: impl Into<String>, name: impl Into<String>) -> Self {
        self.and(Content::link(uri, name))
    }

    /// Adds a block, or a [`Resource`] as one.
    pub fn and(mut self, block: impl Into<Content>) -> Self {
        self.content.push(block.into());
        self
    }

    /// Sets the result as a value, which must be an object in JSON (LPP-CALL-10). It adds no content: see [`Json`] for
    /// a result that is the same value in both.
    pub fn structured(self, value: &impl Serialize) -> Self {
        match to_raw_value(value) {
            Ok(raw) if raw.get().starts_with('{') => Self { structured: Some(raw), ..self },
            Ok(_) => Self::error("the tool is at fault: its structured result is no object"),
            Err(error) => Self::error(format!("the tool is at fault: its result can't be written as JSON: {error}")),
        }
    }

    /// Sets details for programs, such as what a host shows when a user unfolds the result. The model does not see
    /// them, and only Lemon hosts are given them.
    pub fn details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// Marks the result as a failure.
    pub fn failed(mut self) -> Self {
        self.is_error = true;
        self
    }
}

/// A result as a value: the tool declares its schema, and the model sees it as JSON.
///
/// ```
/// use lemon_plugin_sdk::{Context, Json, JsonSchema, NoArgs, Tool};
///
/// #[derive(serde::Serialize, JsonSchema)]
/// struct Count {
///     /// How many there are.
///     files: u32,
/// }
///
/// let tool = Tool::new("count", "Counts files.", async |_: NoArgs, _| Json(Count { files: 3 }));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Json<T>(pub T);

/// What a handler may return: a text, [`Json`], a [`ToolOutput`], nothing, or a `Result` of one of these, whose error
/// becomes a failure that the model reads.
///
/// A type of the plugin's own may be returned too:
///
/// ```
/// use lemon_plugin_sdk::{IntoToolOutput, NoArgs, Tool, ToolOutput};
///
/// struct Lines(Vec<String>);
///
/// impl IntoToolOutput for Lines {
///     fn into_tool_output(self) -> ToolOutput {
///         ToolOutput::text(self.0.join("\n"))
///     }
/// }
///
/// let tool = Tool::new("lines", "Gives lines.", async |_: NoArgs, _| Lines(vec!["one".to_owned()]));
/// ```
///
/// A number is none of these, nor is any other value that the compiler would not know how to show to a model:
///
/// ```compile_fail
/// use lemon_plugin_sdk::{NoArgs, Tool};
///
/// // error: a tool can't return `usize`
/// let tool = Tool::new("lines", "Counts lines.", async |_: NoArgs, _| 3_usize);
/// ```
#[diagnostic::on_unimplemented(
    message = "a tool can't return `{Self}`",
    label = "returned by a tool's handler",
    note = "a handler returns a text, `Json` of a value that has a schema, a `ToolOutput`, `()`, or a `Result` of one of these",
    note = "the error of such a `Result` is whatever `?` turns into a `ToolError`"
)]
pub trait IntoToolOutput {
    /// The output itself.
    fn into_tool_output(self) -> ToolOutput;

    /// The JSON Schema of the structured result, an object's, if the type has one.
    fn output_schema() -> Option<Value> {
        None
    }
}

impl IntoToolOutput for ToolOutput {
    fn into_tool_output(self) -> ToolOutput {
        self
    }
}

impl IntoToolOutput for String {
    fn into_tool_output(self) -> ToolOutput {
        ToolOutput::text(self)
    }
}

impl IntoToolOutput for &str {
    fn into_tool_output(self) -> ToolOutput {
        ToolOutput::text(self)
    }
}

impl IntoToolOutput for () {
    fn into_tool_output(self) -> ToolOutput {
        ToolOutput::new()
    }
}

impl<T: Serialize + JsonSchema> IntoToolOutput for Json<T> {
    fn into_tool_output(self) -> ToolOutput {
        let output = ToolOutput::new().structured(&self.0);
        match &output.structured {
            Some(raw) => {
                let text = raw.get().to_owned();
                output.and_text(text)
            }
            None => output,
        }
    }

    fn output_schema() -> Option<Value> {
        Some(schema::of_output::<T>())
    }
}

impl<T: IntoToolOutput, E: Into<ToolError>> IntoToolOutput for Result<T, E> {
    fn into_tool_output(self) -> ToolOutput {
        match self {
            Ok(value) => value.into_tool_output(),
            Err(error) => ToolOutput::error(error.into().to_string()),
        }
    }

    fn output_schema() -> Option<Value> {
        T::output_schema()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_mcps_shapes() {
        let output = ToolOutput::text("a")
            .and_image([0], "image/png")
            .and_audio([0], "audio/wav")
            .and_link("file:///a", "a")
            .and(Resource::text("file:///a", "text"))
            .and(Resource::bytes("file:///b", [0]).mime_type("application/zip"));
        let expected = serde_json::json!([
            {"type": "text", "text": "a"},
            {"type": "image", "data": "AA==", "mimeType": "image/png"},
            {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
            {"type": "resource_link", "uri": "file:///a", "name": "a"},
            {"type": "resource", "resource": {"uri": "file:///a", "text": "text"}},
            {"type": "resource", "resource": {"uri": "file:///b", "mimeType": "application/zip", "blob": "AA=="}},
        ]);
        assert_eq!(serde_json::to_value(&output.content).unwrap(), expected);
        let read: Vec<Content> = serde_json::from_value(expected).unwrap();
        assert_eq!(read, output.content, "and are read as they were written");
    }

    #[test]
    fn a_structured_result_that_is_no_object_is_a_failure_of_the_tool() {
        let output = ToolOutput::text("x").structured(&[1]);
        assert!(output.is_error && output.structured.is_none());
    }
}
