//! What a plugin asks of the host, and how that can go wrong.

use lemon_host::CallError;

use crate::case::{Case, fault};

const RELAY: &str = r#"{"tool":"told","arguments":{}}"#;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        fault("none").named("a call from within a call").then(async |cage| {
            assert_eq!(cage.says("relay", RELAY).await, "told");
            cage.works().await;
        }),
        fault("roots").then(async |cage| {
            let told = cage.says("roots", "{}").await;
            assert!(told.starts_with("-32601: "), "{told}");
            cage.works().await;
        }),
        fault("unknown-reverse").then(async |cage| {
            let told = cage.says("nonsense", "{}").await;
            assert!(told.starts_with("-32601: "), "{told}");
            cage.works().await;
        }),
        fault("reverse-first").then(async |cage| {
            let told = cage.says("early", "{}").await;
            assert!(told.starts_with("not_ready: "), "{told}");
            cage.works().await;
        }),
        relay_is_refused("stale-parent", &["stale: "]),
        relay_is_refused("no-parent", &["-32602: "]),
        relay_is_refused("cycle", &["cycle: ", "relay → relay"]),
        fault("deep-chain").then(async |cage| {
            let told = cage.says("link_1", "{}").await;
            assert!(told.contains("too_deep: ") && told.contains("link_7 → link_8 → link_9"), "{told}");
            cage.works().await;
        }),
        fault("reverse-flood").then(async |cage| {
            let ends: serde_json::Value = serde_json::from_str(&cage.says("relay", RELAY).await).unwrap();
            let count = |kind: &str| ends[kind].as_u64().unwrap_or(0);
            assert!(count("ok") >= 64 && count("ok") + count("busy") == 200, "{ends}");
            cage.works().await;
        }),
        fault("reverse-and-answer").then(async |cage| {
            let told = cage.says("relay", r#"{"tool":"endless","arguments":{}}"#).await;
            assert_eq!(told, "did not wait");
            // Whatever had begun by then has been told to end.
            cage.until("its end", |cage| cage.notes.count("endless begins") == cage.notes.count("endless ends")).await;
            cage.works().await;
        }),
        fault("reply-ignored").then(async |cage| {
            let call = cage.session.call("relay", r#"{"tool":"told","arguments":{}}"#);
            let error = call.deadline(std::time::Duration::from_millis(500)).await.unwrap_err();
            assert!(matches!(error, CallError::Timeout { .. }), "{error}");
            cage.works().await;
        }),
        fault("odd-reverse-ids").then(async |cage| {
            assert_eq!(cage.says("echo", r#"{"text":"x"}"#).await, r#"["id", "jsonrpc", "result"]"#);
            assert_eq!(cage.noise("bad_id"), 6);
            cage.works().await;
        }),
        fault("reverse-same-id").traced().then(async |cage| {
            // The first one is under way until the second one is refused.
            let patient = r#"{"tool":"patient","arguments":{"until":"\"error\":"}}"#;
            let told = cage.says("relay", patient).await;
            assert!(told.contains("is already in use") && told.contains(r#""text": "told""#), "{told}");
            cage.works().await;
        }),
        fault("reverse-after-shutdown").traced().then(async |cage| {
            cage.works().await;
            cage.stop().await;
            assert!(cage.notes.has(r#""kind":"shutting_down""#), "{}", cage.notes.all());
        }),
    ]
}

/// The reverse call of relay is refused, for the reason that has all the parts.
fn relay_is_refused(name: &'static str, parts: &'static [&'static str]) -> Case {
    fault(name).then(async move |cage| {
        let told = cage.says("relay", RELAY).await;
        for part in parts {
            assert!(told.contains(part), "{told:?} lacks {part:?}");
        }
        cage.works().await;
    })
}
