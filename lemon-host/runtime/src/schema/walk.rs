//! Goes to each part of a schema that is a schema itself, and to none that only looks like one.

use serde_json::{Map, Value};

/// Lets each schema within a schema be changed, the inner ones first, and before these the parts that only a reference
/// makes schemas, which are given by their pointers.
pub(super) fn each_schema(schema: &mut Value, loose: &[String], change: &mut impl FnMut(&mut Map<String, Value>)) {
    for pointer in loose {
        if let Some(part) = schema.pointer_mut(pointer) {
            each_within(part, change);
        }
    }
    each_within(schema, change);
}

/// Nests as deep as the schema, which is bounded by [`check`](super::bounds::check).
fn each_within(schema: &mut Value, change: &mut impl FnMut(&mut Map<String, Value>)) {
    let Value::Object(members) = schema else { return };
    for (keyword, value) in members.iter_mut() {
        match (keyword.as_str(), value) {
            (
                "$defs" | "definitions" | "properties" | "patternProperties" | "dependentSchemas" | "dependencies",
                Value::Object(named),
            ) => named.values_mut().for_each(|schema| each_within(schema, change)),
            ("allOf" | "anyOf" | "oneOf" | "prefixItems" | "items", Value::Array(schemas)) => {
                schemas.iter_mut().for_each(|schema| each_within(schema, change));
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
            ) => each_within(schema, change),
            _ => {}
        }
    }
    change(members);
}
