//! Entries of a project's config: what trust in one is bound to, and that it is still that whenever it is started.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::config::{EnvValue, PluginConfig};
use super::extensions::{HeldBecause, with_source};
use super::project::Project;
use super::trust::{self, Contents, Subject, TrustState, TrustStore};
use crate::plugin::{Class, PluginName, PluginSpec};

/// An entry with what it was when it was admitted.
#[derive(Debug, PartialEq)]
pub(crate) struct BoundEntry {
    project: Project,
    name: PluginName,
    entry: PluginConfig,
    subject: Subject,
}

impl BoundEntry {
    /// Whether the files that it names are what they were. It may be started again long after it was admitted, and it
    /// runs what is there.
    ///
    /// # Errors
    /// What has changed.
    pub(crate) fn check(&self) -> Result<(), String> {
        let now = entry_subject(&self.project, &self.name, &self.entry)?;
        match trust::between(&self.subject, &now) {
            None => Ok(()),
            Some(change) => Err(change.to_string()),
        }
    }
}

/// The plugin that an entry of a trusted project's config names, if it may run. Trust in it is bound to the entry, and to
/// the files and folders of the project that its command names; what those load is not known here.
///
/// # Errors
/// Why it may not.
pub fn admit_entry(
    project: &Project,
    store: &TrustStore,
    name: PluginName,
    class: Class,
    entry: PluginConfig,
) -> Result<PluginSpec, HeldBecause> {
    let subject = entry_subject(project, &name, &entry).map_err(HeldBecause::Unfit)?;
    match store.state(&subject) {
        TrustState::Trusted => {}
        TrustState::Changed(change) => return Err(HeldBecause::Changed(change)),
        TrustState::Unknown => return Err(HeldBecause::Untrusted),
    }
    let bound = BoundEntry { project: project.clone(), name: name.clone(), entry: entry.clone(), subject };
    let spec = PluginSpec::from_config(name, class, entry);
    Ok(PluginSpec { of_project: true, bound: Some(Arc::new(bound)), ..spec })
}

/// What trust in an entry of a project's config is bound to.
///
/// # Errors
/// Something that the command names can't be read, or is a link that leads out of the project.
pub fn entry_subject(project: &Project, name: &PluginName, entry: &PluginConfig) -> Result<Subject, String> {
    let base = entry.cwd.as_ref().unwrap_or(&project.folder);
    let mut files = Contents::default();
    for word in &entry.command {
        // A path may stand behind an option's `=`.
        for named in std::iter::once(word.as_str()).chain(word.split_once('=').map(|(_, value)| value)) {
            let Some(path) = in_project(project, &base.join(named))? else { continue };
            let found = Contents::of(&path).map_err(|error| with_source(&error))?;
            let is_file = path.is_file();
            files.files.extend(found.files.into_iter().map(|(within, file)| {
                let at = if is_file { named.to_owned() } else { format!("{named}/{within}") };
                (at, file)
            }));
        }
    }
    let mut start = BTreeMap::from([("command".to_owned(), format!("{:?}", entry.command))]);
    start.extend(entry.cwd.as_ref().map(|cwd| ("cwd".to_owned(), cwd.to_string_lossy().into_owned())));
    for (variable, value) in &entry.env {
        let value = match value {
            // It may be a secret all the same.
            EnvValue::Literal(text) => trust::Sha::of(text.as_bytes()).to_string(),
            EnvValue::Secret(name) => format!("secret {name}"),
        };
        start.insert(format!("env {variable}"), value);
    }
    let project_folder = Some(project.folder.clone());
    Ok(Subject { path: project.config(), entry: Some(name.clone()), project: project_folder, files, start })
}

/// Where a word leads, if there is something of the project's: a file, or a folder below the project's own.
fn in_project(project: &Project, path: &Path) -> Result<Option<PathBuf>, String> {
    let is_written_in = straightened(path).starts_with(&project.folder);
    match path.canonicalize() {
        Ok(real) if real.starts_with(&project.folder) => Ok(Some(real).filter(|real| *real != project.folder)),
        Ok(_) if is_written_in => {
            Err(format!("{} is or is behind a link that leads out of the project", path.display()))
        }
        Err(_) if is_written_in && path.symlink_metadata().is_ok() => {
            Err(format!("{} is a link that leads nowhere", path.display()))
        }
        _ => Ok(None),
    }
}

/// A path without `.` and `..`, as it is written.
fn straightened(path: &Path) -> PathBuf {
    let mut straight = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                straight.pop();
            }
            part => straight.push(part),
        }
    }
    straight
}
