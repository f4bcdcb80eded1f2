//! Where plugins come from: config files and flags. Nothing here runs anything.

mod bound_entry;
mod candidate;
mod command;
mod config;
mod editing;
mod extensions;
mod manifest;
mod places;
mod project;
mod scan;
mod secrets;
mod stale_gate;
pub mod trust;

pub(crate) use bound_entry::BoundEntry;
pub use bound_entry::{admit_entry, entry_subject};
pub use candidate::{Candidate, CandidateError};
pub use command::{PluginCommand, PluginFlagError, parse_plugin_flag};
pub(crate) use config::secret_name;
pub use config::{
    CallTimeout, Config, ConfigEdit, ConfigEditError, ConfigError, ConfigKey, ConfigProblem, ConfigWarning, EnvValue,
    Origin, PluginConfig, ProcessLimits, ProjectMay, RuntimeConfig, Setting, SettingValue, dotted_key,
};
pub use editing::EditError;
pub use extensions::{Extensions, Held, HeldBecause};
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use manifest::check as check_manifest;
pub use manifest::{
    ManifestError, ManifestFile, ManifestProblem, ManifestReport, NotLoadable, ProblemKind, Severity, manifests_in,
};
pub use places::{Place, PlaceKind, Runtime, RuntimeVariables};
pub use project::{Project, Surroundings};
pub use scan::{Form, Found, Ignored, Scan, scan};
pub use secrets::{SecretPlace, SecretsEdit, SecretsError, StoredSecrets};
pub use stale_gate::StaleGate;
