//! The plugin under test.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use lemon_plugin_sdk::{Context, JsonSchema, Level, NoArgs, Plugin, Tool, ToolOutput};
use tokio::sync::Notify;

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
            ctx.progress(1, (), "hanging");
            std::future::pending::<()>().await
        })
        .tool("block", "Blocks the thread.", async |_: NoArgs, _: Context| {
            eprintln!("blocking");
            std::thread::sleep(Duration::from_secs(1000));
        })
        .tool("stuck", "Waits for whoever reads stderr.", async |_: NoArgs, _: Context| {
            print!("what waits for the end of its line");
            while std::io::stderr().write_all(&[b'x'; 1 << 16]).is_ok() {}
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
    if std::env::var_os(crate::process::MAIN).is_some() {
        return with_a_runtime(plugin);
    }
    if let Err(error) = plugin.run() {
        eprintln!("Error: {error:?}");
        std::process::exit(1);
    }
}

/// What `#[tokio::main]` makes of a program; it stops serving when it is told to.
fn with_a_runtime(plugin: Plugin) {
    let enough = Arc::new(Notify::new());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let blocking = Tool::blocking("block_thread", "Blocks a thread.", |_: NoArgs, _: Context| {
            eprintln!("blocking");
            std::thread::sleep(Duration::from_secs(1000));
        });
        let give_up = {
            let enough = enough.clone();
            move |_: NoArgs, _: Context| {
                enough.notify_one();
                std::future::ready(())
            }
        };
        let plugin = plugin.add_tool(blocking).tool("give_up", "Serves no longer.", give_up);
        tokio::select! {
            outcome = plugin.serve() => outcome.unwrap(),
            () = enough.notified() => {}
        }
    });
    eprintln!("served");
}
