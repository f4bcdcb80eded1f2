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
