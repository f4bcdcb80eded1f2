//! `lemon plugin trust` and `untrust`: what a user lets run, and what not any more.

mod project;
mod shown;

use std::path::Path;

use lemon_host::trust::{self, PluginTrust, TrustState, TrustStore};
use lemon_host::{Candidate, CandidateError, Found, Held, HeldBecause, Provenance};
use tokio_util::sync::CancellationToken;

use super::unless;
use crate::args;
use crate::config::Setup;
use crate::config::extensions::{held_why, with_source};
use crate::errors::{self, Failure, shown as one_line};
use crate::exit::Exit;
use crate::output::Output;
use crate::prompt;

/// What a command of trust works with.
pub(super) struct Trusting<'a> {
    request: &'a args::Trust,
    setup: &'a Setup,
    home: &'a Path,
    output: &'a Output,
    cancel: &'a CancellationToken,
}

/// What became of one thing that was to be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Trusted,
    /// Nobody said yes.
    Left,
    /// It can't be trusted, which was told.
    Unfit,
}

/// Shows what is not trusted, and trusts what the user says yes to.
///
/// # Errors
/// An unknown name, a plugin that can't be trusted, a build that failed, or that nobody could be asked.
pub(super) async fn trust(
    request: &args::Trust,
    setup: &Setup,
    output: &Output,
    cancel: &CancellationToken,
) -> Result<Exit, Failure> {
    let home = home(setup)?;
    let trusting = Trusting { request, setup, home, output, cancel };
    trusting.check_variables()?;
    if request.project {
        return trusting.project().await;
    }
    if request.names.is_empty() {
        return trusting.all().await;
    }
    let mut outcomes = Vec::new();
    for name in &request.names {
        let found = found(name, setup)?;
        if found.len() > 1 && (request.yes || !request.grant_env.is_empty()) {
            let paths: Vec<_> = found.iter().map(|found| path(&found.path)).collect();
            return Err(Failure::new(Exit::Usage, format!("several plugins are named {}", one_line(name)))
                .why(paths.join("\n"))
                .hint("give the path of the one that you mean"));
        }
        for found in found {
            outcomes.push(trusting.plugin(found).await?);
        }
    }
    trusting.end(&outcomes)
}

/// Trusts no longer what is named.
///
/// # Errors
/// Nothing of that name is trusted, or that can't be written down.
pub(super) async fn untrust(request: &args::Untrust, setup: &Setup, output: &Output) -> Result<Exit, Failure> {
    let home = home(setup)?;
    let project = setup.disk.project.as_ref().filter(|_| request.project);
    if request.project && project.is_none() {
        return Err(no_project());
    }
    let is_meant = |record: &PluginTrust| match project {
        Some(project) => record.path.starts_with(&project.folder),
        None => request.names.iter().any(|name| is_named(record, name)),
    };
    let edit = TrustStore::edit(home, |store| {
        let gone = store.untrust(is_meant);
        let was_trusted = project.is_some_and(|project| store.untrust_project(&project.folder));
        trust::remove_copies(home, &gone, store);
        (gone, was_trusted)
    });
    let (gone, was_trusted) = edit.map_err(|error| Failure::new(Exit::Internal, with_source(&error)))?;
    let mut text = String::new();
    if let Some(project) = project.filter(|_| was_trusted) {
        text.push_str(&format!("the project {} is not trusted any more\n", path(&project.folder)));
    }
    for record in &gone {
        text.push_str(&format!("plugin {} of {} is not trusted any more\n", record.name, path(&record.path)));
    }
    output.report(&text).await?;
    let is_gone = |name: &&String| !gone.iter().any(|record| is_named(record, name));
    if let Some(unknown) = request.names.iter().find(is_gone) {
        return Err(Failure::new(Exit::Usage, format!("no plugin {} is trusted", one_line(unknown)))
            .hint("`lemon plugin list` shows what is; what `--plugin`, a config file or `extension_paths` names needs no trust"));
    }
    if request.project && !was_trusted && gone.is_empty() {
        output.note("nothing of the project was trusted");
    }
    Ok(Exit::Done)
}

impl Trusting<'_> {
    /// Everything that is not as the user has trusted it.
    async fn all(&self) -> Result<Exit, Failure> {
        let mut outcomes = Vec::new();
        let report = self.setup.sources.project.as_ref();
        if report.is_some_and(|report| report.config.is_some() && report.trust != "trusted") {
            outcomes.push(self.config().await?);
        }
        for held in &self.setup.sources.not_run.held {
            match self.setup.disk.found.iter().find(|found| found.path == held.path) {
                Some(found) => outcomes.push(self.plugin(found.clone()).await?),
                None if held.why == HeldBecause::Gone => {
                    self.output.warning(format!("plugin {}: {}", held.name, held_why(held)));
                }
                // It is an entry of the project's config.
                None => {}
            }
        }
        if outcomes.is_empty() {
            self.output.report("there is nothing to trust\n").await?;
        }
        self.end(&outcomes)
    }

    /// Shows a plugin, asks, and trusts it.
    async fn plugin(&self, found: Found) -> Result<Outcome, Failure> {
        let at = found.path.clone();
        if found.place.as_it_is {
            self.output.report(&format!("{} needs no trust: your config or environment names it\n", path(&at))).await?;
            return Ok(Outcome::Trusted);
        }
        let (store, home) = (self.setup.disk.store.clone(), self.home.to_owned());
        // Reading and copying all files may take its time.
        let looked = tokio::task::spawn_blocking(move || Candidate::of(found, &store, &home));
        let looked = unless(self.cancel, looked).await?;
        let candidate = match looked.unwrap_or_else(|_| Err("looking at it broke down".to_owned())) {
            Ok(candidate) => candidate,
            // The others may be all right.
            Err(why) => {
                self.output.failure(&Failure::new(Exit::Usage, format!("{} can't be trusted", path(&at))).why(why));
                return Ok(Outcome::Unfit);
            }
        };
        self.output.report(&shown::candidate(&candidate, self.setup.settings_of(candidate.name()))).await?;
        let wanted = !self.request.grant_env.is_empty() || candidate.state != TrustState::Trusted;
        if !wanted && candidate.build().is_empty() {
            self.output.note("it is trusted as it is");
            return Ok(Outcome::Trusted);
        }
        if !self.agrees(&format!("Trust {}?", candidate.name())).await? {
            candidate.leave(self.home, &self.setup.disk.store);
            return Ok(Outcome::Left);
        }
        let env = self.granted(&candidate).await?;
        self.carry_out(candidate, env).await?;
        Ok(Outcome::Trusted)
    }

    async fn carry_out(&self, candidate: Candidate, env: Vec<String>) -> Result<(), Failure> {
        let name = candidate.name().clone();
        let output = self.output.clone();
        let lines = move |line: &str| output.note(one_line(line));
        let untrusted = self.setup.untrusted.clone().into_iter().collect();
        let trusted = unless(self.cancel, candidate.trust(self.home, env, untrusted, lines)).await?;
        trusted.map_err(|error| {
            let (exit, hint) = match &error {
                CandidateError::Build(_) => {
                    (Exit::Plugin, "nothing was written down; mend the build and trust it again")
                }
                _ => (Exit::Internal, "nothing was written down; look at it again"),
            };
            Failure::new(exit, format!("plugin {name} is not trusted")).why(with_source(&error)).hint(hint)
        })?;
        self.output.report(&format!("plugin {name} is trusted\n")).await
    }

    /// Which of the variables that a plugin asks for it is given.
    async fn granted(&self, candidate: &Candidate) -> Result<Vec<String>, Failure> {
        let mut granted = self.request.grant_env.clone();
        let Some(wanted) = candidate.manifest().and_then(|file| file.manifest.env.as_ref()) else {
            return Ok(granted);
        };
        for (variable, request) in wanted.iter().filter(|(name, _)| !self.request.grant_env.contains(name)) {
            if self.request.yes || !prompt::can_ask() {
                let name = &candidate.name();
                self.output.warning(format!("plugin {name} is not given {variable}"));
                self.output.hint(format!("`lemon plugin trust {name} --grant-env {variable}` gives it"));
            } else {
                let why = one_line(&request.why);
                let question = format!("Give {} your {variable} ({why})?", candidate.name());
                if prompt::confirm(&question, self.output, self.cancel).await? {
                    granted.push(variable.clone());
                }
            }
        }
        Ok(granted)
    }

    async fn agrees(&self, question: &str) -> Result<bool, Failure> {
        if self.request.yes {
            return Ok(true);
        }
        if !prompt::can_ask() {
            return Ok(false);
        }
        prompt::confirm(question, self.output, self.cancel).await
    }

    fn end(&self, outcomes: &[Outcome]) -> Result<Exit, Failure> {
        if !outcomes.contains(&Outcome::Left) {
            return Ok(if outcomes.contains(&Outcome::Unfit) { Exit::Usage } else { Exit::Done });
        }
        if prompt::can_ask() {
            self.output.note("what was not agreed to is not trusted");
            return Ok(Exit::Untrusted);
        }
        Err(Failure::new(Exit::Untrusted, "nothing was trusted: there is no terminal to ask on")
            .hint("look at what is shown, then say `--yes`"))
    }

    /// A variable that no plugin could be given is a slip.
    fn check_variables(&self) -> Result<(), Failure> {
        let is_name = |name: &&String| name.is_empty() || name.contains(['=', '\0']);
        match self.request.grant_env.iter().find(is_name) {
            Some(wrong) => Err(Failure::new(Exit::Usage, format!("`{}` is no name of a variable", one_line(wrong)))
                .hint("`--grant-env` takes names; the values are those of your environment")),
            None => Ok(()),
        }
    }
}

fn home(setup: &Setup) -> Result<&Path, Failure> {
    setup.sources.home.as_deref().ok_or_else(|| {
        Failure::new(Exit::Usage, "there is no home folder to write down in what is trusted")
            .hint("set HOME, or LEMON_HOME to a folder of your own")
    })
}

/// The plugins on disk with a name or a path.
fn found(name: &str, setup: &Setup) -> Result<Vec<Found>, Failure> {
    let at = setup.cwd.join(name).canonicalize().ok();
    let held: Vec<&Held> = setup.sources.not_run.held.iter().filter(|held| held.name.as_str() == name).collect();
    let is_held = |found: &Found| held.iter().any(|held| held.path == found.path && !held.is_entry);
    let runs = |found: &Found| {
        setup.specs.iter().any(|spec| {
            spec.name.as_str() == name
                && matches!(&spec.provenance, Provenance::Found { path, .. } if *path == found.path)
        })
    };
    let all = &setup.disk.found;
    let meant = all.iter().filter(|found| is_held(found) || runs(found) || Some(&found.path) == at.as_ref());
    let mut meant: Vec<Found> = meant.cloned().collect();
    if meant.iter().any(|found| !found.place.as_it_is) {
        meant.retain(|found| !found.place.as_it_is);
    }
    if !meant.is_empty() {
        return Ok(meant);
    }
    let failure = Failure::new(Exit::Usage, format!("there is no plugin {} to trust", one_line(name)));
    Err(if held.iter().any(|held| held.is_entry) {
        failure.why("it is an entry of the project's config").hint("`lemon plugin trust --project` shows that")
    } else if held.iter().any(|held| held.why == HeldBecause::Gone) {
        failure
            .why("it was trusted, and is not there any more")
            .hint(format!("`lemon plugin untrust {name}` goes on without it"))
    } else if at.is_some() {
        let hint = "`--plugin PATH` runs it as it is, and `[runtime] extension_paths` does so each time; or put it into ~/.lemon/agent/extensions";
        failure.why("it is in no folder of extensions").hint(hint)
    } else {
        let names = setup.sources.not_run.held.iter().map(|held| held.name.to_string());
        let names: Vec<_> = names.collect();
        match names.is_empty() {
            true => failure.hint("`lemon plugin list` shows all plugins"),
            false => failure.hint(format!("these are not trusted: {}", names.join(", "))),
        }
    })
}

fn is_named(record: &PluginTrust, name: &str) -> bool {
    let path = Path::new(name);
    record.name.as_str() == name || record.path == path || path.canonicalize().is_ok_and(|path| path == record.path)
}

fn no_project() -> Failure {
    Failure::new(Exit::Usage, "there is no project here").hint("a project is a folder with a `.lemon` folder in it")
}

fn path(path: &Path) -> String {
    errors::shown(&path.to_string_lossy())
}
