//! Finds the program that a name means.
//!
//! The rules are those of a shell without its surprises: a name with a slash is a path from
//! `cwd`, any other is looked for in `PATH`. Entries of `PATH` that are relative or lie in an
//! untrusted folder are ignored: a repository must not be able to put its own `git` first.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Where to look.
#[derive(Debug, Clone, Default)]
pub struct Search {
    /// The value of `PATH`, if it is set.
    pub path: Option<OsString>,
    /// The absolute folder from which a name with a slash is taken.
    pub cwd: PathBuf,
    /// Folders whose programs are not found by a bare name. A path that names one is taken.
    pub untrusted: Vec<PathBuf>,
}

/// Why no program was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LookupError {
    /// The name is empty.
    #[error("the program's name is empty")]
    Empty,
    /// There is nothing at this path.
    #[error("no such program: {}", path.display())]
    NotFound {
        /// The path that the name means.
        path: PathBuf,
    },
    /// There is a file, and it may not be executed.
    #[error("found {}, but it is not executable (chmod +x makes it so)", path.display())]
    NotExecutable {
        /// The file.
        path: PathBuf,
    },
    /// There is a folder.
    #[error("{} is a directory", path.display())]
    IsDirectory {
        /// The folder.
        path: PathBuf,
    },
    /// No entry of `PATH` has it.
    #[error("{} was not found; {}", name.display(), Searched { searched, ignored })]
    NotInPath {
        /// The name looked for.
        name: OsString,
        /// The entries searched, in order.
        searched: Vec<PathBuf>,
        /// The entries not searched, and why.
        ignored: Vec<(PathBuf, Ignored)>,
    },
}

/// Why an entry of `PATH` is not searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ignored {
    /// It means another folder wherever the host is started.
    Relative,
    /// It lies in an untrusted folder.
    Untrusted,
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Relative => "relative",
            Self::Untrusted => "in an untrusted folder",
        })
    }
}

/// Resolves a program's name to an absolute path.
///
/// Symbolic links are kept as they are: the Python of a virtual environment is a link, and
/// knows by the link's place which packages are its own.
pub fn resolve(program: &OsStr, search: &Search) -> Result<PathBuf, LookupError> {
    if program.is_empty() {
        return Err(LookupError::Empty);
    }
    if program.as_encoded_bytes().contains(&b'/') {
        return named(&search.cwd.join(program));
    }

    let (searched, ignored) = search.entries();
    // Joining can't fail: what was split at colons holds none.
    let path = std::env::join_paths(&searched).unwrap_or_default();
    if !searched.is_empty()
        && let Ok(found) = which::which_in(program, Some(path), &search.cwd)
    {
        return Ok(found);
    }

    // A file that only lacks the permission is what the user meant, so it is the better message.
    let candidates = searched.iter().map(|entry| entry.join(program));
    for candidate in candidates {
        if let Err(error @ LookupError::NotExecutable { .. }) = named(&candidate) {
            return Err(error);
        }
    }
    Err(LookupError::NotInPath { name: program.to_owned(), searched, ignored })
}

impl Search {
    /// The value of `PATH` without the entries that are ignored, for a program that looks for others itself.
    pub fn trusted_path(&self) -> OsString {
        std::env::join_paths(self.entries().0).unwrap_or_default()
    }

    /// The entries of `PATH`: those that are searched, and those that are not, with the reason.
    fn entries(&self) -> (Vec<PathBuf>, Vec<(PathBuf, Ignored)>) {
        let (mut searched, mut ignored) = (Vec::new(), Vec::new());
        // Splitting an empty value gives one empty entry, where there is none.
        let path = self.path.as_deref().filter(|path| !path.is_empty());
        for entry in path.into_iter().flat_map(std::env::split_paths) {
            match reason_to_ignore(&entry, &self.untrusted) {
                Some(reason) => ignored.push((entry, reason)),
                None => searched.push(entry),
            }
        }
        (searched, ignored)
    }
}

/// Takes a path as it is, if a program is there.
fn named(path: &Path) -> Result<PathBuf, LookupError> {
    // Leaves out `.`, which says nothing; `..` must stay, since it may follow a link.
    let path: PathBuf = path.components().filter(|part| *part != Component::CurDir).collect();
    match fs::metadata(&path) {
        Err(_) => Err(LookupError::NotFound { path }),
        Ok(found) if found.is_dir() => Err(LookupError::IsDirectory { path }),
        Ok(_) if which::which_in(&path, None::<&OsStr>, "/").is_ok() => Ok(path),
        Ok(_) => Err(LookupError::NotExecutable { path }),
    }
}

fn reason_to_ignore(entry: &Path, untrusted: &[PathBuf]) -> Option<Ignored> {
    if !entry.is_absolute() {
        return Some(Ignored::Relative);
    }
    // Both as written and as it really lies, since either may be a link to the other.
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let inside = |folder: &PathBuf| {
        let named = !folder.as_os_str().is_empty();
        named && (entry.starts_with(folder) || real(entry).starts_with(real(folder)))
    };
    untrusted.iter().any(inside).then_some(Ignored::Untrusted)
}

/// The part of the message that says where it was looked for.
struct Searched<'a> {
    searched: &'a [PathBuf],
    ignored: &'a [(PathBuf, Ignored)],
}

impl fmt::Display for Searched<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.searched.is_empty() && self.ignored.is_empty() {
            return f.write_str("PATH is not set or empty");
        }
        f.write_str("PATH searched: ")?;
        if self.searched.is_empty() {
            f.write_str("nothing")?;
        }
        for (index, entry) in self.searched.iter().enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            write!(f, "{comma}{}", entry.display())?;
        }
        for (index, (entry, reason)) in self.ignored.iter().enumerate() {
            let before = if index > 0 { ", " } else { "; ignored: " };
            let shown =
                if entry.as_os_str().is_empty() { "an empty entry".to_owned() } else { entry.display().to_string() };
            write!(f, "{before}{shown} ({reason})")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
