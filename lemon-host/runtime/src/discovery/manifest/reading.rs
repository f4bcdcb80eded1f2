//! From a path to the text of a manifest.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use lemon_process::files::{OpenError, open_regular};
use lemon_protocol::manifest::{FILE_NAMES, MAX_BYTES};

use super::problem::{ManifestProblem, ProblemKind};

/// A manifest's text, or why there is none.
pub(super) struct Text {
    pub(super) file: PathBuf,
    /// How many bytes were read.
    pub(super) bytes: usize,
    /// Without the byte order mark.
    pub(super) text: Result<String, ManifestProblem>,
    /// What is odd about the file.
    pub(super) warnings: Vec<ManifestProblem>,
}

/// Reads a manifest, or the first of those that a folder has.
pub(super) fn read(path: &Path) -> Text {
    let mut text = Text { file: path.to_owned(), bytes: 0, text: Ok(String::new()), warnings: Vec::new() };
    if path.is_dir() {
        let mut there = present(path);
        let Some(first) = there.next() else {
            let message = format!("the folder has no manifest: none of {}", FILE_NAMES.join(", "));
            let hint = "docs/manifest.md shows what one looks like";
            text.text = Err(ManifestProblem::of_file(ProblemKind::NoManifest, message, Some(hint)));
            return text;
        };
        text.file = path.join(first);
        text.warnings.extend(there.map(|second| {
            let message = format!("the folder has a second manifest, {second}, which does not count: {first} does");
            ManifestProblem::of_file(ProblemKind::SecondManifest, message, Some("keep one of them"))
        }));
    }
    let bytes = match bytes(&text.file) {
        Ok(bytes) => bytes,
        Err(problem) => return Text { text: Err(problem), ..text },
    };
    text.bytes = bytes.len();
    text.text = decoded(bytes);
    if let Ok(own) = &mut text.text
        && own.starts_with('\u{feff}')
    {
        own.drain(..'\u{feff}'.len_utf8());
        let message = "the file begins with a byte order mark, which other readers of JSON refuse";
        text.warnings.push(ManifestProblem::of_file(ProblemKind::ByteOrderMark, message, Some("save it without one")));
    }
    text
}

/// The names of manifests that a folder has, in the order in which they count. A link or folder of such a name is one.
pub(super) fn present(folder: &Path) -> impl Iterator<Item = &'static str> {
    FILE_NAMES.into_iter().filter(move |name| folder.join(name).symlink_metadata().is_ok())
}

fn bytes(file: &Path) -> Result<Vec<u8>, ManifestProblem> {
    let problem = |kind, error: OpenError, hint| ManifestProblem::of_file(kind, error.to_string(), hint);
    let opened = open_regular(file).map_err(|error| match &error {
        OpenError::Symlink => {
            let hint = "put the file itself there: what a link points to can change without the folder changing";
            problem(ProblemKind::Symlink, error, Some(hint))
        }
        OpenError::Io(cause) if cause.kind() == std::io::ErrorKind::NotFound => {
            problem(ProblemKind::NotFound, error, Some("give a folder with a manifest, or the manifest"))
        }
        OpenError::Io(_) => problem(ProblemKind::Unreadable, error, None),
        _ => problem(ProblemKind::NotAFile, error, Some("a manifest is a regular file")),
    })?;
    let mut bytes = Vec::new();
    opened
        .take(MAX_BYTES as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| problem(ProblemKind::Unreadable, error.into(), None))?;
    if bytes.len() > MAX_BYTES {
        let message = format!("it is larger than {} KiB", MAX_BYTES / 1024);
        return Err(ManifestProblem::of_file(ProblemKind::TooLarge, message, Some("a manifest is metadata only")));
    }
    Ok(bytes)
}

fn decoded(bytes: Vec<u8>) -> Result<String, ManifestProblem> {
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = valid.rsplit(|&byte| byte == b'\n').next().unwrap_or_default();
        let mut problem = ManifestProblem::of_file(
            ProblemKind::NotUtf8,
            format!("it is not UTF-8 from byte {} on", valid.len()),
            Some("save it as UTF-8"),
        );
        problem.line = Some(1 + valid.iter().filter(|&&byte| byte == b'\n').count());
        problem.column = Some(1 + String::from_utf8_lossy(line).chars().count());
        problem
    })
}
