//! The keys that a file sets, each with its place: for those who show where a value comes from.

use std::fmt;

use serde_json::Value;

use super::Origin;
use super::reading::{Key, Reading};
use crate::discovery::editing::toml_value;
use crate::report::names_a_secret;

/// One key that a config file sets, as it counts.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Setting {
    /// The key, after the tables that it stands in: `["plugins", "hello", "env", "LEVEL"]`.
    pub path: Vec<String>,
    /// Its value; folders are absolute.
    pub value: SettingValue,
    /// Where the key stands.
    pub origin: Origin,
    /// The column in characters, from 1.
    pub column: usize,
}

/// A value that may be shown, or not.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SettingValue {
    /// A value that is no secret as far as its key says. `{ "secret": "NAME" }` stands for a secret.
    Plain(Value),
    /// A value that may be a secret: it is set, and that is all that is said of it.
    Hidden,
}

impl Setting {
    /// The key as TOML has it in one line: `plugins.hello.env.LEVEL`.
    pub fn key(&self) -> String {
        dotted_key(&self.path)
    }
}

/// Keys as TOML has them in one line.
pub fn dotted_key(path: &[String]) -> String {
    let keys: Vec<_> = path.iter().map(|key| toml_edit::Key::new(key.as_str()).to_string()).collect();
    keys.join(".")
}

/// As TOML has it; what is hidden is `"[set]"`.
impl fmt::Display for SettingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hidden => f.write_str("\"[set]\""),
            Self::Plain(value) => match toml_value(value) {
                Ok(value) => value.fmt(f),
                // A default in a plugin's schema may be what TOML does not have.
                Err(_) => value.fmt(f),
            },
        }
    }
}

impl SettingValue {
    /// The value of a plugin's own setting: what is called like a secret is hidden, at any depth.
    pub fn of_config(key: &str, value: &Value) -> Self {
        if looks_secret(key, value) { Self::Hidden } else { Self::Plain(value.clone()) }
    }
}

/// Whether a value is, or holds, a text under the name of a secret.
fn looks_secret(key: &str, value: &Value) -> bool {
    match value {
        Value::String(_) => names_a_secret(key),
        Value::Array(items) => items.iter().any(|item| looks_secret(key, item)),
        // It names a secret and is none.
        Value::Object(_) if super::secret_name(value).is_some() => false,
        Value::Object(members) => {
            members.iter().any(|(inner, value)| looks_secret(inner, value) || looks_secret(key, value))
        }
        _ => false,
    }
}

impl Reading<'_> {
    /// Notes that a key counts.
    pub(super) fn set(&mut self, tables: &[&str], key: &Key<'_>, value: SettingValue) {
        let name = key.get_ref().to_string();
        let path = tables.iter().map(|table| (*table).to_owned()).chain([name]).collect();
        let (origin, column) = self.place(key);
        self.settings.push(Setting { path, value, origin, column });
    }
}
