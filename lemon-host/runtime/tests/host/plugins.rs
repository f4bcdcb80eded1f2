//! Plugins' lives: starts, sessions, failures, ends.

use std::time::Duration;

use crate::zoo::{text, zoo};
use lemon_host::{
    Approval, Approver, CallError, CallRequest, Class, EnvValue, Host, Millis, PluginSpec, SessionOptions, StateKind,
    Timeouts,
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
    let others = || host.status().plugins.remove(0).session_processes;
    let [other] = &others()[..] else { panic!("{:?}", others()) };
    assert_eq!((other.session.as_str(), other.state, other.error.as_deref()), ("second", StateKind::Ready, None));
    let pid = other.process.as_ref().unwrap().pid;
    crate::zoo::kill(pid);
    crate::zoo::until(|| others()[0].state == StateKind::Backoff).await;
    assert!(others()[0].error.as_ref().unwrap().contains("SIGKILL"), "{:?}", others());
    assert_eq!(host.status().plugins[0].state, StateKind::Ready, "the process of the first session is another one");
    two.close().await;
    assert!(others().is_empty());
    let error = two.call("echo", "{}").await.unwrap_err();
    assert!(matches!(error, CallError::SessionOver { .. }), "{error}");
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
async fn a_shutdown_leaves_no_process_of_a_session_that_is_just_being_closed() {
    let mut timeouts = Timeouts::default();
    // Longer than anyone waits: only a kill ends it in time.
    timeouts.eof_ms = Millis::new(3_600_000);
    let host = Host::builder().plugin(zoo("stubborn", "stubborn-single")).timeouts(timeouts).start();
    host.settled().await;
    let sessions = [host.session(SessionOptions::default()), host.session(SessionOptions::default())];
    for session in &sessions {
        session.call("echo", r#"{"text":"x"}"#).await.unwrap();
    }
    let others = || host.status().plugins.remove(0).session_processes;
    let pid = others()[0].process.as_ref().unwrap().pid;
    let mut closing = Box::pin(sessions[1].close());
    assert!(futures_util::poll!(&mut closing).is_pending());
    // Its caller does not wait for the end either.
    drop(closing);
    crate::zoo::until(|| others().iter().all(|other| other.state == StateKind::Stopping)).await;
    crate::zoo::within(crate::zoo::PATIENCE, host.kill_all()).await;
    assert!(!crate::zoo::is_alive(pid));
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
async fn a_host_that_is_dropped_ends_its_plugins() {
    let host = Host::builder().plugin(zoo("good", "none")).start();
    host.settled().await;
    let pid = host.status().plugins[0].process.as_ref().unwrap().pid;
    drop(host);
    crate::zoo::until(|| !crate::zoo::is_alive(pid)).await;
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
