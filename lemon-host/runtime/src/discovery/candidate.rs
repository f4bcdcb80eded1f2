//! What a user is asked to trust, and what trusting it does.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lemon_protocol::manifest::HookDeclaration;

use super::extensions::{manifest, spec, subject, with_source};
use super::manifest::ManifestFile;
use super::scan::{Form, Found};
use super::trust::{self, Build, BuildError, Grant, SnapshotError, Subject, TrustError, TrustState, TrustStore};
use crate::plugin::{PluginName, PluginSpec};

/// An extension with what a user wants to see before it is trusted. Nothing of it has run.
///
/// All that is shown of it is read from a copy of the files that trust will be bound to, and that copy is what runs: the
/// folder may change at any moment, and be one thing for whoever looks and another one for whoever runs it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Candidate {
    /// Where it was found.
    pub found: Found,
    /// What trust is bound to.
    pub subject: Subject,
    /// How the user stands to it now.
    pub state: TrustState,
    /// How it would be run.
    pub spec: PluginSpec,
    copy: PathBuf,
}

/// Why a plugin was not trusted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CandidateError {
    /// It can't be copied.
    #[error(transparent)]
    Copy(#[from] SnapshotError),
    /// It can't be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// It can't be written down.
    #[error(transparent)]
    Store(#[from] TrustError),
}

impl Candidate {
    /// What a user is asked about. The copy is made in `home`, Lemon's home folder. Reads all files.
    ///
    /// # Errors
    /// Why it can't be trusted as it is.
    pub fn of(found: Found, store: &TrustStore, home: &Path) -> Result<Self, String> {
        let subject = subject(&found)?;
        let copy = trust::copy(home, &found.path, &subject.files).map_err(|error| with_source(&error))?;
        let spec = manifest(&found, &copy).and_then(|manifest| spec(&found, &copy, manifest));
        let spec = spec.inspect_err(|_| trust::sweep_copy(home, &subject.files, store))?;
        let state = store.state(&subject);
        Ok(Self { found, subject, state, spec, copy })
    }

    /// What it is called.
    pub fn name(&self) -> &PluginName {
        &self.spec.name
    }

    /// What its folder says of it.
    pub fn manifest(&self) -> Option<&Arc<ManifestFile>> {
        self.spec.manifest.as_ref()
    }

    /// The program and its arguments, as its manifest has them, or for the file where it was found.
    pub fn command(&self) -> &[String] {
        match &self.found.form {
            Form::File(argv) => argv,
            Form::Folder => &self.spec.command,
        }
    }

    /// Whether it asks to stop calls of tools.
    pub fn is_gate(&self) -> bool {
        self.manifest()
            .and_then(|file| file.manifest.hooks.as_ref())
            .into_iter()
            .flatten()
            .any(HookDeclaration::is_gate)
    }

    /// The commands that build it.
    pub fn build(&self) -> &[Vec<String>] {
        self.manifest().map_or(&[], |file| &file.manifest.build)
    }

    /// Does not trust it: the copy goes, unless it is one of a plugin that is trusted.
    pub fn leave(self, home: &Path, store: &TrustStore) {
        trust::sweep_copy(home, &self.subject.files, store);
    }

    /// Trusts it as it was looked at: builds it if it has to be built, and writes the trust down. Of `env`, what its
    /// manifest asks for is granted. `lines` takes what the build writes, and from `untrusted` folders no program of a build
    /// is run by its bare name.
    ///
    /// # Errors
    /// Why nothing of that happened.
    pub async fn trust(
        self,
        home: &Path,
        mut env: Vec<String>,
        untrusted: Vec<PathBuf>,
        lines: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<(), CandidateError> {
        let wanted = self.manifest().and_then(|file| file.manifest.env.as_ref());
        env.retain(|name| wanted.is_some_and(|wanted| wanted.contains_key(name)));
        let built = if self.build().is_empty() {
            None
        } else {
            let data = home.join("data").join(self.spec.name.as_str());
            let build = Build { home, plugin: &self.copy, contents: &self.subject.files, data, untrusted };
            match build.run(self.build(), Arc::new(lines)).await {
                Ok(built) => Some(built),
                Err(error) => {
                    TrustStore::read(home).iter().for_each(|store| trust::sweep_copy(home, &self.subject.files, store));
                    return Err(error.into());
                }
            }
        };
        let grant = Grant { env, gate: self.is_gate(), built };
        let Self { subject, spec: PluginSpec { name, .. }, .. } = self;
        TrustStore::edit(home, |store| {
            let files = subject.files.clone();
            store.trust(name, subject, grant);
            trust::sweep_copy(home, &files, store);
            trust::sweep(home, store);
        })?;
        Ok(())
    }
}
