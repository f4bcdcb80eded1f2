//! Every bound of `Limits` and `Timeouts`, reached: a test for each, named after its key.

use std::collections::BTreeSet;
use std::future::IntoFuture;
use std::time::Duration;

use lemon_host::{
    Approval, Approver, CallError, CallRequest, Class, Host, HostTool, Kind, Limits, Millis, PluginSpec, PluginStatus,
    SessionOptions, StartError, StateKind, Timeouts, ToolCall, ToolResult,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::zoo::{kill, root, text, until, within, zoo};

/// What a test is about, and the host that it takes.
struct Bounded {
    host: Host,
    folder: TempDir,
}

struct AllowAll;

impl Approver for AllowAll {
    fn approve<'a>(&'a self, _: CallRequest<'a>) -> std::pin::Pin<Box<dyn Future<Output = Approval> + Send + 'a>> {
        Box::pin(std::future::ready(Approval::Allow))
    }
}

impl Bounded {
    /// One plugin of the zoo, under bounds.
    fn new(fault: &str, set: impl FnOnce(&mut Limits, &mut Timeouts)) -> Self {
        let mut words = fault.split(' ');
        let mut spec = zoo("bounded", words.next().unwrap());
        spec.command.extend(words.map(Into::into));
        Self::of(spec, set)
    }

    fn of(spec: PluginSpec, set: impl FnOnce(&mut Limits, &mut Timeouts)) -> Self {
        let (mut limits, mut timeouts) = (Limits::default(), Timeouts::default());
        set(&mut limits, &mut timeouts);
        let folder = tempfile::tempdir().unwrap();
        let builder = Host::builder().plugin(spec).limits(limits).timeouts(timeouts);
        let host = builder.approver(AllowAll).log_dir(folder.path()).start();
        Self { host, folder }
    }

    async fn ready(self) -> Self {
        self.host.settled().await;
        assert_eq!(self.status().state, StateKind::Ready, "{:?}", self.status().error);
        self
    }

    fn status(&self) -> PluginStatus {
        self.host.status().plugins.remove(0)
    }

    fn call(&self, tool: &str, arguments: Value) -> lemon_host::Call {
        self.host.session(SessionOptions::default()).call(tool, arguments.to_string())
    }

    async fn echo(&self, length: usize) -> Result<ToolResult, CallError> {
        self.call("echo", json!({ "text": "x".repeat(length) })).await
    }

    fn tools(&self) -> Vec<String> {
        self.host.tools().into_iter().map(|tool| tool.name).collect()
    }

    /// What it failed of.
    async fn failure(&self) -> StartError {
        until(|| matches!(self.status().state, StateKind::Failed | StateKind::Backoff)).await;
        self.status().failure.unwrap()
    }

    /// The host's end, which has to come though other times are as good as endless.
    async fn ends(self) {
        within(crate::zoo::PATIENCE, self.host.shutdown()).await;
    }
}

const MOMENT: Millis = Millis::new(100);
const ENDLESS: Millis = Millis::new(3_600_000);

/// Bounds that only a test of the part itself can see, with the file of that test and its name.
const WITHIN: &[(&str, &str, &str)] = &[
    (
        "compiled_schemas",
        include_str!("../../src/schema/tests.rs"),
        "fn a_tool_is_compiled_once_and_the_latest_ones_are_kept",
    ),
    (
        "partial_result_bytes",
        include_str!("../../src/wire/peer_tests.rs"),
        "fn progress_may_bring_a_partial_result_and_a_bad_or_large_one_is_none",
    ),
    ("noise_window_ms", include_str!("../../src/wire/noise.rs"), "fn only_a_flood_within_the_window_is_a_failure"),
    ("restart_ms", BREAKER, DELAYS),
    ("restart_max_ms", BREAKER, DELAYS),
    ("failure_window_ms", BREAKER, DELAYS),
    ("healthy_ms", BREAKER, "fn only_uptime_with_a_reply_makes_up_for_failures"),
];
const BREAKER: &str = include_str!("../../src/plugin/breaker.rs");
const DELAYS: &str = "fn the_configuration_sets_delays_and_bounds_and_zero_means_no_bound";

#[test]
fn every_bound_has_a_test_that_reaches_it() {
    let keys: BTreeSet<&str> = Limits::KEYS.iter().chain(Timeouts::KEYS).copied().collect();
    for key in keys {
        let (file, test) = match WITHIN.iter().find(|(within, ..)| *within == key) {
            Some((_, file, test)) => (*file, (*test).to_owned()),
            None => (include_str!("bounds.rs"), format!("#[tokio::test]\nasync fn {key}()")),
        };
        assert!(file.contains(&test), "no test reaches {key}; expected {test}");
    }
}

fn too_large(result: Result<ToolResult, CallError>, expected: &str) {
    let CallError::TooLarge { key, .. } = result.unwrap_err() else { panic!("another error") };
    assert_eq!(key, expected);
}

fn timeout(result: Result<ToolResult, CallError>) -> (Duration, bool) {
    let CallError::Timeout { after, idle, .. } = result.unwrap_err() else { panic!("another error") };
    (after, idle)
}

fn unsent(result: Result<ToolResult, CallError>) -> String {
    let CallError::Unsent { reason, .. } = result.unwrap_err() else { panic!("another error") };
    reason
}

#[tokio::test]
async fn inbound_message_bytes() {
    let bounded = Bounded::new("huge-line 20001", |limits, _| limits.inbound_message_bytes = 20_000).ready().await;
    too_large(bounded.echo(1).await, "limits.inbound_message_bytes");
    bounded.ends().await;
}

#[tokio::test]
async fn outbound_message_bytes() {
    let bounded = Bounded::new("none", |limits, _| limits.outbound_message_bytes = 20_000).ready().await;
    too_large(bounded.echo(20_000).await, "limits.outbound_message_bytes");
    bounded.echo(10_000).await.unwrap();
    bounded.ends().await;
}

#[tokio::test]
async fn foreign_outbound_message_bytes() {
    let set = |limits: &mut Limits, _: &mut Timeouts| limits.foreign_outbound_message_bytes = 20_000;
    let bounded = Bounded::new("plain-mcp", set).ready().await;
    too_large(bounded.echo(20_000).await, "limits.foreign_outbound_message_bytes");
    bounded.echo(10_000).await.unwrap();
    bounded.ends().await;
}

#[tokio::test]
async fn outbox_soft_bytes() {
    let set = |limits: &mut Limits, _: &mut Timeouts| limits.outbox_soft_bytes = 1_000;
    let bounded = Bounded::new("stops-reading", set).ready().await;
    let call = bounded.call("echo", json!({ "text": "x".repeat(200_000) })).into_future();
    let stuck = tokio::spawn(call);
    until(|| bounded.status().process.is_some_and(|process| process.outbox_bytes > 1_000)).await;
    let late = bounded.call("echo", json!({ "text": "x" })).deadline(MOMENT.get()).await;
    assert!(unsent(late).contains("limits.outbox_soft_bytes"));
    stuck.abort();
    bounded.ends().await;
}

#[tokio::test]
async fn outbox_hard_bytes() {
    let set = |limits: &mut Limits, _: &mut Timeouts| limits.outbox_hard_bytes = 100_000;
    let bounded = Bounded::new("stops-reading", set).ready().await;
    // What the pipe does not take waits, until there is no room for more.
    let large = || bounded.call("echo", json!({ "text": "x".repeat(90_000) })).deadline(MOMENT.get());
    while !matches!(large().await, Err(CallError::NotReading { .. })) {}
    assert!(bounded.failure().await.to_string().contains("limits.outbox_hard_bytes"));
    bounded.ends().await;
}

#[tokio::test]
async fn calls() {
    let bounded = Bounded::new("none", |limits, _| limits.calls = 1).ready().await;
    let first = tokio::spawn(bounded.call("sleep", json!({ "seconds": 1000 })).into_future());
    until(|| bounded.status().process.is_some_and(|process| process.calls == 1)).await;
    let second = bounded.call("echo", json!({ "text": "x" })).deadline(MOMENT.get()).await;
    assert!(unsent(second).contains("limits.calls"));
    first.abort();
    bounded.ends().await;
}

#[tokio::test]
async fn inbound_requests() {
    let bounded = Bounded::new("reverse-flood 20", |limits, _| limits.inbound_requests = 1).ready().await;
    let ends = text(bounded.call("relay", json!({ "tool": "echo", "arguments": { "text": "x" } })).await);
    assert!(ends.contains("busy"), "{ends}");
    bounded.ends().await;
}

#[tokio::test]
async fn inbound_request_bytes() {
    let bounded = Bounded::new("reverse-flood 20", |limits, _| limits.inbound_request_bytes = 1).ready().await;
    let ends = text(bounded.call("relay", json!({ "tool": "echo", "arguments": { "text": "x" } })).await);
    // One that is larger than the bound is taken when it is alone.
    assert!(ends.contains("busy") && ends.contains("ok"), "{ends}");
    bounded.ends().await;
}

#[tokio::test]
async fn tools() {
    let bounded = Bounded::new("many-tools 10", |limits, _| limits.tools = 7).ready().await;
    assert_eq!(bounded.tools().len(), 7);
    let quarantined = bounded.status().quarantined;
    assert!(quarantined.iter().any(|left| left.reason.raw().contains("limits.tools")), "{quarantined:?}");
    bounded.ends().await;
}

#[tokio::test]
async fn list_bytes() {
    let bounded = Bounded::new("many-tools 50", |limits, _| limits.list_bytes = 2_000).ready().await;
    assert!((1..50).contains(&bounded.tools().len()));
    let quarantined = bounded.status().quarantined;
    assert!(quarantined.iter().any(|left| left.reason.raw().contains("limits.list_bytes")), "{quarantined:?}");
    bounded.ends().await;
}

#[tokio::test]
async fn schema_bytes() {
    let bounded = Bounded::new("none", |limits, _| limits.schema_bytes = 60).ready().await;
    assert!(bounded.tools().contains(&"pids".to_owned()) && !bounded.tools().contains(&"log".to_owned()));
    let quarantined = bounded.status().quarantined;
    assert!(quarantined.iter().all(|left| left.reason.raw().contains("limits.schema_bytes")), "{quarantined:?}");
    bounded.ends().await;
}

#[tokio::test]
async fn schema_depth() {
    let bounded = Bounded::new("none", |limits, _| limits.schema_depth = 2).ready().await;
    assert!(bounded.tools().contains(&"pids".to_owned()) && !bounded.tools().contains(&"log".to_owned()));
    let quarantined = bounded.status().quarantined;
    assert!(quarantined.iter().all(|left| left.reason.raw().contains("limits.schema_depth")), "{quarantined:?}");
    bounded.ends().await;
}

#[tokio::test]
async fn argument_values() {
    let bounded = Bounded::new("none", |limits, _| limits.argument_values = 3).ready().await;
    let arguments = json!({ "tool": "echo", "arguments": { "a": [1, 2, 3] } });
    let error = bounded.call("relay", arguments).await.unwrap_err();
    assert!(error.to_string().contains("limits.argument_values"), "{error}");
    bounded.echo(5).await.unwrap();
    bounded.ends().await;
}

#[tokio::test]
async fn stderr_tail_bytes() {
    let bounded = Bounded::new("stderr-lines 1000", |limits, _| limits.stderr_tail_bytes = 100).ready().await;
    until(|| bounded.folder.path().join("bounded.log").exists()).await;
    let stderr = bounded.status().process.unwrap().stderr;
    assert!((1..=100).contains(&stderr.raw().len()), "{stderr:?}");
    bounded.ends().await;
}

#[tokio::test]
async fn log_file_bytes() {
    let bounded = Bounded::new("stderr-lines 1000", |limits, _| limits.log_file_bytes = 2_000).ready().await;
    within(crate::zoo::PATIENCE, bounded.host.shutdown()).await;
    let read = |name: &str| std::fs::read_to_string(bounded.folder.path().join(name)).unwrap();
    let (current, older) = (read("bounded.log"), read("bounded.log.1"));
    assert!(current.len() <= 2_000 && older.len() <= 2_000, "{} and {}", current.len(), older.len());
    assert!(current.ends_with(" line 999\n"), "{current}");
}

#[tokio::test]
async fn noise_lines() {
    let bounded = Bounded::new("noise-flood 20", |limits, _| limits.noise_lines = 10).ready().await;
    // Its answer may have been read together with the flood.
    let _ = bounded.echo(1).await;
    let StartError::Noise { limit, .. } = bounded.failure().await else { panic!("another failure") };
    assert_eq!(limit, 10);
    bounded.ends().await;
}

#[tokio::test]
async fn abandoned_calls() {
    let bounded = Bounded::new("hangs", |limits, timeouts| {
        (limits.abandoned_calls, timeouts.linger_ms) = (1, MOMENT);
    });
    let bounded = bounded.ready().await;
    bounded.call("echo", json!({ "text": "x" })).deadline(MOMENT.get()).await.unwrap_err();
    // It is degraded until it is idle, which it is, and then replaced.
    until(|| bounded.status().generation.to_string() == "2" && bounded.status().state == StateKind::Ready).await;
    bounded.ends().await;
}

#[tokio::test]
async fn failures_in_window() {
    let bounded = Bounded::new("none", |limits, _| limits.failures_in_window = 1).ready().await;
    kill(bounded.status().process.unwrap().pid);
    let StartError::CircuitOpen { failures, .. } = bounded.failure().await else { panic!("another failure") };
    assert_eq!((failures, bounded.status().state), (1, StateKind::Failed));
    bounded.ends().await;
}

#[tokio::test]
async fn failures_in_a_row() {
    let bounded = Bounded::new("none", |limits, timeouts| {
        (limits.failures_in_a_row, limits.failures_in_window) = (2, 0);
        timeouts.restart_ms = Millis::new(1);
    });
    let bounded = bounded.ready().await;
    for generation in ["1", "2"] {
        until(|| bounded.status().generation.to_string() == generation && bounded.status().state == StateKind::Ready)
            .await;
        kill(bounded.status().process.unwrap().pid);
    }
    until(|| bounded.status().state == StateKind::Failed).await;
    assert!(matches!(bounded.failure().await, StartError::CircuitOpen { failures: 2, .. }));
    bounded.ends().await;
}

#[tokio::test]
async fn progress_notes() {
    let bounded = Bounded::new("progress-flood 1000", |limits, _| limits.progress_notes = 4).ready().await;
    let mut call = bounded.call("echo", json!({ "text": "x" }));
    let mut notes = call.progress();
    call.await.unwrap();
    let mut kept = Vec::new();
    while let Some(note) = notes.next().await {
        kept.push(note.progress);
    }
    assert!((1..=4).contains(&kept.len()) && kept.last() == Some(&1000.0), "the newest are kept: {kept:?}");
    bounded.ends().await;
}

#[tokio::test]
async fn call_depth() {
    let inner = HostTool::new("inner", "", json!({ "type": "object" }), |_| async { "inner" }).unwrap();
    let outer = HostTool::new("outer", "", json!({ "type": "object" }), |call: ToolCall| async move {
        call.call("inner", "{}").await.map_err(|error| error.to_string())
    });
    let mut limits = Limits::default();
    limits.call_depth = 1;
    let host = Host::builder().builtin(inner).builtin(outer.unwrap()).limits(limits).start();
    let session = host.session(SessionOptions::default());
    assert_eq!(text(session.call("inner", "{}").await), "inner");
    let refused = session.call("outer", "{}").await.unwrap();
    assert!(refused.is_error());
    assert!(text(Ok(refused)).contains("limits.call_depth"));
    host.shutdown().await;
}

#[tokio::test]
async fn start_ms() {
    let bounded = Bounded::new("never-answers", |_, timeouts| timeouts.start_ms = MOMENT);
    let StartError::Timeout { after, .. } = bounded.failure().await else { panic!("another failure") };
    assert_eq!(after, MOMENT.get());
    bounded.ends().await;
}

#[tokio::test]
async fn start_launcher_ms() {
    let folder = tempfile::tempdir().unwrap();
    let launcher = folder.path().join("npx");
    let program = root("tests/misbehaving/misbehave.py");
    std::fs::write(&launcher, format!("#!/bin/sh\nexec python3 '{program}' never-answers\n")).unwrap();
    std::fs::set_permissions(&launcher, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let spec = PluginSpec::new("bounded".parse().unwrap(), Class::Extension, [launcher.to_str().unwrap()]);
    let bounded = Bounded::of(spec, |_, timeouts| {
        (timeouts.start_launcher_ms, timeouts.start_ms) = (MOMENT, ENDLESS);
    });
    let StartError::Timeout { after, .. } = bounded.failure().await else { panic!("another failure") };
    assert_eq!(after, MOMENT.get());
    bounded.ends().await;
}

#[tokio::test]
async fn call_ms() {
    let bounded = Bounded::new("hangs", |_, timeouts| timeouts.call_ms = MOMENT).ready().await;
    assert_eq!(timeout(bounded.echo(1).await), (MOMENT.get(), false));
    bounded.ends().await;
}

#[tokio::test]
async fn call_idle_ms() {
    let bounded = Bounded::new("hangs", |_, timeouts| timeouts.call_idle_ms = MOMENT).ready().await;
    assert_eq!(timeout(bounded.echo(1).await), (MOMENT.get(), true));
    bounded.ends().await;
}

#[tokio::test]
async fn linger_ms() {
    let bounded = Bounded::new("hangs", |_, timeouts| timeouts.linger_ms = MOMENT).ready().await;
    bounded.call("echo", json!({ "text": "x" })).deadline(MOMENT.get()).await.unwrap_err();
    until(|| bounded.status().process.is_some_and(|process| (process.lingering, process.abandoned) == (0, 1))).await;
    bounded.ends().await;
}

#[tokio::test]
async fn list_debounce_ms() {
    let quiet = Bounded::new("list-changes", |_, timeouts| timeouts.list_debounce_ms = ENDLESS).ready().await;
    let quick = Bounded::new("list-changes", |_, timeouts| timeouts.list_debounce_ms = Millis::new(1)).ready().await;
    for bounded in [&quiet, &quick] {
        bounded.echo(1).await.unwrap();
    }
    until(|| quick.tools().contains(&"extra".to_owned())).await;
    quiet.echo(1).await.unwrap();
    assert!(!quiet.tools().contains(&"extra".to_owned()));
    quiet.ends().await;
    quick.ends().await;
}

#[tokio::test]
async fn retry_failed_ms() {
    let bounded = Bounded::new("die-in-call", |limits, timeouts| {
        (limits.failures_in_window, timeouts.retry_failed_ms) = (1, Millis::new(0));
    });
    let bounded = bounded.ready().await;
    for _ in 0..2 {
        // The circuit is open, and each call may try.
        bounded.echo(1).await.unwrap_err();
        until(|| bounded.status().state == StateKind::Failed).await;
    }
    assert_eq!(bounded.status().restarts, 1);
    bounded.ends().await;
}

#[tokio::test]
async fn ping_idle_ms() {
    let bounded = Bounded::new("deadlock", |_, timeouts| {
        (timeouts.ping_idle_ms, timeouts.ping_ms) = (MOMENT, MOMENT);
    });
    let bounded = bounded.ready().await;
    bounded.call("echo", json!({ "text": "x" })).deadline(MOMENT.get()).await.unwrap_err();
    until(|| bounded.status().state == StateKind::Degraded).await;
    bounded.ends().await;
}

#[tokio::test]
async fn ping_ms() {
    let bounded = Bounded::new("deadlock", |_, timeouts| {
        (timeouts.ping_idle_ms, timeouts.ping_ms) = (MOMENT, ENDLESS);
    });
    let bounded = bounded.ready().await;
    bounded.call("echo", json!({ "text": "x" })).deadline(MOMENT.get()).await.unwrap_err();
    // The ping is on its way, and has all its time.
    until(|| bounded.status().process.is_some_and(|process| process.calls == 1)).await;
    assert_eq!(bounded.status().state, StateKind::Ready);
    bounded.ends().await;
}

#[tokio::test]
async fn drain_ms() {
    let bounded = Bounded::new("none", |_, timeouts| timeouts.drain_ms = MOMENT).ready().await;
    let call = tokio::spawn(bounded.call("sleep", json!({ "seconds": 1000 })).into_future());
    until(|| bounded.status().process.is_some_and(|process| process.calls == 1)).await;
    within(crate::zoo::PATIENCE, bounded.host.stop(&"bounded".parse().unwrap())).await.unwrap();
    assert_eq!(call.await.unwrap().unwrap_err().kind(), Some(Kind::ShuttingDown));
    bounded.ends().await;
}

#[tokio::test]
async fn shutdown_ms() {
    let bounded = Bounded::new("shutdown-unanswered", |_, timeouts| {
        (timeouts.shutdown_ms, timeouts.eof_ms) = (MOMENT, ENDLESS);
    });
    bounded.ready().await.ends().await;
}

#[tokio::test]
async fn eof_ms() {
    let bounded = Bounded::new("ignore-eof", |_, timeouts| {
        (timeouts.eof_ms, timeouts.term_ms) = (MOMENT, ENDLESS);
    });
    bounded.ready().await.ends().await;
}

#[tokio::test]
async fn term_ms() {
    let bounded = Bounded::new("ignore-eof-and-term", |_, timeouts| {
        (timeouts.eof_ms, timeouts.term_ms) = (MOMENT, MOMENT);
    });
    bounded.ready().await.ends().await;
}
