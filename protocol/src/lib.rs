//! The Lemon plugin protocol, draft 1.0: what goes over the pipe between a host and a plugin.
//!
//! `SPEC.md` beside this crate is the normative text; this crate is its form in Rust. Everything here is pure: no
//! input or output, no clock, no threads. Bytes from a pipe become lines in a [`LineSplitter`], a line becomes a
//! borrowed [`Message`] by [`Message::parse`], and the payloads have types in the modules below.
//!
//! ```
//! use lemon_protocol::{LineSplitter, Message, Piece};
//!
//! let mut lines = LineSplitter::new(1024);
//! lines.extend(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}\n{\"json");
//! let Some(Piece::Line(line)) = lines.next_piece() else { panic!("one whole line") };
//! let Ok(Message::Response { id: Some(id), outcome: Ok(result) }) = Message::parse(line) else { panic!() };
//! assert_eq!((id.to_string().as_str(), result.get()), ("1", "null"));
//! assert!(lines.next_piece().is_none());
//! ```
#![warn(missing_docs)]

mod envelope;
mod error;
mod handshake;
mod host_calls;
mod id;
mod line;
pub mod manifest;
mod oversize;
pub mod schema;
mod session;
mod tools;
mod version;

pub use envelope::{Fault, FaultKind, Message};
pub use error::{ErrorObject, Kind};
pub use handshake::{
    Capabilities, ConfigureParams, HostOffer, HostProcess, Implementation, InitializeParams, InitializeResult,
    ListChanged, PluginAnswer, ShutdownParams,
};
pub use host_calls::{SessionInfo, Toolbox};
pub use id::RequestId;
pub use line::{LineSplitter, Piece};
pub use oversize::TopLevelId;
pub use session::{SessionClosed, SessionDelta, SessionOpen, SessionRef, Settled};
pub use tools::{
    CallToolParams, CallToolResult, CancelledParams, ContentBlock, ListToolsParams, ListToolsResult, LogMessage,
    PartialResult, ProgressParams, Tool, ToolHints,
};
pub use version::{MCP_VERSIONS, NoCommonVersion, ProtocolVersion};

/// The id under which Lemon's part of the handshake stands in MCP's capability maps (LPP-INIT-02).
pub const LEMON_ID: &str = "dev.lemon/plugin";

/// Keys of `_meta` members that belong to Lemon.
pub mod meta {
    /// The id of the host's request that a reverse call acts for (LPP-REV-02).
    pub const PARENT: &str = "dev.lemon/parent";
    /// The session, `{"handle", "version"}`, that a call or a background request belongs to (LPP-SESS-04).
    pub const SESSION: &str = "dev.lemon/session";
    /// The tool call's id, the same in the call, its progress and every report (LPP-CALL-03).
    pub const CALL: &str = "dev.lemon/call";
    /// What a plugin says of a tool beyond MCP's fields (LPP-TOOL-05).
    pub const TOOL: &str = "dev.lemon/tool";
    /// The whole result so far, in a progress notification (LPP-PROG-09).
    pub const PARTIAL: &str = "dev.lemon/partial";
    /// Details of a result for programs, which the model does not see (LPP-CALL-17).
    pub const DETAILS: &str = "dev.lemon/details";
    /// MCP's own, unprefixed key that asks for progress.
    pub const PROGRESS_TOKEN: &str = "progressToken";
}

/// Names of methods and notifications.
pub mod method {
    /// Host → plugin request, the first message of all.
    pub const INITIALIZE: &str = "initialize";
    /// Host → plugin notification that ends the handshake.
    pub const INITIALIZED: &str = "notifications/initialized";
    /// Request in either direction, answered with `{}`.
    pub const PING: &str = "ping";
    /// Host → plugin request for one page of tools.
    pub const TOOLS_LIST: &str = "tools/list";
    /// Host → plugin request that runs a tool.
    pub const TOOLS_CALL: &str = "tools/call";
    /// Plugin → host notification that the list of tools is another one now.
    pub const TOOLS_LIST_CHANGED: &str = "notifications/tools/list_changed";
    /// Notification in either direction that a request's answer is no longer wanted.
    pub const CANCELLED: &str = "notifications/cancelled";
    /// Plugin → host notification on how far a call has got.
    pub const PROGRESS: &str = "notifications/progress";
    /// Plugin → host notification that carries a log message.
    pub const MESSAGE: &str = "notifications/message";
    /// Plugin → host request of MCP servers for the folders that they may work in.
    pub const ROOTS_LIST: &str = "roots/list";
    /// Host → plugin request that carries the plugin's configuration.
    pub const CONFIGURE: &str = "lemon/configure";
    /// Host → plugin request to come to an end.
    pub const SHUTDOWN: &str = "lemon/shutdown";
    /// Host → plugin notification that opens a session or changes its state.
    pub const SESSION: &str = "lemon/session";
    /// Host → plugin notification that a session is over.
    pub const SESSION_CLOSED: &str = "lemon/session_closed";
    /// Plugin → host notification that a cancelled handler has really ended.
    pub const SETTLED: &str = "lemon/settled";
    /// Plugin → host request: what the session is.
    pub const HOST_SESSION_GET: &str = "host/session/get";
    /// Plugin → host request: the tools that the session offers.
    pub const HOST_TOOLS_LIST: &str = "host/tools/list";
    /// Plugin → host request: run a tool of the session.
    pub const HOST_TOOLS_CALL: &str = "host/tools/call";
}
