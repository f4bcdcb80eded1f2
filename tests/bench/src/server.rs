//! The other side of each contestant, in a process of its own, with blocking pipes.

use std::io::{self, Read, Write};

use anyhow::{Context, Result};
use memchr::{memchr, memmem};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::cpu::pin;
use crate::payload::{TOOL, answer};

const BUFFER: usize = 64 * 1024;

/// Knows no messages: answers each `request` bytes with `answer` bytes.
pub(crate) fn bytes(cpu: usize, request: usize, answer: usize) -> Result<()> {
    pin(cpu)?;
    let (mut stdin, mut stdout) = (io::stdin().lock(), raw_stdout()?);
    let answer = vec![b'x'; answer];
    let (mut buffer, mut answers) = (vec![0; BUFFER], Vec::new());
    let mut waiting = 0;
    loop {
        let read = stdin.read(&mut buffer)?;
        if read == 0 {
            return Ok(());
        }
        waiting += read;
        let whole = waiting / request;
        waiting %= request;
        match whole {
            0 => {}
            1 => stdout.write_all(&answer)?,
            _ => {
                answers.clear();
                (0..whole).for_each(|_| answers.extend_from_slice(&answer));
                stdout.write_all(&answers)?;
            }
        }
    }
}

/// A Lemon plugin with one tool, which repeats a text. It reads a call's envelope and no more, as the host is measured
/// and not it, and writes all answers to what it read at once.
pub(crate) fn calls(cpu: usize) -> Result<()> {
    pin(cpu)?;
    let (mut stdin, mut stdout) = (io::stdin().lock(), raw_stdout()?);
    let (mut buffer, mut rest, mut answers) = (vec![0; BUFFER], Vec::new(), Vec::new());
    loop {
        let read = stdin.read(&mut buffer)?;
        if read == 0 {
            return Ok(());
        }
        // What was looked through before has no line end.
        let mut from = rest.len();
        rest.extend_from_slice(&buffer[..read]);
        let mut start = 0;
        while let Some(end) = memchr(b'\n', &rest[from..]) {
            answers.extend_from_slice(&reply(&rest[start..from + end])?);
            start = from + end + 1;
            from = start;
        }
        rest.drain(..start);
        stdout.write_all(&answers)?;
        answers.clear();
    }
}

/// Standard output without the buffer that would split it into lines.
fn raw_stdout() -> Result<std::fs::File> {
    let fd = nix::unistd::dup(io::stdout()).context("failed to take stdout")?;
    Ok(fd.into())
}

fn reply(line: &[u8]) -> Result<Vec<u8>> {
    if let Some((id, text)) = call(line) {
        return Ok(answer(id.to_string().as_bytes(), text));
    }
    let message: Value = serde_json::from_slice(line)?;
    let Some(id) = message.get("id") else { return Ok(Vec::new()) };
    let result = match message["method"].as_str() {
        Some("initialize") => initialize(),
        Some("tools/list") => json!({ "tools": [tool()] }),
        _ => json!({}),
    };
    let mut line = serde_json::to_vec(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))?;
    line.push(b'\n');
    Ok(line)
}

/// The id and the text of a tool call: the envelope is parsed, as every plugin has to, and the text found in it.
fn call(line: &[u8]) -> Option<(u64, &[u8])> {
    #[derive(Deserialize)]
    struct Request<'a> {
        id: u64,
        method: &'a str,
        #[serde(borrow)]
        params: &'a RawValue,
    }
    let Request { id, method, params } = serde_json::from_slice(line).ok()?;
    let (key, params) = (br#""text":""#, params.get().as_bytes());
    let text = (method == "tools/call").then(|| memmem::find(params, key))?? + key.len();
    let text = &params[text..];
    Some((id, &text[..memchr(b'"', text)?]))
}

fn initialize() -> Value {
    let lemon = json!({ "version": "1.0", "multiSession": true });
    json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {
            "tools": {},
            "experimental": { "dev.lemon/plugin": lemon },
            "extensions": { "dev.lemon/plugin": {} },
        },
        "serverInfo": { "name": "lemon-bench", "version": "1.0.0" },
    })
}

/// A schema like those of tools that are used a lot.
fn tool() -> Value {
    let properties = json!({
        "text": { "type": "string", "description": "What to repeat." },
        "count": { "type": "integer", "minimum": 1, "maximum": 100, "default": 1, "description": "How often." },
        "mode": { "type": "string", "enum": ["plain", "quoted", "reversed"], "description": "In which form." },
        "tags": { "type": "array", "items": { "type": "string", "maxLength": 40 }, "maxItems": 16 },
        "options": {
            "type": "object",
            "properties": { "trim": { "type": "boolean" }, "width": { "type": ["integer", "null"] } },
            "additionalProperties": false,
        },
    });
    json!({
        "name": TOOL,
        "description": "Repeats a text.",
        "inputSchema": {
            "type": "object",
            "properties": properties,
            "required": ["text"],
            "additionalProperties": false,
        },
    })
}
