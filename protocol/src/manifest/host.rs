//! How an extension is run, and where.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::requests::Argv;
use crate::version::ProtocolVersion;

/// A way to run an extension: a type, or an object with the type and the command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "HostForm")]
pub struct HostDeclaration {
    /// What runs it.
    #[serde(rename = "type")]
    pub kind: HostType,
    /// The program and its arguments, for no shell; empty where none was given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
}

/// The two forms of a host.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum HostForm {
    Type(HostType),
    Whole {
        /// What runs it.
        #[serde(rename = "type")]
        kind: HostType,
        /// The program and its arguments, for no shell. `${extension_dir}`, `${workspace}` and `${data_dir}` are
        /// replaced. A program with a `/` is one of the extension's folder, one without is looked for in PATH.
        #[serde(default)]
        #[schemars(with = "Option<Argv>")]
        command: Vec<String>,
    },
}

impl From<HostForm> for HostDeclaration {
    fn from(form: HostForm) -> Self {
        match form {
            HostForm::Type(kind) => Self { kind, command: Vec::new() },
            HostForm::Whole { kind, command } => Self { kind, command },
        }
    }
}

/// What runs an extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum HostType {
    /// A process that speaks Lemon's protocol.
    External,
    /// A process that is an MCP server.
    Mcp,
    /// A WebAssembly component. No host of this version runs one.
    Wasm,
    /// Modules for the BEAM virtual machine. No host of this version runs them.
    Beam,
}

impl HostType {
    /// The names in a manifest.
    pub const NAMES: [&str; 4] = ["external", "mcp", "wasm", "beam"];

    /// The name in a manifest.
    pub const fn as_str(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Whether it is a process of the host's, which needs a command.
    pub const fn is_process(self) -> bool {
        matches!(self, Self::External | Self::Mcp)
    }
}

impl fmt::Display for HostType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The versions of Lemon's protocol from `min` to `max`, or one alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "RangeForm")]
pub struct ProtocolRange {
    /// The oldest one.
    pub min: ProtocolVersion,
    /// The newest one.
    pub max: ProtocolVersion,
}

/// The two forms of a range of versions.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum RangeForm {
    One(ProtocolVersion),
    Whole {
        /// The oldest version.
        min: ProtocolVersion,
        /// The newest version; the same as `min` if it is not said.
        #[serde(default)]
        max: Option<ProtocolVersion>,
    },
}

impl From<RangeForm> for ProtocolRange {
    fn from(form: RangeForm) -> Self {
        match form {
            RangeForm::One(version) => Self { min: version, max: version },
            RangeForm::Whole { min, max } => Self { min, max: max.unwrap_or(min) },
        }
    }
}

impl ProtocolRange {
    /// Whether a version is one of these.
    pub fn contains(&self, version: ProtocolVersion) -> bool {
        self.min <= version && version <= self.max
    }
}

impl fmt::Display for ProtocolRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.min == self.max {
            true => write!(f, "{}", self.min),
            false => write!(f, "{} to {}", self.min, self.max),
        }
    }
}

/// An operating system, alone or with a processor: `linux`, `macos-aarch64`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Platform(
    #[schemars(regex(pattern = "^(linux|macos|windows|freebsd)(-(x86_64|aarch64|x86|arm|riscv64))?$"))] pub String,
);

impl Platform {
    /// The operating systems.
    pub const SYSTEMS: [&str; 4] = ["linux", "macos", "windows", "freebsd"];
    /// The processors.
    pub const PROCESSORS: [&str; 5] = ["x86_64", "aarch64", "x86", "arm", "riscv64"];

    /// Whether the name is that of a platform.
    pub fn is_known(&self) -> bool {
        let (system, processor) = self.parts();
        Self::SYSTEMS.contains(&system) && processor.is_none_or(|processor| Self::PROCESSORS.contains(&processor))
    }

    /// Whether it is this operating system on this processor, as [`std::env::consts`] name them.
    pub fn is(&self, system: &str, processor: &str) -> bool {
        let (own_system, own_processor) = self.parts();
        own_system == system && own_processor.is_none_or(|own| own == processor)
    }

    fn parts(&self) -> (&str, Option<&str>) {
        match self.0.split_once('-') {
            Some((system, processor)) => (system, Some(processor)),
            None => (&self.0, None),
        }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
