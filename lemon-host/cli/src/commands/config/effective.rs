//! Which value each key has, what says so, and what else was said and does not count.

use std::path::PathBuf;

use lemon_host::{ConfigKey, Limits, Provenance, Runtime, Setting, SettingValue, Timeouts};
use serde::Serialize;
use serde_json::{Value, json};

use crate::args::Global;
use crate::config::extensions::variables;
use crate::config::{Setup, user_home};

/// What a value comes from.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub(in crate::commands) enum Source {
    /// Lemon itself.
    BuiltIn,
    /// A key of a config file.
    File { file: PathBuf, line: usize },
    /// A variable of the environment.
    Variable { name: &'static str },
    /// A flag of the command line.
    Flag { name: &'static str },
    /// A manifest, or the schema in it.
    Manifest { file: PathBuf },
    /// A folder of extensions.
    Folder { path: PathBuf },
}

/// One key.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::commands) struct Row {
    /// As TOML has it in one line.
    pub(in crate::commands) key: String,
    /// None if it is not set, or set and not shown.
    #[serde(serialize_with = "plain")]
    pub(in crate::commands) value: Option<SettingValue>,
    /// Whether it is set and not shown.
    pub(in crate::commands) hidden: bool,
    pub(in crate::commands) source: Source,
    /// What others say, which does not count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(in crate::commands) overruled: Vec<Overruled>,
    /// What else there is to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) note: Option<String>,
}

#[derive(Debug, Serialize)]
pub(in crate::commands) struct Overruled {
    #[serde(serialize_with = "plain_value")]
    pub(in crate::commands) value: SettingValue,
    pub(in crate::commands) source: Source,
}

fn plain<S: serde::Serializer>(value: &Option<SettingValue>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(SettingValue::Plain(value)) => value.serialize(serializer),
        _ => serializer.serialize_none(),
    }
}

fn plain_value<S: serde::Serializer>(value: &SettingValue, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        SettingValue::Plain(value) => value.serialize(serializer),
        _ => serializer.serialize_none(),
    }
}

impl From<&Provenance> for Source {
    fn from(provenance: &Provenance) -> Self {
        match provenance {
            Provenance::Config { file, line } => Self::File { file: file.clone(), line: *line },
            Provenance::Flag => Self::Flag { name: "--plugin" },
            Provenance::Found { path, .. } => Self::Folder { path: path.clone() },
            _ => Self::BuiltIn,
        }
    }
}

impl From<&Setting> for Source {
    fn from(setting: &Setting) -> Self {
        Self::File { file: setting.origin.file.clone(), line: setting.origin.line }
    }
}

impl Row {
    pub(in crate::commands) fn new(key: impl Into<String>, value: SettingValue, source: Source) -> Self {
        let hidden = value == SettingValue::Hidden;
        Self { key: key.into(), value: Some(value), hidden, source, overruled: Vec::new(), note: None }
    }
}

/// `[runtime]`, `[tools]`, `[limits]` and `[timeouts]`, in the order of the reference.
pub(in crate::commands) fn rows(setup: &Setup, global: &Global) -> Vec<Row> {
    let built_in = BuiltIn::new();
    let by_environment = by_environment(setup);
    let mut rows = Vec::new();
    for key in ConfigKey::all() {
        match key.table {
            "tools" => rows.extend(lists(&key, setup, global)),
            table if table.contains("NAME") => {}
            _ => rows.push(single(&key, setup, &built_in, &by_environment)),
        }
    }
    rows
}

/// What Lemon has for each key.
struct BuiltIn {
    limits: Value,
    timeouts: Value,
}

impl BuiltIn {
    fn new() -> Self {
        let of = |table: serde_json::Result<Value>| table.unwrap_or_default();
        Self {
            limits: of(serde_json::to_value(Limits::default())),
            timeouts: of(serde_json::to_value(Timeouts::default())),
        }
    }

    fn of(&self, key: &ConfigKey) -> Value {
        let runtime = Runtime::default();
        match (key.table, key.key) {
            ("limits", key) => self.limits[key].clone(),
            ("timeouts", key) => self.timeouts[key].clone(),
            (_, "enabled") => runtime.enabled.into(),
            (_, "auto_load_default_paths") => runtime.auto_load_default_paths.into(),
            _ => json!([]),
        }
    }
}

/// A key of which one value counts: the variable's, else that of the first file, else Lemon's.
fn single(key: &ConfigKey, setup: &Setup, built_in: &BuiltIn, by_environment: &[(&'static str, Value)]) -> Row {
    let name = format!("{}.{}", key.table, key.key);
    let of_variable = by_environment.iter().filter(|(variable, _)| Some(*variable) == key.variable);
    let of_variable = of_variable.map(|(name, value)| (SettingValue::Plain(value.clone()), Source::Variable { name }));
    let of_files = setup.layers.iter().flat_map(|layer| &layer.config.settings);
    let of_files =
        of_files.filter(|setting| setting.key() == name).map(|setting| (setting.value.clone(), Source::from(setting)));
    let mut said = of_variable.chain(of_files);
    let (value, source) = said.next().unwrap_or_else(|| (SettingValue::Plain(built_in.of(key)), Source::BuiltIn));
    let overruled = said.map(|(value, source)| Overruled { value, source }).collect();
    Row { overruled, ..Row::new(name, value, source) }
}

/// A list of tools: what all say counts.
fn lists(key: &ConfigKey, setup: &Setup, global: &Global) -> Vec<Row> {
    let name = format!("{}.{}", key.table, key.key);
    let of_files = setup.layers.iter().flat_map(|layer| &layer.config.settings);
    let of_files = of_files.filter(|setting| setting.key() == name);
    let mut rows: Vec<_> =
        of_files.map(|setting| Row::new(&name, setting.value.clone(), Source::from(setting))).collect();
    let (flag, given) = match key.key {
        "disabled" => ("--disable", &global.disabled),
        _ => ("--enable-only", &global.enabled_only),
    };
    if !given.is_empty() {
        let value = SettingValue::Plain(given.as_slice().into());
        rows.insert(0, Row::new(&name, value, Source::Flag { name: flag }));
    }
    if rows.is_empty() {
        // An empty `enabled_only` would leave no tool.
        let value = (key.key == "disabled").then(|| SettingValue::Plain(json!([])));
        rows.push(Row { key: name, value, hidden: false, source: Source::BuiltIn, overruled: Vec::new(), note: None });
    }
    rows
}

/// The variables that overrule the files, with what they say; one that can't be understood does not.
fn by_environment(setup: &Setup) -> Vec<(&'static str, Value)> {
    // A variable has decided if the outcome is the same whatever was there before.
    let outcome = |before: bool| {
        let mut runtime = Runtime::default();
        if before {
            runtime.extension_paths = vec![PathBuf::from("/")];
        }
        (runtime.enabled, runtime.auto_load_default_paths) = (before, before);
        runtime.overrule(&variables(), &setup.cwd, user_home().as_deref());
        [
            (lemon_host::RuntimeVariables::EXTENSION_PATHS, paths(&runtime)),
            (lemon_host::RuntimeVariables::ENABLED, runtime.enabled.into()),
            (lemon_host::RuntimeVariables::AUTO_LOAD, runtime.auto_load_default_paths.into()),
        ]
    };
    let (one, other) = (outcome(false), outcome(true));
    one.into_iter().zip(other).filter(|(one, other)| one == other).map(|(decided, _)| decided).collect()
}

fn paths(runtime: &Runtime) -> Value {
    runtime.extension_paths.iter().map(|path| path.to_string_lossy()).collect()
}
