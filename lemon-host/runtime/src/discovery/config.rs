//! The config file: which plugins there are, and how they are started.
//!
//! ```toml
//! [plugins.hello]
//! command = ["python3", "hello.py"]     # the program and its arguments; no shell
//! cwd = "."                             # from this file's folder; `~/` is the home folder
//! env = { LEVEL = "1", TOKEN = { secret = "HELLO_TOKEN" } }
//! config = { greeting = "hi" }          # any table; handed to the plugin
//! timeout_ms = 60000                    # for one tool call; 0 means none
//!
//! [mcp.servers.files]                   # the same keys, and `roots`
//! command = ["npx", "-y", "@modelcontextprotocol/server-filesystem", "/srv"]
//!
//! [runtime]
//! extension_paths = ["~/my-plugins"]    # folders of plugins, which are run as they are
//!
//! [runtime.extensions]
//! enabled = true                        # whether any extension runs
//! auto_load_default_paths = false       # whether those in the default folders run without being trusted one by one
//!
//! [tools]                               # public names; `*` stands for any characters
//! disabled = ["bash", "mcp_git_*"]
//! enabled_only = ["read", "mcp_*"]
//!
//! [limits]                              # the fields of `Limits`
//! calls = 16
//!
//! [timeouts]                            # the fields of `Timeouts`, in milliseconds
//! start_ms = 20000
//! ```
//!
//! All errors of a file are told at once, each with its line. A key that nobody knows is a warning:
//! a file may be shared with a newer version. Nothing here starts a process or reads a secret.

mod edit;
mod entry;
mod error;
mod keys;
mod layer;
mod reading;
mod runtime;
mod setting;
mod source;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read as _},
    ops::Range,
    path::{Path, PathBuf},
};

pub use edit::{ConfigEdit, ConfigEditError};
pub(crate) use entry::secret_name;
pub use entry::{CallTimeout, EnvValue, PluginConfig, ProcessLimits};
pub use error::{ConfigError, ConfigProblem, ConfigWarning, Origin};
pub use keys::{ConfigKey, ProjectMay};
use lemon_process::files::{OpenError, open_regular};
pub use runtime::RuntimeConfig;
use serde::de::DeserializeOwned;
pub use setting::{Setting, SettingValue, dotted_key};
use toml::de::DeTable;

use self::{
    entry::Kind,
    layer::Layer,
    reading::{Noted, Reading},
    source::Source,
};
use crate::catalog::ToolFilter;
use crate::limits::{Limits, Timeouts};
use crate::plugin::PluginName;

/// The largest config file, in bytes.
pub(super) const MAX_BYTES: u64 = 1024 * 1024;

const TOP_KEYS: &[&str] = &["plugins", "mcp", "runtime", "tools", "limits", "timeouts"];
const TOOL_KEYS: &[&str] = &["disabled", "enabled_only"];

/// Spans of time that may be zero: no limit, or no waiting. Nothing could be done within any other.
const MAY_BE_ZERO: &[&str] =
    &["call_ms", "call_idle_ms", "linger_ms", "list_debounce_ms", "drain_ms", "shutdown_ms", "eof_ms", "term_ms"];

/// What one config file says.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Config {
    /// `[plugins.NAME]`: extensions.
    pub plugins: BTreeMap<PluginName, PluginConfig>,
    /// `[mcp.servers.NAME]`: MCP servers.
    pub servers: BTreeMap<PluginName, PluginConfig>,
    /// `[runtime]`: where extensions are looked for, and whether any runs. Empty for a project.
    pub runtime: RuntimeConfig,
    /// `[tools]`: which tools may be used.
    pub tools: ToolFilter,
    /// `[limits]`: those fields of [`Limits`] that the file sets. Of two files' tables, one can be laid over the
    /// other before `try_into` makes the whole of it.
    pub limits: toml::Table,
    /// `[timeouts]`: those fields of [`Timeouts`] that the file sets.
    pub timeouts: toml::Table,
    /// All keys that count, by line, for those who show where a value comes from.
    pub settings: Vec<Setting>,
    /// What is odd but no error, by line.
    pub warnings: Vec<ConfigWarning>,
}

impl Config {
    /// Reads a config file.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Unreadable`], [`ConfigError::Folder`], [`ConfigError::TooLarge`] and
    /// [`ConfigError::NotUtf8`] where there is no text to read, and those of [`Config::parse`].
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        Self::parse(&Self::text(path)?, path)
    }

    /// The text of a config file.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Unreadable`], [`ConfigError::Folder`], [`ConfigError::TooLarge`] and [`ConfigError::NotUtf8`].
    pub fn text(path: &Path) -> Result<String, ConfigError> {
        let unreadable = |source: io::Error| ConfigError::Unreadable { file: path.to_owned(), source };
        let opened = File::open(path).map_err(unreadable)?;
        if opened.metadata().map_err(unreadable)?.is_dir() {
            return Err(ConfigError::Folder { file: path.to_owned() });
        }
        Self::text_of(path, opened)
    }

    /// The text of a project's config file. It came with the project, so it is read only if it is a plain file: a link
    /// may lead to anything of the user's, and a pipe to nowhere.
    ///
    /// # Errors
    ///
    /// Why it can't be read.
    pub fn project_text(path: &Path) -> Result<String, ConfigError> {
        let opened = open_regular(path).map_err(|error| match error {
            OpenError::Folder => ConfigError::Folder { file: path.to_owned() },
            OpenError::Io(source) => ConfigError::Unreadable { file: path.to_owned(), source },
            other => ConfigError::Unreadable { file: path.to_owned(), source: io::Error::other(other.to_string()) },
        })?;
        Self::text_of(path, opened)
    }

    fn text_of(path: &Path, opened: File) -> Result<String, ConfigError> {
        let file = || path.to_owned();
        let unreadable = |source: io::Error| ConfigError::Unreadable { file: file(), source };
        // Not the size that the file claims: it may be a pipe.
        let mut bytes = Vec::new();
        opened.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(ConfigError::TooLarge { file: file() });
        }
        String::from_utf8(bytes).map_err(|error| {
            let readable = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = 1 + readable.iter().filter(|&&byte| byte == b'\n').count();
            ConfigError::NotUtf8 { file: file(), line }
        })
    }

    /// Reads the text of a project's config file, which may only add and tighten: a key that it may not set is ignored
    /// and warned of. The project is the folder two above `path`.
    ///
    /// # Errors
    ///
    /// Those of [`Config::parse`].
    pub fn parse_project(text: &str, path: &Path) -> Result<Self, ConfigError> {
        Self::parse_layer(text, path, std::env::home_dir().as_deref(), Layer::Project)
    }

    /// Reads the text of a config file. Of `path` only the folder counts, from which relative paths
    /// start; the file need not exist.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Syntax`] where the text is no TOML, and [`ConfigError::Invalid`] with all
    /// that is wrong otherwise and with the part that is right.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        Self::parse_layer(text, path, std::env::home_dir().as_deref(), Layer::User)
    }
    fn parse_layer(text: &str, path: &Path, home: Option<&Path>, layer: Layer) -> Result<Self, ConfigError> {
        let source = Source::new(path, text);
        let table = DeTable::parse(text).map_err(|error| ConfigError::Syntax {
            problem: source.problem(error.span().unwrap_or(0..0), error.message().to_owned()),
        })?;
        let mut reading = Reading::new(&source, home, layer);
        let mut config = Self::default();
        config.fill(table.get_ref(), &mut reading);
        let Noted { mut settings, mut problems, mut warnings } = reading.finish();
        settings.sort_by_key(|setting| (setting.origin.line, setting.column));
        warnings.sort_by_key(|warning| warning.origin().line);
        problems.sort_by_key(|problem| (problem.origin.line, problem.column));
        (config.settings, config.warnings) = (settings, warnings);
        if problems.is_empty() {
            Ok(config)
        } else {
            let partial = Box::new(config);
            Err(ConfigError::Invalid { problems, partial })
        }
    }

    fn fill(&mut self, top: &DeTable<'_>, reading: &mut Reading<'_>) {
        for (key, value) in top {
            match key.get_ref().as_ref() {
                "runtime" | "limits" | "timeouts" if !reading.is_users("", key) => {}
                "runtime" => self.runtime = runtime::read(value, reading),
                "plugins" => self.plugins = entry::read_all(Kind::Plugin, value, reading),
                "mcp" => {
                    for (key, value) in reading.table("mcp", value).into_iter().flatten() {
                        match key.get_ref().as_ref() {
                            "servers" => self.servers = entry::read_all(Kind::Server, value, reading),
                            _ => reading.unknown("mcp", key, &["servers"]),
                        }
                    }
                }
                "tools" => self.tools = tools(value, reading),
                "limits" => {
                    self.limits = bounds::<Limits>("limits", value, Limits::KEYS, reading);
                }
                "timeouts" => {
                    self.timeouts = bounds::<Timeouts>("timeouts", value, Timeouts::KEYS, reading);
                }
                _ => reading.unknown("", key, TOP_KEYS),
            }
        }
    }
}

fn tools(value: &reading::Value<'_>, reading: &mut Reading<'_>) -> ToolFilter {
    let mut filter = ToolFilter::default();
    for (key, value) in reading.table("tools", value).into_iter().flatten() {
        let name = key.get_ref().as_ref();
        if !TOOL_KEYS.contains(&name) {
            reading.unknown("tools", key, TOOL_KEYS);
            continue;
        }
        let path = format!("tools.{name}");
        let names = reading.array(&path, "an array of tools' names", value).map(|names| {
            names
                .iter()
                .filter_map(|name| reading.string(&path, "an array of names in quotes", name))
                .collect::<Vec<_>>()
        });
        if let Some(names) = &names {
            reading.set(&["tools"], key, SettingValue::Plain(names.as_slice().into()));
        }
        filter = match (name, names) {
            (_, None) => filter,
            ("disabled", Some(names)) => filter.disable(names),
            (_, Some(names)) => filter.enable_only(names),
        };
    }
    filter
}

/// Reads a table of whole numbers, each of which `T` takes.
fn bounds<T: DeserializeOwned>(
    table: &str,
    value: &reading::Value<'_>,
    known: &[&'static str],
    reading: &mut Reading<'_>,
) -> toml::Table {
    let mut bounds = toml::Table::new();
    for (key, value) in reading.table(table, value).into_iter().flatten() {
        let name = key.get_ref().as_ref();
        if !known.contains(&name) {
            reading.unknown(table, key, known);
            continue;
        }
        let least = u64::from(!MAY_BE_ZERO.contains(&name));
        let path = format!("{table}.{name}");
        let number = reading.number(&path, "a whole number", least, value);
        let Some(number) = number.and_then(|number| i64::try_from(number).ok()) else {
            continue;
        };
        let one = toml::Table::from_iter([(name.to_owned(), number.into())]);
        match one.clone().try_into::<T>() {
            Ok(_) => {
                reading.set(&[table], key, SettingValue::Plain(number.into()));
                bounds.extend(one);
            }
            // A field may be smaller than TOML's numbers.
            Err(_) => reading.problem(value.span(), format!("`{path}` is too large")),
        }
    }
    bounds
}

/// What is wrong with a part of a text, for others who read TOML.
pub(super) fn problem_of(path: &Path, text: &str, span: Range<usize>, message: &str) -> ConfigProblem {
    Source::new(path, text).problem(span, message.to_owned())
}

/// The folder that relative paths in a config file start from.
fn folder_of(path: &Path) -> PathBuf {
    // Only fails without a current folder; then the path as given is the best there is.
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    path.parent().map_or_else(PathBuf::new, Path::to_owned)
}
