//! What can come on stderr: none of it is a failure.

use crate::case::NotStarted::Backoff;
use crate::case::{Case, fault};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        fault("stderr-flood").then(async |cage| {
            cage.works().await;
            cage.stop().await;
            cage.until("the line", |cage| cage.log().contains(" more bytes)")).await;
            assert!(cage.log().len() < 64 * 1024);
        }),
        fault("stderr-lines").then(async |cage| {
            cage.until("the last line", |cage| cage.process().stderr.raw().contains("line 99999")).await;
            assert!(cage.process().stderr.raw().len() <= 64 * 1024);
            cage.works().await;
        }),
        fault("stderr-invalid-utf8").then(async |cage| {
            cage.until("the line", |cage| cage.process().stderr.raw().contains("caf\u{fffd}")).await;
            cage.works().await;
        }),
        fault("stderr-only").start_within(5000).never_starts(
            Backoff,
            &["it did not finish the handshake (initialize) within 5 s", "its stderr ends with", "protocolVersion"],
        ),
        fault("stderr-then-success").never_starts(Backoff, &["exit status 0", "usage: misbehave [--stdio]"]),
        fault("stderr-chatter").then(async |cage| {
            cage.says("echo", r#"{"text":"x"}"#).await;
            cage.works().await;
            assert!(cage.status().error.is_none() && cage.process().noise.total() == 0);
            assert!(cage.process().stderr.raw().contains("ERROR: failed to panic"));
        }),
        fault("stderr-ansi").then(async |cage| {
            cage.until("the line", |cage| cage.process().stderr.raw().contains("cleared")).await;
            let shown = cage.process().stderr.to_string();
            assert!(!shown.contains('\u{1b}') && !shown.contains('\u{7}'), "{shown:?}");
            cage.works().await;
        }),
        fault("stderr-formats").then(async |cage| {
            let stderr = || cage.process().stderr.raw().to_owned();
            cage.until("the lines", |_| stderr().contains("a line of JSON")).await;
            assert!(stderr().contains("[WARN] cache: cold\n") && stderr().contains(" ERROR db: locked\n"));
            assert_eq!(cage.process().noise.total(), 0);
            cage.works().await;
        }),
        fault("stderr-closed").works_with_noise(&[]),
    ]
}
