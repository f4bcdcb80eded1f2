//! The hash of everything that a plugin's list of tools may depend on.

use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use lemon_process::lookup::{Search, resolve};
use lemon_protocol::{MCP_VERSIONS, ProtocolVersion};
use sha2::{Digest as _, Sha256};

use super::cache::OfferCache;
use crate::discovery::EnvValue;
use crate::discovery::trust::Contents;
use crate::host::Core;
use crate::host_api;
use crate::plugin::spec::PluginSpec;

/// Another number when what is remembered, or what counts, becomes another thing.
const FORMAT: u8 = 1;

/// A hash of a plugin's code, how it is started, and what it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key(String);

impl Key {
    /// None if it can't be known what the plugin is made of, or nothing can be kept in a cache. Reads all its files.
    pub(super) fn of(spec: &PluginSpec, cwd: &Path, core: &Core, cache: &OfferCache) -> Option<Self> {
        let mut hash = Hash(Sha256::new());
        hash.part([FORMAT]);
        hash.part(cache.salt()?);
        hash.part(code(spec)?);
        hash.list(&spec.command);
        hash.part(program(spec, core));
        hash.part(spec.cwd.as_ref().map(|cwd| cwd.as_os_str().as_encoded_bytes()).unwrap_or_default());
        // A plugin that has not said that its tools are the same everywhere may look around.
        if spec.manifest.as_ref().is_none_or(|file| file.manifest.tools_depend_on_cwd) {
            hash.part(cwd.as_os_str().as_encoded_bytes());
        }
        environment(spec, core, &mut hash);
        hash.part(serde_json::to_vec(&spec.config).ok()?);
        hash.list([env!("CARGO_PKG_VERSION"), std::env::consts::OS, std::env::consts::ARCH]);
        hash.list([&core.client.name, &core.client.version]);
        hash.list(MCP_VERSIONS);
        hash.list(ProtocolVersion::OFFERED.map(|version| version.to_string()));
        hash.list(host_api::METHODS.iter().filter(|method| spec.may_ask(method)));
        Some(Self(hash.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// Enough of it for the name of a file.
    pub(super) fn short(&self) -> &str {
        self.0.get(..32).unwrap_or(&self.0)
    }

    #[cfg(test)]
    pub(super) fn for_test(n: u8) -> Self {
        Self(format!("{n:064}"))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether a plugin's own files can be looked at. Those of one without a manifest are known only if it runs from a copy of
/// its own: a script in some folder may load what stands beside it. What a launcher runs is not there at all.
pub(super) fn is_code_known(spec: &PluginSpec) -> bool {
    !spec.is_launcher() && (spec.code.is_some() || spec.manifest.is_some())
}

fn code(spec: &PluginSpec) -> Option<String> {
    match (&spec.code, &spec.manifest) {
        (Some(code), _) => Some(code.to_string()),
        (None, Some(manifest)) => Some(Contents::of(&manifest.folder).ok()?.digest().to_string()),
        (None, None) => None,
    }
}

/// Which program runs it, and which version of that.
fn program(spec: &PluginSpec, core: &Core) -> String {
    let folder = spec.manifest.as_ref().map(|manifest| manifest.folder.clone());
    let cwd = folder.or_else(|| spec.cwd.clone()).unwrap_or_else(|| core.cwd.clone());
    let search = Search { path: std::env::var_os("PATH"), cwd, untrusted: core.untrusted.clone() };
    let program = spec.command.first().and_then(|program| resolve(program.as_ref(), &search).ok());
    let identity = program.and_then(|program| {
        let metadata = program.metadata().ok()?;
        Some(format!(
            "{} {} {}",
            program.display(),
            metadata.len(),
            metadata.mtime_nsec() + metadata.mtime() * 1_000_000_000
        ))
    });
    identity.unwrap_or_default()
}

/// What it gets beside the few variables that every plugin gets.
fn environment(spec: &PluginSpec, core: &Core, hash: &mut Hash) {
    for name in &spec.granted_env {
        hash.part(name);
        hash.part(std::env::var_os(name).unwrap_or_default().as_encoded_bytes());
    }
    for (name, value) in &spec.env {
        hash.part(name);
        match value {
            EnvValue::Literal(value) => hash.part(value),
            EnvValue::Secret(secret) => hash.list([secret, &core.secrets.get(secret).unwrap_or_default()]),
        }
    }
}

struct Hash(Sha256);

impl Hash {
    /// With its length before it, so that no two lists of parts are one sequence of bytes.
    fn part(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        self.0.update((bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
    }

    fn list(&mut self, parts: impl IntoIterator<Item = impl AsRef<[u8]>>) {
        let parts: Vec<_> = parts.into_iter().collect();
        self.0.update((parts.len() as u64).to_be_bytes());
        parts.into_iter().for_each(|part| self.part(part));
    }
}
