//! Paths in reports. One that is not UTF-8 is shown with replacement characters: a strange name somewhere on the disk must
//! not be the end of a whole report.

use std::path::{Path, PathBuf};

use serde::Serializer;

pub(crate) fn path<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

pub(crate) fn some_path<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => self::path(path, serializer),
        None => serializer.serialize_none(),
    }
}
