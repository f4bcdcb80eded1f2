//! All keys of a config file, and which layer may set each.

use super::{TOOL_KEYS, entry, runtime};
use crate::discovery::RuntimeVariables;
use crate::limits::{Limits, Timeouts};

/// A key that a config file may have. The user's own file and the one of `--config` may set each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigKey {
    /// The table that it stands in, such as `plugins.NAME`.
    pub table: &'static str,
    /// The key.
    pub key: &'static str,
    /// What a trusted project may do with it.
    pub project: ProjectMay,
    /// The environment variable that overrules the files, if there is one.
    pub variable: Option<&'static str>,
    /// The flag that does, or adds to them.
    pub flag: Option<&'static str>,
}

/// What a trusted project's config may do with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProjectMay {
    /// Nothing: it is ignored there.
    Nothing,
    /// Set it for plugins that the project adds, which are trusted one by one.
    Add,
    /// Hide more than the user does.
    Tighten,
}

impl ConfigKey {
    /// All of them.
    pub fn all() -> Vec<Self> {
        use ProjectMay::{Add, Nothing, Tighten};
        let table = |table: &'static str, keys: &'static [&'static str], project| {
            keys.iter().map(move |key| {
                let is_users = table.ends_with("NAME") && entry::USER_KEYS.contains(key);
                let project = if is_users { Nothing } else { project };
                let (variable, flag) = overruled_by(table, key);
                Self { table, key, project, variable, flag }
            })
        };
        let plugin_keys = &entry::KEYS[..entry::KEYS.len() - 1];
        table("runtime", &runtime::KEYS[..1], Nothing)
            .chain(table("runtime.extensions", runtime::EXTENSION_KEYS, Nothing))
            .chain(table("tools", TOOL_KEYS, Tighten))
            .chain(table("plugins.NAME", plugin_keys, Add))
            .chain(table("plugins.NAME.rlimits", entry::LIMIT_KEYS, Add))
            .chain(table("mcp.servers.NAME", entry::KEYS, Add))
            .chain(table("mcp.servers.NAME.rlimits", entry::LIMIT_KEYS, Add))
            .chain(table("limits", Limits::KEYS, Nothing))
            .chain(table("timeouts", Timeouts::KEYS, Nothing))
            .collect()
    }
}

fn overruled_by(table: &str, key: &str) -> (Option<&'static str>, Option<&'static str>) {
    match (table, key) {
        ("runtime", "extension_paths") => (Some(RuntimeVariables::EXTENSION_PATHS), None),
        ("runtime.extensions", "enabled") => (Some(RuntimeVariables::ENABLED), None),
        ("runtime.extensions", "auto_load_default_paths") => (Some(RuntimeVariables::AUTO_LOAD), None),
        ("tools", "disabled") => (None, Some("--disable")),
        ("tools", "enabled_only") => (None, Some("--enable-only")),
        ("plugins.NAME", "command" | "path") => (None, Some("--plugin")),
        _ => (None, None),
    }
}
