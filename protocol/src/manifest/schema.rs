//! The JSON Schema of manifests, for editors: `schema/lemon-extension-1.schema.json` is its checked-in form.

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use super::{Manifest, SPELLINGS};

/// The schema of a manifest. A manifest that it refuses is not valid; the host finds more than a schema can say.
pub fn document() -> Value {
    let schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Manifest>();
    let mut document = schema.to_value();
    no_nulls(&mut document);
    spellings(&mut document);
    document["title"] = "Lemon extension manifest 1".into();
    document
}

/// In a manifest a key that says nothing is left out; no value is `null`.
fn no_nulls(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(no_nulls),
        Value::Object(members) => {
            if let Some(Value::Array(types)) = members.get_mut("type") {
                types.retain(|name| name != "null");
                if let [only] = types.as_slice() {
                    members["type"] = only.clone();
                }
            }
            if members.get("default").is_some_and(Value::is_null) {
                members.remove("default");
            }
            if let Some(Value::Array(choices)) = members.get_mut("anyOf") {
                choices.retain(|choice| choice["type"] != "null");
                if let [only] = choices.as_slice()
                    && let Some(only) = only.as_object().cloned()
                {
                    members.remove("anyOf");
                    members.extend(only);
                }
            }
            members.values_mut().for_each(no_nulls);
        }
        _ => {}
    }
}

/// Adds the other spelling of each key that has two.
fn spellings(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(spellings),
        Value::Object(members) => {
            members.values_mut().for_each(spellings);
            let Some(Value::Object(properties)) = members.get_mut("properties") else { return };
            let both: Vec<_> = SPELLINGS.iter().filter(|(one, _)| properties.contains_key(*one)).collect();
            for (one, other) in &both {
                properties.insert((*other).to_owned(), properties[*one].clone());
            }
            let mut rules: Vec<Value> = Vec::new();
            for (one, other) in both {
                let needs = |key: &str| json!({ "required": [key] });
                let required = members.get_mut("required").and_then(Value::as_array_mut);
                let position = required.as_ref().and_then(|list| list.iter().position(|key| key == one));
                match (required, position) {
                    (Some(list), Some(at)) => {
                        list.remove(at);
                        rules.push(json!({ "oneOf": [needs(one), needs(other)] }));
                    }
                    _ => rules.push(json!({ "not": { "required": [one, other] } })),
                }
            }
            if !rules.is_empty() {
                members.insert("allOf".to_owned(), rules.into());
            }
        }
        _ => {}
    }
}
