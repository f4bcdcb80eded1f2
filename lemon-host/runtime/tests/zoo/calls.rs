//! What goes wrong while a call runs.

use std::time::Duration;

use lemon_host::{CallError, Millis, ProcessEnd, StateKind};
use tokio_util::sync::CancellationToken;

use crate::cage::{Cage, is_alive, within};
use crate::case::{Case, fault};
use crate::handshake::{not_read, small_outbox};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        fault("none").named("200 answers of 64 KiB at once").then(all_at_once),
        fault("none").named("a call that is cancelled").then(async |cage| {
            cancelled(cage, "sleep", r#"{"seconds":1000}"#).await;
            cage.until("its end", |cage| cage.process().lingering == 0).await;
            assert_eq!(cage.process().abandoned, 0);
            cage.works().await;
        }),
        fault("none").named("a call that costs time, and not the plugin").timeouts(ping_soon).then(busy),
        fault("late 600").named("after the deadline").then(async |cage| {
            let error = cage.echo_within(200).await.unwrap_err();
            assert!(matches!(error, CallError::Timeout { .. }), "{error}");
            cage.until("the late answer", |cage| cage.noise("late_answer") == 1).await;
            cage.works().await;
        }),
        fault("late 600").named("after a cancellation").then(async |cage| {
            cancelled(cage, "echo", r#"{"text":"x"}"#).await;
            cage.until("the late answer", |cage| cage.noise("late_answer") == 1).await;
            assert_eq!((cage.process().lingering, cage.process().abandoned), (0, 0));
            cage.works().await;
        }),
        fault("hangs").then(async |cage| {
            let error = cage.echo_within(300).await.unwrap_err();
            assert!(error.to_string().contains("plugin victim did not answer tools/call within 0.3 s"), "{error}");
            assert_eq!(cage.process().lingering, 1);
            cage.until("the count of it", |cage| cage.process().abandoned == 1).await;
            assert_eq!(cage.process().lingering, 0);
            cage.works().await;
        }),
        fault("hangs").named("too often").limits(|limits| limits.abandoned_calls = 2).then(async |cage| {
            let (one, two) = tokio::join!(cage.echo_within(200), cage.echo_within(200));
            assert!(one.is_err() && two.is_err());
            cage.until("its bad health", |cage| cage.notes.has("state degraded")).await;
            cage.comes_back().await;
        }),
        fault("deadlock").timeouts(ping_soon).then(async |cage| {
            let error = cage.echo_within(300).await.unwrap_err();
            assert!(matches!(error, CallError::Timeout { .. }), "{error}");
            cage.until("an unanswered ping", |cage| cage.status().state == StateKind::Degraded).await;
            cage.stop().await;
        }),
        fault("single-threaded").named("200 answers of 64 KiB at once").then(all_at_once),
        fault("single-threaded").named("a call that costs time, and not the plugin").timeouts(ping_soon).then(busy),
        fault("out-of-order").then(async |cage| {
            let say = async |text: &str| cage.says("echo", &format!(r#"{{"text":"{text}"}}"#)).await;
            let said = tokio::join!(say("one"), say("two"), say("three"));
            assert_eq!(said, ("one".to_owned(), "two".to_owned(), "three".to_owned()));
            assert_eq!(cage.process().noise.total(), 0);
        }),
        fault("reads-slowly").then(async |cage| {
            let error = cage.echo_within(500).await.unwrap_err();
            assert!(matches!(error, CallError::Timeout { .. }), "{error}");
            cage.stop().await;
        }),
        fault("reads-slowly").named("while much is sent to it").limits(small_outbox).then(async |cage| {
            let error = not_read(cage).await;
            assert!(error.to_string().contains("does not read its input"), "{error}");
            cage.until("another start", |cage| cage.status().state == StateKind::Ready).await;
        }),
        fault("unsettled").then(async |cage| {
            cancelled(cage, "sleep", r#"{"seconds":1000}"#).await;
            assert_eq!(cage.process().lingering, 1);
            cage.until("the count of it", |cage| cage.process().abandoned == 1).await;
            cage.works().await;
        }),
        fault("settles-and-answers").then(async |cage| {
            cancelled(cage, "sleep", r#"{"seconds":1000}"#).await;
            cage.until("the answer", |cage| cage.noise("extra_answer") == 1).await;
            assert_eq!((cage.process().lingering, cage.process().abandoned), (0, 0));
            cage.works().await;
        }),
        fault("small-input").then(async |cage| {
            let text = "x".repeat(10 * 1024 * 1024);
            let error = cage.call("echo", &format!(r#"{{"text":"{text}"}}"#)).await.unwrap_err();
            assert!(
                matches!(error, CallError::TooLarge { key: "limits.foreign_outbound_message_bytes", .. }),
                "{error}"
            );
            cage.works().await;
            assert_eq!(cage.says("echo", &format!(r#"{{"text":"{}"}}"#, &text[4096..])).await.len(), text.len() - 4096);
            cage.works().await;
        }),
        fault("die-in-call").named("as the status tells it").then(async |cage| {
            let error = cage.echo().await.unwrap_err();
            assert!(matches!(error, CallError::Crashed { status: ProcessEnd::Exited(_), .. }), "{error}");
            cage.comes_back().await;
            // It is well again, and still told.
            let status = serde_json::to_value(cage.status()).unwrap();
            let failure = &status["lastFailure"];
            assert_eq!((&failure["exitCode"], &failure["phase"]), (&7.into(), &serde_json::Value::Null));
            assert!(failure["error"].as_str().unwrap().contains("exit status 7"), "{failure}");
            assert!(failure["ranForMs"].is_u64() && failure["atMs"].is_u64(), "{failure}");
        }),
        fault("die-in-call").call_costs_the_process(&["exit status 7", "fatal: the echo chamber collapsed"]),
        fault("die-in-line").call_costs_the_process(&["ended during the call: exit status 7"]),
        fault("panic-in-call").call_costs_the_process(&["exit status 1", "LookupError: no lemons left"]),
        fault("kill-self").call_costs_the_process(&["ended during the call: signal 9 (SIGKILL)"]),
        fault("stop-self").then(async |cage| {
            let pid = cage.process().pid;
            let error = cage.echo_within(300).await.unwrap_err();
            assert!(matches!(error, CallError::Timeout { .. }), "{error}");
            assert!(is_alive(pid));
            cage.stop().await;
        }),
        fault("progress-flood 30000").then(async |cage| {
            let mut call = cage.session.call("echo", r#"{"text":"x"}"#);
            let mut progress = call.progress();
            let newest = tokio::spawn(async move {
                let mut newest = 0.0;
                while let Some(note) = progress.next().await {
                    newest = note.progress;
                }
                newest
            });
            within("an end of a call", call.into_future()).await.unwrap();
            assert_eq!(newest.await.unwrap(), 30_000.0);
            cage.works().await;
        }),
        fault("progress-after-result").works_with_noise(&[("late_progress", 1)]),
        fault("unknown-progress").works_with_noise(&[("late_progress", 1)]),
        fault("progress-backwards").then(async |cage| {
            let mut call = cage.session.call("echo", r#"{"text":"x"}"#);
            let mut progress = call.progress();
            call.await.unwrap();
            let mut told = Vec::new();
            while let Some(note) = progress.next().await {
                told.push(note.progress);
            }
            assert_eq!(told, [3.0, 2.0, 1.0, -1.0]);
            cage.works().await;
        }),
        fault("log-flood 30000").then(async |cage| {
            assert_eq!(cage.says("echo", r#"{"text":"x"}"#).await, "x");
            assert!(cage.notes.has("log info: line 0"));
            cage.works().await;
        }),
    ]
}

/// Far more than pipes, outbox and slots hold, in both directions at once.
async fn all_at_once(cage: &mut Cage) {
    let text = "x".repeat(64 * 1024);
    let calls = (0..200).map(|number| {
        let (session, text) = (cage.session.clone(), format!("{number} {text}"));
        tokio::spawn(async move {
            let result = session.call("echo", format!(r#"{{"text":"{text}"}}"#)).await.unwrap();
            assert!(result.texts().all(|answer| answer.raw() == text));
        })
    });
    for call in calls.collect::<Vec<_>>() {
        within("an end of a call", call).await.unwrap();
    }
    cage.works().await;
    assert_eq!(cage.process().noise.total(), 0);
}

/// A plugin is asked whether it lives soon after it said something.
fn ping_soon(timeouts: &mut lemon_host::Timeouts) {
    timeouts.ping_idle_ms = Millis::new(100);
    timeouts.ping_ms = Millis::new(300);
}

/// A call longer than everything after which a plugin is looked at.
async fn busy(cage: &mut Cage) {
    assert_eq!(cage.says("sleep", r#"{"seconds":6}"#).await, "slept for 6 s");
    assert!(!cage.notes.has("state degraded"), "{}", cage.notes.all());
    cage.works().await;
}

/// Makes a call and cancels it when the plugin works on it; its caller hears of that at once.
async fn cancelled(cage: &Cage, tool: &str, arguments: &str) {
    let cancel = CancellationToken::new();
    let call = cage.session.call(tool, arguments).cancelled_by(cancel.clone()).deadline(Duration::from_secs(30));
    let call = tokio::spawn(call.into_future());
    cage.until("the call", |cage| cage.process().calls == 1 && cage.process().outbox_bytes == 0).await;
    cancel.cancel();
    let outcome = within("an end of a call", call).await.unwrap();
    assert!(matches!(outcome, Err(CallError::Cancelled { .. })), "{outcome:?}");
}
