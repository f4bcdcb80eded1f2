//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Drives a host with plugins that fail at random, and says what is left of it afterwards
///
/// Ends with status 1 if a call, a process or memory was lost or anything else that is promised did not hold; each such
/// violation is told with the seed, the caller and its step. docs/soak.md has what is checked.
#[derive(Debug, Parser)]
#[command(name = "lemon-soak", max_term_width = 100)]
pub(crate) struct Options {
    #[command(subcommand)]
    pub(crate) mode: Option<Mode>,
    #[command(flatten)]
    pub(crate) run: Run,
}

/// What this program does when it is started by itself.
#[derive(Debug, Subcommand)]
pub(crate) enum Mode {
    /// Be a plugin with one tool
    #[command(hide = true)]
    Plugin { name: String, dialect: Dialect, ledger: Option<PathBuf> },
    /// Measure one case
    #[command(hide = true)]
    Measure { case: Case },
    /// Be a process that a plugin left behind
    #[command(hide = true)]
    Linger {
        #[arg(long)]
        own_session: bool,
    },
}

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Case {
    Idle,
    Kill,
    Exit,
    BothWays,
    Progress,
    Stderr,
    EndlessLine,
    LargeNotes,
    LargeRequests,
    Requests,
    StoppedReader,
    SlowReader,
}

/// What a plugin speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Dialect {
    /// Lemon's protocol, with any number of sessions in one process
    Lemon,
    /// Lemon's protocol, with one session in a process
    Single,
    /// MCP alone
    Mcp,
}

impl Dialect {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Lemon => "lemon",
            Self::Single => "single",
            Self::Mcp => "mcp",
        }
    }
}

/// How long, how many, and from which seed.
#[derive(Debug, Clone, Args)]
pub(crate) struct Run {
    /// Go on until so many calls were made
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub(crate) calls: u64,

    /// Go on until so many processes crashed and were started again
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) crashes: u64,

    /// How many plugins there are, four at the least
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u64).range(4..=64))]
    pub(crate) plugins: u64,

    /// What the decisions come from; the same seed makes each caller decide the same [default: the time]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,

    /// Threads of the host's runtime; 0 is the runtime that the lemon command has
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(0..=64))]
    pub(crate) threads: u64,

    /// In place of a soak, measure memory and times at their worst
    #[arg(long)]
    pub(crate) measure: bool,

    /// Print JSON in place of a table
    #[arg(long)]
    pub(crate) json: bool,
}
