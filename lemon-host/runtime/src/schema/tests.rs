use std::sync::Arc;

use lemon_protocol::Tool;
use serde_json::{Value, json};

use super::*;

fn tool(schema: Value) -> Arc<Tool> {
    Arc::new(serde_json::from_value(json!({ "name": "tool", "inputSchema": schema })).unwrap())
}

#[tokio::test]
async fn a_tool_is_compiled_once_and_the_latest_ones_are_kept() {
    let limits = Limits { compiled_schemas: 2, ..Limits::default() };
    let cache = SchemaCache::default();
    let tools: Vec<_> = (0..3).map(|at| tool(json!({ "type": "object", "minProperties": at }))).collect();
    let first = cache.of(&tools[0], &limits).await;
    assert!(Arc::ptr_eq(&first, &cache.of(&tools[0], &limits).await));
    cache.of(&tools[1], &limits).await;
    cache.of(&tools[0], &limits).await;
    cache.of(&tools[2], &limits).await;
    assert_eq!(cache.len(), 2);
    assert!(Arc::ptr_eq(&first, &cache.of(&tools[0], &limits).await), "the one not used makes room");
    drop(tools);
    cache.of(&tool(json!({ "type": "object" })), &limits).await;
    assert_eq!(cache.len(), 1, "tools that are gone are forgotten");
}

#[tokio::test]
async fn a_tool_listed_anew_has_its_own_schema() {
    let (cache, limits) = (SchemaCache::default(), Limits::default());
    for least in 0..50 {
        let tool = tool(json!({ "type": "object", "minProperties": least }));
        let compiled = cache.of(&tool, &limits).await;
        let node = Node::read("{}").unwrap();
        assert_eq!(compiled.schema().unwrap().validate(&node, 1, None).is_ok(), least == 0);
    }
}
