//! Sessions on the wire (LPP-SESS): announced once, then named by a small number.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::id::RequestId;

/// The first `lemon/session` of a session: all that there is to know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionOpen {
    /// The number that stands for the session on this pipe from now on.
    pub handle: u32,
    /// The session's id, the same for all plugins.
    pub id: String,
    /// The session's working directory, absolute.
    pub cwd: String,
    /// What kind of session it is: `main`, or a name that the embedding program gives.
    pub scope: String,
    /// The state that the plugin mirrors.
    pub state: Map<String, Value>,
    /// Counts the changes of the state.
    pub version: u64,
}

/// A later `lemon/session`: what changed since the version before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionDelta {
    /// The session's number.
    pub handle: u32,
    /// The version after the change: one more than before.
    pub version: u64,
    /// The members of the state that changed; null removes one.
    pub changes: Map<String, Value>,
}

/// The params of `lemon/session_closed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionClosed {
    /// The session's number, which is not used again on this pipe.
    pub handle: u32,
}

/// How calls and background requests name a session, in `_meta`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionRef {
    /// The session's number.
    pub handle: u32,
    /// The version of the state that the sender had seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}

/// The params of `lemon/settled`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Settled {
    /// The id of the cancelled request whose handler has ended.
    pub request_id: RequestId<'static>,
}
