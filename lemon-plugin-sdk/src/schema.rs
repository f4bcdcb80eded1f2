//! JSON Schemas of types: dialect 2020-12, an object at the root, nothing outside referred to (LPP-TOOL-04).

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

/// What a value of this type looks like when it is read: arguments, configuration.
pub(crate) fn of_input<T: JsonSchema>() -> Value {
    SchemaSettings::draft2020_12().for_deserialize().into_generator().into_root_schema_for::<T>().to_value()
}

/// What a value of this type looks like when it is written: structured results.
pub(crate) fn of_output<T: JsonSchema>() -> Value {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>().to_value()
}

/// Makes a type's schema one of an object, as all of the protocol's are.
///
/// # Errors
/// Says that the type is none.
pub(crate) fn object(mut schema: Value) -> Result<Value, String> {
    let described = describes_object(&schema, &schema, DEPTH);
    let Some(root) = schema.as_object_mut().filter(|_| described) else {
        let name = schema.get("title").and_then(Value::as_str).unwrap_or("it");
        return Err(format!("{name} is no object in JSON; use a struct with named fields"));
    };
    // The dialect is MCP's default, and the name of a Rust type tells a model nothing.
    root.remove("$schema");
    root.remove("title");
    // Says what already holds, where only the branches of an enum said it.
    root.insert("type".to_owned(), "object".into());
    // Some models' APIs refuse an object that names no members, not even none.
    if !["oneOf", "anyOf", "$ref"].iter().any(|key| root.contains_key(*key)) {
        root.entry("properties").or_insert_with(|| json!({}));
    }
    drop_rust_formats(&mut schema);
    Ok(schema)
}

/// Takes out the formats of Rust's own integers, such as `uint32`, for which some models' APIs refuse a tool. The bounds
/// that they stand for are in the schema too.
fn drop_rust_formats(schema: &mut Value) {
    const KNOWN: [&str; 2] = ["int32", "int64"];
    match schema {
        Value::Object(members) => {
            let integer = members.get("type").is_some_and(|kind| {
                kind == "integer" || kind.as_array().is_some_and(|kinds| kinds.contains(&"integer".into()))
            });
            if integer && members.get("format").and_then(Value::as_str).is_some_and(|format| !KNOWN.contains(&format)) {
                members.remove("format");
            }
            members.values_mut().for_each(drop_rust_formats);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_rust_formats),
        _ => {}
    }
}

/// References and branches that are followed to find out what a schema describes. One that leads back to itself describes
/// nothing at all.
const DEPTH: usize = 32;

/// Whether all that fits the schema are objects.
fn describes_object(schema: &Value, root: &Value, depth: usize) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return false };
    if let Some(kind) = schema.get("type") {
        return kind == "object";
    }
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let target = reference.strip_prefix('#').filter(|pointer| !pointer.is_empty());
        return target
            .and_then(|pointer| root.pointer(pointer))
            .is_some_and(|target| describes_object(target, root, depth));
    }
    let branches = schema.get("oneOf").or_else(|| schema.get("anyOf")).and_then(Value::as_array);
    branches.is_some_and(|branches| {
        !branches.is_empty() && branches.iter().all(|branch| describes_object(branch, root, depth))
    })
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    /// Where to go.
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema matters")]
    struct Trip {
        /// The goal.
        to: String,
        #[serde(default)]
        stops: Vec<Stop>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema matters")]
    struct Stop {
        minutes: Option<u32>,
        then: Option<Box<Stop>>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(tag = "op", rename_all = "snake_case")]
    #[expect(dead_code, reason = "only its schema matters")]
    enum Edit {
        Insert { text: String },
        Delete,
    }

    #[test]
    fn doc_comments_become_descriptions_and_references_stay_inside() {
        let schema = object(of_input::<Trip>()).unwrap();
        assert_eq!(schema["description"], "Where to go.");
        assert_eq!(schema["properties"]["to"]["description"], "The goal.");
        assert_eq!(schema["required"], json!(["to"]));
        assert_eq!(schema["properties"]["stops"]["items"]["$ref"], "#/$defs/Stop");
        assert_eq!(schema["$defs"]["Stop"]["type"], "object");
        assert_eq!(
            schema["$defs"]["Stop"]["properties"]["minutes"],
            json!({"type": ["integer", "null"], "minimum": 0})
        );
        assert!(schema.get("$schema").is_none() && schema.get("title").is_none());
    }

    #[test]
    fn an_enum_whose_variants_are_objects_is_an_object() {
        let schema = object(of_input::<Edit>()).unwrap();
        assert_eq!(schema["type"], "object");
        assert_eq!(schema["oneOf"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn what_is_no_object_is_refused_by_name() {
        for schema in [of_input::<String>(), of_input::<Vec<Trip>>(), of_output::<Option<Trip>>(), of_input::<Value>()]
        {
            let problem = object(schema).unwrap_err();
            assert!(problem.contains("is no object in JSON"), "{problem}");
        }
        assert!(object(of_input::<Vec<u8>>()).unwrap_err().starts_with("Array_of_uint8 is"));
    }

    #[test]
    fn a_reference_that_leads_to_itself_describes_nothing() {
        let circle = json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}});
        let wide = json!({"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}],
            "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}}});
        for schema in [circle, wide] {
            assert!(object(schema).is_err());
        }
    }
}
