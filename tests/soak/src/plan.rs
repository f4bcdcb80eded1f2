//! What each caller does, in which order: decided by the seed, the plugin and the caller's number alone. When it happens
//! is up to the machine, and what a caller does about a plugin that is gone does not change what it does next.

use std::time::Duration;

use fastrand::Rng;

use crate::args::Dialect;
use crate::deed::Deed;

/// The plugin that does nothing wrong and is left alone.
pub(crate) const HEALTHY: &str = "healthy";

/// What is expected of a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Does nothing wrong and is left alone: each of its calls succeeds.
    Healthy,
    /// Does nothing wrong and gets another process again and again: each of its calls succeeds all the same.
    Replaced,
    /// Does everything wrong, for one caller: each call ends exactly as its deed says.
    Solo,
    /// Does everything wrong, for many callers who also stop it and kill it: a call may end for another one's deed.
    Wild,
}

/// One plugin of the run.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) dialect: Dialect,
    pub(crate) callers: usize,
}

/// The plugins of a run of so many.
pub(crate) fn cast(plugins: usize) -> Vec<Part> {
    let part = |name: &str, role, dialect, callers| Part { name: name.to_owned(), role, dialect, callers };
    let mut parts = vec![
        part(HEALTHY, Role::Healthy, Dialect::Lemon, 2),
        part("replaced", Role::Replaced, Dialect::Lemon, 2),
        part("solo", Role::Solo, Dialect::Lemon, 1),
        // Each caller has a session, and each session a process.
        part("single", Role::Wild, Dialect::Single, 3),
        part("plain", Role::Wild, Dialect::Mcp, 8),
    ];
    parts.truncate(plugins);
    let more = parts.len()..plugins;
    parts.extend(more.map(|n| part(&format!("wild{n}"), Role::Wild, Dialect::Lemon, 8)));
    parts
}

/// What a caller does next.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Call(Planned),
    Command(Command),
    /// Ends its session and begins another one.
    NewSession,
    /// Changes its session's state, which the plugin is told with the next call.
    State,
}

/// A call, as it is to be made.
#[derive(Debug, Clone)]
pub(crate) struct Planned {
    pub(crate) deed: Deed,
    /// Milliseconds, for what is late.
    pub(crate) after: u64,
    /// Bytes that the answer has to repeat.
    pub(crate) pad: usize,
    pub(crate) deadline: Duration,
    pub(crate) change_of_mind: Option<(Change, Duration)>,
    /// If the plugin is gone afterwards: wait until it comes back by itself.
    pub(crate) is_patient: bool,
}

/// What a caller does in the middle of its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// Drops the call.
    Drop,
    /// Cancels the call by its token, and waits for its end.
    Cancel,
    /// Closes the session.
    Close,
}

/// What a user can ask of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    Start,
    Stop,
    Restart,
    Reload,
    Kill,
}

/// How often a plugin has to do what, of so many calls together.
const DEEDS: &[(Deed, u32)] = &[
    (Deed::Answer, 92_000),
    (Deed::Large, 600),
    (Deed::Late, 1500),
    (Deed::LateDeaf, 200),
    (Deed::Never, 200),
    (Deed::NeverDeaf, 40),
    (Deed::Fail, 300),
    (Deed::Error, 300),
    (Deed::CrashBefore, 400),
    (Deed::CrashMid, 300),
    (Deed::CrashAfter, 400),
    (Deed::Killed, 300),
    (Deed::Garbage, 100),
    (Deed::Flood, 30),
    (Deed::Twice, 300),
    (Deed::StrangeIds, 300),
    (Deed::CloseStdout, 20),
    (Deed::CloseStdin, 10),
    (Deed::ProgressStorm, 30),
    (Deed::LogStorm, 10),
    (Deed::ListStorm, 20),
    (Deed::Stderr, 30),
    (Deed::Oversized, 30),
    (Deed::Child, 40),
    (Deed::ChildOwnSession, 40),
    (Deed::Relay, 500),
    (Deed::StopReading, 6),
    (Deed::StopItself, 6),
    (Deed::OutliveEnd, 20),
];

/// One caller's decisions.
pub(crate) struct Plan {
    rng: Rng,
    role: Role,
}

impl Plan {
    pub(crate) fn new(seed: u64, part: usize, caller: usize, role: Role) -> Self {
        let mixed = seed ^ ((part as u64 + 1) << 32) ^ ((caller as u64 + 1) << 48);
        Self { rng: Rng::with_seed(mixed), role }
    }

    pub(crate) fn next(&mut self) -> Step {
        let dice = self.rng.u32(0..3000);
        match (self.role, dice) {
            (_, 0..2) => Step::NewSession,
            (_, 2..30) => Step::State,
            (Role::Replaced, 30..40) => {
                Step::Command(self.rng.choice([Command::Reload, Command::Restart]).unwrap_or(Command::Reload))
            }
            (Role::Wild, 30..34) => {
                let all = [Command::Start, Command::Stop, Command::Restart, Command::Reload, Command::Kill];
                Step::Command(self.rng.choice(all).unwrap_or(Command::Start))
            }
            _ => Step::Call(self.call()),
        }
    }

    fn call(&mut self) -> Planned {
        let deed = match self.role {
            Role::Healthy | Role::Replaced => self.good_deed(),
            Role::Solo | Role::Wild => self.any_deed(),
        };
        let short = deed.may_stay_unnoticed() || deed.is_silent();
        let deadline = match self.role {
            _ if short => Duration::from_millis(self.rng.u64(20..100)),
            Role::Wild => Duration::from_secs(1),
            _ => Duration::from_secs(20),
        };
        let pad = if deed == Deed::Large { self.rng.usize(1024..256 * 1024) } else { 0 };
        let change_of_mind = (self.rng.u32(0..100) == 0 && !deed.is_silent()).then(|| {
            let all = [Change::Drop, Change::Drop, Change::Cancel, Change::Cancel, Change::Close];
            let change = self.rng.choice(all).unwrap_or(Change::Drop);
            (change, Duration::from_micros(self.rng.u64(0..3000)))
        });
        let (after, is_patient) = (self.rng.u64(0..15), self.rng.u32(0..100) == 0);
        Planned { deed, after, pad, deadline, change_of_mind, is_patient }
    }

    fn good_deed(&mut self) -> Deed {
        match self.rng.u32(0..100) {
            0 => Deed::Large,
            1..4 => Deed::Late,
            _ => Deed::Answer,
        }
    }

    fn any_deed(&mut self) -> Deed {
        let all: u32 = DEEDS.iter().map(|(_, weight)| weight).sum();
        let mut dice = self.rng.u32(0..all);
        for (deed, weight) in DEEDS {
            match dice.checked_sub(*weight) {
                Some(rest) => dice = rest,
                None => return *deed,
            }
        }
        Deed::Answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_decides_the_same_and_another_one_does_not() {
        let steps = |seed| {
            let mut plan = Plan::new(seed, 5, 0, Role::Wild);
            (0..1000).map(|_| format!("{:?}", plan.next())).collect::<Vec<_>>()
        };
        assert_eq!(steps(1), steps(1));
        assert_ne!(steps(1), steps(2));
    }

    #[test]
    fn a_long_run_has_every_deed_in_it() {
        let mut plan = Plan::new(1, 5, 0, Role::Wild);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..300_000 {
            if let Step::Call(Planned { deed, .. }) = plan.next() {
                seen.insert(deed);
            }
        }
        assert_eq!(seen.len(), DEEDS.len());
    }
}
