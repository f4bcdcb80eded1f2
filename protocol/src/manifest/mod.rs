//! The manifest of an extension: what a folder with a plugin says of it before any of its code runs.
//!
//! These are the types of `lemon_extension.json`, version 1, as `docs/manifest.md` describes them. They take what a
//! valid manifest says; finding all that is wrong with another one, with the place of each fault, is the host's work.
//! Keys of two words are read in `snake_case` and `camelCase`; unknown keys are skipped.

mod host;
mod offers;
mod package;
mod placeholder;
mod requests;
pub mod schema;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use host::{HostDeclaration, HostType, Platform, ProtocolRange};
pub use offers::{
    CommandDeclaration, FailurePolicy, HookDeclaration, HookEvent, HookMode, ProviderDeclaration, ProviderType,
};
pub use package::{Audit, AuditStatus, Distribution, DistributionSource};
pub use placeholder::{Placeholder, PlaceholderFault, expand, placeholders};
pub use requests::{EnvRequest, Permission, Reason};

use crate::tools::Tool;

/// The names that a manifest may have. Of several in one folder the first counts.
pub const FILE_NAMES: [&str; 3] = ["lemon_extension.json", "extension.json", ".lemon-extension.json"];

/// The largest manifest, in bytes.
pub const MAX_BYTES: usize = 256 * 1024;

/// How deep a manifest may nest.
pub const MAX_DEPTH: usize = 64;

/// The longest name of an extension, in characters.
pub const MAX_NAME: usize = 64;

/// The version of the manifest's own form.
pub const SCHEMA_VERSION: u64 = 1;

/// Keys that have two names: the one that these types write, then the other.
pub const SPELLINGS: [(&str, &str); 6] = [
    ("schema_version", "schemaVersion"),
    ("config_schema", "configSchema"),
    ("multiSession", "multi_session"),
    ("toolsDependOnCwd", "tools_depend_on_cwd"),
    ("timeoutMs", "timeout_ms"),
    ("source", "type"),
];

/// What an extension's folder says of it: `lemon_extension.json`, `extension.json` or `.lemon-extension.json`.
///
/// What a manifest declares in `tools`, `hooks`, `permissions` and `env` is the most that the running plugin gets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// The schema that an editor holds this file against.
    #[serde(rename = "$schema", default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The version of the manifest's form: 1.
    #[serde(rename = "schema_version", alias = "schemaVersion")]
    pub schema_version: SchemaVersion,
    /// The extension's identity: up to 64 of `a-z`, `0-9`, `.`, `_` and `-`, beginning with a letter or digit.
    #[schemars(regex(pattern = "^[a-z0-9][a-z0-9._-]{0,63}$"))]
    pub name: String,
    /// The extension's version, in a form of its own.
    #[schemars(regex(pattern = r"\S"))]
    pub version: String,
    /// What the extension is for, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// How the extension is run: a type, or an object with the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostDeclaration>,
    /// Further ways to run the extension; the first that this host knows is taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostDeclaration>,
    /// Commands that build the extension, one after the other in its folder. They run when a user adds or trusts the
    /// extension, never when a session starts. `${extension_dir}` and `${data_dir}` are replaced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<requests::Argv>")]
    pub build: Vec<Vec<String>>,
    /// The versions of Lemon's protocol that the extension speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<ProtocolRange>,
    /// Where the extension runs; everywhere if it is not said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub platforms: Vec<Platform>,
    /// One process may serve many sessions.
    #[serde(default, alias = "multi_session", skip_serializing_if = "Option::is_none")]
    pub multi_session: Option<bool>,
    /// Two processes of the extension must never run at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclusive: Option<bool>,
    /// The list of tools is another one in another folder, so it can't be known before.
    #[serde(default, alias = "tools_depend_on_cwd", skip_serializing_if = "is_false")]
    pub tools_depend_on_cwd: bool,
    /// Tools that may be called again when a call was lost on its way: twice does what once does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub idempotent: Vec<String>,
    /// Variables of the user's environment that the extension wants, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<BTreeMap<String, EnvRequest>>,
    /// What the extension asks of the host while it runs, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<requests::Permissions>")]
    pub permissions: Option<BTreeMap<Permission, Reason>>,
    /// All tools of the extension, as `tools/list` gives them, so that no process is needed to list them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Tool>>,
    /// All commands for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commands: Option<Vec<CommandDeclaration>>,
    /// All events that the extension wants to see or to decide on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hooks: Option<Vec<HookDeclaration>>,
    /// The JSON Schema of the extension's configuration. `"secret": true` marks what is not to be shown.
    #[serde(rename = "config_schema", alias = "configSchema", default, skip_serializing_if = "Option::is_none")]
    pub config_schema: Option<Value>,
    /// Words for what the extension does, by which lists can be filtered: `tools`, `hooks` and the like.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<requests::Text>")]
    pub capabilities: Vec<String>,
    /// What the extension provides beside tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub providers: Vec<ProviderDeclaration>,
    /// Where the extension comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distribution: Option<Distribution>,
    /// What a review of the extension came to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<Audit>,
}

impl Manifest {
    /// Reads a manifest that is known to be valid.
    ///
    /// # Errors
    /// The first thing that can't be taken.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// All ways to run the extension, `host` first.
    pub fn hosts(&self) -> impl Iterator<Item = &HostDeclaration> {
        self.host.iter().chain(&self.hosts)
    }
}

/// The version of a manifest's form, as a number or as its digits in quotes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SchemaVersion {
    /// A number.
    Number(u64),
    /// A text.
    Text(String),
}

impl SchemaVersion {
    /// Whether it is the version that these types describe.
    pub fn is_known(&self) -> bool {
        match self {
            Self::Number(number) => *number == SCHEMA_VERSION,
            Self::Text(text) => *text == SCHEMA_VERSION.to_string(),
        }
    }
}

impl JsonSchema for SchemaVersion {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "SchemaVersion".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let text = SCHEMA_VERSION.to_string();
        schemars::json_schema!({ "description": "The version of a manifest's form.", "enum": [SCHEMA_VERSION, text] })
    }
}

fn is_false(value: &bool) -> bool {
    !value
}
