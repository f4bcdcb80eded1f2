//! The values that `lemon/configure` carries: what the user gave, with the schema's defaults and the secrets in place.
//!
//! Secrets go only to keys that the plugin's schema marks with `"secret": true` (LPP-CONF-03), and each value that does
//! is known to the redactor before the plugin gets it. The schema is hostile input: what it may cost is bounded before
//! it is used, and what it may cost with these values before it is applied.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::discovery::secret_name;
use crate::error::StartError;
use crate::limits::Limits;
use crate::report::{PluginText, Redactor};
use crate::schema::text::Canonical;
use crate::schema::thread::Turn;
use crate::schema::tree::Node;
use crate::schema::violation::{Violation, Violations};
use crate::schema::{self, Effort, Patterns, Schema};
use crate::seams::Secrets;

/// How long the whole check of the values may take, once it is its turn.
const PATIENCE: Duration = Duration::from_secs(2);

/// Fills in defaults and secrets, and checks the whole against the schema.
///
/// # Errors
/// [`StartError::Config`] with the JSON pointer of the first value that is not acceptable, or with an empty one where
/// the schema itself is not, and [`StartError::Secret`] for a secret that is not set.
pub(super) async fn prepare(
    schema: &Value,
    given: &Map<String, Value>,
    limits: &Limits,
    secrets: &dyn Secrets,
    redactor: &Redactor,
) -> Result<Map<String, Value>, StartError> {
    // Before a secret is read, and before anything else follows what the schema says.
    schema::check(schema, limits).map_err(unusable)?;
    let (values, filling) = Filling::of(schema, given, secrets, redactor);
    if let Some(fault) = filling.faults.into_iter().next() {
        return Err(fault);
    }
    if let Some(pointer) = filling.missing.first() {
        return Err(fault(pointer, "the value is required and has no default".to_owned()));
    }
    match validate(schema, &values, limits).await?.list().first() {
        Some(first) => Err(fault(&first.pointer, first.what.clone())),
        None => Ok(values),
    }
}

/// What is wrong with values, for those who look at them without running the plugin: all of it, and not only the first.
pub(super) async fn faults(
    schema: &Value,
    given: &Map<String, Value>,
    limits: &Limits,
    secrets: &dyn Secrets,
) -> Vec<Violation> {
    if let Err(why) = schema::check(schema, limits) {
        return vec![violation(&unusable(why))];
    }
    let redactor = Redactor::new();
    let (values, filling) = Filling::of(schema, given, secrets, &redactor);
    let mut told: Vec<_> = filling.faults.iter().map(violation).collect();
    // It tells of what is missing as well.
    match validate(schema, &values, limits).await {
        Ok(violations) => {
            let of_settings = |what: &str| {
                let what = what.replacen("unknown argument ", "unknown setting ", 1);
                what.replacen("missing required argument ", "missing required setting ", 1)
            };
            told.extend(violations.reworded(of_settings).list().iter().cloned());
        }
        Err(why) => told.push(violation(&why)),
    }
    told
}

fn violation(fault: &StartError) -> Violation {
    match fault {
        StartError::Config { pointer, message } => {
            let pointer = pointer.as_ref().map_or("", PluginText::raw);
            let path = pointer.trim_start_matches('/').replace('/', ".").replace("~1", "/").replace("~0", "~");
            let path = PluginText::new(path).to_string();
            Violation { pointer: pointer.to_owned(), path, what: message.to_string() }
        }
        other => Violation { pointer: String::new(), path: String::new(), what: other.to_string() },
    }
}

/// Checks values against a schema. What is told of a value never shows it: it may be a secret.
///
/// # Errors
/// They can't be checked.
async fn validate(schema: &Value, values: &Map<String, Value>, limits: &Limits) -> Result<Violations, StartError> {
    let text = Value::Object(values.clone()).to_string();
    let text = Canonical::read(&text, limits.argument_values).map_err(|reason| fault("", reason.to_string()))?;
    with_schema(schema, limits, move |schema, stopped| match Node::read(text.text.get()) {
        Ok(node) => schema.faults(&node, text.values, Effort::until(stopped)).unwrap_or_else(Violations::from),
        Err(faults) => faults,
    })
    .await
}

/// Does some work with the compiled schema on a thread of its own.
///
/// # Errors
/// The schema can't be used, or the work takes too long.
pub(super) async fn with_schema<T: Send + 'static>(
    schema: &Value,
    limits: &Limits,
    work: impl FnOnce(&Schema, &Arc<AtomicBool>) -> T + Send + 'static,
) -> Result<T, StartError> {
    // The wait for other configurations is not the schema's fault.
    let turn = Turn::for_configuration().await.map_err(unusable)?;
    let (schema, limits) = (schema.clone(), limits.clone());
    let done = turn.on_large_stack(move |stopped| {
        let compiled = Schema::compile_here(&schema, &limits, Patterns::Refuse, stopped).map_err(unusable)?;
        Ok(work(&compiled, stopped))
    });
    match tokio::time::timeout(PATIENCE, done).await {
        Ok(done) => done.map_err(|broken| unusable(format!("its validation broke down: {broken}")))?,
        Err(_) => Err(unusable(format!("it could not be applied within {} s", PATIENCE.as_secs()))),
    }
}

/// Puts defaults and secrets in place, and notes what can't be.
struct Filling<'a> {
    secrets: &'a dyn Secrets,
    redactor: &'a Redactor,
    faults: Vec<StartError>,
    /// The pointers of values that are required and have no default.
    missing: Vec<String>,
}

impl<'a> Filling<'a> {
    fn of(
        schema: &Value,
        given: &Map<String, Value>,
        secrets: &'a dyn Secrets,
        redactor: &'a Redactor,
    ) -> (Map<String, Value>, Self) {
        let mut filling = Self { secrets, redactor, faults: Vec::new(), missing: Vec::new() };
        (filling.object(schema, given, ""), filling)
    }

    fn object(&mut self, schema: &Value, given: &Map<String, Value>, at: &str) -> Map<String, Value> {
        let mut values = Map::new();
        for (key, value) in given {
            let property = schema.pointer(&format!("/properties/{}", escape(key)));
            match self.value(property, value, &format!("{at}/{}", escape(key))) {
                Ok(value) => {
                    values.insert(key.clone(), value);
                }
                Err(fault) => self.faults.push(fault),
            }
        }
        for (key, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if let (None, Some(default)) = (given.get(key), property.get("default")) {
                values.insert(key.clone(), default.clone());
            }
        }
        for key in schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            if !values.contains_key(key) {
                self.missing.push(format!("{at}/{}", escape(key)));
            }
        }
        values
    }

    fn value(&mut self, schema: Option<&Value>, value: &Value, at: &str) -> Result<Value, StartError> {
        let is_secret = schema.is_some_and(marks_secret);
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
                return Ok(Value::Object(self.object(schema.unwrap_or(&Value::Null), members, at)));
            }
            _ => {}
        }
        Ok(value.clone())
    }
}

/// Whether a property of a schema is a secret.
pub(super) fn marks_secret(property: &Value) -> bool {
    property.get("secret").and_then(Value::as_bool) == Some(true)
}

fn unusable(why: impl Display) -> StartError {
    fault("", format!("the plugin's configSchema can't be used: {why}"))
}

fn fault(pointer: &str, message: String) -> StartError {
    StartError::Config { pointer: Some(PluginText::new(pointer)), message: PluginText::new(message) }
}

fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::thread::CONFIGURATIONS;
    use crate::seams::Environment;

    async fn prepared(schema: Value, given: Value) -> Result<Map<String, Value>, (String, String)> {
        let given = given.as_object().unwrap();
        match prepare(&schema, given, &Limits::default(), &Environment, &Redactor::new()).await {
            Err(StartError::Config { pointer: Some(pointer), message }) => {
                Err((pointer.raw().to_owned(), message.raw().to_owned()))
            }
            other => Ok(other.unwrap()),
        }
    }

    #[tokio::test]
    async fn defaults_are_filled_in_and_a_wrong_value_is_named_but_not_shown() {
        let schema =
            json!({ "properties": { "a": { "default": "x", "pattern": "^\\w+$" }, "b": { "type": "integer" } } });
        let values = prepared(schema.clone(), json!({ "b": 1 })).await.unwrap();
        assert_eq!(Value::Object(values), json!({ "a": "x", "b": 1 }));
        let (pointer, message) = prepared(schema, json!({ "b": "hidden" })).await.unwrap_err();
        assert_eq!((pointer.as_str(), message.as_str()), ("/b", "expected integer, got string"));
    }

    #[tokio::test]
    async fn a_pattern_takes_linear_time_or_is_refused() {
        let given = json!({ "a": format!("{}!", "a".repeat(4000)) });
        let with = |pattern: &str| json!({ "properties": { "a": { "pattern": pattern } } });
        assert_eq!(prepared(with("^(a+)+$"), given.clone()).await.unwrap_err().0, "/a");
        for pattern in ["^(?=a)(a+)+$", "^(a+)\\1$", "(", "((a{1000}){1000}){1000}"] {
            let (pointer, message) = prepared(with(pattern), given.clone()).await.unwrap_err();
            assert_eq!(pointer, "");
            assert!(message.contains(&format!("its pattern {pattern:?} is malformed")), "{message}");
        }
    }

    #[tokio::test]
    async fn a_schema_that_is_too_much_for_its_own_default_is_refused() {
        let each = json!({ "allOf": vec![json!({ "type": "integer" }); 3000] });
        let schema = json!({ "properties": { "a": { "default": vec![0; 50_000], "items": each } } });
        let (pointer, message) = prepared(schema, json!({})).await.unwrap_err();
        assert_eq!(pointer, "");
        assert!(message.contains("there are too many values"), "{message}");
    }

    #[tokio::test]
    async fn a_deep_value_under_a_deep_cycle_does_not_end_the_process() {
        let back = json!({ "properties": { "x": { "$ref": "#" } } });
        let schema = (0..30).fold(back, |inner, _| json!({ "oneOf": [inner] }));
        let given = (0..120).fold(json!(1), |inner, _| json!({ "x": inner }));
        assert!(prepared(schema, given).await.is_ok());
    }

    #[tokio::test]
    async fn the_wait_for_others_is_not_the_schemas_fault() {
        let mut turns = Vec::new();
        for _ in 0..CONFIGURATIONS {
            turns.push(Turn::for_configuration().await.unwrap());
        }
        tokio::time::pause();
        let prepared =
            tokio::spawn(prepared(json!({ "properties": { "a": { "type": "integer" } } }), json!({ "a": 1 })));
        tokio::time::sleep(PATIENCE * 10).await;
        assert!(!prepared.is_finished());
        tokio::time::resume();
        drop(turns);
        assert!(prepared.await.unwrap().is_ok());
    }
}
