//! Whose config file it is, and what follows from that.

use super::reading::Key;
use super::{ConfigWarning, reading::Reading};

/// Whose config file is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layer {
    /// The user's own, or one that the user named.
    User,
    /// A project's: it came with the project, so it only adds and tightens.
    Project,
}

/// Variables that make a program load or run something, or look elsewhere for what it loads or whom it talks to. In a
/// project's config they would be a command that nobody reads as one. The list can't be whole; what it does not have is
/// shown before a project is trusted.
const LOADERS: &[&str] = &[
    "BROWSER",
    "CDPATH",
    "CLASSPATH",
    "EDITOR",
    "ENV",
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "HOME",
    "IFS",
    "JDK_JAVA_OPTIONS",
    "LESSOPEN",
    "LOCPATH",
    "MANPAGER",
    "PAGER",
    "PATH",
    "PROMPT_COMMAND",
    "PSMODULEPATH",
    "SHELL",
    "SHELLOPTS",
    "TMPDIR",
    "VISUAL",
    "ZDOTDIR",
    "_JAVA_OPTIONS",
];
const LOADERS_BEGIN: &[&str] = &[
    "BASH", "BUN_", "CARGO", "CURL_", "DENO_", "DOCKER_", "DOTNET_", "DYLD_", "GIT_", "GO", "JAVA_", "LD_", "LEMON_",
    "LUA_", "NODE_", "NPM_", "OPENSSL_", "PERL", "PHP", "PIP_", "PYTHON", "RUBY", "RUST", "SSL_", "UV_", "XDG_",
];
const LOADERS_END: &[&str] = &["_PROXY", "_PAGER", "_EDITOR"];

/// Whether a project may give a variable to its plugins.
pub(super) fn is_harmless(variable: &str) -> bool {
    let variable = variable.to_ascii_uppercase();
    let is_plain = variable.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_plain
        && !LOADERS.contains(&variable.as_str())
        && !LOADERS_BEGIN.iter().any(|begin| variable.starts_with(begin))
        && !LOADERS_END.iter().any(|end| variable.ends_with(end))
}

impl Reading<'_> {
    /// Whether a key that only the user may set counts; if not, that is told.
    pub(super) fn is_users(&mut self, table: &str, key: &Key<'_>) -> bool {
        let counts = self.layer() == Layer::User;
        if !counts {
            let key_shown = key.get_ref().to_string();
            let (origin, column) = self.place(key);
            self.warn(ConfigWarning::UserOnly { origin, column, table: table.to_owned(), key: key_shown });
        }
        counts
    }
}
