//! One program, three dialects: Lemon's, and MCP's with and without a handshake.

use serde_json::{Value, json};

use crate::process::{Process, initialize, text};

/// Params of a modern request.
fn modern(mut params: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    params
}

pub(crate) fn a_client_without_lemon_is_answered_in_the_revision_that_it_asks_for() {
    let asked =
        [("2024-11-05", "2024-11-05"), ("2025-06-18", "2025-06-18"), ("2025-11-25", "2025-11-25"), ("1", "2025-11-25")];
    for (asked, answered) in asked {
        let mut process = Process::start();
        let mut params = initialize(None);
        params["protocolVersion"] = json!(asked);
        let answer = process.ask("initialize", params);
        let result = &answer["result"];
        assert_eq!(result["protocolVersion"], answered);
        assert_eq!(result["capabilities"], json!({"tools": {}, "logging": {}}), "and nothing of Lemon's");
        assert_eq!(result["serverInfo"], json!({"name": "test", "version": "1.0.0"}));
        assert_eq!(result["instructions"], "Use it in tests.");
        let list = process.ask("tools/list", json!({}));
        let members: Vec<_> = list["result"].as_object().unwrap().keys().collect();
        assert_eq!(members, ["tools"]);
        process.call(1, "echo", json!({"text": "x"}));
        assert_eq!(process.next()["result"], json!({"content": [{"type": "text", "text": "x"}]}));
    }
}

pub(crate) fn a_lemon_host_is_answered_in_both_maps() {
    let mut process = Process::start();
    let answer = process.ask("initialize", initialize(Some(std::process::id())));
    let capabilities = &answer["result"]["capabilities"];
    let lemon = &capabilities["experimental"]["dev.lemon/plugin"];
    assert_eq!((&lemon["version"], &lemon["multiSession"]), (&json!("1.0"), &json!(true)));
    assert_eq!(lemon["configSchema"]["properties"]["retries"]["default"], 0);
    assert_eq!(capabilities["extensions"]["dev.lemon/plugin"], json!({}));
    assert_eq!(process.ask("lemon/shutdown", json!({"reason": "exit"}))["result"], json!({}));
    assert!(process.end().status.success());
}

pub(crate) fn without_a_common_version_both_lists_are_named() {
    let mut process = Process::start();
    let mut params = initialize(Some(std::process::id()));
    params["capabilities"]["experimental"]["dev.lemon/plugin"]["versions"] = json!(["2.0", "3.1"]);
    let error = &process.ask("initialize", params)["error"];
    let lists = json!({"kind": "unsupported_version", "supported": ["1.0"], "requested": ["2.0", "3.1"]});
    assert_eq!((&error["code"], &error["data"]), (&json!(4012), &lists));
}

pub(crate) fn a_modern_client_discovers_lists_and_calls() {
    let mut process = Process::start();
    let server = json!({"name": "test", "version": "1.0.0"});
    let discovered = process.ask("server/discover", modern(json!({})));
    assert_eq!(discovered["result"]["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(discovered["result"]["capabilities"], json!({"tools": {}, "logging": {}}));
    let listed = process.ask("tools/list", modern(json!({})));
    for answer in [&discovered, &listed] {
        let result = &answer["result"];
        assert_eq!((&result["resultType"], &result["cacheScope"]), (&json!("complete"), &json!("public")));
        assert!(result["ttlMs"].is_u64());
        assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"], server);
    }
    let called = process.ask("tools/call", modern(json!({"name": "echo", "arguments": {"text": "x"}})));
    assert_eq!((&called["result"]["resultType"], text(&called)), (&json!("complete"), "x"));
    assert_eq!(called["result"]["_meta"]["io.modelcontextprotocol/serverInfo"], server);
    assert_eq!(process.ask("ping", modern(json!({})))["error"]["code"], -32601, "that era has no ping");
}

pub(crate) fn a_modern_request_has_its_keys_in_each_request() {
    let mut process = Process::start();
    process.ask("server/discover", modern(json!({})));
    for params in [
        json!({}),
        json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}),
        json!({"_meta": {"io.modelcontextprotocol/clientCapabilities": {}}}),
    ] {
        for method in ["tools/list", "server/discover", "subscriptions/listen"] {
            assert_eq!(process.ask(method, params.clone())["error"]["code"], -32602, "{method} {params}");
        }
    }
}

pub(crate) fn a_request_that_is_refused_makes_no_client_modern() {
    let mut process = Process::start();
    let unfinished = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}});
    assert_eq!(process.ask("tools/list", unfinished)["error"]["code"], -32602);
    assert!(process.ask("tools/list", json!({}))["result"]["tools"].is_array());
}

pub(crate) fn a_client_need_not_say_who_it_is() {
    let mut process = Process::start();
    let answer = process.ask("initialize", json!({"protocolVersion": "2025-06-18", "capabilities": {}}));
    assert_eq!(answer["result"]["protocolVersion"], "2025-06-18");
}

pub(crate) fn another_modern_version_is_refused_with_the_one_that_is_spoken() {
    let mut process = Process::start();
    let mut params = modern(json!({}));
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2030-01-01");
    let error = &process.ask("tools/list", params)["error"];
    assert_eq!(error["code"], -32022);
    assert_eq!(error["data"], json!({"supported": ["2026-07-28"], "requested": "2030-01-01"}));
}

pub(crate) fn both_eras_may_be_mixed_in_one_process() {
    let mut process = Process::start();
    process.ask("server/discover", modern(json!({})));
    let answer = process.ask("initialize", initialize(None));
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "some clients shake hands after they discovered");
    assert!(process.ask("tools/list", json!({}))["result"].get("resultType").is_none());
    assert_eq!(process.ask("tools/list", modern(json!({})))["result"]["resultType"], "complete");
    assert_eq!(process.ask("ping", json!({}))["result"], json!({}));
}

pub(crate) fn logs_of_a_modern_call_come_only_where_it_asks_for_them() {
    let mut process = Process::start();
    let params = modern(json!({"name": "log", "arguments": {"text": "x"}}));
    process.ask("tools/call", params.clone());
    let mut asks = params;
    asks["_meta"]["io.modelcontextprotocol/logLevel"] = json!("warning");
    process.send("ask", "tools/call", asks);
    let log = process.next();
    assert_eq!((&log["method"], &log["params"]["level"]), (&json!("notifications/message"), &json!("error")));
    assert_eq!(process.next()["id"], "ask");
}

pub(crate) fn a_modern_client_listens_for_changes_until_it_cancels() {
    let mut process = Process::start();
    process.send("s", "subscriptions/listen", modern(json!({"notifications": {"toolsListChanged": true}})));
    let acknowledged = process.next();
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(acknowledged["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "s");
    process.notify("notifications/cancelled", json!({"requestId": "s"}));
    process.ask("tools/list", modern(json!({})));
    assert!(process.end().messages.is_empty());
}

pub(crate) fn a_stream_of_changes_ends_with_its_result_when_the_plugin_does() {
    let mut process = Process::start();
    process.send("s", "subscriptions/listen", modern(json!({"notifications": {}})));
    process.next();
    let ended = process.end();
    assert_eq!(
        (&ended.messages[0]["id"], &ended.messages[0]["result"]["resultType"]),
        (&json!("s"), &json!("complete"))
    );
}

pub(crate) fn a_cancelled_call_is_not_answered_in_any_era() {
    let cancel = |process: &mut Process, params: Value| {
        process.send(7, "tools/call", params);
        process.notify("notifications/cancelled", json!({"requestId": 7, "reason": "test"}));
    };
    let call = json!({"name": "soon", "arguments": {}});
    for params in [call.clone(), modern(call.clone())] {
        let mut process = Process::start();
        cancel(&mut process, params);
        let ended = process.end();
        assert!(ended.messages.is_empty(), "{:?}", ended.messages);
    }
    let mut process = Process::of_lemon(std::process::id());
    cancel(&mut process, call);
    let settled = json!({"jsonrpc": "2.0", "method": "lemon/settled", "params": {"requestId": 7}});
    assert_eq!(process.next(), settled);
    process.notify("notifications/cancelled", json!({"requestId": 7}));
    assert!(process.end().messages.is_empty(), "it settles once");
}
