//! From a fresh process to its offer: `initialize`, `notifications/initialized`, `lemon/configure` and the first list
//! of tools, all within one deadline.

use std::collections::BTreeMap;

use lemon_protocol::{
    Capabilities, ErrorObject, HostOffer, HostProcess, Implementation, InitializeResult, Kind, ListChanged,
    MCP_VERSIONS, NoCommonVersion, PluginAnswer, ProtocolVersion, method,
};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::configuration;
use super::drift;
use super::live::{Dialect, Offer, ToolList};
use super::spec::PluginSpec;
use crate::catalog::listing;
use crate::error::{CallError, Phase, StartError};
use crate::host_api;
use crate::limits::Limits;
use crate::report::PluginText;
use crate::seams::Secrets;
use crate::wire::{CallOptions, Peer, PluginApiClient, call_error};

/// What a handshake needs beside the peer.
pub(crate) struct Handshake<'a> {
    pub(crate) spec: &'a PluginSpec,
    pub(crate) limits: &'a Limits,
    pub(crate) client: &'a Implementation,
    pub(crate) secrets: &'a dyn Secrets,
    pub(crate) redactor: &'a crate::report::Redactor,
    /// When the start has taken too long, and how long that is.
    pub(crate) deadline: Instant,
    pub(crate) allowed: std::time::Duration,
}

impl Handshake<'_> {
    /// Leads the process through the handshake.
    ///
    /// # Errors
    /// Says what was under way and what went wrong. The end of the process in the meantime is told by its own error,
    /// with the exit status.
    pub(crate) async fn run(&self, peer: &Peer, stderr: impl Fn() -> PluginText) -> Result<Offer, StartError> {
        let result = self.phase(Phase::Initialize, peer, &stderr, self.initialize(peer)).await?;
        let (dialect, answer) = self.dialect(&result)?;
        peer.notify_now(method::INITIALIZED, &Map::new(), false);
        // From here on the process may ask things.
        peer.open(dialect.is_lemon());
        if let Some(schema) = answer.as_ref().and_then(|answer| answer.config_schema.as_ref()) {
            let values =
                configuration::prepare(schema, &self.spec.config, self.limits, self.secrets, self.redactor).await?;
            self.phase(Phase::Configure, peer, &stderr, async {
                peer.with(CallOptions::default()).configure(&values, 1).await.map_err(call_error)
            })
            .await
            .map_err(config_refused)?;
        }
        let tools = match &result.capabilities.tools {
            Some(_) => {
                let list = async { listing::list_tools(peer, self.limits).await };
                self.phase(Phase::List, peer, &stderr, list).await?
            }
            None => ToolList::undeclared(),
        };
        let mut offer = Offer {
            dialect,
            server: result.server_info,
            multi_session: answer.as_ref().is_none_or(|answer| answer.multi_session),
            exclusive: answer.as_ref().is_some_and(|answer| answer.exclusive),
            tools,
            drift: Vec::new(),
        };
        if let Some(manifest) = &self.spec.manifest {
            let config_schema = answer.as_ref().and_then(|answer| answer.config_schema.as_ref());
            drift::hold(manifest, config_schema, &mut offer);
        }
        Ok(offer)
    }

    async fn initialize(&self, peer: &Peer) -> Result<InitializeResult, Result<CallError, String>> {
        let roots = (!self.spec.roots.is_empty()).then_some(ListChanged { list_changed: None });
        let mut capabilities =
            Capabilities { tools: None, roots, experimental: BTreeMap::new(), extensions: BTreeMap::new() };
        let pid = std::process::id();
        capabilities.set_lemon(&HostOffer {
            versions: ProtocolVersion::OFFERED.to_vec(),
            methods: host_api::METHODS
                .iter()
                .filter(|method| self.spec.may_ask(method))
                .map(ToString::to_string)
                .collect(),
            max_message_bytes: self.limits.inbound_message_bytes as u64,
            process: HostProcess { pid, start_time: lemon_process::process_start_time(pid) },
        });
        let [.., newest] = MCP_VERSIONS;
        let options = CallOptions { control: true, ..CallOptions::default() };
        peer.with(options).initialize(newest, &capabilities, self.client).await.map_err(call_error)
    }

    /// Finds out what the process speaks.
    fn dialect(&self, result: &InitializeResult) -> Result<(Dialect, Option<PluginAnswer>), StartError> {
        if !MCP_VERSIONS.contains(&result.protocol_version.as_str()) {
            return Err(StartError::McpVersion { version: PluginText::new(result.protocol_version.clone()) });
        }
        let Some(body) = result.capabilities.lemon() else {
            return Ok((Dialect::Mcp(result.protocol_version.clone()), None));
        };
        let answer = PluginAnswer::deserialize(body).map_err(|fault| StartError::Protocol {
            phase: Phase::Initialize,
            detail: PluginText::new(format!("Lemon's part of the answer can't be read: {fault}")),
        })?;
        let picked = ProtocolVersion::common(&ProtocolVersion::OFFERED, &[answer.version])?;
        Ok((Dialect::Lemon(picked), Some(answer)))
    }

    /// Runs one step within the deadline of the whole start.
    async fn phase<T>(
        &self,
        phase: Phase,
        peer: &Peer,
        stderr: &impl Fn() -> PluginText,
        step: impl Future<Output = Result<T, Result<CallError, String>>>,
    ) -> Result<T, StartError> {
        let Ok(outcome) = tokio::time::timeout_at(self.deadline, step).await else {
            let dropped = peer.noise().total();
            return Err(StartError::Timeout { phase, after: self.allowed, dropped, stderr: stderr() });
        };
        outcome.map_err(|error| match error {
            Ok(error) => failed(phase, error),
            Err(fault) => {
                let detail = PluginText::new(format!("its result can't be read: {fault}"));
                StartError::Protocol { phase, detail }
            }
        })
    }
}

fn failed(phase: Phase, error: CallError) -> StartError {
    match error {
        CallError::Crashed { status, stderr, .. } => StartError::Exited { phase, status, stderr },
        CallError::Answered { code, message, data, .. } => {
            let kind = ErrorObject { code, message: String::new(), data: data.clone() }.kind();
            let data = data.unwrap_or_default();
            if phase == Phase::Initialize && kind == Some(Kind::UnsupportedVersion) {
                let supported = data.get("supported").and_then(|list| Vec::deserialize(list).ok());
                let host = ProtocolVersion::OFFERED.to_vec();
                return NoCommonVersion { host, plugin: supported.unwrap_or_default() }.into();
            }
            let pointer = data.get("pointer").and_then(Value::as_str).map(PluginText::new);
            if phase == Phase::Configure && (kind == Some(Kind::Config) || code == ErrorObject::INVALID_PARAMS) {
                return StartError::Config { pointer, message };
            }
            StartError::Refused { phase, code, message }
        }
        CallError::Protocol { detail, .. } => StartError::Protocol { phase, detail },
        CallError::TooLarge { .. } => StartError::Protocol { phase, detail: PluginText::new(error.to_string()) },
        CallError::NotReading { bytes, .. } => StartError::NotReading { bytes },
        _ => StartError::Stopped,
    }
}

/// A plugin that does not know `lemon/configure` although it has a schema is told apart by the message alone.
fn config_refused(error: StartError) -> StartError {
    match error {
        StartError::Refused { phase: Phase::Configure, message, .. } => StartError::Config { pointer: None, message },
        other => other,
    }
}
