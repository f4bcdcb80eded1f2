//! `lemon plugin validate`: whether manifests are valid, without running anything.

use std::path::{Path, PathBuf};

use anstyle::{AnsiColor, Style};
use lemon_host::manifest::HostType;
use lemon_host::{ManifestFile, ManifestProblem, ManifestReport, PluginText, Severity, manifests_in};
use serde::Serialize;

use crate::args::{Global, Validate};
use crate::config;
use crate::errors::{Failure, shown};
use crate::exit::Exit;
use crate::output::Output;
use crate::table::indent;

/// The longest path that is shown in full.
const PATH: usize = 4096;

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    /// Whether all manifests are.
    valid: bool,
    manifests: Vec<Record<'a>>,
}

/// One manifest.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Record<'a> {
    path: String,
    valid: bool,
    byte_size: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
    /// Whether this lemon, on this machine, can run it.
    loadable: bool,
    errors: Vec<&'a ManifestProblem>,
    warnings: Vec<&'a ManifestProblem>,
    /// What is beyond the lists.
    more_errors: usize,
    more_warnings: usize,
    capabilities: &'a [String],
    provider_types: Vec<&'static str>,
    host_types: Vec<&'static str>,
    distribution_sources: Vec<&'static str>,
    audit_statuses: Vec<&'static str>,
}

/// Reads all manifests, and tells of each.
///
/// # Errors
/// When there is no working folder, or the report can't be written.
pub(super) async fn validate(request: &Validate, global: &Global, output: &Output) -> Result<Exit, Failure> {
    config::working_folder(global)?;
    let reports: Vec<ManifestReport> =
        request.paths.iter().flat_map(|path| manifests(path)).map(|path| ManifestReport::of(&path)).collect();
    let valid = reports.iter().all(ManifestReport::is_valid);
    if request.json {
        output.json(&Report { valid, manifests: reports.iter().map(record).collect() }).await?;
    } else {
        let text: String = reports.iter().map(told).collect();
        output.report(&text).await?;
    }
    Ok(if valid { Exit::Done } else { Exit::Usage })
}

/// A manifest, that of a folder, or those of the folders in it; the path itself where there is none, for the report.
fn manifests(path: &Path) -> Vec<PathBuf> {
    let found = if path.is_dir() { manifests_in(path).unwrap_or_default() } else { Vec::new() };
    match found.first() {
        // Its own manifest alone counts: what is below is then a part of it.
        Some(first) if first.parent() == Some(path) => vec![path.to_owned()],
        // The folders, so that a second manifest in one is told.
        Some(_) => found.iter().filter_map(|file| file.parent()).map(Path::to_owned).collect(),
        None => vec![path.to_owned()],
    }
}

fn record(report: &ManifestReport) -> Record<'_> {
    let manifest = report.manifest.as_ref().map(|file| &file.manifest);
    let of = |severity| report.of_severity(severity).collect();
    Record {
        path: report.file.to_string_lossy().into_owned(),
        valid: report.is_valid(),
        byte_size: report.bytes,
        name: manifest.map(|manifest| manifest.name.as_str()),
        version: manifest.map(|manifest| manifest.version.as_str()),
        loadable: matches!(report.loadable, Some(Ok(_))),
        errors: of(Severity::Error),
        warnings: of(Severity::Warning),
        more_errors: report.more,
        more_warnings: report.more_warnings,
        capabilities: manifest.map_or(&[], |manifest| &manifest.capabilities),
        provider_types: manifest.iter().flat_map(|one| &one.providers).map(|one| one.kind.as_str()).collect(),
        host_types: manifest.iter().flat_map(|one| one.hosts()).map(|one| one.kind.as_str()).collect(),
        distribution_sources: manifest
            .iter()
            .filter_map(|one| Some(one.distribution.as_ref()?.source.as_str()))
            .collect(),
        audit_statuses: manifest.iter().filter_map(|one| Some(one.audit?.status.as_str())).collect(),
    }
}

fn told(report: &ManifestReport) -> String {
    let errors = report.of_severity(Severity::Error).count() + report.more;
    let warnings = report.of_severity(Severity::Warning).count() + report.more_warnings;
    let counts: Vec<String> = [counted(errors, "error"), counted(warnings, "warning")].into_iter().flatten().collect();
    let counts = if counts.is_empty() { String::new() } else { format!(", {}", counts.join(", ")) };
    let (style, outcome) = match &report.manifest {
        Some(file) => (AnsiColor::Green.on_default(), format!("valid{}", what(file, report))),
        None => (AnsiColor::Red.on_default(), "not valid".to_owned()),
    };
    let file = shown_path(&report.file);
    let mut text = format!("{file}: {style}{outcome}{style:#}{counts}\n");
    for problem in &report.problems {
        // With the file before line and column, which editors and terminals make a link of.
        let place = if problem.line.is_some() { format!("{file}:") } else { String::new() };
        let style = match problem.severity {
            Severity::Error => AnsiColor::Red.on_default(),
            Severity::Warning => AnsiColor::Yellow.on_default(),
        };
        text.push_str(&format!("  {}\n", indent(&format!("{place}{}", colored(problem, style)), 2)));
    }
    for (more, what) in [(report.more, "error"), (report.more_warnings, "warning")] {
        if let Some(counted) = counted(more, what) {
            text.push_str(&format!("  and {counted} more\n"));
        }
    }
    text
}

fn colored(problem: &ManifestProblem, style: Style) -> String {
    let (text, word) = match problem.severity {
        Severity::Error => (problem.to_string(), "error:"),
        Severity::Warning => (problem.to_string(), "warning:"),
    };
    text.replacen(word, &format!("{style}{word}{style:#}"), 1)
}

fn what(file: &ManifestFile, report: &ManifestReport) -> String {
    let (name, version) = (&file.manifest.name, PluginText::new(file.manifest.version.as_str()));
    let runs = match &report.loadable {
        Some(Ok(HostType::Mcp)) => "an MCP server",
        Some(Ok(_)) => "a Lemon plugin",
        _ => "not loadable here",
    };
    format!(": {name} {}, {runs}", version.capped(40))
}

fn counted(number: usize, what: &str) -> Option<String> {
    match number {
        0 => None,
        1 => Some(format!("1 {what}")),
        n => Some(format!("{n} {what}s")),
    }
}

fn shown_path(path: &Path) -> String {
    let text = path.to_string_lossy();
    if text.len() < PATH { PluginText::new(text).capped(PATH).to_string() } else { shown(&text) }
}
