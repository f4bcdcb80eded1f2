//! A JSON text as values that know where they stand.

use std::ops::Range;

use lemon_protocol::manifest::MAX_DEPTH;
use serde::de::IgnoredAny;

use super::problem::ProblemKind;

/// A value and the bytes that it takes in the text.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) span: Range<usize>,
    pub(super) value: Value,
}

#[derive(Debug)]
pub(super) enum Value {
    Null,
    Boolean(bool),
    /// As it is written.
    Number(String),
    String(String),
    Array(Vec<Node>),
    /// In the order of the text; a key may stand there twice.
    Object(Vec<Member>),
}

#[derive(Debug)]
pub(super) struct Member {
    pub(super) key: String,
    pub(super) key_span: Range<usize>,
    pub(super) node: Node,
}

/// Why there is no tree, and where.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) kind: ProblemKind,
    pub(super) at: usize,
    pub(super) message: String,
}

impl Node {
    /// What the value is, with its article.
    pub(super) fn type_name(&self) -> &'static str {
        match self.value {
            Value::Null => "null",
            Value::Boolean(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a text",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        }
    }

    /// Reads a text.
    ///
    /// # Errors
    /// The first place that is no JSON, or that is too deep.
    pub(super) fn read(text: &str) -> Result<Self, Fault> {
        // Looks at each byte once and does not recurse, however deep the text is.
        serde_json::from_str::<IgnoredAny>(text).map_err(|error| {
            let message = error.to_string();
            let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message);
            let at = offset(text, error.line(), error.column());
            Fault { kind: ProblemKind::NotJson, at, message: message.to_owned() }
        })?;
        Reader { text, at: 0, depth: 0 }.value()
    }
}

/// Where serde_json means: it counts columns in bytes, from 1 at the first byte of a line.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let start = match line {
        0 | 1 => 0,
        _ => text.match_indices('\n').nth(line - 2).map_or(0, |(at, _)| at + 1),
    };
    (start + column.saturating_sub(1)).min(text.len())
}

/// Reads what is known to be JSON.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    fn peek(&mut self) -> u8 {
        let bytes = self.text.as_bytes();
        while bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        bytes.get(self.at).copied().unwrap_or(0)
    }

    /// Whether the list goes on. Skips the comma, or the bracket at its end.
    fn goes_on(&mut self, end: u8) -> bool {
        let next = self.peek();
        if next == b',' || next == end {
            self.at += 1;
        }
        if next == b',' {
            self.peek();
        }
        next != end && next != 0
    }

    fn value(&mut self) -> Result<Node, Fault> {
        let first = self.peek();
        let start = self.at;
        let value = match first {
            b'{' | b'[' => {
                self.depth += 1;
                if self.depth > MAX_DEPTH {
                    let message = format!("it nests deeper than {MAX_DEPTH} levels");
                    return Err(Fault { kind: ProblemKind::TooDeep, at: start, message });
                }
                let value = if first == b'{' { self.object()? } else { self.array()? };
                self.depth -= 1;
                value
            }
            b'"' => Value::String(self.string()?),
            _ => {
                let rest = &self.text[start..];
                let length = rest.find(|c: char| c.is_ascii_whitespace() || ",]}".contains(c)).unwrap_or(rest.len());
                self.at += length;
                match &rest[..length] {
                    "null" => Value::Null,
                    "true" => Value::Boolean(true),
                    "false" => Value::Boolean(false),
                    number => Value::Number(number.to_owned()),
                }
            }
        };
        Ok(Node { span: start..self.at, value })
    }

    fn array(&mut self) -> Result<Value, Fault> {
        let mut items = Vec::new();
        self.at += 1;
        if self.peek() == b']' {
            self.at += 1;
            return Ok(Value::Array(items));
        }
        loop {
            items.push(self.value()?);
            if !self.goes_on(b']') {
                return Ok(Value::Array(items));
            }
        }
    }

    fn object(&mut self) -> Result<Value, Fault> {
        let mut members = Vec::new();
        self.at += 1;
        if self.peek() == b'}' {
            self.at += 1;
            return Ok(Value::Object(members));
        }
        loop {
            self.peek();
            let start = self.at;
            let key = self.string()?;
            let key_span = start..self.at;
            self.peek();
            // The colon.
            self.at += 1;
            members.push(Member { key, key_span, node: self.value()? });
            if !self.goes_on(b'}') {
                return Ok(Value::Object(members));
            }
        }
    }

    fn string(&mut self) -> Result<String, Fault> {
        let (start, bytes) = (self.at, self.text.as_bytes());
        self.at += 1;
        while let Some(&byte) = bytes.get(self.at) {
            self.at += if byte == b'\\' { 2 } else { 1 };
            if byte == b'"' {
                break;
            }
        }
        self.at = self.at.min(self.text.len());
        // Half of a surrogate pair is no character, which serde_json does not see in what it skips.
        serde_json::from_str(&self.text[start..self.at]).map_err(|_| Fault {
            kind: ProblemKind::NotJson,
            at: start,
            message: "an escape in this text stands for no character".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_knows_its_place() {
        let text = r#" {"a" : [1.5e3, "x\"é", null ,true], "b":{}, "a":[]} "#;
        let node = Node::read(text).unwrap();
        let Value::Object(members) = &node.value else { panic!() };
        let keys: Vec<_> = members.iter().map(|member| (&text[member.key_span.clone()], member.key.as_str())).collect();
        assert_eq!(keys, [("\"a\"", "a"), ("\"b\"", "b"), ("\"a\"", "a")]);
        let Value::Array(items) = &members[0].node.value else { panic!() };
        let texts: Vec<_> = items.iter().map(|item| &text[item.span.clone()]).collect();
        assert_eq!(texts, ["1.5e3", r#""x\"é""#, "null", "true"]);
    }

    #[test]
    fn what_is_no_json_is_told_with_its_place() {
        let fault = |text: &str| Node::read(text).map(|_| ()).unwrap_err();
        let comma = fault("{\n  \"a\": 1,\n}");
        assert_eq!((comma.at, comma.message.as_str()), (12, "key must be a string"));
        assert_eq!(fault("").at, 0);
        assert_eq!(fault("{} x").at, 3);
        assert_eq!(fault(r#"{"a": "\ud800"}"#).at, 6);
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert_eq!((fault(&deep).kind, fault(&deep).at), (ProblemKind::TooDeep, 64));
    }
}
