//! Drives the plugin through its pipes, as a Lemon host does: progress, partial results, cancellation.

#![expect(clippy::unwrap_used, reason = "a test that can not go on has failed")]

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

struct Plugin {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Plugin {
    /// Starts it and shakes hands.
    #[expect(clippy::disallowed_methods, reason = "the plugin is the child here, and nothing of the host takes part")]
    fn start() -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_slow-rust"));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut plugin = Self { child, input, output: BufReader::new(output).lines() };
        let process = json!({"pid": std::process::id()});
        let offer = json!({"versions": ["1.0"], "methods": [], "maxMessageBytes": 1_000_000, "process": process});
        plugin.send(json!({"id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {"experimental": {"dev.lemon/plugin": offer}},
            "clientInfo": {"name": "test", "version": "1"},
        }}));
        assert_eq!(plugin.next()["result"]["serverInfo"]["name"], "slow");
        plugin
    }

    fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = json!("2.0");
        writeln!(self.input, "{message}").unwrap();
    }

    fn count(&mut self, id: u32, to: u32) {
        let arguments = json!({"to": to, "pause_ms": 1});
        let params = json!({"name": "count", "arguments": arguments, "_meta": {"progressToken": id}});
        self.send(json!({"id": id, "method": "tools/call", "params": params}));
    }

    fn next(&mut self) -> Value {
        serde_json::from_str(&self.output.next().unwrap().unwrap()).unwrap()
    }

    fn end(mut self) {
        drop(self.input);
        assert!(self.child.wait().unwrap().success());
    }
}

#[test]
fn it_shows_what_it_has_while_it_counts() {
    let mut plugin = Plugin::start();
    plugin.count(2, 2);
    let (mut messages, mut partial) = (Vec::new(), Vec::new());
    let answer = loop {
        let message = plugin.next();
        if message["id"] == 2 {
            break message;
        }
        messages.extend(message["params"]["message"].as_str().map(str::to_owned));
        let shown = &message["params"]["_meta"]["dev.lemon/partial"]["content"][0]["text"];
        partial.extend(shown.as_str().map(str::to_owned));
    };
    messages.dedup();
    assert_eq!(messages, ["counted to 1", "counted to 2"]);
    assert_eq!(partial, ["1", "1 2"]);
    assert_eq!(answer["result"]["content"][0]["text"], "1 2");
    plugin.end();
}

#[test]
fn it_stops_when_nobody_wants_the_rest() {
    let mut plugin = Plugin::start();
    plugin.count(2, 1_000_000);
    assert_eq!(plugin.next()["method"], "notifications/progress", "it has begun");
    plugin.send(json!({"method": "notifications/cancelled", "params": {"requestId": 2}}));
    let after = loop {
        let message = plugin.next();
        if message["method"] != "notifications/progress" {
            break message;
        }
    };
    assert_eq!((&after["method"], &after["params"]["requestId"]), (&json!("lemon/settled"), &json!(2)));
    plugin.count(3, 0);
    assert_eq!(plugin.next()["id"], 3, "and nothing more is said of the call before");
    plugin.end();
}
