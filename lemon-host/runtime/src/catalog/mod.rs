//! What everything offers together: one list of tools, each under the one name that calls use.
//!
//! Names are settled by precedence, the same on every run: built-in tools, tools that the program registered, extensions,
//! MCP servers; among those of one kind by identity, then as they are declared. Who loses stays listed as shadowed.

mod annotations;
mod conflict;
mod filter;
mod fingerprint;
mod host_tool;
pub(crate) mod listing;
pub(crate) mod names;
mod registry;
mod source;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use lemon_protocol::Tool;
use serde::Serialize;
use serde_json::Value;

use crate::error::Callee;
pub(crate) use crate::nearest::nearest;
use crate::plugin::live::Quarantined;
use crate::plugin::{Listed, Plugin};
use crate::report::PluginText;

pub use annotations::ToolAnnotations;
pub use conflict::{Conflict, ConflictReport, LoadError};
pub use filter::{HiddenBy, ToolFilter};
pub use fingerprint::Fingerprint;
pub use host_tool::{HostTool, HostToolError, ToolCall};
pub use registry::ToolRegistry;
pub use source::ToolSource;

use names::PublicName;
use names::{RawName, Source, public_names};

/// One tool under its public name.
pub(crate) struct Entry {
    pub(crate) name: PublicName,
    /// The name that it would have if no other tool were there, if that is another one.
    alone: Option<PublicName>,
    pub(crate) source: ToolSource,
    pub(crate) provider: Provider,
    pub(crate) tool: Arc<Tool>,
    pub(crate) listed: Listed,
    /// How the params of its calls begin, up to the arguments.
    pub(crate) call_head: String,
}

/// What runs a tool.
#[derive(Clone)]
pub(crate) enum Provider {
    /// A function of the embedding program's.
    Program(HostTool),
    /// A plugin's processes.
    Plugin(Arc<Plugin>),
}

/// The tools of the program, and of all plugins that are ready or were before they failed, in order of precedence.
#[derive(Default)]
pub(crate) struct Catalog {
    entries: Vec<Arc<Entry>>,
    by_name: HashMap<String, usize>,
    hidden: BTreeMap<String, HiddenBy>,
    conflicts: BTreeMap<String, Conflict>,
    quarantined: Vec<(ToolSource, Quarantined)>,
    /// How many changes of the registry it knows of.
    pub(crate) registry_version: u64,
}

/// What a catalogue is made of.
pub(crate) struct Offers<'a> {
    pub(crate) builtins: &'a [HostTool],
    pub(crate) registry: &'a ToolRegistry,
    /// In order.
    pub(crate) plugins: &'a [Arc<Plugin>],
    pub(crate) filter: &'a ToolFilter,
}

/// One tool, for a list.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolInfo {
    /// The name that calls use: of `A-Z`, `a-z`, `0-9`, `_` and `-`, at most 64.
    pub name: String,
    /// Who provides it.
    #[serde(flatten)]
    pub source: ToolSource,
    /// The name that its provider gave it.
    pub raw_name: PluginText,
    /// A name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<PluginText>,
    /// What it does, free of secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<PluginText>,
    /// What it says of its own effects.
    #[serde(skip_serializing_if = "ToolAnnotations::is_empty")]
    pub annotations: ToolAnnotations,
    /// The JSON Schema of its arguments.
    pub input_schema: Value,
    /// The JSON Schema of its structured result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Where it was listed.
    pub listed: Listed,
    /// What it is, for a call that [expects](crate::Call::expecting) it to be that.
    #[serde(skip)]
    pub fingerprint: Fingerprint,
}

/// A tool before its name is settled.
struct Offered {
    source: ToolSource,
    provider: Provider,
    tool: Arc<Tool>,
    listed: Listed,
}

impl Catalog {
    /// Puts all tools under their names.
    pub(crate) fn build(offers: &Offers<'_>) -> Self {
        let (registered, registry_version) = offers.registry.tools();
        let mut catalog = Self { registry_version, ..Self::default() };
        let mut offered = Vec::new();
        let programs = offers.builtins.iter().map(|tool| (ToolSource::Builtin, tool.clone()));
        let registered = registered.into_iter().map(|tool| (ToolSource::Registered, tool));
        offered.extend(programs.chain(registered).map(|(source, tool)| Offered {
            source,
            tool: tool.tool.clone(),
            provider: Provider::Program(tool),
            listed: Listed::Live,
        }));
        for plugin in offers.plugins {
            let Some(list) = plugin.tools() else { continue };
            let source = ToolSource::of(plugin);
            for refused in &list.quarantined {
                catalog.quarantine(source.clone(), plugin, refused.tool.raw(), refused.reason.raw());
            }
            offered.extend(list.tools.iter().map(|tool| Offered {
                source: source.clone(),
                provider: Provider::Plugin(plugin.clone()),
                tool: tool.clone(),
                listed: list.listed,
            }));
        }
        let raw: Vec<_> = offered.iter().map(|offered| raw_name(&offered.source, &offered.tool)).collect();
        let names = public_names(&raw);
        for (Offered { source, provider, tool, listed }, name) in offered.into_iter().zip(names) {
            match name {
                Ok(name) => {
                    let alone = Some(raw_name(&source, &tool).alone()).filter(|alone| *alone != name);
                    let call_head = format!(r#"{{"name":{},"arguments":"#, Value::from(tool.name.as_str()));
                    catalog.add(Entry { name, alone, source, provider, tool, listed, call_head }, offers.filter);
                }
                // The program's own names are checked where they are given.
                Err(error) => {
                    if let Provider::Plugin(plugin) = &provider {
                        catalog.quarantine(source, plugin, &tool.name, &error.to_string());
                    }
                }
            }
        }
        catalog
    }

    fn quarantine(&mut self, source: ToolSource, plugin: &Plugin, tool: &str, reason: &str) {
        let told = |text: &str| PluginText::new(plugin.redact(text));
        self.quarantined.push((source, Quarantined { tool: told(tool), reason: told(reason) }));
    }

    fn add(&mut self, entry: Entry, filter: &ToolFilter) {
        let name = entry.name.as_str();
        if let Some(winner) = self.by_name.get(name) {
            let winner = &self.entries[*winner].source;
            let conflict = self.conflicts.entry(name.to_owned()).or_insert_with(|| Conflict {
                tool_name: name.to_owned(),
                winner: winner.clone(),
                shadowed: Vec::new(),
            });
            conflict.shadowed.push(entry.source);
            return;
        }
        if let Some(rule) = entry.hidden_by(filter) {
            self.hidden.insert(name.to_owned(), rule);
        }
        self.by_name.insert(name.to_owned(), self.entries.len());
        self.entries.push(Arc::new(entry));
    }

    /// The tool of that name, and what hides it.
    pub(crate) fn find(&self, name: &str) -> Option<(&Arc<Entry>, Option<&HiddenBy>)> {
        let entry = &self.entries[*self.by_name.get(name)?];
        Some((entry, if self.hidden.is_empty() { None } else { self.hidden.get(name) }))
    }

    /// The tools that can be called.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.entries.iter().filter(|entry| !self.hidden.contains_key(entry.name.as_str()))
    }

    /// The names of all tools, hidden ones included.
    pub(crate) fn all_names(&self) -> impl Iterator<Item = &str> + Clone {
        self.entries.iter().map(|entry| entry.name.as_str())
    }

    /// The names that the filter hides, each with its rule.
    pub(crate) fn hidden(&self) -> &BTreeMap<String, HiddenBy> {
        &self.hidden
    }

    pub(crate) fn conflicts(&self) -> impl Iterator<Item = &Conflict> {
        self.conflicts.values()
    }

    /// What is not offered of a source, and why.
    pub(crate) fn quarantined(&self, source: &ToolSource) -> Vec<Quarantined> {
        self.quarantined.iter().filter(|(of, _)| of == source).map(|(_, refused)| refused.clone()).collect()
    }

    /// The report, but for what could not be loaded.
    pub(crate) fn report(&self) -> ConflictReport {
        let mut report = ConflictReport {
            conflicts: self.conflicts.values().cloned().collect(),
            shadowed_count: self.conflicts.values().map(|conflict| conflict.shadowed.len()).sum(),
            ..ConflictReport::default()
        };
        for entry in self.entries() {
            report.total_tools += 1;
            *match entry.source {
                ToolSource::Builtin => &mut report.builtin_count,
                ToolSource::Registered => &mut report.registered_count,
                ToolSource::Extension { .. } => &mut report.extension_count,
                ToolSource::Mcp { .. } => &mut report.mcp_count,
            } += 1;
        }
        report
    }
}

fn raw_name<'a>(source: &'a ToolSource, tool: &'a Tool) -> RawName<'a> {
    let source = match source {
        ToolSource::Mcp { plugin } => Source::Mcp(plugin.as_str()),
        ToolSource::Builtin | ToolSource::Registered | ToolSource::Extension { .. } => Source::Plain,
    };
    RawName { source, name: &tool.name }
}

impl Entry {
    /// What hides the tool: its name, or the one that it would have if no other tool were there. So a filter goes on
    /// holding when a new tool makes this one's name longer.
    pub(crate) fn hidden_by(&self, filter: &ToolFilter) -> Option<HiddenBy> {
        let names = [Some(&self.name), self.alone.as_ref()];
        filter.hides(names.into_iter().flatten().map(PublicName::as_str))
    }

    pub(crate) fn info(&self) -> ToolInfo {
        let shown = |text: &String| self.shown(text);
        ToolInfo {
            name: self.name.to_string(),
            source: self.source.clone(),
            raw_name: shown(&self.tool.name),
            title: self.tool.title.as_ref().map(shown),
            description: self.description(),
            annotations: self.annotations(),
            input_schema: self.told(&self.tool.input_schema),
            output_schema: self.tool.output_schema.as_ref().map(|schema| self.told(schema)),
            listed: self.listed,
            fingerprint: self.fingerprint(),
        }
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.source, &self.tool)
    }

    /// What it does, free of secrets.
    pub(crate) fn description(&self) -> Option<PluginText> {
        self.tool.description.as_deref().map(|text| self.shown(text))
    }

    pub(crate) fn annotations(&self) -> ToolAnnotations {
        ToolAnnotations::read(self.tool.annotations.as_ref())
    }

    /// A text of its provider's, free of secrets.
    pub(crate) fn redacted(&self, text: &str) -> String {
        match &self.provider {
            Provider::Program(_) => text.to_owned(),
            Provider::Plugin(plugin) => plugin.redact(text),
        }
    }

    fn shown(&self, text: &str) -> PluginText {
        PluginText::new(self.redacted(text))
    }

    /// Whom a call of it asks.
    pub(crate) fn callee(&self) -> Callee {
        match &self.provider {
            Provider::Plugin(plugin) => Callee::Plugin(plugin.name().clone()),
            Provider::Program(tool) => Callee::Tool(tool.name().to_owned()),
        }
    }

    /// A schema, free of secrets.
    fn told(&self, schema: &Value) -> Value {
        if matches!(self.provider, Provider::Program(_)) {
            return schema.clone();
        }
        let text = schema.to_string();
        let redacted = self.redacted(&text);
        if redacted == text { schema.clone() } else { serde_json::from_str(&redacted).unwrap_or_default() }
    }
}
