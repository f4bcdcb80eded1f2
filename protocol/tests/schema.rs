//! The checked-in schema is the one that the types give, and is itself a valid schema.

use serde_json::Value;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/schema/lemon-protocol-1.0.schema.json");

#[test]
fn the_checked_in_schema_is_fresh() {
    let found = std::fs::read_to_string(PATH).unwrap();
    let fresh = format!("{:#}\n", lemon_protocol::schema::document());
    assert!(found == fresh, "{PATH} is stale; run: cargo run -p lemon-protocol --example generate");
}

#[test]
fn the_checked_in_schema_of_manifests_is_fresh_and_valid() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/schema/lemon-extension-1.schema.json");
    let document = lemon_protocol::manifest::schema::document();
    let found = std::fs::read_to_string(path).unwrap();
    assert!(found == format!("{document:#}\n"), "{path} is stale; run: cargo run -p lemon-protocol --example generate");
    jsonschema::meta::validate(&document).unwrap();
    let definitions = document["$defs"].as_object().unwrap().iter();
    for (name, definition) in definitions.chain(document["properties"].as_object().unwrap()) {
        assert!(definition.get("description").is_some_and(Value::is_string), "{name} has no description");
    }
}

#[test]
fn every_definition_is_a_valid_schema_with_a_description() {
    let document = lemon_protocol::schema::document();
    jsonschema::meta::validate(&document).unwrap();
    for (name, definition) in document["$defs"].as_object().unwrap() {
        assert!(definition.get("description").is_some_and(Value::is_string), "{name} has no description");
    }
}
