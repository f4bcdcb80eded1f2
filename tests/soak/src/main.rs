//! A host with plugins that fail at random, for as long as one likes, and what is left afterwards. `docs/soak.md` has
//! what is checked, and the figures of a long run.
//!
//! The same program is host, plugin, and what plugins leave behind.
#![expect(clippy::print_stdout, reason = "it is a program that prints figures")]

mod args;
mod caller;
mod deed;
mod judge;
mod measure;
mod plan;
mod plugin;
mod report;
mod run;
mod system;
mod tally;
mod trend;

use std::time::UNIX_EPOCH;

use anyhow::{Result, ensure};
use args::{Mode, Options};
use clap::Parser as _;

/// Knows what is allocated and not freed: what the system says of a process's memory is mostly what its allocator keeps.
#[global_allocator]
static HEAP: cap::Cap<std::alloc::System> = cap::Cap::new(std::alloc::System, usize::MAX);

fn main() -> Result<()> {
    // First of all: this program is also started as the guard of the plugins.
    lemon_host::guard::init();
    let Options { mode, run } = Options::parse();
    match mode {
        Some(Mode::Plugin { name, dialect, ledger }) => return plugin::serve(name, dialect, ledger),
        Some(Mode::Linger { own_session }) => return plugin::linger(own_session),
        Some(Mode::Measure { case }) => {
            println!("{}", serde_json::to_string(&measure::one(case)?)?);
            return Ok(());
        }
        None => {}
    }
    if run.measure {
        let table = measure::all()?;
        if run.json {
            println!("{}", serde_json::to_string_pretty(&table.0)?);
        } else {
            print!("{table}");
        }
        return Ok(());
    }
    let clock = || UNIX_EPOCH.elapsed().map_or(1, |since| since.as_secs());
    let report = run::run(&run, run.seed.unwrap_or_else(clock))?;
    if run.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{report}");
    }
    ensure!(report.violations == 0, "{} violations", report.violations);
    Ok(())
}
