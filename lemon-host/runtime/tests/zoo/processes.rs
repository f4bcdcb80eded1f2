//! How a process and its children can fail to end.

use std::path::Path;

use lemon_host::{Millis, SessionOptions};

use crate::cage::is_alive;
use crate::case::{Case, fault};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        ends("ignore-eof"),
        ends("ignore-eof-and-term"),
        ends("shutdown-unanswered"),
        ends("exit-at-shutdown"),
        fault("slow-exit").timeouts(|timeouts| timeouts.eof_ms = Millis::new(30_000)).then(async |cage| {
            cage.works().await;
            cage.stop().await;
        }),
        fault("never-exits-cleanly").then(async |cage| {
            cage.stop().await;
            assert!(cage.log().contains("AssertionError: not again"), "{}", cage.log());
            assert!(cage.status().error.is_none());
            cage.host.start(&"victim".parse().unwrap()).await.unwrap();
            cage.says("pids", "{}").await;
        }),
        fault("stubborn-single").then(async |cage| {
            let others: Vec<_> = (0..3).map(|_| cage.host.session(SessionOptions::default())).collect();
            for session in &others {
                session.call("pids", "{}").await.unwrap();
            }
            assert_eq!(cage.marked().len(), 3);
            cage.stop().await;
        }),
        fault("exit-between-calls").then(async |cage| {
            assert_eq!(cage.says("echo", r#"{"text":"x"}"#).await, "x");
            cage.until("its end", |cage| cage.notes.has("state backoff")).await;
            let failure = cage.status().failure.unwrap().to_string();
            assert!(failure.contains("exit status 5"), "{failure}");
            cage.comes_back().await;
        }),
        fault("answer-and-exit").then(async |cage| {
            assert_eq!(cage.says("echo", r#"{"text":"x"}"#).await.len(), 1024 * 1024);
            cage.comes_back().await;
        }),
        fault("fds").then(async |cage| {
            assert_eq!(cage.says("fds", "{}").await, "[0, 1, 2]");
        }),
        fault("behind-wrapper").then(async |cage| {
            cage.says("echo", r#"{"text":"x"}"#).await;
            assert_eq!(cage.marked().len(), 2);
            cage.stop().await;
        }),
        fault("fork-bomb").spec(|spec| spec.rlimits.processes = Some(50)).then(async |cage| {
            let said = cage.says("echo", r#"{"text":"x"}"#).await;
            // The system holds root to no number of processes.
            let is_root = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap()) == 0;
            assert!(said.starts_with("refused after ") || is_root, "{said}");
            cage.stop().await;
        }),
        grandchild("grandchild"),
        grandchild("grandchild-setsid"),
        grandchild("grandchild-stubborn"),
        fault("grandchild-holds-stdout").then(async |cage| {
            let child = cage.says("grandchild", "{}").await;
            let error = cage.echo().await.unwrap_err().to_string();
            assert!(error.contains("ended during the call: exit status 7"), "{error}");
            cage.until("the end of the child", |_| !is_alive(child.parse().unwrap())).await;
            cage.comes_back().await;
        }),
        fault("zombies").then(async |cage| {
            cage.works().await;
            let pid = cage.process().pid;
            cage.stop().await;
            assert!(!Path::new(&format!("/proc/{pid}")).exists(), "the plugin itself is a zombie");
        }),
    ]
}

/// It works, and is gone when it was stopped.
fn ends(name: &'static str) -> Case {
    fault(name).then(async |cage| {
        cage.works().await;
        cage.stop().await;
    })
}

/// It works, and is gone when it was stopped, and so is what it started.
fn grandchild(name: &'static str) -> Case {
    fault(name).then(async |cage| {
        let child = cage.says("grandchild", "{}").await.parse().unwrap();
        assert!(is_alive(child));
        cage.works().await;
        cage.stop().await;
        assert!(!is_alive(child), "{child} is left");
    })
}
