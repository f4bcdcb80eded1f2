//! What may run: explicit acts of the user, bound to what was there when they were done.
//!
//! `lemon plugin trust` writes down the hash of every file of a plugin, and of how it is started. A plugin that is
//! another one now does not run until it was looked at again; one that is the same runs from a read-only copy, made of
//! the very bytes that were hashed. A project's config is read only while it is the one that was trusted.

mod build;
mod change;
mod contents;
mod snapshot;
mod store;

use std::path::{Path, PathBuf};

pub(super) use build::Build;
pub use build::BuildError;
pub use change::{Change, ChangedPart, How};
pub use contents::{Contents, ContentsError, FileContents, Sha};
pub use snapshot::SnapshotError;
pub use store::{Grant, PluginTrust, ProjectState, Subject, TrustError, TrustState, TrustStore};

/// The folder in which a plugin was built when it was trusted, if it is still there.
pub(super) fn built(home: &Path, name: &str) -> Option<PathBuf> {
    let folder = snapshot::in_store(home, name)?;
    folder.is_dir().then_some(folder)
}

/// How what is to be trusted differs from what it was.
pub(super) fn between(before: &Subject, now: &Subject) -> Option<Change> {
    Change::between((&before.files, &now.files), (&before.start, &now.start))
}

/// Removes the copies of plugins that are not trusted any more.
pub fn remove_copies(home: &Path, gone: &[PluginTrust], store: &TrustStore) {
    for record in gone {
        sweep_copy(home, &record.files, store);
        let built = record.grant.built.as_deref().and_then(|built| snapshot::in_store(home, built));
        built.iter().for_each(|built| snapshot::remove(built));
    }
}

/// Removes what was left of builds and copies that were cut off, and of plugins that were trusted anew since.
pub(super) fn sweep(home: &Path, store: &TrustStore) {
    let unbuilt = store.plugins().iter().filter(|record| record.grant.built.is_none());
    let copies = unbuilt.map(|record| record.files.digest().to_string());
    let built = store.plugins().iter().filter_map(|record| record.grant.built.clone());
    snapshot::sweep(home, &copies.chain(built).collect());
}

/// Removes the copy of files, unless a plugin that is trusted runs from it.
pub(super) fn sweep_copy(home: &Path, files: &Contents, store: &TrustStore) {
    let copy = files.digest();
    let is_used = |record: &PluginTrust| record.grant.built.is_none() && record.files.digest() == copy;
    if !store.plugins().iter().any(is_used)
        && let Some(folder) = snapshot::in_store(home, copy.as_str())
    {
        snapshot::remove(&folder);
    }
}

/// The copy of a trusted plugin that is run in place of it; made if there is none.
pub(super) fn copy(home: &Path, plugin: &Path, contents: &Contents) -> Result<PathBuf, SnapshotError> {
    snapshot::of(home, plugin, contents)
}
