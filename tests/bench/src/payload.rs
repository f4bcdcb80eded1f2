//! What is sent and what has to come back: the same for all contestants.

use std::fmt::Write as _;

/// The tool that is called.
pub(crate) const TOOL: &str = "echo";

/// The arguments of a call, with the text that the answer has to repeat.
#[derive(Debug, Clone)]
pub(crate) struct Payload {
    pub(crate) arguments: String,
    text: usize,
}

impl Payload {
    /// Makes the request and the answer about 200 bytes long.
    pub(crate) fn small() -> Self {
        Self::of(64)
    }

    /// One MiB there and back.
    pub(crate) fn large() -> Self {
        Self::of(1024 * 1024)
    }

    fn of(text: usize) -> Self {
        // Text as a file's is, without what JSON escapes.
        let words: String = "the quick brown fox jumps over the lazy dog, ".chars().cycle().take(text).collect();
        let arguments = format!(r#"{{"text":"{words}","count":3,"mode":"plain","tags":["a","b"]}}"#);
        Self { arguments, text }
    }

    /// Writes the request that the floor sends, which has the bytes of the pipeline's.
    pub(crate) fn request(&self, id: u64, line: &mut Vec<u8>) {
        let mut head = String::with_capacity(160);
        // Writing to a string does not fail.
        let _ = write!(
            head,
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{TOOL}","arguments":"#
        );
        line.extend_from_slice(head.as_bytes());
        line.extend_from_slice(self.arguments.as_bytes());
        head.clear();
        let _ = writeln!(
            head,
            r#","_meta":{{"progressToken":{id},"dev.lemon/session":{{"handle":1,"version":0}},"dev.lemon/call":"call-{id}"}}}}}}"#
        );
        line.extend_from_slice(head.as_bytes());
    }

    /// How long a result is that repeats the text.
    pub(crate) fn result_len(&self) -> usize {
        result(&"x".repeat(self.text)).len()
    }

    /// How long a whole answer is.
    pub(crate) fn answer_len(&self) -> usize {
        answer(b"1000", &[]).len() + self.text
    }
}

/// The result that repeats a text, which is written as JSON has it between the quotes.
fn result(text: &str) -> String {
    format!(r#"{{"content":[{{"type":"text","text":"{text}"}}],"isError":false}}"#)
}

/// The whole line of an answer.
pub(crate) fn answer(id: &[u8], text: &[u8]) -> Vec<u8> {
    let parts: [&[u8]; 5] = [
        br#"{"jsonrpc":"2.0","id":"#,
        id,
        br#","result":{"content":[{"type":"text","text":""#,
        text,
        b"\"}],\"isError\":false}}\n",
    ];
    parts.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_those_of_what_is_sent() {
        let payload = Payload::small();
        let text = "x".repeat(payload.text);
        assert_eq!(answer(b"1234", text.as_bytes()).len(), payload.answer_len());
        assert!(String::from_utf8(answer(b"1", text.as_bytes())).unwrap().contains(&result(&text)));
        let mut line = Vec::new();
        payload.request(1234, &mut line);
        assert!((150..350).contains(&line.len()) && (120..350).contains(&payload.answer_len()), "{}", line.len());
        let request: serde_json::Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(request["params"]["arguments"]["count"], 3);
    }
}
