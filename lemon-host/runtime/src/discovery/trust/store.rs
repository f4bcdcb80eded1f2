//! The file that remembers what the user trusts.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};

use super::change::Change;
use super::contents::{Contents, Sha};
use crate::plugin::PluginName;
use crate::report::PluginText;

/// Its name in Lemon's home folder.
const FILE: &str = "trust.json";
const VERSION: u32 = 1;
/// Some thousand plugins with some thousand files each.
const MAX_BYTES: u64 = 256 * 1024 * 1024;

/// What the user trusts: projects, and plugins as they were at that moment.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TrustStore {
    version: u32,
    #[serde(default)]
    projects: BTreeMap<PathBuf, ProjectTrust>,
    #[serde(default)]
    plugins: Vec<PluginTrust>,
}

/// A project whose config may be read.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ProjectTrust {
    /// Of its config file; none if it had none.
    config: Option<Sha>,
    trusted_at_ms: u64,
}

/// A plugin that may be run, as it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PluginTrust {
    /// Its folder or file; the config file for an entry of one.
    pub path: PathBuf,
    /// The entry in that file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<PluginName>,
    /// The project that it came with; none if it is in a folder of the user's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<PathBuf>,
    /// What it was called.
    pub name: PluginName,
    /// Its files.
    pub files: Contents,
    /// How it is started, as far as its files do not say: each part with its value, or a hash of it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub start: BTreeMap<String, String>,
    /// What came with the trust.
    #[serde(flatten)]
    pub grant: Grant,
    /// When, in milliseconds since 1970.
    pub trusted_at_ms: u64,
}

/// What a plugin is trusted with, and what was made of it then.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Grant {
    /// The variables of the user's environment that it is given.
    #[serde(default, rename = "grantedEnv", skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Whether it may stop calls of tools: then they are stopped while it is not as it was.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gate: bool,
    /// The folder in the store in which it was built, if it has to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub built: Option<String>,
}

/// What is to be trusted, as it is now.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Subject {
    /// Its folder or file, without links on the way; the config file for an entry of one.
    pub path: PathBuf,
    /// The entry in that file.
    pub entry: Option<PluginName>,
    /// The project that it comes with, if it comes with one.
    pub project: Option<PathBuf>,
    /// Its files.
    pub files: Contents,
    /// How it is started, as far as its files do not say.
    pub start: BTreeMap<String, String>,
}

/// How the user stands to a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrustState {
    /// The user has trusted it, and it is as it was.
    Trusted,
    /// The user has trusted it, but it is not what it was.
    Changed(Change),
    /// The user has not said anything of it.
    Unknown,
}

/// Why it is not known what the user trusts, or can't be written down.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// The file, or its folder, can't be read or written.
    #[error("can't {what} {}", shown(path))]
    Io {
        /// What was to be done: `read`, `write` or `lock`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Others can write to it, or it is another user's.
    #[error("{} could have been written by somebody else: it must be yours, and writable by nobody else", shown(.0))]
    NotYours(PathBuf),
    /// It is not what this version writes.
    #[error("{} can't be understood: {reason}", shown(path))]
    Broken {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

fn shown(path: &Path) -> PluginText {
    path.to_string_lossy().into_owned().into()
}

impl TrustStore {
    /// Reads what the user trusts from Lemon's home folder; nothing if there is no such file.
    ///
    /// # Errors
    /// [`TrustError`]; then nothing is trusted.
    pub fn read(home: &Path) -> Result<Self, TrustError> {
        let path = home.join(FILE);
        let failed = |source| TrustError::Io { what: "read", path: path.clone(), source };
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if is_missing(&error) => return Ok(Self::default()),
            Err(error) => return Err(failed(error)),
        };
        let metadata = file.metadata().map_err(failed)?;
        let is_mine = metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o022 == 0;
        if !metadata.is_file() || !is_mine {
            return Err(TrustError::NotYours(path));
        }
        let mut bytes = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut bytes).map_err(failed)?;
        let broken = |reason: String| TrustError::Broken { path: path.clone(), reason };
        let store: Self = serde_json::from_slice(&bytes).map_err(|error| broken(error.to_string()))?;
        match store.version {
            VERSION => Ok(store),
            other => Err(broken(format!("it is of version {other}, and this is a Lemon of version {VERSION}"))),
        }
    }

    /// Changes what the user trusts; nobody else does so at the same time, and a crash leaves the old or the new.
    ///
    /// # Errors
    /// [`TrustError`]; then nothing has changed.
    pub fn edit<T>(home: &Path, change: impl FnOnce(&mut Self) -> T) -> Result<T, TrustError> {
        let path = home.join(FILE);
        let failed = |what| move |source| TrustError::Io { what, path: home.join(FILE), source };
        DirBuilder::new().recursive(true).mode(0o700).create(home).map_err(failed("write"))?;
        let lock = home.join("trust.lock");
        let lock = OpenOptions::new().create(true).write(true).truncate(false).mode(0o600).open(lock);
        let lock = lock.map_err(failed("lock"))?;
        wait_for(&lock).map_err(failed("lock"))?;
        let mut store = Self::read(home)?;
        let done = change(&mut store);
        store.version = VERSION;
        let mut new = tempfile::NamedTempFile::new_in(home).map_err(failed("write"))?;
        serde_json::to_writer_pretty(&mut new, &store)
            .map_err(io::Error::from)
            .and_then(|()| new.write_all(b"\n"))
            .and_then(|()| new.as_file().sync_all())
            .map_err(failed("write"))?;
        new.persist(&path).map_err(|error| failed("write")(error.error))?;
        Ok(done)
    }

    /// How the user stands to a plugin.
    pub fn state(&self, subject: &Subject) -> TrustState {
        self.of(&subject.path, subject.entry.as_ref()).map_or(TrustState::Unknown, |record| record.state(subject))
    }

    /// What was written down of a plugin, whatever it is now.
    pub fn of(&self, path: &Path, entry: Option<&PluginName>) -> Option<&PluginTrust> {
        self.plugins.iter().find(|record| record.is_of(path, entry))
    }

    /// All plugins that the user trusts.
    pub fn plugins(&self) -> &[PluginTrust] {
        &self.plugins
    }

    /// Trusts a plugin as it is now.
    pub fn trust(&mut self, name: PluginName, subject: Subject, grant: Grant) {
        let Subject { path, entry, project, files, start } = subject;
        self.plugins.retain(|record| !record.is_of(&path, entry.as_ref()));
        let trusted_at_ms = now_ms();
        self.plugins.push(PluginTrust { path, entry, project, name, files, start, grant, trusted_at_ms });
    }

    /// Trusts no longer those that `untrusted` picks; says which those were.
    pub fn untrust(&mut self, untrusted: impl Fn(&PluginTrust) -> bool) -> Vec<PluginTrust> {
        let (gone, left) = std::mem::take(&mut self.plugins).into_iter().partition(|record| untrusted(record));
        self.plugins = left;
        gone
    }

    /// Whether the config of a project may be read, which has this hash now.
    pub fn project(&self, folder: &Path, config: Option<&Sha>) -> ProjectState {
        match self.projects.get(folder) {
            None => ProjectState::Unknown,
            Some(project) if project.config.as_ref() == config => ProjectState::Trusted,
            Some(_) => ProjectState::Changed,
        }
    }

    /// Whether a project is trusted, whatever its config is now.
    pub fn has_project(&self, folder: &Path) -> bool {
        self.projects.contains_key(folder)
    }

    /// Trusts a project, with the config that it has now.
    pub fn trust_project(&mut self, folder: &Path, config: Option<Sha>) {
        self.projects.insert(folder.to_owned(), ProjectTrust { config, trusted_at_ms: now_ms() });
    }

    /// Trusts a project no longer; whether it was trusted.
    pub fn untrust_project(&mut self, folder: &Path) -> bool {
        self.projects.remove(folder).is_some()
    }
}

/// How the user stands to a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProjectState {
    /// Trusted, and its config is as it was.
    Trusted,
    /// Trusted, but its config is another one now.
    Changed,
    /// The user has not said anything of it.
    Unknown,
}

impl PluginTrust {
    /// How the user stands to the plugin as it is now.
    pub(in crate::discovery) fn state(&self, subject: &Subject) -> TrustState {
        match Change::between((&self.files, &subject.files), (&self.start, &subject.start)) {
            None => TrustState::Trusted,
            Some(change) => TrustState::Changed(change),
        }
    }

    fn is_of(&self, path: &Path, entry: Option<&PluginName>) -> bool {
        self.path == path && self.entry.as_ref() == entry
    }
}

/// Waits for its turn, but not for ever: whoever asked may have gone.
fn wait_for(lock: &File) -> io::Result<()> {
    const PATIENCE: Duration = Duration::from_secs(3);
    const LOOK: Duration = Duration::from_millis(20);
    let until = Instant::now() + PATIENCE;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if Instant::now() > until => {
                return Err(io::Error::new(io::ErrorKind::WouldBlock, "another lemon has it locked"));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOOK),
        }
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// There is no home folder, or something that is none stands in its way.
fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn subject(folder: &Path) -> Subject {
        let files = Contents::of(folder).unwrap();
        Subject { path: folder.to_owned(), entry: None, project: None, files, start: BTreeMap::new() }
    }

    fn name(name: &str) -> PluginName {
        name.parse().unwrap()
    }

    #[test]
    fn a_plugin_is_trusted_until_it_changes() {
        let (home, plugin) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let home = home.path().join("new/home");
        fs::write(plugin.path().join("a.py"), "1").unwrap();
        let state = || TrustStore::read(&home).unwrap().state(&subject(plugin.path()));
        let gate = Grant { gate: true, ..Grant::default() };
        assert_eq!(state(), TrustState::Unknown);
        TrustStore::edit(&home, |store| store.trust(name("a"), subject(plugin.path()), gate.clone())).unwrap();
        assert_eq!(state(), TrustState::Trusted);
        fs::write(plugin.path().join("a.py"), "2").unwrap();
        let TrustState::Changed(change) = state() else { panic!("it has changed") };
        assert_eq!(change.to_string(), "changed: a.py");
        let gone = TrustStore::edit(&home, |store| store.untrust(|record| record.name == name("a"))).unwrap();
        assert_eq!(gone[0].grant, gate);
        assert_eq!(state(), TrustState::Unknown);
    }

    #[test]
    fn a_project_is_trusted_with_its_config() {
        let home = tempfile::tempdir().unwrap();
        let (folder, one, other) = (Path::new("/x"), Sha::of(b"1"), Sha::of(b"2"));
        TrustStore::edit(home.path(), |store| store.trust_project(folder, Some(one.clone()))).unwrap();
        let store = TrustStore::read(home.path()).unwrap();
        assert_eq!(store.project(folder, Some(&one)), ProjectState::Trusted);
        assert_eq!(store.project(folder, Some(&other)), ProjectState::Changed);
        assert_eq!(store.project(folder, None), ProjectState::Changed);
        assert_eq!(store.project(Path::new("/x/y"), Some(&one)), ProjectState::Unknown);
    }

    #[test]
    fn a_file_that_others_can_write_or_that_is_broken_trusts_nothing() {
        let home = tempfile::tempdir().unwrap();
        TrustStore::edit(home.path(), |store| store.trust_project(Path::new("/x"), None)).unwrap();
        let file = home.path().join(FILE);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o620)).unwrap();
        assert!(matches!(TrustStore::read(home.path()), Err(TrustError::NotYours(_))));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        for text in ["", "{", "[]", r#"{"version": 9}"#] {
            fs::write(&file, text).unwrap();
            assert!(matches!(TrustStore::read(home.path()), Err(TrustError::Broken { .. })), "{text}");
            assert!(TrustStore::edit(home.path(), |_| ()).is_err(), "{text}");
            assert_eq!(fs::read_to_string(&file).unwrap(), text, "it is not written over");
        }
    }

    #[test]
    fn edits_at_one_time_are_all_kept() {
        let home = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for n in 0..8 {
                let home = home.path();
                scope.spawn(move || {
                    TrustStore::edit(home, |store| store.trust_project(&PathBuf::from(format!("/{n}")), None)).unwrap();
                });
            }
        });
        let store = TrustStore::read(home.path()).unwrap();
        assert_eq!(store.projects.len(), 8);
    }

    #[test]
    fn a_home_that_can_not_be_made_is_told() {
        let error = TrustStore::edit(Path::new("/dev/null/home"), |_| ()).unwrap_err();
        assert!(matches!(error, TrustError::Io { what: "write", .. }), "{error}");
        assert!(TrustStore::read(Path::new("/dev/null/home")).unwrap().plugins().is_empty());
    }
}
