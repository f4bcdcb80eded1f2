//! Drives the plugin as a host does: a real process, one message a line.

#![expect(clippy::unwrap_used, reason = "a test that can not go on has failed")]

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// Sends requests, closes stdin, and returns the answers once the plugin ended.
#[expect(clippy::disallowed_methods, reason = "the plugin is the child here, and nothing of the host takes part")]
fn talk(requests: &[(&str, Value)]) -> Vec<Value> {
    let mut plugin = Command::new(env!("CARGO_BIN_EXE_hello-rust"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = plugin.stdin.take().unwrap();
    for (id, (method, params)) in requests.iter().enumerate() {
        writeln!(input, "{}", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).unwrap();
    }
    drop(input);
    let output = plugin.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let mut answers: Vec<Value> =
        String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    answers.sort_by_key(|answer| answer["id"].as_u64());
    answers
}

#[test]
fn it_lists_its_tool_with_the_schema_of_its_arguments() {
    let answers = talk(&[("tools/list", json!({}))]);
    let tool = &answers[0]["result"]["tools"][0];
    assert_eq!((&tool["name"], &tool["description"]), (&json!("greet"), &json!("Greets someone.")));
    let name = json!({"type": "string", "description": "Whom to greet."});
    assert_eq!(tool["inputSchema"], json!({"type": "object", "properties": {"name": name}, "required": ["name"]}));
}

#[test]
fn it_greets_and_tells_what_does_not_fit() {
    let call = |arguments: Value| ("tools/call", json!({"name": "greet", "arguments": arguments}));
    let answers = talk(&[call(json!({"name": "漢 🍋"})), call(json!({}))]);
    assert_eq!(answers[0]["result"]["content"][0]["text"], "Hello, 漢 🍋!");
    assert_eq!(answers[1]["result"]["isError"], true);
    assert_eq!(answers[1]["result"]["content"][0]["text"], "the arguments do not fit: missing field `name`");
}
