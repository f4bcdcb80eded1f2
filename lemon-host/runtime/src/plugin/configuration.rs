//! The values that `lemon/configure` carries: what the user gave, with the schema's defaults and the secrets in place.
//!
//! Secrets go only to keys that the plugin's schema marks with `"secret": true` (LPP-CONF-03), and each value that does
//! is known to the redactor before the plugin gets it. The schema is hostile input: what it may cost is bounded before
//! it is used, and what it may cost with these values before it is applied.

use std::fmt::Display;
use std::time::Duration;

use jsonschema::PatternOptions;
use jsonschema::error::ValidationErrorKind;
use serde_json::{Map, Value};

use super::schema_bounds;
use crate::discovery::secret_name;
use crate::error::StartError;
use crate::limits::Limits;
use crate::report::{PluginText, Redactor};
use crate::seams::Secrets;

/// How long the whole check of the values may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// The most that nodes of the schema times values may come to: about a second of work.
const CHECKS: usize = 1 << 27;
/// What all patterns together may take compiled, in bytes, and the same times the bytes of text that they may meet: an
/// automaton without look-around takes a step for each of its states and each byte at worst.
const PATTERN_BYTES: usize = 16 * 1024 * 1024;
const PATTERN_STEPS: u64 = 1 << 33;
/// A validator recurses through the schema for each level of the values.
const STACK_BYTES: usize = 32 * 1024 * 1024;

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
    let nodes = schema_bounds::check(schema, limits).map_err(unusable)?;
    let filling = Filling { secrets, redactor };
    let values = Value::Object(filling.object(schema, given, "")?);
    let size = Size::of(&values);
    if nodes.saturating_mul(size.values) > CHECKS {
        return Err(unusable(format!("its {nodes} nodes are too many for a configuration of {} values", size.values)));
    }
    validate(schema.clone(), values, pattern_bytes(schema, &size)).await
}

/// Checks values against a schema, on a thread of its own: nobody waits for its end, and its stack is large enough.
async fn validate(schema: Value, values: Value, pattern_bytes: usize) -> Result<Map<String, Value>, StartError> {
    let (done, checked) = tokio::sync::oneshot::channel();
    let thread = std::thread::Builder::new().name("lemon-config".to_owned()).stack_size(STACK_BYTES);
    thread
        .spawn(move || {
            // Whoever waited may have lost patience.
            let _ = done.send(apply(&schema, values, pattern_bytes));
        })
        .map_err(|error| fault("", format!("the configuration can't be checked: no thread: {error}")))?;
    match tokio::time::timeout(PATIENCE, checked).await {
        Ok(Ok(checked)) => checked,
        Ok(Err(_)) => Err(unusable("its validation broke down")),
        Err(_) => Err(unusable(format!("it could not be applied within {} s", PATIENCE.as_secs()))),
    }
}

fn apply(schema: &Value, values: Value, pattern_bytes: usize) -> Result<Map<String, Value>, StartError> {
    // Matching takes linear time, and what can't be matched so is refused. References to anything outside of the
    // schema are refused too: no way to follow them is compiled in.
    let patterns = PatternOptions::regex().size_limit(pattern_bytes).dfa_size_limit(pattern_bytes);
    let validator =
        jsonschema::options().with_pattern_options(patterns).build(schema).map_err(|error| match error.kind() {
            ValidationErrorKind::Format { format } if format == "regex" => unusable(format!(
                "its pattern at {} is malformed, too large, or looks around or back, which is not supported",
                error.instance_path()
            )),
            _ => unusable(error.masked()),
        })?;
    // Masked: an offending value may be a secret.
    let first = validator
        .validate(&values)
        .err()
        .map(|error| fault(error.instance_path().as_str(), error.masked_with("the value").to_string()));
    match (first, values) {
        (None, Value::Object(values)) => Ok(values),
        (error, _) => Err(error.unwrap_or(StartError::Stopped)),
    }
}

/// The share of one pattern in what all of them may take.
fn pattern_bytes(schema: &Value, values: &Size) -> usize {
    let for_this_text = usize::try_from(PATTERN_STEPS / values.bytes.max(1) as u64).unwrap_or(usize::MAX);
    for_this_text.min(PATTERN_BYTES) / schema_bounds::patterns(schema).max(1)
}

/// How much there is to check in a value.
#[derive(Default)]
struct Size {
    values: usize,
    /// Of text, names included.
    bytes: usize,
}

impl Size {
    fn of(value: &Value) -> Self {
        let mut size = Self::default();
        size.add(value);
        size
    }

    fn add(&mut self, value: &Value) {
        self.values += 1;
        match value {
            Value::String(text) => self.bytes += text.len(),
            Value::Array(items) => items.iter().for_each(|item| self.add(item)),
            Value::Object(members) => members.iter().for_each(|(name, member)| {
                self.bytes += name.len();
                self.add(member);
            }),
            _ => {}
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
        assert_eq!((pointer.as_str(), message.as_str()), ("/b", "the value is not of type \"integer\""));
    }

    #[tokio::test]
    async fn a_pattern_takes_linear_time_or_is_refused() {
        let given = json!({ "a": format!("{}!", "a".repeat(4000)) });
        let with = |pattern: &str| json!({ "properties": { "a": { "pattern": pattern } } });
        assert_eq!(prepared(with("^(a+)+$"), given.clone()).await.unwrap_err().0, "/a");
        for pattern in ["^(?=a)(a+)+$", "^(a+)\\1$", "(", "((a{1000}){1000}){1000}"] {
            let (pointer, message) = prepared(with(pattern), given.clone()).await.unwrap_err();
            assert_eq!(pointer, "");
            assert!(message.contains("its pattern at /properties/a/pattern"), "{message}");
        }
    }

    #[tokio::test]
    async fn a_schema_that_is_too_much_for_its_own_default_is_refused() {
        let each = json!({ "allOf": vec![json!({ "type": "integer" }); 3000] });
        let schema = json!({ "properties": { "a": { "default": vec![0; 50_000], "items": each } } });
        let (pointer, message) = prepared(schema, json!({})).await.unwrap_err();
        assert_eq!(pointer, "");
        assert!(message.contains("too many for a configuration of 50002 values"), "{message}");
    }

    #[tokio::test]
    async fn a_deep_value_under_a_deep_cycle_does_not_end_the_process() {
        let back = json!({ "properties": { "x": { "$ref": "#" } } });
        let schema = (0..30).fold(back, |inner, _| json!({ "oneOf": [inner] }));
        let given = (0..120).fold(json!(1), |inner, _| json!({ "x": inner }));
        assert!(prepared(schema, given).await.is_ok());
    }
}
