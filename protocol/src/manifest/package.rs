//! Where an extension comes from and what is known of it: metadata that the host only passes on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where an extension comes from: a source, or an object with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "DistributionForm")]
pub struct Distribution {
    /// The sort of place.
    pub source: DistributionSource,
    /// The place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// The two forms of a distribution.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum DistributionForm {
    Source(DistributionSource),
    Whole {
        /// The sort of place.
        #[serde(alias = "type")]
        source: DistributionSource,
        /// The place.
        #[serde(default)]
        url: Option<String>,
    },
}

impl From<DistributionForm> for Distribution {
    fn from(form: DistributionForm) -> Self {
        match form {
            DistributionForm::Source(source) => Self { source, url: None },
            DistributionForm::Whole { source, url } => Self { source, url },
        }
    }
}

/// The sorts of places that extensions come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum DistributionSource {
    /// A folder.
    Local,
    /// A git repository.
    Git,
    /// A repository on GitHub.
    Github,
    /// A registry of extensions.
    Registry,
    /// An archive.
    Archive,
}

impl DistributionSource {
    /// The names in a manifest.
    pub const NAMES: [&str; 5] = ["local", "git", "github", "registry", "archive"];

    /// The name in a manifest.
    pub const fn as_str(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// What a review came to: a status, or an object with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "AuditForm")]
pub struct Audit {
    /// The outcome.
    pub status: AuditStatus,
}

/// The two forms of an audit.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum AuditForm {
    Status(AuditStatus),
    Whole {
        /// The outcome.
        status: AuditStatus,
    },
}

impl From<AuditForm> for Audit {
    fn from(form: AuditForm) -> Self {
        match form {
            AuditForm::Status(status) | AuditForm::Whole { status } => Self { status },
        }
    }
}

/// The outcomes of a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum AuditStatus {
    /// Not done yet.
    Pending,
    /// Nothing was found.
    Passed,
    /// Something was found.
    Warn,
    /// It must not be used.
    Blocked,
    /// Nobody knows.
    Unknown,
}

impl AuditStatus {
    /// The names in a manifest.
    pub const NAMES: [&str; 5] = ["pending", "passed", "warn", "blocked", "unknown"];

    /// The name in a manifest.
    pub const fn as_str(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}
