use std::time::{Duration, Instant};

use serde_json::{Map, json};

use super::*;

fn verdict(schema: Value) -> Result<usize, SchemaFault> {
    check(&schema, &Limits::default()).map(|(bounds, _)| bounds.nodes)
}

/// A chain of definitions, each made from the reference to the next one.
fn chain(links: usize, link: impl Fn(&Value) -> Value) -> Value {
    let mut definitions = Map::new();
    for at in 0..links {
        definitions.insert(format!("d{at}"), link(&json!({ "$ref": format!("#/$defs/d{}", at + 1) })));
    }
    definitions.insert(format!("d{links}"), json!({ "type": "string" }));
    json!({ "$defs": definitions, "$ref": "#/$defs/d0" })
}

fn recursive(node: Value) -> Value {
    json!({ "$defs": { "n": node }, "$ref": "#/$defs/n" })
}

fn is_branching(node: Value) -> bool {
    matches!(verdict(recursive(node)), Err(SchemaFault::Branching { .. }))
}

#[test]
fn an_ordinary_schema_passes_with_its_references_expanded() {
    let nodes = verdict(json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://example.com/config",
        "type": "object",
        "required": ["url"],
        "properties": {
            "url": { "type": "string", "format": "uri" },
            "$ref": { "enum": ["a", "b"], "default": "a" },
            "primary": { "$ref": "#/$defs/server" },
            "backup": { "$ref": "#/$defs/server" },
        },
        "$defs": { "server": { "properties": { "port": { "type": "integer", "default": { "$ref": "no reference" } } } } },
    }));
    // The root's own 7, url 3, "$ref" 5, two references of 2 and the server's 6 for each.
    assert_eq!(nodes, Ok(31));
    assert_eq!(verdict(json!(true)), Ok(1));
}

#[test]
fn doubled_references_are_counted_without_following_each() {
    let doubled = |reference: &Value| json!({ "allOf": [reference, reference] });
    let start = Instant::now();
    for links in [14, 30, 40] {
        assert_eq!(verdict(chain(links, doubled)), Err(SchemaFault::Nodes));
    }
    assert!(start.elapsed() < Duration::from_millis(200), "{:?}", start.elapsed());
    assert!(verdict(chain(10, doubled)).is_ok());
}

#[test]
fn a_value_may_nest_as_deep_as_the_caller_likes() {
    assert!(verdict(json!({ "$defs": { "n": { "properties": { "next": { "$ref": "#/$defs/n" } } } } })).is_ok());
    assert!(verdict(json!({ "properties": { "next": { "$ref": "#" } } })).is_ok());
    let tree = json!({ "properties": { "left": { "$ref": "#/$defs/n" }, "right": { "$ref": "#/$defs/n" } } });
    assert!(verdict(recursive(tree)).is_ok());
    let any_json = json!({ "anyOf": [
        { "type": ["string", "number", "boolean", "null"] },
        { "type": "array", "items": { "$ref": "#/$defs/n" } },
        { "type": "object", "additionalProperties": { "$ref": "#/$defs/n" } },
    ] });
    assert!(verdict(recursive(any_json)).is_ok());
    let filter = json!({ "$defs": {
        "filter": { "oneOf": [{ "$ref": "#/$defs/and" }, { "$ref": "#/$defs/not" }, { "type": "string" }] },
        "and": { "properties": { "and": { "items": { "$ref": "#/$defs/filter" } } } },
        "not": { "properties": { "not": { "$ref": "#/$defs/filter" } } },
    }, "properties": { "one": { "$ref": "#/$defs/filter" }, "two": { "$ref": "#/$defs/filter" } } });
    assert!(verdict(filter).is_ok());
}

#[test]
fn a_cycle_on_two_paths_through_the_same_value_is_refused() {
    let back = json!({ "$ref": "#/$defs/n" });
    let down = json!({ "properties": { "x": back } });
    assert!(is_branching(json!({ "allOf": [down, down] })));
    assert!(is_branching(json!({ "properties": { "x": { "allOf": [back, back] } } })));
    assert!(is_branching(json!({ "properties": { "x": back }, "patternProperties": { "x": back } })));
    assert!(is_branching(json!({ "items": back, "contains": back })));
    assert!(is_branching(
        json!({ "properties": { "x": back }, "additionalProperties": { "properties": { "x": back } } })
    ));
    assert!(is_branching(json!({ "properties": { "x": { "properties": { "x": back } } }, "if": down })));
    // Not doubled at any one turn, yet two cycles in a row multiply: each turn of the first may enter the second.
    let chained = json!({ "$defs": {
        "m": { "properties": { "x": { "$ref": "#/$defs/m" } } },
        "n": { "properties": { "x": { "allOf": [{ "$ref": "#/$defs/m" }, { "$ref": "#/$defs/n" }] } } },
    } });
    assert_eq!(verdict(chained), Err(SchemaFault::Branching { reference: "#/$defs/m".into() }));
}

#[test]
fn references_that_go_round_without_entering_the_value_are_refused() {
    let endless = |schema| matches!(verdict(schema), Err(SchemaFault::Endless { .. }));
    assert!(endless(json!({ "$ref": "#" })));
    assert!(endless(json!({ "anyOf": [{ "not": { "$ref": "#" } }] })));
    assert!(endless(json!({ "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } } })));
    let through_one = json!({ "$defs": { "a": { "items": { "$ref": "#/$defs/b" } }, "b": { "$ref": "#/$defs/a" } } });
    assert!(!endless(through_one));
}

#[test]
fn size_and_depth_are_limited() {
    let limits = Limits::default();
    let long = json!({ "description": "x".repeat(300 * 1024) });
    assert_eq!(verdict(long), Err(SchemaFault::Size { limit: limits.schema_bytes }));
    assert_eq!(verdict(json!({ "enum": vec![0; NODES] })), Err(SchemaFault::Nodes));
    let nested = |levels| (0..levels).fold(json!(true), |inner, _| json!({ "not": inner }));
    assert!(verdict(nested(64)).is_ok());
    assert_eq!(verdict(nested(65)), Err(SchemaFault::Depth { limit: 64 }));
    // `nullable` puts the schema beside it two levels deeper.
    let nullable = |levels| (0..levels).fold(json!(true), |inner, _| json!({ "nullable": true, "not": inner }));
    assert!(verdict(nullable(21)).is_ok());
    assert_eq!(verdict(nullable(22)), Err(SchemaFault::Depth { limit: 64 }));
    // A chain of references is as deep a stack as nesting is.
    assert_eq!(verdict(chain(100, |next| json!({ "oneOf": [next] }))), Err(SchemaFault::Depth { limit: 64 }));
    assert!(verdict(chain(100, |next| json!({ "properties": { "x": next } }))).is_ok());
}

#[test]
fn a_schema_that_refers_to_all_of_its_parts_is_not_read_for_ever() {
    let deep = (0..50).fold(json!({ "enum": vec![0; 30_000] }), |inner, _| json!({ "not": inner }));
    let references: Vec<_> = (0..50).map(|at| json!({ "$ref": format!("#/x{}", "/not".repeat(at)) })).collect();
    assert_eq!(verdict(json!({ "x": deep, "$defs": { "all": { "anyOf": references } } })), Err(SchemaFault::Nodes));
}

#[test]
fn references_are_followed_as_pointers_and_anchors() {
    let refers = |reference: &str| {
        verdict(json!({
            "$defs": { "a/b~c%d e": { "$anchor": "named" }, "two": [{ "$anchor": "twice" }, { "$anchor": "twice" }] },
            "properties": { "x": { "$ref": reference } },
        }))
    };
    for good in ["#", "#named", "#/$defs/a~1b~0c%25d%20e", "#/%24defs/two/1"] {
        assert!(refers(good).is_ok(), "{good}");
    }
    for bad in [
        "#none",
        "#twice",
        "#/$defs/none",
        "#/$defs/a/b~c%25d e",
        "#/$defs/two/2",
        "#/$defs/two/01",
        "#/%ff",
        "#/$defs/two",
    ] {
        assert_eq!(refers(bad), Err(SchemaFault::Missing { reference: bad.into() }));
    }
    for far in ["", "other.json", "https://example.com/s#/a", "file:///etc/passwd", "/$defs/x"] {
        assert_eq!(refers(far), Err(SchemaFault::External { reference: far.into() }));
    }
}

#[test]
fn an_anchor_counts_where_the_dialect_looks_for_it_and_nowhere_else() {
    let refers = |dialect: &str, place: &str, keyword: &str| {
        let dialect = format!("https://json-schema.org/{dialect}/schema");
        let named = json!({ "x": { keyword: "name" } });
        verdict(json!({ "$schema": dialect, place: named, "properties": { "p": { "$ref": "#name" } } })).is_ok()
    };
    let newest = "draft/2020-12";
    assert!(refers(newest, "$defs", "$anchor") && refers(newest, "$defs", "$dynamicAnchor"));
    assert!(refers("draft/2019-09", "$defs", "$anchor") && !refers("draft/2019-09", "$defs", "$dynamicAnchor"));
    assert!(!refers("draft-07", "definitions", "$anchor"));
    for no_place in ["$(defs", "default", "dependencies", "x"] {
        assert!(!refers(newest, no_place, "$anchor"), "{no_place}");
    }
    let tuple = |keyword| {
        let dialect = format!("https://json-schema.org/{keyword}/schema");
        let items = json!([{ "$anchor": "name" }]);
        verdict(json!({ "$schema": dialect, "prefixItems": items, "not": { "$ref": "#name" } })).is_ok()
    };
    assert!(tuple(newest) && !tuple("draft/2019-09"));
}

#[test]
fn what_changes_the_meaning_of_references_is_refused() {
    let keyword = "$dynamicRef";
    assert_eq!(verdict(json!({ "items": { "$dynamicRef": "#n" } })), Err(SchemaFault::Dynamic { keyword }));
    let keyword = "$recursiveRef";
    assert_eq!(verdict(json!({ "$defs": { "x": { "$recursiveRef": "#" } } })), Err(SchemaFault::Dynamic { keyword }));
    let embedded = |keyword| Err(SchemaFault::Embedded { keyword });
    assert_eq!(verdict(json!({ "$defs": { "x": { "$id": "https://example.com/x" } } })), embedded("$id"));
    let draft_4 = "http://json-schema.org/draft-04/schema#";
    assert_eq!(verdict(json!({ "$schema": draft_4, "not": { "id": "x" } })), embedded("id"));
    assert_eq!(verdict(json!({ "not": { "$schema": draft_4, "id": "x" } })), embedded("$schema"));
    assert!(verdict(json!({ "$schema": draft_4, "id": "http://example.com/x", "properties": { "id": {} } })).is_ok());
    // It only looks like draft 4, and is read as the newest one.
    let alike = "https://example.com/draft-04/schema";
    assert_eq!(verdict(json!({ "$schema": alike, "not": { "$id": "https://example.com/x" } })), embedded("$id"));
    let through = json!({ "x": { "$id": "https://example.com/x", "y": true }, "not": { "$ref": "#/x/y" } });
    assert_eq!(verdict(through), embedded("$id"));
}

#[test]
fn a_nest_of_unevaluated_members_is_refused_before_it_doubles_for_ever() {
    let nest = |levels| {
        let leaf = json!({ "properties": { "a": { "type": "string" } } });
        (0..levels).fold(leaf, |inner, _| json!({ "allOf": [inner], "unevaluatedProperties": false }))
    };
    assert!(verdict(nest(4)).is_ok());
    assert_eq!(verdict(nest(20)), Err(SchemaFault::Nodes));
    let through = chain(20, |next| json!({ "anyOf": [next], "unevaluatedItems": false }));
    assert_eq!(verdict(through), Err(SchemaFault::Nodes));
    let down = json!({ "properties": { "x": { "$ref": "#/$defs/n" } } });
    assert!(is_branching(json!({ "allOf": [down], "unevaluatedProperties": false })));
    assert!(verdict(recursive(json!({ "properties": down["properties"], "unevaluatedProperties": false }))).is_ok());
}
