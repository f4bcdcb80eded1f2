//! What becomes of a real process's stderr.

use std::borrow::Cow;
use std::fs;
use std::sync::Arc;

use lemon_process::ExitStatus;
use lemon_process::stderr::{LogFile, StderrSink, StderrTail, drain};

use super::Test;
use super::support::*;

pub(crate) const TESTS: &[Test] = &[
    ("ten_mebibytes_without_a_line_break_are_drained", ten_mebibytes_without_a_line_break_are_drained),
    ("a_flood_of_lines_is_drained_and_logged", a_flood_of_lines_is_drained_and_logged),
    ("a_secret_reaches_neither_tail_nor_log", a_secret_reaches_neither_tail_nor_log),
    ("a_log_that_fails_stops_nothing", a_log_that_fails_stops_nothing),
    ("a_silent_process_makes_no_log", a_silent_process_makes_no_log),
    ("an_idle_drain_is_small", an_idle_drain_is_small),
];

/// Runs a script whose stderr goes to `sink`, until both have ended.
fn drained(script: &str, sink: StderrSink) {
    run(async {
        let mut process = spawn(&sh(script));
        let draining = tokio::spawn(drain(process.stderr.take().unwrap(), sink));
        drop(process.stdin.take());
        assert_eq!(process.control().exited().await, ExitStatus::Code(0));
        draining.await.unwrap();
        process.control().end(PATIENT).await;
    });
}

fn logged(log: &LogFile) -> StderrSink {
    StderrSink { log: Some(log.clone()), ..StderrSink::default() }
}

fn ten_mebibytes_without_a_line_break_are_drained() {
    let sink = StderrSink::default();
    let tail = sink.tail.clone();
    drained("head -c 10485760 /dev/zero >&2", sink);
    assert_eq!(tail.total_bytes(), 10 * 1024 * 1024);
    assert!(tail.text().len() <= StderrTail::DEFAULT_CAPACITY);
    assert!(tail.last_lines(1)[0].ends_with("… (10477568 more bytes)"));
}

fn a_flood_of_lines_is_drained_and_logged() {
    let dir = tempfile::tempdir().unwrap();
    let log = LogFile::new(dir.path().join("flood.log"), 8 * 1024 * 1024);
    let sink = logged(&log);
    let tail = sink.tail.clone();
    drained("seq 100000 >&2", sink);
    assert_eq!(tail.last_lines(2), ["99999", "100000"]);
    let text = fs::read_to_string(log.path()).unwrap();
    assert_eq!(text.lines().count(), 100_000);
    let (time, line) = text.lines().next().unwrap().split_once(' ').unwrap();
    assert_eq!((time.len(), time.ends_with('Z'), line), (24, true, "1"));
    assert!(log.failed().is_none());
}

fn a_secret_reaches_neither_tail_nor_log() {
    let dir = tempfile::tempdir().unwrap();
    let log = LogFile::new(dir.path().join("secret.log"), LogFile::DEFAULT_MAX_BYTES);
    let sink =
        StderrSink { filter: Arc::new(|line| Cow::Owned(line.replace("hunter2", "[redacted]"))), ..logged(&log) };
    let tail = sink.tail.clone();
    // Written in two parts, as a filter of chunks would miss it.
    drained("printf 'the key is hun' >&2; sleep 0.05; echo ter2. >&2", sink);
    assert_eq!(tail.text(), "the key is [redacted].\n");
    let text = fs::read_to_string(log.path()).unwrap();
    assert!(text.ends_with("Z the key is [redacted].\n"), "{text}");
}

fn a_log_that_fails_stops_nothing() {
    let log = LogFile::new("/dev/null/nowhere/x.log", LogFile::DEFAULT_MAX_BYTES);
    let sink = logged(&log);
    let tail = sink.tail.clone();
    drained("seq 100000 >&2", sink);
    assert_eq!(tail.last_lines(1), ["100000"]);
    assert!(log.failed().is_some());
}

fn a_silent_process_makes_no_log() {
    let dir = tempfile::tempdir().unwrap();
    let log = LogFile::new(dir.path().join("logs/silent.log"), LogFile::DEFAULT_MAX_BYTES);
    let sink = logged(&log);
    let tail = sink.tail.clone();
    drained("true", sink);
    assert!(tail.is_empty());
    assert!(!dir.path().join("logs").exists());
}

fn an_idle_drain_is_small() {
    run(async {
        let mut process = spawn(&spec("/bin/cat", &[]));
        let draining = drain(process.stderr.take().unwrap(), StderrSink::default());
        assert!(size_of_val(&draining) < 2048, "{}", size_of_val(&draining));
    });
}
