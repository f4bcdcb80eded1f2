//! The benchmark still runs, and everyone in it gets the right answers. How fast is for people to judge.
#![expect(clippy::disallowed_methods, reason = "the benchmark is a program, and no plugin")]

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

#[test]
fn every_contestant_is_answered_and_counted_in_every_measure() {
    let output = Command::new(env!("CARGO_BIN_EXE_lemon-bench"))
        .args(["--quick", "--json", "--rounds", "2", "--calls", "5"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut calls = BTreeMap::new();
    for measure in report["measures"].as_array().unwrap() {
        for row in measure["rows"].as_array().unwrap() {
            let place = measure["placement"].as_str().unwrap_or("-");
            let key = format!("{} {place} {}", measure["kind"].as_str().unwrap(), row["contestant"].as_str().unwrap());
            assert!(row["value"]["median"].is_number(), "{key}");
            calls.insert(key, row["calls"].as_u64().unwrap());
        }
    }
    for name in ["raw", "floor", "pipeline"] {
        assert_eq!(calls[&format!("round_trip one_processor {name}")], 10);
        assert_eq!(calls[&format!("in_flight one_processor {name}")], 200);
        assert_eq!(calls[&format!("echo one_processor {name}")], 2);
        assert_eq!(calls[&format!("allocations one_processor {name}")], 5);
        // A machine with one processor says that it measured nothing on two.
        let two = ["round_trip", "in_flight", "echo"].map(|kind| format!("{kind} two_processors {name}"));
        assert!(two.iter().all(|key| calls.contains_key(key)) || report["notes"][0].is_string(), "{calls:?}");
    }
    assert_eq!(calls["memory - pipeline"], 50);
}
