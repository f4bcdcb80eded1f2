//! What is left of many starts: nothing.

use std::fs;

use lemon_process::Spawner;

use super::Test;
use super::hosts::Host;
use super::support::*;

pub(crate) const TESTS: &[Test] = &[("two_hundred_starts_leave_nothing", two_hundred_starts_leave_nothing)];

/// In a program of its own, since other tests open files too.
fn two_hundred_starts_leave_nothing() {
    let mut host = Host::start("leaks");
    assert_eq!(host.line(), "ok");
    assert!(host.wait().success());
}

pub(crate) fn role() {
    let spawner = Spawner::new();
    let round = || {
        run(async {
            for _ in 0..20 {
                let mut process = spawner.spawn(&sh("sleep 1000 & read line")).unwrap();
                drop(process.stdin.take());
                process.control().end(PATIENT).await;
                drop(spawner.spawn(&spec("/bin/cat", &[])).unwrap());
                spawner.spawn(&spec("/nonexistent", &[])).unwrap_err();
                spawner.spawn(&spec("/etc/passwd", &[])).unwrap_err();
            }
        });
    };
    // The first round opens what stays: the line to the guard, the terminal's null.
    round();
    let before = (open_files(), children());
    (0..5).for_each(|_| round());
    let after = (open_files(), children());
    assert_eq!(before, after);
    println!("ok");
}

fn open_files() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// The children of this program, dead or alive, whichever thread started them.
fn children() -> usize {
    let threads = fs::read_dir("/proc/self/task").unwrap().flatten();
    let lists = threads.map(|thread| fs::read_to_string(thread.path().join("children")).unwrap_or_default());
    lists.map(|list| list.split_whitespace().count()).sum()
}
