//! `lemon plugin list`: every plugin that there is, whether it runs or not. Starts nothing.

use lemon_host::{HeldBecause, Ignored, PluginSpec, Provenance};
use serde::Serialize;

use super::told::no_plugins;
use crate::args;
use crate::config::Setup;
use crate::config::extensions::held_why;
use crate::errors::{Failure, shown};
use crate::exit::Exit;
use crate::output::Output;
use crate::table::rows;

#[derive(Serialize)]
struct Report<'a> {
    plugins: Vec<Listed>,
    ignored: &'a [Ignored],
}

/// A plugin, and whether it runs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    name: String,
    state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// Its folder or file, for one that was found in a folder of extensions.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// What brought it in, or keeps it out, in words.
    from: String,
}

/// Whether a plugin runs, or why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Runs,
    Disabled,
    /// Another one has its name.
    Shadowed,
    Untrusted,
    Changed,
    Gone,
    /// It can't be run.
    Unfit,
}

pub(super) async fn list(request: &args::List, setup: &Setup, output: &Output) -> Result<Exit, Failure> {
    let plugins = listed(setup);
    setup.warnings.iter().for_each(|warning| output.warning(warning));
    if request.json {
        output.json(&Report { plugins, ignored: &setup.sources.not_run.ignored }).await?;
        return Ok(Exit::Done);
    }
    if let Some((what, hint)) = setup.project_line() {
        output.warning(what);
        hint.into_iter().for_each(|hint| output.hint(hint));
    }
    setup.ignored_lines().for_each(|line| output.warning(line));
    if plugins.is_empty() {
        let (what, hint) = no_plugins(setup);
        output.note(what);
        output.hint(hint);
    }
    let row = |plugin: &Listed| [plugin.name.clone(), plugin.state.word().to_owned(), plugin.told()];
    let table: Vec<_> = plugins.iter().map(row).collect();
    output.report(&rows(&table, Output::width())).await?;
    Ok(Exit::Done)
}

/// All plugins by name, of one name first the one that runs.
fn listed(setup: &Setup) -> Vec<Listed> {
    let mut plugins: Vec<Listed> = Vec::new();
    for spec in &setup.specs {
        let is_taken = plugins.iter().any(|earlier| earlier.name == spec.name.as_str());
        plugins.push(of_spec(spec, if is_taken { State::Shadowed } else { State::Runs }));
    }
    for disabled in &setup.sources.disabled {
        plugins.push(Listed {
            name: disabled.name.to_string(),
            state: State::Disabled,
            version: None,
            description: None,
            path: found_at(&disabled.provenance),
            from: disabled.by.to_string(),
        });
    }
    for held in &setup.sources.not_run.held {
        plugins.push(Listed {
            name: held.name.to_string(),
            state: match held.why {
                HeldBecause::Untrusted => State::Untrusted,
                HeldBecause::Changed(_) => State::Changed,
                HeldBecause::Gone => State::Gone,
                HeldBecause::NameTaken => State::Shadowed,
                _ => State::Unfit,
            },
            version: None,
            description: None,
            path: Some(held.path.to_string_lossy().into_owned()),
            from: held_why(held),
        });
    }
    plugins.sort_by(|a, b| a.name.cmp(&b.name));
    plugins
}

fn of_spec(spec: &PluginSpec, state: State) -> Listed {
    let manifest = spec.manifest.as_ref().map(|file| &file.manifest);
    Listed {
        name: spec.name.to_string(),
        state,
        version: manifest.map(|manifest| manifest.version.clone()),
        description: manifest.and_then(|manifest| manifest.description.clone()),
        path: found_at(&spec.provenance),
        from: spec.provenance.to_string(),
    }
}

fn found_at(provenance: &Provenance) -> Option<String> {
    match provenance {
        Provenance::Found { path, .. } => Some(path.to_string_lossy().into_owned()),
        _ => None,
    }
}

impl State {
    fn word(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Disabled => "disabled",
            Self::Shadowed => "shadowed",
            Self::Untrusted => "untrusted",
            Self::Changed => "changed",
            Self::Gone => "gone",
            Self::Unfit => "unfit",
        }
    }
}

impl Listed {
    /// The last column.
    fn told(&self) -> String {
        let version = self.version.as_ref().map(|version| format!("{}, ", shown(version))).unwrap_or_default();
        let first = self.from.lines().next().unwrap_or_default();
        format!("{version}{}", shown(first))
    }
}
