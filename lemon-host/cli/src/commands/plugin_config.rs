//! `lemon plugin config`: shows, sets or asks for a plugin's own settings. Starts nothing.

mod ask;
mod change;
mod target;

use std::path::Path;

use lemon_host::{PluginText, Redactor};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use self::change::Change;
use self::target::Target;
use super::config::effective::Row;
use super::config::gathered;
use super::config::plugins::{Section, State, sections};
use super::config::show::lines;
use crate::args::{Global, PluginConfig};
use crate::config::Setup;
use crate::errors::{Failure, shown};
use crate::exit::Exit;
use crate::output::Output;
use crate::shell;

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    name: &'a str,
    /// Where settings are written to.
    file: &'a Path,
    settings: Vec<&'a Row>,
    /// What is wrong or missing still.
    faults: &'a [lemon_host::Violation],
}

/// Shows, sets or asks.
///
/// # Errors
/// There is no such plugin, a value does not fit, or a file can't be written.
pub(super) async fn plugin_config(
    request: &PluginConfig,
    global: &Global,
    output: &Output,
    cancel: &CancellationToken,
) -> Result<Exit, Failure> {
    let (mut setup, redactor) = gathered(global, output)?;
    let target = Target::of(&request.name, &setup)?;
    let is_said = !request.values.is_empty() || !request.unset.is_empty();
    let asks = !is_said && !request.json && shell::is_interactive();
    let change = match &target.schema {
        _ if is_said => Change::read(request, &target).await?,
        Some(schema) if asks => super::unless(cancel, ask::ask(&target, schema, &setup, &redactor, output)).await??,
        _ => Change::default(),
    };
    if !change.is_empty() {
        hide(&change, &redactor);
        target.check(&change, &setup).await?;
        change.write(&target)?;
        (setup, _) = gathered(global, output)?;
        change.warnings.iter().for_each(|warning| output.warning(warning));
    }
    show(request, &Target::of(&request.name, &setup)?, &setup, output).await
}

/// From now on no value that was typed is told.
fn hide(change: &Change, redactor: &Redactor) {
    for value in change.secrets.values() {
        redactor.add(value);
    }
}

async fn show(request: &PluginConfig, target: &Target, setup: &Setup, output: &Output) -> Result<Exit, Failure> {
    let sections = sections(setup);
    let section = sections
        .iter()
        .filter(|section| section.name == target.name && section.state != State::Overruled)
        .min_by_key(|section| section.state != State::InForce);
    let settings: Vec<_> =
        section.iter().flat_map(|section| &section.settings).filter(|row| row.key.starts_with("config.")).collect();
    let faults = target.faults(&target.values, &setup.secrets).await;
    if request.json {
        let report = Report { name: target.name.as_str(), file: &target.file, settings, faults: &faults };
        output.json(&report).await?;
        return Ok(Exit::Done);
    }
    let mut text = String::new();
    for row in settings {
        text.push_str(&lines(row.key.trim_start_matches("config."), row));
    }
    output.report(&text).await?;
    if text.is_empty() {
        output.note(match target.schema {
            Some(_) => "nothing is set",
            None => "nothing is set, and no manifest says what could be",
        });
    }
    for fault in &faults {
        output.warning(format!("plugin {} can't be started like this: {fault}", target.name));
    }
    if let Some(section) = section {
        tell_state(section, output);
    }
    Ok(Exit::Done)
}

/// Says why a plugin that was set up does not run.
fn tell_state(section: &Section, output: &Output) {
    if let (true, Some(why)) = (section.state != State::InForce, &section.why) {
        output.note(format!("plugin {} is not started: {}", section.name, shown(why)));
    }
}

/// A key ready to be shown.
fn shown_key(key: &str) -> String {
    PluginText::new(key).capped(80).to_string()
}
