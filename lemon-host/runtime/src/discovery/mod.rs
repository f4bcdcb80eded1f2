//! Where plugins come from: config files and flags. Nothing here runs anything.

mod command;
mod config;

pub use command::{PluginCommand, PluginFlagError, parse_plugin_flag};
pub(crate) use config::secret_name;
pub use config::{
    CallTimeout, Config, ConfigError, ConfigProblem, ConfigWarning, EnvValue, Origin, PluginConfig, ProcessLimits,
};
