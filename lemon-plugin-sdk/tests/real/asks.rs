//! What a plugin asks of its host, and what it makes of the host's words.

use serde_json::{Value, json};

use crate::process::{Process, initialize, text};

/// A host that offers these requests, with one session open.
fn host(methods: &[&str]) -> Process {
    let mut process = Process::start();
    let mut params = initialize(Some(std::process::id()));
    params["capabilities"]["experimental"]["dev.lemon/plugin"]["methods"] = json!(methods);
    process.ask("initialize", params);
    let open = json!({"handle": 1, "id": "s", "cwd": "/", "scope": "main", "state": {"n": 0}, "version": 0});
    process.notify("lemon/session", open);
    process
}

fn call(process: &mut Process, id: u32, tool: &str) {
    let data = json!({"dev.lemon/session": {"handle": 1, "version": 0}, "dev.lemon/call": format!("c-{id}")});
    process.send(id, "tools/call", json!({"name": tool, "arguments": {}, "_meta": data}));
}

fn state(process: &mut Process) -> Value {
    call(process, 5, "state");
    serde_json::from_str(text(&process.next())).unwrap()
}

pub(crate) fn after_a_gap_the_state_is_read_anew() {
    let mut process = host(&["host/session/get"]);
    let delta = |version: u64| json!({"handle": 1, "version": version, "changes": {"n": version}});
    process.notify("lemon/session", delta(1));
    assert_eq!(state(&mut process), json!({"n": 1}));
    process.notify("lemon/session", delta(3));
    let asked = process.next();
    assert_eq!(
        (&asked["method"], &asked["params"]["_meta"]),
        (&json!("host/session/get"), &json!({"dev.lemon/session": {"handle": 1}}),)
    );
    assert_eq!(state(&mut process), json!(null), "what has a gap is not used");
    // A change that crosses the answer is missing in it, so that it is asked for once more.
    process.notify("lemon/session", delta(4));
    let info =
        |version: u64| json!({"id": "s", "cwd": "/", "scope": "main", "state": {"n": version}, "version": version});
    process.line(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": info(3)}).to_string());
    let again = process.next();
    assert_eq!(again["method"], "host/session/get");
    process.line(&json!({"jsonrpc": "2.0", "id": again["id"], "result": info(4)}).to_string());
    // The answer is taken in by a task of its own, behind which a second call waits its turn.
    call(&mut process, 6, "ask");
    process.next();
    assert_eq!(state(&mut process), json!({"n": 4}));
}

pub(crate) fn a_state_that_the_host_did_not_give_is_asked_for_again() {
    let mut process = host(&["host/session/get"]);
    let refuse = |process: &mut Process| {
        let asked = process.next();
        assert_eq!(asked["method"], "host/session/get");
        let error = json!({"code": 4009, "message": "not now", "data": {"kind": "busy"}});
        process.line(&json!({"jsonrpc": "2.0", "id": asked["id"], "error": error}).to_string());
        // The answer is taken in by a task of its own, behind which a call waits its turn.
        process.call(6, "echo", json!({"text": ""}));
        process.next();
    };
    process.notify("lemon/session", json!({"handle": 1, "version": 2, "changes": {"n": 2}}));
    refuse(&mut process);
    process.notify("lemon/session", json!({"handle": 1, "version": 3, "changes": {"n": 3}}));
    refuse(&mut process);
    let data = json!({"dev.lemon/session": {"handle": 1, "version": 3}, "dev.lemon/call": "c"});
    process.send(7, "tools/call", json!({"name": "echo", "arguments": {"text": "x"}, "_meta": data}));
    let (mut asked, mut answered) = (process.next(), process.next());
    if asked["id"] == 7 {
        std::mem::swap(&mut asked, &mut answered);
    }
    assert_eq!(text(&answered), "x");
    let info = json!({"id": "s", "cwd": "/", "scope": "main", "state": {"n": 3}, "version": 3});
    process.line(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": info}).to_string());
    process.call(6, "echo", json!({"text": ""}));
    process.next();
    assert_eq!(state(&mut process), json!({"n": 3}));
}

pub(crate) fn what_the_host_refuses_has_a_kind() {
    let mut process = host(&["host/tools/list"]);
    call(&mut process, 9, "ask");
    let asked = process.next();
    assert_eq!(asked["params"], json!({"_meta": {"dev.lemon/parent": 9}}));
    let error = json!({"code": 4014, "message": "the user said no", "data": {"kind": "denied"}});
    process.line(&json!({"jsonrpc": "2.0", "id": asked["id"], "error": error}).to_string());
    assert_eq!(text(&process.next()), "Some(Denied): the host refused: the user said no");
}

pub(crate) fn a_request_to_the_host_ends_with_the_call_that_it_was_for() {
    let mut process = host(&["host/tools/list"]);
    call(&mut process, 9, "ask");
    let asked = process.next();
    process.notify("notifications/cancelled", json!({"requestId": 9}));
    let cancelled = process.next();
    assert_eq!(
        (&cancelled["method"], &cancelled["params"]["requestId"]),
        (&json!("notifications/cancelled"), &asked["id"])
    );
    assert_eq!(process.next()["method"], "lemon/settled");
}

pub(crate) fn nothing_is_asked_that_the_host_does_not_offer() {
    let mut process = host(&["host/session/get"]);
    call(&mut process, 9, "ask");
    assert_eq!(text(&process.next()), "None: the host does not offer host/tools/list");
}
