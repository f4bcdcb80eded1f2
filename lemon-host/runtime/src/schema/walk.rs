//! Goes to each part of a schema that is a schema itself, and to none that only looks like one.

use serde_json::{Map, Value};

/// Lets each schema within a schema be changed, the inner ones first. Nests as deep as the schema, which is bounded by
/// [`check`](super::bounds::check).
pub(super) fn each_schema(schema: &mut Value, change: &mut impl FnMut(&mut Map<String, Value>)) {
    let Value::Object(members) = schema else { return };
    for (keyword, value) in members.iter_mut() {
        match (keyword.as_str(), value) {
            (
                "$defs" | "definitions" | "properties" | "patternProperties" | "dependentSchemas" | "dependencies",
                Value::Object(named),
            ) => named.values_mut().for_each(|schema| each_schema(schema, change)),
            ("allOf" | "anyOf" | "oneOf" | "prefixItems" | "items", Value::Array(schemas)) => {
                schemas.iter_mut().for_each(|schema| each_schema(schema, change));
            }
            (
                "not"
                | "if"
                | "then"
                | "else"
                | "additionalProperties"
                | "unevaluatedProperties"
                | "propertyNames"
                | "contentSchema"
                | "items"
                | "additionalItems"
                | "unevaluatedItems"
                | "contains",
                schema,
            ) => each_schema(schema, change),
            _ => {}
        }
    }
    change(members);
}
