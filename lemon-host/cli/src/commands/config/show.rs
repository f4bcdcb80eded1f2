//! `lemon config show`: all that is in force, as TOML with a comment that says where each value comes from.

use anstyle::Style;
use lemon_host::{Class, PluginText, SettingValue, StoredSecrets};
use serde::Serialize;

use super::effective::{Row, Source, rows};
use super::gathered;
use super::plugins::{Section, State, place, sections};
use crate::args::{Global, ShowConfig};
use crate::config::{ProjectReport, Setup, SourceFile};
use crate::errors::{Failure, shown};
use crate::exit::Exit;
use crate::output::Output;
use crate::table::pad;

/// Values up to here have their comments in one column.
const COLUMN: usize = 44;
/// The longest value that is shown in full.
const VALUE: usize = 400;
const DIM: Style = Style::new().dimmed();

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    files: &'a [SourceFile],
    project: Option<&'a ProjectReport>,
    settings: Vec<Row>,
    plugins: Vec<Section>,
    ignored: Vec<Ignored>,
    warnings: &'a [String],
}

/// A key that does not count.
#[derive(Serialize)]
struct Ignored {
    file: String,
    line: usize,
    column: usize,
    what: String,
}

/// Shows it.
///
/// # Errors
/// When something is wrong with the config, or the answer can't be written.
pub(super) async fn show(request: &ShowConfig, global: &Global, output: &Output) -> Result<Exit, Failure> {
    let (setup, _) = gathered(global, output)?;
    let (settings, plugins) = (rows(&setup, global), sections(&setup));
    if request.json {
        let project = setup.sources.project.as_ref();
        let (files, warnings) = (&*setup.sources.files, &*setup.warnings);
        let report = Report { files, project, settings, plugins, ignored: ignored(&setup), warnings };
        output.json(&report).await?;
    } else {
        setup.warnings.iter().for_each(|warning| output.warning(warning));
        output.report(&text(&setup, &settings, &plugins)).await?;
    }
    Ok(Exit::Done)
}

fn ignored(setup: &Setup) -> Vec<Ignored> {
    let warnings = setup.layers.iter().flat_map(|layer| &layer.config.warnings);
    let ignored = warnings.map(|warning| Ignored {
        file: warning.origin().file.to_string_lossy().into_owned(),
        line: warning.origin().line,
        column: warning.column(),
        what: warning.message(),
    });
    ignored.collect()
}

fn text(setup: &Setup, settings: &[Row], plugins: &[Section]) -> String {
    let mut text = places(setup);
    let mut table = "";
    for row in settings {
        let (in_table, key) = row.key.rsplit_once('.').unwrap_or(("", &row.key));
        if in_table != table {
            table = in_table;
            text.push_str(&format!("\n[{table}]\n"));
        }
        text.push_str(&lines(key, row));
    }
    for section in plugins {
        text.push_str(&of_plugin(section));
    }
    text
}

/// The files that were read, and the project.
fn places(setup: &Setup) -> String {
    let mut text = String::new();
    let mut add = |what: &str, path: &std::path::Path, note: &str| {
        let line = format!("# {what:<8} {}{note}", shown(&path.to_string_lossy()));
        text.push_str(&format!("{DIM}{line}{DIM:#}\n"));
    };
    for file in &setup.sources.files {
        add(file.from, &file.path, if file.found { "" } else { " (there is none)" });
    }
    if let Some(home) = &setup.sources.home {
        let file = StoredSecrets::file(home);
        if file.exists() {
            add("secrets", &file, "");
        }
    }
    if let Some(report) = &setup.sources.project {
        let note = match (report.trust, &report.config) {
            ("trusted", Some(_)) => " (trusted)".to_owned(),
            ("trusted", None) => " (trusted; it has no config)".to_owned(),
            ("ignored", _) => format!(" (ignored: {})", report.project.ignored.unwrap_or_default()),
            (trust, Some(_)) => {
                format!(" ({trust}: its config is ignored; `lemon plugin trust --project` shows what it would do)")
            }
            (trust, None) => format!(" ({trust}; it has no config)"),
        };
        add("project", &report.project.folder, &note);
    }
    text
}

fn of_plugin(section: &Section) -> String {
    let table = if section.class == Class::Mcp { "mcp.servers" } else { "plugins" };
    let header = format!("{table}.{}", lemon_host::dotted_key(&[section.name.to_string()]));
    let (from, why) = (place(&section.source), section.why.as_deref().unwrap_or_default());
    let comment = |state: &str| format!("\n{DIM}# [{header}] of {from} {state}: {why}{DIM:#}\n");
    match section.state {
        State::Overruled => return comment("does not count"),
        State::Held => return comment("is not started"),
        State::Absent => return comment("sets up nothing"),
        State::Disabled => return comment("is disabled"),
        State::InForce => {}
    }
    let mut text = format!("\n{}\n", commented(&format!("[{header}]"), &from));
    section.settings.iter().for_each(|row| text.push_str(&lines(&row.key, row)));
    text
}

pub(in crate::commands) fn lines(key: &str, row: &Row) -> String {
    let key = PluginText::new(key);
    let of =
        |value: &SettingValue| format!("{} = {}", key.capped(120), PluginText::new(value.to_string()).capped(VALUE));
    let mut comment = match &row.source {
        Source::Manifest { file } => format!("{} (the plugin's manifest)", shown(&file.to_string_lossy())),
        source => place(source),
    };
    if let Some(note) = &row.note {
        comment.push_str(&format!("; {note}"));
    }
    let mut text = match &row.value {
        Some(value) => commented(&of(value), &comment),
        None => commented(&format!("# {} is not set", key.capped(120)), &comment),
    };
    text.push('\n');
    for other in &row.overruled {
        let line = format!("# {}", of(&other.value));
        text.push_str(&format!("{DIM}{}  # {} (overruled){DIM:#}\n", pad(&line, COLUMN), place(&other.source)));
    }
    text
}

fn commented(line: &str, comment: &str) -> String {
    format!("{}  {DIM}# {comment}{DIM:#}", pad(line, COLUMN))
}
