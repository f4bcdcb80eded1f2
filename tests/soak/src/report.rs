//! What the run brought, for people and for machines.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::args::Run;
use crate::system::{Reading, machine};
use crate::tally::Tally;
use crate::trend::Course;

/// The figures of a run.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    machine: String,
    seed: u64,
    plugins: u64,
    threads: u64,
    seconds: f64,
    calls_made: u64,
    calls_ended: u64,
    /// Processes that were lost, and another one got ready in their place.
    cycles: u64,
    outcomes: BTreeMap<&'static str, u64>,
    commands: BTreeMap<&'static str, u64>,
    processes_ready: u64,
    processes_lost: u64,
    backoffs: u64,
    failed: u64,
    degraded: u64,
    shutdown_seconds: f64,
    before: Reading,
    during: Reading,
    after: Reading,
    /// Resident memory.
    rss: Course,
    /// What is allocated and not freed.
    heap: Course,
    pub(crate) violations: u64,
    first_violations: Vec<String>,
}

impl Report {
    pub(crate) fn new(
        options: &Run,
        seed: u64,
        took: Duration,
        shutdown: Duration,
        [before, during, after]: [Reading; 3],
        [rss, heap]: [Course; 2],
        tally: &Tally,
    ) -> Self {
        let processes = tally.processes();
        let (first_violations, violations) = tally.violations();
        Self {
            machine: machine(),
            seed,
            plugins: options.plugins,
            threads: options.threads,
            seconds: took.as_secs_f64(),
            calls_made: tally.made(),
            calls_ended: tally.resolved(),
            cycles: tally.cycles(),
            outcomes: tally.outcomes(),
            commands: tally.commands(),
            processes_ready: processes.ready,
            processes_lost: processes.lost,
            backoffs: processes.backoffs,
            failed: processes.failed,
            degraded: processes.degraded,
            shutdown_seconds: shutdown.as_secs_f64(),
            before,
            during,
            after,
            rss,
            heap,
            violations,
            first_violations,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { machine, seed, plugins, threads, seconds, before, during, after, .. } = self;
        writeln!(f, "{machine}, seed {seed}, {plugins} plugins, {threads} threads, {seconds:.0} s\n")?;
        writeln!(f, "  {:<24} {:>10} {:>10} {:>10}", "of the host", "before", "during", "after")?;
        let mut row = |name: &str, of: fn(&Reading) -> u64| {
            writeln!(f, "  {name:<24} {:>10} {:>10} {:>10}", of(before), of(during), of(after))
        };
        row("processes", |reading| reading.processes as u64)?;
        row("zombies", |reading| reading.zombies as u64)?;
        row("threads", |reading| reading.threads as u64)?;
        row("descriptors", |reading| reading.descriptors as u64)?;
        row("memory, KiB", |reading| reading.rss_kib)?;
        row("heap, KiB", |reading| reading.heap_kib)?;
        writeln!(f, "  the shutdown took {:.2} s\n", self.shutdown_seconds)?;
        writeln!(f, "  {:<24} {:>10} {:>10} {:>10} {:>13}", "KiB over the run", "early", "late", "peak", "2nd half")?;
        for (name, course) in [("memory", &self.rss), ("heap", &self.heap)] {
            let Course { early_kib, late_kib, peak_kib, gained_kib } = course;
            writeln!(f, "  {name:<24} {early_kib:>10.0} {late_kib:>10.0} {peak_kib:>10.0} {gained_kib:>+13.0}")?;
        }
        writeln!(f)?;
        writeln!(f, "  calls made {}, ended {}", self.calls_made, self.calls_ended)?;
        for (kind, count) in &self.outcomes {
            writeln!(f, "    {kind:<24} {count:>10}")?;
        }
        writeln!(
            f,
            "  processes ready {}, lost {}, replaced after that {}",
            self.processes_ready, self.processes_lost, self.cycles
        )?;
        let (backoffs, failed, degraded) = (self.backoffs, self.failed, self.degraded);
        writeln!(f, "  plugins waited for a restart {backoffs} times, failed {failed}, were degraded {degraded}")?;
        writeln!(f, "  commands")?;
        for (kind, count) in &self.commands {
            writeln!(f, "    {kind:<24} {count:>10}")?;
        }
        writeln!(f, "\n  violations {}", self.violations)?;
        for violation in &self.first_violations {
            writeln!(f, "    {violation}")?;
        }
        Ok(())
    }
}
