//! The calls of one process that have no outcome yet.
//!
//! A call is settled by taking its entry, whoever does it: an answer, the end of the process, the caller's
//! cancellation, the deadline or the shutdown. What comes second finds no entry. Ids are counted up and never used
//! again. A call that was given up keeps its slot for a while, as its handler may still be running.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustc_hash::FxHashMap;
use serde_json::value::RawValue;
use tokio::sync::{Notify, OwnedSemaphorePermit, broadcast, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::error::CallError;
use crate::pipeline::{Chain, Progress};
use crate::session::Session;
use crate::wire::outbox::Refused;

/// How a call ends.
pub(crate) type Outcome = Result<Box<RawValue>, CallError>;

/// Where a call stands: what those that are made from within it inherit.
#[derive(Clone, Debug)]
pub(crate) struct CallScope {
    pub(crate) session: Session,
    /// The tools that are waiting, this one included.
    pub(crate) chain: Chain,
    pub(crate) deadline: Option<Instant>,
}

/// A call that another one is made from.
#[derive(Clone, Debug)]
pub(crate) struct CallContext {
    pub(crate) scope: CallScope,
    /// Cancelled when the call has its outcome.
    pub(crate) ended: CancellationToken,
}

/// One call, as it is opened.
pub(crate) struct Opening {
    pub(crate) method: &'static str,
    pub(crate) total: Option<Duration>,
    /// When the total is over, if it began before now.
    pub(crate) deadline: Option<Instant>,
    pub(crate) idle: Option<Duration>,
    pub(crate) progress: Option<broadcast::Sender<Progress>>,
    pub(crate) permit: Option<OwnedSemaphorePermit>,
    pub(crate) scope: Option<CallScope>,
    /// Messages that had been dropped before the call.
    pub(crate) noise_before: u64,
    /// It is about the process and not for a caller: nobody cancels it, and it leaves nothing behind.
    pub(crate) control: bool,
}

/// Where the caller waits.
pub(crate) struct Ticket {
    pub(crate) id: i64,
    pub(crate) outcome: oneshot::Receiver<Outcome>,
}

struct Entry {
    outcome: oneshot::Sender<Outcome>,
    /// Made for the first call from within this one: most have none.
    ended: Option<CancellationToken>,
    opening: Opening,
    /// The message is in the outbox, or further.
    sent: bool,
    total_due: Option<Instant>,
    due: Option<Instant>,
}

struct Lingering {
    until: Instant,
    _permit: Option<OwnedSemaphorePermit>,
}

#[derive(Default)]
struct State {
    last_id: i64,
    open: FxHashMap<i64, Entry>,
    lingering: FxHashMap<i64, Lingering>,
    abandoned: u32,
    /// The other side can tell that a cancelled call ended, so one that never does is counted.
    tells_the_end: bool,
    /// When the timer looks again by itself. There may be nothing to see by then: a call that is settled in time leaves
    /// the timer alone, which is cheaper than to wake it for each.
    looks_at: Option<Instant>,
    closed: Option<CallError>,
}

#[derive(Default)]
pub(crate) struct Pending {
    state: Mutex<State>,
    /// Wakes the timer when the earliest time is another one.
    earlier: Notify,
    /// Wakes those who wait for no call to be open.
    emptied: Notify,
}

/// An entry whose time has come.
#[derive(Debug)]
pub(crate) struct Overdue {
    pub(crate) id: i64,
    pub(crate) method: &'static str,
    pub(crate) after: Duration,
    pub(crate) idle: bool,
    pub(crate) noise_before: u64,
    /// Its message is in the outbox, or further.
    pub(crate) sent: bool,
}

/// What became of a call that was to be given up.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum GivenUp {
    /// It had its outcome already.
    Settled,
    /// The other side has never heard of it, or is not to be told.
    Silently,
    /// Its handler may be running.
    Lingering,
}

/// What an id in an answer stands for when no call is open under it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unmatched {
    /// The call was given up; its handler has ended now.
    Late,
    /// The call has its outcome already.
    Extra,
    /// The host never used the id.
    Unknown,
}

impl Pending {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a call under a new id.
    pub(crate) fn open(&self, opening: Opening) -> Result<Ticket, CallError> {
        // Most calls come with their deadline, and the clock is not asked once more.
        let after = |time: Duration| Instant::now().checked_add(time);
        let total_due = opening.deadline.or_else(|| opening.total.and_then(after));
        let idle_due = opening.idle.and_then(after);
        let due = [total_due, idle_due].into_iter().flatten().min();
        let (sender, receiver) = oneshot::channel();
        let mut state = self.state();
        if let Some(error) = &state.closed {
            return Err(error.clone());
        }
        state.last_id += 1;
        let id = state.last_id;
        state.open.insert(id, Entry { outcome: sender, ended: None, opening, sent: false, total_due, due });
        state.schedule(due, &self.earlier);
        Ok(Ticket { id, outcome: receiver })
    }

    /// Settles a call.
    pub(crate) fn settle(&self, id: i64, outcome: impl FnOnce(&'static str) -> Outcome) -> Result<(), Unmatched> {
        let (entry, emptied) = {
            let mut state = self.state();
            match state.open.remove(&id) {
                Some(entry) => (entry, state.open.is_empty()),
                None if state.lingering.remove(&id).is_some() => return Err(Unmatched::Late),
                None if (1..=state.last_id).contains(&id) => return Err(Unmatched::Extra),
                None => return Err(Unmatched::Unknown),
            }
        };
        entry.settle(outcome);
        if emptied {
            self.emptied.notify_waiters();
        }
        Ok(())
    }

    /// Puts a call's message into the outbox; none if the call has its outcome.
    ///
    /// This and [`give_up`](Self::give_up) exclude each other: what was given up before is never sent.
    pub(crate) fn send(&self, id: i64, push: impl FnOnce() -> Result<(), Refused>) -> Option<Result<(), Refused>> {
        let mut state = self.state();
        let entry = state.open.get_mut(&id)?;
        let pushed = push();
        entry.sent = pushed.is_ok();
        Some(pushed)
    }

    /// Why there are no calls any more, at the end.
    pub(crate) fn closed(&self) -> Option<CallError> {
        self.state().closed.clone()
    }

    /// The calls that have no outcome yet, those about the process left out.
    pub(crate) fn open_calls(&self) -> Vec<i64> {
        let state = self.state();
        state.open.iter().filter(|(_, entry)| !entry.opening.control).map(|(id, _)| *id).collect()
    }

    /// The other side tells when a cancelled call has ended.
    pub(crate) fn expect_ends(&self) {
        self.state().tells_the_end = true;
    }

    /// Settles a call whose handler may go on: its slot stays taken until the plugin tells that it ended, or until
    /// `linger` is over.
    pub(crate) fn give_up(&self, id: i64, linger: Duration, error: CallError) -> GivenUp {
        let (entry, given_up) = {
            let mut state = self.state();
            let Some(mut entry) = state.open.remove(&id) else { return GivenUp::Settled };
            if entry.sent && !entry.opening.control {
                let until = Instant::now() + linger;
                state.lingering.insert(id, Lingering { until, _permit: entry.opening.permit.take() });
                state.schedule(Some(until), &self.earlier);
                (entry, GivenUp::Lingering)
            } else {
                (entry, GivenUp::Silently)
            }
        };
        entry.settle(|_| Err(error));
        self.note_empty();
        given_up
    }

    /// The handler of a given-up call has ended, or never began.
    pub(crate) fn ended(&self, id: i64) -> bool {
        self.state().lingering.remove(&id).is_some()
    }

    /// Resets the idle clock of a call and passes the note on. False if no such call is open.
    pub(crate) fn progress(&self, id: i64, note: Progress) -> bool {
        let mut state = self.state();
        let Some(entry) = state.open.get_mut(&id) else {
            return false;
        };
        if let Some(sender) = &entry.opening.progress {
            // Nobody listening is fine.
            let _ = sender.send(note);
        }
        if let Some(idle) = entry.opening.idle {
            let due = [entry.total_due, Instant::now().checked_add(idle)].into_iter().flatten().min();
            entry.due = due;
            state.schedule(due, &self.earlier);
        }
        true
    }

    /// What a request that acts for call `id` inherits; none if that call is not open.
    pub(crate) fn context(&self, id: i64) -> Option<CallContext> {
        let mut state = self.state();
        let entry = state.open.get_mut(&id)?;
        let scope = entry.opening.scope.clone()?;
        Some(CallContext { scope, ended: entry.ended.get_or_insert_default().clone() })
    }

    /// Settles all calls.
    pub(crate) fn settle_all(&self, error: &CallError) {
        let entries: Vec<Entry> = {
            let mut state = self.state();
            state.lingering.clear();
            state.open.drain().map(|(_, entry)| entry).collect()
        };
        for entry in entries {
            entry.settle(|_| Err(error.clone()));
        }
        self.note_empty();
    }

    /// Settles all calls, and all later ones at once.
    pub(crate) fn close(&self, error: CallError) {
        self.state().closed.get_or_insert_with(|| error.clone());
        self.settle_all(&error);
        self.earlier.notify_one();
    }

    fn note_empty(&self) {
        if self.state().open.is_empty() {
            self.emptied.notify_waiters();
        }
    }

    /// Waits until no call is open.
    pub(crate) async fn idle(&self) {
        loop {
            let notified = self.emptied.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            if self.state().open.is_empty() {
                return;
            }
            notified.await;
        }
    }

    /// Calls without an outcome, and given-up ones that still hold a slot.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let state = self.state();
        (state.open.len(), state.lingering.len())
    }

    /// Waits for the next times that come due. The calls stay open, for the caller to give up; there are none if only
    /// given-up calls were abandoned. None at the end.
    pub(crate) async fn overdue(&self) -> Option<Vec<Overdue>> {
        loop {
            let notified = self.earlier.notified();
            let next = {
                let mut state = self.state();
                if state.closed.is_some() {
                    return None;
                }
                let abandoned = state.abandoned;
                let overdue = state.pop_due(Instant::now());
                if !overdue.is_empty() || state.abandoned > abandoned {
                    return Some(overdue);
                }
                state.looks_at = state.next_due();
                state.looks_at
            };
            match next {
                Some(at) => {
                    tokio::select! { () = notified => {}, () = tokio::time::sleep_until(at) => {} }
                }
                None => notified.await,
            }
        }
    }

    /// Given-up calls whose handler never ended.
    pub(crate) fn abandoned(&self) -> u32 {
        self.state().abandoned
    }
}

impl State {
    /// Sees to it that the timer looks when something comes due.
    fn schedule(&mut self, due: Option<Instant>, earlier: &Notify) {
        let Some(due) = due else { return };
        if self.looks_at.is_none_or(|at| due < at) {
            self.looks_at = Some(due);
            earlier.notify_one();
        }
    }

    /// The earliest time that something comes due. The calls of one process are few, and it is seldom asked for.
    fn next_due(&self) -> Option<Instant> {
        let open = self.open.values().filter_map(|entry| entry.due);
        open.chain(self.lingering.values().map(|lingering| lingering.until)).min()
    }

    fn pop_due(&mut self, now: Instant) -> Vec<Overdue> {
        let mut overdue = Vec::new();
        for (id, entry) in &mut self.open {
            let Some(at) = entry.due.filter(|at| *at <= now) else { continue };
            entry.due = None;
            let idle = entry.total_due.is_none_or(|total| at < total);
            let after = if idle { entry.opening.idle } else { entry.opening.total };
            let call = Overdue {
                id: *id,
                method: entry.opening.method,
                after: after.unwrap_or_default(),
                idle,
                noise_before: entry.opening.noise_before,
                sent: entry.sent,
            };
            overdue.push((at, call));
        }
        overdue.sort_by_key(|(at, call)| (*at, call.id));
        let lingering = self.lingering.len();
        self.lingering.retain(|_, lingering| lingering.until > now);
        if self.tells_the_end {
            let gone = lingering - self.lingering.len();
            self.abandoned = self.abandoned.saturating_add(u32::try_from(gone).unwrap_or(u32::MAX));
        }
        overdue.into_iter().map(|(_, call)| call).collect()
    }
}

impl Entry {
    fn settle(self, outcome: impl FnOnce(&'static str) -> Outcome) {
        if let Some(ended) = &self.ended {
            ended.cancel();
        }
        // A caller that went away wants no outcome.
        let _ = self.outcome.send(outcome(self.opening.method));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::Semaphore;

    use super::*;
    use crate::plugin::PluginName;

    fn opening(total: Option<u64>, idle: Option<u64>) -> Opening {
        Opening {
            method: "tools/call",
            total: total.map(Duration::from_secs),
            deadline: None,
            idle: idle.map(Duration::from_secs),
            progress: None,
            permit: None,
            scope: None,
            noise_before: 0,
            control: false,
        }
    }

    fn cancelled() -> CallError {
        CallError::Cancelled { callee: "p".parse::<PluginName>().unwrap().into() }
    }

    fn null() -> Outcome {
        Ok(RawValue::from_string("null".to_owned()).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_is_settled_once_and_what_comes_second_is_told_apart() {
        let pending = Pending::default();
        let first = pending.open(opening(None, None)).unwrap();
        let second = pending.open(opening(None, None)).unwrap();
        assert_eq!((first.id, second.id), (1, 2));
        assert_eq!(pending.settle(first.id, |_| null()), Ok(()));
        assert_eq!(pending.settle(first.id, |_| null()), Err(Unmatched::Extra));
        assert_eq!(pending.settle(77, |_| null()), Err(Unmatched::Unknown));
        pending.send(second.id, || Ok(())).unwrap().unwrap();
        assert_eq!(pending.give_up(second.id, Duration::from_secs(10), cancelled()), GivenUp::Lingering);
        assert_eq!(pending.give_up(second.id, Duration::from_secs(10), cancelled()), GivenUp::Settled);
        assert_eq!(pending.settle(second.id, |_| null()), Err(Unmatched::Late));
        assert_eq!(pending.settle(second.id, |_| null()), Err(Unmatched::Extra));
        assert!(first.outcome.await.unwrap().is_ok());
        assert!(matches!(second.outcome.await.unwrap(), Err(CallError::Cancelled { .. })));
    }

    #[tokio::test(start_paused = true)]
    async fn progress_moves_the_idle_deadline_but_not_the_total_one() {
        let pending = Arc::new(Pending::default());
        let start = Instant::now();
        let ticket = pending.open(opening(Some(10), Some(4))).unwrap();
        let working = pending.clone();
        tokio::spawn(async move {
            for _ in 0..100 {
                tokio::time::sleep(Duration::from_secs(3)).await;
                working.progress(ticket.id, Progress::default());
            }
        });
        let overdue = pending.overdue().await.unwrap();
        assert_eq!(start.elapsed().as_secs(), 10);
        assert_eq!((overdue[0].id, overdue[0].idle, overdue[0].after.as_secs()), (ticket.id, false, 10));
        assert_eq!(pending.give_up(ticket.id, Duration::from_secs(10), cancelled()), GivenUp::Silently);
        let quiet = pending.open(opening(Some(10), Some(4))).unwrap();
        let overdue = pending.overdue().await.unwrap();
        assert_eq!((overdue[0].id, overdue[0].idle, overdue[0].after.as_secs()), (quiet.id, true, 4));
    }

    #[tokio::test(start_paused = true)]
    async fn an_earlier_deadline_is_kept_and_one_of_a_settled_call_disturbs_no_other() {
        let pending = Arc::new(Pending::default());
        let start = Instant::now();
        let late = pending.open(opening(Some(60), None)).unwrap();
        let waiting = pending.clone();
        let overdue = tokio::spawn(async move { waiting.overdue().await });
        tokio::task::yield_now().await;
        let settled = pending.open(opening(Some(5), None)).unwrap();
        let early = pending.open(opening(Some(9), None)).unwrap();
        pending.settle(settled.id, |_| null()).unwrap();
        let first = overdue.await.unwrap().unwrap();
        assert_eq!((first[0].id, first.len(), start.elapsed().as_secs()), (early.id, 1, 9));
        let next = pending.overdue().await.unwrap();
        assert_eq!((next[0].id, next.len(), start.elapsed().as_secs()), (late.id, 1, 60));
    }

    #[tokio::test(start_paused = true)]
    async fn a_given_up_call_keeps_its_slot_until_it_ends_or_is_abandoned() {
        let pending = Arc::new(Pending::default());
        pending.expect_ends();
        let slots = Arc::new(Semaphore::new(2));
        let mut tickets = Vec::new();
        for _ in 0..2 {
            let permit = Some(slots.clone().try_acquire_owned().unwrap());
            let ticket = pending.open(Opening { permit, ..opening(None, None) }).unwrap();
            pending.send(ticket.id, || Ok(())).unwrap().unwrap();
            pending.give_up(ticket.id, Duration::from_secs(10), cancelled());
            tickets.push(ticket);
        }
        assert_eq!(slots.available_permits(), 0);
        assert!(pending.ended(tickets[0].id));
        assert_eq!(slots.available_permits(), 1);
        assert!(pending.overdue().await.unwrap().is_empty(), "told when a call is abandoned");
        assert_eq!((slots.available_permits(), pending.abandoned()), (2, 1));
        pending.close(cancelled());
        assert!(pending.overdue().await.is_none());
    }

    #[tokio::test]
    async fn a_call_that_was_given_up_before_it_was_sent_is_never_sent() {
        let pending = Pending::default();
        let ticket = pending.open(opening(None, None)).unwrap();
        assert_eq!(pending.give_up(ticket.id, Duration::from_secs(10), cancelled()), GivenUp::Silently);
        assert_eq!(pending.send(ticket.id, || panic!("it was sent")), None);
        assert_eq!(pending.counts(), (0, 0));
    }

    #[tokio::test]
    async fn the_end_settles_what_is_open_and_refuses_what_comes() {
        let pending = Pending::default();
        let ticket = pending.open(opening(Some(1), None)).unwrap();
        pending.close(cancelled());
        assert!(matches!(ticket.outcome.await.unwrap(), Err(CallError::Cancelled { .. })));
        assert!(pending.open(opening(None, None)).is_err());
        assert_eq!(pending.counts(), (0, 0));
    }
}
