//! The standard streams: nothing but messages, whatever the plugin does.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::unix::net::UnixStream;

use serde_json::json;

use crate::process::{Process, command, ended, text};

pub(crate) fn what_is_printed_goes_to_stderr_and_not_between_messages() {
    let mut process = Process::start();
    process.call(1, "print", json!({}));
    assert_eq!(text(&process.next()), "0 lines, true", "its stdin is empty");
    process.call(2, "echo", json!({"text": "after"}));
    assert_eq!(text(&process.next()), "after");
    let ended = process.end();
    assert!(ended.messages.is_empty());
    for printed in ["printed by the plugin\n", "printed by a child\n", "a line without its end"] {
        assert!(ended.stderr.contains(printed), "{}", ended.stderr);
    }
}

pub(crate) fn a_panic_is_told_on_stderr_and_the_process_lives() {
    let mut process = Process::start();
    process.call(1, "panic", json!({"text": "no way"}));
    let answer = process.next();
    assert_eq!(answer["result"]["isError"], true);
    assert_eq!(text(&answer), "the tool panicked: no way");
    process.call(2, "echo", json!({"text": "alive"}));
    assert_eq!(text(&process.next()), "alive");
    assert!(process.end().stderr.contains("no way"));
}

fn all_at_once(count: usize) {
    let mut process = Process::start();
    let calls: String = (0..count)
        .map(|id| {
            let params = json!({"name": "echo", "arguments": {"text": id.to_string()}});
            json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string() + "\n"
        })
        .collect();
    process.write(calls.as_bytes());
    let mut answered = BTreeSet::new();
    for _ in 0..count {
        let answer = process.next();
        assert_eq!(text(&answer), answer["id"].to_string());
        assert!(answered.insert(answer["id"].as_u64()));
    }
}

pub(crate) fn two_hundred_calls_at_once_are_all_answered() {
    all_at_once(200);
}

pub(crate) fn twenty_thousand_calls_in_one_go_are_not_too_many() {
    all_at_once(20_000);
}

pub(crate) fn megabytes_pass_in_both_directions() {
    let mut process = Process::start();
    let large = "é🍋".repeat(1 << 20);
    process.call(1, "echo", json!({"text": large}));
    assert!(text(&process.next()) == large);
    process.call(2, "echo", json!({"text": "x".repeat(12 << 20)}));
    let answer = process.next();
    assert_eq!(answer["result"]["isError"], true, "published clients break above ten");
    assert!(text(&answer).contains("more than the 10485760"));
}

pub(crate) fn a_call_that_is_cancelled_while_its_answer_waits_for_room_is_not_answered() {
    let mut process = Process::unread(command());
    process.call(1, "echo", json!({"text": "x".repeat(9 << 20)}));
    process.call(2, "panic", json!({"text": "at its end"}));
    process.stderr_says("at its end");
    process.notify("notifications/cancelled", json!({"requestId": 2}));
    process.send(3, "ping", json!({}));
    process.read();
    assert_eq!(process.next()["id"], 1);
    assert_eq!(process.next()["id"], 3);
    assert!(process.end().messages.is_empty());
}

pub(crate) fn calls_are_refused_while_megabytes_of_answers_are_not_read() {
    let mut process = Process::unread(command());
    let text = "x".repeat(1 << 20);
    for id in 0..100 {
        process.call(id, "echo", json!({"text": text}));
    }
    process.read();
    let answers: Vec<_> = (0..100).map(|_| process.next()).collect();
    let ids: BTreeSet<_> = answers.iter().map(|answer| answer["id"].as_u64()).collect();
    assert_eq!(ids.len(), 100, "each is answered once");
    let busy = answers.iter().filter(|answer| answer["error"]["data"]["kind"] == "busy").count();
    assert!((1..50).contains(&busy), "{busy}");
}

pub(crate) fn what_is_refused_is_answered_however_long_its_words_are() {
    let mut process = Process::start();
    let long = "é".repeat(6 << 20);
    let refused = |process: &mut Process, params: serde_json::Value, method: &str| {
        let answer = process.ask(method, params);
        let message = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("no error"));
        assert!(message.len() < 1_000, "{} bytes", message.len());
        answer["error"]["code"].clone()
    };
    assert_eq!(refused(&mut process, json!({"name": long}), "tools/call"), -32602);
    assert_eq!(refused(&mut process, json!({"name": 1, "arguments": long}), "tools/call"), -32602);
    assert_eq!(refused(&mut process, json!({}), &long), -32601);
    assert_eq!(refused(&mut process, json!({"level": long}), "logging/setLevel"), -32602);
    // With an id that leaves no room for an error in the same line, the error comes without it.
    let id = "i".repeat((10 << 20) - 60);
    process.send(id.as_str(), "ping", json!({}));
    assert!(process.next()["id"] == id.as_str());
    process.send(id.as_str(), "nothing", json!({}));
    let answer = process.next();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(null), &json!(-32601)));
}

pub(crate) fn a_request_over_sixteen_megabytes_is_refused_and_the_next_one_answered() {
    let mut process = Process::start();
    process.call(1, "echo", json!({"text": "x".repeat(16 << 20)}));
    let refused = process.next();
    assert_eq!((refused["id"].as_u64(), &refused["error"]["data"]["kind"]), (Some(1), &json!("too_large")));
    process.call("seven", "echo", json!({"text": "x".repeat(16 << 20)}));
    let refused = process.next();
    assert_eq!((&refused["id"], &refused["error"]["data"]["kind"]), (&json!("seven"), &json!("too_large")));
    process.notify("notifications/unknown", json!({"text": "x".repeat(16 << 20)}));
    assert_eq!(process.ask("ping", json!({}))["result"], json!({}));
}

pub(crate) fn lines_that_are_no_messages_are_dropped() {
    let mut process = Process::start();
    process.write(b"\n\r\n   \nnot json\n{\"jsonrpc\":\"2.0\"}\n\xff\xfe\n42\n{\"method\":\"ping\"}\n{\"jsonrpc\n");
    process.line(r#"{"jsonrpc":"2.0","id":99,"result":{}}"#);
    process.notify("notifications/unknown", json!({"a": 1}));
    process.notify("notifications/cancelled", json!({"requestId": 77}));
    process.notify("notifications/cancelled", json!("nonsense"));
    assert_eq!(process.ask("ping", json!({}))["result"], json!({}));
    process.line(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#);
    let batch = process.next();
    assert_eq!((&batch["id"], &batch["error"]["code"]), (&json!(null), &json!(-32600)));
    assert_eq!(process.ask("resources/list", json!({}))["error"]["code"], -32601);
    assert_eq!(process.ask("lemon/shutdown", json!({}))["error"]["code"], -32601, "it is for Lemon hosts");
    process.write("{\"jsonrpc\":\"2.0\",\"id\":\"ü\",\"method\":\"ping\"}\r\n".as_bytes());
    assert_eq!(process.next(), json!({"jsonrpc": "2.0", "id": "ü", "result": {}}));
    assert!(process.end().status.success());
}

pub(crate) fn a_broken_request_is_refused_under_its_id_where_that_can_be_read() {
    let mut process = Process::start();
    for broken in [
        r#"{"id":5,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":5,"method":7}"#,
        r#"{"jsonrpc":"2.0","method":"ping","id":5,"method":"ping"}"#,
    ] {
        process.line(broken);
        let refused = process.next();
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(5), &json!(-32600)), "{broken}");
        process.line(&broken.replace(":5", r#":"five \" é""#));
        let refused = process.next();
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("five \" é"), &json!(-32600)), "{broken}");
    }
    process.line(
        r#"{"jsonrpc":"2.0","id":"nan","method":"tools/call","params":{"name":"echo","arguments":{"text":NaN}}}"#,
    );
    let refused = process.next();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("nan"), &json!(-32700)));
    process.line(r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#);
    let refused = process.next();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(null), &json!(-32600)), "an id that is none");
    process.line(r#"{"jsonrpc":"1.0","method":"ping"}"#);
    process.line(r#"{"jsonrpc":"2.0","id":5,"result":1,"error":{"code":1,"message":"x"}}"#);
    assert_eq!(process.ask("ping", json!({}))["result"], json!({}), "an answer is not refused");
}

pub(crate) fn a_ping_is_answered_while_calls_run() {
    let mut process = Process::start();
    process.call(1, "hang", json!({}));
    assert_eq!(process.ask("ping", json!({}))["result"], json!({}));
    process.call(1, "echo", json!({"text": "again"}));
    assert_eq!(process.next()["error"]["code"], -32600, "an id in flight is not used twice");
}

pub(crate) fn a_ping_is_answered_whatever_it_carries() {
    let mut process = Process::start();
    for params in [
        json!(null),
        json!([]),
        json!({"_meta": null}),
        json!({"_meta": []}),
        json!({"_meta": {"io.modelcontextprotocol/protocolVersion": 5, "progressToken": {}, "example.com/x": [1]}}),
        json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "2030-01-01"}}),
    ] {
        assert_eq!(process.ask("ping", params.clone())["result"], json!({}), "{params}");
    }
    process.send(8, "tools/call", json!({"name": "echo", "arguments": {"text": "x"}, "_meta": null}));
    assert_eq!(text(&process.next()), "x");
}

pub(crate) fn streams_may_be_sockets_or_files() {
    let request = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    let answer = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n";

    // As Node starts its children.
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let mut command_ = command();
    command_.stdin(std::os::fd::OwnedFd::from(theirs.try_clone().unwrap())).stdout(std::os::fd::OwnedFd::from(theirs));
    let mut child = command_.spawn().unwrap();
    drop(command_);
    ours.write_all(request.as_bytes()).unwrap();
    ours.shutdown(std::net::Shutdown::Write).unwrap();
    let mut read = String::new();
    ours.read_to_string(&mut read).unwrap();
    assert_eq!(read, answer);
    assert!(ended(&mut child).success());

    let (mut input, mut output) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
    input.write_all(request.as_bytes()).unwrap();
    input.rewind().unwrap();
    let file = |file: &File| file.try_clone().unwrap();
    let mut child = command().stdin(file(&input)).stdout(file(&output)).spawn().unwrap();
    assert!(ended(&mut child).success());
    output.rewind().unwrap();
    let mut read = String::new();
    output.read_to_string(&mut read).unwrap();
    assert_eq!(read, answer);
}
