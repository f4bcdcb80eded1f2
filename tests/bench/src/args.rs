//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::contestant::Name;

/// Measures a call through the host beside bare pipes (raw) and the least that a host can do (floor)
#[derive(Debug, Parser)]
#[command(name = "lemon-bench", max_term_width = 100)]
pub(crate) struct Options {
    #[command(subcommand)]
    pub(crate) mode: Option<Mode>,
    #[command(flatten)]
    pub(crate) run: Run,
}

/// What this program does when it is started by itself.
#[derive(Debug, Subcommand)]
pub(crate) enum Mode {
    /// Answer each so many bytes with so many others
    #[command(hide = true)]
    ServeBytes { cpu: usize, request: usize, answer: usize },
    /// Be a plugin with one tool
    #[command(hide = true)]
    ServeCalls { cpu: usize },
    /// Start so many plugins and tell how much memory the host has
    #[command(hide = true)]
    Memory { plugins: usize },
}

/// What is measured, and how often.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Take seconds in place of minutes; the spread is larger
    #[arg(long)]
    pub(crate) quick: bool,

    /// Print JSON in place of tables
    #[arg(long)]
    pub(crate) json: bool,

    /// Measure only this; may be given more than once
    #[arg(long, value_name = "MEASURE")]
    pub(crate) only: Vec<Kind>,

    /// Measure only with host and plugin on so many processors
    #[arg(long, value_name = "PLACEMENT")]
    pub(crate) on: Option<Placement>,

    /// Measure only this contestant, such as to profile it; may be given more than once
    #[arg(long, value_name = "NAME")]
    pub(crate) contestant: Vec<Name>,

    /// How often each contestant has its turn [default: 61, with --quick 11]
    #[arg(long, value_name = "N")]
    pub(crate) rounds: Option<usize>,

    /// How many small calls a turn has [default: 1000, with --quick 300]
    #[arg(long, value_name = "N")]
    pub(crate) calls: Option<usize>,
}

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Small calls, one at a time
    RoundTrip,
    /// Small calls, 64 at a time
    InFlight,
    /// One MiB there and back
    Echo,
    /// What the host allocates for a small call
    Allocations,
    /// What an idle plugin costs the host
    Memory,
}

/// Where host and plugin run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Placement {
    /// Both on one processor
    One,
    /// On one each
    Two,
}

pub(crate) fn parse() -> Options {
    Options::parse()
}

impl Run {
    pub(crate) fn rounds(&self) -> usize {
        self.rounds.unwrap_or(if self.quick { 11 } else { 61 }).max(1)
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls.unwrap_or(if self.quick { 300 } else { 1000 }).max(1)
    }

    pub(crate) fn wants(&self, kind: Kind) -> bool {
        self.only.is_empty() || self.only.contains(&kind)
    }

    pub(crate) fn wants_contestant(&self, name: Name) -> bool {
        self.contestant.is_empty() || self.contestant.contains(&name)
    }
}
