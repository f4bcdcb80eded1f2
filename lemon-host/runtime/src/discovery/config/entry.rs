//! One plugin's table in a config file.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::{Map, json};
use toml::de::{DeTable, DeValue};

use super::{
    ConfigWarning, Origin, SettingValue,
    layer::{self, Layer},
    reading::{Key, Reading, Value, shown, shown_paths},
};
use crate::plugin::PluginName;

/// The keys of an entry; the last is for MCP servers only.
pub(super) const KEYS: &[&str] =
    &["command", "path", "cwd", "env", "config", "enabled", "timeout_ms", "start_timeout_ms", "rlimits", "roots"];
/// Those that a project can't set. It has a folder for its extensions, and what is in there is trusted with its files; a
/// name that it takes may be that of a plugin of the user's.
pub(super) const USER_KEYS: &[&str] = &["path", "enabled"];
pub(super) const LIMIT_KEYS: &[&str] = &["address_space_bytes", "open_files", "processes", "cpu_seconds"];

/// How a plugin is started, as one table of a config file says.
///
/// `Debug` shows no value of `env` and `config`, which may be secrets.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct PluginConfig {
    /// The program and its arguments, for no shell. Empty beside a `path`, and for an extension whose table has neither:
    /// then it sets up a plugin that is found in a folder. The program is never empty. One
    /// without a `/` is looked for in PATH. One with a `/` is from `cwd` or, where the entry has
    /// none, from the config file's folder, which then stands before it here; `~/` is the home folder.
    pub command: Vec<String>,
    /// The folder of an extension, whose manifest says the command; `command` is empty then.
    pub path: Option<PathBuf>,
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
            .field("path", &self.path)
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
        path: None,
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
    // An extension may be in a folder of extensions, and this what the user has to say of it.
    let may_be_found = kind == Kind::Plugin && reading.layer() == Layer::User && !table.contains_key("cwd");
    let has_path = table.contains_key("path") && reading.layer() == Layer::User;
    let wrong = match (table.contains_key("command"), has_path) {
        (false, false) if reading.layer() == Layer::Project => {
            Some("has no `command`: an array with the program and its arguments")
        }
        (false, false) if !may_be_found => {
            Some("has no `command`: an array with the program and its arguments; nor a `path`: an extension's folder")
        }
        (true, true) => Some("has both `command` and `path`, the manifest of which says the command: keep one"),
        _ => None,
    };
    if let Some(wrong) = wrong {
        reading.problem(name.span(), format!("[{}] {wrong}", shown(&path)));
        whole = false;
    }
    // It runs where the project is, wherever in it somebody works: what was trusted is what is there.
    if reading.layer() == Layer::Project && config.cwd.is_none() {
        config.cwd = reading.project().map(Path::to_owned);
    }
    if let Some(program) = config.command.first_mut()
        && let Some(path) = reading.program(program, config.cwd.is_none())
    {
        *program = path;
    }
    if whole {
        for (key, value) in table {
            config.note(kind, name.get_ref(), key, value, reading);
        }
    }
    whole.then_some(config)
}

impl PluginConfig {
    /// Notes what one key of a good entry sets.
    fn note(&self, kind: Kind, name: &str, key: &Key<'_>, value: &Value<'_>, reading: &mut Reading<'_>) {
        let mut tables: Vec<&str> = kind.table().split('.').chain([name]).collect();
        let key_name = key.get_ref().as_ref();
        let is_users = reading.layer() == Layer::Project && USER_KEYS.contains(&key_name);
        if is_users || !kind.keys().contains(&key_name) {
            return;
        }
        let members = value.get_ref().as_table().into_iter().flatten();
        tables.push(key_name);
        match key_name {
            "env" => {
                for (variable, _) in members {
                    let value = match self.env.get(variable.get_ref().as_ref()) {
                        Some(EnvValue::Literal(_)) => SettingValue::Hidden,
                        Some(EnvValue::Secret(name)) => SettingValue::Plain(json!({ "secret": name })),
                        None => continue,
                    };
                    reading.set(&tables, variable, value);
                }
            }
            "config" => {
                for (own, _) in members {
                    if let Some(value) = self.config.get(own.get_ref().as_ref()) {
                        reading.set(&tables, own, SettingValue::of_config(own.get_ref(), value));
                    }
                }
            }
            "rlimits" => {
                for (limit, value) in members.filter(|(limit, _)| LIMIT_KEYS.contains(&limit.get_ref().as_ref())) {
                    let value = reading.json(value).unwrap_or_default();
                    reading.set(&tables, limit, SettingValue::Plain(value));
                }
            }
            _ => {
                tables.pop();
                let path = |path: &Option<PathBuf>| shown_paths(path.as_slice())[0].clone();
                let value = match key_name {
                    "command" => self.command.as_slice().into(),
                    "path" => path(&self.path),
                    "cwd" => path(&self.cwd),
                    "roots" => shown_paths(&self.roots),
                    _ => reading.json(value).unwrap_or_default(),
                };
                reading.set(&tables, key, SettingValue::Plain(value));
            }
        }
    }

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
            _ if USER_KEYS.contains(&name) && !reading.is_users(path, key) => {}
            "path" => self.path = Some(reading.folder(name, value)?),
            "cwd" => self.cwd = Some(reading.folder(name, value)?),
            "env" => self.env = env(path, reading.table(name, value)?, reading)?,
            "config" => {
                let table = reading.table(name, value)?;
                self.config = reading.object(table)?;
                // A project can't ask for the user's secrets.
                for (key, value) in table {
                    if asks_for_secret(value) && !reading.is_users(&format!("{path}.config"), key) {
                        self.config.remove(key.get_ref().as_ref());
                    }
                }
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
            "roots" => {
                let (origin, column) = reading.place(key);
                let (table, key) = (path.to_owned(), name.to_owned());
                reading.warn(ConfigWarning::ServersOnly { origin, column, table, key });
            }
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

fn env(entry: &str, table: &DeTable<'_>, reading: &mut Reading<'_>) -> Option<BTreeMap<String, EnvValue>> {
    let mut variables = BTreeMap::new();
    let mut whole = true;
    for (key, value) in table {
        let is_harmless = layer::is_harmless(key.get_ref()) && !value.get_ref().is_table();
        if !is_harmless && !reading.is_users(&format!("{entry}.env"), key) {
            continue;
        }
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

/// Whether a value of the settings is, or holds, `{ secret = … }`.
fn asks_for_secret(value: &Value<'_>) -> bool {
    match value.get_ref() {
        DeValue::Table(table) => {
            table.len() == 1 && table.contains_key("secret") || table.iter().any(|(_, value)| asks_for_secret(value))
        }
        DeValue::Array(array) => array.iter().any(asks_for_secret),
        _ => false,
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
