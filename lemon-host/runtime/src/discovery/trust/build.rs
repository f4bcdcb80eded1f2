//! The build of a plugin, in a folder of the store. It runs when a user trusts the plugin, and at no other time.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lemon_process::lookup::{LookupError, Search, resolve};
use lemon_process::stderr::{Filter, StderrSink, StderrTail, drain};
use lemon_process::{ExitStatus, ProcessSpec, ResourceLimits, SpawnError, Spawner, environment_base};
use lemon_protocol::manifest::{Placeholder, expand, placeholders};

use super::contents::Contents;
use super::snapshot::{self, SnapshotError};
use crate::report::PluginText;

/// How much of what a step of a build wrote is told when it fails.
const TAIL: usize = 16 * 1024;

/// Takes each line that a build writes.
pub(crate) type Lines = Arc<dyn Fn(&str) + Send + Sync>;

/// Why a plugin was not built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// There is no folder to build it in.
    #[error(transparent)]
    Folder(#[from] SnapshotError),
    /// A placeholder of a step can't be replaced.
    #[error("`{step}`: {reason}")]
    Placeholder {
        /// The step.
        step: PluginText,
        /// Why.
        reason: String,
    },
    /// The program of a step is not there.
    #[error("`{step}`: {source}")]
    NoProgram {
        /// The step.
        step: PluginText,
        /// Where it was sought.
        source: LookupError,
    },
    /// A step can't be started.
    #[error("`{step}`: {source}")]
    Spawn {
        /// The step.
        step: PluginText,
        /// What the system said.
        source: SpawnError,
    },
    /// A step failed.
    #[error("`{step}` failed: {status}; it ended with:\n{output}")]
    Failed {
        /// The step.
        step: PluginText,
        /// How it ended.
        status: ExitStatus,
        /// The end of what it wrote.
        output: PluginText,
    },
}

/// Where and with what a plugin is built.
pub(crate) struct Build<'a> {
    /// Lemon's home folder.
    pub(crate) home: &'a Path,
    /// The plugin's folder, and what was found in it.
    pub(crate) plugin: &'a Path,
    pub(crate) contents: &'a Contents,
    /// The plugin's own folder for data.
    pub(crate) data: PathBuf,
    /// Folders from which no program is run by its bare name.
    pub(crate) untrusted: Vec<PathBuf>,
}

impl Build<'_> {
    /// Runs the steps one after the other in a fresh copy; the result is that folder's name in the store. If a step
    /// fails, or the future is dropped, nothing is left of it.
    pub(crate) async fn run(self, steps: &[Vec<String>], lines: Lines) -> Result<String, BuildError> {
        let folder = Unfinished(snapshot::to_build(self.home, self.plugin, self.contents)?);
        let spawner = Spawner::new();
        for step in steps {
            self.step(&folder.0, step, &spawner, &lines).await?;
        }
        Ok(folder.seal())
    }

    async fn step(&self, folder: &Path, step: &[String], spawner: &Spawner, lines: &Lines) -> Result<(), BuildError> {
        let shown = || PluginText::new(step.join(" "));
        let argv = self.argv(folder, step).map_err(|reason| BuildError::Placeholder { step: shown(), reason })?;
        let (program, args) = argv.split_first().map_or(("", &[][..]), |(program, args)| (program.as_str(), args));
        let search =
            Search { path: std::env::var_os("PATH"), cwd: folder.to_owned(), untrusted: self.untrusted.clone() };
        let mut env = environment_base(std::env::vars_os());
        env.retain(|(key, _)| key != "PATH");
        env.push(("PATH".into(), search.trusted_path()));
        let program =
            resolve(program.as_ref(), &search).map_err(|source| BuildError::NoProgram { step: shown(), source })?;
        let spec = ProcessSpec {
            name: format!("build of {}", self.plugin.display()),
            program,
            args: args.iter().map(OsString::from).collect(),
            cwd: folder.to_owned(),
            env,
            limits: ResourceLimits::default(),
        };
        let mut process = spawner.spawn(&spec).map_err(|source| BuildError::Spawn { step: shown(), source })?;
        let control = process.control();
        // A build that asks gets no answer.
        drop(process.stdin.take());
        let tail = StderrTail::new(TAIL);
        let both = [process.stdout.take(), process.stderr.take()].into_iter().flatten().map(|pipe| {
            let lines = lines.clone();
            let filter: Filter = Arc::new(move |line| {
                lines(line);
                Cow::Borrowed(line)
            });
            drain(pipe, StderrSink { tail: tail.clone(), log: None, filter })
        });
        // A process that a step leaves behind holds the pipes; the step is over when its program is.
        let drained = tokio::spawn(futures_util::future::join_all(both.collect::<Vec<_>>()));
        let status = control.exited().await;
        control.kill().await;
        let _ = drained.await;
        match status.success() {
            true => Ok(()),
            false => Err(BuildError::Failed { step: shown(), status, output: PluginText::new(tail.text()) }),
        }
    }

    fn argv(&self, folder: &Path, step: &[String]) -> Result<Vec<String>, String> {
        let text =
            |path: &Path| path.to_str().map(str::to_owned).ok_or_else(|| format!("{} is not UTF-8", path.display()));
        let (folder, data) = (text(folder)?, text(&self.data)?);
        let used = |word: &String| placeholders(word).unwrap_or_default();
        if step.iter().flat_map(used).any(|placeholder| placeholder == Placeholder::DataDir) {
            std::fs::create_dir_all(&self.data).map_err(|error| format!("{data}: {error}"))?;
        }
        let value = |placeholder| match placeholder {
            Placeholder::DataDir => data.as_str(),
            // The manifest's check lets no ${workspace} through.
            _ => folder.as_str(),
        };
        Ok(step.iter().map(|word| expand(word, value).unwrap_or_else(|_| word.clone())).collect())
    }
}

/// A folder that is removed unless it is sealed.
struct Unfinished(PathBuf);

impl Unfinished {
    fn seal(self) -> String {
        let folder = self.0.clone();
        std::mem::forget(self);
        let _ = snapshot::lock(&folder);
        folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        snapshot::remove(&self.0);
    }
}
