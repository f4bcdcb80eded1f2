//! A manifest together with the folder that it stands in.

use std::path::{Path, PathBuf};

use lemon_protocol::manifest::{HostDeclaration, HostType, Manifest};

use super::checking::{Checking, Field};
use super::loadable::NotLoadable;
use super::problem::{ManifestError, ManifestProblem, ProblemKind, Severity};
use super::tree::{Node, Value};
use super::{loadable, reading, rules, running};

/// The most folders that are looked into for manifests.
const FOLDERS: usize = 4096;

/// A valid manifest with its folder.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ManifestFile {
    /// The file.
    pub path: PathBuf,
    /// The extension's folder, absolute and without links.
    pub folder: PathBuf,
    /// What the file says.
    pub manifest: Manifest,
    /// The text that was read, without a byte order mark.
    pub text: String,
    /// What is odd and no error, by place.
    pub warnings: Vec<ManifestProblem>,
}

impl ManifestFile {
    /// Reads the manifest of a folder, or the file itself. Nothing is run.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn read(path: &Path) -> Result<Self, ManifestError> {
        let report = ManifestReport::of(path);
        match report.manifest {
            Some(manifest) => Ok(manifest),
            None => Err(ManifestError { file: report.file, problems: report.problems, more: report.more }),
        }
    }

    /// The way to run the extension that this host takes.
    ///
    /// # Errors
    /// Why it can't be run here.
    pub fn host(&self) -> Result<&HostDeclaration, NotLoadable> {
        loadable::host(&self.manifest)
    }
}

/// What a reading of one manifest came to.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ManifestReport {
    /// The file; the path that was given if there is none.
    pub file: PathBuf,
    /// How many bytes were read.
    pub bytes: usize,
    /// The manifest, if it is valid.
    pub manifest: Option<ManifestFile>,
    /// Whether and how it can be run here, if it is valid.
    pub loadable: Option<Result<HostType, NotLoadable>>,
    /// All that is wrong or odd, by place.
    pub problems: Vec<ManifestProblem>,
    /// How many errors were found beyond those in the list.
    pub more: usize,
    /// How many warnings were found beyond those in the list.
    pub more_warnings: usize,
}

impl ManifestReport {
    /// Reads the manifest of a folder, or the file itself. Nothing is run.
    pub fn of(path: &Path) -> Self {
        let read = reading::read(path);
        let mut report = Self {
            file: read.file,
            bytes: read.bytes,
            manifest: None,
            loadable: None,
            problems: read.warnings,
            more: 0,
            more_warnings: 0,
        };
        let text = match read.text {
            Ok(text) => text,
            Err(problem) => {
                report.problems.push(problem);
                return report;
            }
        };
        let folder = folder_of(&report.file);
        let Checked { manifest, problems, more: [more, more_warnings] } = check(&text, Some(&folder));
        report.problems.extend(problems);
        (report.more, report.more_warnings) = (more, more_warnings);
        if let Some(manifest) = manifest {
            report.loadable = Some(loadable::host(&manifest).map(|host| host.kind));
            let warnings = report.problems.clone();
            report.manifest = Some(ManifestFile { path: report.file.clone(), folder, manifest, text, warnings });
        }
        report
    }

    /// Whether the manifest can be used; warnings aside.
    pub fn is_valid(&self) -> bool {
        self.manifest.is_some()
    }

    /// The problems of one severity, by place.
    pub fn of_severity(&self, severity: Severity) -> impl Iterator<Item = &ManifestProblem> {
        self.problems.iter().filter(move |problem| problem.severity == severity)
    }
}

/// The manifests of a folder of extensions: that of the folder itself, and those one level below, sorted. A folder with
/// none gives an empty list.
///
/// # Errors
/// When the folder can't be listed.
pub fn manifests_in(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let own = reading::present(folder).next().map(|name| folder.join(name));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)?.take(FOLDERS) {
        let below = entry?.path();
        if below.is_dir() {
            found.extend(reading::present(&below).next().map(|name| below.join(name)));
        }
    }
    found.sort();
    Ok(own.into_iter().chain(found).collect())
}

pub(crate) struct Checked {
    pub(crate) manifest: Option<Manifest>,
    pub(crate) problems: Vec<ManifestProblem>,
    /// Errors and warnings beyond those that are listed.
    pub(crate) more: [usize; 2],
}

/// Checks a text; with the folder, also the files that it names.
pub(crate) fn check(text: &str, folder: Option<&Path>) -> Checked {
    let mut checking = Checking::new(text);
    let mut manifest = None;
    match Node::read(text) {
        Err(fault) => {
            let hint = if fault.kind == ProblemKind::NotJson { syntax_hint(text, fault.at) } else { "" };
            checking.note_at(fault.kind, None, fault.at, &fault.message, hint);
        }
        Ok(node) => {
            let root = Field { node: &node, pointer: String::new() };
            match node.value {
                Value::Object(_) => rules::manifest(&root, &mut checking),
                _ => {
                    let message = format!("a manifest is a JSON object, not {}", node.type_name());
                    checking.note(ProblemKind::NotAnObject, &root, message, "");
                }
            }
            if let Some(folder) = folder {
                running::files(&root, folder, &mut checking);
            }
            if !checking.has_errors() {
                match Manifest::from_json(text) {
                    Ok(read) => {
                        not_loadable(&root, &read, &mut checking);
                        manifest = Some(read);
                    }
                    // The rules let something through that the types do not take: a fault of this program's.
                    Err(error) => {
                        let message = format!("it can't be taken over: {error}");
                        checking.note(ProblemKind::WrongType, &root, message, "");
                    }
                }
            }
        }
    }
    let (problems, more) = checking.finish();
    Checked { manifest, problems, more }
}

fn not_loadable(root: &Field<'_>, manifest: &Manifest, checking: &mut Checking<'_>) {
    let Err(why) = loadable::host(manifest) else { return };
    let place = match why {
        NotLoadable::Platform { .. } => root.get("platforms"),
        NotLoadable::Protocol { .. } => root.get("protocol"),
        _ => root.get("host").or_else(|| root.get("hosts")),
    };
    let field = place.unwrap_or_else(|| root.clone());
    checking.note(ProblemKind::NotLoadable, &field, why.to_string(), "");
}

/// What to do about some common mistakes.
fn syntax_hint(text: &str, at: usize) -> &'static str {
    let rest = text.get(at..).unwrap_or_default();
    let before = text.get(..at).unwrap_or_default().trim_end();
    match rest.chars().next() {
        _ if text.trim().is_empty() => "the file is empty: write a JSON object",
        Some('}' | ']') if before.ends_with(',') => "take out the comma before it",
        Some('/' | '#') => "JSON has no comments; take it out",
        Some('\'') => "JSON has texts in double quotes only",
        Some('"') if !before.ends_with([',', ':', '{', '[']) => "a comma is missing before it",
        None => "the end of the file is missing",
        _ => "",
    }
}

/// The folder that a file stands in, without links.
fn folder_of(file: &Path) -> PathBuf {
    let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let folder = file.parent().unwrap_or(&file);
    folder.canonicalize().unwrap_or_else(|_| folder.to_owned())
}
