//! The extensions on disk, and the project: what of it is trusted, and what is only told of.

use lemon_host::trust::{self, ProjectState, TrustStore};
use lemon_host::{
    Class, Config, Extensions, Found, Held, HeldBecause, Ignored, PlaceKind, PluginConfig, PluginName, PluginSpec,
    Project, Provenance, Runtime, RuntimeVariables, StaleGate, Surroundings, admit_entry, scan,
};
use serde::Serialize;

use super::entries::{Entries, is_settings};
use super::{ReadFile, Setup, SourceFile, of_config};
use crate::errors::{Failure, safe, shown};
use crate::exit::Exit;

/// What of the disk is not run, for the report.
#[derive(Debug, Default, Serialize)]
pub(crate) struct NotRun {
    /// Extensions that are not trusted, have changed, or can't be run.
    pub(crate) held: Vec<Held>,
    /// What else is in the folders of extensions.
    pub(crate) ignored: Vec<Ignored>,
}

/// The project that the working folder lies in.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProjectReport {
    #[serde(flatten)]
    pub(crate) project: Project,
    pub(crate) trust: &'static str,
    /// Its config file, if it has one.
    pub(crate) config: Option<String>,
}

/// What was found on disk, and what the user has said of it.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    pub(crate) found: Vec<Found>,
    pub(crate) store: TrustStore,
    /// The project, if anything of it is looked at.
    pub(crate) project: Option<Project>,
}

/// Adds what the project says, if it is trusted, and the extensions of all places.
pub(super) fn add(
    setup: &mut Setup,
    entries: &mut Entries,
    runtime: &Runtime,
    surroundings: &Surroundings,
    failures: &mut Vec<Failure>,
) {
    let home = setup.sources.home.clone();
    let store = match home.as_deref().map_or_else(|| Ok(TrustStore::default()), TrustStore::read) {
        Ok(store) => store,
        // Nobody knows then which plugins may stop calls, so nothing goes on without them.
        Err(error) => {
            let hint = "correct it, or take it away to trust nothing";
            return failures.push(Failure::new(Exit::Untrusted, with_source(&error)).hint(hint));
        }
    };
    let project = surroundings.project.as_ref();
    let (state, config) = project.map_or((ProjectState::Unknown, None), |project| state(project, &store));
    if let Some(project) = project {
        let file = project.config();
        let found = file.symlink_metadata().is_ok();
        setup.sources.project = Some(ProjectReport {
            project: project.clone(),
            trust: match state {
                _ if project.ignored.is_some() => "ignored",
                ProjectState::Trusted => "trusted",
                ProjectState::Changed => "changed",
                _ => "untrusted",
            },
            config: found.then(|| file.to_string_lossy().into_owned()),
        });
    }
    let is_trusted = state == ProjectState::Trusted;
    let places = runtime.places(home.as_deref(), project, is_trusted);
    let scan = scan(&places);
    let found = scan.found.clone();
    let extensions = Extensions::admit(scan, &store, home.as_deref(), &setup.cwd);
    setup.sources.not_run = NotRun { held: extensions.held, ignored: extensions.ignored };
    let (mut of_project, of_user): (Vec<_>, Vec<_>) = extensions.admitted.into_iter().partition(|spec| spec.of_project);
    of_user.into_iter().for_each(|spec| entries.add_found(spec));
    if let (Some(project), Some(text), true) = (project, config, is_trusted) {
        of_project.splice(0..0, of_config_file(setup, project, &text, &store, failures));
    }
    for spec in of_project {
        // A plugin of the user's keeps its name, and what the user has set up for it, while it does not run.
        let is_users = |held: &Held| held.name == spec.name && held.place != PlaceKind::Project;
        if setup.sources.not_run.held.iter().any(is_users) {
            setup.sources.not_run.held.push(Held::name_taken(spec));
        } else if spec.class == Class::Mcp && matches!(spec.provenance, Provenance::Config { .. }) {
            entries.add(spec, true);
        } else {
            entries.add_found(spec);
        }
    }
    let held = &mut setup.sources.not_run.held;
    // Who has switched a plugin off need not be told that it is not trusted, and goes on without it.
    held.retain(|held| !entries.is_switched_off(&held.name));
    setup.warnings.extend(entries.unused(held.iter().map(|held| &held.name)));
    setup.disk = Disk { found, store, project: project.filter(|project| project.ignored.is_none()).cloned() };
}

/// The plugins of a trusted project's config, whose filters are added.
fn of_config_file(
    setup: &mut Setup,
    project: &Project,
    text: &str,
    store: &TrustStore,
    failures: &mut Vec<Failure>,
) -> Vec<PluginSpec> {
    let file = project.config();
    setup.sources.files.push(SourceFile { path: file.clone(), from: "project", found: true });
    let config = match Config::parse_project(text, &file) {
        Ok(config) => config,
        Err(error) => {
            failures.push(of_config(&error));
            return Vec::new();
        }
    };
    setup.warnings.extend(config.warnings.iter().map(ToString::to_string));
    setup.filter = std::mem::take(&mut setup.filter).and(config.tools.clone());
    setup.layers.push(ReadFile { from: "project", config: config.clone() });
    let mut specs = Vec::new();
    for (class, all) in [(Class::Extension, config.plugins), (Class::Mcp, config.servers)] {
        for (name, entry) in all {
            match admit_entry(project, store, name.clone(), class, entry) {
                Err(why) => setup.sources.not_run.held.push(Held::entry(name, file.clone(), why)),
                Ok(spec) => specs.push(spec),
            }
        }
    }
    specs
}

/// How the user stands to a project, and the text of its config as it is now, which is what was asked about.
fn state(project: &Project, store: &TrustStore) -> (ProjectState, Option<String>) {
    if project.ignored.is_some() {
        return (ProjectState::Unknown, None);
    }
    match project_config(project) {
        Ok(text) => {
            let hash = text.as_ref().map(|text| trust::Sha::of(text.as_bytes()));
            (store.project(&project.folder, hash.as_ref()), text)
        }
        Err(_) if store.has_project(&project.folder) => (ProjectState::Changed, None),
        Err(_) => (ProjectState::Unknown, None),
    }
}

/// The text of a project's config; none if it has none.
pub(crate) fn project_config(project: &Project) -> Result<Option<String>, lemon_host::ConfigError> {
    match Config::project_text(&project.config()) {
        Ok(text) => Ok(Some(text)),
        Err(lemon_host::ConfigError::Unreadable { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// An error with what caused it.
pub(crate) fn with_source(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// What the environment says of extensions.
pub(crate) fn variables() -> RuntimeVariables {
    RuntimeVariables::from(|name| std::env::var(name).ok())
}

impl Setup {
    /// What stands in for the plugins that may stop calls and do not run.
    pub(crate) fn stale_gate(&self) -> Option<StaleGate> {
        StaleGate::of(&self.sources.not_run.held)
    }

    /// What the user's files say of a plugin that they do not bring in themselves.
    pub(crate) fn settings_of(&self, name: &PluginName) -> Option<&PluginConfig> {
        let users = self.layers.iter().filter(|file| file.from != "project");
        users.filter_map(|file| file.config.plugins.get(name)).find(|entry| is_settings(entry))
    }

    /// Whether something does not run that would if the user trusted it.
    pub(crate) fn waits_for_trust(&self) -> bool {
        let waits = |held: &Held| !matches!(held.why, HeldBecause::Unfit(_) | HeldBecause::NameTaken);
        let project = self.sources.project.as_ref();
        self.sources.not_run.held.iter().any(waits)
            || project.is_some_and(|project| project.config.is_some() && project.trust != "trusted")
    }

    /// What is to be said of what was not run, before a list or a call is of use: a line each, with what to do. Those
    /// that block calls stand first.
    pub(crate) fn held_lines(&self) -> Vec<(String, Option<String>)> {
        let (gates, others): (Vec<_>, Vec<_>) = self.sources.not_run.held.iter().partition(|held| held.gate);
        let told =
            |held: &Held| (format!("plugin {} is not started: {}", held.name, held_why(held)), Some(held_hint(held)));
        let mut lines: Vec<_> = gates.into_iter().map(told).collect();
        lines.extend(self.project_line());
        lines.extend(others.into_iter().map(told));
        lines.extend(self.ignored_lines().map(|line| (line, None)));
        lines
    }

    /// What is to be said of a project whose config is not read.
    pub(crate) fn project_line(&self) -> Option<(String, Option<String>)> {
        let report = self.sources.project.as_ref()?;
        let folder = shown(&report.project.folder.to_string_lossy());
        match (report.trust, &report.config) {
            ("ignored", _) => {
                let why = report.project.ignored.unwrap_or_default();
                Some((format!("the project {folder} is ignored: {why}"), None))
            }
            ("changed", Some(_)) => Some((
                format!("the config of the project {folder} has changed since it was trusted: ignored"),
                Some("`lemon plugin trust --project` shows what it is now".to_owned()),
            )),
            ("untrusted", Some(_)) => Some((
                format!("the project {folder} is not trusted: its config is ignored"),
                Some("`lemon plugin trust --project` shows what it would do".to_owned()),
            )),
            _ => None,
        }
    }

    /// What is to be said of what looks as if it should be a plugin, and is none.
    pub(crate) fn ignored_lines(&self) -> impl Iterator<Item = String> {
        let odd = self.sources.not_run.ignored.iter().filter(|ignored| ignored.is_odd);
        odd.map(|ignored| format!("{} is ignored: {}", shown(&ignored.path.to_string_lossy()), ignored.reason))
    }
}

/// Why an extension does not run, in a line.
pub(crate) fn held_why(held: &Held) -> String {
    let path = shown(&held.path.to_string_lossy());
    match &held.why {
        HeldBecause::Untrusted => format!("{path} is not trusted"),
        HeldBecause::Changed(change) => format!("{path} has changed since it was trusted ({change})"),
        HeldBecause::NameTaken => format!("{path} is the project's, and a plugin of yours has that name"),
        HeldBecause::Gone => format!("{path} was trusted and is not there any more"),
        HeldBecause::Unfit(why) => format!("{path}: {}", safe(why)),
        _ => format!("{path} is not admitted"),
    }
}

fn held_hint(held: &Held) -> String {
    match &held.why {
        HeldBecause::Unfit(_) => {
            format!("correct it, or take {} away", shown(&held.path.to_string_lossy()))
        }
        HeldBecause::NameTaken => "settle first what is wrong with your own".to_owned(),
        HeldBecause::Gone => format!("`lemon plugin untrust {}` goes on without it", held.name),
        _ if held.is_entry => "`lemon plugin trust --project` shows what it is".to_owned(),
        _ => format!("`lemon plugin trust {}` shows what it is", held.name),
    }
}
