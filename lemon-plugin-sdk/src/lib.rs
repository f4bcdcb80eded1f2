//! Write a Lemon plugin, which is an MCP server too, in ten lines:
//!
//! ```no_run
//! use lemon_plugin_sdk::{JsonSchema, Plugin, ServeError};
//!
//! #[derive(serde::Deserialize, JsonSchema)]
//! struct Greet {
//!     /// Whom to greet.
//!     name: String,
//! }
//!
//! fn main() -> Result<(), ServeError> {
//!     Plugin::new("hello", env!("CARGO_PKG_VERSION"))
//!         .tool("greet", "Greets someone.", async |args: Greet, _ctx| format!("Hello, {}!", args.name))
//!         .run()
//! }
//! ```
//!
//! Beside this crate it needs `serde` and `schemars`, whose derives give the tool its schema: doc comments become
//! descriptions, a field with a default is optional. `lemon --plugin target/debug/hello call greet name=Ann` tries it,
//! and any MCP client can start the same program.
//!
//! - A handler returns a text, [`Json`] for a value with a schema, or a [`ToolOutput`], or a `Result` of one of these:
//!   an error becomes a failure that the model reads. So do arguments that do not fit, and panics.
//! - Its [`Context`] has cancellation, progress, partial results, logs, the [`Session`], the configuration and the
//!   [`Host`], whose tools it may call.
//! - State is whatever a closure captures, in an [`Arc`](std::sync::Arc) for example; see [`Tool::new`].
//! - [`Plugin::test_client`] tests all of it without a process; see [`testing`].
//!
//! Calls run side by side, each as a task of its own. Handlers that block their thread are made with
//! [`Tool::blocking`]. Printing is harmless: it goes to stderr, as does the output of child processes.
#![warn(missing_docs)]

#[cfg(not(unix))]
compile_error!("lemon-plugin-sdk needs the pipes, signals and processes of a Unix");

mod config;
mod connection;
mod context;
mod definition;
mod error;
mod excerpt;
mod host;
mod output;
mod plugin;
mod progress;
mod read;
mod result;
mod schema;
mod session;
mod stdio;
pub mod testing;
mod tool;

pub use context::{Context, Level};
pub use error::{ConfigError, HostError, ServeError, ToolError};
pub use host::Host;
/// The errors of the protocol. These two are `lemon-protocol`'s own types: JSON-RPC has fixed the one for good, and the
/// other is the table of the specification, which may grow.
pub use lemon_protocol::{ErrorObject, Kind};
pub use output::{Content, IntoToolOutput, Json, Resource, ResourceBody, ToolOutput};
pub use plugin::Plugin;
pub use progress::{Amount, Total};
pub use result::{CallResult, ToolInfo};
/// The derive and the trait that give a type its schema.
pub use schemars::JsonSchema;
pub use session::{Session, SessionInfo};
pub use tool::{NoArgs, Tool};
