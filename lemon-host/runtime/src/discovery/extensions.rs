//! The extensions on disk: which of them may run, and what then runs.

use std::io::{BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lemon_process::files::open_regular;
use lemon_protocol::manifest::MAX_BYTES;
use serde::{Deserialize, Serialize};

use super::manifest::ManifestFile;
use super::places::PlaceKind;
use super::scan::{Form, Found, Ignored, Scan, manifest_in, project_of};
use super::trust::{self, Change, Contents, PluginTrust, Sha, Subject, TrustState, TrustStore};
use crate::plugin::{Class, PluginName, PluginSpec, Provenance};

/// All extensions of all places, sorted out. Nothing has run.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Extensions {
    /// Those that may run, in the order in which they win.
    pub admitted: Vec<PluginSpec>,
    /// Those that may not, with why.
    pub held: Vec<Held>,
    /// What else is there.
    pub ignored: Vec<Ignored>,
}

/// An extension that does not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Held {
    /// What it is called.
    pub name: PluginName,
    /// Its folder or file; the config file for an entry of one.
    #[serde(serialize_with = "crate::report::lossy::path")]
    pub path: PathBuf,
    /// Whether it is an entry of a project's config.
    pub is_entry: bool,
    /// Whose place it is in.
    pub place: PlaceKind,
    /// Why it does not run.
    pub why: HeldBecause,
    /// Whether it was trusted with stopping calls of tools: then none is made without it.
    pub gate: bool,
}

/// Why an extension does not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HeldBecause {
    /// The user has not trusted it.
    Untrusted,
    /// It is not what the user has trusted.
    Changed(Change),
    /// The user has a plugin of that name, which does not run now; a project can't take it.
    NameTaken,
    /// The user has trusted it, with stopping calls of tools, and it is not there any more.
    Gone,
    /// It can't be run at all.
    Unfit(String),
}

impl Extensions {
    /// Sorts out what was found for somebody who works in the folder `cwd`, which is without links. `home` is Lemon's home
    /// folder, where the copies of what was trusted are; without it, only what runs as it is can run.
    pub fn admit(scan: Scan, store: &TrustStore, home: Option<&Path>, cwd: &Path) -> Self {
        let mut extensions = Self { ignored: scan.ignored, ..Self::default() };
        let mut unknown = Unknown::default();
        // Wherever plugins are looked for now: one that may stop calls is missed where it was trusted to be.
        let mut missed: Vec<_> = store.plugins().iter().filter(|record| record.guards(cwd)).collect();
        for found in scan.found {
            missed.retain(|record| record.path != found.path);
            let record = store.of(&found.path, None);
            match admitted(&found, record, home) {
                Ok(spec) => extensions.admitted.push(spec),
                Err(why) => {
                    // The name that it gives itself now may be chosen to be one that the user has disabled.
                    let name = record.map_or_else(|| unknown.name(&found), |record| record.name.clone());
                    let gate = record.is_some_and(|record| record.grant.gate);
                    let (path, place) = (found.path, found.place.kind);
                    extensions.held.push(Held { name, path, is_entry: false, place, why, gate });
                }
            }
        }
        extensions.held.extend(missed.into_iter().map(Held::gone));
        extensions
    }
}

impl Held {
    /// An entry of a project's config.
    pub fn entry(name: PluginName, file: PathBuf, why: HeldBecause) -> Self {
        Self { name, path: file, is_entry: true, place: PlaceKind::Project, why, gate: false }
    }

    /// A project's plugin that was trusted, and whose name is that of one of the user's.
    pub fn name_taken(spec: PluginSpec) -> Self {
        let (path, is_entry) = match spec.provenance {
            Provenance::Found { path, .. } => (path, false),
            Provenance::Config { file, .. } => (file, true),
            _ => (PathBuf::new(), false),
        };
        Self { name: spec.name, path, is_entry, place: PlaceKind::Project, why: HeldBecause::NameTaken, gate: false }
    }

    /// A plugin that may stop calls and was not found.
    fn gone(record: &PluginTrust) -> Self {
        let place = if record.project.is_some() { PlaceKind::Project } else { PlaceKind::User };
        let (name, path) = (record.name.clone(), record.path.clone());
        Self { name, path, is_entry: false, place, why: HeldBecause::Gone, gate: true }
    }
}

impl PluginTrust {
    /// Whether calls that somebody makes in a folder may be stopped by it: the user's own plugin guards everywhere, a
    /// project's in that project, whatever else is in there.
    fn guards(&self, cwd: &Path) -> bool {
        self.grant.gate && self.project.as_ref().is_none_or(|project| cwd.starts_with(project))
    }
}

/// The names of plugins that nobody has trusted, which are read for show only. A project may hold a thousand large
/// manifests, so only so much of them is read.
struct Unknown {
    bytes: u64,
}

impl Default for Unknown {
    fn default() -> Self {
        Self { bytes: 4 * 1024 * 1024 }
    }
}

impl Unknown {
    /// What its manifest calls it, else what its folder or file is called.
    fn name(&mut self, found: &Found) -> PluginName {
        match found.form {
            Form::Folder => self.read(&found.path).unwrap_or_else(|| found.name.clone()),
            Form::File(_) => found.name.clone(),
        }
    }

    fn read(&mut self, folder: &Path) -> Option<PluginName> {
        #[derive(Deserialize)]
        struct Head {
            name: String,
        }
        let file = open_regular(&manifest_in(folder)?).ok()?;
        let size = file.metadata().ok()?.len();
        self.bytes = self.bytes.checked_sub(size).filter(|_| size <= MAX_BYTES as u64)?;
        let head: Head = serde_json::from_reader(BufReader::new(file.take(size))).ok()?;
        head.name.parse().ok()
    }
}

/// The manifest of a plugin that is a folder.
pub(super) fn manifest(found: &Found, folder: &Path) -> Result<Option<Arc<ManifestFile>>, String> {
    match found.form {
        Form::File(_) => Ok(None),
        Form::Folder => match ManifestFile::read(folder) {
            Ok(manifest) => Ok(Some(Arc::new(manifest))),
            Err(error) => Err(error.to_string()),
        },
    }
}

fn admitted(found: &Found, record: Option<&PluginTrust>, home: Option<&Path>) -> Result<PluginSpec, HeldBecause> {
    if found.place.as_it_is {
        let spec = manifest(found, &found.path).and_then(|manifest| spec(found, &found.path, manifest));
        return spec.map_err(HeldBecause::Unfit);
    }
    let record = record.ok_or(HeldBecause::Untrusted)?;
    let subject = subject(found).map_err(HeldBecause::Unfit)?;
    match record.state(&subject) {
        TrustState::Changed(change) => Err(HeldBecause::Changed(change)),
        _ => trusted(found, &subject, record, home).map_err(HeldBecause::Unfit),
    }
}

/// What runs of a plugin that is as it was trusted: never what lies in its place, which may change at any moment.
fn trusted(found: &Found, subject: &Subject, record: &PluginTrust, home: Option<&Path>) -> Result<PluginSpec, String> {
    let home = home.ok_or("there is no home folder for a copy of it")?;
    let copy = match &record.grant.built {
        Some(built) => {
            let built = trust::built(home, built);
            built.ok_or_else(|| {
                format!("what was built of it is gone: `lemon plugin trust {}` builds it", record.name)
            })?
        }
        None => trust::copy(home, &found.path, &subject.files).map_err(|error| with_source(&error))?,
    };
    let spec = spec(found, &copy, manifest(found, &copy)?)?;
    // What a build makes of the same files may be another thing each time.
    let built = record.grant.built.as_deref().unwrap_or_default();
    let code = Some(Sha::of(format!("{}{built}", subject.files.digest()).as_bytes()));
    Ok(PluginSpec { granted_env: record.grant.env.clone(), code, ..spec })
}

pub(super) fn subject(found: &Found) -> Result<Subject, String> {
    let files = Contents::of(&found.path).map_err(|error| with_source(&error))?;
    let project = (found.place.kind == PlaceKind::Project).then(|| project_of(&found.place.path));
    Ok(Subject { path: found.path.clone(), entry: None, project, files, start: Default::default() })
}

/// What runs a plugin that was found, from `place`: where it was found, or a copy.
pub(super) fn spec(found: &Found, place: &Path, manifest: Option<Arc<ManifestFile>>) -> Result<PluginSpec, String> {
    let provenance = Provenance::Found { path: found.path.clone(), place: found.place.kind };
    let of_project = found.place.kind == PlaceKind::Project;
    if let Some(manifest) = manifest {
        let spec = PluginSpec::from_manifest(manifest, None, provenance).map_err(|why| why.to_string())?;
        return Ok(PluginSpec { of_project, ..spec });
    }
    let mut argv = match &found.form {
        Form::File(argv) => argv.clone(),
        Form::Folder => return Err("it has no manifest".to_owned()),
    };
    if place != found.path {
        let file = found.path.file_name().map(|name| place.join(name));
        let file = file.and_then(|file| file.into_os_string().into_string().ok());
        // The file is the last word, whatever runs it.
        if let (Some(last), Some(file)) = (argv.last_mut(), file) {
            *last = file;
        }
    }
    Ok(PluginSpec { provenance, of_project, ..PluginSpec::new(found.name.clone(), Class::Extension, argv) })
}

pub(super) fn with_source(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
