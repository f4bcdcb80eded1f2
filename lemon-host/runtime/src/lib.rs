//! The Lemon plugin host as a library.
//!
//! A [`Host`] starts plugins as processes of their own, supervises them, and puts their tools into one list. A
//! [`Session`] calls them. Nothing that a plugin does (crash, hang, flood, lie) harms the host or another plugin, and
//! whatever is refused, shadowed, failed or dropped is in the [`Status`] or an [`Event`].
//!
//! ```no_run
//! use lemon_host::{Class, Host, PluginSpec, SessionOptions};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let hello = PluginSpec::new("hello".parse()?, Class::Extension, ["python3", "hello.py"]);
//! let host = Host::builder().plugin(hello).start();
//! host.settled().await;
//! let session = host.session(SessionOptions::default());
//! let result = session.call("hello", r#"{"name": "World"}"#).await?;
//! for text in result.texts() {
//!     println!("{}", text.block());
//! }
//! host.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! The host runs on its caller's tokio runtime. A program that embeds it calls [`guard::init`] first in `main`, so that
//! its plugins end even when it is killed.
#![warn(missing_docs)]

mod arguments;
mod catalog;
mod discovery;
mod error;
mod event;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod host;
mod host_api;
mod limits;
mod nearest;
mod pipeline;
mod plugin;
mod random;
mod report;
mod schema;
mod seams;
mod session;
mod wire;

pub use arguments::ArgumentsFault;
pub use catalog::{
    Conflict, ConflictReport, Fingerprint, HiddenBy, HostTool, HostToolError, LoadError, ToolAnnotations, ToolCall,
    ToolFilter, ToolInfo, ToolRegistry, ToolSource,
};
pub use discovery::{
    CallTimeout, Candidate, CandidateError, Config, ConfigEdit, ConfigEditError, ConfigError, ConfigKey, ConfigProblem,
    ConfigWarning, EditError, EnvValue, Extensions, Form, Found, Held, HeldBecause, Ignored, ManifestError,
    ManifestFile, ManifestProblem, ManifestReport, NotLoadable, Origin, Place, PlaceKind, PluginCommand, PluginConfig,
    PluginFlagError, ProblemKind, ProcessLimits, Project, ProjectMay, Runtime, RuntimeConfig, RuntimeVariables, Scan,
    SecretPlace, SecretsEdit, SecretsError, Setting, SettingValue, Severity, StaleGate, StoredSecrets, Surroundings,
    admit_entry, dotted_key, entry_subject, manifests_in, parse_plugin_flag, scan, trust,
};
pub use error::{CallError, Callee, Phase, ProcessEnd, StartError};
pub use event::Event;
pub use host::{Host, HostBuilder};
pub use lemon_process::{ExitStatus, SpawnError, guard, lookup::LookupError};
pub use lemon_protocol::manifest;
pub use lemon_protocol::{Kind, NoCommonVersion, ProtocolVersion};
pub use limits::{Limits, Millis, Timeouts};
pub use pipeline::{Call, Progress, ProgressStream, TextCap, ToolResult};
pub use plugin::drift::{Drift, DriftKind};
pub use plugin::live::{Dialect, Quarantined};
pub use plugin::{
    Class, CommandError, ConfigSchema, Generation, Listed, PluginName, PluginNameError, PluginSpec, Provenance,
    StateKind,
};
pub use report::{
    FailureReport, Hidden, Loser, PluginStatus, PluginText, ProcessStatus, Redactor, SessionProcess, Shown, Status,
};
pub use schema::violation::Violation;
pub use seams::{
    Approval, Approver, CallRequest, Caller, DenyAll, Environment, EventSink, Gate, NoEvents, Secrets, Verdict,
};
pub use session::{Session, SessionOptions};
pub use wire::{Direction, NoiseReport, TraceLine, TraceSink};
