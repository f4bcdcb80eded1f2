//! What is to be set and taken out, and how it is written down.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;

use lemon_host::{ConfigEdit, ConfigEditError, SecretsEdit, SettingValue, StoredSecrets};
use serde_json::{Map, Value, json};

use super::shown_key;
use super::target::Target;
use crate::args::PluginConfig;
use crate::arguments::{self, Pair, STDIN};
use crate::config::of_secrets;
use crate::errors::Failure;
use crate::exit::Exit;

/// The longest value that is read from stdin, in bytes.
const STDIN_BYTES: u64 = 256 * 1024;

/// A change of settings.
#[derive(Default)]
pub(super) struct Change {
    /// As they are to stand in the config file.
    pub(super) set: Map<String, Value>,
    /// The values of secrets among them, by key.
    pub(super) secrets: BTreeMap<String, String>,
    pub(super) unset: BTreeSet<String>,
    /// What is odd about it, a line each.
    pub(super) warnings: Vec<String>,
}

impl Change {
    pub(super) fn is_empty(&self) -> bool {
        self.set.is_empty() && self.unset.is_empty()
    }

    /// Reads the words of the command line.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(super) async fn read(request: &PluginConfig, target: &Target) -> Result<Self, Failure> {
        let mut change = Self { unset: request.unset.iter().cloned().collect(), ..Self::default() };
        let mut texts = Map::new();
        for Pair { key, value, is_json } in arguments::pairs(&request.values)? {
            let mut value: Value = serde_json::from_str(&value).map_err(|error| {
                usage(format!("the value of `{}` can't be read", shown_key(key))).why(error.to_string())
            })?;
            if change.unset.contains(key) {
                return Err(usage(format!("`{}` is both set and taken out", shown_key(key))));
            }
            if !is_json && value == STDIN {
                value = Value::String(from_stdin()?);
            }
            match (is_json, &target.schema) {
                (false, Some(schema)) if !schema.is_secret(key) => {
                    texts.insert(key.to_owned(), value);
                }
                _ => change.add(key, value, is_json, target)?,
            }
        }
        if let (Some(schema), false) = (&target.schema, texts.is_empty()) {
            let fitted = schema.fit(&texts).await;
            let fitted =
                fitted.map_err(|why| usage(format!("the settings of {} can't be checked", target.name)).why(why))?;
            change.set.extend(fitted);
        }
        Ok(change)
    }

    /// Sets a key to a value that needs no fitting.
    ///
    /// # Errors
    /// It would put a secret where others can read it.
    pub(super) fn add(&mut self, key: &str, value: Value, is_json: bool, target: &Target) -> Result<(), Failure> {
        match (&target.schema, value) {
            (Some(schema), Value::String(secret)) if schema.is_secret(key) => self.add_secret(key, secret, target)?,
            (Some(_), value) => {
                self.set.insert(key.to_owned(), value);
            }
            (None, value) => {
                let value = if is_json { value } else { guessed(value) };
                if SettingValue::of_config(key, &value) == SettingValue::Hidden {
                    let example = format!("{}:='{{\"secret\": \"NAME\"}}'", shown_key(key));
                    return Err(usage(format!(
                        "`{}` looks like a secret, and no manifest of {} says so",
                        shown_key(key),
                        target.name
                    ))
                    .why("its value would stand in config.toml for everyone to read")
                    .hint(format!("set the variable NAME, or NAME in secrets.toml, and here `{example}`")));
                }
                self.warnings.push(format!(
                    "no manifest of {} describes its settings: nobody knows whether it takes `{}` as {}",
                    target.name,
                    shown_key(key),
                    kind(&value)
                ));
                self.set.insert(key.to_owned(), value);
            }
        }
        Ok(())
    }

    fn add_secret(&mut self, key: &str, secret: String, target: &Target) -> Result<(), Failure> {
        if key.contains(['=', '\0']) {
            return Err(usage(format!("the secret `{}` can't be kept under that name", shown_key(key)))
                .hint("name one of secrets.toml or the environment in config.toml: { secret = \"NAME\" }"));
        }
        self.set.insert(key.to_owned(), json!({ "secret": target.secret_name(key) }));
        self.secrets.insert(key.to_owned(), secret);
        Ok(())
    }

    /// Makes the change to values, without writing it.
    pub(super) fn apply(&self, target: &Target, values: &mut Map<String, Value>, secrets: &mut StoredSecrets) {
        for (key, secret) in &self.secrets {
            secrets.insert(target.secret_name(key), secret.as_str());
        }
        values.extend(self.set.clone());
        values.retain(|key, _| !self.unset.contains(key));
    }

    /// Writes it down: the secrets first, so that no setting names one that is not there.
    ///
    /// # Errors
    /// A file can't be written.
    pub(super) fn write(&self, target: &Target) -> Result<(), Failure> {
        let mut config = ConfigEdit::open(&target.file).map_err(|error| of_edit(&error))?;
        for (key, value) in &self.set {
            config.set(target.class, &target.name, key, value).map_err(|error| of_edit(&error))?;
        }
        for key in &self.unset {
            if !config.unset(target.class, &target.name, key).map_err(|error| of_edit(&error))? {
                return Err(usage(format!("`{}` of {} is not set in your config", shown_key(key), target.name)));
            }
        }
        self.write_secrets(target).map_err(|error| of_secrets(&error))?;
        config.save().map_err(|error| of_edit(&error))
    }

    fn write_secrets(&self, target: &Target) -> Result<(), lemon_host::SecretsError> {
        let has_file = StoredSecrets::file(&target.home).exists();
        if self.secrets.is_empty() && !has_file {
            return Ok(());
        }
        let mut file = SecretsEdit::open(&target.home)?;
        let mut is_changed = !self.secrets.is_empty();
        for (key, secret) in &self.secrets {
            file.set(&target.secret_name(key), secret)?;
        }
        // One that is taken out, or is named otherwise now, is of no use any more.
        for key in self.unset.iter().chain(self.set.keys()).filter(|key| !self.secrets.contains_key(*key)) {
            is_changed |= file.unset(&target.secret_name(key))?;
        }
        if is_changed { file.save() } else { Ok(()) }
    }
}

fn usage(what: impl Into<String>) -> Failure {
    Failure::new(Exit::Usage, what)
}

fn of_edit(error: &ConfigEditError) -> Failure {
    let failure = usage(error.to_string());
    match std::error::Error::source(error) {
        Some(source) => failure.why(source.to_string()),
        None => failure,
    }
}

/// The one value that is read from stdin, without the line's end.
fn from_stdin() -> Result<String, Failure> {
    let failed = |why: String| usage("can't read the value from stdin").why(why);
    let mut text = String::new();
    let read = std::io::stdin().lock().take(STDIN_BYTES + 1).read_to_string(&mut text);
    read.map_err(|error| failed(error.to_string()))?;
    if text.len() as u64 > STDIN_BYTES {
        return Err(failed(format!("it is longer than {STDIN_BYTES} bytes")));
    }
    let text = text.strip_suffix('\n').unwrap_or(&text);
    Ok(text.strip_suffix('\r').unwrap_or(text).to_owned())
}

/// A value of which nobody says what it must be: what TOML and JSON write alike, else a text.
fn guessed(value: Value) -> Value {
    let read = value.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    match read {
        Some(read @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_))) => read,
        _ => value,
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::Array(_) => "a list",
        Value::Object(_) => "a table",
        _ => "a text",
    }
}
