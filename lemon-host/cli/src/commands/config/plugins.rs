//! Every plugin that some place names: whether it counts, and what is said of it.

use std::path::Path;

use lemon_host::{
    Class, ConfigSchema, ManifestFile, Origin, PluginName, PluginSpec, Provenance, SecretPlace, Setting, SettingValue,
};
use serde::Serialize;
use serde_json::Value;

use super::effective::{Row, Source};
use crate::config::extensions::held_why;
use crate::config::{Setup, is_settings};
use crate::errors::shown;

/// What one place says of one plugin.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::commands) struct Section {
    pub(in crate::commands) name: PluginName,
    pub(in crate::commands) class: Class,
    pub(in crate::commands) source: Source,
    pub(in crate::commands) state: State,
    /// Why it does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) why: Option<String>,
    pub(in crate::commands) settings: Vec<Row>,
}

/// Whether a plugin counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::commands) enum State {
    InForce,
    Disabled,
    /// Another place has one of that name.
    Overruled,
    /// It is not trusted, or can't be run.
    Held,
    /// There is no such plugin.
    Absent,
}

/// All of them, by name; those that count first.
pub(in crate::commands) fn sections(setup: &Setup) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for spec in &setup.specs {
        let winner = sections.iter().find(|section| section.name == spec.name);
        let (state, why) = match winner {
            None => (State::InForce, None),
            Some(winner) => {
                (State::Overruled, Some(format!("{} has one of that name, and wins", place(&winner.source))))
            }
        };
        sections.push(Section { state, why, ..of_spec(spec, setup) });
    }
    for disabled in &setup.sources.disabled {
        let why = if disabled.by == disabled.provenance {
            "enabled = false".to_owned()
        } else {
            format!("by {}", shown(&disabled.by.to_string()))
        };
        let (class, settings) = of_provenance(&disabled.name, &disabled.provenance, setup);
        let source = Source::from(&disabled.provenance);
        let name = disabled.name.clone();
        sections.push(Section { name, class, source, state: State::Disabled, why: Some(why), settings });
    }
    for held in &setup.sources.not_run.held {
        let settings = of_user(&held.name, setup);
        let source = Source::Folder { path: held.path.clone() };
        let (name, why) = (held.name.clone(), Some(held_why(held)));
        sections.push(Section { name, class: Class::Extension, source, state: State::Held, why, settings });
    }
    for (name, origin) in
        setup.layers.iter().flat_map(|layer| &layer.config.plugins).map(|(name, entry)| (name, &entry.origin))
    {
        if sections.iter().any(|section| section.name == *name) {
            continue;
        }
        let why = Some("it has no `command`, and no folder of extensions has a plugin of that name".to_owned());
        let source = Source::File { file: origin.file.clone(), line: origin.line };
        let settings = of_user(name, setup);
        sections.push(Section {
            name: name.clone(),
            class: Class::Extension,
            source,
            state: State::Absent,
            why,
            settings,
        });
    }
    sections.sort_by(|a, b| a.name.cmp(&b.name));
    sections
}

fn of_spec(spec: &PluginSpec, setup: &Setup) -> Section {
    let (_, mut settings) = of_provenance(&spec.name, &spec.provenance, setup);
    if let Some(schema) = schema_of(spec, setup) {
        let file = spec.manifest.as_ref().map(|manifest| manifest.path.clone()).unwrap_or_default();
        for key in schema.keys() {
            let name = lemon_host::dotted_key(&["config".to_owned(), key.to_owned()]);
            let is_secret = schema.is_secret(key);
            if let Some(row) = settings.iter_mut().find(|row| row.key == name) {
                if is_secret && !names_secret(row) {
                    (row.value, row.hidden) = (Some(SettingValue::Hidden), true);
                }
            } else if let Some(default) = schema.default_of(key) {
                let default = if is_secret { SettingValue::Hidden } else { SettingValue::of_config(key, default) };
                settings.push(Row::new(name, default, Source::Manifest { file: file.clone() }));
            }
        }
    }
    if !settings.iter().any(|row| row.key == "command") {
        let source = match &spec.manifest {
            Some(manifest) => Source::Manifest { file: manifest.path.clone() },
            None => Source::from(&spec.provenance),
        };
        let command = SettingValue::Plain(spec.command.as_slice().into());
        settings.insert(0, Row::new("command", command, source));
    }
    if !settings.iter().any(|row| row.key == "enabled") {
        settings.push(Row::new("enabled", SettingValue::Plain(true.into()), Source::BuiltIn));
    }
    let (name, source) = (spec.name.clone(), Source::from(&spec.provenance));
    Section { name, class: spec.class, source, state: State::InForce, why: None, settings }
}

/// The schema of a plugin's own settings, if it has a manifest with one.
pub(crate) fn schema_of(spec: &PluginSpec, setup: &Setup) -> Option<ConfigSchema> {
    schema_in(spec.manifest.as_deref()?, setup)
}

pub(crate) fn schema_in(manifest: &ManifestFile, setup: &Setup) -> Option<ConfigSchema> {
    Some(ConfigSchema::new(manifest.manifest.config_schema.clone()?, setup.limits.clone()))
}

/// What the place that a plugin comes from says of it: an entry, or what the user's files say of one that they don't give.
fn of_provenance(name: &PluginName, provenance: &Provenance, setup: &Setup) -> (Class, Vec<Row>) {
    let Provenance::Config { file, line } = provenance else { return (Class::Extension, of_user(name, setup)) };
    let is_it = |origin: &Origin| origin.file == *file && origin.line == *line;
    for layer in &setup.layers {
        if layer.config.plugins.get(name).is_some_and(|entry| is_it(&entry.origin)) {
            return (Class::Extension, rows(&layer.config.settings, &["plugins", name.as_str()], setup));
        }
        if layer.config.servers.get(name).is_some_and(|entry| is_it(&entry.origin)) {
            return (Class::Mcp, rows(&layer.config.settings, &["mcp", "servers", name.as_str()], setup));
        }
    }
    (Class::Extension, Vec::new())
}

/// What the first of the user's files says of a plugin whose command it does not give.
fn of_user(name: &PluginName, setup: &Setup) -> Vec<Row> {
    let mut layers = setup.layers.iter().filter(|layer| layer.from != "project");
    let layer = layers.find(|layer| layer.config.plugins.get(name).is_some_and(is_settings));
    layer.map_or_else(Vec::new, |layer| rows(&layer.config.settings, &["plugins", name.as_str()], setup))
}

fn rows(settings: &[Setting], tables: &[&str], setup: &Setup) -> Vec<Row> {
    let inner = |setting: &Setting| {
        let (outer, inner) = setting.path.split_at_checked(tables.len())?;
        (outer == tables).then(|| lemon_host::dotted_key(inner))
    };
    let row = |setting| {
        let mut row = Row::new(inner(setting)?, setting.value.clone(), Source::from(setting));
        row.note = secret(&setting.value).map(|name| where_is(name, setup).to_owned());
        Some(row)
    };
    settings.iter().filter_map(row).collect()
}

fn names_secret(row: &Row) -> bool {
    row.value.as_ref().is_some_and(|value| secret(value).is_some())
}

/// The name in `{ secret = "NAME" }`.
fn secret(value: &SettingValue) -> Option<&str> {
    let SettingValue::Plain(Value::Object(members)) = value else { return None };
    members.get("secret").filter(|_| members.len() == 1)?.as_str()
}

fn where_is(secret: &str, setup: &Setup) -> &'static str {
    match setup.secrets.place(secret) {
        Some(SecretPlace::Environment) => "it is set in the environment",
        Some(_) => "it is set in secrets.toml",
        None => "it is not set",
    }
}

/// What a value comes from, for the middle of a line.
pub(in crate::commands) fn place(source: &Source) -> String {
    let path = |path: &Path| shown(&path.to_string_lossy());
    match source {
        Source::BuiltIn => "built-in".to_owned(),
        Source::File { file, line } => format!("{}:{line}", path(file)),
        Source::Variable { name } | Source::Flag { name } => (*name).to_owned(),
        Source::Manifest { file } => path(file),
        Source::Folder { path: folder } => path(folder),
    }
}
