//! The figures, for people and for machines.

use std::fmt;

use serde::Serialize;

use crate::args::{Kind, Placement};
use crate::contestant::Name;
use crate::stats::Spread;

/// Everything that was measured.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// The processor's name, as the system tells it.
    processor: String,
    rounds: usize,
    pub(crate) measures: Vec<Measure>,
    /// What was not measured, and why.
    pub(crate) notes: Vec<String>,
}

/// One measure, of all contestants.
#[derive(Debug, Serialize)]
pub(crate) struct Measure {
    pub(crate) kind: KindName,
    /// None where it does not matter.
    pub(crate) placement: Option<PlacementName>,
    pub(crate) rows: Vec<Row>,
}

/// One contestant's values, and their ratios within each round.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) contestant: Name,
    /// Calls that were answered, warming up left out; for the memory: plugins.
    pub(crate) calls: usize,
    pub(crate) value: Spread,
    /// The 99th percentile of times, the bytes of allocations.
    pub(crate) also: Option<Spread>,
    pub(crate) to_raw: Option<Spread>,
    pub(crate) to_floor: Option<Spread>,
}

impl Row {
    /// None without a value.
    pub(crate) fn new(contestant: Name, calls: usize, value: Option<Spread>, also: Option<Spread>) -> Option<Self> {
        Some(Self { contestant, calls, value: value?, also, to_raw: None, to_floor: None })
    }
}

/// [`Kind`] with its name in JSON, its title and its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KindName {
    RoundTrip,
    InFlight,
    Echo,
    Allocations,
    Memory,
}

impl From<Kind> for KindName {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::RoundTrip => Self::RoundTrip,
            Kind::InFlight => Self::InFlight,
            Kind::Echo => Self::Echo,
            Kind::Allocations => Self::Allocations,
            Kind::Memory => Self::Memory,
        }
    }
}

/// [`Placement`] with its name in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PlacementName {
    OneProcessor,
    TwoProcessors,
}

impl From<Placement> for PlacementName {
    fn from(placement: Placement) -> Self {
        match placement {
            Placement::One => Self::OneProcessor,
            Placement::Two => Self::TwoProcessors,
        }
    }
}

impl Report {
    pub(crate) fn new(rounds: usize) -> Self {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        let processor = name.map_or("unknown processor", |(_, name)| name.trim()).to_owned();
        Self { processor, rounds, measures: Vec::new(), notes: Vec::new() }
    }

    fn ratio(&self, kind: KindName, ratio: impl Fn(&Row) -> Option<Spread>) -> Option<f64> {
        let of_one =
            |measure: &&Measure| measure.kind == kind && measure.placement == Some(PlacementName::OneProcessor);
        let rows = &self.measures.iter().find(of_one)?.rows;
        Some(ratio(rows.iter().find(|row| row.contestant == Name::Pipeline)?)?.median)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { processor, rounds, measures, notes } = self;
        writeln!(f, "{processor}, {rounds} rounds. median [lower quartile - upper quartile]; ratios are taken within")?;
        writeln!(f, "each round.")?;
        for measure in measures {
            writeln!(f, "\n{measure}")?;
        }
        for note in notes {
            writeln!(f, "\nnote: {note}")?;
        }
        if let Some(ratio) = self.ratio(KindName::RoundTrip, |row| row.to_raw) {
            writeln!(f, "\naim: a round trip on one processor takes at most 2 x raw; it takes {ratio:.2} x.")?;
        }
        if let Some(ratio) = self.ratio(KindName::InFlight, |row| row.to_floor) {
            writeln!(f, "aim: with 64 in flight on one processor at least 0.6 x the floor; it is {ratio:.2} x.")?;
        }
        Ok(())
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (title, value, also) = match self.kind {
            KindName::RoundTrip => ("a small call, one at a time", "median, us", "p99, us"),
            KindName::InFlight => ("small calls, 64 at a time", "calls/s", ""),
            KindName::Echo => ("1 MiB there and back", "median, us", "p99, us"),
            KindName::Allocations => ("what the host allocates for a small call", "times", "bytes"),
            KindName::Memory => ("what an idle plugin costs the host", "KiB", ""),
        };
        let place = match self.placement {
            _ if self.kind == KindName::Allocations => "",
            Some(PlacementName::OneProcessor) => ", host and plugin on one processor",
            Some(PlacementName::TwoProcessors) => ", on a processor each",
            None => "",
        };
        writeln!(f, "{title}{place}")?;
        write!(f, "  {:<9} {value:>26} {also:>26} {:>20} {:>20}", "", "x raw", "x floor")?;
        for row in &self.rows {
            let also = row.also.filter(|_| !also.is_empty());
            write!(f, "\n  {:<9} {:>26} {:>26}", row.contestant.as_str(), absolute(Some(row.value)), absolute(also))?;
            write!(f, " {:>20} {:>20}", relative(row.to_raw), relative(row.to_floor))?;
        }
        Ok(())
    }
}

fn absolute(spread: Option<Spread>) -> String {
    let Some(Spread { median, low, high }) = spread else { return String::new() };
    let places = if median < 1000.0 { 1 } else { 0 };
    if low == high {
        return format!("{median:.places$}");
    }
    format!("{median:.places$} [{low:.places$} - {high:.places$}]")
}

fn relative(spread: Option<Spread>) -> String {
    let Some(Spread { median, low, high }) = spread else { return String::new() };
    if low == high {
        return format!("{median:.2}");
    }
    format!("{median:.2} [{low:.2} - {high:.2}]")
}
