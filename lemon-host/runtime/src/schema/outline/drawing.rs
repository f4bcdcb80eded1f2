//! From a schema to its outline. A keyword that is not known here makes its place one for the validator.

use serde_json::{Map, Value};

use super::{Part, Types};

/// Names, and strings to choose from, are looked through one by one.
const MOST: usize = 64;
/// Whole numbers up to here are the same in every reader.
const GREATEST: i64 = 1_000_000_000_000_000;

/// How deep a schema is followed.
pub(super) const LEVELS: usize = 16;

/// What a place with this schema takes.
pub(super) fn part(schema: &Value, levels: usize) -> Part {
    match schema {
        Value::Bool(true) => Part::of(Types::ALL),
        Value::Object(members) if levels > 0 => known(members, levels - 1).unwrap_or(Part::of(Types::NONE)),
        _ => Part::of(Types::NONE),
    }
}

fn known(schema: &Map<String, Value>, levels: usize) -> Option<Part> {
    let mut part = Part::of(Types::ALL);
    let inner = |schema| self::part(schema, levels);
    if let Some(alternatives) = schema.get("anyOf") {
        part = alternatives.as_array()?.iter().map(inner).try_fold(Part::of(Types::NONE), either)?;
        // What stands beside them would have to hold as well.
        if !schema.keys().all(|keyword| keyword == "anyOf" || is_note(keyword)) {
            return None;
        }
    }
    for (keyword, value) in schema {
        match keyword.as_str() {
            "anyOf" => {}
            "type" => part.types = types(value)?,
            "properties" => {
                let members = value.as_object().filter(|members| members.len() <= MOST)?;
                part.members = members.iter().map(|(name, schema)| (name.as_str().into(), inner(schema))).collect();
            }
            // It is asked about members that are not declared only, and none of these is taken.
            "additionalProperties" => {}
            // Below, as it needs the names.
            "required" => {}
            "items" => part.items = Some(Box::new(inner(value))),
            "enum" => part.strings = Some(strings(value)?),
            "minimum" => part.numbers = Some((whole(value)?, part.numbers.map_or(i64::MAX, |(_, most)| most))),
            "maximum" => part.numbers = Some((part.numbers.map_or(i64::MIN, |(least, _)| least), whole(value)?)),
            "minLength" => part.characters.0 = size(value)?,
            "maxLength" => part.characters.1 = size(value)?,
            "minItems" => part.count.0 = size(value)?,
            "maxItems" => part.count.1 = size(value)?,
            keyword if is_note(keyword) => {}
            _ => return None,
        }
    }
    for name in schema.get("required").map_or(Some(&Vec::new()), Value::as_array)? {
        let number = part.members.iter().position(|(own, _)| Some(&**own) == name.as_str())?;
        part.required |= 1 << number;
    }
    if part.strings.is_some() {
        part.types = if part.types.has(Types::STRING) { Types::STRING } else { Types::NONE };
    }
    Some(part)
}

/// Whether a keyword decides nothing, in any dialect.
fn is_note(keyword: &str) -> bool {
    match keyword {
        "$comment" | "$schema" | "default" | "deprecated" | "description" | "examples" | "format" | "readOnly"
        | "title" | "writeOnly" => true,
        _ => keyword.starts_with("x-"),
    }
}

/// What takes what one of two takes, if their types are not the same.
fn either(mut one: Part, other: Part) -> Option<Part> {
    if one.types.meets(other.types) {
        return None;
    }
    one.types = one.types.and(other.types);
    if other.types.meets(Types::NUMBER) {
        one.numbers = other.numbers;
    }
    if other.types.meets(Types::STRING) {
        (one.characters, one.strings) = (other.characters, other.strings);
    }
    if other.types.meets(Types::ARRAY) {
        (one.count, one.items) = (other.count, other.items);
    }
    if other.types.meets(Types::OBJECT) {
        (one.members, one.required) = (other.members, other.required);
    }
    Some(one)
}

fn types(value: &Value) -> Option<Types> {
    let named = |value: &Value| {
        Some(match value.as_str()? {
            "null" => Types::NULL,
            "boolean" => Types::BOOLEAN,
            "integer" => Types::INTEGER,
            "number" => Types::NUMBER,
            "string" => Types::STRING,
            "array" => Types::ARRAY,
            "object" => Types::OBJECT,
            _ => return None,
        })
    };
    match value {
        Value::Array(types) => types.iter().try_fold(Types::NONE, |all, value| Some(all.and(named(value)?))),
        value => named(value),
    }
}

fn strings(value: &Value) -> Option<Vec<Box<str>>> {
    let values = value.as_array().filter(|values| values.len() <= MOST)?;
    values.iter().map(|value| value.as_str().map(Into::into)).collect()
}

fn whole(value: &Value) -> Option<i64> {
    value.as_i64().filter(|number| (-GREATEST..=GREATEST).contains(number))
}

fn size(value: &Value) -> Option<usize> {
    usize::try_from(value.as_u64()?).ok()
}
