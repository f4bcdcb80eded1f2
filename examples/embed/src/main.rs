//! A program that has plugins: it brings a tool of its own along, starts a plugin, guards both, and calls them.

use std::{future::ready, pin::Pin};

use lemon_host::{
    CallRequest, Class, Gate, Host, HostTool, PluginSpec, SessionOptions, TextCap, ToolCall, Verdict, guard,
};
use serde_json::{Value, json};

/// Nobody is greeted by a bad name.
struct Manners;

impl Gate for Manners {
    fn name(&self) -> &str {
        "manners"
    }

    fn review<'a>(&'a self, request: CallRequest<'a>) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        // Read, not searched: JSON can write one name in many ways.
        let rude = serde_json::from_str(request.arguments.get()).is_ok_and(|given: Value| given["name"] == "blockhead");
        Box::pin(ready(if rude { Verdict::block("be kind") } else { Verdict::Allow }))
    }
}

#[tokio::main(flavor = "current_thread")]
#[expect(clippy::print_stdout, reason = "it is what the example is for")]
async fn main() -> anyhow::Result<()> {
    // First of all: plugins end with this program, even when it is killed.
    guard::init();

    let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] });
    let count = HostTool::new("count", "Counts characters", schema, |call: ToolCall| async move {
        call.arguments::<Value>().map(|given| given["text"].as_str().map_or(0, |text| text.chars().count()).to_string())
    })?;
    let hello = concat!(env!("CARGO_MANIFEST_DIR"), "/../hello-python/hello.py");
    let host = Host::builder()
        .builtin(count)
        .plugin(PluginSpec::new("hello".parse()?, Class::Extension, ["python3", hello]))
        .gate(Manners)
        .start();
    host.settled().await;

    let session = host.session(SessionOptions::default());
    for tool in session.tools() {
        println!("{} of {}", tool.name, tool.source);
    }
    for (tool, arguments) in [
        ("count", r#"{"text": "lemon"}"#),
        ("hello", r#"{"name": "World"}"#),
        ("hello", r#"{"name": "\u0062lockhead"}"#),
    ] {
        match session.call(tool, arguments).cap(TextCap::new(60_000)).await {
            Ok(result) => result.texts().for_each(|text| println!("{}", text.block())),
            Err(error) => println!("{error}"),
        }
    }
    host.shutdown().await;
    Ok(())
}
