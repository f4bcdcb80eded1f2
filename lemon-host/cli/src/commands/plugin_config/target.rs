//! The plugin whose settings are meant, and what is known of them.

use std::path::PathBuf;

use lemon_host::{Class, ConfigSchema, ManifestFile, PluginName, Provenance, Secrets, StoredSecrets, Violation};
use serde_json::{Map, Value};

use super::super::config::plugins::{schema_in, schema_of};
use super::change::Change;
use super::shown_key;
use crate::config::{Setup, is_settings};
use crate::errors::{self, Failure, shown};
use crate::exit::Exit;

/// A plugin and its settings.
pub(super) struct Target {
    pub(super) name: PluginName,
    pub(super) class: Class,
    /// The user's config file.
    pub(super) file: PathBuf,
    /// Lemon's home folder.
    pub(super) home: PathBuf,
    /// What its manifest says of its settings.
    pub(super) schema: Option<ConfigSchema>,
    /// What is set now, as it stands in the files.
    pub(super) values: Map<String, Value>,
}

impl Target {
    /// Finds it among all plugins, those that are not started included.
    ///
    /// # Errors
    /// There is none of that name, or its settings come from a file that is not the user's own.
    pub(super) fn of(name: &str, setup: &Setup) -> Result<Self, Failure> {
        let known = known(setup);
        let found = name.parse::<PluginName>().ok().filter(|name| known.contains(name));
        let Some(name) = found else {
            let known: Vec<_> = known.iter().map(PluginName::as_str).collect();
            return Err(errors::unknown_plugin(name, &known));
        };
        let Some(home) = setup.sources.home.clone() else {
            return Err(Failure::new(Exit::Usage, "there is no folder for the config").hint("set HOME or LEMON_HOME"));
        };
        let file = home.join("config.toml");
        let mut target = Self { name, class: Class::Extension, file, home, schema: None, values: Map::new() };
        target.fill(setup)?;
        Ok(target)
    }

    fn fill(&mut self, setup: &Setup) -> Result<(), Failure> {
        let user = setup.layers.iter().filter(|layer| layer.from == "user");
        for layer in user {
            if layer.config.servers.contains_key(&self.name) {
                self.class = Class::Mcp;
            }
            let entry = layer.config.plugins.get(&self.name).or_else(|| layer.config.servers.get(&self.name));
            if let Some(entry) = entry {
                self.values.clone_from(&entry.config);
                // One that is disabled has no other place where its manifest would have been read.
                let manifest = entry.path.as_ref().and_then(|path| ManifestFile::read(path).ok());
                self.schema = manifest.and_then(|manifest| schema_in(&manifest, setup));
            }
        }
        if let Some(spec) = setup.specs.iter().find(|spec| spec.name == self.name) {
            self.is_ours(&spec.provenance, setup)?;
            self.values.clone_from(&spec.config);
            self.schema = schema_of(spec, setup);
        } else if let Some(held) = setup.sources.not_run.held.iter().find(|held| held.name == self.name) {
            // It is only read, and what it says is as hostile as anything.
            let manifest = ManifestFile::read(&held.path).ok();
            self.schema = manifest.and_then(|manifest| schema_in(&manifest, setup));
        }
        Ok(())
    }

    /// Whether what the user's file says of the plugin counts, or would.
    fn is_ours(&self, provenance: &Provenance, setup: &Setup) -> Result<(), Failure> {
        let mut layers = setup.layers.iter();
        let counts = match provenance {
            Provenance::Config { file, .. } => {
                let of_flag = layers.find(|layer| layer.from == "--config");
                !of_flag.is_some_and(|layer| layer.config.settings.iter().any(|setting| setting.origin.file == *file))
            }
            // A whole entry is about another plugin of that name.
            _ => !layers.any(|layer| {
                let entry = layer.config.plugins.get(&self.name).filter(|entry| !is_settings(entry));
                entry.or_else(|| layer.config.servers.get(&self.name)).is_some()
            }),
        };
        if counts {
            return Ok(());
        }
        let place = shown(&provenance.to_string());
        let what = format!("plugin {} comes from {place}, which wins over the one of your own config", self.name);
        Err(Failure::new(Exit::Usage, what).hint("set it up there, under another name, or leave that out"))
    }

    /// All that is wrong with values; nothing where no schema says what they must be.
    pub(super) async fn faults(&self, values: &Map<String, Value>, secrets: &dyn Secrets) -> Vec<Violation> {
        match &self.schema {
            Some(schema) => schema.faults(values, secrets).await,
            None => Vec::new(),
        }
    }

    /// Whether a change may be made: nothing that it sets may be wrong. What else is wrong or missing may stay so.
    ///
    /// # Errors
    /// What is wrong.
    pub(super) async fn check(&self, change: &Change, setup: &Setup) -> Result<(), Failure> {
        let (mut values, mut secrets) = (self.values.clone(), setup.secrets.clone());
        let before = self.faults(&values, &secrets).await;
        change.apply(self, &mut values, &mut secrets);
        let after = self.faults(&values, &secrets).await;
        let is_set = |fault: &Violation| {
            let key = fault.pointer.split('/').nth(1).unwrap_or_default().replace("~1", "/").replace("~0", "~");
            change.set.contains_key(&key)
        };
        let wrong: Vec<_> = after
            .iter()
            .filter(|fault| is_set(fault) || !change.set.is_empty() && !before.contains(fault))
            .map(ToString::to_string)
            .collect();
        if wrong.is_empty() {
            return Ok(());
        }
        Err(Failure::new(Exit::Usage, format!("plugin {} does not take this; nothing was changed", self.name))
            .why(wrong.join("\n"))
            .hint(self.keys()))
    }

    /// Which settings there are.
    fn keys(&self) -> String {
        const MOST: usize = 20;
        let keys: Vec<_> = self.schema.iter().flat_map(ConfigSchema::keys).take(MOST).map(shown_key).collect();
        if keys.is_empty() {
            "its manifest describes no settings".to_owned()
        } else {
            format!("its settings are {}", keys.join(", "))
        }
    }

    /// The name under which the secret of a setting is kept.
    pub(super) fn secret_name(&self, key: &str) -> String {
        StoredSecrets::name_of(&self.name, key)
    }
}

/// All plugins that something is known of.
fn known(setup: &Setup) -> Vec<PluginName> {
    let mut names = setup.names();
    names.extend(setup.sources.not_run.held.iter().map(|held| held.name.clone()));
    names.extend(
        setup.layers.iter().filter(|layer| layer.from == "user").flat_map(|layer| layer.config.plugins.keys().cloned()),
    );
    names.sort();
    names.dedup();
    names
}
