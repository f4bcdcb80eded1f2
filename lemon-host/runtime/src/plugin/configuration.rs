//! The values that `lemon/configure` carries: what the user gave, with the schema's defaults and the secrets in place.
//!
//! Secrets go only to keys that the plugin's schema marks with `"secret": true` (LPP-CONF-03), and each value that does
//! is known to the redactor before the plugin gets it.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::discovery::secret_name;
use crate::error::StartError;
use crate::report::{PluginText, Redactor};
use crate::seams::Secrets;

/// Fills in defaults and secrets, and checks the whole against the schema.
///
/// # Errors
/// [`StartError::Config`] with the JSON pointer of the first value that is not acceptable, and
/// [`StartError::Secret`] for a secret that is not set.
pub(super) async fn prepare(
    schema: &Value,
    given: &Map<String, Value>,
    secrets: &dyn Secrets,
    redactor: &Redactor,
) -> Result<Map<String, Value>, StartError> {
    let filling = Filling { secrets, redactor };
    let values = filling.object(schema, given, "")?;
    validate(schema.clone(), values).await
}

/// Checks values against a schema, on a thread of its own: a schema is a plugin's and may take for ever.
async fn validate(schema: Value, values: Map<String, Value>) -> Result<Map<String, Value>, StartError> {
    const PATIENCE: Duration = Duration::from_secs(2);
    let checking = tokio::task::spawn_blocking(move || {
        // References to anything outside of the schema are refused: no way to follow them is compiled in.
        let validator = jsonschema::options()
            .build(&schema)
            .map_err(|error| fault("", format!("the plugin's configSchema can't be used: {}", error.masked())))?;
        let values = Value::Object(values);
        // Masked: an offending value may be a secret.
        let first = validator
            .iter_errors(&values)
            .next()
            .map(|error| fault(error.instance_path().as_str(), error.masked_with("the value").to_string()));
        match (first, values) {
            (None, Value::Object(values)) => Ok(values),
            (error, _) => Err(error.unwrap_or(StartError::Stopped)),
        }
    });
    match tokio::time::timeout(PATIENCE, checking).await {
        Ok(Ok(checked)) => checked,
        Ok(Err(_)) | Err(_) => {
            Err(fault("", format!("the plugin's configSchema could not be applied within {} s", PATIENCE.as_secs())))
        }
    }
}

struct Filling<'a> {
    secrets: &'a dyn Secrets,
    redactor: &'a Redactor,
}

impl Filling<'_> {
    fn object(&self, schema: &Value, given: &Map<String, Value>, at: &str) -> Result<Map<String, Value>, StartError> {
        let mut values = Map::new();
        for (key, value) in given {
            let property = schema.pointer(&format!("/properties/{}", escape(key)));
            values.insert(key.clone(), self.value(property, value, &format!("{at}/{}", escape(key)))?);
        }
        for (key, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if let (None, Some(default)) = (values.get(key), property.get("default")) {
                values.insert(key.clone(), default.clone());
            }
        }
        for key in schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            if !values.contains_key(key) {
                let message = "the value is required and has no default".to_owned();
                return Err(fault(&format!("{at}/{}", escape(key)), message));
            }
        }
        Ok(values)
    }

    fn value(&self, schema: Option<&Value>, value: &Value, at: &str) -> Result<Value, StartError> {
        let is_secret = schema.and_then(|schema| schema.get("secret")).and_then(Value::as_bool) == Some(true);
        if let Some(name) = secret_name(value) {
            if !is_secret {
                let message = format!("the plugin's schema does not mark this key as secret, so {name:?} is not read");
                return Err(fault(at, message));
            }
            let wanted_by = format!("config{}", at.replace('/', "."));
            let secret =
                self.secrets.get(name).ok_or_else(|| StartError::Secret { name: name.to_owned(), wanted_by })?;
            self.redactor.add(&secret);
            return Ok(Value::String(secret));
        }
        match value {
            Value::String(text) if is_secret => {
                self.redactor.add(text);
            }
            Value::Object(members) => {
                let members = self.object(schema.unwrap_or(&Value::Null), members, at)?;
                return Ok(Value::Object(members));
            }
            _ => {}
        }
        Ok(value.clone())
    }
}

fn fault(pointer: &str, message: String) -> StartError {
    StartError::Config { pointer: Some(PluginText::new(pointer)), message: PluginText::new(message) }
}

fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
