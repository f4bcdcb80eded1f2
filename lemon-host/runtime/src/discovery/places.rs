//! Where plugins are looked for: the folders that the user named, the user's own, and the project's.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Project, RuntimeConfig};

/// A folder of plugins, or a single one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// The folder.
    pub path: PathBuf,
    /// Whose it is.
    pub kind: PlaceKind,
    /// Whether what is in it runs as it is, because an explicit act of the user said so.
    pub as_it_is: bool,
}

/// Whose a place is; the lesser wins where two have a plugin of one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PlaceKind {
    /// Named by `[runtime] extension_paths` of the user's config or by `LEMON_EXTENSION_PATHS`.
    Named,
    /// `agent/extensions` in Lemon's home folder.
    User,
    /// `.lemon/extensions` in the project.
    Project,
}

/// What the user's config and environment say of extensions.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Runtime {
    /// `[runtime] extension_paths`, `~/` expanded and absolute.
    pub extension_paths: Vec<PathBuf>,
    /// `[runtime.extensions] enabled`: whether any extension runs.
    pub enabled: bool,
    /// `[runtime.extensions] auto_load_default_paths`: whether the default folders are trusted as they are.
    pub auto_load_default_paths: bool,
}

impl Default for Runtime {
    fn default() -> Self {
        Self { extension_paths: Vec::new(), enabled: true, auto_load_default_paths: false }
    }
}

/// Environment variables that overrule `[runtime]`, as they are; empty ones count as not set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuntimeVariables {
    /// [`EXTENSION_PATHS`](Self::EXTENSION_PATHS): folders with commas between them.
    pub extension_paths: Option<String>,
    /// [`ENABLED`](Self::ENABLED).
    pub enabled: Option<String>,
    /// [`AUTO_LOAD`](Self::AUTO_LOAD).
    pub auto_load_default_paths: Option<String>,
}

impl RuntimeVariables {
    /// The variable that overrules `extension_paths`.
    pub const EXTENSION_PATHS: &str = "LEMON_EXTENSION_PATHS";
    /// The variable that overrules `enabled`.
    pub const ENABLED: &str = "LEMON_EXTENSIONS_ENABLED";
    /// The variable that overrules `auto_load_default_paths`.
    pub const AUTO_LOAD: &str = "LEMON_EXTENSIONS_AUTO_LOAD_DEFAULT_PATHS";

    /// Takes them from wherever `get` has them.
    pub fn from(get: impl Fn(&str) -> Option<String>) -> Self {
        let get = |name| get(name).filter(|value| !value.trim().is_empty());
        Self {
            extension_paths: get(Self::EXTENSION_PATHS),
            enabled: get(Self::ENABLED),
            auto_load_default_paths: get(Self::AUTO_LOAD),
        }
    }
}

impl Runtime {
    /// What the user's config files say, those that win first.
    pub fn of<'a>(files: impl IntoIterator<Item = &'a RuntimeConfig>) -> Self {
        let mut all = RuntimeConfig::default();
        for file in files {
            all.extension_paths = all.extension_paths.or_else(|| file.extension_paths.clone());
            all.enabled = all.enabled.or(file.enabled);
            all.auto_load_default_paths = all.auto_load_default_paths.or(file.auto_load_default_paths);
        }
        let default = Self::default();
        Self {
            extension_paths: all.extension_paths.unwrap_or_default(),
            enabled: all.enabled.unwrap_or(default.enabled),
            auto_load_default_paths: all.auto_load_default_paths.unwrap_or(default.auto_load_default_paths),
        }
    }

    /// Lets the environment overrule the config. Relative folders start from `cwd`. What can't be understood overrules
    /// nothing, and is told of, a line each: a program had better not start, as nobody knows what it was to do.
    pub fn overrule(&mut self, variables: &RuntimeVariables, cwd: &Path, user_home: Option<&Path>) -> Vec<String> {
        let mut told = Vec::new();
        if let Some(list) = &variables.extension_paths {
            let paths: Vec<_> = list
                .split(',')
                .map(str::trim)
                .filter(|path| !path.is_empty())
                .map(|path| expand(path, cwd, user_home))
                .collect();
            if !paths.is_empty() {
                self.extension_paths = paths;
            }
        }
        for (name, value, setting) in [
            (RuntimeVariables::ENABLED, &variables.enabled, &mut self.enabled),
            (RuntimeVariables::AUTO_LOAD, &variables.auto_load_default_paths, &mut self.auto_load_default_paths),
        ] {
            let Some(value) = value else { continue };
            match truth(value) {
                Some(value) => *setting = value,
                None => told.push(format!("{name} is neither true nor false")),
            }
        }
        told
    }

    /// All places, in the order in which they win. Those that the user named run as they are. So does the user's own
    /// folder where it is loaded by itself, and then the project's, too, if the project is trusted.
    pub fn places(&self, lemon_home: Option<&Path>, project: Option<&Project>, project_is_trusted: bool) -> Vec<Place> {
        let named = self.extension_paths.iter().map(|path| Place {
            path: path.clone(),
            kind: PlaceKind::Named,
            as_it_is: true,
        });
        let user = lemon_home.map(|home| Place {
            path: home.join("agent").join("extensions"),
            kind: PlaceKind::User,
            as_it_is: self.auto_load_default_paths,
        });
        let project = project.filter(|project| project.ignored.is_none()).map(|project| Place {
            path: project.extensions(),
            kind: PlaceKind::Project,
            as_it_is: self.auto_load_default_paths && project_is_trusted,
        });
        named.chain(user).chain(project).collect()
    }
}

fn truth(value: &str) -> Option<bool> {
    match value.trim().to_ascii_lowercase().as_str() {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

/// A path as a user writes it, absolute.
pub(super) fn expand(path: &str, base: &Path, user_home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~/"), user_home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ if path == "~" => user_home.unwrap_or(base).to_owned(),
        _ => base.join(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(paths: &str, enabled: &str, auto: &str) -> RuntimeVariables {
        RuntimeVariables::from(|name| {
            Some(match name {
                RuntimeVariables::EXTENSION_PATHS => paths.to_owned(),
                RuntimeVariables::ENABLED => enabled.to_owned(),
                _ => auto.to_owned(),
            })
        })
    }

    fn overruled(variables: &RuntimeVariables) -> (Runtime, Vec<String>) {
        let mut runtime = Runtime { extension_paths: vec!["/config".into()], ..Runtime::default() };
        let told = runtime.overrule(variables, Path::new("/work"), Some(Path::new("/home/me")));
        (runtime, told)
    }

    #[test]
    fn the_environment_overrules_the_config_unless_it_says_nothing() {
        let (runtime, told) = overruled(&variables("~/a, b ,,/c", "FALSE", "1"));
        assert_eq!(runtime.extension_paths, [Path::new("/home/me/a"), Path::new("/work/b"), Path::new("/c")]);
        assert_eq!((runtime.enabled, runtime.auto_load_default_paths, told.len()), (false, true, 0));
        let (runtime, told) = overruled(&variables(" , ", "", " "));
        assert_eq!(runtime, Runtime { extension_paths: vec!["/config".into()], ..Runtime::default() });
        assert!(told.is_empty());
    }

    #[test]
    fn what_is_neither_true_nor_false_changes_nothing_and_is_told() {
        let (runtime, told) = overruled(&variables("", "off", "yes"));
        assert_eq!((runtime.enabled, runtime.auto_load_default_paths), (true, false));
        assert_eq!(told[0], "LEMON_EXTENSIONS_ENABLED is neither true nor false");
        assert!(told[1].starts_with("LEMON_EXTENSIONS_AUTO_LOAD_DEFAULT_PATHS"));
    }

    #[test]
    fn places_come_in_the_order_in_which_they_win() {
        let project = Project { folder: "/p".into(), ignored: None };
        let mut runtime = Runtime { extension_paths: vec!["/x".into(), "/y".into()], ..Runtime::default() };
        let places = |runtime: &Runtime, project: &Project, trusted| -> Vec<_> {
            let places = runtime.places(Some(Path::new("/h")), Some(project), trusted);
            places.into_iter().map(|place| (place.path.to_str().unwrap().to_owned(), place.as_it_is)).collect()
        };
        let all = |user, of_project| {
            [("/x", true), ("/y", true), ("/h/agent/extensions", user), ("/p/.lemon/extensions", of_project)]
                .map(|(path, as_it_is)| (path.to_owned(), as_it_is))
                .to_vec()
        };
        assert_eq!(places(&runtime, &project, true), all(false, false));
        runtime.auto_load_default_paths = true;
        assert_eq!(places(&runtime, &project, false), all(true, false), "cloning a repository is no act of trust");
        assert_eq!(places(&runtime, &project, true), all(true, true));
        let ignored = Project { ignored: Some("x"), ..project };
        assert_eq!(places(&runtime, &ignored, true).len(), 3);
        assert!(Runtime::default().places(None, None, false).is_empty());
    }
}
