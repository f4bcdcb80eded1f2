//! The files in which offers are remembered: one for each plugin and key, each written in one stroke.

use std::fs::{self, DirBuilder};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use lemon_process::files::open_regular;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::key::Key;
use crate::host::Core;
use crate::plugin::PluginName;

/// The folder in the host's cache folder.
const FOLDER: &str = "offers";
/// So many offers are kept, the newest of them.
const KEPT: usize = 1_000;
/// The random bytes that go into each key, so that the name of a file says nothing of a secret in it.
const SALT: usize = 32;

/// What a plugin offered.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Record {
    /// Under which it was written.
    pub(super) key: String,
    pub(super) tools: Vec<Box<RawValue>>,
    /// What of the list was not taken: the tool and why.
    pub(super) refused: Vec<(String, String)>,
}

/// The remembered offers of one host's cache folder.
#[derive(Debug, Clone)]
pub(super) struct OfferCache {
    folder: PathBuf,
    /// The largest file that is read or written, in bytes.
    limit: u64,
}

impl OfferCache {
    /// None if the host has no cache folder.
    pub(super) fn of(core: &Core) -> Option<Self> {
        let folder = core.cache_dir.as_ref()?.join(FOLDER);
        // A list that is within its bound, and what stands around it.
        let limit = (core.limits.list_bytes as u64).saturating_mul(2).saturating_add(64 * 1024);
        Some(Self { folder, limit })
    }

    pub(super) fn read(&self, plugin: &PluginName, key: &Key) -> Option<Record> {
        let bytes = own_file(&self.file(plugin, key), self.limit)?;
        let record: Record = serde_json::from_slice(&bytes).ok()?;
        (record.key == key.to_string()).then_some(record)
    }

    /// Writes a record. Without room or rights for it there is none, which costs a start of the plugin next time.
    pub(super) fn write(&self, plugin: &PluginName, key: &Key, record: &Record) {
        let Ok(bytes) = serde_json::to_vec(record) else { return };
        if bytes.len() as u64 > self.limit {
            return;
        }
        let file = self.file(plugin, key);
        if let Err(error) = self.put(&file, &bytes) {
            tracing::debug!(%plugin, file = %file.display(), %error, "the offer is not remembered");
        }
        self.prune();
    }

    /// The random bytes of this folder; made if there are none.
    pub(super) fn salt(&self) -> Option<[u8; SALT]> {
        let file = self.folder.join("salt");
        let read = || own_file(&file, SALT as u64)?.try_into().ok();
        read().or_else(|| {
            let mut salt = [0; SALT];
            getrandom::fill(&mut salt).ok()?;
            // Of two hosts that make one at the same time the second takes the first one's.
            let _ = self.put_new(&file, &salt);
            read()
        })
    }

    fn file(&self, plugin: &PluginName, key: &Key) -> PathBuf {
        self.folder.join(format!("{plugin}-{}.json", key.short()))
    }

    fn put(&self, file: &Path, bytes: &[u8]) -> std::io::Result<()> {
        self.written(bytes)?.persist(file).map(drop).map_err(|error| error.error)
    }

    fn put_new(&self, file: &Path, bytes: &[u8]) -> std::io::Result<()> {
        self.written(bytes)?.persist_noclobber(file).map(drop).map_err(|error| error.error)
    }

    /// A file without a name, which only this user can read.
    fn written(&self, bytes: &[u8]) -> std::io::Result<tempfile::NamedTempFile> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let mut new = tempfile::NamedTempFile::new_in(&self.folder)?;
        new.write_all(bytes)?;
        Ok(new)
    }

    /// Takes the oldest files away when there are too many.
    fn prune(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        let mut files: Vec<(SystemTime, PathBuf)> = entries
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let is_record = entry.path().extension().is_some_and(|extension| extension == "json");
                let written = entry.metadata().and_then(|metadata| metadata.modified()).ok()?;
                is_record.then(|| (written, entry.path()))
            })
            .collect();
        let Some(more) = files.len().checked_sub(KEPT) else { return };
        files.sort();
        for (_, file) in files.into_iter().take(more) {
            let _ = fs::remove_file(file);
        }
    }
}

/// The bytes of a regular file of this user's that nobody else can write.
fn own_file(path: &Path, limit: u64) -> Option<Vec<u8>> {
    let file = open_regular(path).ok()?;
    let metadata = file.metadata().ok()?;
    let is_own = metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o022 == 0;
    if !is_own || metadata.len() > limit {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn cache(folder: &Path) -> OfferCache {
        OfferCache { folder: folder.join("offers"), limit: 1000 }
    }

    fn record(key: &Key, tool: &str) -> Record {
        let tool = RawValue::from_string(format!(r#"{{"name":"{tool}"}}"#)).unwrap();
        Record { key: key.to_string(), tools: vec![tool], refused: vec![("x".into(), "y".into())] }
    }

    fn name() -> PluginName {
        "p".parse().unwrap()
    }

    #[test]
    fn what_is_written_is_read_under_the_same_key_only() {
        let folder = tempfile::tempdir().unwrap();
        let (cache, key, other) = (cache(folder.path()), Key::for_test(1), Key::for_test(2));
        assert!(cache.read(&name(), &key).is_none());
        cache.write(&name(), &key, &record(&key, "t"));
        assert_eq!(cache.read(&name(), &key).unwrap().tools[0].get(), r#"{"name":"t"}"#);
        assert!(cache.read(&name(), &other).is_none());
        // A file that was moved is that of its own key all the same.
        fs::rename(cache.file(&name(), &key), cache.file(&name(), &other)).unwrap();
        assert!(cache.read(&name(), &other).is_none());
    }

    #[test]
    fn a_file_that_is_not_as_it_was_written_counts_as_not_there_and_is_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let (cache, key) = (cache(folder.path()), Key::for_test(1));
        let file = cache.file(&name(), &key);
        cache.write(&name(), &key, &record(&key, "t"));
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        for spoil in [
            &(|file: &Path| fs::write(file, "{").unwrap()) as &dyn Fn(&Path),
            &|file| fs::write(file, " ".repeat(2000)).unwrap(),
            &|file| fs::set_permissions(file, fs::Permissions::from_mode(0o666)).unwrap(),
            &|file| {
                fs::rename(file, file.with_extension("moved")).unwrap();
                symlink(file.with_extension("moved"), file).unwrap();
            },
        ] {
            spoil(&file);
            assert!(cache.read(&name(), &key).is_none());
            cache.write(&name(), &key, &record(&key, "again"));
            assert!(cache.read(&name(), &key).is_some());
        }
        let mut large = record(&key, "t");
        large.refused = vec![("x".repeat(1000), String::new())];
        cache.write(&name(), &key, &large);
        assert_eq!(cache.read(&name(), &key).unwrap().refused[0].0, "x", "what is too large is not written");
    }

    #[test]
    fn the_salt_is_made_once_and_only_the_newest_files_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let cache = cache(folder.path());
        let salt = cache.salt().unwrap();
        assert_eq!(cache.salt(), Some(salt));
        for n in 0..KEPT + 2 {
            fs::write(cache.folder.join(format!("{n}.json")), "").unwrap();
        }
        let key = Key::for_test(1);
        cache.write(&name(), &key, &record(&key, "t"));
        assert_eq!(fs::read_dir(&cache.folder).unwrap().count(), KEPT + 1, "and the salt");
        assert!(cache.read(&name(), &key).is_some());
        assert!(OfferCache { folder: "/proc/nowhere".into(), limit: 9 }.salt().is_none());
    }
}
