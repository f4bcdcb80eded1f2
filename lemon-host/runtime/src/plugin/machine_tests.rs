//! The machine under any order of events, against a model of the processes that its effects make.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::limits::{Limits, Timeouts};
use lemon_process::ExitStatus;

use crate::error::{Phase, ProcessEnd};
use crate::report::PluginText;

fn transient() -> StartError {
    StartError::NotReading { bytes: 1 }
}

fn exit(code: i32) -> StartError {
    let status = ProcessEnd::Exited(ExitStatus::Code(code));
    StartError::Exited { phase: Phase::Initialize, status, stderr: PluginText::new("") }
}

fn permanent() -> StartError {
    StartError::McpVersion { version: PluginText::new("1999-01-01") }
}

/// Processes and waits as the actor would have them.
struct World {
    machine: Machine,
    now: Instant,
    /// Launched and not ended.
    alive: HashSet<Generation>,
    ending: HashSet<Generation>,
    draining: HashSet<Generation>,
    waits: Vec<Generation>,
    open: HashSet<TicketId>,
    resolved: HashMap<TicketId, Verdict>,
    issued: u64,
}

impl World {
    fn new() -> Self {
        Self {
            machine: Machine::new(RestartPolicy::new(&Limits::default(), &Timeouts::default()), || 0.0),
            now: Instant::now(),
            alive: HashSet::new(),
            ending: HashSet::new(),
            draining: HashSet::new(),
            waits: Vec::new(),
            open: HashSet::new(),
            resolved: HashMap::new(),
            issued: 0,
        }
    }

    fn on(&mut self, event: Event) {
        if let Event::Ended(generation) = &event {
            self.alive.remove(generation);
            self.ending.remove(generation);
            self.draining.remove(generation);
        }
        for effect in self.machine.on(event, self.now) {
            match effect {
                Effect::Launch(generation) => {
                    assert!(self.alive.insert(generation), "a generation is launched once");
                }
                Effect::Switch(generation) => assert!(self.alive.contains(&generation)),
                Effect::Drain(generation) => {
                    self.draining.insert(generation);
                }
                Effect::End(generation, _) => {
                    assert!(self.alive.contains(&generation), "only what was launched is ended");
                    self.ending.insert(generation);
                }
                Effect::Wait(generation, _) => self.waits.push(generation),
                Effect::Resolve(ticket, verdict) => {
                    assert!(self.open.remove(&ticket), "a ticket is resolved once");
                    self.resolved.insert(ticket, verdict);
                }
            }
        }
        assert!(self.alive.len() <= 2, "at most a current process and one beside it: {:?}", self.alive);
        let machine = &self.machine;
        if matches!(machine.state(), StateKind::Ready | StateKind::Degraded) {
            let waits_for = |goal| machine.candidate().is_some_and(|candidate| goal == Goal::Reloaded(candidate));
            let answered = machine.tickets.iter().all(|(_, goal)| waits_for(*goal));
            assert!(answered, "a plugin that is ready keeps nobody waiting but for its candidate: {machine:?}");
        }
    }

    fn command(&mut self, command: Command) -> TicketId {
        self.issued += 1;
        let ticket = TicketId(self.issued);
        self.open.insert(ticket);
        self.on(Event::Command(command, ticket));
        ticket
    }

    /// Lets everything that is under way come to its end.
    fn settle(&mut self, starts_succeed: bool) {
        for _ in 0..50 {
            if let Some(generation) = self.ending.iter().next().copied() {
                self.on(Event::Ended(generation));
            } else if let Some(generation) = self.draining.iter().next().copied() {
                self.draining.remove(&generation);
                self.on(Event::Drained(generation));
            } else if matches!(self.machine.state(), StateKind::Spawning | StateKind::Handshaking)
                || self.machine.candidate().is_some()
            {
                for generation in self.alive.clone() {
                    self.on(Event::Spawned(generation));
                    let event = if starts_succeed {
                        Event::Ready(generation)
                    } else {
                        Event::StartFailed(generation, permanent())
                    };
                    self.on(event);
                }
            } else {
                return;
            }
        }
        panic!("no rest in {:?}", self.machine.state());
    }
}

fn generation(number: u64) -> Generation {
    (0..number).fold(Generation::NONE, |generation, _| generation.next())
}

#[derive(Debug, Clone)]
enum Step {
    Command(Command),
    Demand,
    Event(u8, u64),
    Time(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let command = prop_oneof![
        Just(Command::Start),
        Just(Command::Stop),
        Just(Command::Restart),
        Just(Command::Reload),
        Just(Command::Kill)
    ];
    prop_oneof![
        3 => command.prop_map(Step::Command),
        1 => Just(Step::Demand),
        // Generations near the current one, stale ones included.
        8 => (0u8..15, 0u64..4).prop_map(|(event, back)| Step::Event(event, back)),
        1 => (1u64..200).prop_map(Step::Time),
    ]
}

proptest! {
    #[test]
    fn any_order_of_events_keeps_the_promises(steps in prop::collection::vec(step(), 1..80), shut_down: bool) {
        let mut world = World::new();
        for step in steps {
            match step {
                Step::Command(command) => { world.command(command); }
                Step::Demand => world.on(Event::Demand),
                Step::Time(seconds) => world.now += Duration::from_secs(seconds),
                Step::Event(event, back) => {
                    let latest = world.machine.latest.0;
                    let generation = generation(latest.saturating_sub(back));
                    let alive = world.alive.contains(&generation);
                    if !alive && generation != world.machine.latest {
                        let before = format!("{:?}", world.machine);
                        for stale in about(generation) {
                            prop_assert_eq!(world.machine.on(stale, world.now), [], "of a process that is gone");
                        }
                        prop_assert_eq!(format!("{:?}", world.machine), before);
                    }
                    match event {
                        0 | 1 if alive => world.on(Event::Spawned(generation)),
                        2 | 3 if alive => world.on(Event::Ready(generation)),
                        4 if alive => world.on(Event::StartFailed(generation, transient())),
                        5 if alive => world.on(Event::StartFailed(generation, permanent())),
                        6 if alive => world.on(Event::Lost(generation, transient())),
                        7 if world.draining.remove(&generation) => world.on(Event::Drained(generation)),
                        8 if world.ending.contains(&generation) => world.on(Event::Ended(generation)),
                        9 => world.on(Event::PingLate(generation)),
                        10 => world.on(Event::PingAnswered(generation)),
                        11 => world.on(Event::TooManyAbandoned(generation)),
                        12 => world.on(Event::BackoffOver(generation)),
                        13 => world.on(Event::Idle(generation)),
                        14 => world.on(Event::GoodReply(generation)),
                        _ => {}
                    }
                }
            }
        }
        if shut_down {
            // At any moment the end leaves no process and no ticket.
            world.on(Event::ShutDown);
            world.settle(true);
            prop_assert_eq!(world.machine.state(), StateKind::Dormant);
            prop_assert!(world.alive.is_empty() && world.open.is_empty());
            return Ok(());
        }
        // No state without a way out: a stop always leads to rest, and every ticket is resolved.
        world.command(Command::Stop);
        world.settle(true);
        prop_assert_eq!(world.machine.state(), StateKind::Dormant);
        prop_assert!(world.alive.is_empty(), "{:?} left", world.alive);
        prop_assert!(world.open.is_empty(), "{:?} unresolved", world.open);
        // And a start leads to a plugin that is ready.
        let start = world.command(Command::Start);
        world.settle(true);
        prop_assert_eq!(world.machine.state(), StateKind::Ready);
        prop_assert_eq!(&world.resolved[&start], &Ok(()));
        world.on(Event::ShutDown);
        world.settle(true);
        prop_assert!(world.alive.is_empty());
    }
}

/// Every event that is about one generation.
fn about(generation: Generation) -> [Event; 12] {
    [
        Event::Spawned(generation),
        Event::Ready(generation),
        Event::StartFailed(generation, transient()),
        Event::Lost(generation, transient()),
        Event::Drained(generation),
        Event::Ended(generation),
        Event::PingLate(generation),
        Event::PingAnswered(generation),
        Event::TooManyAbandoned(generation),
        Event::Idle(generation),
        Event::GoodReply(generation),
        Event::BackoffOver(generation),
    ]
}

/// A start that fails, waited for until the plugin is at rest.
fn failed_start(world: &mut World, error: StartError) {
    let generation = world.machine.current();
    world.on(Event::Spawned(generation));
    world.on(Event::StartFailed(generation, error));
    world.on(Event::Ended(generation));
}

/// The delay is over.
fn next_try(world: &mut World) {
    world.on(Event::BackoffOver(world.machine.latest));
    assert_eq!(world.machine.state(), StateKind::Spawning);
}

#[test]
fn the_same_exit_twice_before_the_plugin_is_ready_is_final() {
    let mut world = World::new();
    world.on(Event::Demand);
    for code in [3, 4, 3] {
        failed_start(&mut world, exit(code));
        assert_eq!(world.machine.state(), StateKind::Backoff, "another status may mean another reason");
        next_try(&mut world);
    }
    failed_start(&mut world, exit(3));
    assert_eq!(world.machine.state(), StateKind::Failed);
    assert_eq!(world.machine.failure().unwrap().0.to_string(), exit(3).to_string());
    // A user's start counts from the beginning.
    world.command(Command::Start);
    failed_start(&mut world, exit(3));
    assert_eq!(world.machine.state(), StateKind::Backoff);
}

#[test]
fn an_exit_of_a_plugin_that_was_ready_in_between_is_not_the_same_again() {
    let mut world = World::new();
    world.on(Event::Demand);
    failed_start(&mut world, exit(3));
    next_try(&mut world);
    world.settle(true);
    world.on(Event::Lost(world.machine.current(), transient()));
    world.settle(true);
    next_try(&mut world);
    failed_start(&mut world, exit(3));
    assert_eq!(world.machine.state(), StateKind::Backoff);
}

fn ready() -> World {
    let mut world = World::new();
    world.on(Event::Demand);
    world.settle(true);
    assert_eq!(world.machine.state(), StateKind::Ready);
    world
}

#[test]
fn a_stop_stays_stopped_whatever_asks_for_the_plugin() {
    let mut world = ready();
    world.command(Command::Stop);
    world.settle(true);
    world.on(Event::Demand);
    world.now += Duration::from_secs(1000);
    world.on(Event::Demand);
    assert_eq!(world.machine.state(), StateKind::Dormant);
    assert!(world.alive.is_empty());
}

#[test]
fn a_scheduled_restart_dies_with_a_stop() {
    let mut world = ready();
    world.on(Event::Lost(world.machine.current(), transient()));
    world.settle(true);
    assert_eq!(world.machine.state(), StateKind::Backoff);
    let scheduled = world.waits[0];
    world.command(Command::Stop);
    world.on(Event::BackoffOver(scheduled));
    assert_eq!(world.machine.state(), StateKind::Dormant);
}

#[test]
fn a_failure_that_can_not_get_better_is_final_at_once() {
    let mut world = World::new();
    world.on(Event::Demand);
    world.settle(false);
    assert_eq!(world.machine.state(), StateKind::Failed);
    world.on(Event::Demand);
    assert_eq!(world.machine.state(), StateKind::Failed, "one attempt a minute");
    world.now += Duration::from_secs(60);
    world.on(Event::Demand);
    world.settle(true);
    assert_eq!(world.machine.state(), StateKind::Ready);
    assert!(world.machine.failure().is_none());
}

#[test]
fn a_failed_reload_keeps_the_old_process_and_tells() {
    let mut world = ready();
    let old = world.machine.current();
    let reload = world.command(Command::Reload);
    let second = world.command(Command::Reload);
    assert!(matches!(world.resolved[&second], Err(Refusal(CommandError::Reloading))));
    world.settle(false);
    assert_eq!((world.machine.state(), world.machine.current()), (StateKind::Ready, old));
    assert!(matches!(world.resolved[&reload], Err(Refusal(CommandError::Start(_)))));
    assert_eq!(world.alive.len(), 1);
}

#[test]
fn an_exclusive_plugin_is_stopped_before_its_next_process() {
    let mut world = ready();
    world.machine.set_exclusive(true);
    world.command(Command::Reload);
    assert_eq!(world.machine.state(), StateKind::Draining);
    assert_eq!(world.alive.len(), 1);
    world.settle(true);
    assert_eq!(world.machine.state(), StateKind::Ready);
}

#[test]
fn a_candidate_takes_over_when_the_current_process_is_lost() {
    let mut world = ready();
    let reload = world.command(Command::Reload);
    world.on(Event::Lost(world.machine.current(), transient()));
    world.settle(true);
    assert_eq!(world.machine.state(), StateKind::Ready);
    assert_eq!(world.resolved[&reload], Ok(()));
}

#[test]
fn a_start_is_answered_by_a_candidate_that_is_ready_before_the_lost_process_is_gone() {
    let mut world = ready();
    let old = world.machine.current();
    let reload = world.command(Command::Reload);
    world.on(Event::Lost(old, transient()));
    let start = world.command(Command::Start);
    let new = Generation(old.0 + 1);
    world.on(Event::Spawned(new));
    world.on(Event::Ready(new));
    assert_eq!((&world.resolved[&reload], &world.resolved[&start]), (&Ok(()), &Ok(())));
}

#[test]
fn a_kill_ends_the_replaced_process_too_and_waits_for_it() {
    let mut world = ready();
    let old = world.machine.current();
    world.command(Command::Reload);
    let new = Generation(old.0 + 1);
    world.on(Event::Spawned(new));
    world.on(Event::Ready(new));
    let kill = world.command(Command::Kill);
    assert_eq!(world.ending, HashSet::from([old, new]));
    world.on(Event::Ended(new));
    assert!(!world.resolved.contains_key(&kill));
    world.on(Event::Ended(old));
    assert_eq!(world.resolved[&kill], Ok(()));
}

#[test]
fn a_restart_right_after_a_reload_lets_the_replaced_process_finish_its_calls() {
    let mut world = ready();
    let old = world.machine.current();
    world.command(Command::Reload);
    let new = Generation(old.0 + 1);
    world.on(Event::Spawned(new));
    world.on(Event::Ready(new));
    world.command(Command::Restart);
    assert_eq!((&world.ending, &world.draining), (&HashSet::new(), &HashSet::from([old, new])));
    world.settle(true);
    assert_eq!((world.machine.state(), world.alive.len()), (StateKind::Ready, 1));
}

#[test]
fn left_behind_calls_lead_to_a_restart_when_the_plugin_is_idle() {
    let mut world = ready();
    let old = world.machine.current();
    world.on(Event::TooManyAbandoned(old));
    world.on(Event::PingAnswered(old));
    assert_eq!(world.machine.state(), StateKind::Degraded, "a ping does not heal this");
    world.on(Event::Idle(old));
    world.settle(true);
    assert_eq!(world.machine.state(), StateKind::Ready);
    assert_ne!(world.machine.current(), old);
}
