//! Whether this host, on this machine, can run an extension.

use lemon_protocol::ProtocolVersion;
use lemon_protocol::manifest::{HostDeclaration, HostType, Manifest, ProtocolRange};

/// Why a valid manifest is that of an extension which can't be run here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotLoadable {
    /// The manifest does not say how the extension is run.
    #[error("it does not say how it is run: `host` with a `command` is missing, so the manifest is metadata only")]
    NoHost,
    /// The extension is a WebAssembly component.
    #[error(
        "it can't be loaded yet: it is a WebAssembly component (host type wasm), and this version of lemon runs processes only"
    )]
    Wasm,
    /// The extension is a set of modules for another virtual machine.
    #[error(
        "it can't be loaded yet: it is made of BEAM modules (host type beam), which need the Erlang virtual machine; this version of lemon runs processes only"
    )]
    Beam,
    /// The extension does not run on such a machine.
    #[error("it is not for this machine: it runs on {wanted}, this is {here}")]
    Platform {
        /// The platforms that it names.
        wanted: String,
        /// This machine's.
        here: String,
    },
    /// The extension and the host have no version of the protocol in common.
    #[error("it speaks Lemon {wanted}, this lemon {here}; upgrade the {older}")]
    Protocol {
        /// The versions that it names.
        wanted: ProtocolRange,
        /// The host's, best first.
        here: String,
        /// The side that has to be upgraded.
        older: &'static str,
    },
}

/// The way to run the extension that is taken, or why there is none.
pub(super) fn host(manifest: &Manifest) -> Result<&HostDeclaration, NotLoadable> {
    let process = manifest.hosts().find(|host| host.kind.is_process() && !host.command.is_empty());
    let Some(host) = process else {
        return Err(match manifest.hosts().next().map(|host| host.kind) {
            Some(HostType::Wasm) => NotLoadable::Wasm,
            Some(HostType::Beam) => NotLoadable::Beam,
            _ => NotLoadable::NoHost,
        });
    };
    let (system, processor) = (std::env::consts::OS, std::env::consts::ARCH);
    if !manifest.platforms.is_empty() && !manifest.platforms.iter().any(|platform| platform.is(system, processor)) {
        let wanted = manifest.platforms.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        return Err(NotLoadable::Platform { wanted, here: format!("{system}-{processor}") });
    }
    let ours = ProtocolVersion::OFFERED;
    // An MCP server need not speak Lemon at all.
    if let Some(wanted) = manifest.protocol.filter(|_| host.kind == HostType::External)
        && !ours.iter().any(|version| wanted.contains(*version))
    {
        let older = if ours.iter().all(|version| *version < wanted.min) { "host" } else { "extension" };
        let here = ours.map(|version| version.to_string()).join(", ");
        return Err(NotLoadable::Protocol { wanted, here, older });
    }
    Ok(host)
}
