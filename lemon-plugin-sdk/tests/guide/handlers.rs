//! Parts of plugins that the guide shows alone.

use std::sync::Arc;

use lemon_plugin_sdk::testing::Client;
use lemon_plugin_sdk::{Context, JsonSchema, Plugin, ToolError, ToolOutput};
use serde_json::json;

#[derive(serde::Deserialize, JsonSchema)]
struct Find {
    text: String,
}

struct Db(Vec<&'static str>);

impl Db {
    async fn find(&self, text: &str) -> Result<String, ToolError> {
        let found = self.0.iter().find(|note| note.contains(text));
        found.map(|note| (*note).to_owned()).ok_or_else(|| "there is no such note".into())
    }
}

fn plugin(db: Arc<Db>) -> Plugin {
    Plugin::new("notes", "1.0.0").tool("find", "Finds a note.", move |args: Find, _ctx: Context| {
        let db = db.clone();
        async move { db.find(&args.text).await }
    })
}

#[derive(serde::Deserialize, JsonSchema)]
struct Index {
    files: Vec<String>,
}

async fn index(args: Index, ctx: Context) -> Result<String, ToolError> {
    let mut lines = 0;
    for (done, file) in args.files.iter().enumerate() {
        ctx.progress(done, args.files.len(), file);
        lines += tokio::fs::read_to_string(ctx.cwd().join(file)).await?.lines().count();
        ctx.partial_with(|| ToolOutput::text(format!("{lines} lines so far")));
    }
    Ok(format!("{lines} lines"))
}

#[tokio::test]
async fn a_closure_captures_what_it_needs() {
    let client = plugin(Arc::new(Db(vec!["buy lemons"]))).test_client().await.unwrap();
    assert_eq!(client.call("find", json!({"text": "lemon"})).await.unwrap().text(), "buy lemons");
    assert!(client.call("find", json!({"text": "lime"})).await.unwrap().is_error());
}

#[tokio::test]
async fn a_slow_tool_shows_what_it_has() {
    let plugin = Plugin::new("index", "1.0.0").tool("index", "Counts lines.", index);
    let client = Client::builder().cwd(env!("CARGO_MANIFEST_DIR")).connect(plugin).await.unwrap();
    let done = client.start("index", json!({"files": ["Cargo.toml", "src/lib.rs"]})).finished().await;
    assert!(done.outcome.unwrap().text().ends_with(" lines"));
    assert!(done.progress.iter().any(|seen| seen.message.as_deref() == Some("src/lib.rs")));
    assert!(done.progress.iter().any(|seen| seen.partial.is_some()));
}
