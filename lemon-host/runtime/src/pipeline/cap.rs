//! The last stage of a call: how much text of a result its caller takes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::value::{RawValue, to_raw_value};

use super::result::{Block, ToolResult, text_block};

/// How much text of a result its caller takes, in bytes; where the rest goes.
///
/// Text is what a model reads: that of text blocks and of embedded resources. The first bytes of it stay, whole
/// characters only; a block at the end says how much is left out and where all of it is. Images, sounds and files stay. Any
/// other block, and one that can't be read, counts with all of its JSON and is left out as a whole. Structured content and metadata stay as they are: whoever
/// shows them to a model has to bound them as well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextCap {
    bytes: usize,
    folder: Option<PathBuf>,
}

/// A block may have so much beside its text or base64 (its type, annotations) without being counted for it.
const BESIDE: usize = 1024;

/// How a block counts.
enum Weight<'a> {
    Text(&'static str, Cow<'a, str>),
    Whole(usize),
}

impl<'a> Weight<'a> {
    fn of(block: &'a RawValue) -> Self {
        let length = block.get().len();
        // Escapes make a text longer in JSON, at most six-fold.
        let plain = |text: &str| length <= text.len() * 6 + BESIDE;
        match Block::of(block) {
            Block::Text(text) if plain(&text) => Self::Text("text", text),
            Block::Resource(text) if plain(&text) => Self::Text("resource", text),
            Block::Media { base64 } if length <= base64 + BESIDE => Self::Whole(0),
            Block::Media { base64 } => Self::Whole(length - base64),
            Block::Text(_) | Block::Resource(_) | Block::Other | Block::Unreadable => Self::Whole(length),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Text(_, text) => text.len(),
            Self::Whole(bytes) => *bytes,
        }
    }
}

impl TextCap {
    /// Takes so many bytes, and drops the rest.
    pub fn new(bytes: usize) -> Self {
        Self { bytes, folder: None }
    }

    /// Keeps the whole text of a longer result in a file in this folder, which is made if it is not there. Only the
    /// user may read the file; whoever owns the folder takes it away again.
    #[must_use]
    pub fn spill_to(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    pub(super) async fn apply(&self, result: ToolResult, call: &str) -> ToolResult {
        // The text is never longer than the JSON that it stands in.
        if result.raw().get().len() <= self.bytes {
            return result;
        }
        let blocks = result.content();
        let total: usize = blocks.iter().map(|block| Weight::of(block).bytes()).sum();
        if total <= self.bytes {
            return result;
        }
        let spilled = match &self.folder {
            Some(folder) => Some(spill(folder.clone(), call.to_owned(), &blocks).await),
            None => None,
        };
        let whereabouts = match &spilled {
            None => String::new(),
            Some(Ok(file)) => format!("; all of it is in {}", file.display()),
            Some(Err(error)) => format!("; it could not be kept in a file: {error}"),
        };
        let (mut content, kept) = self.head(&blocks);
        let left_out = total - kept;
        let note = format!("[{left_out} of {total} bytes are left out here{whereabouts}]");
        content.push(Cow::Owned(text_block(&note)));
        result.with_content(&content, spilled.and_then(Result::ok))
    }

    /// The blocks, with as much text as may stay, and how much that is.
    fn head<'a>(&self, blocks: &[&'a RawValue]) -> (Vec<Cow<'a, RawValue>>, usize) {
        let (mut kept, mut left) = (0, self.bytes);
        let mut head = Vec::new();
        for &block in blocks {
            let weight = Weight::of(block);
            if weight.bytes() <= left {
                kept += weight.bytes();
                left -= weight.bytes();
                head.push(Cow::Borrowed(block));
                continue;
            }
            let Weight::Text(kind, text) = weight else { continue };
            let start = &text[..text.floor_char_boundary(left)];
            if let Some(block) = with_text(block, kind, start).filter(|_| !start.is_empty()) {
                kept += start.len();
                head.push(Cow::Owned(block));
            }
            // No text is shown without the one before it.
            left = 0;
        }
        (head, kept)
    }
}

/// The same block with another text.
fn with_text(block: &RawValue, kind: &str, text: &str) -> Option<Box<RawValue>> {
    type Members<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;
    let text = to_raw_value(text).ok()?;
    let mut members: Members<'_> = serde_json::from_str(block.get()).ok()?;
    if kind == "text" {
        members.insert("text".into(), &text);
        return to_raw_value(&members).ok();
    }
    let mut resource: Members<'_> = serde_json::from_str(members.get("resource")?.get()).ok()?;
    resource.insert("text".into(), &text);
    let resource = to_raw_value(&resource).ok()?;
    members.insert("resource".into(), &resource);
    to_raw_value(&members).ok()
}

async fn spill(folder: PathBuf, call: String, blocks: &[&RawValue]) -> io::Result<PathBuf> {
    let texts: Vec<String> = blocks
        .iter()
        .filter_map(|block| match (Weight::of(block), Block::of(block)) {
            (Weight::Text(_, text), _) => Some(text.into_owned()),
            // What can't be read as text is kept as it came, but for what nobody reads.
            (Weight::Whole(_), Block::Media { .. }) => None,
            (Weight::Whole(_), _) => Some(block.get().to_owned()),
        })
        .collect();
    tokio::task::spawn_blocking(move || keep(&folder, &call, &texts)).await.map_err(io::Error::other)?
}

fn keep(folder: &Path, call: &str, texts: &[String]) -> io::Result<PathBuf> {
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::Builder::new().prefix(&format!("{call}-")).suffix(".txt").tempfile_in(folder)?;
    for text in texts {
        file.write_all(text.as_bytes())?;
        if !text.ends_with('\n') {
            file.write_all(b"\n")?;
        }
    }
    let (_, path) = file.keep().map_err(|refused| refused.error)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn result(value: &Value) -> ToolResult {
        ToolResult::from_raw(to_raw_value(value).unwrap()).unwrap()
    }

    fn seen(result: &ToolResult) -> Value {
        serde_json::from_str(result.raw().get()).unwrap()
    }

    #[tokio::test]
    async fn a_long_text_keeps_its_head_and_all_of_it_is_in_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let cap = TextCap::new(5).spill_to(folder.path().join("spill"));
        let blocks = json!([
            { "type": "text", "text": "abc", "annotations": { "priority": 1 } },
            { "type": "image", "data": "AAAA", "mimeType": "image/png" },
            { "type": "resource", "resource": { "uri": "file:///x", "text": "dé\\u0000fg" } },
            { "type": "text", "text": "rest" },
        ]);
        let whole = json!({ "content": blocks, "structuredContent": { "n": 1 }, "isError": true, "_meta": { "k": 2 } });
        let capped = cap.apply(result(&whole), "call-1").await;
        let seen = seen(&capped);
        assert_eq!(seen["content"][0], blocks[0]);
        assert_eq!(seen["content"][1], blocks[1]);
        // é is two bytes, of which one would be left.
        assert_eq!(seen["content"][2], json!({ "type": "resource", "resource": { "uri": "file:///x", "text": "d" } }));
        let file = capped.spilled().unwrap();
        let note = seen["content"][3]["text"].as_str().unwrap();
        assert!(note.contains(&file.display().to_string()) && note.contains("of 18 bytes"), "{note}");
        assert_eq!(seen["content"].as_array().unwrap().len(), 4);
        assert_eq!((&seen["structuredContent"], &seen["isError"]), (&json!({ "n": 1 }), &json!(true)));
        assert_eq!(std::fs::read_to_string(file).unwrap(), "abc\ndé\\u0000fg\nrest\n");
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[tokio::test]
    async fn what_is_short_enough_stays_byte_for_byte() {
        let raw =
            r#"{"content":[{"type":"text","text":"12345"}],"structuredContent":{"n":1e400,"m":123456789012345678901}}"#;
        let short = ToolResult::from_raw(RawValue::from_string(raw.to_owned()).unwrap()).unwrap();
        assert_eq!(TextCap::new(5).apply(short.clone(), "c").await.raw().get(), raw);
        let capped = TextCap::new(4).apply(short, "c").await;
        assert!(capped.raw().get().contains(r#""structuredContent":{"n":1e400,"m":123456789012345678901}"#));
        assert!(capped.spilled().is_none());
    }

    #[tokio::test]
    async fn a_folder_that_can_not_be_written_is_told_and_loses_nothing_else() {
        let cap = TextCap::new(1).spill_to("/dev/null/x");
        let capped = cap.apply(result(&json!({ "content": [{ "type": "text", "text": "ab" }] })), "c").await;
        let seen = seen(&capped);
        assert_eq!(seen["content"][0]["text"], "a");
        assert!(seen["content"][1]["text"].as_str().unwrap().contains("could not be kept in a file: "));
    }

    #[tokio::test]
    async fn what_is_no_readable_text_does_not_get_past_the_cap() {
        let long = "x".repeat(100_000);
        let hidden = [
            format!(r#"{{"type":"text","text":"{long}","resource":0}}"#),
            format!(r#"{{"type":"text","text":"","text":"{long}"}}"#),
            format!(r#"{{"type":"text","text":"{long}\ud800"}}"#),
            format!(r#"{{"type":"text","text":"","annotations":"{long}"}}"#),
            format!(r#"{{"type":"news","text":"{long}"}}"#),
            format!(r#"{{"type":"image","data":"","mimeType":"{long}"}}"#),
            format!(r#""{long}""#),
        ];
        for block in hidden {
            let raw = format!(r#"{{"content":[{block},{{"type":"image","data":"{long}","mimeType":"image/png"}}]}}"#);
            let result = ToolResult::from_raw(RawValue::from_string(raw).unwrap()).unwrap();
            let capped = TextCap::new(1000).apply(result, "c").await;
            let content = capped.content();
            assert_eq!(content.len(), 2, "the image stays, and a note says that something is missing");
            assert!(content[0].get().contains("image/png") && content[1].get().contains("are left out here"));
        }
    }
}
