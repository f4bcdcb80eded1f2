//! Real processes: how they start, what they inherit, how they end, what protects them.
//!
//! Every test of the first list runs twice: in this program, which can be its own guard, and (as
//! `tied::…`) in this program started again without one. Whatever is killed to see what happens is
//! also this program, started again in a role.

#![expect(clippy::disallowed_methods, reason = "these tests need processes that lemon-process did not start")]
#![allow(
    clippy::exit,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "clippy takes these for no tests, as they have no libtest"
)]

mod ending;
mod errors;
mod guarded;
mod hosts;
mod inheritance;
mod leaks;
mod logging;
mod support;

use libtest_mimic::{Arguments, Failed, Trial};

/// The environment variable that starts this program without a guard.
const TIED: &str = "LEMON_TEST_TIED";

type Test = (&'static str, fn());

fn main() {
    let tied = std::env::var_os(TIED).is_some();
    if !tied {
        lemon_process::guard::init();
    }
    if let Some(role) = std::env::var_os(hosts::ROLE) {
        return hosts::play(&role.to_string_lossy());
    }

    // A panic that a test wants is no news to whoever reads the output.
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if std::thread::current().name() != Some(PANICS) {
            told(panic);
        }
    }));

    let mut both = Vec::new();
    both.extend(ending::TESTS);
    both.extend(errors::TESTS);
    both.extend(inheritance::TESTS);
    both.extend(leaks::TESTS);
    let mut trials: Vec<Trial> = both.iter().map(|(name, test)| trial(name, *test)).collect();
    if tied {
        trials.extend(guarded::TIED_TESTS.iter().map(|(name, test)| trial(name, *test)));
    } else {
        let once = guarded::TESTS.iter().chain(logging::TESTS);
        trials.extend(once.map(|(name, test)| trial(name, *test)));
        both.extend(guarded::TIED_TESTS);
        trials.extend(both.iter().map(|(name, _)| tied_trial(name)));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// The name of threads that are to panic.
const PANICS: &str = "panics";

fn trial(name: &str, test: fn()) -> Trial {
    Trial::test(name, move || {
        test();
        Ok(())
    })
}

/// The same test in a program without a guard.
fn tied_trial(name: &'static str) -> Trial {
    Trial::test(format!("tied::{name}"), move || {
        let program = std::env::current_exe()?;
        let mut command = std::process::Command::new(program);
        let output = command.args(["--exact", name]).env(TIED, "1").output()?;
        if output.status.success() {
            return Ok(());
        }
        let [stdout, stderr] = [output.stdout, output.stderr];
        let text = [String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr)];
        Err(Failed::from(text.join("\n")))
    })
}
