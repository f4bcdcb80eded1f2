//! What can be wrong with a config file.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use super::{Config, MAX_BYTES};
use crate::report::PluginText;

/// Where something in a config file stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct Origin {
    /// The file, as it was named.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", path(&self.file), self.line)
    }
}

/// Why a config file gives no [`Config`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file can't be opened or read.
    #[error("can't read the config file {}", path(file))]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The path is a folder's.
    #[error("the config file {} is a folder", path(file))]
    Folder {
        /// The folder.
        file: PathBuf,
    },
    /// The file holds more than 1 MiB.
    #[error("the config file {} is larger than {} KiB", path(file), MAX_BYTES / 1024)]
    TooLarge {
        /// The file.
        file: PathBuf,
    },
    /// The file is no text.
    #[error("{}:{line}: the config file is not UTF-8", path(file))]
    NotUtf8 {
        /// The file.
        file: PathBuf,
        /// The first line that can't be read, from 1.
        line: usize,
    },
    /// The text is no TOML.
    #[error("{problem}")]
    Syntax {
        /// What is wrong, and where; the first such place, since what follows it means little.
        problem: ConfigProblem,
    },
    /// The TOML does not say what a config file may say.
    #[error("{}", list(problems))]
    Invalid {
        /// All that is wrong, by line; at least one.
        problems: Vec<ConfigProblem>,
        /// What the rest of the file says. A plugin with a problem is not in it, and it may have
        /// been one that guards the others: a caller that goes on with this part reports each
        /// problem as a plugin that failed.
        partial: Box<Config>,
    },
}

impl ConfigError {
    /// The places in the file that are wrong; none where the file could not be read at all.
    pub fn problems(&self) -> &[ConfigProblem] {
        match self {
            Self::Syntax { problem } => std::slice::from_ref(problem),
            Self::Invalid { problems, .. } => problems,
            _ => &[],
        }
    }
}

/// One place in a config file that is wrong.
///
/// Displayed as several lines: file, line, column and message, then the line of the file with the
/// place marked. The line may hold a secret that stands in the file as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigProblem {
    /// The file and line.
    pub origin: Origin,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong and what was expected, in one line.
    pub message: String,
    /// The line of the file, or the part of it around the place, ready to be shown.
    pub source_line: String,
    /// How many characters of `source_line` stand before the place.
    pub mark_at: usize,
    /// How many characters the place has; at least one.
    pub mark_width: usize,
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = self.origin.line.to_string();
        let margin = " ".repeat(line.len());
        writeln!(f, "{}:{}: {}", self.origin, self.column, self.message)?;
        writeln!(f, "{margin} |")?;
        writeln!(f, "{line} | {}", self.source_line)?;
        write!(f, "{margin} | {}{}", " ".repeat(self.mark_at), "^".repeat(self.mark_width))
    }
}

impl std::error::Error for ConfigProblem {}

/// Something in a config file that is odd, but no error. Displayed in one line, with file and line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigWarning {
    /// A key that means nothing where it stands.
    UnknownKey {
        /// Where the key stands.
        origin: Origin,
        /// The column in characters, from 1.
        column: usize,
        /// The table that it stands in, such as `plugins.hello`; empty at the top of the file.
        table: String,
        /// The key.
        key: String,
        /// The known key that it is most like.
        nearest: Option<&'static str>,
    },
    /// A key that a project may not set.
    UserOnly {
        /// Where the key stands.
        origin: Origin,
        /// The column in characters, from 1.
        column: usize,
        /// The table that it stands in; empty at the top of the file.
        table: String,
        /// The key.
        key: String,
    },
    /// A key of MCP servers, in an extension's table.
    ServersOnly {
        /// Where the key stands.
        origin: Origin,
        /// The column in characters, from 1.
        column: usize,
        /// The table that it stands in.
        table: String,
        /// The key.
        key: String,
    },
}

impl ConfigWarning {
    /// The column in characters, from 1.
    pub fn column(&self) -> usize {
        match self {
            Self::UnknownKey { column, .. } | Self::ServersOnly { column, .. } | Self::UserOnly { column, .. } => {
                *column
            }
        }
    }

    /// What is odd, without its place.
    pub fn message(&self) -> String {
        match self {
            Self::UnknownKey { table, key, .. } => format!("unknown key {} is ignored", in_table(key, table)),
            Self::UserOnly { table, key, .. } => {
                format!("{} is ignored: only the user's own config can set it", in_table(key, table))
            }
            Self::ServersOnly { table, key, .. } => {
                format!("{} is ignored: only [mcp.servers.NAME] has that key", in_table(key, table))
            }
        }
    }

    /// The known key that an unknown one is most like.
    pub fn nearest(&self) -> Option<&'static str> {
        match self {
            Self::UnknownKey { nearest, .. } => *nearest,
            _ => None,
        }
    }

    /// Where it stands.
    pub fn origin(&self) -> &Origin {
        match self {
            Self::UnknownKey { origin, .. } | Self::ServersOnly { origin, .. } | Self::UserOnly { origin, .. } => {
                origin
            }
        }
    }
}

impl fmt::Display for ConfigWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.origin(), self.message())?;
        match self.nearest() {
            Some(nearest) => write!(f, "; did you mean `{nearest}`?"),
            None => Ok(()),
        }
    }
}

fn in_table(key: &str, table: &str) -> String {
    let key = PluginText::from(key);
    if table.is_empty() {
        format!("`{}`", key.capped(80))
    } else {
        format!("`{}` in [{}]", key.capped(80), PluginText::from(table).capped(120))
    }
}

fn path(path: &Path) -> PluginText {
    path.to_string_lossy().into_owned().into()
}

fn list(problems: &[ConfigProblem]) -> String {
    let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
    problems.join("\n")
}
