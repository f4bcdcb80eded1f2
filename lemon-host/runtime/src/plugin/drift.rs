//! What a running plugin says of itself, held against its manifest, which is the most that it gets.
//!
//! A tool that the manifest's list does not have is not offered. Everything else that differs is only told: the plugin
//! is what runs, and the manifest has to be corrected.

use std::collections::BTreeMap;
use std::fmt;

use lemon_protocol::Tool;
use lemon_protocol::manifest::{HostType, Manifest};
use serde::Serialize;
use serde_json::Value;

use super::live::{Dialect, Offer, Quarantined, ToolList};
use crate::discovery::ManifestFile;
use crate::report::PluginText;

/// The sort of a [`Drift`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DriftKind {
    /// The plugin lists a tool that the manifest does not declare. It is not offered.
    ToolUndeclared,
    /// The manifest declares a tool that the plugin does not list.
    ToolMissing,
    /// A tool is described otherwise than the manifest does.
    ToolChanged,
    /// The schema of the configuration is another one.
    ConfigSchema,
    /// The plugin does not speak what its manifest says.
    Protocol,
    /// The name is another one.
    Name,
    /// The version is another one.
    Version,
    /// The plugin says of `multiSession` or `exclusive` what its manifest does not. The stricter of both holds.
    Sharing,
}

/// Something in which a running plugin and its manifest differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Drift {
    /// What differs.
    pub kind: DriftKind,
    /// The tool, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<PluginText>,
    /// How it differs.
    pub message: PluginText,
}

impl Drift {
    fn new(kind: DriftKind, message: impl Into<String>) -> Self {
        Self { kind, tool: None, message: PluginText::new(message.into()) }
    }

    fn of_tool(kind: DriftKind, tool: &str, message: &str) -> Self {
        let message = PluginText::new(format!("the tool {:?} {message}", PluginText::new(tool).raw()));
        Self { kind, tool: Some(PluginText::new(tool)), message }
    }

    /// Whether the plugin does not get what it asks for.
    pub fn is_refused(&self) -> bool {
        self.kind == DriftKind::ToolUndeclared
    }
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message.line())
    }
}

/// Holds an offer against the manifest: what goes beyond it is taken out.
pub(crate) fn hold(manifest: &ManifestFile, config_schema: Option<&Value>, offer: &mut Offer) {
    let said = &manifest.manifest;
    let mut drift = handshake(said, config_schema, offer);
    if said.multi_session == Some(false) && offer.multi_session && offer.dialect.is_lemon() {
        let message = "it says that it serves many sessions, its manifest that it serves one; it gets one";
        drift.push(Drift::new(DriftKind::Sharing, message));
        offer.multi_session = false;
    }
    if said.multi_session == Some(true) && !offer.multi_session {
        let message = "it says that it serves one session, its manifest that it serves many; it gets one";
        drift.push(Drift::new(DriftKind::Sharing, message));
    }
    if let Some(exclusive) = said.exclusive.filter(|exclusive| *exclusive != offer.exclusive) {
        let message = format!("its manifest says \"exclusive\": {exclusive}, the plugin the opposite; it is exclusive");
        if offer.dialect.is_lemon() {
            drift.push(Drift::new(DriftKind::Sharing, message));
        }
        offer.exclusive = true;
    }
    hold_tools(manifest, &mut offer.tools);
    offer.drift = drift;
}

fn handshake(said: &Manifest, config_schema: Option<&Value>, offer: &Offer) -> Vec<Drift> {
    let mut drift = Vec::new();
    let is_lemon = offer.dialect.is_lemon();
    let wants_lemon = said.hosts().any(|host| host.kind == HostType::External && !host.command.is_empty());
    if let Dialect::Mcp(_) = offer.dialect
        && wants_lemon
    {
        let message = "its manifest says that it speaks Lemon (host type external), and it speaks only MCP";
        drift.push(Drift::new(DriftKind::Protocol, message));
    }
    // An MCP server has a name and version of its own, which are not the package's.
    if is_lemon {
        for (kind, what, own, said) in [
            (DriftKind::Name, "name", &offer.server.name, &said.name),
            (DriftKind::Version, "version", &offer.server.version, &said.version),
        ] {
            if own != said {
                let own = PluginText::new(own.as_str());
                let message = format!("its {what} is {:?}, in its manifest it is {said:?}", own.raw());
                drift.push(Drift::new(kind, message));
            }
        }
    }
    if said.config_schema.is_some() && said.config_schema.as_ref() != config_schema {
        let message = "the schema of its configuration is not the one of its manifest; the plugin's own holds";
        drift.push(Drift::new(DriftKind::ConfigSchema, message));
    }
    drift
}

/// Puts the tools that the manifest does not declare into quarantine, and notes what differs.
pub(crate) fn hold_tools(manifest: &ManifestFile, list: &mut ToolList) {
    let Some(declared) = &manifest.manifest.tools else { return };
    let mut missing: BTreeMap<&str, &Tool> = declared.iter().map(|tool| (tool.name.as_str(), tool)).collect();
    let mut drift = Vec::new();
    let quarantined = &mut list.quarantined;
    list.tools.retain(|tool| {
        let Some(said) = missing.remove(tool.name.as_str()) else {
            let message = "is not declared in its manifest, so it is not offered";
            drift.push(Drift::of_tool(DriftKind::ToolUndeclared, &tool.name, message));
            let reason = "the manifest has `tools`, and this one is not among them";
            quarantined
                .push(Quarantined { tool: PluginText::new(tool.name.as_str()), reason: PluginText::new(reason) });
            return false;
        };
        if !is_alike(said, tool) {
            let message = "is described otherwise than in its manifest; the plugin's own description holds";
            drift.push(Drift::of_tool(DriftKind::ToolChanged, &tool.name, message));
        }
        true
    });
    for name in missing.into_keys().filter(|_| !manifest.manifest.tools_depend_on_cwd) {
        if !list.quarantined.iter().any(|refused| refused.tool.raw() == name) {
            drift.push(Drift::of_tool(DriftKind::ToolMissing, name, "is declared in its manifest and not there"));
        }
    }
    list.drift = drift;
}

/// Whether both say the same to a model.
fn is_alike(one: &Tool, other: &Tool) -> bool {
    let said = |tool: &Tool| {
        (tool.title.clone(), tool.description.clone(), tool.input_schema.clone(), tool.output_schema.clone())
    };
    said(one) == said(other)
}
