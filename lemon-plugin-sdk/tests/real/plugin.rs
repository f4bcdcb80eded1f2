//! The plugin under test.

use std::time::Duration;

use lemon_plugin_sdk::{Context, JsonSchema, Level, NoArgs, Plugin, ToolOutput};

#[derive(serde::Deserialize, JsonSchema)]
struct Text {
    text: String,
}

#[derive(serde::Deserialize, JsonSchema)]
struct Config {
    #[serde(default)]
    #[expect(dead_code, reason = "that it is declared is enough")]
    retries: u32,
}

pub(crate) fn run() {
    let mut plugin = Plugin::new("test", "1.0.0")
        .multi_session(true)
        .instructions("Use it in tests.")
        .config::<Config>()
        .tool("echo", "Says the same.", async |args: Text, _: Context| args.text)
        .tool("print", "Prints, and has a child print.", async |_: NoArgs, _: Context| {
            println!("printed by the plugin");
            print!("a line without its end");
            let read = std::io::stdin().lines().count();
            let child = std::process::Command::new("echo").arg("printed by a child").status();
            format!("{read} lines, {}", child.unwrap().success())
        })
        .tool("panic", "Panics.", async |args: Text, _: Context| -> String { panic!("{}", args.text) })
        .tool("hang", "Never ends, and looks at nothing.", async |_: NoArgs, ctx: Context| {
            ctx.progress(1, None, "hanging");
            std::future::pending::<()>().await
        })
        .tool("block", "Blocks the thread.", async |_: NoArgs, _: Context| {
            eprintln!("blocking");
            std::thread::sleep(Duration::from_secs(1000));
        })
        .tool("soon", "Ends when it is cancelled.", async |_: NoArgs, ctx: Context| {
            ctx.cancelled().await;
            ToolOutput::text("as soon as I could")
        })
        .tool("state", "Says what the session's state is.", async |_: NoArgs, ctx: Context| {
            serde_json::to_string(&ctx.session().unwrap().state().as_deref()).unwrap()
        })
        .tool("ask", "Asks the host for its tools.", async |_: NoArgs, ctx: Context| match ctx.host().tools().await {
            Ok(tools) => format!("{} tools", tools.len()),
            Err(error) => format!("{:?}: {error}", error.kind()),
        })
        .tool("log", "Logs.", async |args: Text, ctx: Context| {
            ctx.log(Level::Info, &args.text);
            ctx.log(Level::Error, &args.text);
        });
    if std::env::var_os("BROKEN").is_some() {
        plugin = plugin.tool("broken", "Takes no object.", async |_: u32, _: Context| ());
    }
    if let Err(error) = plugin.run() {
        eprintln!("Error: {error:?}");
        std::process::exit(1);
    }
}
