//! Plugins' lives: starts, sessions, failures, ends.

use std::time::Duration;

use crate::zoo::{fault, text, zoo};
use lemon_host::{
    Approval, Approver, CallError, CallRequest, Class, EnvValue, Host, PluginSpec, ProcessEnd, SessionOptions,
    StateKind,
};
use serde_json::{Value, json};

#[tokio::test]
async fn a_plugin_is_started_listed_called_and_ended() {
    let host = Host::builder().plugin(zoo("good", "none")).start();
    host.settled().await;
    assert!(host.tools().iter().any(|tool| tool.name == "echo" && tool.source.to_string() == "plugin good"));
    let session = host.session(SessionOptions::default());
    assert_eq!(text(session.call("echo", r#"{"text":"hé\n🍋"}"#).await), "hé\n🍋");
    let pid = host.status().plugins[0].process.as_ref().unwrap().pid;
    host.shutdown().await;
    assert!(!crate::zoo::is_alive(pid));
    assert_eq!(host.status().plugins[0].state, StateKind::Dormant);
    let error = session.call("echo", "{}").await.unwrap_err();
    assert!(matches!(error, CallError::SessionOver { .. }), "{error}");
}

#[tokio::test]
async fn the_plugin_knows_the_session_and_follows_its_state() {
    let host = Host::builder().plugin(zoo("good", "none")).start();
    host.settled().await;
    let session = host.session(SessionOptions::default().id("s-1").cwd("/").scope("review"));
    let seen = |text: String| serde_json::from_str::<Value>(&text).unwrap();
    let first = seen(text(session.call("session", "{}").await));
    assert!(first.to_string().contains("s-1") && first.to_string().contains("review"), "{first}");
    session.set_state(json!({"model": "m-1"}).as_object().unwrap().clone());
    session.set_state(json!({"model": "m-2", "thinking": "high"}).as_object().unwrap().clone());
    let second = seen(text(session.call("session", "{}").await));
    assert!(second.to_string().contains("m-2") && second.to_string().contains("high"), "{second}");
    host.shutdown().await;
}

#[tokio::test]
async fn a_plugin_for_one_session_gets_a_process_for_each() {
    let host = Host::builder().plugin(zoo("single", "single-session")).start();
    host.settled().await;
    let (one, two) = (host.session(SessionOptions::default()), host.session(SessionOptions::default()));
    let pid = |text: String| serde_json::from_str::<Value>(&text).unwrap()["pid"].as_u64().unwrap();
    let first = pid(text(one.call("pids", "{}").await));
    let second = pid(text(two.call("pids", "{}").await));
    assert_ne!(first, second);
    assert_eq!(first, pid(text(one.call("pids", "{}").await)));
    two.close().await;
    assert!(!crate::zoo::is_alive(u32::try_from(second).unwrap()));
    host.shutdown().await;
    assert!(!crate::zoo::is_alive(u32::try_from(first).unwrap()));
}

#[tokio::test]
async fn a_process_acts_in_its_own_session_even_in_the_background() {
    let host = Host::builder().plugin(zoo("single", "single-session")).start();
    host.settled().await;
    let (one, two) = (
        host.session(SessionOptions::default().id("first")),
        host.session(SessionOptions::default().id("second").cwd("/tmp")),
    );
    for session in [&one, &two, &one] {
        // Both processes are of the first generation, and know their session under the same handle.
        let told = text(session.call("whose", "{}").await);
        assert!(told.contains(&format!("{:?}", session.id())), "{} is told {told}", session.id());
    }
    assert_eq!(host.status().plugins[0].session_processes.len(), 1);
    two.close().await;
    let error = two.call("echo", "{}").await.unwrap_err();
    assert!(matches!(error, CallError::SessionOver { .. }), "{error}");
    host.shutdown().await;
}

#[tokio::test]
async fn an_exclusive_plugin_serves_one_session_after_the_other() {
    let host = Host::builder().plugin(zoo("only", "exclusive-single")).start();
    host.settled().await;
    let (one, two) = (host.session(SessionOptions::default()), host.session(SessionOptions::default()));
    let first = text(one.call("pids", "{}").await);
    let error = two.call("pids", "{}").await.unwrap_err().to_string();
    assert!(error.contains("exclusive"), "{error}");
    one.close().await;
    assert_ne!(text(two.call("pids", "{}").await), first);
    host.shutdown().await;
}

#[tokio::test]
async fn a_shutdown_is_not_undone_by_a_command_that_comes_during_it() {
    let host = Host::builder().plugin(zoo("slow", "slow-exit")).start();
    host.settled().await;
    let name = "slow".parse().unwrap();
    let ending = tokio::spawn({
        let host = host.clone();
        async move { host.shutdown().await }
    });
    crate::zoo::until(|| host.status().plugins[0].state == StateKind::Stopping).await;
    let refused = host.restart(&name).await.unwrap_err();
    assert_eq!(refused.to_string(), "the host is shutting down");
    ending.await.unwrap();
    assert_eq!(host.status().plugins[0].state, StateKind::Dormant);
}

#[tokio::test]
async fn all_processes_of_a_plugin_end_side_by_side() {
    let host = Host::builder().plugin(zoo("stubborn", "stubborn-single")).start();
    host.settled().await;
    for _ in 0..3 {
        let session = host.session(SessionOptions::default());
        session.call("echo", r#"{"text":"x"}"#).await.unwrap();
    }
    assert_eq!(host.status().plugins[0].session_processes.len(), 2);
    // One after the other they would take a dozen seconds.
    crate::zoo::within(Duration::from_secs(10), host.shutdown()).await;
}

#[tokio::test]
async fn a_tool_of_a_plugin_that_failed_is_told_with_the_reason_and_not_as_unknown() {
    let host = Host::builder().plugin(zoo("fragile", "die-in-call")).start();
    host.settled().await;
    let session = host.session(SessionOptions::default());
    session.call("echo", r#"{"text":"x"}"#).await.unwrap_err();
    crate::zoo::until(|| host.status().plugins[0].state == StateKind::Backoff).await;
    let error = session.call("echo", r#"{"text":"x"}"#).await.unwrap_err();
    let CallError::NotReady { reason: Some(reason), .. } = &error else { panic!("{error}") };
    assert!(reason.contains("exit status 7"), "{reason}");
    host.shutdown().await;
}

#[tokio::test]
async fn a_call_made_during_a_reload_goes_to_the_process_that_is_there_then() {
    let host = Host::builder().plugin(zoo("good", "none")).start();
    host.settled().await;
    let name = "good".parse().unwrap();
    let session = host.session(SessionOptions::default());
    let reloading = tokio::spawn({
        let host = host.clone();
        async move {
            for _ in 0..3 {
                // Refused while the replaced process is still there.
                while host.reload(&name).await.is_err() {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        }
    });
    let mut calls = 0;
    while !reloading.is_finished() {
        assert_eq!(text(session.call("echo", r#"{"text":"x"}"#).await), "x");
        calls += 1;
    }
    reloading.await.unwrap();
    assert!(calls > 3);
    host.shutdown().await;
}

struct AllowAll;

impl Approver for AllowAll {
    fn approve<'a>(&'a self, _: CallRequest<'a>) -> std::pin::Pin<Box<dyn Future<Output = Approval> + Send + 'a>> {
        Box::pin(std::future::ready(Approval::Allow))
    }
}

#[tokio::test]
async fn a_plugin_calls_another_ones_tool_only_if_that_is_approved() {
    let other = PluginSpec::new(
        "hello-python".parse().unwrap(),
        Class::Extension,
        ["python3", &crate::zoo::root("examples/hello-python/hello.py")],
    );
    let relay = r#"{"tool":"hello","arguments":{"name":"Ada"}}"#;

    let host = Host::builder().plugin(zoo("good", "none")).plugin(other.clone()).start();
    host.settled().await;
    let session = host.session(SessionOptions::default());
    let refused = text(session.call("relay", relay).await);
    assert!(refused.contains("denied"), "{refused}");
    host.shutdown().await;

    let host = Host::builder().plugin(zoo("good", "none")).plugin(other).approver(AllowAll).start();
    host.settled().await;
    let session = host.session(SessionOptions::default());
    let greeting = text(session.call("relay", relay).await);
    assert!(greeting.contains("Hello, Ada!"), "{greeting}");
    let cycle = r#"{"tool":"relay","arguments":{"tool":"echo","arguments":{"text":"x"}}}"#;
    let refused = text(session.call("relay", cycle).await);
    assert!(refused.contains("cycle") && refused.contains("relay → relay"), "{refused}");
    host.shutdown().await;
}

#[tokio::test]
async fn a_request_that_the_host_does_not_know_is_refused_by_the_standard_code() {
    for (fault, tool) in [("unknown-reverse", "nonsense"), ("roots", "roots")] {
        let host = Host::builder().plugin(zoo("asks", fault)).start();
        host.settled().await;
        let session = host.session(SessionOptions::default());
        let told = text(session.call(tool, "{}").await);
        assert!(told.contains("-32601"), "{fault}: {told}");
        host.shutdown().await;
    }
}

#[tokio::test]
async fn a_late_answer_is_dropped_and_counted() {
    let mut spec = zoo("late", "late");
    spec.command.push("600".to_owned());
    let host = Host::builder().plugin(spec).start();
    host.settled().await;
    let session = host.session(SessionOptions::default());
    let call = session.call("echo", r#"{"text":"x"}"#).deadline(Duration::from_millis(200));
    assert!(matches!(call.await, Err(CallError::Timeout { .. })));
    let noise = || host.status().plugins[0].process.as_ref().unwrap().noise.clone();
    crate::zoo::until(|| noise().counts.contains_key("late_answer")).await;
    host.shutdown().await;
}

#[tokio::test]
async fn a_host_that_is_dropped_ends_its_plugins() {
    let host = Host::builder().plugin(zoo("good", "none")).start();
    host.settled().await;
    let pid = host.status().plugins[0].process.as_ref().unwrap().pid;
    drop(host);
    crate::zoo::until(|| !crate::zoo::is_alive(pid)).await;
}

#[tokio::test]
async fn a_request_that_names_no_open_parent_is_stale() {
    let host = Host::builder().plugin(zoo("stale", "stale-parent")).approver(AllowAll).start();
    host.settled().await;
    let session = host.session(SessionOptions::default());
    let refused = text(session.call("relay", r#"{"tool":"echo","arguments":{"text":"x"}}"#).await);
    assert!(refused.contains("stale"), "{refused}");
    host.shutdown().await;
}

#[tokio::test]
async fn a_cancelled_call_settles_at_once_and_the_plugin_goes_on() {
    let host = Host::builder().plugin(zoo("good", "none")).start();
    host.settled().await;
    let session = host.session(SessionOptions::default());
    let cancel = tokio_util::sync::CancellationToken::new();
    let mut call = session.call("sleep", r#"{"seconds":60}"#).cancelled_by(cancel.clone());
    let _progress = call.progress();
    let call = tokio::spawn(call.into_future());
    crate::zoo::until(|| host.status().plugins[0].process.as_ref().unwrap().calls == 1).await;
    cancel.cancel();
    assert!(matches!(call.await.unwrap(), Err(CallError::Cancelled { .. })));
    // lemon/settled frees the slot.
    crate::zoo::until(|| host.status().plugins[0].process.as_ref().unwrap().lingering == 0).await;
    assert_eq!(text(session.call("echo", r#"{"text":"on"}"#).await), "on");
    assert_eq!(host.status().plugins[0].process.as_ref().unwrap().abandoned, 0);
    host.shutdown().await;
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_in_the_plugin() {
    let host = Host::builder().plugin(zoo("good", "none")).start();
    host.settled().await;
    let session = host.session(SessionOptions::default());
    let call = session.call("sleep", r#"{"seconds":60}"#).into_future();
    let call = tokio::spawn(call);
    let process = || host.status().plugins[0].process.clone().unwrap();
    crate::zoo::until(|| process().calls == 1).await;
    call.abort();
    crate::zoo::until(|| process().calls == 0 && process().lingering == 0).await;
    assert_eq!(process().abandoned, 0);
    host.shutdown().await;
}

#[tokio::test]
async fn a_deadline_names_the_plugin_and_the_time_and_progress_moves_only_the_idle_one() {
    let host = Host::builder().plugin(zoo("good", "none")).start();
    host.settled().await;
    let session = host.session(SessionOptions::default());
    let call = session.call("sleep", r#"{"seconds":60}"#).deadline(Duration::from_millis(300));
    let error = call.await.unwrap_err();
    assert_eq!(error.to_string(), "plugin good did not answer tools/call within 0.3 s");
    let mut call = session.call("progress", r#"{"steps":3}"#);
    let mut progress = call.progress();
    let notes = tokio::spawn(async move {
        let mut notes = Vec::new();
        while let Some(note) = progress.next().await {
            notes.push(note.progress);
        }
        notes
    });
    call.await.unwrap();
    assert_eq!(notes.await.unwrap().len(), 3);
    host.shutdown().await;
}

#[tokio::test]
async fn a_crash_in_a_call_is_told_with_its_status_and_stderr_and_the_plugin_comes_back() {
    let host = Host::builder().plugin(zoo("fragile", "die-in-call")).plugin(zoo("good", "plain-mcp")).start();
    host.settled().await;
    let session = host.session(SessionOptions::default());
    let tool = host.tools().into_iter().find(|tool| tool.source.to_string() == "plugin fragile").unwrap().name;
    let error = session.call(tool, r#"{"text":"x"}"#).await.unwrap_err();
    let CallError::Crashed { status: ProcessEnd::Exited(status), stderr, .. } = &error else { panic!("{error}") };
    assert_eq!(status.to_string(), "exit status 7");
    assert!(!stderr.raw().is_empty());
    let plugin = || host.status().plugins.into_iter().find(|plugin| plugin.name.as_str() == "fragile").unwrap();
    crate::zoo::until(|| plugin().state == StateKind::Ready && plugin().restarts == 1).await;
    host.shutdown().await;
}

#[tokio::test]
async fn a_reload_swaps_after_the_handshake_and_keeps_the_old_process_if_it_fails() {
    let host = Host::builder().plugin(zoo("good", "none")).start();
    host.settled().await;
    let name = "good".parse().unwrap();
    let pid = || host.status().plugins[0].process.as_ref().unwrap().pid;
    let first = pid();
    let session = host.session(SessionOptions::default());
    let slow = tokio::spawn(session.call("sleep", r#"{"seconds":1}"#).into_future());
    crate::zoo::until(|| host.status().plugins[0].process.as_ref().unwrap().calls == 1).await;
    host.reload(&name).await.unwrap();
    assert_ne!(pid(), first);
    assert!(slow.await.unwrap().is_ok(), "a call of the old process finishes");
    crate::zoo::until(|| !crate::zoo::is_alive(first)).await;
    host.restart(&name).await.unwrap();
    host.stop(&name).await.unwrap();
    assert_eq!(host.status().plugins[0].state, StateKind::Dormant);
    let error = session.call("echo", "{}").await.unwrap_err();
    assert!(matches!(error, CallError::UnknownTool { .. }), "{error}");
    host.start(&name).await.unwrap();
    assert_eq!(text(session.call("echo", r#"{"text":"back"}"#).await), "back");
    host.shutdown().await;
}

#[tokio::test]
async fn configuration_gets_its_defaults_and_its_secrets() {
    let mut spec = zoo("configured", "config-schema");
    spec.config = json!({"api_key": {"secret": "ZOO_KEY"}}).as_object().unwrap().clone();
    struct Keys;
    impl lemon_host::Secrets for Keys {
        fn get(&self, name: &str) -> Option<String> {
            (name == "ZOO_KEY").then(|| "s3cr3t-value".to_owned())
        }
    }
    let host = Host::builder().plugin(spec.clone()).secrets(Keys).start();
    host.settled().await;
    let session = host.session(SessionOptions::default());
    let given = text(session.call("config", "{}").await);
    assert!(given.contains("s3cr3t-value") && given.contains("5000"), "{given}");
    assert_eq!(host.redactor().redact("key s3cr3t-value"), "key [redacted]");
    host.shutdown().await;

    let host = Host::builder().plugin(spec.clone()).start();
    host.settled().await;
    let error = host.status().plugins[0].error.clone().unwrap();
    assert!(error.contains("ZOO_KEY") && error.contains("config.api_key"), "{error}");
    host.shutdown().await;

    spec.config.clear();
    let host = Host::builder().plugin(spec).start();
    host.settled().await;
    let plugin = &host.status().plugins[0];
    assert_eq!(plugin.state, StateKind::Failed);
    assert!(plugin.error.as_ref().unwrap().contains("/api_key"), "{:?}", plugin.error);
    host.shutdown().await;
}

#[tokio::test]
async fn a_plugins_environment_is_small_known_and_what_the_user_gave() {
    let mut spec = zoo("good", "none");
    spec.env.insert("GIVEN".into(), EnvValue::Literal("yes".into()));
    let host = Host::builder().plugin(spec).start();
    host.settled().await;
    let session = host.session(SessionOptions::default());
    let env: Value = serde_json::from_str(&text(session.call("env", "{}").await)).unwrap();
    let env = env.as_object().unwrap();
    assert_eq!(env["GIVEN"], "yes");
    assert_eq!(env["LEMON_PLUGIN"], "good");
    assert!(env["LEMON_COOKIE"].as_str().unwrap().len() >= 32);
    assert!(!env.keys().any(|key| key.starts_with("CARGO")), "{:?}", env.keys());
    host.shutdown().await;
}

#[tokio::test]
async fn every_fault_at_the_start_has_its_own_message_while_the_others_start() {
    let cases: &[(&str, &[&str])] = &[
        ("exit-before-hello", &["ended during the handshake", "exit status 3", "stderr ends with"]),
        ("exit-zero-before-hello", &["ended during the handshake", "exit status 0"]),
        ("never-answers", &["did not finish the handshake (initialize) within 1.5 s"]),
        ("bad-version", &["no protocol version in common", "host speaks 1.0"]),
        ("answers-other-version", &["no protocol version in common", "9.9"]),
        ("bad-mcp-version", &["speaks MCP revision"]),
        ("initialize-error", &["answered the handshake (initialize) with an error"]),
        ("config-refused", &["does not accept its configuration"]),
        ("closes-stdout", &["closed its stdout"]),
    ];
    let mut builder = Host::builder().plugin(zoo("good", "none"));
    for (fault, _) in cases {
        let mut spec = zoo(fault, fault);
        if *fault == "never-answers" {
            spec.start_timeout = Some(Duration::from_millis(1500));
        }
        if *fault == "config-refused" {
            spec.config = json!({"api_key": "k-123456"}).as_object().unwrap().clone();
        }
        builder = builder.plugin(spec);
    }
    builder = builder
        .plugin(PluginSpec::new("missing".parse().unwrap(), Class::Extension, ["no-such-program-here"]))
        .plugin(PluginSpec::new("plain".parse().unwrap(), Class::Extension, [&crate::zoo::root("README.md")]));
    let host = builder.start();
    host.settled().await;
    let status = host.status();
    let error = |name: &str| fault(&status, name).error.clone().unwrap_or_default();
    for (name, parts) in cases {
        for part in *parts {
            assert!(error(name).contains(part), "{name}: {:?} lacks {part:?}", error(name));
        }
    }
    assert!(error("missing").contains("no-such-program-here was not found"), "{}", error("missing"));
    assert!(error("plain").contains("not executable"), "{}", error("plain"));
    assert_eq!(fault(&status, "good").state, StateKind::Ready);
    let session = host.session(SessionOptions::default());
    assert_eq!(text(session.call("echo", r#"{"text":"fine"}"#).await), "fine");
    crate::zoo::within(crate::zoo::PATIENCE, host.shutdown()).await;
}

#[tokio::test]
async fn noise_is_dropped_counted_and_does_not_cost_a_call() {
    for (name, kind) in [
        ("banner", "not_json"),
        ("stdout-noise", "not_json"),
        ("twice", "extra_answer"),
        ("unknown-id", "unknown_id"),
        ("null-id-error", "null_id_error"),
        ("crlf", "blank"),
    ] {
        let host = Host::builder().plugin(zoo("noisy", name)).start();
        host.settled().await;
        let session = host.session(SessionOptions::default());
        assert_eq!(text(session.call("echo", r#"{"text":"ok"}"#).await), "ok", "{name}");
        assert_eq!(text(session.call("echo", r#"{"text":"ok"}"#).await), "ok", "{name}");
        let noise = host.status().plugins[0].process.as_ref().unwrap().noise.clone();
        assert!(noise.counts.contains_key(kind), "{name}: {noise:?}");
        host.shutdown().await;
    }
}

#[tokio::test]
async fn a_flood_of_noise_costs_the_plugin_its_process_and_nobody_else_anything() {
    let host = Host::builder().plugin(zoo("flood", "noise-flood")).plugin(zoo("good", "plain-mcp")).start();
    host.settled().await;
    let session = host.session(SessionOptions::default());
    let error = session.call("echo", r#"{"text":"x"}"#).await.unwrap_err().to_string();
    assert!(error.contains("lines that are no message (limit 1000"), "{error}");
    crate::zoo::until(|| fault(&host.status(), "flood").state == StateKind::Ready).await;
    assert_eq!(fault(&host.status(), "good").restarts, 0);
    host.shutdown().await;
}

#[tokio::test]
async fn an_answer_that_breaks_the_protocol_ends_its_call_at_once_with_the_reason() {
    for (name, part) in [
        ("string-id", "is the string"),
        ("huge-line", "too large"),
        ("endless-line", "too large"),
        ("result-and-error", "more than one of"),
        ("neither", "none of method, result and error"),
        ("result-null", "not an object"),
        ("wrong-result", "can't be read"),
    ] {
        let host = Host::builder().plugin(zoo("broken", name)).start();
        host.settled().await;
        let session = host.session(SessionOptions::default());
        let call = session.call("echo", r#"{"text":"x"}"#).deadline(Duration::from_secs(20));
        let error = call.await.unwrap_err().to_string();
        assert!(error.contains(part), "{name}: {error}");
        assert_eq!(host.status().plugins[0].state, StateKind::Ready, "{name}");
        host.shutdown().await;
    }
}

#[tokio::test]
async fn split_and_escaped_messages_are_read_whole() {
    for name in ["split-utf8", "two-writes", "escaped-method", "bom"] {
        let host = Host::builder().plugin(zoo("odd", name)).start();
        host.settled().await;
        let session = host.session(SessionOptions::default());
        assert!(text(session.call("echo", r#"{"text":"é漢🍋"}"#).await).contains("é漢🍋"), "{name}");
        host.shutdown().await;
    }
}

#[tokio::test]
async fn lists_are_paged_and_never_endless_and_follow_changes() {
    let host = Host::builder().plugin(zoo("pages", "paged")).start();
    host.settled().await;
    assert!(host.status().plugins[0].tools >= 5);
    host.shutdown().await;

    let host = Host::builder().plugin(zoo("loop", "page-loop")).start();
    host.settled().await;
    let plugin = &host.status().plugins[0];
    assert_eq!(plugin.state, StateKind::Ready);
    assert_eq!(plugin.process.as_ref().unwrap().noise.counts["page_loop"], 1);
    host.shutdown().await;

    let host = Host::builder().plugin(zoo("grows", "list-changes")).start();
    host.settled().await;
    let session = host.session(SessionOptions::default());
    assert!(host.tools().iter().all(|tool| tool.name != "extra"));
    session.call("echo", r#"{"text":"x"}"#).await.unwrap();
    crate::zoo::until(|| host.tools().iter().any(|tool| tool.name == "extra")).await;
    host.shutdown().await;
}

#[tokio::test]
async fn a_bad_tool_is_put_aside_and_does_not_spoil_the_list() {
    for name in ["bad-tools", "hostile-schemas"] {
        let host = Host::builder().plugin(zoo("bad", name)).start();
        host.settled().await;
        let plugin = host.status().plugins.remove(0);
        assert_eq!(plugin.state, StateKind::Ready, "{name}: {:?}", plugin.error);
        assert!(!plugin.quarantined.is_empty(), "{name}");
        assert!(plugin.quarantined.iter().all(|tool| !tool.reason.raw().is_empty()));
        let session = host.session(SessionOptions::default());
        assert_eq!(text(session.call("echo", r#"{"text":"ok"}"#).await), "ok", "{name}");
        host.shutdown().await;
    }
}

#[tokio::test]
async fn whatever_a_process_does_nothing_is_left_of_it() {
    for name in ["ignore-eof-and-term", "grandchild", "grandchild-setsid", "grandchild-stubborn", "zombies"] {
        let host = Host::builder().plugin(zoo("stubborn", name)).start();
        host.settled().await;
        assert_eq!(host.status().plugins[0].state, StateKind::Ready, "{:?}", host.status().plugins[0].error);
        let pid = host.status().plugins[0].process.as_ref().unwrap().pid;
        let mut left = vec![pid];
        if name.starts_with("grandchild") {
            let session = host.session(SessionOptions::default());
            let told = text(session.call("grandchild", "{}").await);
            left.extend(told.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse::<u32>().ok()));
            assert!(left.len() > 1, "{told}");
        }
        crate::zoo::within(crate::zoo::PATIENCE, host.shutdown()).await;
        for pid in left {
            assert!(!crate::zoo::is_alive(pid), "{name} left {pid}");
        }
    }
}
