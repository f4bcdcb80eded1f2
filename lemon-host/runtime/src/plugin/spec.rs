//! What a plugin is started from: the one form in which flags, config files and the embedding program give it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lemon_protocol::manifest::{HostType, Permission, Placeholder, expand, placeholders};
use serde::Serialize;
use serde_json::{Map, Value};

use super::launch;
use super::name::PluginName;
use crate::discovery::trust::Sha;
use crate::discovery::{
    BoundEntry, CallTimeout, EnvValue, ManifestFile, NotLoadable, Origin, PlaceKind, PluginCommand, PluginConfig,
    ProcessLimits,
};
use crate::error::StartError;

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
        #[serde(serialize_with = "crate::report::lossy::path")]
        file: PathBuf,
        /// The line at which the entry starts.
        line: usize,
    },
    /// A setting that is about more than one plugin.
    Setting(&'static str),
    /// It was found in a folder of extensions, and admitted.
    Found {
        /// Its folder or file; a copy of it runs if its contents were trusted.
        #[serde(serialize_with = "crate::report::lossy::path")]
        path: PathBuf,
        /// Whose folder of extensions that is.
        place: PlaceKind,
    },
}

impl fmt::Display for Provenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program => f.write_str("the embedding program"),
            Self::Flag => f.write_str("--plugin"),
            Self::Config { file, line } => write!(f, "{}:{line}", file.display()),
            Self::Setting(setting) => f.write_str(setting),
            Self::Found { path, .. } => write!(f, "{}", path.display()),
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
    /// The program and its arguments; never a shell's line. From a manifest, with its placeholders.
    pub command: Vec<String>,
    /// The folder it runs in; none means the host's.
    pub cwd: Option<PathBuf>,
    /// Variables beside those that every plugin gets.
    pub env: BTreeMap<String, EnvValue>,
    /// Variables of the host's own environment that the user granted it; `env` wins over them.
    pub granted_env: Vec<String>,
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
    /// Whether it comes with a project, and not from the user: then it comes after the user's own.
    pub of_project: bool,
    /// The manifest that describes it; the running plugin gets no more than that declares.
    pub manifest: Option<Arc<ManifestFile>>,
    /// A hash of all its code, if that can't change any more.
    pub(crate) code: Option<Sha>,
    /// What it must still be whenever it is started.
    pub(crate) bound: Option<Arc<BoundEntry>>,
    /// Why it can't be started at all. It is told as a plugin that failed.
    pub(crate) fault: Option<StartError>,
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
            granted_env: Vec::new(),
            config: Map::new(),
            call_timeout: CallTimeout::Unset,
            start_timeout: None,
            rlimits: ProcessLimits::default(),
            roots: Vec::new(),
            provenance: Provenance::Program,
            of_project: false,
            manifest: None,
            code: None,
            bound: None,
            fault: None,
        }
    }

    /// A plugin that can't be started, such as one whose manifest is not valid: the host starts the others and reports
    /// this one as failed.
    pub fn broken(name: PluginName, class: Class, provenance: Provenance, fault: StartError) -> Self {
        Self { provenance, fault: Some(fault), ..Self::new(name, class, [] as [String; 0]) }
    }

    /// The extension that a manifest describes, under another name if one is given.
    ///
    /// # Errors
    /// Why it can't be run here.
    pub fn from_manifest(
        manifest: Arc<ManifestFile>,
        name: Option<PluginName>,
        provenance: Provenance,
    ) -> Result<Self, NotLoadable> {
        let host = manifest.host()?;
        let class = if host.kind == HostType::Mcp { Class::Mcp } else { Class::Extension };
        let command = host.command.clone();
        // The rules of names are the same.
        let name = name.unwrap_or_else(|| PluginName::from_any(&manifest.manifest.name));
        Ok(Self { provenance, manifest: Some(manifest), ..Self::new(name, class, command) })
    }

    /// A plugin from a flag of the command line, as [`parse_plugin_flag`](crate::parse_plugin_flag) reads it.
    pub fn from_flag(command: PluginCommand) -> Self {
        let PluginCommand { name, argv, manifest } = command;
        let Some(manifest) = manifest else {
            return Self { provenance: Provenance::Flag, ..Self::new(name, Class::Extension, argv) };
        };
        match Self::from_manifest(manifest, Some(name.clone()), Provenance::Flag) {
            Ok(spec) => spec,
            Err(why) => Self::broken(name, Class::Extension, Provenance::Flag, why.into()),
        }
    }

    /// A plugin from an entry of a config file. If that names the folder of an extension, its manifest is read; one
    /// that is not valid gives a plugin that [can't be started](Self::broken).
    pub fn from_config(name: PluginName, class: Class, entry: PluginConfig) -> Self {
        let provenance = entry.origin.into();
        let spec = match &entry.path {
            None => Self::new(name, class, entry.command),
            Some(path) => match ManifestFile::read(path) {
                Ok(manifest) => {
                    match Self::from_manifest(Arc::new(manifest), Some(name.clone()), Provenance::Program) {
                        // What a manifest says may lower the class that the user gave, and never raise it.
                        Ok(spec) => Self { class: class.max(spec.class), ..spec },
                        Err(why) => Self::broken(name, class, Provenance::Program, why.into()),
                    }
                }
                Err(error) => Self::broken(name, class, Provenance::Program, error.into()),
            },
        };
        Self {
            cwd: entry.cwd,
            env: entry.env,
            config: entry.config,
            call_timeout: entry.timeout,
            start_timeout: entry.start_timeout,
            rlimits: entry.rlimits,
            roots: entry.roots,
            provenance,
            ..spec
        }
    }

    /// The program and its arguments with each placeholder replaced. Only what a manifest says has placeholders.
    pub(crate) fn argv<E>(
        &self,
        mut value: impl FnMut(Placeholder, &ManifestFile) -> Result<String, E>,
    ) -> Result<Vec<String>, E> {
        let Some(manifest) = &self.manifest else { return Ok(self.command.clone()) };
        let mut values = BTreeMap::new();
        for placeholder in self.command.iter().flat_map(|word| placeholders(word).unwrap_or_default()) {
            values.insert(placeholder.as_str(), value(placeholder, manifest)?);
        }
        let filled = |word: &String| {
            // The manifest's check let no other placeholder through.
            expand(word, |placeholder| values[placeholder.as_str()].as_str()).unwrap_or_else(|_| word.clone())
        };
        Ok(self.command.iter().map(filled).collect())
    }

    /// Why it can't be started at all, if so.
    pub fn fault(&self) -> Option<&StartError> {
        self.fault.as_ref()
    }

    /// Finds the program that would be started, without starting it. `cwd` is where the host works, `untrusted` the
    /// folders from which no program is run by its bare name.
    ///
    /// # Errors
    /// [`StartError::Lookup`], and [`StartError::Placeholder`] for a program whose place is only known at a start.
    pub fn find_program(&self, cwd: &Path, untrusted: &[PathBuf]) -> Result<PathBuf, StartError> {
        let command = self.argv(|placeholder, manifest| match placeholder {
            Placeholder::ExtensionDir => Ok(manifest.folder.to_string_lossy().into_owned()),
            Placeholder::Workspace => Ok(cwd.to_string_lossy().into_owned()),
            // A program is never in it; as an argument it does not matter here.
            Placeholder::DataDir => Ok::<_, StartError>(String::new()),
        })?;
        let program = command.first().map_or("", String::as_str);
        let path = match self.env.get("PATH") {
            Some(EnvValue::Literal(path)) => Some(path.into()),
            _ => std::env::var_os("PATH"),
        };
        Ok(launch::find(self, program, path, cwd, untrusted).map_err(Arc::new)?)
    }

    /// Whether the plugin may make a request to the host.
    pub(crate) fn may_ask(&self, method: &str) -> bool {
        let declared = self.manifest.as_ref().and_then(|manifest| manifest.manifest.permissions.as_ref());
        match (declared, Permission::for_method(method)) {
            (Some(declared), Some(permission)) => declared.contains_key(&permission),
            _ => true,
        }
    }

    /// Lays what a user's config says of a plugin over what its place says: what the config does not set stays.
    pub fn set_up(&mut self, entry: &PluginConfig) {
        self.env.extend(entry.env.clone());
        self.config.extend(entry.config.clone());
        if entry.timeout != CallTimeout::Unset {
            self.call_timeout = entry.timeout;
        }
        self.start_timeout = entry.start_timeout.or(self.start_timeout);
        let (given, limits) = (entry.rlimits, &mut self.rlimits);
        limits.address_space_bytes = given.address_space_bytes.or(limits.address_space_bytes);
        limits.open_files = given.open_files.or(limits.open_files);
        limits.processes = given.processes.or(limits.processes);
        limits.cpu_seconds = given.cpu_seconds.or(limits.cpu_seconds);
    }

    /// Whether the program is one that fetches or builds another one first, which takes its time.
    pub(crate) fn is_launcher(&self) -> bool {
        const LAUNCHERS: &[&str] =
            &["npx", "npm", "pnpm", "yarn", "bunx", "bun", "uvx", "uv", "pipx", "docker", "podman", "go", "cargo"];
        self.program().is_some_and(|(program, _)| LAUNCHERS.contains(&program))
    }

    /// Whether the program is Python with `-m` or `-c`, which looks for modules in the folder in which it runs.
    pub(crate) fn runs_a_module(&self) -> bool {
        let options = |words: &[String]| {
            // What comes after is the module's.
            let options = words.iter().take_while(|word| word.starts_with('-'));
            options.filter(|word| !word.starts_with("--")).any(|word| word.contains(['m', 'c']))
        };
        self.program().is_some_and(|(program, rest)| program.starts_with("python") && options(rest))
    }

    /// The name of the program that is run in the end, and its arguments: `env` runs another one.
    fn program(&self) -> Option<(&str, &[String])> {
        let mut words = self.command.as_slice();
        loop {
            let (first, rest) = words.split_first()?;
            let program = first.rsplit('/').next().unwrap_or(first);
            if program != "env" {
                return Some((program, rest));
            }
            let is_setting = |word: &&String| word.starts_with('-') || word.contains('=');
            words = &rest[rest.iter().take_while(is_setting).count()..];
        }
    }
}
