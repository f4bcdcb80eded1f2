//! What a call through the host costs, beside bare pipes and the least that a host can do. `docs/benchmarks.md` says
//! how to read the figures.
//!
//! The contestants take turns in short blocks within one run, so that what else the machine does hits all of them, and
//! ratios are taken within each round. The same program is host, plugin and measure of memory.
#![expect(clippy::print_stdout, reason = "it is a program that prints figures")]

mod args;
mod contestant;
mod cpu;
mod measure;
mod memory;
mod payload;
mod report;
mod server;
mod stats;

use anyhow::Result;
use args::{Mode, Options};

#[global_allocator]
static ALLOCATOR: alloc_tracker::Allocator<std::alloc::System> = alloc_tracker::Allocator::system();

fn main() -> Result<()> {
    // First of all: this program is also started as the guard of the plugins.
    lemon_host::guard::init();
    let Options { mode, run } = args::parse();
    match mode {
        Some(Mode::ServeBytes { cpu, request, answer }) => server::bytes(cpu, request, answer),
        Some(Mode::ServeCalls { cpu }) => server::calls(cpu),
        Some(Mode::Memory { plugins }) => memory::tell(plugins),
        None => {
            let report = measure::all(&run)?;
            if run.json {
                println!("{}", serde_json::to_string_pretty(&report)?);
            } else {
                print!("{report}");
            }
            Ok(())
        }
    }
}
