//! What a plugin's schema says of its configuration, asked without running the plugin.

use serde_json::{Map, Value};

use super::configuration;
use crate::arguments;
use crate::limits::Limits;
use crate::schema::violation::Violation;
use crate::seams::Secrets;

/// The schema of a plugin's configuration, from its manifest.
///
/// It is as hostile as anything of a plugin's: what it may cost is bounded, and nothing that is told shows a value.
#[derive(Debug, Clone)]
pub struct ConfigSchema {
    schema: Value,
    limits: Limits,
}

impl ConfigSchema {
    /// Takes a schema; whether it can be used shows when it is.
    pub fn new(schema: Value, limits: Limits) -> Self {
        Self { schema, limits }
    }

    /// What the plugin wrote.
    pub fn json(&self) -> &Value {
        &self.schema
    }

    /// The properties, as the schema has them.
    fn property(&self, key: &str) -> Option<&Value> {
        self.schema.get("properties")?.get(key)
    }

    /// Whether a key is marked with `"secret": true`: then its value may come from a secret, and is shown nowhere.
    pub fn is_secret(&self, key: &str) -> bool {
        self.property(key).is_some_and(configuration::marks_secret)
    }

    /// What the plugin has where nothing is set.
    pub fn default_of(&self, key: &str) -> Option<&Value> {
        self.property(key)?.get("default")
    }

    /// The keys that it describes.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        let properties = self.schema.get("properties").and_then(Value::as_object);
        properties.into_iter().flat_map(Map::keys).map(String::as_str)
    }

    /// The values with those that were written as text fitted to their types, as the arguments of a call are: `"5"` is 5
    /// where a number is wanted.
    ///
    /// # Errors
    /// Why they, or the schema, can't be used.
    pub async fn fit(&self, values: &Map<String, Value>) -> Result<Map<String, Value>, String> {
        let most = self.limits.argument_values;
        let text = Value::Object(values.clone()).to_string();
        let fitted = configuration::with_schema(&self.schema, &self.limits, move |schema, _| {
            arguments::fitted(&text, schema, most).map_err(|fault| fault.to_string())
        });
        let fitted = fitted.await.map_err(|unusable| unusable.to_string())??;
        serde_json::from_str(&fitted).map_err(|error| error.to_string())
    }

    /// All that is wrong with values, which are as they stand in a config file, once defaults and secrets are in place.
    /// Empty if the plugin would be given them.
    pub async fn faults(&self, values: &Map<String, Value>, secrets: &dyn Secrets) -> Vec<Violation> {
        configuration::faults(&self.schema, values, &self.limits, secrets).await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::seams::Environment;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    fn schema() -> ConfigSchema {
        let schema = json!({
            "type": "object",
            "properties": {
                "key": { "type": "string", "secret": true },
                "wait": { "type": "integer", "minimum": 1, "default": 5 },
                "on": { "type": "boolean" },
                "tags": { "type": "array", "items": { "type": "string" } },
            },
            "required": ["key"],
            "additionalProperties": false,
        });
        ConfigSchema::new(schema, Limits::default())
    }

    #[tokio::test]
    async fn text_is_fitted_to_the_types() {
        let given = json!({ "key": "7", "wait": "7", "on": "true", "tags": "a", "other": "7" });
        let fitted = schema().fit(&map(given)).await.unwrap();
        assert_eq!(Value::Object(fitted), json!({ "key": "7", "wait": 7, "on": true, "tags": ["a"], "other": "7" }));
    }

    #[tokio::test]
    async fn all_that_is_wrong_is_told_and_no_value() {
        let given = json!({ "wait": 0, "on": "s3cret", "oth": 1 });
        let faults = schema().faults(&map(given), &Environment).await;
        let told: Vec<_> = faults.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 4, "{told:?}");
        assert!(!told.concat().contains("s3cret"));
        let known = json!({ "key": "k" });
        assert_eq!(schema().faults(&map(known), &Environment).await, []);
    }

    #[tokio::test]
    async fn a_secret_is_asked_for_only_where_the_schema_marks_it() {
        let given = json!({ "key": { "secret": "NO_SUCH_SECRET" }, "on": { "secret": "PATH" } });
        let told: Vec<_> = schema().faults(&map(given), &Environment).await.iter().map(ToString::to_string).collect();
        assert!(told[0].contains("\"NO_SUCH_SECRET\" is not set"), "{told:?}");
        assert!(told[1].starts_with("on: the plugin's schema does not mark this key as secret"), "{told:?}");
        assert!(schema().is_secret("key") && !schema().is_secret("on") && !schema().is_secret("none"));
        assert_eq!(schema().keys().collect::<Vec<_>>(), ["key", "on", "tags", "wait"]);
        assert_eq!(schema().default_of("wait"), Some(&json!(5)));
    }

    #[tokio::test]
    async fn a_hostile_schema_is_one_fault() {
        let deep = (0..500).fold(json!({}), |inner, _| json!({ "properties": { "a": inner } }));
        let schema = ConfigSchema::new(deep, Limits::default());
        assert_eq!(schema.faults(&Map::new(), &Environment).await.len(), 1);
        assert!(schema.fit(&Map::new()).await.is_err());
    }
}
