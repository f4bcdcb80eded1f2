//! Every fault of `tests/misbehaving` under the real host, each beside a well-behaved plugin that must not notice.
//!
//! A case is a fault and what the host has to do about it, which is the last column of the fault's row in
//! `tests/misbehaving/README.md`. The program itself tells which faults there are: one without a case fails, and so
//! does a case whose fault is gone. The last line counts them.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::exit,
    reason = "clippy takes these for no tests, as they have no libtest"
)]

mod answers;
mod cage;
mod calls;
mod case;
mod configuration;
mod handshake;
mod listing;
mod processes;
mod programs;
mod reverse;
mod seams;
mod stderr;
mod text;
mod witness;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use case::Case;
use libtest_mimic::{Arguments, Failed, Trial};

/// Most of a case is waiting.
const SIDE_BY_SIDE: usize = 6;

fn main() {
    lemon_host::guard::init();
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(SIDE_BY_SIDE);
    let faults = faults();
    let cases: Vec<Case> = [
        handshake::cases(),
        answers::cases(),
        calls::cases(),
        configuration::cases(),
        listing::cases(),
        reverse::cases(),
        processes::cases(),
        stderr::cases(),
        text::cases(),
        programs::cases(),
    ]
    .into_iter()
    .flatten()
    .collect();
    let covered: BTreeSet<String> = cases.iter().filter_map(Case::fault).map(str::to_owned).collect();
    let run_and_failed = Arc::new(Mutex::new((BTreeSet::new(), BTreeSet::new())));
    let mut trials = vec![Trial::test("each fault has a case, and each case a fault", {
        let (faults, covered) = (faults.clone(), covered.clone());
        move || all_are_covered(&faults, &covered)
    })];
    for case in cases {
        let (fault, name, ends) = (case.fault().map(str::to_owned), case.name().to_owned(), run_and_failed.clone());
        trials.push(Trial::test(name, move || {
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| case.run()));
            if let Some(fault) = fault {
                let mut ends = ends.lock().unwrap();
                if outcome.is_err() {
                    ends.1.insert(fault.clone());
                }
                ends.0.insert(fault);
            }
            outcome.map_err(|panic| Failed::from(said(&*panic)))
        }));
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    if !arguments.list {
        let ends = run_and_failed.lock().unwrap();
        let (all, covered) = (faults.len(), covered.intersection(&faults).count());
        let passing = ends.0.difference(&ends.1).count();
        println!("faults in the catalogue: {all}, covered: {covered}, passing: {passing} of {} that ran", ends.0.len());
        println!("the slowest call of a well-behaved plugin beside them: {:?}", witness::slowest());
    }
    conclusion.exit();
}

/// The faults that the program knows.
#[expect(clippy::disallowed_methods, reason = "a question to the program, not a plugin")]
fn faults() -> BTreeSet<String> {
    let listed = std::process::Command::new("python3").args([&cage::root(cage::PROGRAM), "--list"]).output().unwrap();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let listed = String::from_utf8(listed.stdout).unwrap();
    listed.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

fn all_are_covered(faults: &BTreeSet<String>, covered: &BTreeSet<String>) -> Result<(), Failed> {
    let (without_case, without_fault): (Vec<_>, Vec<_>) =
        (faults.difference(covered).collect(), covered.difference(faults).collect());
    if without_case.is_empty() && without_fault.is_empty() {
        return Ok(());
    }
    Err(format!("faults without a case: {without_case:?}; cases without a fault: {without_fault:?}").into())
}

/// What a panic says.
fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without a text").to_owned()
}
