//! What all plugins offer together: one list of tools, each under the one name that calls use.

pub(crate) mod listing;
mod names;

use std::collections::BTreeMap;
use std::sync::Arc;

use lemon_protocol::Tool;
use serde::Serialize;
use serde_json::Value;

use crate::plugin::live::Quarantined;
use crate::plugin::{Class, Plugin, PluginName};
use crate::report::PluginText;

use names::PublicName;
pub(crate) use names::nearest;
use names::{RawName, Source, public_names};

/// One tool under its public name.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) name: PublicName,
    pub(crate) plugin: Arc<Plugin>,
    pub(crate) tool: Arc<Tool>,
}

/// The tools of all plugins that are ready, or were before they failed, in the order of plugins.
#[derive(Default)]
pub(crate) struct Catalog {
    entries: Vec<Entry>,
    by_name: BTreeMap<String, usize>,
    pub(crate) shadowed: Vec<Shadowed>,
    pub(crate) quarantined: BTreeMap<PluginName, Vec<Quarantined>>,
}

/// A tool that another one of the same name hides.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Shadowed {
    /// The name.
    pub tool: String,
    /// The plugin whose tool is hidden.
    pub plugin: PluginName,
    /// The plugin whose tool is called.
    pub winner: PluginName,
}

/// One tool, for a list.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolInfo {
    /// The name that calls use: of `A-Z`, `a-z`, `0-9`, `_` and `-`, at most 64.
    pub name: String,
    /// The plugin that offers it.
    pub plugin: PluginName,
    /// Where the user put that plugin.
    pub class: Class,
    /// The name by which the plugin knows it.
    pub raw_name: PluginText,
    /// A name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<PluginText>,
    /// What it does, free of secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<PluginText>,
    /// The JSON Schema of its arguments.
    pub input_schema: Value,
    /// The JSON Schema of its structured result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
}

impl Catalog {
    /// Puts the tools of `plugins`, which are in order, under their names.
    pub(crate) fn build(plugins: &[Arc<Plugin>]) -> Self {
        let mut catalog = Self::default();
        let mut offered = Vec::new();
        for plugin in plugins {
            let Some(list) = plugin.tools() else { continue };
            catalog.quarantined.insert(plugin.name().clone(), list.quarantined.clone());
            offered.extend(list.tools.iter().map(|tool| (plugin.clone(), tool.clone())));
        }
        let raw: Vec<RawName<'_>> =
            offered.iter().map(|(plugin, tool)| RawName { source: source(plugin), name: &tool.name }).collect();
        let names = public_names(&raw, &[]);
        for ((plugin, tool), name) in offered.iter().zip(names) {
            match name {
                Ok(name) => catalog.add(Entry { name, plugin: plugin.clone(), tool: tool.clone() }),
                Err(error) => catalog.quarantined.entry(plugin.name().clone()).or_default().push(Quarantined {
                    tool: PluginText::new(tool.name.clone()),
                    reason: PluginText::new(error.to_string()),
                }),
            }
        }
        catalog
    }

    fn add(&mut self, entry: Entry) {
        if let Some(winner) = self.by_name.get(entry.name.as_str()) {
            self.shadowed.push(Shadowed {
                tool: entry.name.to_string(),
                plugin: entry.plugin.name().clone(),
                winner: self.entries[*winner].plugin.name().clone(),
            });
            return;
        }
        self.by_name.insert(entry.name.to_string(), self.entries.len());
        self.entries.push(entry);
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Entry> {
        self.by_name.get(name).map(|index| &self.entries[*index])
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.name.as_str())
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

impl Entry {
    pub(crate) fn info(&self) -> ToolInfo {
        let shown = |text: &String| PluginText::new(self.plugin.redact(text));
        ToolInfo {
            name: self.name.to_string(),
            plugin: self.plugin.name().clone(),
            class: self.plugin.spec().class,
            raw_name: PluginText::new(self.tool.name.clone()),
            title: self.tool.title.as_ref().map(shown),
            description: self.tool.description.as_ref().map(shown),
            input_schema: self.tool.input_schema.clone(),
            output_schema: self.tool.output_schema.clone(),
        }
    }
}

fn source(plugin: &Plugin) -> Source<'_> {
    match plugin.spec().class {
        Class::Extension => Source::Extension,
        Class::Mcp => Source::Mcp(plugin.name().as_str()),
    }
}
