//! What happens to a plugin next: a pure function from a state and an event to a state and effects.
//!
//! | state | a process? | left by |
//! |---|---|---|
//! | Dormant | no | start, demand → Spawning |
//! | Spawning | being made | spawned → Handshaking; failed → Stopping |
//! | Handshaking | yes | ready → Ready; failed → Stopping; lost → Exited |
//! | Ready | yes | late ping, abandoned calls → Degraded; stop, restart → Draining; lost → Exited |
//! | Degraded | yes | ping → Ready; idle → Stopping (to be restarted); stop, restart → Draining; lost → Exited |
//! | Draining | yes | drained → Stopping; lost → Exited |
//! | Stopping | ending | ended → Dormant, Spawning, Backoff or Failed |
//! | Exited | being swept | ended → the same |
//! | Backoff | no | its time, a start → Spawning; stop → Dormant |
//! | Failed | no | start, demand once a minute → Spawning; stop → Dormant |
//!
//! Beside the current process there is at most one other: the candidate of a reload, or the one that it replaced. An
//! event of a generation that is neither changes nothing. Every ticket is resolved, at the latest when the plugin
//! comes to rest in Dormant, Backoff or Failed.

use tokio::time::Instant;

use super::breaker::{Breaker, RestartPolicy};
use super::generation::Generation;
use super::state::{Command, CommandError, Effect, Event, Manner, Refusal, StateKind, TicketId, Verdict};
use crate::error::StartError;

#[derive(Debug, Clone)]
enum State {
    Dormant,
    Spawning,
    Handshaking,
    Ready,
    Degraded,
    Draining,
    Stopping,
    Exited,
    Backoff { until: Instant },
    Failed { since: Instant },
}

/// What follows when the current process has ended.
#[derive(Debug, Clone)]
enum Next {
    Rest,
    Launch,
    Failure(StartError),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Goal {
    Running,
    Stopped,
    /// This candidate is current.
    Reloaded(Generation),
}

/// The process beside the current one.
#[derive(Debug, Clone, PartialEq)]
enum Other {
    Candidate {
        generation: Generation,
        spawned: bool,
    },
    /// A replaced process, or a candidate that failed; it has to end.
    Leaving(Generation),
}

#[derive(Debug, Clone)]
pub(crate) struct Machine {
    state: State,
    current: Generation,
    latest: Generation,
    other: Option<Other>,
    next: Next,
    breaker: Breaker,
    ready_since: Option<Instant>,
    replied: bool,
    /// A stop holds until a start: no demand undoes it.
    pinned: bool,
    exclusive: bool,
    /// The last failure, until the plugin is ready or stopped.
    failure: Option<StartError>,
    /// How a start failed that was the last thing to happen.
    failed_start: Option<StartError>,
    tickets: Vec<(TicketId, Goal)>,
    restarts: u32,
    jitter: fn() -> f64,
}

impl Machine {
    /// A dormant plugin. `jitter` gives numbers in 0..1.
    pub(super) fn new(policy: RestartPolicy, jitter: fn() -> f64) -> Self {
        Self {
            state: State::Dormant,
            current: Generation::NONE,
            latest: Generation::NONE,
            other: None,
            next: Next::Rest,
            breaker: Breaker::new(policy),
            ready_since: None,
            replied: false,
            pinned: false,
            exclusive: false,
            failure: None,
            failed_start: None,
            tickets: Vec::new(),
            restarts: 0,
            jitter,
        }
    }

    pub(crate) fn state(&self) -> StateKind {
        match self.state {
            State::Dormant => StateKind::Dormant,
            State::Spawning => StateKind::Spawning,
            State::Handshaking => StateKind::Handshaking,
            State::Ready => StateKind::Ready,
            State::Degraded => StateKind::Degraded,
            State::Draining => StateKind::Draining,
            State::Stopping => StateKind::Stopping,
            State::Exited => StateKind::Exited,
            State::Backoff { .. } => StateKind::Backoff,
            State::Failed { .. } => StateKind::Failed,
        }
    }

    pub(crate) fn current(&self) -> Generation {
        self.current
    }

    /// Why the plugin is not running, or was not before this attempt, and when it will be tried again.
    pub(crate) fn failure(&self) -> Option<(&StartError, Option<Instant>)> {
        let failure = match &self.next {
            Next::Failure(failure) => Some(failure),
            _ => self.failure.as_ref(),
        };
        let until = match self.state {
            State::Backoff { until } => Some(until),
            _ => None,
        };
        failure.map(|failure| (failure, until))
    }

    /// Whether another process follows when the current one has ended.
    pub(crate) fn is_restarting(&self) -> bool {
        matches!(self.next, Next::Launch)
    }

    /// How often a process was started after the first.
    pub(crate) fn restarts(&self) -> u32 {
        self.restarts
    }

    /// Whether two processes must not run side by side, as the plugin said in its handshake.
    pub(crate) fn set_exclusive(&mut self, exclusive: bool) {
        self.exclusive = exclusive;
    }

    /// Takes an event in.
    pub(crate) fn on(&mut self, event: Event, now: Instant) -> Vec<Effect> {
        let mut effects = Vec::new();
        match event {
            Event::Command(command, ticket) => self.command(command, ticket, now, &mut effects),
            Event::Demand => self.demand(now, &mut effects),
            Event::Spawned(generation) => self.spawned(generation),
            Event::Ready(generation) => self.ready(generation, now, &mut effects),
            Event::StartFailed(generation, failure) => self.start_failed(generation, failure, &mut effects),
            Event::Lost(generation, failure) => self.lost(generation, failure, now, &mut effects),
            Event::Drained(generation) => self.drained(generation, &mut effects),
            Event::Ended(generation) => self.ended(generation, now, &mut effects),
            Event::ShutDown => self.shut_down(&mut effects),
            Event::PingLate(generation) | Event::TooManyAbandoned(generation) if generation == self.current => {
                if matches!(self.state, State::Ready) {
                    self.state = State::Degraded;
                }
                if matches!((&self.state, &event), (State::Degraded, Event::TooManyAbandoned(_))) {
                    self.next = Next::Launch;
                }
            }
            Event::PingAnswered(generation) if generation == self.current => {
                if matches!((&self.state, &self.next), (State::Degraded, Next::Rest)) {
                    self.state = State::Ready;
                }
            }
            Event::Idle(generation) if generation == self.current => {
                if matches!((&self.state, &self.next), (State::Degraded, Next::Launch)) {
                    self.end_current(Manner::Polite, &mut effects);
                }
            }
            Event::GoodReply(generation) if generation == self.current => self.replied = true,
            Event::BackoffOver(generation) if generation == self.latest => {
                if matches!(self.state, State::Backoff { .. }) {
                    self.launch(&mut effects);
                }
            }
            Event::PingLate(_)
            | Event::TooManyAbandoned(_)
            | Event::PingAnswered(_)
            | Event::Idle(_)
            | Event::GoodReply(_)
            | Event::BackoffOver(_) => {}
        }
        effects
    }

    fn command(&mut self, command: Command, ticket: TicketId, now: Instant, effects: &mut Vec<Effect>) {
        match command {
            Command::Stop | Command::Kill => {
                self.pinned = true;
                self.supersede(|goal| goal != Goal::Stopped, effects);
                self.tickets.push((ticket, Goal::Stopped));
                let kill = command == Command::Kill;
                self.end_other(if kill { Manner::Kill } else { Manner::Polite }, effects);
                self.stop(kill, effects);
            }
            Command::Start | Command::Restart | Command::Reload => {
                self.pinned = false;
                self.breaker.clear();
                self.failed_start = None;
                self.supersede(|goal| goal == Goal::Stopped, effects);
                self.run(command, ticket, now, effects);
            }
        }
    }

    fn stop(&mut self, kill: bool, effects: &mut Vec<Effect>) {
        match self.state {
            State::Dormant | State::Backoff { .. } | State::Failed { .. } => self.rest(effects),
            State::Spawning | State::Handshaking => {
                self.next = Next::Rest;
                self.end_current(if kill { Manner::Kill } else { Manner::Brief }, effects);
            }
            State::Ready | State::Degraded if !kill => {
                self.next = Next::Rest;
                self.state = State::Draining;
                effects.push(Effect::Drain(self.current));
            }
            State::Ready | State::Degraded | State::Draining | State::Stopping => {
                self.next = Next::Rest;
                if kill {
                    self.end_current(Manner::Kill, effects);
                }
            }
            State::Exited => self.next = Next::Rest,
        }
    }

    fn run(&mut self, command: Command, ticket: TicketId, now: Instant, effects: &mut Vec<Effect>) {
        match self.state {
            State::Dormant | State::Backoff { .. } | State::Failed { .. } => {
                self.tickets.push((ticket, Goal::Running));
                self.launch(effects);
            }
            State::Spawning | State::Handshaking => self.tickets.push((ticket, Goal::Running)),
            State::Draining | State::Stopping | State::Exited => {
                self.next = Next::Launch;
                self.tickets.push((ticket, Goal::Running));
            }
            State::Ready | State::Degraded => match command {
                Command::Start => effects.push(Effect::Resolve(ticket, Ok(()))),
                Command::Reload if !self.exclusive => {
                    if self.other.is_some() {
                        effects.push(Effect::Resolve(ticket, Err(Refusal(CommandError::Reloading))));
                        return;
                    }
                    let generation = self.number();
                    self.other = Some(Other::Candidate { generation, spawned: false });
                    self.tickets.push((ticket, Goal::Reloaded(generation)));
                    effects.push(Effect::Launch(generation));
                }
                _ => {
                    self.note_uptime(now);
                    // One that was replaced finishes its calls as well, unless no two may run.
                    if self.candidate().is_some() || self.exclusive {
                        self.end_other(Manner::Polite, effects);
                    }
                    self.next = Next::Launch;
                    self.state = State::Draining;
                    self.tickets.push((ticket, Goal::Running));
                    effects.push(Effect::Drain(self.current));
                }
            },
        }
    }

    fn shut_down(&mut self, effects: &mut Vec<Effect>) {
        self.pinned = true;
        self.next = Next::Rest;
        self.end_other(Manner::Polite, effects);
        self.resolve(|_| true, &Err(Refusal(CommandError::ShuttingDown)), effects);
        match self.state {
            State::Ready | State::Degraded | State::Draining => self.end_current(Manner::Polite, effects),
            State::Spawning | State::Handshaking => self.end_current(Manner::Brief, effects),
            State::Stopping | State::Exited => {}
            State::Dormant | State::Backoff { .. } | State::Failed { .. } => self.rest(effects),
        }
    }

    fn demand(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        match self.state {
            State::Dormant if !self.pinned => self.launch(effects),
            State::Failed { since } if now.duration_since(since) >= self.breaker.policy.half_open => {
                self.launch(effects);
            }
            _ => {}
        }
    }

    fn spawned(&mut self, generation: Generation) {
        if generation == self.current && matches!(self.state, State::Spawning) {
            self.state = State::Handshaking;
        } else if let Some(Other::Candidate { generation: candidate, spawned }) = &mut self.other
            && *candidate == generation
        {
            *spawned = true;
        }
    }

    fn ready(&mut self, generation: Generation, now: Instant, effects: &mut Vec<Effect>) {
        if generation == self.current && matches!(self.state, State::Handshaking) {
            self.come_up(now, effects);
            self.resolve(|goal| goal != Goal::Stopped, &Ok(()), effects);
        } else if self.candidate() == Some(generation) {
            let old = std::mem::replace(&mut self.current, generation);
            self.other = Some(Other::Leaving(old));
            self.come_up(now, effects);
            effects.push(Effect::Drain(old));
            // Whoever waits for another process, because the old one is on its way out, has it now.
            self.resolve(|goal| goal != Goal::Stopped, &Ok(()), effects);
        }
    }

    fn come_up(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        self.state = State::Ready;
        self.failure = None;
        self.failed_start = None;
        self.next = Next::Rest;
        self.ready_since = Some(now);
        self.replied = false;
        effects.push(Effect::Switch(self.current));
    }

    fn start_failed(&mut self, generation: Generation, failure: StartError, effects: &mut Vec<Effect>) {
        if generation == self.current && matches!(self.state, State::Spawning | State::Handshaking) {
            self.next = Next::Failure(failure);
            self.end_current(Manner::Brief, effects);
        } else if self.candidate() == Some(generation) {
            self.other = Some(Other::Leaving(generation));
            effects.push(Effect::End(generation, Manner::Brief));
            self.resolve(|goal| goal == Goal::Reloaded(generation), &Err(Refusal(failure.into())), effects);
        }
    }

    fn lost(&mut self, generation: Generation, failure: StartError, now: Instant, effects: &mut Vec<Effect>) {
        if generation == self.current {
            match self.state {
                State::Ready | State::Degraded => {
                    self.note_uptime(now);
                    // A restart that was due anyway is no failure.
                    if !matches!(self.next, Next::Launch) {
                        self.next = Next::Failure(failure);
                    }
                }
                State::Draining => {}
                _ => return,
            }
            self.state = State::Exited;
            effects.push(Effect::End(generation, Manner::Brief));
        } else if self.other == Some(Other::Leaving(generation)) {
            effects.push(Effect::End(generation, Manner::Brief));
        }
    }

    fn drained(&mut self, generation: Generation, effects: &mut Vec<Effect>) {
        if generation == self.current && matches!(self.state, State::Draining) {
            self.end_current(Manner::Polite, effects);
        } else if self.other == Some(Other::Leaving(generation)) {
            effects.push(Effect::End(generation, Manner::Polite));
        }
    }

    fn ended(&mut self, generation: Generation, now: Instant, effects: &mut Vec<Effect>) {
        if self.other == Some(Other::Leaving(generation)) {
            self.other = None;
            if matches!(self.state, State::Dormant) {
                self.resolve(|goal| goal == Goal::Stopped, &Ok(()), effects);
            }
        } else if generation == self.current && matches!(self.state, State::Stopping | State::Exited) {
            self.ready_since = None;
            match std::mem::replace(&mut self.next, Next::Rest) {
                Next::Rest => self.rest(effects),
                next if self.promote(&next) => {}
                Next::Launch => self.launch(effects),
                Next::Failure(failure) => self.fail(failure, now, effects),
            }
        }
    }

    /// A candidate that is on its way takes the place of a process that failed or was to be replaced.
    fn promote(&mut self, next: &Next) -> bool {
        let (Next::Failure(_) | Next::Launch, Some(Other::Candidate { generation, spawned })) = (next, &self.other)
        else {
            return false;
        };
        self.state = if *spawned { State::Handshaking } else { State::Spawning };
        self.current = *generation;
        self.other = None;
        true
    }

    fn fail(&mut self, failure: StartError, now: Instant, effects: &mut Vec<Effect>) {
        let verdict = Err(Refusal(failure.clone().into()));
        let delay = self.breaker.failed(now, (self.jitter)());
        // A program that twice ends the same way before it is ready will do so a third time.
        let again = self.failed_start.as_ref().is_some_and(|before| before.is_same_exit(&failure));
        self.failed_start = Some(failure.clone());
        self.failure = Some(match delay {
            _ if again || failure.is_deterministic() => {
                self.state = State::Failed { since: now };
                failure
            }
            Some(delay) => {
                self.state = State::Backoff { until: now + delay };
                effects.push(Effect::Wait(self.latest, delay));
                failure
            }
            None => {
                self.state = State::Failed { since: now };
                StartError::CircuitOpen { failures: self.breaker.failures(), last: failure.to_string() }
            }
        });
        self.resolve(|goal| goal != Goal::Stopped, &verdict, effects);
    }

    fn rest(&mut self, effects: &mut Vec<Effect>) {
        self.state = State::Dormant;
        self.failure = None;
        self.next = Next::Rest;
        // A stop has taken effect when the process beside the current one is gone as well.
        if self.other.is_none() {
            self.resolve(|goal| goal == Goal::Stopped, &Ok(()), effects);
        }
        self.resolve(|goal| goal != Goal::Stopped, &Err(Refusal(StartError::Stopped.into())), effects);
    }

    fn launch(&mut self, effects: &mut Vec<Effect>) {
        if self.current != Generation::NONE {
            self.restarts += 1;
        }
        self.current = self.number();
        self.next = Next::Rest;
        self.state = State::Spawning;
        effects.push(Effect::Launch(self.current));
    }

    fn number(&mut self) -> Generation {
        self.latest = self.latest.next();
        self.latest
    }

    fn end_current(&mut self, manner: Manner, effects: &mut Vec<Effect>) {
        self.state = State::Stopping;
        effects.push(Effect::End(self.current, manner));
    }

    /// Ends the process beside the current one; a replaced one does not get to finish its calls.
    fn end_other(&mut self, manner: Manner, effects: &mut Vec<Effect>) {
        match self.other {
            Some(Other::Candidate { generation, .. }) => {
                self.other = Some(Other::Leaving(generation));
                let manner = if manner == Manner::Kill { manner } else { Manner::Brief };
                effects.push(Effect::End(generation, manner));
                self.supersede(|goal| goal == Goal::Reloaded(generation), effects);
            }
            Some(Other::Leaving(generation)) => effects.push(Effect::End(generation, manner)),
            None => {}
        }
    }

    fn candidate(&self) -> Option<Generation> {
        match self.other {
            Some(Other::Candidate { generation, .. }) => Some(generation),
            _ => None,
        }
    }

    fn note_uptime(&mut self, now: Instant) {
        if let Some(since) = self.ready_since {
            self.breaker.was_up(now.duration_since(since), self.replied);
        }
    }

    fn supersede(&mut self, which: impl Fn(Goal) -> bool, effects: &mut Vec<Effect>) {
        self.resolve(which, &Err(Refusal(CommandError::Superseded)), effects);
    }

    fn resolve(&mut self, which: impl Fn(Goal) -> bool, verdict: &Verdict, effects: &mut Vec<Effect>) {
        self.tickets.retain(|(ticket, goal)| {
            let resolved = which(*goal);
            if resolved {
                effects.push(Effect::Resolve(*ticket, verdict.clone()));
            }
            !resolved
        });
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
