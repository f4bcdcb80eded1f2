//! What can be read off a tool's schema at a glance: which arguments there are, and of which types.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::Value;

/// How many references and alternatives are followed: schemas come from plugins and may go in circles.
const VISITS: usize = 256;

/// More alternatives than anybody would read.
const MOST: usize = 64;

/// One argument of a tool.
pub(crate) struct Argument<'a> {
    pub(crate) name: &'a str,
    pub(crate) required: bool,
    pub(crate) schema: &'a Value,
}

/// The arguments, the required ones first. What only an alternative requires is not required.
pub(crate) fn arguments<'a>(schema: &'a Value, root: &'a Value) -> Vec<Argument<'a>> {
    let mut arguments: Vec<Argument<'a>> = Vec::new();
    let mut places = HashMap::new();
    for Part { schema, holds } in parts(schema, root) {
        let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let required: HashSet<&str> = required.filter(|_| holds).collect();
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            let place = *places.entry(name).or_insert(arguments.len());
            let required = required.contains(name.as_str());
            match arguments.get_mut(place) {
                Some(argument) => argument.required |= required,
                None => arguments.push(Argument { name, required, schema }),
            }
        }
    }
    arguments.sort_by_key(|argument| !argument.required);
    arguments
}

/// The schema of a list's items, if it is one for all.
pub(crate) fn items<'a>(schema: &'a Value, root: &'a Value) -> Option<&'a Value> {
    said(schema, root, "items").filter(|items| items.is_object())
}

/// The first that a schema says under a key.
pub(crate) fn said<'a>(schema: &'a Value, root: &'a Value, key: &str) -> Option<&'a Value> {
    parts(schema, root).into_iter().find_map(|part| part.schema.get(key))
}

/// The values that a schema lists.
pub(crate) fn choices<'a>(schema: &'a Value, root: &'a Value) -> Vec<&'a Value> {
    let of = |schema: &'a Value| schema["enum"].as_array().into_iter().flatten().chain(schema.get("const"));
    parts(schema, root).into_iter().flat_map(|part| of(part.schema)).collect()
}

/// The types in words, with those of a list's items.
pub(crate) fn kind(schema: &Value, root: &Value) -> String {
    /// Lists of lists of lists.
    const DEPTH: usize = 3;
    kind_to(schema, root, DEPTH)
}

fn kind_to(schema: &Value, root: &Value, depth: usize) -> String {
    let types = types(schema, root);
    let items = items(schema, root).filter(|_| depth > 0).map(|items| kind_to(items, root, depth - 1));
    let name = |kind: &Type| match (kind, &items) {
        (Type::Array, Some(items)) => format!("array of {items}"),
        (kind, _) => kind.name().to_owned(),
    };
    if types.is_empty() { "anything".to_owned() } else { types.iter().map(name).collect::<Vec<_>>().join("|") }
}

/// A schema that says something of a value.
#[derive(Clone, Copy)]
struct Part<'a> {
    schema: &'a Value,
    /// Whether it holds in any case, and is not one of several alternatives.
    holds: bool,
}

/// A schema and all others that it says of the same value, by reference or as an alternative, itself first.
fn parts<'a>(schema: &'a Value, root: &'a Value) -> Vec<Part<'a>> {
    let mut parts = vec![Part { schema, holds: true }];
    let mut next = 0;
    while let Some(part) = parts.get(next).copied() {
        next += 1;
        for further in further(part.schema, root) {
            if parts.len() < VISITS && !parts.iter().any(|known| std::ptr::eq(known.schema, further.schema)) {
                parts.push(Part { holds: part.holds && further.holds, ..further });
            }
        }
    }
    parts
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
    further(schema, root).into_iter().map(|part| part.schema).collect()
}

/// The schemas that one refers to, and its alternatives.
fn further<'a>(schema: &'a Value, root: &'a Value) -> Vec<Part<'a>> {
    let reference = schema["$ref"].as_str().and_then(|reference| root.pointer(reference.strip_prefix('#')?));
    let several = |key: &str| schema[key].as_array().into_iter().flatten();
    let all = reference.into_iter().chain(several("allOf"));
    let any = several("anyOf").chain(several("oneOf"));
    let all = all.map(|schema| Part { schema, holds: true });
    all.chain(any.map(|schema| Part { schema, holds: false })).take(MOST).collect()
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
    fn items_choices_and_members_are_found_as_well() {
        let schema = json!({
            "required": ["list"],
            "properties": {
                "list": {"type": "array", "items": {"$ref": "#/$defs/maybe"}},
                "lists": {"items": {"type": "array", "items": {}}, "type": ["array", "null"]},
            },
            "anyOf": [{"required": ["other"], "properties": {"other": true}}],
            "$defs": {"maybe": {"anyOf": [{"enum": ["a", "b"]}, {"type": "null"}, {"const": 1}]}},
        });
        let arguments = arguments(&schema, &schema);
        let shown: Vec<_> = arguments
            .iter()
            .map(|argument| (argument.name, argument.required, kind(argument.schema, &schema)))
            .collect();
        let kinds = [
            ("list", true, "array of string|integer|null".to_owned()),
            ("lists", false, "array of array of anything|null".to_owned()),
            ("other", false, "anything".to_owned()),
        ];
        assert_eq!(shown, kinds);
        let items = items(arguments[0].schema, &schema).unwrap();
        assert_eq!(choices(items, &schema), [&json!("a"), &json!("b"), &json!(1)]);
    }

    #[test]
    fn a_schema_that_goes_in_circles_ends() {
        let branches: Vec<_> = (0..64).map(|_| json!({"$ref": "#"})).collect();
        assert!(names(&json!({"allOf": branches, "$ref": "#"})).is_empty());
    }
}
