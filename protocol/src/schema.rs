//! The JSON Schema of the protocol's payloads, generated from this crate's types.
//!
//! `schema/lemon-protocol-1.0.schema.json` is the checked-in form; `cargo run -p lemon-protocol --example generate`
//! writes it anew.

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::{
    CallToolParams, CallToolResult, CancelledParams, ConfigureParams, ErrorObject, HostOffer, InitializeParams,
    InitializeResult, Kind, LEMON_ID, ListToolsParams, ListToolsResult, LogMessage, PartialResult, PluginAnswer,
    ProgressParams, ProtocolVersion, RequestId, SessionClosed, SessionDelta, SessionInfo, SessionOpen, SessionRef,
    Settled, ShutdownParams, Tool, ToolHints, Toolbox,
};

/// The schema of every payload, as one document with a definition for each.
pub fn document() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    macro_rules! add {
        ($($payload:ty),* $(,)?) => { $(generator.subschema_for::<$payload>();)* };
    }
    add!(
        RequestId<'static>,
        ErrorObject,
        ProtocolVersion,
        InitializeParams,
        InitializeResult,
        HostOffer,
        PluginAnswer,
        ConfigureParams,
        ShutdownParams,
        SessionOpen,
        SessionDelta,
        SessionClosed,
        SessionRef,
        Settled,
        Tool,
        ToolHints,
        ListToolsParams,
        ListToolsResult,
        CallToolParams,
        CallToolResult,
        CancelledParams,
        ProgressParams,
        PartialResult,
        LogMessage,
        SessionInfo,
        Toolbox,
    );
    let definitions = generator.take_definitions(true);
    let errors: Vec<Value> = Kind::ALL
        .into_iter()
        .map(|kind| json!({ "kind": kind.as_str(), "code": kind.code(), "meaning": kind.meaning() }))
        .collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": format!("Lemon plugin protocol {}", ProtocolVersion::CURRENT),
        "description": format!("The payloads of the protocol; Lemon's part of the handshake stands under {LEMON_ID:?}."),
        "$defs": definitions,
        "x-errors": errors,
    })
}
