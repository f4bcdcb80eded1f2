//! One plugin's life.
//!
//! [`PluginSpec`] says what to start. A [`Plugin`] has a supervisor for each of its processes, the only one to change a
//! plugin's state: the pure `machine` decides, the `actor` carries out. Each process is a [`Generation`].

mod actor;
mod breaker;
mod configuration;
mod generation;
mod handshake;
mod instances;
mod launch;
pub(crate) mod live;
mod machine;
mod name;
mod spec;
mod state;
mod supervisor;
mod watch;

pub use generation::Generation;
pub(crate) use instances::Plugin;
pub use name::{PluginName, PluginNameError};
pub use spec::{Class, PluginSpec, Provenance};
pub(crate) use state::Command;
pub use state::{CommandError, StateKind};
