//! `lemon status`: the state of everything, for someone who wonders.

use anstyle::{AnsiColor, Style};
use lemon_host::{Dialect, FailureReport, Listed, PluginName, PluginStatus, StateKind, Status};
use serde::Serialize;

use super::Work;
use super::told::{LINES, idle_filters, no_plugins, shadowed};
use crate::args;
use crate::config::{Disabled, Setup, Sources};
use crate::errors::{self, Failure, shown};
use crate::exit::Exit;
use crate::table::indent;

#[derive(Serialize)]
struct Report<'a> {
    status: &'a Status,
    config: &'a Sources,
    warnings: &'a [String],
}

pub(crate) async fn status(request: &args::Status, work: &Work) -> Result<Exit, Failure> {
    let Work { setup, host, output, .. } = work;
    let mut status = host.status();
    if !request.names.is_empty() {
        let names = request.names.iter().map(|name| errors::known_plugin(name, &status.plugins));
        let names: Vec<PluginName> = names.collect::<Result<_, _>>()?;
        status.plugins.retain(|plugin| names.contains(&plugin.name));
    }
    if request.json {
        output.json(&Report { status: &status, config: &setup.sources, warnings: &setup.warnings }).await?;
    } else if request.names.is_empty() {
        output.report(&text(&status, setup)).await?;
    } else {
        let plugins: Vec<String> = status.plugins.iter().map(of_plugin).collect();
        output.report(&plugins.join("\n")).await?;
    }
    Ok(Exit::Done)
}

const BOLD: Style = Style::new().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();

fn text(status: &Status, setup: &Setup) -> String {
    let mut text = String::new();
    for plugin in &status.plugins {
        text.push_str(&of_plugin(plugin));
        text.push('\n');
    }
    if status.plugins.is_empty() {
        let (what, hint) = no_plugins(setup);
        text.push_str(&format!("{what}: {hint}\n\n"));
    }
    let sources = &setup.sources;
    for file in &sources.files {
        let missing = if file.found { "" } else { " (not there)" };
        line(&mut text, "config", &format!("{}{missing}", shown(&file.path.to_string_lossy())));
    }
    if let Some(report) = &sources.project {
        line(&mut text, "project", &format!("{}, {}", shown(&report.project.folder.to_string_lossy()), report.trust));
    }
    for (what, hint) in setup.held_lines() {
        let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
        line(&mut text, "not run", &format!("{what}{hint}"));
    }
    for Disabled { name, provenance, by } in &sources.disabled {
        let at = shown(&provenance.to_string());
        let by = if by == provenance { "enabled = false".to_owned() } else { format!("by {}", shown(&by.to_string())) };
        line(&mut text, "disabled", &format!("{name} of {at} ({by})"));
    }
    for loser in &status.losers {
        let (at, winner) = (shown(&loser.provenance.to_string()), shown(&loser.winner.to_string()));
        line(&mut text, "not started", &format!("{} ({at}): {winner} has one of that name, and wins", loser.name));
    }
    for shadowed in shadowed(&status.conflicts) {
        line(&mut text, "shadowed", &shadowed);
    }
    for hidden in status.hidden.iter().take(LINES) {
        line(&mut text, "hidden", &format!("the tool `{}`: {}", hidden.tool, shown(&hidden.rule.to_string())));
    }
    if let Some(more @ 1..) = status.hidden.len().checked_sub(LINES) {
        line(&mut text, "hidden", &format!("{more} more tools; `lemon status --json` has them all"));
    }
    for idle in idle_filters(status) {
        line(&mut text, "unused", &idle);
    }
    line(
        &mut text,
        "protection",
        match status.protection {
            "guard" => "a guard process ends the plugins if lemon is killed",
            _ => "no guard process: if lemon is killed, a plugin's own children may stay",
        },
    );
    for warning in &setup.warnings {
        line(&mut text, &format!("{WARNING}warning{WARNING:#}    "), warning);
    }
    text
}

/// `40 s ago, 3 ms after its start`.
fn when(failure: &FailureReport) -> String {
    let ago = match failure.at.elapsed().unwrap_or_default().as_secs() {
        0 => "just now".to_owned(),
        ago => format!("{ago} s ago"),
    };
    let ran = failure.ran_for_ms.map(|ran| format!(", {} ms after its start", ran.as_millis()));
    ago + &ran.unwrap_or_default()
}

fn line(text: &mut String, label: &str, value: &str) {
    text.push_str(&format!("{label:<11}  {}\n", indent(value, 13)));
}

fn of_plugin(plugin: &PluginStatus) -> String {
    let state = match plugin.state {
        StateKind::Ready => AnsiColor::Green.on_default(),
        StateKind::Failed | StateKind::Backoff => AnsiColor::Red.on_default().bold(),
        _ => AnsiColor::Yellow.on_default(),
    };
    let mut text = format!("{BOLD}{}{BOLD:#}  {state}{}{state:#}", plugin.name, plugin.state);
    if let Some(after) = plugin.process.as_ref().and_then(|process| process.ready_after_ms) {
        text.push_str(&format!(" after {} ms", after.as_millis()));
    }
    text.push('\n');
    let mut detail = |label: &str, value: String| text.push_str(&format!("  {label:<9}  {}\n", indent(&value, 13)));
    if let Some(dialect) = &plugin.dialect {
        let spoken = match dialect {
            Dialect::Lemon(version) => format!("Lemon {version}"),
            Dialect::Mcp(version) => format!("MCP {}", shown(version)),
            _ => String::new(),
        };
        let name = plugin.server_name.as_ref().map(|name| format!(", as {}", name.capped(80))).unwrap_or_default();
        let version =
            plugin.server_version.as_ref().map(|version| format!(" {}", version.capped(40))).unwrap_or_default();
        detail("speaks", format!("{spoken}{name}{version}"));
    }
    let from = match plugin.listed {
        Some(Listed::Cache) => Some(", as it offered them when it last ran"),
        Some(Listed::Manifest) => Some(", of its manifest"),
        _ => plugin.dialect.as_ref().map(|_| ""),
    };
    if let Some(from) = from {
        let quarantined = match plugin.quarantined.len() {
            0 => String::new(),
            n => format!(", {n} not offered"),
        };
        detail("tools", format!("{}{from}{quarantined}", plugin.tools));
    }
    for drift in &plugin.drift {
        detail("manifest", drift.to_string());
    }
    for refused in &plugin.quarantined {
        detail("", format!("`{}` is not offered: {}", refused.tool.capped(80), refused.reason));
    }
    if let Some(process) = &plugin.process {
        let busy = match (process.calls, process.abandoned) {
            (0, 0) => String::new(),
            (calls, abandoned) => format!(", {calls} calls under way, {abandoned} abandoned"),
        };
        detail("pid", format!("{}{busy}", process.pid));
    }
    detail("command", shown(&errors::command(plugin)));
    detail("from", shown(&plugin.provenance.to_string()));
    if plugin.restarts > 0 {
        detail("restarts", plugin.restarts.to_string());
    }
    if let Some(failure) = &plugin.last_failure {
        detail("failed", when(failure));
        // What stands below as the error need not be told twice.
        if plugin.error.is_none() {
            detail("", errors::safe(&failure.error));
        }
    }
    if let Some(error) = &plugin.error {
        detail("error", errors::safe(error));
    }
    if let Some(hint) = errors::hint(plugin) {
        detail("hint", hint);
    }
    if let Some(after) = plugin.retry_in_ms {
        detail("retry", format!("in {}", errors::seconds(after.as_secs_f64())));
    }
    for other in &plugin.session_processes {
        let pid = other.process.as_ref().map(|process| format!(", pid {}", process.pid)).unwrap_or_default();
        let error = other.error.as_ref().map(|error| format!(": {}", errors::safe(error))).unwrap_or_default();
        detail("session", format!("{}  {}{pid}{error}", shown(&other.session), other.state));
    }
    if let Some(process) = plugin.process.as_ref().filter(|process| process.noise.total() > 0) {
        for (kind, count) in &process.noise.counts {
            let first = process.noise.first.get(kind).map(|first| format!("; the first: {}", first.capped(300)));
            detail("noise", format!("{count} × {kind}{}", first.unwrap_or_default()));
        }
    }
    text
}
