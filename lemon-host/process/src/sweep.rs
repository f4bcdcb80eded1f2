//! Who belongs to a process, and their end.
//!
//! A [`Mark`] knows a tree by two signs: the group that its leader made, and the cookie in the
//! environment. Both survive the leader. Everything is judged by what the system says at
//! that moment, and signalled by a handle that can't come to mean another process.

use std::collections::HashSet;
use std::thread;
use std::time::{Duration, Instant};

use crate::os::{self, Carried, Handle, Stat};
use crate::{Cookie, Signal};

/// How long a sweep goes on, as what it kills may have started more.
const AT_MOST: Duration = Duration::from_secs(2);

/// How long it waits for processes of which nothing can be said yet, if there is nothing else.
const UNSETTLED: Duration = Duration::from_millis(500);

/// How long it waits for the killed to be gone, as they would be found again until then.
const ROUND: Duration = Duration::from_millis(50);

/// The signs of one process and its descendants.
#[derive(Debug, Clone)]
pub(crate) struct Mark {
    pub(crate) cookie: Cookie,
    /// The process that was started, unless only its cookie is known yet.
    pub(crate) leader: Option<Leader>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Leader {
    pub(crate) pid: u32,
    pub(crate) start: u64,
}

/// What a look at all processes shows.
#[derive(Debug, Default)]
pub(crate) struct Look {
    /// The living processes that belong to the marks, each once.
    pub(crate) found: Vec<Stat>,
    /// There are processes that may turn out to belong to them.
    pub(crate) unsettled: bool,
}

/// Looks for the living processes of all `marks`.
///
/// A group counts only while it is proven to be the marked one: its leader is there (be it as
/// a zombie) with its start time, or a member carries the cookie. Its number alone proves nothing,
/// since another group may have it by now.
pub(crate) fn look(marks: &[Mark]) -> Look {
    let mut look = Look::default();
    // A descendant is never older than its leader, which spares most environments the reading.
    let starts = marks.iter().map(|mark| mark.leader.map_or(0, |leader| leader.start));
    let Some(oldest) = starts.min() else {
        return look;
    };
    let own = std::process::id();
    let mut groups = HashSet::new();
    let mut candidates = Vec::new();
    for pid in os::pids() {
        let Some(stat) = os::stat(pid).filter(|stat| pid != own && stat.start >= oldest) else {
            continue;
        };
        let leader = Leader { pid, start: stat.start };
        if marks.iter().any(|mark| mark.leader == Some(leader)) {
            groups.insert(pid);
        }
        if stat.zombie {
            continue;
        }
        let carried = os::carries(pid, marks.iter().map(|mark| &mark.cookie));
        let of_group = |mark: &Mark| {
            carried == Carried::Cookie(&mark.cookie) && mark.leader.is_some_and(|leader| leader.pid == stat.group)
        };
        if marks.iter().any(of_group) {
            groups.insert(stat.group);
        }
        candidates.push((stat, carried));
    }
    for (stat, carried) in candidates {
        match carried {
            _ if groups.contains(&stat.group) => look.found.push(stat),
            Carried::Cookie(_) => look.found.push(stat),
            Carried::Unsettled => look.unsettled = true,
            Carried::Nothing => {}
        }
    }
    look
}

/// Signals a process found before, and no other that may have its number now.
pub(crate) fn signal(found: &Stat, signal: Signal) -> Option<Handle> {
    let handle = Handle::open(found.pid).ok()?;
    // The handle was opened in between two moments at which the number meant the process found, so
    // it means that process too.
    (os::start_time(found.pid) == Some(found.start)).then(|| handle.signal(signal))?;
    Some(handle)
}

/// Kills all that is left of a process and its descendants, and says how many descendants that
/// were. Blocks, for a few milliseconds if there is nothing to wait for.
///
/// `kill_group` kills the whole group at once, if the caller knows that it may: what forks faster than it
/// can be looked for is ended by nothing else.
pub(crate) fn sweep(mark: &Mark, kill_group: impl Fn()) -> usize {
    let mut killed = HashSet::new();
    let leader = mark.leader.map(|leader| leader.pid);
    let start = Instant::now();
    while start.elapsed() < AT_MOST {
        let Look { found, unsettled } = look(std::slice::from_ref(mark));
        kill_group();
        if found.is_empty() {
            if !unsettled || start.elapsed() > UNSETTLED {
                break;
            }
            thread::sleep(Duration::from_millis(1));
        }
        let kill = |stat| signal(stat, Signal::Kill);
        let handles: Vec<_> = found.iter().filter_map(kill).collect();
        let others = found.iter().filter(|stat| Some(stat.pid) != leader);
        killed.extend(others.map(|stat| (stat.pid, stat.start)));
        let deadline = Instant::now() + ROUND;
        for handle in handles {
            handle.wait(Some(deadline.saturating_duration_since(Instant::now())));
        }
    }
    killed.len()
}
