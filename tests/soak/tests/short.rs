//! The short form of the soak: all that the long one checks, with fewer calls.
#![expect(clippy::disallowed_methods, reason = "the soak is a program, and no plugin")]
#![expect(clippy::unwrap_used, reason = "tests")]

use std::process::Command;

use serde_json::Value;

const CALLS: u64 = 5000;
const CYCLES: u64 = 60;

/// Runs the soak; a violation fails it.
fn soak(seed: u64, threads: u64) -> Value {
    let numbers = [("--calls", CALLS), ("--crashes", CYCLES), ("--seed", seed), ("--threads", threads)];
    let args = numbers.into_iter().flat_map(|(flag, number)| [flag.to_owned(), number.to_string()]);
    let output = Command::new(env!("CARGO_BIN_EXE_lemon-soak")).args(args).arg("--json").output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "seed {seed}: {stdout}\n{stderr}");
    serde_json::from_str(&stdout).unwrap()
}

fn all_is_accounted_for(report: &Value) {
    let number = |key: &str| report[key].as_u64().unwrap();
    assert!(number("calls_made") >= CALLS && number("cycles") >= CYCLES, "{report}");
    assert_eq!(number("calls_made"), number("calls_ended"));
    let outcomes: u64 = report["outcomes"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(outcomes, number("calls_ended"));
    for key in ["processes", "zombies", "threads", "descriptors"] {
        assert_eq!(report["before"][key], report["after"][key], "{key}");
    }
    assert!(report["during"]["processes"].as_u64() >= Some(4), "the plugins were seen while they ran: {report}");
}

#[test]
fn a_host_with_threads_loses_no_call_and_leaves_nothing_behind() {
    all_is_accounted_for(&soak(1, 2));
}

#[test]
fn a_host_on_one_thread_loses_no_call_and_leaves_nothing_behind() {
    all_is_accounted_for(&soak(2, 0));
}
