//! What a plugin may ask of the host (LPP-REV). Each request names, in `_meta`, the request that it acts for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::tools::Tool;

/// The result of `host/session/get`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionInfo {
    /// The session's id.
    pub id: String,
    /// The session's working directory, absolute.
    pub cwd: String,
    /// What kind of session it is.
    pub scope: String,
    /// The session's state.
    pub state: Map<String, Value>,
    /// The state's version.
    pub version: u64,
}

/// The result of `host/tools/list`: every tool of the session under the name that calls use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Toolbox {
    /// The tools.
    pub tools: Vec<Tool>,
}
