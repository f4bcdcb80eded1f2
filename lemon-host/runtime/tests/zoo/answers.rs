//! Answers that are wrong in their form.

use std::time::Duration;

use lemon_host::CallError;

use crate::case::{Case, fault};

const LIMIT: usize = 16 * 1024 * 1024;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        fault("twice").works_with_noise(&[("extra_answer", 1)]),
        fault("twice initialize").named("to initialize").works_with_noise(&[("extra_answer", 1)]),
        fault("string-id").call_fails(&["its answer to tools/call", "is the string"]),
        fault("string-id initialize").named("to initialize").never_starts(
            crate::case::NotStarted::Failed,
            &["it broke the protocol during the handshake (initialize)", "is the string"],
        ),
        fault("unknown-id").works_with_noise(&[("unknown_id", 1)]),
        fault("odd-answer-ids").works_with_noise(&[("bad_id", 5)]),
        fault("null-id-error").works_with_noise(&[("null_id_error", 1)]),
        fault("result-null").call_fails(&["broke the protocol", "not an object"]),
        fault("result-and-error").call_fails(&["broke the protocol", "more than one of"]),
        fault("neither").call_fails(&["broke the protocol", "none of method, result and error"]),
        fault("wrong-result").call_fails(&["broke the protocol", "its result can't be read"]),
        fault("structured-mismatch").then(async |cage| {
            let result = cage.echo().await.unwrap();
            assert_eq!(result.structured_content().unwrap().get(), r#"{"n": "seven"}"#);
            cage.works().await;
        }),
        fault("batch").call_fails(&["did not answer tools/call within 1 s; one line that it wrote was dropped"]),
        fault("duplicate-keys").call_fails(&["broke the protocol"]),
        fault("deep-nesting").then(async |cage| {
            // Passed on as it is, or refused.
            match cage.echo().await {
                Ok(result) => assert!(result.raw().get().contains(&"[".repeat(10_000))),
                Err(error) => assert!(error.to_string().contains("broke the protocol"), "{error}"),
            }
            cage.works().await;
        }),
        fault("odd-numbers").then(async |cage| {
            let result = cage.echo().await.unwrap();
            for number in ["1e999", "-0.0", "18446744073709551616", &"9".repeat(400)] {
                assert!(result.raw().get().contains(number), "{result:?}");
            }
            cage.works().await;
        }),
        fault("nan").call_fails(&["broke the protocol"]),
        fault("lone-surrogate").then(async |cage| {
            let result = cage.echo().await.unwrap();
            assert!(result.raw().get().contains(r"half \ud83c of a lemon"), "{result:?}");
            assert_eq!(result.texts().count(), 1);
            cage.works().await;
        }),
        fault("invalid-utf8").call_fails(&["broke the protocol", "UTF-8"]),
        huge_line("huge-line 16777215", "a byte below the limit", None),
        huge_line("huge-line 16777216", "at the limit", None),
        huge_line("huge-line 16777217", "a byte above the limit", Some(LIMIT + 1)),
        huge_line("huge-line", "far above the limit", Some(20 * 1024 * 1024)),
        fault("endless-line").then(async |cage| {
            let error = cage.echo().await.unwrap_err();
            assert!(matches!(error, CallError::TooLarge { limit: LIMIT, .. }), "{error}");
            assert_eq!(cage.noise("oversized"), 1);
            // Its line ends nowhere, so nothing else can be read; what it never ends costs no memory.
            let error = cage.session.call("pids", "{}").deadline(Duration::from_millis(500)).await.unwrap_err();
            assert!(matches!(error, CallError::Timeout { .. }), "{error}");
        }),
        fault("split-utf8").then(async |cage| {
            assert_eq!(cage.says("echo", r#"{"text":"a"}"#).await, "a é漢🍋");
            assert_eq!(cage.process().noise.total(), 0);
        }),
        fault("two-writes").works_with_noise(&[]),
        fault("crlf").works_with_noise(&[("blank", 1)]),
        fault("escaped-method").then(async |cage| {
            let mut call = cage.session.call("progress", r#"{"steps":1}"#);
            let mut progress = call.progress();
            call.await.unwrap();
            assert!(progress.next().await.is_some());
            cage.works().await;
        }),
        fault("stdout-noise").works_with_noise(&[("not_json", 1), ("not_object", 1)]),
        fault("noise-before-message").call_fails(&["within 1 s; one line that it wrote was dropped as noise"]),
        fault("noise-inside").call_fails(&["broke the protocol", "not acceptable"]),
        fault("interleaved").then(async |cage| {
            let (one, two) = tokio::join!(cage.echo_within(1000), cage.echo_within(1000));
            assert!(one.is_err() && two.is_err());
            assert_eq!(cage.noise("not_json"), 2);
            cage.works().await;
        }),
        fault("unflushed").then(async |cage| {
            let error = cage.echo_within(500).await.unwrap_err();
            assert!(matches!(error, CallError::Timeout { dropped: 0, .. }), "{error}");
            cage.works().await;
            cage.stop().await;
        }),
        fault("unterminated-answer").call_costs_the_process(&["ended during the call: exit status 0"]),
        fault("noise-flood 900").named("below the limit").works_with_noise(&[("not_json", 900)]),
        fault("noise-flood")
            .named("above the limit")
            .call_costs_the_process(&["lines that are no message (limit 1000", "this is no message"]),
        fault("noise-flood 100000").named("far above the limit").call_costs_the_process(&["limit 1000"]),
    ]
}

/// An answer whose line has a length of its own, and at which length it is refused, if it is.
fn huge_line(fault_and_arg: &'static str, name: &str, refused: Option<usize>) -> Case {
    fault(fault_and_arg).named(name).then(async move |cage| {
        match (cage.echo().await, refused) {
            (Ok(result), None) => assert!(result.raw().get().len() > LIMIT - 200),
            (Err(CallError::TooLarge { bytes, limit: LIMIT, .. }), Some(length)) => {
                assert!((LIMIT..=length).contains(&bytes), "{bytes}");
                cage.until("the end of the line", |cage| cage.noise("oversized") == 1).await;
            }
            (outcome, _) => panic!("{outcome:?}"),
        }
        cage.works().await;
    })
}
