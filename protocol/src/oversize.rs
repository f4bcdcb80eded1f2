//! Finds the top-level `id` of a JSON message that streams by and is too large to keep (LPP-LIM-03).
//!
//! A call whose answer is dropped for its size must end at once with that reason. The answer's id may stand before or
//! after the result, so the whole line is followed, in constant memory, without checking that it is valid JSON.

use std::borrow::Cow;

use crate::id::RequestId;

/// Follows a JSON text and remembers what its top-level `id` member has, and whether there is a `method`: ids of
/// requests are their sender's own and say nothing of the reader's calls.
#[derive(Debug, Default)]
pub struct TopLevelId {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// The start of the last string at depth one, which may be a key or the id, as it was written.
    text: Vec<u8>,
    /// The id is a string, and `text` has it.
    is_text: bool,
    state: State,
    number: Vec<u8>,
    found: Option<RequestId<'static>>,
    has_id: bool,
    has_method: bool,
    has_outcome: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum State {
    /// A key comes next, or nothing that matters.
    #[default]
    Key,
    /// Behind the colon of the `id` member.
    Value,
    /// Behind the colon of another member.
    Other,
}

impl TopLevelId {
    /// The longest key or number that matters is shorter than this.
    const KEEP: usize = 40;
    /// So is the longest string that is kept as an id, in bytes as it was written.
    const KEEP_ID: usize = 256;

    /// Follows on.
    pub fn feed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.step(byte);
        }
    }

    /// The id, when it was an integer and has been seen whole.
    pub fn get(&self) -> Option<i64> {
        match self.found {
            Some(RequestId::Number(number)) => Some(number),
            _ => None,
        }
    }

    /// The id of either type, when it has been seen whole. A string of 256 bytes or more is not kept.
    pub fn id(&self) -> Option<&RequestId<'static>> {
        self.found.as_ref()
    }

    /// Whether there is an `id`, be it one that can be read or not.
    pub fn has_id(&self) -> bool {
        self.has_id
    }

    /// Whether the message is a request: it has a `method`.
    pub fn is_request(&self) -> bool {
        self.has_method
    }

    /// Whether the message is an answer: it has a `result` or an `error`, and no `method` so far.
    pub fn is_answer(&self) -> bool {
        self.has_outcome && !self.has_method
    }

    fn step(&mut self, byte: u8) {
        if self.in_string {
            if byte == b'"' && !self.escaped {
                self.in_string = false;
                return;
            }
            self.escaped = byte == b'\\' && !self.escaped;
            let keep = if self.state == State::Value { Self::KEEP_ID } else { Self::KEEP };
            if self.depth == 1 && self.text.len() < keep {
                self.text.push(byte);
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                self.text.clear();
                self.is_text |= self.depth == 1 && self.state == State::Value;
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.end_of_value();
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 => {
                self.state = if self.text_is("id") { State::Value } else { State::Other };
                self.has_id |= self.state == State::Value;
                self.has_method |= self.text_is("method");
                self.has_outcome |= self.text_is("result") || self.text_is("error");
                self.number.clear();
                self.is_text = false;
            }
            b',' if self.depth == 1 => self.end_of_value(),
            _ => {
                let wanted = self.depth == 1 && self.state == State::Value && !byte.is_ascii_whitespace();
                if wanted && self.number.len() < Self::KEEP {
                    self.number.push(byte);
                }
            }
        }
    }

    /// Whether the last string is `name`, which may be written with escapes.
    fn text_is(&self, name: &str) -> bool {
        let text = self.text.as_slice();
        text == name.as_bytes()
            || text.contains(&b'\\')
                && serde_json::from_slice::<String>(&[b"\"", text, b"\""].concat()).is_ok_and(|text| text == name)
    }

    fn end_of_value(&mut self) {
        if self.depth == 1 && self.state == State::Value {
            self.found = match (self.is_text, self.number.is_empty()) {
                (false, _) => serde_json::from_slice(&self.number).ok().map(RequestId::Number),
                (true, true) if self.text.len() < Self::KEEP_ID => {
                    let text = serde_json::from_slice(&[b"\"", self.text.as_slice(), b"\""].concat()).ok();
                    text.map(|text: String| RequestId::Text(Cow::Owned(text)))
                }
                (true, _) => None,
            };
        }
        if self.depth == 1 {
            self.state = State::Key;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id_of(text: &str) -> Option<i64> {
        let mut id = TopLevelId::default();
        id.feed(text.as_bytes());
        id.get()
    }

    #[test]
    fn only_the_top_level_integer_counts() {
        assert_eq!(id_of(r#"{"jsonrpc":"2.0","id":7,"result":{"id":8}}"#), Some(7));
        assert_eq!(id_of(r#"{"result":{"a":["\"id\":1,{"],"id":8}, "id" : 42 }"#), Some(42));
        assert_eq!(id_of(r#"{"result":"\"id\":3,","id":-1}"#), Some(-1));
        assert_eq!(id_of(r#"{"id":"5","result":1}"#), None);
        assert_eq!(id_of(r#"{"id":1.5}"#), None);
        assert_eq!(id_of(r#"{"id":+1}"#), None);
        assert_eq!(id_of(r#"[{"id":1}]"#), None);
        assert_eq!(id_of(r#"{"id":12"#), None, "a number that may go on is not an id yet");
    }

    #[test]
    fn a_string_is_an_id_too_unless_it_is_long() {
        let text_of = |text: &str| {
            let mut id = TopLevelId::default();
            id.feed(text.as_bytes());
            assert!(id.has_id());
            match id.id() {
                Some(RequestId::Text(text)) => Some(text.to_string()),
                _ => None,
            }
        };
        assert_eq!(text_of(r#"{"jsonrpc":"2.0","id":"a\n\"1","method":"m"}"#).as_deref(), Some("a\n\"1"));
        assert_eq!(text_of(r#"{"method":"m","params":{"id":"no"}, "id" : "漢" }"#).as_deref(), Some("漢"));
        assert_eq!(text_of(&format!(r#"{{"id":"{}"}}"#, "x".repeat(255))), Some("x".repeat(255)));
        for unreadable in [&format!(r#"{{"id":"{}"}}"#, "x".repeat(256)), r#"{"id":"a" 1}"#, r#"{"id":"\ud800"}"#] {
            assert_eq!(text_of(unreadable), None, "{unreadable}");
        }
        assert_eq!(text_of(r#"{"id":"a"#), None, "it may go on");
    }

    #[test]
    fn a_request_is_told_from_an_answer() {
        let is_request = |text: &str| {
            let mut id = TopLevelId::default();
            id.feed(text.as_bytes());
            id.is_request()
        };
        assert!(is_request(r#"{"id":1,"method":"m"}"#) && is_request(r#"{"m\u0065thod":"m","params":{}}"#));
        assert!(!is_request(r#"{"id":1,"result":{"method":"m"},"error":"method"}"#));
    }

    #[test]
    fn the_key_is_compared_after_its_escapes() {
        assert_eq!(id_of(r#"{"\u0069\u0064":7,"result":1}"#), Some(7));
        assert_eq!(id_of(r#"{"i\u0064":7,"result":1}"#), Some(7));
        assert_eq!(id_of(r#"{"id":7,"i\td":8,"\"id":9,"\\id":10}"#), Some(7), "an escape is not left out of a key");
    }
}
