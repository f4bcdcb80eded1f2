//! Which plugins there are: from the flags, the file of `--config`, the user's own file, and the folders of extensions,
//! in this order; last, what a trusted project adds.

mod entries;
pub(crate) mod extensions;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use lemon_host::{
    Class, Config, ConfigError, Limits, ManifestFile, ManifestProblem, PluginFlagError, PluginName, PluginSpec,
    Provenance, Runtime, SecretsError, StoredSecrets, Surroundings, Timeouts, ToolFilter, parse_plugin_flag,
};
use serde::Serialize;

pub(crate) use self::entries::Disabled;
use self::entries::Entries;
pub(crate) use self::entries::is_settings;
pub(crate) use self::extensions::{Disk, NotRun, ProjectReport};
use crate::args::Global;
use crate::errors::{Failure, shown};
use crate::exit::Exit;

/// All that a host is made of.
#[derive(Debug, Default)]
pub(crate) struct Setup {
    pub(crate) cwd: PathBuf,
    /// The winner of each name stands before the others.
    pub(crate) specs: Vec<PluginSpec>,
    pub(crate) filter: ToolFilter,
    pub(crate) limits: Limits,
    pub(crate) timeouts: Timeouts,
    pub(crate) sources: Sources,
    /// What the files say, those that win first.
    pub(crate) layers: Vec<ReadFile>,
    /// What counts of extensions, the environment included.
    pub(crate) runtime: Runtime,
    pub(crate) secrets: StoredSecrets,
    /// What is odd in the config files, a line each.
    pub(crate) warnings: Vec<String>,
    /// A folder from which no program is run by its bare name.
    pub(crate) untrusted: Option<PathBuf>,
    /// What there is to trust.
    pub(crate) disk: Disk,
}

impl Setup {
    /// All plugins, those that are disabled included.
    pub(crate) fn names(&self) -> Vec<PluginName> {
        let disabled = self.sources.disabled.iter().map(|disabled| &disabled.name);
        let names: BTreeSet<_> = self.specs.iter().map(|spec| &spec.name).chain(disabled).collect();
        names.into_iter().cloned().collect()
    }

    /// The folder of the plugins' logs, if any are kept.
    pub(crate) fn log_folder(&self) -> Option<PathBuf> {
        Some(self.sources.home.as_ref()?.join("logs"))
    }
}

/// A config file that counts.
#[derive(Debug)]
pub(crate) struct ReadFile {
    /// Whose it is, as [`SourceFile`] has it.
    pub(crate) from: &'static str,
    pub(crate) config: Config,
}

/// Where the config was read from, for the report.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Sources {
    /// The folder of the user's config, logs and cache.
    pub(crate) home: Option<PathBuf>,
    pub(crate) files: Vec<SourceFile>,
    pub(crate) project: Option<ProjectReport>,
    pub(crate) disabled: Vec<Disabled>,
    #[serde(flatten)]
    pub(crate) not_run: NotRun,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SourceFile {
    pub(crate) path: PathBuf,
    pub(crate) from: &'static str,
    pub(crate) found: bool,
}

/// Why there is nothing to start.
#[derive(Debug, Default)]
pub(crate) struct Refused {
    /// What was gathered all the same: the files that could be read, and what is odd in them.
    pub(crate) setup: Box<Setup>,
    /// What is wrong; at least one.
    pub(crate) failures: Vec<Failure>,
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self { setup: Box::default(), failures: vec![failure] }
    }
}

/// Gathers the plugins. Starts nothing.
///
/// # Errors
/// Everything that is wrong with the flags and the files, each as a failure of its own.
pub(crate) fn gather(global: &Global) -> Result<Setup, Refused> {
    let cwd = working_folder(global)?;
    let mut failures = Vec::new();
    let mut setup = Setup { cwd, ..Setup::default() };
    let mut entries = Entries::default();
    setup.filter = setup.filter.disable(&global.disabled);
    if !global.enabled_only.is_empty() {
        setup.filter = setup.filter.enable_only(&global.enabled_only);
    }
    let mut configs = Vec::new();
    if let Some(file) = &global.config {
        setup.sources.files.push(SourceFile { path: file.clone(), from: "--config", found: true });
        configs.push(("--config", Config::read(file)));
    }
    setup.sources.home = lemon_home();
    let user_file = setup.sources.home.as_ref().map(|home| home.join("config.toml"));
    // Read once, or every plugin in it would be in conflict with itself.
    let is_other = |file: &PathBuf| !global.config.as_ref().is_some_and(|flag| is_same(flag, file));
    if let Some(file) = user_file.filter(is_other) {
        let config = user_config(&file);
        setup.sources.files.push(SourceFile { path: file, from: "user", found: config.is_some() });
        configs.extend(config.map(|config| ("user", config)));
    }
    let (mut limits, mut timeouts) = (BTreeMap::new(), BTreeMap::new());
    let (mut runtimes, mut of_files) = (Vec::new(), Vec::new());
    for (from, config) in configs {
        let config = match config {
            Ok(config) => config,
            Err(error) => {
                failures.push(of_config(&error));
                if let ConfigError::Invalid { partial: config, .. } = error {
                    setup.warnings.extend(config.warnings.iter().map(ToString::to_string));
                    setup.layers.push(ReadFile { from, config: *config });
                }
                continue;
            }
        };
        setup.warnings.extend(config.warnings.iter().map(ToString::to_string));
        setup.layers.push(ReadFile { from, config: config.clone() });
        // The first file that sets a bound wins.
        for (key, value) in config.limits {
            limits.entry(key).or_insert(value);
        }
        for (key, value) in config.timeouts {
            timeouts.entry(key).or_insert(value);
        }
        setup.filter = setup.filter.and(config.tools);
        runtimes.push(config.runtime);
        of_files.push((config.plugins, config.servers));
    }
    let surroundings = Surroundings::of(&setup.cwd, user_home().as_deref(), setup.sources.home.as_deref());
    let mut runtime = Runtime::of(runtimes.iter());
    let told = runtime.overrule(&extensions::variables(), &setup.cwd, user_home().as_deref());
    failures.extend(told.into_iter().map(|wrong| {
        Failure::new(Exit::Usage, wrong).hint("set it to `true` or `false`, or take it out of the environment")
    }));
    entries.no_extensions = (!runtime.enabled).then_some(Provenance::Setting("[runtime.extensions] enabled = false"));
    of_files.iter().for_each(|(plugins, _)| entries.note_settings(plugins));
    for text in &global.plugins {
        match flag(text, &setup.cwd) {
            Ok(spec) => entries.add_named(spec),
            Err(failure) => failures.push(failure),
        }
    }
    for (plugins, servers) in of_files {
        entries.add_all(Class::Extension, plugins);
        entries.add_all(Class::Mcp, servers);
    }
    extensions::add(&mut setup, &mut entries, &runtime, &surroundings, &mut failures);
    setup.runtime = runtime;
    match setup.sources.home.as_deref().map(StoredSecrets::read).transpose() {
        Ok(secrets) => setup.secrets = secrets.unwrap_or_default(),
        Err(error) => failures.push(of_secrets(&error)),
    }
    match (bounds(limits), bounds(timeouts)) {
        (Ok(limits), Ok(timeouts)) => (setup.limits, setup.timeouts) = (limits, timeouts),
        (Err(error), _) | (_, Err(error)) => failures.push(error),
    }
    if !failures.is_empty() {
        return Err(Refused { setup: Box::new(setup), failures });
    }
    (setup.specs, setup.sources.disabled) = (entries.specs, entries.disabled);
    let manifests = setup.specs.iter().filter_map(|spec| spec.manifest.as_deref());
    setup
        .warnings
        .extend(manifests.flat_map(|manifest| manifest.warnings.iter().map(|odd| of_manifest(manifest, odd))));
    setup.untrusted = surroundings.folder;
    Ok(setup)
}

/// The folder that is worked in, which `-C` may name.
pub(crate) fn working_folder(global: &Global) -> Result<PathBuf, Failure> {
    if let Some(folder) = &global.directory {
        std::env::set_current_dir(folder).map_err(|error| {
            Failure::new(Exit::Usage, format!("can't work in {}", shown(&folder.to_string_lossy())))
                .why(error.to_string())
                .hint("give `-C` a folder that exists")
        })?;
    }
    std::env::current_dir().map_err(|error| {
        Failure::new(Exit::Usage, "there is no current folder").why(error.to_string()).hint("give one with `-C DIR`")
    })
}

fn flag(text: &std::ffi::OsStr, cwd: &Path) -> Result<PluginSpec, Failure> {
    let shown = lemon_host::PluginText::new(text.to_string_lossy());
    let failure = || Failure::new(Exit::Usage, format!("`--plugin {}` names no plugin", shown.capped(200)));
    let unusable = || Failure::new(Exit::Usage, format!("`--plugin {}` can't be started", shown.capped(200)));
    let text = text.to_str().ok_or_else(|| failure().why("it is not UTF-8"))?;
    let command = parse_plugin_flag(text, cwd).map_err(|error| {
        match &error {
            PluginFlagError::Manifest(error) => {
                return unusable()
                    .why(error.to_string())
                    .hint("correct it; `lemon plugin validate` tells warnings, too");
            }
            PluginFlagError::NotLoadable { .. } => return unusable().why(error.to_string()),
            _ => {}
        }
        let source = std::error::Error::source(&error).map_or_else(String::new, |source| format!(": {source}"));
        let (message, source) =
            (error.to_string(), if matches!(error, PluginFlagError::Name(_)) { String::new() } else { source });
        failure()
            .why(format!("{message}{source}"))
            .hint("it is a script, a program, a folder with a manifest, or a command with its arguments in quotes")
    })?;
    Ok(PluginSpec::from_flag(command))
}

fn is_same(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

fn user_config(file: &Path) -> Option<Result<Config, ConfigError>> {
    match Config::read(file) {
        Err(ConfigError::Unreadable { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => None,
        read => Some(read),
    }
}

pub(crate) fn of_config(error: &ConfigError) -> Failure {
    let problems = error.problems();
    if problems.is_empty() {
        let failure = Failure::new(Exit::Usage, error.to_string());
        return match std::error::Error::source(error) {
            Some(source) => failure.why(source.to_string()),
            None => failure,
        };
    }
    let file = shown(&problems[0].origin.file.to_string_lossy());
    let shown: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let hint =
        if problems.len() == 1 { "correct it; nothing was started" } else { "correct them; nothing was started" };
    let failure = Failure::new(Exit::Usage, format!("the config file {file} is wrong"));
    failure.why(shown.join("\n")).hint(hint).at(problems)
}

/// Why there are no secrets, or none can be written down.
pub(crate) fn of_secrets(error: &SecretsError) -> Failure {
    let failure = Failure::new(Exit::Usage, error.to_string());
    match std::error::Error::source(error) {
        Some(source) => failure.why(source.to_string()),
        None => failure,
    }
}

/// Something odd in a manifest, in a line.
fn of_manifest(manifest: &ManifestFile, odd: &ManifestProblem) -> String {
    let place = match (odd.line, odd.column) {
        (Some(line), Some(column)) => format!(":{line}:{column}"),
        _ => String::new(),
    };
    let hint = odd.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
    format!("{}{place}: {}", shown(&manifest.path.to_string_lossy()), shown(&format!("{}{hint}", odd.message)))
}

fn bounds<T: serde::de::DeserializeOwned>(
    table: impl IntoIterator<Item = (String, impl Serialize)>,
) -> Result<T, Failure> {
    // Each was checked when its file was read.
    let table: Result<serde_json::Map<_, _>, _> =
        table.into_iter().map(|(key, value)| Ok((key, serde_json::to_value(value)?))).collect();
    table.and_then(|table| serde_json::from_value(table.into())).map_err(|error: serde_json::Error| {
        Failure::new(Exit::Internal, "the limits of the config can't be read").why(error.to_string())
    })
}

/// The folder of the user's own config: `LEMON_HOME`, else `~/.lemon`; none without a home.
pub(crate) fn lemon_home() -> Option<PathBuf> {
    let named = std::env::var_os("LEMON_HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    let home = named.or_else(|| Some(user_home()?.join(".lemon")))?;
    Some(std::path::absolute(&home).unwrap_or(home))
}

pub(crate) fn user_home() -> Option<PathBuf> {
    std::env::home_dir().filter(|home| home.is_absolute())
}
