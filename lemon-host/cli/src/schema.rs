//! What can be read off a tool's schema at a glance: which arguments there are, and of which types.

use std::collections::VecDeque;

use serde_json::Value;

/// How many references and alternatives are followed: schemas come from plugins and may go in circles.
const VISITS: usize = 256;

/// One argument of a tool.
pub(crate) struct Argument<'a> {
    pub(crate) name: &'a str,
    pub(crate) required: bool,
    pub(crate) schema: &'a Value,
}

/// The arguments, the required ones first.
pub(crate) fn arguments(schema: &Value) -> Vec<Argument<'_>> {
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema["properties"].as_object().into_iter().flatten();
    let mut arguments: Vec<_> = properties
        .map(|(name, schema)| Argument { name, required: required.contains(&name.as_str()), schema })
        .collect();
    arguments.sort_by_key(|argument| !argument.required);
    arguments
}

/// A type of JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Type {
    String,
    Integer,
    Number,
    Boolean,
    Object,
    Array,
    Null,
}

impl Type {
    const ALL: [(&'static str, Self); 7] = [
        ("string", Self::String),
        ("integer", Self::Integer),
        ("number", Self::Number),
        ("boolean", Self::Boolean),
        ("object", Self::Object),
        ("array", Self::Array),
        ("null", Self::Null),
    ];

    pub(crate) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }

    /// The type that a value has.
    fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Boolean,
            Value::Number(number) if is_whole(number) => Self::Integer,
            Value::Number(_) => Self::Number,
            Value::String(_) => Self::String,
            Value::Array(_) => Self::Array,
            Value::Object(_) => Self::Object,
        }
    }

    pub(crate) fn takes(self, value: &Value) -> bool {
        let found = Self::of(value);
        found == self || self == Self::Number && found == Self::Integer
    }
}

fn is_whole(number: &serde_json::Number) -> bool {
    number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|number| number.fract() == 0.0)
}

/// The types that an argument may have; empty when the schema does not say.
pub(crate) fn types(schema: &Value, root: &Value) -> Vec<Type> {
    let mut types = Vec::new();
    // Breadth first, as what a schema says of itself stands near its top.
    let mut queue = VecDeque::from([schema]);
    for _ in 0..VISITS {
        let Some(schema) = queue.pop_front() else { break };
        let further = VISITS.saturating_sub(queue.len());
        queue.extend(look(schema, root, &mut types).into_iter().take(further));
    }
    types.sort();
    types.dedup();
    types
}

/// Takes the types that a schema itself names, or gives the schemas that may name some.
fn look<'a>(schema: &'a Value, root: &'a Value, types: &mut Vec<Type>) -> Vec<&'a Value> {
    /// More alternatives than anybody would read.
    const MOST: usize = 64;
    let names: Vec<&str> = match &schema["type"] {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(Value::as_str).take(MOST).collect(),
        _ => Vec::new(),
    };
    let known = names.iter().filter_map(|name| Type::ALL.iter().find(|(known, _)| known == name));
    let before = types.len();
    types.extend(known.map(|(_, kind)| *kind));
    if types.len() > before {
        return Vec::new();
    }
    types.extend(schema.get("const").map(Type::of));
    types.extend(schema["enum"].as_array().into_iter().flatten().take(MOST).map(Type::of));
    let reference = schema["$ref"].as_str().and_then(|reference| root.pointer(reference.strip_prefix('#')?));
    let alternatives =
        ["anyOf", "oneOf", "allOf"].into_iter().flat_map(|key| schema[key].as_array().into_iter().flatten());
    reference.into_iter().chain(alternatives.take(MOST)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names(schema: &Value) -> Vec<&'static str> {
        types(schema, schema).into_iter().map(Type::name).collect()
    }

    #[test]
    fn types_are_found_wherever_they_stand() {
        assert_eq!(names(&json!({"type": "integer"})), ["integer"]);
        assert_eq!(names(&json!({"type": ["string", "null"]})), ["string", "null"]);
        assert_eq!(names(&json!({"anyOf": [{"type": "array"}, {"const": true}]})), ["boolean", "array"]);
        assert_eq!(names(&json!({"enum": ["a", 1]})), ["string", "integer"]);
        assert_eq!(names(&json!({"$ref": "#/$defs/n", "$defs": {"n": {"type": "number"}}})), ["number"]);
        assert!(names(&json!({"description": "anything"})).is_empty() && names(&json!(true)).is_empty());
    }

    #[test]
    fn a_schema_that_goes_in_circles_ends() {
        let branches: Vec<_> = (0..64).map(|_| json!({"$ref": "#"})).collect();
        assert!(names(&json!({"allOf": branches, "$ref": "#"})).is_empty());
    }
}
