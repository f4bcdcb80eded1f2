//! Requests of the other side that are being worked on.
//!
//! Each is settled exactly once, by whoever takes it out: with an answer, or, after its cancellation was read, without
//! one (LPP-CALL-04, LPP-CANCEL-05).

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lemon_protocol::RequestId;
use tokio_util::sync::CancellationToken;

use super::outbox::Unsent;

/// Requests at once; a Lemon host sends at most 64.
const MOST: usize = 4096;

#[derive(Default)]
pub(crate) struct Calls {
    in_flight: Mutex<HashMap<RequestId<'static>, Entry>>,
}

struct Entry {
    token: CancellationToken,
    cancelled: bool,
}

/// Why a request is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Untaken {
    /// Another request with the same id is in flight.
    SameId,
    /// There are too many.
    TooMany,
}

/// What a request that has ended is owed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owed {
    /// An answer.
    Answer,
    /// No answer, as it was cancelled.
    Nothing,
}

impl Calls {
    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId<'static>, Entry>> {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn insert(&self, id: RequestId<'static>, token: CancellationToken) -> Result<(), Untaken> {
        let mut in_flight = self.lock();
        if in_flight.len() >= MOST {
            return Err(Untaken::TooMany);
        }
        match in_flight.entry(id) {
            std::collections::hash_map::Entry::Occupied(_) => Err(Untaken::SameId),
            std::collections::hash_map::Entry::Vacant(vacant) => {
                vacant.insert(Entry { token, cancelled: false });
                Ok(())
            }
        }
    }

    /// Cancels a request, if it is in flight.
    pub(crate) fn cancel(&self, id: &RequestId<'static>) {
        let token = self.lock().get_mut(id).map(|entry| {
            entry.cancelled = true;
            entry.token.clone()
        });
        // Not under the lock: this wakes whoever waits for it.
        if let Some(token) = token {
            token.cancel();
        }
    }

    /// Whether a request in flight was cancelled by the other side.
    pub(crate) fn is_cancelled(&self, id: &RequestId<'static>) -> bool {
        self.lock().get(id).is_some_and(|entry| entry.cancelled)
    }

    /// Sends what a request is answered with and takes it out, unless its cancellation was read, which can't happen
    /// meanwhile. While there is no room for the answer the request stays.
    ///
    /// # Errors
    /// It was not sent; the request stays for another try if that may help.
    pub(crate) fn settle_with(
        &self,
        id: &RequestId<'static>,
        send: impl FnOnce() -> Result<(), Unsent>,
    ) -> Result<Owed, Unsent> {
        let mut in_flight = self.lock();
        let owed = in_flight.get(id).is_some_and(|entry| !entry.cancelled);
        let outcome = if owed { send().map(|()| Owed::Answer) } else { Ok(Owed::Nothing) };
        if !matches!(outcome, Err(Unsent::Full | Unsent::TooLarge { .. })) {
            in_flight.remove(id);
        }
        outcome
    }

    /// Tells all handlers to stop, for the end of the plugin; their answers are still owed.
    pub(crate) fn stop_all(&self) {
        let tokens: Vec<_> = self.lock().values().map(|entry| entry.token.clone()).collect();
        tokens.iter().for_each(CancellationToken::cancel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_waits_for_room_can_still_be_cancelled() {
        let (calls, id) = (Calls::default(), RequestId::Number(1));
        calls.insert(id.clone(), CancellationToken::new()).unwrap();
        assert_eq!(calls.settle_with(&id, || Err(Unsent::Full)), Err(Unsent::Full));
        calls.cancel(&id);
        assert_eq!(calls.settle_with(&id, || panic!("it is sent")), Ok(Owed::Nothing));
        calls.insert(id.clone(), CancellationToken::new()).unwrap();
        assert_eq!(calls.settle_with(&id, || Ok(())), Ok(Owed::Answer));
        assert_eq!(calls.settle_with(&id, || panic!("it is sent twice")), Ok(Owed::Nothing));
    }

    #[test]
    fn a_cancelled_request_is_owed_no_answer() {
        let calls = Calls::default();
        let token = CancellationToken::new();
        calls.insert(RequestId::Number(1), token.clone()).unwrap();
        calls.insert(RequestId::Number(2), CancellationToken::new()).unwrap();
        assert_eq!(calls.insert(RequestId::Number(1), token.clone()), Err(Untaken::SameId));
        calls.cancel(&RequestId::Number(1));
        calls.cancel(&RequestId::Text("1".into()));
        assert!(token.is_cancelled());
        assert_eq!(calls.settle_with(&RequestId::Number(1), || Ok(())), Ok(Owed::Nothing));
        assert_eq!(calls.settle_with(&RequestId::Number(2), || Ok(())), Ok(Owed::Answer));
        assert_eq!(calls.settle_with(&RequestId::Number(2), || Ok(())), Ok(Owed::Nothing));
    }
}
