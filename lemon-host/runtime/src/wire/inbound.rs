//! Requests that the other side makes of the host: each is a task of its own, and they are bounded.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lemon_protocol::{ErrorObject, Kind, RequestId};
use serde_json::value::RawValue;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::peer::Peer;
use crate::report::PluginText;

/// One request of the other side.
pub(crate) struct InboundRequest {
    pub(crate) peer: Peer,
    pub(crate) method: String,
    pub(crate) params: Option<Box<RawValue>>,
    /// Cancelled when the other side cancels the request, or the peer ends.
    pub(crate) cancel: CancellationToken,
}

/// What answers the other side.
pub(crate) trait Inbound: Send + Sync + 'static {
    /// Answers a request. The future is dropped when the request is cancelled.
    fn request(
        self: Arc<Self>,
        request: InboundRequest,
    ) -> Pin<Box<dyn Future<Output = Result<Box<RawValue>, ErrorObject>> + Send>>;

    /// Takes a notification that the wire itself has no use for. Must not block.
    fn notification(&self, peer: &Peer, method: &str, params: &str);

    /// Takes the first piece of noise of its kind. Must not block.
    fn noise(&self, peer: &Peer, kind: &'static str, first: &PluginText);
}

/// The requests that are being worked on.
pub(super) struct InboundCalls {
    open: Mutex<HashMap<RequestId<'static>, CancellationToken>>,
    slots: Arc<Semaphore>,
    limit: usize,
    bytes: Arc<Semaphore>,
    byte_limit: u32,
}

/// The place of a request among those that are being worked on; others get it when this is dropped.
pub(super) struct Slot {
    _one: OwnedSemaphorePermit,
    _bytes: OwnedSemaphorePermit,
}

impl InboundCalls {
    /// So many, and so many bytes of params together.
    pub(super) fn new(limit: usize, bytes: usize) -> Self {
        let byte_limit = u32::try_from(bytes).unwrap_or(u32::MAX);
        Self {
            open: Mutex::default(),
            slots: Arc::new(Semaphore::new(limit.min(Semaphore::MAX_PERMITS))),
            limit,
            bytes: Arc::new(Semaphore::new((byte_limit as usize).min(Semaphore::MAX_PERMITS))),
            byte_limit,
        }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<RequestId<'static>, CancellationToken>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a request on, or says why not.
    pub(super) fn begin(
        &self,
        id: &RequestId<'static>,
        bytes: usize,
    ) -> Result<(CancellationToken, Slot), ErrorObject> {
        let Ok(one) = self.slots.clone().try_acquire_owned() else {
            let message = format!("{} requests are under way (limits.inbound_requests)", self.limit);
            return Err(ErrorObject::of(Kind::Busy, message));
        };
        // One that is larger than all may be together takes all there is.
        let share = u32::try_from(bytes).unwrap_or(u32::MAX).min(self.byte_limit);
        let Ok(bytes) = self.bytes.clone().try_acquire_many_owned(share) else {
            let limit = self.byte_limit;
            let message = format!("with it more than {limit} bytes would be under way (limits.inbound_request_bytes)");
            return Err(ErrorObject::of(Kind::Busy, message));
        };
        let cancel = CancellationToken::new();
        let mut open = self.open();
        if open.contains_key(id) {
            let message = format!("the id {id} is already in use by a request under way");
            return Err(ErrorObject { code: ErrorObject::INVALID_REQUEST, message, data: None });
        }
        open.insert(id.clone(), cancel.clone());
        Ok((cancel, Slot { _one: one, _bytes: bytes }))
    }

    pub(super) fn end(&self, id: &RequestId<'static>) {
        self.open().remove(id);
    }

    pub(super) fn cancel(&self, id: &RequestId<'static>) {
        if let Some(cancel) = self.open().get(id) {
            cancel.cancel();
        }
    }

    pub(super) fn cancel_all(&self) {
        for cancel in self.open().values() {
            cancel.cancel();
        }
    }
}
