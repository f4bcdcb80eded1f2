//! What is counted while the run goes on.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lemon_host::{Event, EventSink, StateKind};

/// All counts of a run.
#[derive(Default)]
pub(crate) struct Tally {
    made: AtomicU64,
    resolved: AtomicU64,
    cycles: AtomicU64,
    over: AtomicBool,
    outcomes: Mutex<BTreeMap<&'static str, u64>>,
    commands: Mutex<BTreeMap<&'static str, u64>>,
    processes: Mutex<Processes>,
    violations: Mutex<Violations>,
}

/// What the host told of its plugins' processes.
#[derive(Debug, Default, Clone)]
pub(crate) struct Processes {
    /// Processes that got ready.
    pub(crate) ready: u64,
    /// Processes that ended by themselves, or had to be given up.
    pub(crate) lost: u64,
    /// How often a plugin waited for its restart.
    pub(crate) backoffs: u64,
    /// How often a plugin failed for good.
    pub(crate) failed: u64,
    /// How often a plugin was found to be slow to react.
    pub(crate) degraded: u64,
    /// Lost processes in whose place none is ready yet, by plugin.
    missing: BTreeMap<String, u64>,
}

#[derive(Debug, Default)]
struct Violations {
    first: Vec<String>,
    all: u64,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tally {
    pub(crate) fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    pub(crate) fn resolved(&self) -> u64 {
        self.resolved.load(Ordering::Relaxed)
    }

    /// How often a process was lost and another one got ready in its place.
    pub(crate) fn cycles(&self) -> u64 {
        self.cycles.load(Ordering::Relaxed)
    }

    pub(crate) fn make(&self) {
        self.made.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn resolve(&self, kind: &'static str) {
        self.resolved.fetch_add(1, Ordering::Relaxed);
        *locked(&self.outcomes).entry(kind).or_default() += 1;
    }

    pub(crate) fn command(&self, kind: &'static str) {
        *locked(&self.commands).entry(kind).or_default() += 1;
    }

    /// Notes what must not happen.
    pub(crate) fn violation(&self, what: String) {
        /// More say no more.
        const KEPT: usize = 50;
        let mut violations = locked(&self.violations);
        violations.all += 1;
        if violations.first.len() < KEPT {
            violations.first.push(what);
        }
    }

    /// No caller begins anything from now on.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    pub(crate) fn outcomes(&self) -> BTreeMap<&'static str, u64> {
        locked(&self.outcomes).clone()
    }

    pub(crate) fn commands(&self) -> BTreeMap<&'static str, u64> {
        locked(&self.commands).clone()
    }

    pub(crate) fn processes(&self) -> Processes {
        locked(&self.processes).clone()
    }

    /// The first violations, and how many there are.
    pub(crate) fn violations(&self) -> (Vec<String>, u64) {
        let violations = locked(&self.violations);
        (violations.first.clone(), violations.all)
    }

    fn state(&self, plugin: &str, state: StateKind) {
        let mut processes = locked(&self.processes);
        match state {
            StateKind::Exited => {
                processes.lost += 1;
                *processes.missing.entry(plugin.to_owned()).or_default() += 1;
            }
            StateKind::Ready => {
                processes.ready += 1;
                if let Some(missing @ 1..) = processes.missing.get_mut(plugin) {
                    *missing -= 1;
                    self.cycles.fetch_add(1, Ordering::Relaxed);
                }
            }
            StateKind::Backoff => processes.backoffs += 1,
            StateKind::Failed => processes.failed += 1,
            StateKind::Degraded => processes.degraded += 1,
            _ => {}
        }
    }
}

/// Counts what the host tells.
pub(crate) struct Ear(pub(crate) std::sync::Arc<Tally>);

impl EventSink for Ear {
    fn event(&self, event: &Event) {
        if let Event::State { plugin, state, .. } = event {
            self.0.state(plugin.as_str(), *state);
        }
    }
}
