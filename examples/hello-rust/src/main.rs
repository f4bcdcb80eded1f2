//! A whole Lemon plugin in Rust: one typed tool.

use lemon_plugin_sdk::{JsonSchema, Plugin, ServeError};

#[derive(serde::Deserialize, JsonSchema)]
struct Greet {
    /// Whom to greet.
    name: String,
}

fn main() -> Result<(), ServeError> {
    Plugin::new("hello", env!("CARGO_PKG_VERSION"))
        .tool("greet", "Greets someone.", async |args: Greet, _ctx| format!("Hello, {}!", args.name))
        .run()
}
