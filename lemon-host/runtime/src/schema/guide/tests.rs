use serde_json::json;

use super::*;

/// The types at a place, by a path of member names.
fn types(schema: &Value, path: &[&str]) -> Option<Vec<&'static str>> {
    types_in(Draft::Draft202012, schema, path)
}

fn types_in(dialect: Draft, schema: &Value, path: &[&str]) -> Option<Vec<&'static str>> {
    let guide = Guide::of(schema, dialect);
    let mut shape = guide.shape(Guide::ROOT).unwrap();
    for name in path {
        shape = guide.shape(shape.inner(name)?)?;
    }
    shape.types.as_ref().map(|types| types.iter().map(|kind| kind.name()).collect())
}

#[test]
fn alternatives_allow_what_any_of_them_allows() {
    let v = |schema: Value| json!({ "properties": { "v": schema } });
    let of = |keyword: &str, branches: Value| types(&json!({ keyword: branches }), &["v"]);
    let (integer, string) = (v(json!({ "type": "integer" })), v(json!({ "type": "string" })));
    for keyword in ["anyOf", "oneOf"] {
        assert_eq!(of(keyword, json!([integer, string])), Some(vec!["integer", "string"]));
        assert_eq!(of(keyword, json!([integer, {}])), None, "an alternative that says nothing allows all");
        assert_eq!(of(keyword, json!([integer, { "allOf": [string] }])), Some(vec!["integer", "string"]));
        let closed = json!({ "properties": { "w": {} }, "additionalProperties": false });
        assert_eq!(of(keyword, json!([integer, closed])), Some(vec!["integer"]), "one that refuses it says nothing");
    }
    let number = v(json!({ "type": ["number", "string"] }));
    assert_eq!(of("allOf", json!([integer, number])), Some(vec!["integer"]));
    let both = json!({ "allOf": [number], "anyOf": [integer, v(json!({ "type": "boolean" }))] });
    assert_eq!(types(&both, &["v"]), Some(vec!["integer"]));
}

#[test]
fn what_holds_on_a_condition_decides_no_types_and_declares_names() {
    let v = json!({ "properties": { "v": { "type": "integer" } } });
    for schema in [
        json!({ "if": {}, "then": v }),
        json!({ "if": {}, "else": v }),
        json!({ "dependentSchemas": { "a": v } }),
        json!({ "anyOf": [{ "if": {}, "then": v }, true] }),
    ] {
        assert_eq!(types(&schema, &["v"]), None, "{schema}");
        assert!(Guide::of(&schema, Draft::Draft202012).shape(Guide::ROOT).unwrap().member("v").is_some());
    }
    let sure = json!({ "properties": { "v": { "type": ["string", "integer"] } }, "if": {}, "then": v });
    assert_eq!(types(&sure, &["v"]), Some(vec!["string", "integer"]));
}

#[test]
fn a_dialect_decides_what_a_keyword_means() {
    let beside = json!({ "properties": { "v": { "$ref": "#/$defs/d", "type": "integer" } }, "$defs": { "d": { "type": ["integer", "string"] } } });
    assert_eq!(types_in(Draft::Draft7, &beside, &["v"]), Some(vec!["integer", "string"]));
    assert_eq!(types(&beside, &["v"]), Some(vec!["integer"]));
    let only = json!({ "properties": { "v": { "const": 1 } } });
    assert_eq!((types_in(Draft::Draft4, &only, &["v"]), types(&only, &["v"])), (None, Some(vec!["integer"])));
}
