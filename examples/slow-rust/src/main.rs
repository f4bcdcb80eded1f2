//! A tool that takes its time: it tells how far it is, shows what it has, and stops when nobody wants the rest.

use std::time::Duration;

use lemon_plugin_sdk::{Context, JsonSchema, Plugin, ServeError, ToolError, ToolOutput};

#[derive(serde::Deserialize, JsonSchema)]
struct Count {
    /// How far to count.
    to: u32,
    /// How long each number takes, in milliseconds.
    #[serde(default = "half_a_second")]
    pause_ms: u64,
}

fn half_a_second() -> u64 {
    500
}

async fn count(args: Count, ctx: Context) -> Result<String, ToolError> {
    if args.to > 1_000_000 {
        return Err("a million is far enough".into());
    }
    let mut counted = String::new();
    for number in 1..=args.to {
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(args.pause_ms)) => {}
            () = ctx.cancelled() => return Err("cancelled".into()),
        }
        counted += &format!("{number} ");
        ctx.progress(number, args.to, format!("counted to {number}"));
        // Made only where it is shown: all of it each time would take ever longer.
        ctx.partial_with(|| ToolOutput::text(counted.trim_end()));
    }
    Ok(counted.trim_end().to_owned())
}

fn main() -> Result<(), ServeError> {
    Plugin::new("slow", env!("CARGO_PKG_VERSION"))
        .multi_session(true)
        .tool("count", "Counts slowly, from one.", count)
        .run()
}
