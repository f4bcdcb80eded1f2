//! `[runtime]`: where extensions are looked for, and whether any runs.

use std::path::PathBuf;

use super::SettingValue;
use super::reading::{Key, Reading, Value, shown_paths};

pub(super) const KEYS: &[&str] = &["extension_paths", "extensions"];
pub(super) const EXTENSION_KEYS: &[&str] = &["enabled", "auto_load_default_paths"];

/// What a config file says of `[runtime]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuntimeConfig {
    /// `extension_paths`: folders of plugins, or plugins; relative ones start from the file's folder.
    pub extension_paths: Option<Vec<PathBuf>>,
    /// `[runtime.extensions] enabled`.
    pub enabled: Option<bool>,
    /// `[runtime.extensions] auto_load_default_paths`.
    pub auto_load_default_paths: Option<bool>,
}

pub(super) fn read(value: &Value<'_>, reading: &mut Reading<'_>) -> RuntimeConfig {
    let mut runtime = RuntimeConfig::default();
    for (key, value) in reading.table("runtime", value).into_iter().flatten() {
        match key.get_ref().as_ref() {
            "extension_paths" => {
                let folders = reading.array("extension_paths", "an array of folders", value);
                let folders = folders.into_iter().flatten();
                // Goes on after a wrong one, to tell of all.
                let folders: Vec<_> = folders.map(|folder| reading.folder("extension_paths", folder)).collect();
                runtime.extension_paths = folders.into_iter().collect();
                if let Some(folders) = &runtime.extension_paths {
                    reading.set(&["runtime"], key, SettingValue::Plain(shown_paths(folders)));
                }
            }
            "extensions" => {
                for (key, value) in reading.table("runtime.extensions", value).into_iter().flatten() {
                    match key.get_ref().as_ref() {
                        name @ "enabled" => runtime.enabled = flag(name, key, value, reading),
                        name @ "auto_load_default_paths" => {
                            runtime.auto_load_default_paths = flag(name, key, value, reading);
                        }
                        _ => reading.unknown("runtime.extensions", key, EXTENSION_KEYS),
                    }
                }
            }
            _ => reading.unknown("runtime", key, KEYS),
        }
    }
    runtime
}

fn flag(name: &str, key: &Key<'_>, value: &Value<'_>, reading: &mut Reading<'_>) -> Option<bool> {
    let flag = reading.boolean(name, value)?;
    reading.set(&["runtime", "extensions"], key, SettingValue::Plain(flag.into()));
    Some(flag)
}
