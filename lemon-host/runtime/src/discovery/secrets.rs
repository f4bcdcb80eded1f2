//! The file with the user's secrets: `NAME = "value"`, each for `{ secret = "NAME" }` of a config file.
//!
//! Nobody but the user can read it, or it is refused. What is in it is never shown, in no error either.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use lemon_process::files::{OpenError, open_regular};
use serde_json::Value;

use super::editing::{EditError, Editing, lock, private};
use crate::plugin::PluginName;
use crate::report::{PluginText, Redactor};
use crate::seams::{Environment, Secrets};

/// Its name in Lemon's home folder.
const FILE: &str = "secrets.toml";
/// The largest such file, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// The secrets of the environment, and of the user's file where the environment has none of a name.
///
/// The file is read once. `Debug` shows no value.
#[derive(Clone, Default)]
pub struct StoredSecrets {
    values: BTreeMap<String, String>,
}

/// Where a secret is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SecretPlace {
    /// In the environment, which wins.
    Environment,
    /// In the file.
    File,
}

/// Why there are no secrets, or none can be written down.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretsError {
    /// The file can't be read.
    #[error("can't read {}", shown(path))]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is a link, a folder, or anything else that is no file.
    #[error("{} holds secrets and must be a file, not a link or anything else", shown(.0))]
    NotAFile(PathBuf),
    /// It is another user's.
    #[error("{} holds secrets and belongs to another user", shown(.0))]
    NotYours(PathBuf),
    /// Others can read or write it.
    #[error(
        "{} holds secrets, and others can read or write it (its mode is {mode:04o}); run `chmod 600 {}`",
        shown(path),
        shown(path)
    )]
    Open {
        /// The file.
        path: PathBuf,
        /// What everybody may do with it.
        mode: u32,
    },
    /// It is not what such a file says.
    #[error("{}{}: {reason}", shown(path), line.map_or_else(String::new, |line| format!(":{line}")))]
    Wrong {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: Option<usize>,
        /// Why.
        reason: String,
    },
    /// It can't be changed.
    #[error(transparent)]
    Edit(#[from] EditError),
}

fn shown(path: &Path) -> PluginText {
    path.to_string_lossy().into_owned().into()
}

impl StoredSecrets {
    /// The file in a home folder, whether there is one or not.
    pub fn file(home: &Path) -> PathBuf {
        home.join(FILE)
    }

    /// The secrets of a home folder; only those of the environment if it has no such file.
    ///
    /// # Errors
    /// The file is not the user's alone, or can't be understood.
    pub fn read(home: &Path) -> Result<Self, SecretsError> {
        let path = Self::file(home);
        let Some(text) = text(&path)? else { return Ok(Self::default()) };
        let wrong = |line, reason| SecretsError::Wrong { path: path.clone(), line, reason };
        let line_of =
            |at: usize| 1 + text.as_bytes()[..at.min(text.len())].iter().filter(|&&byte| byte == b'\n').count();
        let table = toml::de::DeTable::parse(&text)
            .map_err(|error| wrong(error.span().map(|span| line_of(span.start)), "it is no TOML".to_owned()))?;
        let mut values = BTreeMap::new();
        for (name, value) in table.get_ref() {
            let Some(value) = value.get_ref().as_str() else {
                let name = PluginText::new(name.get_ref().to_string());
                let reason = format!("the secret `{}` must be a string in quotes", name.capped(80));
                return Err(wrong(Some(line_of(value.span().start)), reason));
            };
            values.insert(name.get_ref().to_string(), value.to_owned());
        }
        Ok(Self { values })
    }

    /// Hides all values of the file.
    pub fn hide(&self, redactor: &Redactor) {
        for value in self.values.values() {
            redactor.add(value);
        }
    }

    /// Where a secret is, if it is anywhere.
    pub fn place(&self, name: &str) -> Option<SecretPlace> {
        match Environment.get(name) {
            Some(_) => Some(SecretPlace::Environment),
            None => self.values.contains_key(name).then_some(SecretPlace::File),
        }
    }

    /// Takes a secret along that is about to be written down.
    pub fn insert(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.values.insert(name.into(), value.into());
    }

    /// The name under which the secret of a plugin's own setting is kept. No plugin's name has a `/`, so it is nobody
    /// else's.
    pub fn name_of(plugin: &PluginName, key: &str) -> String {
        format!("{plugin}/{key}")
    }
}

impl Secrets for StoredSecrets {
    fn get(&self, name: &str) -> Option<String> {
        Environment.get(name).or_else(|| self.values.get(name).cloned())
    }
}

impl fmt::Debug for StoredSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredSecrets").field("names", &self.values.keys().collect::<Vec<_>>()).finish()
    }
}

/// The file of secrets while it is being changed; nobody else changes it until this is dropped.
pub struct SecretsEdit(Editing);

impl SecretsEdit {
    /// Begins to change the file of a home folder, which need not exist yet.
    ///
    /// # Errors
    /// It can't be locked, or not be read.
    pub fn open(home: &Path) -> Result<Self, SecretsError> {
        let path = StoredSecrets::file(home);
        let lock = lock(&path)?;
        // For what is wrong with it.
        StoredSecrets::read(home)?;
        let editing = |text: &str| Editing::new(&path, text, private(), lock);
        Ok(Self(match text(&path)? {
            Some(text) => editing(&text)?,
            None => editing("")?.headed(HEAD),
        }))
    }

    /// Sets a secret.
    ///
    /// # Errors
    /// Never for a file that could be opened.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), SecretsError> {
        Ok(self.0.set(&[], name, &Value::from(value))?)
    }

    /// Takes a secret out; whether it was there.
    ///
    /// # Errors
    /// Never for a file that could be opened.
    pub fn unset(&mut self, name: &str) -> Result<bool, SecretsError> {
        Ok(self.0.unset(&[], name)?)
    }

    /// Replaces the file, in one step; only its owner can read it from the first moment on.
    ///
    /// # Errors
    /// It can't be written; then it is as it was.
    pub fn save(self) -> Result<(), SecretsError> {
        Ok(self.0.save()?)
    }
}

/// How a new file begins.
const HEAD: &str =
    "# NAME = \"value\", each for { secret = \"NAME\" } in config.toml. Nobody else may be able to read this.\n";

/// The text of the file, if there is one and it is the user's alone.
fn text(path: &Path) -> Result<Option<String>, SecretsError> {
    let failed = |source| SecretsError::Io { path: path.to_owned(), source };
    let file = match open_regular(path) {
        Ok(file) => file,
        Err(OpenError::Io(error)) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(OpenError::Io(source)) => return Err(failed(source)),
        Err(_) => return Err(SecretsError::NotAFile(path.to_owned())),
    };
    let metadata = file.metadata().map_err(failed)?;
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(SecretsError::NotYours(path.to_owned()));
    }
    let mode = metadata.mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(SecretsError::Open { path: path.to_owned(), mode });
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    let wrong = |reason: String| SecretsError::Wrong { path: path.to_owned(), line: None, reason };
    if bytes.len() as u64 > MAX_BYTES {
        return Err(wrong(format!("it is larger than {} KiB", MAX_BYTES / 1024)));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| wrong("it is not UTF-8".to_owned()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn home(text: &str, mode: u32) -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        fs::write(StoredSecrets::file(home.path()), text).unwrap();
        fs::set_permissions(StoredSecrets::file(home.path()), fs::Permissions::from_mode(mode)).unwrap();
        home
    }

    fn error(home: &tempfile::TempDir) -> String {
        StoredSecrets::read(home.path()).unwrap_err().to_string()
    }

    #[test]
    fn the_environment_wins_over_the_file() {
        let home = home("PATH = 'of the file'\n\"x/key\" = 'k'", 0o600);
        let secrets = StoredSecrets::read(home.path()).unwrap();
        assert_eq!(secrets.get("PATH"), std::env::var("PATH").ok());
        assert_eq!(secrets.place("PATH"), Some(SecretPlace::Environment));
        assert_eq!((secrets.get("x/key").as_deref(), secrets.place("x/key")), (Some("k"), Some(SecretPlace::File)));
        assert_eq!((secrets.get("NONE"), secrets.place("NONE")), (None, None));
        assert_eq!(format!("{secrets:?}"), "StoredSecrets { names: [\"PATH\", \"x/key\"] }");
        let none = tempfile::tempdir().unwrap();
        assert_eq!(StoredSecrets::read(none.path()).unwrap().get("x/key"), None);
    }

    #[test]
    fn a_file_that_others_can_read_is_refused_with_what_to_do() {
        for mode in [0o640, 0o604, 0o644, 0o620, 0o601, 0o777] {
            let home = home("A = 'a'", mode);
            let file = StoredSecrets::file(home.path());
            let hint = format!("(its mode is {mode:04o}); run `chmod 600 {}`", file.display());
            assert!(error(&home).ends_with(&hint), "{}", error(&home));
            assert!(SecretsEdit::open(home.path()).is_err());
        }
        assert!(StoredSecrets::read(home("A = 'a'", 0o400).path()).is_ok());
    }

    #[test]
    fn what_is_no_file_of_the_users_is_refused() {
        let home = home("", 0o600);
        let file = StoredSecrets::file(home.path());
        fs::rename(&file, home.path().join("other")).unwrap();
        symlink("other", &file).unwrap();
        assert!(error(&home).contains("must be a file"));
        fs::remove_file(&file).unwrap();
        nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(error(&home).contains("must be a file"));
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        assert!(error(&home).contains("must be a file"));
        fs::remove_dir(&file).unwrap();
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        if std::os::unix::fs::chown(&file, Some(65534), None).is_ok() {
            assert!(error(&home).contains("belongs to another user"));
        }
    }

    #[test]
    fn no_error_shows_a_value() {
        for (text, told) in [
            ("A = 'a'\nB = s3cret", "secrets.toml:2: it is no TOML"),
            ("A = 's3cret", "secrets.toml:1: it is no TOML"),
            ("\nA = ['s3cret']", "secrets.toml:2: the secret `A` must be a string in quotes"),
        ] {
            let error = error(&home(text, 0o600));
            assert!(error.ends_with(told) && !error.contains("s3cret"), "{error}");
            assert!(SecretsEdit::open(home(text, 0o600).path()).is_err());
        }
    }

    #[test]
    fn a_secret_is_set_and_taken_out_and_the_rest_stays() {
        let home = home("# mine\nA = 'a' # one\n", 0o600);
        let edit = |change: &dyn Fn(&mut SecretsEdit)| {
            let mut edit = SecretsEdit::open(home.path()).unwrap();
            change(&mut edit);
            edit.save().unwrap();
            fs::read_to_string(StoredSecrets::file(home.path())).unwrap()
        };
        let name = StoredSecrets::name_of(&"x".parse().unwrap(), "key");
        let text = edit(&|edit| edit.set(&name, "a \"b\"\n").unwrap());
        assert!(text.starts_with("# mine\nA = 'a' # one\n\"x/key\" = "), "{text}");
        assert_eq!(StoredSecrets::read(home.path()).unwrap().get("x/key").as_deref(), Some("a \"b\"\n"));
        let text = edit(&|edit| assert!(edit.unset(&name).unwrap() && !edit.unset("B").unwrap()));
        assert_eq!(text, "# mine\nA = 'a' # one\n");
    }

    #[test]
    fn a_new_file_is_the_users_alone() {
        let home = tempfile::tempdir().unwrap();
        let mut edit = SecretsEdit::open(&home.path().join("new")).unwrap();
        edit.set("A", "a").unwrap();
        edit.save().unwrap();
        let file = StoredSecrets::file(&home.path().join("new"));
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(fs::read_to_string(&file).unwrap().starts_with(HEAD));
        assert_eq!(StoredSecrets::read(&home.path().join("new")).unwrap().get("A").as_deref(), Some("a"));
    }

    #[test]
    fn all_values_of_the_file_are_hidden() {
        let redactor = Redactor::new();
        StoredSecrets::read(home("A = 's3cret'", 0o600).path()).unwrap().hide(&redactor);
        assert_eq!(redactor.redact("a s3cret"), "a [redacted]");
    }
}
