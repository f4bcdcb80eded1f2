//! What can be wrong with a manifest: its kind, its place, what was expected, and what to do.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use crate::report::PluginText;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $severity:ident;)*) => {
        /// The sort of a [`ManifestProblem`]. Its name in JSON never changes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum ProblemKind { $($(#[$doc])* $name,)* }

        impl ProblemKind {
            /// All kinds.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The stable name.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// Whether a manifest with it is valid all the same.
            pub const fn severity(self) -> Severity {
                match self { $(Self::$name => Severity::$severity,)* }
            }
        }
    };
}

kinds! {
    /// There is no such file.
    NotFound = "not_found", Error;
    /// The folder has no manifest.
    NoManifest = "no_manifest", Error;
    /// The file can't be opened or read.
    Unreadable = "unreadable", Error;
    /// It is a folder, a pipe, a socket or a device.
    NotAFile = "not_a_file", Error;
    /// It is a symbolic link, which may point out of the extension's folder.
    Symlink = "symlink", Error;
    /// It is larger than 256 KiB.
    TooLarge = "too_large", Error;
    /// It is not UTF-8.
    NotUtf8 = "not_utf8", Error;
    /// It is not JSON.
    NotJson = "not_json", Error;
    /// It nests deeper than 64 levels.
    TooDeep = "too_deep", Error;
    /// The whole is no JSON object.
    NotAnObject = "not_an_object", Error;
    /// A key stands twice in one object, or in both of its spellings.
    DuplicateKey = "duplicate_key", Error;
    /// A required key is not there.
    Missing = "missing", Error;
    /// A value is of another type.
    WrongType = "wrong_type", Error;
    /// A text or list is empty that must not be.
    Empty = "empty", Error;
    /// A value is none of those that are known.
    Unsupported = "unsupported", Error;
    /// The manifest's form is of another version.
    SchemaVersion = "schema_version", Error;
    /// A name has characters that no such name has, or is too long.
    Name = "name", Error;
    /// A name is one of the host's own, or looks like one.
    NameReserved = "name_reserved", Error;
    /// A text has a NUL character, which no argument, path or variable can hold.
    Nul = "nul", Error;
    /// A placeholder is not known, not closed, or stands where it means nothing.
    Placeholder = "placeholder", Error;
    /// A host that is a process has no command.
    NoCommand = "no_command", Error;
    /// A path leads out of the extension's folder.
    PathOutside = "path_outside", Error;
    /// The program is not there, and nothing builds it.
    ProgramMissing = "program_missing", Error;
    /// A JSON Schema can't be used.
    JsonSchema = "json_schema", Error;
    /// Two entries of a list have one name.
    Duplicate = "duplicate", Error;
    /// A tool is named that the manifest's own list does not have.
    UnknownTool = "unknown_tool", Error;
    /// A range ends before it begins.
    Range = "range", Error;
    /// The file begins with a byte order mark, which is skipped.
    ByteOrderMark = "byte_order_mark", Warning;
    /// The folder has a second manifest, which does not count.
    SecondManifest = "second_manifest", Warning;
    /// A key is not known, and is ignored.
    UnknownKey = "unknown_key", Warning;
    /// An event is not known to this version.
    UnknownEvent = "unknown_event", Warning;
    /// This host can't run the extension.
    NotLoadable = "not_loadable", Warning;
    /// An argument names a file of the extension, but not where it will be looked for.
    RelativeArgument = "relative_argument", Warning;
    /// An argument names a file of the extension that is not there, and nothing builds it.
    FileMissing = "file_missing", Warning;
    /// The program is at a fixed place, which may be another one on another machine.
    AbsolutePath = "absolute_path", Warning;
    /// A tool will be called otherwise, as its name has characters that models don't take.
    ToolName = "tool_name", Warning;
}

impl fmt::Display for ProblemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for ProblemKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// Whether a problem makes a manifest invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It does.
    Error,
    /// It does not.
    Warning,
}

/// One thing that is wrong with a manifest, or odd.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ManifestProblem {
    /// The sort of problem.
    pub kind: ProblemKind,
    /// Whether it makes the manifest invalid.
    pub severity: Severity,
    /// The JSON pointer of the value, or of the key where a key is wrong; none where the file as a whole is.
    pub pointer: Option<String>,
    /// The line, from 1; none where the file can't be read.
    pub line: Option<usize>,
    /// The column in characters, from 1.
    pub column: Option<usize>,
    /// What is wrong and what was expected.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

impl ManifestProblem {
    /// A problem of the file as a whole.
    pub(crate) fn of_file(kind: ProblemKind, message: impl Into<String>, hint: Option<&str>) -> Self {
        let (message, hint) = (message.into(), hint.map(str::to_owned));
        Self { kind, severity: kind.severity(), pointer: None, line: None, column: None, message, hint }
    }
}

/// `line:column: severity: pointer: message`, with the hint in a line of its own. Nothing in it acts on a terminal.
impl fmt::Display for ManifestProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, "{line}:{column}: ")?;
        }
        f.write_str(match self.severity {
            Severity::Error => "error: ",
            Severity::Warning => "warning: ",
        })?;
        if let Some(pointer) = self.pointer.as_ref().filter(|pointer| !pointer.is_empty()) {
            write!(f, "{}: ", PluginText::from(pointer.as_str()).capped(200))?;
        }
        write!(f, "{}", PluginText::from(self.message.as_str()).capped(1000))?;
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {}", PluginText::from(hint.as_str()).capped(1000)),
            None => Ok(()),
        }
    }
}

/// Why a manifest can't be used: all that is wrong with it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ManifestError {
    /// The file, or the folder without one.
    pub file: PathBuf,
    /// The problems by place, warnings included; at least one is an error.
    pub problems: Vec<ManifestProblem>,
    /// How many errors were found beyond those in the list.
    pub more: usize,
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problems.as_slice() {
            [only] if only.kind == ProblemKind::NoManifest => {
                return write!(f, "{}: {}", shown(&self.file), only.message);
            }
            _ => write!(f, "the manifest {} is not valid", shown(&self.file))?,
        }
        for problem in self.problems.iter().filter(|problem| problem.severity == Severity::Error) {
            write!(f, "\n{problem}")?;
        }
        if self.more > 0 {
            write!(f, "\n{} more", self.more)?;
        }
        Ok(())
    }
}

impl std::error::Error for ManifestError {}

fn shown(path: &Path) -> PluginText {
    path.to_string_lossy().into_owned().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_names_every_kind() {
        let reference = include_str!("../../../../../docs/manifest.md");
        for kind in ProblemKind::ALL {
            let severity = if kind.severity() == Severity::Error { "error" } else { "warning" };
            assert!(reference.contains(&format!("| `{kind}` | {severity} |")), "{kind} is not in docs/manifest.md");
        }
    }

    #[test]
    fn what_is_shown_acts_on_no_terminal() {
        let mut problem = ManifestProblem::of_file(ProblemKind::Name, "a\u{1b}[31m", Some("\u{202e}x"));
        problem.pointer = Some("/\u{7}".to_owned());
        let text = problem.to_string();
        assert!(text.chars().all(|c| c == '\n' || !c.is_control() && c != '\u{202e}'), "{text:?}");
    }
}
