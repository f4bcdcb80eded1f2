//! What a plugin is started from: the one form in which flags, config files and the embedding program give it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value};

use super::name::PluginName;
use crate::discovery::{CallTimeout, EnvValue, Origin, PluginConfig, ProcessLimits};

/// Where a user put a plugin, which decides the names of its tools and who wins a conflict.
///
/// It never comes from what the plugin says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Class {
    /// From `--plugin` or `[plugins.NAME]`: its tools keep their names.
    Extension,
    /// From `[mcp.servers.NAME]`: its tools are `mcp_<server>_<tool>`.
    Mcp,
}

/// Which act of the user brought a plugin in.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
#[non_exhaustive]
pub enum Provenance {
    /// The embedding program named it.
    Program,
    /// A flag of the command line.
    Flag,
    /// An entry of a config file.
    Config {
        /// The file.
        file: PathBuf,
        /// The line at which the entry starts.
        line: usize,
    },
}

impl fmt::Display for Provenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program => f.write_str("the embedding program"),
            Self::Flag => f.write_str("--plugin"),
            Self::Config { file, line } => write!(f, "{}:{line}", file.display()),
        }
    }
}

impl From<Origin> for Provenance {
    fn from(origin: Origin) -> Self {
        Self::Config { file: origin.file, line: origin.line }
    }
}

/// One plugin, as it is to be started.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PluginSpec {
    /// Its identity.
    pub name: PluginName,
    /// Where the user put it.
    pub class: Class,
    /// The program and its arguments; never a shell's line.
    pub command: Vec<String>,
    /// The folder it runs in; none means the host's.
    pub cwd: Option<PathBuf>,
    /// Variables beside those that every plugin gets.
    pub env: BTreeMap<String, EnvValue>,
    /// Its configuration.
    pub config: Map<String, Value>,
    /// How long its calls may take.
    pub call_timeout: CallTimeout,
    /// How long its start may take, if not the host's default.
    pub start_timeout: Option<Duration>,
    /// What the operating system bounds.
    pub rlimits: ProcessLimits,
    /// The folders that an MCP server is told when it asks; it is told that it may ask only if there are any.
    pub roots: Vec<PathBuf>,
    /// What brought it in.
    pub provenance: Provenance,
}

impl PluginSpec {
    /// A plugin of the embedding program's.
    pub fn new(name: PluginName, class: Class, command: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            name,
            class,
            command: command.into_iter().map(Into::into).collect(),
            cwd: None,
            env: BTreeMap::new(),
            config: Map::new(),
            call_timeout: CallTimeout::Unset,
            start_timeout: None,
            rlimits: ProcessLimits::default(),
            roots: Vec::new(),
            provenance: Provenance::Program,
        }
    }

    /// A plugin from a flag of the command line.
    pub fn from_flag(name: PluginName, command: Vec<String>) -> Self {
        Self { provenance: Provenance::Flag, ..Self::new(name, Class::Extension, command) }
    }

    /// A plugin from an entry of a config file.
    pub fn from_config(name: PluginName, class: Class, entry: PluginConfig) -> Self {
        Self {
            name,
            class,
            command: entry.command,
            cwd: entry.cwd,
            env: entry.env,
            config: entry.config,
            call_timeout: entry.timeout,
            start_timeout: entry.start_timeout,
            rlimits: entry.rlimits,
            roots: entry.roots,
            provenance: entry.origin.into(),
        }
    }

    /// Whether the program is one that fetches or builds another one first, which takes its time.
    pub(crate) fn is_launcher(&self) -> bool {
        const LAUNCHERS: &[&str] =
            &["npx", "npm", "pnpm", "yarn", "bunx", "bun", "uvx", "uv", "pipx", "docker", "podman", "go", "cargo"];
        let program = self.command.first().map_or("", |program| program.rsplit('/').next().unwrap_or(program));
        LAUNCHERS.contains(&program)
    }
}
