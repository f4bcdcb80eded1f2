//! One plugin's table in a config file.

use std::{collections::BTreeMap, fmt, path::PathBuf, time::Duration};

use serde_json::Map;
use toml::de::{DeTable, DeValue};

use super::{
    ConfigWarning, Origin,
    reading::{Key, Reading, Value, shown},
};
use crate::plugin::PluginName;

/// The keys of an entry; the last is for MCP servers only.
const KEYS: &[&str] =
    &["command", "cwd", "env", "config", "enabled", "timeout_ms", "start_timeout_ms", "rlimits", "roots"];
const LIMIT_KEYS: &[&str] = &["address_space_bytes", "open_files", "processes", "cpu_seconds"];

/// How a plugin is started, as one table of a config file says.
///
/// `Debug` shows no value of `env` and `config`, which may be secrets.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct PluginConfig {
    /// The program and its arguments, for no shell; never empty, and neither is the program. A
    /// relative program is one in PATH or, with a `/`, one from the folder that the plugin runs in.
    pub command: Vec<String>,
    /// The folder that it runs in; the session's where the config names none.
    pub cwd: Option<PathBuf>,
    /// Variables beside those that every plugin gets.
    pub env: BTreeMap<String, EnvValue>,
    /// The plugin's own settings. Values like `{ "secret": "NAME" }` are as they stand in the file;
    /// each stands for the secret of that name.
    pub config: Map<String, serde_json::Value>,
    /// Whether it is started at all; true where the config does not say.
    pub enabled: bool,
    /// How long one of its tool calls may take in all.
    pub timeout: CallTimeout,
    /// How long it may take from the spawn to the end of the handshake, where the config says.
    pub start_timeout: Option<Duration>,
    /// What the system refuses its process.
    pub rlimits: ProcessLimits,
    /// Folders that an MCP server is told of. Empty where the config names none, and always for an
    /// extension; then the host does not even say that it has such a list.
    pub roots: Vec<PathBuf>,
    /// Where its name stands.
    pub origin: Origin,
}

/// A variable's value.
#[derive(Clone, PartialEq, Eq)]
pub enum EnvValue {
    /// The value itself. Not shown by `Debug`: many put a secret there.
    Literal(String),
    /// The name of a secret that is read when the plugin starts.
    Secret(String),
}

/// How long a tool call may take in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallTimeout {
    /// What the tool asks for, else the host's default.
    #[default]
    Unset,
    /// As long as it wants: `timeout_ms = 0`.
    Never,
    /// This long.
    After(Duration),
}

/// What the system refuses a plugin's process, where the config says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessLimits {
    /// Bytes of address space.
    pub address_space_bytes: Option<u64>,
    /// Files open at a time.
    pub open_files: Option<u64>,
    /// Processes of the user at a time.
    pub processes: Option<u64>,
    /// Seconds of processor time.
    pub cpu_seconds: Option<u64>,
}

/// The name in a value like `{ "secret": "NAME" }`, which stands for the secret of that name.
pub(crate) fn secret_name(value: &serde_json::Value) -> Option<&str> {
    let object = value.as_object().filter(|object| object.len() == 1)?;
    object.get("secret")?.as_str()
}

impl fmt::Debug for PluginConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PluginConfig")
            .field("command", &self.command)
            .field("cwd", &self.cwd)
            .field("env", &self.env)
            .field("config", &self.config.keys().collect::<Vec<_>>())
            .field("enabled", &self.enabled)
            .field("timeout", &self.timeout)
            .field("start_timeout", &self.start_timeout)
            .field("rlimits", &self.rlimits)
            .field("roots", &self.roots)
            .field("origin", &self.origin)
            .finish()
    }
}

impl fmt::Debug for EnvValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(_) => f.write_str("Literal(..)"),
            Self::Secret(name) => f.debug_tuple("Secret").field(name).finish(),
        }
    }
}

/// Which of the two sorts of tables an entry stands in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Plugin,
    Server,
}

impl Kind {
    fn table(self) -> &'static str {
        match self {
            Self::Plugin => "plugins",
            Self::Server => "mcp.servers",
        }
    }

    fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Plugin => &KEYS[..KEYS.len() - 1],
            Self::Server => KEYS,
        }
    }
}

/// Reads all entries of a sort; one with an error is left out.
pub(super) fn read_all(kind: Kind, value: &Value<'_>, reading: &mut Reading<'_>) -> BTreeMap<PluginName, PluginConfig> {
    let mut entries = BTreeMap::new();
    for (key, value) in reading.table(kind.table(), value).into_iter().flatten() {
        let name = key.get_ref().parse::<PluginName>();
        if let Err(error) = &name {
            reading.problem(key.span(), error.to_string());
        }
        let entry = read(kind, key, value, reading);
        if let (Ok(name), Some(entry)) = (name, entry) {
            entries.insert(name, entry);
        }
    }
    entries
}

fn read(kind: Kind, name: &Key<'_>, value: &Value<'_>, reading: &mut Reading<'_>) -> Option<PluginConfig> {
    let path = format!("{}.{}", kind.table(), name.get_ref());
    let table = reading.table(&path, value)?;
    let mut config = PluginConfig {
        command: Vec::new(),
        cwd: None,
        env: BTreeMap::new(),
        config: Map::new(),
        enabled: true,
        timeout: CallTimeout::default(),
        start_timeout: None,
        rlimits: ProcessLimits::default(),
        roots: Vec::new(),
        origin: reading.origin(name),
    };
    let mut whole = true;
    for (key, value) in table {
        whole &= config.take(kind, &path, key, value, reading).is_some();
    }
    if !table.contains_key("command") {
        let message = format!("[{}] has no `command`: an array with the program and its arguments", shown(&path));
        reading.problem(name.span(), message);
        whole = false;
    }
    whole.then_some(config)
}

impl PluginConfig {
    /// Takes one key over; `None` where its value is wrong.
    fn take(
        &mut self,
        kind: Kind,
        path: &str,
        key: &Key<'_>,
        value: &Value<'_>,
        reading: &mut Reading<'_>,
    ) -> Option<()> {
        const MILLISECONDS: &str = "a whole number of milliseconds";
        let name = key.get_ref().as_ref();
        match name {
            "command" => self.command = command(value, reading)?,
            "cwd" => self.cwd = Some(reading.folder(name, value)?),
            "env" => self.env = env(reading.table(name, value)?, reading)?,
            "config" => {
                let table = reading.table(name, value)?;
                self.config = reading.object(table)?;
            }
            "enabled" => self.enabled = reading.boolean(name, value)?,
            "timeout_ms" => {
                self.timeout = match reading.number(name, MILLISECONDS, 0, value)? {
                    0 => CallTimeout::Never,
                    milliseconds => CallTimeout::After(Duration::from_millis(milliseconds)),
                }
            }
            "start_timeout_ms" => {
                let milliseconds = reading.number(name, MILLISECONDS, 1, value)?;
                self.start_timeout = Some(Duration::from_millis(milliseconds));
            }
            "rlimits" => self.rlimits = rlimits(&format!("{path}.rlimits"), value, reading)?,
            "roots" if kind == Kind::Server => {
                let folders = reading.array(name, "an array of folders", value)?;
                let folders: Vec<_> = folders.iter().map(|folder| reading.folder(name, folder)).collect();
                self.roots = folders.into_iter().collect::<Option<_>>()?;
            }
            "roots" => reading.warn(ConfigWarning::ServersOnly {
                origin: reading.origin(key),
                table: path.to_owned(),
                key: name.to_owned(),
            }),
            _ => reading.unknown(path, key, kind.keys()),
        }
        Some(())
    }
}

fn command(value: &Value<'_>, reading: &mut Reading<'_>) -> Option<Vec<String>> {
    if let Some(words) = value.get_ref().as_str().and_then(shlex::split) {
        let message = format!("`command` must be an array: write {}", shown(&format!("{words:?}")));
        reading.problem(value.span(), message);
        return None;
    }
    let array = reading.array("command", "an array of strings, the program and its arguments", value)?;
    let words: Vec<_> =
        array.iter().map(|word| reading.string("command", "an array of strings", word).map(str::to_owned)).collect();
    let words = words.into_iter().collect::<Option<Vec<_>>>()?;
    if words.first().is_none_or(String::is_empty) {
        reading.problem(value.span(), "`command` must begin with a program");
        return None;
    }
    Some(words)
}

fn env(table: &DeTable<'_>, reading: &mut Reading<'_>) -> Option<BTreeMap<String, EnvValue>> {
    let mut variables = BTreeMap::new();
    let mut whole = true;
    for (key, value) in table {
        let name = key.get_ref().as_ref();
        let path = format!("env.{name}");
        if !is_variable(name) {
            let message = "a variable's name must not be empty, nor contain `=` or a NUL character";
            reading.problem(key.span(), message);
            whole = false;
        }
        let value = match value.get_ref() {
            DeValue::Table(table) => secret(&path, table, value, reading),
            _ => reading
                .string(&path, "a string in quotes or { secret = \"NAME\" }", value)
                .map(|text| EnvValue::Literal(text.to_owned())),
        };
        whole &= value.is_some();
        variables.extend(value.map(|value| (name.to_owned(), value)));
    }
    whole.then_some(variables)
}

fn secret(path: &str, table: &DeTable<'_>, value: &Value<'_>, reading: &mut Reading<'_>) -> Option<EnvValue> {
    match (table.len(), table.get("secret")) {
        (1, Some(name)) => {
            let key = format!("{path}.secret");
            let text = reading.string(&key, "a secret's name in quotes", name)?;
            if !is_variable(text) {
                let message = "a secret's name must not be empty, nor contain `=`";
                reading.problem(name.span(), message);
                return None;
            }
            Some(EnvValue::Secret(text.to_owned()))
        }
        _ => {
            let message = format!("`{}` must be a string in quotes or {{ secret = \"NAME\" }}", shown(path));
            reading.problem(value.span(), message);
            None
        }
    }
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

fn rlimits(path: &str, value: &Value<'_>, reading: &mut Reading<'_>) -> Option<ProcessLimits> {
    let mut limits = ProcessLimits::default();
    let mut whole = true;
    for (key, value) in reading.table("rlimits", value)? {
        let name = key.get_ref().as_ref();
        let limit = match name {
            "address_space_bytes" => &mut limits.address_space_bytes,
            "open_files" => &mut limits.open_files,
            "processes" => &mut limits.processes,
            "cpu_seconds" => &mut limits.cpu_seconds,
            _ => {
                reading.unknown(path, key, LIMIT_KEYS);
                continue;
            }
        };
        *limit = reading.number(&format!("rlimits.{name}"), "a whole number", 1, value);
        whole &= limit.is_some();
    }
    whole.then_some(limits)
}
