//! What the tests and the fuzz target share: a stream cut into reads, and what holds of every stream.

#![allow(dead_code, reason = "each test binary uses a part")]

use lemon_protocol::{LineSplitter, Message, Piece, RequestId};

/// A piece that borrows nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Whole {
    /// A line within the limit.
    Line(Vec<u8>),
    /// A line over the limit: its length and the id that could be read in passing.
    Oversized(usize, Option<i64>),
}

/// Feeds `bytes` in reads whose lengths are taken from `cuts` again and again; without cuts in one.
pub(crate) fn split(bytes: &[u8], cuts: &[usize], limit: usize) -> Vec<Whole> {
    let mut splitter = LineSplitter::new(limit);
    let mut pieces = Vec::new();
    let mut rest = bytes;
    let mut cuts = cuts.iter().cycle();
    while !rest.is_empty() {
        let length = cuts.next().map_or(rest.len(), |cut| (*cut).clamp(1, rest.len()));
        let (read, tail) = rest.split_at(length);
        rest = tail;
        splitter.extend(read);
        while let Some(piece) = splitter.next_piece() {
            pieces.push(match piece {
                Piece::Line(line) => Whole::Line(line.to_vec()),
                Piece::Oversized { bytes, id, .. } => Whole::Oversized(bytes, id),
            });
        }
    }
    pieces
}

/// What a message says, written anew: it must read as the same message.
pub(crate) fn rewrite(message: &Message<'_>) -> String {
    let id = |id: &RequestId<'_>| serde_json::to_string(id).expect("an id");
    let method = |method: &str| serde_json::to_string(method).expect("a method");
    let params = |params: &Option<&serde_json::value::RawValue>| {
        params.map_or_else(String::new, |params| format!(",\"params\":{}", params.get()))
    };
    match message {
        Message::Request { id: i, method: m, params: p } => {
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":{}{}}}", id(i), method(m), params(p))
        }
        Message::Notification { method: m, params: p } => {
            format!("{{\"jsonrpc\":\"2.0\",\"method\":{}{}}}", method(m), params(p))
        }
        Message::Response { id: i, outcome } => {
            let (member, raw) = match outcome {
                Ok(raw) => ("result", raw.get()),
                Err(raw) => ("error", raw.get()),
            };
            let id = i.as_ref().map_or_else(|| "null".to_owned(), id);
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"{member}\":{raw}}}")
        }
    }
}

/// Checks everything that holds of any stream, whatever it contains: the reads' lengths change nothing, no line is
/// lost, an oversized line says the id that the message has, and a message can be written and read again.
pub(crate) fn check(bytes: &[u8], cuts: &[usize], limit: usize) {
    let pieces = split(bytes, cuts, limit);
    assert_eq!(pieces, split(bytes, &[], limit), "where the reads end");
    let ended = bytes.iter().rposition(|byte| *byte == b'\n').map_or(&bytes[..0], |last| &bytes[..last]);
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
    assert_eq!(pieces.len(), lines, "a piece for each line end");
    for (piece, line) in pieces.iter().zip(ended.split(|byte| *byte == b'\n')) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match piece {
            Whole::Line(found) => {
                assert_eq!(found, line);
                assert!(line.len() <= limit);
            }
            Whole::Oversized(length, id) => {
                assert_eq!(*length, line.len());
                assert!(line.len() > limit);
                if let Ok(message) = Message::parse(line) {
                    assert_eq!(*id, integer_id(&message), "{:?}", String::from_utf8_lossy(line));
                }
            }
        }
        check_line(line);
    }
}

/// The message's id, if it has one that is an integer.
fn integer_id(message: &Message<'_>) -> Option<i64> {
    match message {
        Message::Request { id: RequestId::Number(id), .. }
        | Message::Response { id: Some(RequestId::Number(id)), .. } => Some(*id),
        _ => None,
    }
}

fn check_line(line: &[u8]) {
    match Message::parse(line) {
        Ok(message) => {
            let text = rewrite(&message);
            let again = Message::parse(text.as_bytes()).expect("what was read can be written");
            assert_eq!(format!("{message:?}"), format!("{again:?}"));
        }
        Err(fault) => assert!(!fault.to_string().is_empty()),
    }
}
