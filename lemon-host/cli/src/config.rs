//! Which plugins there are: from the flags, the file of `--config`, and the user's own file, in this order.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lemon_host::{
    Class, Config, ConfigError, Limits, PluginConfig, PluginName, PluginSpec, Provenance, Timeouts, ToolFilter,
    parse_plugin_flag,
};
use serde::Serialize;

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
    /// What is odd in the config files, a line each.
    pub(crate) warnings: Vec<String>,
    /// A folder from which no program is run by its bare name.
    pub(crate) untrusted: Option<PathBuf>,
}

/// Where the config was read from, for the report.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Sources {
    /// The folder of the user's config, logs and cache.
    pub(crate) home: Option<PathBuf>,
    pub(crate) files: Vec<SourceFile>,
    /// The config of the project, which is not trusted: nothing of it was read.
    pub(crate) untrusted_project: Option<PathBuf>,
    pub(crate) disabled: Vec<Disabled>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SourceFile {
    pub(crate) path: PathBuf,
    pub(crate) from: &'static str,
    pub(crate) found: bool,
}

/// A plugin that is not started, as the config says so.
#[derive(Debug, Serialize)]
pub(crate) struct Disabled {
    pub(crate) name: PluginName,
    pub(crate) provenance: Provenance,
    /// The entry with `enabled = false`.
    pub(crate) by: Provenance,
}

/// Gathers the plugins. Starts nothing.
///
/// # Errors
/// Everything that is wrong with the flags and the files, each as a failure of its own.
pub(crate) fn gather(global: &Global) -> Result<Setup, Vec<Failure>> {
    let cwd = working_folder(global).map_err(|failure| vec![failure])?;
    let mut failures = Vec::new();
    let mut setup = Setup { cwd, ..Setup::default() };
    let mut entries = Entries::default();
    for text in &global.plugins {
        match flag(text, &setup.cwd) {
            Ok(spec) => entries.add(spec, true),
            Err(failure) => failures.push(failure),
        }
    }
    setup.filter = setup.filter.disable(&global.disabled);
    if !global.enabled_only.is_empty() {
        setup.filter = setup.filter.enable_only(&global.enabled_only);
    }
    let mut configs = Vec::new();
    if let Some(file) = &global.config {
        setup.sources.files.push(SourceFile { path: file.clone(), from: "--config", found: true });
        configs.push(Config::read(file));
    }
    setup.sources.home = lemon_home();
    let user_file = setup.sources.home.as_ref().map(|home| home.join("config.toml"));
    // Read once, or every plugin in it would be in conflict with itself.
    let is_other = |file: &PathBuf| !global.config.as_ref().is_some_and(|flag| is_same(flag, file));
    if let Some(file) = user_file.filter(is_other) {
        let config = user_config(&file);
        setup.sources.files.push(SourceFile { path: file, from: "user", found: config.is_some() });
        configs.extend(config);
    }
    let (mut limits, mut timeouts) = (BTreeMap::new(), BTreeMap::new());
    for config in configs {
        let config = match config {
            Ok(config) => config,
            Err(error) => {
                failures.push(of_config(&error));
                continue;
            }
        };
        setup.warnings.extend(config.warnings.iter().map(ToString::to_string));
        // The first file that sets a bound wins.
        for (key, value) in config.limits {
            limits.entry(key).or_insert(value);
        }
        for (key, value) in config.timeouts {
            timeouts.entry(key).or_insert(value);
        }
        setup.filter = setup.filter.and(config.tools);
        entries.add_all(Class::Extension, config.plugins);
        entries.add_all(Class::Mcp, config.servers);
    }
    match (bounds(limits), bounds(timeouts)) {
        (Ok(limits), Ok(timeouts)) => (setup.limits, setup.timeouts) = (limits, timeouts),
        (Err(error), _) | (_, Err(error)) => failures.push(error),
    }
    if !failures.is_empty() {
        return Err(failures);
    }
    (setup.specs, setup.sources.disabled) = (entries.specs, entries.disabled);
    let surroundings = Surroundings::of(&setup.cwd, setup.sources.home.as_deref());
    setup.sources.untrusted_project = surroundings.project_config;
    setup.untrusted = surroundings.folder;
    Ok(setup)
}

/// The plugins in the order in which they win.
#[derive(Default)]
struct Entries {
    specs: Vec<PluginSpec>,
    disabled: Vec<Disabled>,
}

impl Entries {
    fn add_all(&mut self, class: Class, entries: BTreeMap<PluginName, PluginConfig>) {
        for (name, entry) in entries {
            let enabled = entry.enabled;
            self.add(PluginSpec::from_config(name, class, entry), enabled);
        }
    }

    fn add(&mut self, spec: PluginSpec, enabled: bool) {
        let is_taken = self.specs.iter().any(|winner| winner.name == spec.name);
        let by = match self.disabled.iter().find(|earlier| earlier.name == spec.name) {
            // An entry that switches a plugin off wins over later ones like any other.
            Some(earlier) if !is_taken => earlier.by.clone(),
            _ if enabled => return self.specs.push(spec),
            _ => spec.provenance.clone(),
        };
        self.disabled.push(Disabled { name: spec.name, provenance: spec.provenance, by });
    }
}

fn working_folder(global: &Global) -> Result<PathBuf, Failure> {
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
    let failure = || {
        let text = lemon_host::PluginText::new(text.to_string_lossy());
        Failure::new(Exit::Usage, format!("`--plugin {}` names no plugin", text.capped(200)))
    };
    let text = text.to_str().ok_or_else(|| failure().why("it is not UTF-8"))?;
    let command = parse_plugin_flag(text, cwd).map_err(|error| {
        let source = std::error::Error::source(&error).map_or_else(String::new, |source| format!(": {source}"));
        let (message, source) = (
            error.to_string(),
            if matches!(error, lemon_host::PluginFlagError::Name(_)) { String::new() } else { source },
        );
        failure()
            .why(format!("{message}{source}"))
            .hint("it is a script, a program, or a command with its arguments in quotes")
    })?;
    Ok(PluginSpec::from_flag(command.name, command.argv))
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

fn of_config(error: &ConfigError) -> Failure {
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
    Failure::new(Exit::Usage, format!("the config file {file} is wrong")).why(shown.join("\n")).hint(hint)
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

fn user_home() -> Option<PathBuf> {
    std::env::home_dir().filter(|home| home.is_absolute())
}

/// What the working folder lies in.
#[derive(Debug, Default, PartialEq)]
struct Surroundings {
    /// The nearest `.lemon/config.toml`.
    project_config: Option<PathBuf>,
    /// The repository, else the project.
    folder: Option<PathBuf>,
}

impl Surroundings {
    /// Looks from the working folder up to the repository's root, but not as far as the user's home: what stands there
    /// is the user's own, as well as the programs below it that PATH names.
    fn of(cwd: &Path, lemon_home: Option<&Path>) -> Self {
        Self::below(cwd, user_home().as_deref(), lemon_home)
    }

    fn below(cwd: &Path, home: Option<&Path>, lemon_home: Option<&Path>) -> Self {
        let mut found = Self::default();
        for folder in cwd.ancestors() {
            if folder.parent().is_none() || home.is_some_and(|home| home.starts_with(folder)) {
                break;
            }
            let own = folder.join(".lemon");
            if found.project_config.is_none() && Some(&*own) != lemon_home {
                let config = own.join("config.toml");
                if config.symlink_metadata().is_ok() {
                    found.project_config = Some(config);
                }
                if found.folder.is_none() && own.is_dir() {
                    found.folder = Some(folder.to_owned());
                }
            }
            if folder.join(".git").symlink_metadata().is_ok() {
                found.folder = Some(folder.to_owned());
                break;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_project_is_sought_up_to_the_repository_and_below_the_home() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let (home, repo) = (root.join("home"), root.join("home/repo"));
        let cwd = repo.join("a/b");
        for folder in [home.join(".lemon"), repo.join(".git"), repo.join("a/.lemon"), cwd.clone()] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(home.join(".lemon/config.toml"), "").unwrap();
        let look = |from: &Path| Surroundings::below(from, Some(&home), Some(&home.join(".lemon")));
        assert_eq!(look(&cwd), Surroundings { project_config: None, folder: Some(repo.clone()) });
        fs::write(repo.join("a/.lemon/config.toml"), "").unwrap();
        assert_eq!(look(&cwd).project_config, Some(repo.join("a/.lemon/config.toml")));
        assert_eq!(look(&home), Surroundings::default());
        fs::remove_dir(repo.join(".git")).unwrap();
        assert_eq!(look(&cwd).folder, Some(repo.join("a")));
    }
}
