//! OpenAPI's `nullable`, which no dialect of JSON Schema knows: where it is true, `null` is allowed, whatever else the
//! schema says.

use serde_json::{Map, Value, json};

use super::bounds::fragment;

/// The keywords that may refuse `null`, beside `type` and `enum`; all others are about other values.
const REFUSING: [&str; 9] = ["$ref", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "const"];
/// The levels that `null` beside these adds to a schema.
pub(super) const LEVELS: usize = 2;

/// Whether a schema is nullable in a way that makes it nest deeper.
pub(super) fn is_deeper(members: &Map<String, Value>) -> bool {
    is_nullable(members) && REFUSING.iter().any(|keyword| members.contains_key(*keyword))
}

fn is_nullable(members: &Map<String, Value>) -> bool {
    members.get("nullable") == Some(&Value::Bool(true))
}

/// How `null` is allowed in the parts of one schema.
pub(super) struct Nullable {
    /// Something refers to what stands in a keyword that would be moved.
    is_referred_to: bool,
}

impl Nullable {
    pub(super) fn of(schema: &Value) -> Self {
        Self { is_referred_to: refers_into_alternatives(schema) }
    }

    /// Allows `null` if the schema is nullable.
    pub(super) fn allow_null(&self, members: &mut Map<String, Value>) {
        if !is_nullable(members) {
            return;
        }
        match members.get_mut("type") {
            Some(Value::Array(types)) if !types.iter().any(|kind| kind == "null") => types.push("null".into()),
            Some(kind @ Value::String(_)) if *kind != "null" => *kind = json!([kind.take(), "null"]),
            _ => {}
        }
        if let Some(Value::Array(choices)) = members.get_mut("enum")
            && !choices.contains(&Value::Null)
        {
            choices.push(Value::Null);
        }
        if self.is_referred_to {
            return;
        }
        let refusing: Map<_, _> = REFUSING.iter().filter_map(|keyword| members.remove_entry(*keyword)).collect();
        if !refusing.is_empty() {
            members.insert("anyOf".to_owned(), json!([{ "type": "null" }, refusing]));
        }
    }
}

/// Whether a reference leads through a keyword that [`Nullable`] would move.
fn refers_into_alternatives(value: &Value) -> bool {
    let leads_through = |text: &str| {
        let pointer = fragment(text).unwrap_or_default();
        pointer.split('/').any(|step| REFUSING.contains(&step))
    };
    match value {
        Value::Object(members) => members.iter().any(|(key, value)| match value {
            Value::String(text) if key == "$ref" => leads_through(text),
            value => refers_into_alternatives(value),
        }),
        Value::Array(items) => items.iter().any(refers_into_alternatives),
        _ => false,
    }
}
