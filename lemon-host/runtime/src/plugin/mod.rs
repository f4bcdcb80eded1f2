//! One plugin's life.
//!
//! [`PluginSpec`] says what to start. A [`Plugin`] has a supervisor for each of its processes, the only one to change a
//! plugin's state: the pure `machine` decides, the `actor` carries out. Each process is a [`Generation`].

mod actor;
mod breaker;
mod config_schema;
mod configuration;
pub(crate) mod drift;
mod generation;
pub(crate) mod handshake;
mod instances;
mod launch;
pub(crate) mod live;
mod machine;
mod name;
mod offers;
mod spec;
mod state;
mod supervisor;
mod watch;

pub use config_schema::ConfigSchema;
pub use generation::Generation;
pub(crate) use instances::Plugin;
pub use name::{PluginName, PluginNameError};
pub use offers::Listed;
pub use spec::{Class, PluginSpec, Provenance};
pub(crate) use state::Command;
pub use state::{CommandError, StateKind};
