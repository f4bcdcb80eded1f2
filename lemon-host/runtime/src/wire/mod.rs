//! From lines to calls, for one process: a reader that never waits for the writer, an outbox that alone touches the
//! process's stdin, and one place where a call ends.
//!
//! ```text
//! caller ── Peer::call ──► Outbox ──► stdin │ process │ stdout ──► reader ──► Pending ──► caller
//!                             ▲                                      │
//!                             └────────── answers ◄── Inbound ◄──────┘
//! ```

mod inbound;
mod input;
mod noise;
mod outbox;
mod peer;
mod pending;
mod reader;
mod trace;
mod typed;

pub(crate) use inbound::{Inbound, InboundRequest};
pub(crate) use peer::Outgoing;
pub(crate) use peer::{Peer, PeerEvent, PeerOptions};
pub(crate) use pending::{CallContext, CallScope};
pub(crate) use trace::Tracer;
pub(crate) use typed::{CallOptions, PluginApiClient, call_error};

pub use noise::NoiseReport;
pub use trace::{Direction, TraceLine, TraceSink};
