//! From the start of the process to the end of the handshake.

use lemon_host::{CallError, Dialect, Millis, Phase, SessionOptions, StateKind};

use crate::case::NotStarted::{Backoff, Failed};
use crate::case::{Case, fault};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        fault("none").works_with_noise(&[]),
        fault("plain-mcp").traced().then(async |cage| {
            assert!(matches!(cage.status().dialect, Some(Dialect::Mcp(_))));
            let seen = cage.says("session", "{}").await;
            assert!(seen.starts_with(r#"{"sessions": {}"#) && !seen.contains("dev.lemon/"), "{seen}");
            assert_eq!(cage.says("config", "{}").await, "null");
            cage.stop().await;
            let (sent, lemon) = (cage.notes.count("→"), cage.notes.count(r#""method":"lemon/"#));
            assert!(sent > 4 && lemon == 0, "{}", cage.notes.all());
        }),
        fault("strict-mcp").then(async |cage| {
            cage.works().await;
            cage.stop().await;
            assert!(!cage.log().contains("fatal"), "{}", cage.log());
        }),
        fault("single-session").then(async |cage| {
            let first = cage.says("pids", "{}").await;
            let other = cage.host.session(SessionOptions::default());
            let second = other.call("pids", "{}").await.unwrap();
            assert!(!second.texts().any(|text| text.raw() == first), "one process serves both");
            assert_eq!(cage.says("pids", "{}").await, first);
            assert_eq!(cage.marked().len(), 2);
            other.close().await;
            assert_eq!(cage.marked().len(), 1);
        }),
        fault("exclusive-single").then(async |cage| {
            cage.says("pids", "{}").await;
            let other = cage.host.session(SessionOptions::default());
            let error = other.call("pids", "{}").await.unwrap_err();
            assert!(error.to_string().contains("exclusive"), "{error}");
            assert_eq!(cage.marked().len(), 1);
            cage.session.close().await;
            other.call("pids", "{}").await.unwrap();
            assert_eq!(cage.marked().len(), 1);
        }),
        fault("exit-before-hello").never_starts(
            Backoff,
            &["it ended during the handshake (initialize): exit status 3", "cannot open the door: no key"],
        ),
        fault("exit-before-hello").named("twice").timeouts(|timeouts| timeouts.restart_ms = Millis::new(10)).then(
            async |cage| {
                cage.until("its end", |cage| cage.status().state == StateKind::Failed).await;
                let status = cage.status();
                assert_eq!((status.restarts, status.retry_in_ms), (cage.restarts() + 1, None));
                let failure = status.last_failure.unwrap();
                assert_eq!(
                    (failure.phase, failure.exit_code, failure.signal),
                    (Some(Phase::Initialize), Some(3), None)
                );
                assert!(failure.error.contains("exit status 3") && status.error.unwrap().contains("exit status 3"));
            },
        ),
        fault("exit-zero-before-hello").never_starts(
            Backoff,
            &["it ended during the handshake (initialize): exit status 0", "it wrote nothing to stderr"],
        ),
        fault("exit-after-hello")
            .never_starts(Backoff, &["it ended during the first list of tools (tools/list): exit status 4"]),
        fault("slow-start 1000").named("just inside the limit").start_within(5000).works_with_noise(&[]),
        fault("slow-start 1100")
            .named("just outside the limit")
            .start_within(1000)
            .never_starts(Backoff, &["it did not finish the handshake (initialize) within 1 s"]),
        fault("never-answers")
            .start_within(1000)
            .never_starts(Backoff, &["it did not finish the handshake (initialize) within 1 s"]),
        fault("no-initialize-answer-but-alive")
            .start_within(1000)
            .never_starts(Backoff, &["it did not finish the handshake (initialize) within 1 s"]),
        fault("initialize-error").never_starts(
            Failed,
            &["it answered the handshake (initialize) with an error: the database is locked (code -32603)"],
        ),
        fault("bad-version").never_starts(Failed, &["no protocol version in common", "2.0", "1.0", "upgrade the host"]),
        fault("answers-other-version")
            .named("newer")
            .never_starts(Failed, &["no protocol version in common", "9.9", "1.0", "upgrade the host"]),
        fault("answers-other-version 0.9")
            .named("older")
            .never_starts(Failed, &["no protocol version in common", "0.9", "1.0", "upgrade the plugin"]),
        fault("no-version").never_starts(Failed, &["Lemon's part of the answer can't be read", "version"]),
        fault("bad-mcp-version").never_starts(Failed, &["it speaks MCP revision \"1999-01-01\"", "2025-11-25"]),
        fault("refuses-mcp-version").never_starts(
            Failed,
            &["answered the handshake (initialize) with an error: Unsupported protocol version (code -32602)"],
        ),
        fault("hello-twice").works_with_noise(&[("extra_answer", 1)]),
        fault("hello-in-two").then(async |cage| {
            assert_eq!(cage.status().server_name.unwrap().raw(), "misbehave 🍋");
            cage.works().await;
        }),
        fault("unknown-capabilities").works_with_noise(&[]),
        fault("huge-hello").never_starts(Failed, &["the answer of plugin victim is too large", "16777216"]),
        fault("huge-hello 1000000").named("within the limit").works_with_noise(&[]),
        fault("request-first").traced().then(async |cage| {
            cage.works().await;
            assert!(cage.notes.has("log info: early"), "{}", cage.notes.all());
            assert!(cage.notes.has(r#"→ {"jsonrpc":"2.0","id":"early","result":{}}"#), "{}", cage.notes.all());
        }),
        fault("banner").then(async |cage| {
            cage.works().await;
            assert_eq!(cage.noise("not_json"), 3);
            assert!(cage.process().noise.first["not_json"].raw().contains("Welcome to misbehave!"));
        }),
        fault("bom").works_with_noise(&[]),
        fault("content-length")
            .start_within(5000)
            .never_starts(Backoff, &["it did not finish the handshake (initialize) within 5 s", "dropped as noise"]),
        fault("closes-stdout").never_starts(Backoff, &["it closed its stdout and lived on"]),
        fault("closes-stdin").start_within(10_000).never_starts(Backoff, &["it closed its stdin and lived on"]),
        fault("stops-reading").then(async |cage| {
            let error = cage.echo_within(500).await.unwrap_err();
            assert!(matches!(error, CallError::Timeout { .. }), "{error}");
            assert_eq!(cage.status().state, StateKind::Ready);
            cage.stop().await;
        }),
        fault("stops-reading").named("while much is sent to it").limits(small_outbox).then(async |cage| {
            let error = not_read(cage).await;
            assert!(error.to_string().contains("does not read its input"), "{error}");
            let failure = cage.status().failure.unwrap().to_string();
            assert!(failure.contains("limits.outbox_hard_bytes"), "{failure}");
            cage.until("another start", |cage| cage.status().state == StateKind::Ready).await;
        }),
        fault("unterminated-hello")
            .never_starts(Backoff, &["it ended during the handshake (initialize): exit status 0"]),
    ]
}

pub(crate) fn small_outbox(limits: &mut lemon_host::Limits) {
    limits.outbox_soft_bytes = 500 * 1024;
    limits.outbox_hard_bytes = 600 * 1024;
}

/// What becomes of calls of 400 KiB each to a plugin that does not read them: the first that finds no room.
pub(crate) async fn not_read(cage: &crate::cage::Cage) -> CallError {
    let arguments = format!(r#"{{"text":"{}"}}"#, "x".repeat(400 * 1024));
    let call = |seconds| {
        let call = cage.session.call("echo", arguments.clone()).deadline(std::time::Duration::from_secs(seconds));
        tokio::spawn(call.into_future())
    };
    let waiting = call(30);
    cage.until("what waits", |cage| cage.process().outbox_bytes > 0).await;
    let error = call(30).await.unwrap().unwrap_err();
    // The first one shares the end of the process.
    waiting.await.unwrap().unwrap_err();
    error
}
