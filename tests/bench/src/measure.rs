//! Who is measured when: in each round every contestant has its turn, and another one begins in the next.

use std::time::Duration;

use anyhow::Result;

use crate::args::{Kind, Placement, Run};
use crate::contestant::{Contestant, Name};
use crate::cpu;
use crate::memory;
use crate::payload::Payload;
use crate::report::{Measure, Report, Row};
use crate::stats::{Spread, percentiles};

/// Calls that are under way at once, where it is more than one: the slots that a plugin has.
const WIDTH: usize = 64;

/// Idle plugins, where their memory is measured.
const PLUGINS: usize = 50;

type Contestants = Vec<(Name, Box<dyn Contestant>)>;

/// Measures what is wanted.
pub(crate) fn all(run: &Run) -> Result<Report> {
    let mut report = Report::new(run.rounds());
    let cpus = cpu::allowed()?;
    for placement in [Placement::One, Placement::Two] {
        if run.on.is_some_and(|on| on != placement) {
            continue;
        }
        let (host, plugin) = match (placement, cpus.as_slice()) {
            (Placement::One, [.., last]) => (*last, *last),
            (Placement::Two, [.., other, last]) => (*last, *other),
            _ => {
                report.notes.push("this program may use one processor only".to_owned());
                continue;
            }
        };
        cpu::pin(host)?;
        let wanted = Name::ALL.into_iter().filter(|name| run.wants_contestant(*name));
        let mut contestants = wanted.map(|name| Ok((name, name.start(plugin)?))).collect::<Result<Contestants>>()?;
        for kind in [Kind::RoundTrip, Kind::InFlight, Kind::Echo, Kind::Allocations] {
            // What is allocated does not depend on the processors.
            let once = kind == Kind::Allocations && placement == Placement::Two && run.on.is_none();
            if run.wants(kind) && !once {
                report.measures.push(measure(kind, placement, run, &mut contestants)?);
            }
        }
    }
    if run.wants(Kind::Memory) && run.wants_contestant(Name::Pipeline) {
        let value = Spread::of([memory::per_plugin(PLUGINS)?]);
        let row = Row::new(Name::Pipeline, PLUGINS, value, None);
        report.measures.push(Measure { kind: Kind::Memory.into(), placement: None, rows: row.into_iter().collect() });
    }
    Ok(report)
}

/// What a contestant's turns brought, one value a turn.
#[derive(Default)]
struct Turns {
    calls: usize,
    values: Vec<f64>,
    also: Vec<f64>,
}

fn measure(kind: Kind, placement: Placement, run: &Run, contestants: &mut Contestants) -> Result<Measure> {
    let mut all: Vec<Turns> = contestants.iter().map(|_| Turns::default()).collect();
    for (_, contestant) in &mut *contestants {
        turn(kind, run, &mut **contestant, &mut Turns::default())?;
    }
    let rounds = if kind == Kind::Allocations { 1 } else { run.rounds() };
    for round in 0..rounds {
        for n in 0..contestants.len() {
            let n = (n + round) % contestants.len();
            turn(kind, run, &mut *contestants[n].1, &mut all[n])?;
        }
    }
    let values = |name| {
        let index = contestants.iter().position(|(other, _)| *other == name)?;
        Some(all[index].values.clone())
    };
    let (raw, floor) = (values(Name::Raw), values(Name::Floor));
    let rows = contestants.iter().zip(&all).filter_map(|((name, _), turns)| {
        let ratio = |to: &Option<Vec<f64>>| {
            let ratios = turns.values.iter().zip(to.as_ref()?).map(|(value, to)| value / to);
            Spread::of(ratios.filter(|ratio| ratio.is_finite()))
        };
        let row = Row::new(*name, turns.calls, Spread::of(turns.values.clone()), Spread::of(turns.also.clone()))?;
        // Bare pipes allocate nothing, which nothing can be compared with.
        let to_raw = ratio(&raw).filter(|_| kind != Kind::Allocations);
        Some(Row { to_raw, to_floor: ratio(&floor), ..row })
    });
    Ok(Measure { kind: kind.into(), placement: Some(placement.into()), rows: rows.collect() })
}

fn turn(kind: Kind, run: &Run, contestant: &mut dyn Contestant, turns: &mut Turns) -> Result<()> {
    let calls = match kind {
        Kind::RoundTrip | Kind::Allocations => run.calls(),
        Kind::InFlight => run.calls() * 20,
        Kind::Echo | Kind::Memory => run.calls().div_ceil(100),
    };
    let mut times = vec![Duration::ZERO; calls];
    let (value, also) = match kind {
        Kind::RoundTrip => {
            contestant.one_by_one(&Payload::small(), &mut times)?;
            percentiles(&mut times).unwrap_or_default()
        }
        Kind::Echo => {
            contestant.one_by_one(&Payload::large(), &mut times)?;
            percentiles(&mut times).unwrap_or_default()
        }
        Kind::InFlight | Kind::Memory => {
            let took = contestant.side_by_side(&Payload::small(), calls, WIDTH)?;
            (calls as f64 / took.as_secs_f64(), 0.0)
        }
        Kind::Allocations => allocations(contestant, &mut times)?,
    };
    turns.calls += calls;
    turns.values.push(value);
    turns.also.push(also);
    Ok(())
}

/// How often a call allocates, and how many bytes. The whole of a host on a current-thread runtime is on this thread.
fn allocations(contestant: &mut dyn Contestant, times: &mut [Duration]) -> Result<(f64, f64)> {
    let (payload, calls) = (Payload::small(), times.len() as u64);
    let session = alloc_tracker::Session::new().no_stdout().no_file();
    let operation = session.operation("calls");
    let span = operation.measure_thread().iterations(calls);
    contestant.one_by_one(&payload, times)?;
    drop(span);
    let report = session.to_report();
    let each = |total: u64| total as f64 / calls as f64;
    let totals = report
        .operations()
        .map(|(_, operation)| (each(operation.total_allocations_count()), each(operation.total_bytes_allocated())));
    Ok(totals.last().unwrap_or_default())
}
