//! The handshake of MCP up to 2025-11-25, with Lemon's part in it, and `server/discover` of 2026-07-28.

use lemon_protocol::{
    Capabilities, ErrorObject, HostOffer, Kind, LEMON_ID, MCP_VERSIONS, NoCommonVersion, PluginAnswer, ProtocolVersion,
    RequestId,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Connection;
use super::dispatch::{bad_params, read};
use super::era::{Era, MODERN};
use super::message::Marked;
use crate::read::reason;

/// What is read of the params of `initialize`. Who the client is, which MCP has it say, decides nothing here: a client
/// that does not say it is answered too.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    protocol_version: String,
    capabilities: Capabilities,
}

impl Connection {
    /// Answers `initialize`, also a second one, and one after `server/discover`: some clients do both.
    pub(super) fn initialize(&self, id: &RequestId<'_>, params: Option<&RawValue>) -> Result<(), ErrorObject> {
        let params: Params = read(params)?;
        let offer = offer(&params.capabilities)?;
        let asked = MCP_VERSIONS.iter().copied().find(|version| *version == params.protocol_version);
        let mut capabilities = json!({ "tools": {}, "logging": {} });
        if let Some(offer) = &offer {
            let answer = PluginAnswer {
                version: common(offer)?,
                multi_session: self.definition.multi_session,
                exclusive: self.definition.exclusive,
                config_schema: self.definition.config_schema.clone(),
            };
            // In `experimental` in full, as published clients drop `extensions`, which that revision does not have.
            capabilities["experimental"] = json!({ LEMON_ID: answer });
            capabilities["extensions"] = json!({ LEMON_ID: {} });
        }
        let mut result = json!({
            "protocolVersion": asked.unwrap_or(MCP_VERSIONS[MCP_VERSIONS.len() - 1]),
            "capabilities": capabilities,
            "serverInfo": self.definition.server_info,
        });
        if let Some(instructions) = &self.definition.instructions {
            result["instructions"] = Value::from(instructions.as_str());
        }
        if let (Some(offer), Some(watch)) = (&offer, &self.watch) {
            watch.host_is(&offer.process);
        }
        {
            let mut peer = self.peer();
            peer.shook_hands = true;
            peer.offer = offer;
        }
        self.answer(id, result);
        Ok(())
    }

    /// Answers `server/discover`. Only revisions without a handshake are named: the others are asked for by one.
    pub(super) fn discover(&self, id: &RequestId<'_>) {
        let mut result = json!({
            "supportedVersions": [MODERN],
            "capabilities": { "tools": {}, "logging": {} },
        });
        if let Some(instructions) = &self.definition.instructions {
            result["instructions"] = Value::from(instructions.as_str());
        }
        self.answer(id, Marked::list(Era::Modern, &self.definition.server_info, result));
    }
}

/// The host's part, if the client is a Lemon host.
fn offer(capabilities: &Capabilities) -> Result<Option<HostOffer>, ErrorObject> {
    let Some(body) = capabilities.lemon() else { return Ok(None) };
    HostOffer::deserialize(body).map(Some).map_err(|error| bad_params(reason(&error)))
}

/// The protocol version that both speak (LPP-VER-04).
fn common(offer: &HostOffer) -> Result<ProtocolVersion, ErrorObject> {
    ProtocolVersion::common(&offer.versions, &ProtocolVersion::OFFERED).map_err(|none: NoCommonVersion| {
        let data = json!({ "supported": none.plugin, "requested": none.host });
        let data = data.as_object().cloned().unwrap_or_default();
        ErrorObject::with(Kind::UnsupportedVersion, none.to_string(), data)
    })
}
