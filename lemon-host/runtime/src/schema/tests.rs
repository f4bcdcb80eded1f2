use std::sync::Arc;

use lemon_protocol::Tool;
use serde_json::{Value, json};

use super::*;
use crate::catalog::ToolSource;

fn tool(schema: Value) -> Arc<Tool> {
    Arc::new(serde_json::from_value(json!({ "name": "tool", "inputSchema": schema })).unwrap())
}

#[tokio::test]
async fn a_tool_is_compiled_once_and_the_latest_ones_are_kept() {
    let limits = Limits { compiled_schemas: 2, ..Limits::default() };
    let cache = SchemaCache::default();
    let tools: Vec<_> = (0..3).map(|at| tool(json!({ "type": "object", "minProperties": at }))).collect();
    let first = cache.of(&tools[0], &ToolSource::Builtin, &limits).await;
    assert!(Arc::ptr_eq(&first, &cache.of(&tools[0], &ToolSource::Builtin, &limits).await));
    cache.of(&tools[1], &ToolSource::Builtin, &limits).await;
    cache.of(&tools[0], &ToolSource::Builtin, &limits).await;
    cache.of(&tools[2], &ToolSource::Builtin, &limits).await;
    assert_eq!(cache.len(), 2);
    assert!(
        Arc::ptr_eq(&first, &cache.of(&tools[0], &ToolSource::Builtin, &limits).await),
        "the one not used makes room"
    );
    drop(tools);
    cache.of(&tool(json!({ "type": "object" })), &ToolSource::Builtin, &limits).await;
    assert_eq!(cache.len(), 1, "tools that are gone are forgotten");
}

#[tokio::test]
async fn a_tool_listed_anew_has_its_own_schema() {
    let (cache, limits) = (SchemaCache::default(), Limits::default());
    for least in 0..50 {
        let tool = tool(json!({ "type": "object", "minProperties": least }));
        let compiled = cache.of(&tool, &ToolSource::Builtin, &limits).await;
        let node = Node::read("{}").unwrap();
        assert_eq!(compiled.schema().unwrap().is_valid(&node, 1, Effort::AT_ONCE), Ok(least == 0));
    }
}

#[tokio::test]
async fn a_schema_is_checked_once_and_its_unused_parts_count_as_well() {
    let (limits, share) = (Limits::default(), Share::default());
    let small = json!({ "type": "object", "properties": { "x": { "type": "integer" } } });
    bounds::CHECKS.set(0);
    Schema::compile(&small, &limits, Patterns::Ignore, &share).await.unwrap();
    assert_eq!(bounds::CHECKS.get(), 1);
    let unused: serde_json::Map<_, _> = (0..5000).map(|at| (format!("d{at}"), json!({ "type": "integer" }))).collect();
    bounds::CHECKS.set(0);
    Schema::compile(&json!({ "$defs": unused }), &limits, Patterns::Ignore, &share).await.unwrap();
    assert_eq!(bounds::CHECKS.get(), 0, "it is read on another thread");
}

#[tokio::test]
async fn ignored_patterns_are_told_once_in_one_text() {
    let patterns: Vec<_> = (0..8).map(|at| json!({ "pattern": format!("(?={at})") })).collect();
    let tool = tool(json!({ "type": "object", "properties": { "x": { "allOf": patterns } } }));
    let compiled = SchemaCache::default().of(&tool, &ToolSource::Builtin, &Limits::default()).await;
    let told = compiled.untold_note().unwrap();
    assert!(told.starts_with("8 patterns are not checked, as they are malformed"), "{told}");
    assert!(told.ends_with(r#": "(?=0)", "(?=1)", "(?=2)", "(?=3)", "(?=4)", 3 more"#), "{told}");
    assert_eq!(compiled.untold_note(), None);
}

#[tokio::test]
async fn what_passes_the_check_can_be_compiled() {
    let limits = Limits::default();
    let compiled = async |schema: &Value| Schema::compile(schema, &limits, Patterns::Ignore, &Share::default()).await;
    let draft_4 = "http://json-schema.org/draft-04/schema#";
    for odd in [
        json!({ "$id": "no address {" }),
        json!({ "$schema": draft_4, "id": "no address {" }),
        referred_to(json!({ "type": "string" })),
        // A pattern that is none, and one that takes more than the least room.
        referred_to(json!({ "type": "string", "pattern": "+" })),
        referred_to(json!({ "type": "string", "pattern": "(a|b|[c-z]{20}){100}" })),
        // One that needs no room, but for the one beside it.
        json!({ "patternProperties": { format!("^{}", "a".repeat(200)): true, "(a+b+)+": true } }),
    ] {
        assert!(check(&odd, &limits).is_ok() && compiled(&odd).await.is_ok(), "{odd}");
    }
    // A part that only a reference makes a schema.
    let wrong = referred_to(json!({ "type": "thing" }));
    let no_schema = json!({ "title": "x", "not": { "$ref": "#/title" } });
    for bad in [wrong, no_schema] {
        let fault = check(&bad, &limits).unwrap_err();
        assert_eq!(compiled(&bad).await.err(), Some(fault), "{bad}");
    }
}

/// A schema with a part that only a reference makes one.
fn referred_to(part: Value) -> Value {
    json!({ "components": { "a b": part }, "type": "object", "properties": { "p": { "$ref": "#/components/a%20b" } } })
}

#[tokio::test]
async fn a_part_that_only_a_reference_makes_a_schema_is_read_like_any_other() {
    let compiled = async |part| {
        let schema = referred_to(part);
        Schema::compile(&schema, &Limits::default(), Patterns::Ignore, &Share::default()).await.unwrap()
    };
    let malformed = compiled(json!({ "type": "string", "pattern": "+" })).await;
    assert_eq!(malformed.ignored_patterns(), ["+"]);
    let metered = compiled(json!({ "pattern": "^[a-z]{500}$" })).await;
    assert!(metered.pattern_bytes > 0);
    let nullable = compiled(json!({ "type": "string", "nullable": true })).await;
    let takes = |text| nullable.is_valid(&Node::read(text).unwrap(), 2, Effort::AT_ONCE).unwrap();
    assert!(takes(r#"{"p":null}"#) && !takes(r#"{"p":1}"#));
}
