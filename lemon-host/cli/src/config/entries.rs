//! The plugins of all sources, in the order in which they win.

use std::collections::BTreeMap;

use lemon_host::{Class, PluginConfig, PluginName, PluginSpec, Provenance};
use serde::Serialize;

/// A plugin that is not started, as the config says so.
#[derive(Debug, Serialize)]
pub(crate) struct Disabled {
    pub(crate) name: PluginName,
    pub(crate) provenance: Provenance,
    /// What says so.
    pub(crate) by: Provenance,
}

/// The plugins in the order in which they win.
#[derive(Default)]
pub(super) struct Entries {
    pub(super) specs: Vec<PluginSpec>,
    pub(super) disabled: Vec<Disabled>,
    /// What the user's files say of plugins whose command they don't give.
    settings: BTreeMap<PluginName, Settings>,
    /// Where it is said that no extension runs, if it is.
    pub(super) no_extensions: Option<Provenance>,
}

struct Settings {
    entry: PluginConfig,
    is_used: bool,
}

/// Whether an entry only sets up a plugin that something else names.
pub(crate) fn is_settings(entry: &PluginConfig) -> bool {
    entry.command.is_empty() && entry.path.is_none()
}

impl Entries {
    /// Notes what a user's file says of plugins whose command it does not give; files that win come first.
    pub(super) fn note_settings(&mut self, entries: &BTreeMap<PluginName, PluginConfig>) {
        for (name, entry) in entries.iter().filter(|(_, entry)| is_settings(entry)) {
            let settings = || Settings { entry: entry.clone(), is_used: false };
            self.settings.entry(name.clone()).or_insert_with(settings);
        }
    }

    /// Adds the entries of a file that give a command.
    pub(super) fn add_all(&mut self, class: Class, entries: BTreeMap<PluginName, PluginConfig>) {
        for (name, entry) in entries.into_iter().filter(|(_, entry)| !is_settings(entry)) {
            self.add_entry(name, class, entry);
        }
    }

    /// Adds a plugin of the command line, with what the user's files say of it. Whoever names it wants it, whatever they
    /// say of `enabled`.
    pub(super) fn add_named(&mut self, mut spec: PluginSpec) {
        if let Some(settings) = self.settings.get_mut(&spec.name) {
            settings.is_used = true;
            spec.set_up(&settings.entry);
        }
        self.add(spec, true);
    }

    /// Adds an entry with a command.
    pub(super) fn add_entry(&mut self, name: PluginName, class: Class, entry: PluginConfig) {
        let enabled = entry.enabled;
        self.add(PluginSpec::from_config(name, class, entry), enabled);
    }

    /// Adds a plugin that no config file gave a command, and what one says of it.
    pub(super) fn add_found(&mut self, mut spec: PluginSpec) {
        let Some(settings) = self.settings.get_mut(&spec.name) else {
            return self.add(spec, true);
        };
        settings.is_used = true;
        let entry = &settings.entry;
        if !entry.enabled {
            let by = entry.origin.clone().into();
            return self.disabled.push(Disabled { name: spec.name, provenance: spec.provenance, by });
        }
        spec.set_up(entry);
        self.add(spec, true);
    }

    pub(super) fn add(&mut self, spec: PluginSpec, enabled: bool) {
        if let Some(by) = self.no_extensions.clone().filter(|_| spec.class == Class::Extension) {
            return self.disabled.push(Disabled { name: spec.name, provenance: spec.provenance, by });
        }
        let is_taken = self.specs.iter().any(|winner| winner.name == spec.name);
        let by = match self.disabled.iter().find(|earlier| earlier.name == spec.name) {
            // An entry that switches a plugin off wins over later ones like any other.
            Some(earlier) if !is_taken => earlier.by.clone(),
            _ if enabled => return self.specs.push(spec),
            _ => spec.provenance.clone(),
        };
        self.disabled.push(Disabled { name: spec.name, provenance: spec.provenance, by });
    }

    /// Whether a plugin does not run because the user said so.
    pub(super) fn is_switched_off(&self, name: &PluginName) -> bool {
        let by_settings = self.settings.get(name).is_some_and(|settings| !settings.entry.enabled);
        by_settings || self.no_extensions.is_some() || self.disabled.iter().any(|disabled| disabled.name == *name)
    }

    /// What is said of plugins that are nowhere, a line each. `held` are those that are there and may not run.
    pub(super) fn unused<'a>(&self, held: impl Iterator<Item = &'a PluginName> + Clone) -> Vec<String> {
        let unused =
            self.settings.iter().filter(|(name, settings)| !settings.is_used && !held.clone().any(|it| it == *name));
        let told = |(name, Settings { entry, .. }): (&PluginName, &Settings)| {
            format!(
                "{}: [plugins.{name}] has no `command`, and there is no plugin of that name in a folder of extensions",
                Provenance::from(entry.origin.clone())
            )
        };
        unused.map(told).collect()
    }
}
