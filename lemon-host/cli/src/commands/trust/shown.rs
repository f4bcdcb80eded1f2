//! What a user is shown before they trust something.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use lemon_host::manifest::Manifest;
use lemon_host::trust::{Contents, TrustState};
use lemon_host::{Candidate, PlaceKind, PluginConfig, PluginName, PluginText};

use super::path;
use crate::errors::shown;

const BOLD: Style = Style::new().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();

/// More of one kind nobody reads.
const MANY: usize = 20;

/// A plugin on disk.
pub(super) fn candidate(candidate: &Candidate, settings: Option<&PluginConfig>) -> String {
    let manifest = candidate.manifest().map(|file| &file.manifest);
    let version = manifest.map(|manifest| format!(" {}", shown(&manifest.version))).unwrap_or_default();
    let whose = match candidate.found.place.kind {
        PlaceKind::Project => "the project's",
        _ => "your own",
    };
    let mut text =
        format!("{BOLD}{}{BOLD:#}{version}, {whose}, at {}\n", candidate.spec.name, path(&candidate.found.path));
    if let Some(description) = manifest.and_then(|manifest| manifest.description.as_ref()) {
        let _ = writeln!(text, "  {}", shown(description));
    }
    if let TrustState::Changed(change) = &candidate.state {
        line(&mut text, "changed", &format!("{WARNING}since it was trusted:{WARNING:#} {change}"));
    }
    line(&mut text, "files", &contents(&candidate.subject.files));
    line(&mut text, "command", &command(candidate.command()));
    for step in candidate.build() {
        line(&mut text, "build", &format!("{} (runs now)", command(step)));
    }
    match manifest {
        Some(manifest) => declared(&mut text, manifest, candidate.is_gate()),
        None => line(&mut text, "declares", "nothing: it has no manifest"),
    }
    if let Some(settings) = settings {
        let env = settings.env.keys().map(|name| format!("the variable {}", shown(name)));
        let config = settings.config.keys().map(|key| format!("the setting {}", shown(key)));
        let all: Vec<_> = env.chain(config).collect();
        line(
            &mut text,
            "gets",
            &format!("what [plugins.{}] of your config says: {}", candidate.name(), all.join(", ")),
        );
    }
    text
}

/// The text of a project's config, whole: what is not shown can't be agreed to.
pub(super) fn text(config: &str) -> String {
    let lines = config.lines().map(|line| format!("  | {}\n", PluginText::new(line).capped(usize::MAX)));
    lines.collect()
}

/// What a manifest asks for.
fn declared(text: &mut String, manifest: &Manifest, is_gate: bool) {
    for (variable, request) in manifest.env.iter().flatten() {
        let required = if request.required { ", required" } else { "" };
        line(text, "wants", &format!("your {variable}{required}: {}", shown(&request.why)));
    }
    match &manifest.permissions {
        Some(permissions) => permissions
            .iter()
            .for_each(|(permission, reason)| line(text, "asks for", &format!("{permission}: {}", shown(&reason.why)))),
        None => line(text, "asks for", "whatever the host offers: its manifest has no `permissions`"),
    }
    if is_gate {
        line(text, "stops", "calls of tools: none is made while it does not run as it was trusted");
    }
    match &manifest.tools {
        Some(tools) => {
            let names: Vec<_> = tools.iter().take(MANY).map(|tool| shown(&tool.name)).collect();
            let more = tools.len().checked_sub(MANY).filter(|more| *more > 0);
            let more = more.map(|more| format!(", and {more} more")).unwrap_or_default();
            line(text, "tools", &format!("{}{more}", names.join(", ")));
        }
        None => line(text, "tools", "not declared: it says when it runs"),
    }
}

/// What trust in an entry of a project's config is bound to.
pub(super) fn entry(table: &str, name: &PluginName, entry: &PluginConfig, files: &Contents) -> String {
    let mut text = format!("{BOLD}[{table}.{name}]{BOLD:#}\n");
    line(&mut text, "command", &command(&entry.command));
    if let Some(cwd) = &entry.cwd {
        line(&mut text, "folder", &path(cwd));
    }
    let names: Vec<_> = files.files.keys().take(MANY).map(|name| shown(name)).collect();
    let more = files.files.len().checked_sub(MANY).filter(|more| *more > 0);
    let more = more.map(|more| format!(", and {more} more")).unwrap_or_default();
    let names = if names.is_empty() { "none".to_owned() } else { format!("{}{more}", names.join(", ")) };
    line(&mut text, "bound", &format!("the entry, and these files: {names}; what else it loads is not"));
    text
}

fn contents(files: &Contents) -> String {
    let count = files.files.len();
    let s = if count == 1 { "" } else { "s" };
    format!("{count} file{s}, {} bytes, sha256 {}", files.bytes(), files.digest().short())
}

/// A command of which nothing is left out, with quotes around each word that could be taken for another one.
fn command(words: &[String]) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,${}".contains(c);
    let word = |word: &String| match word.is_empty() || !word.chars().all(is_plain) {
        true => PluginText::new(format!("{word:?}")).capped(usize::MAX).to_string(),
        false => word.clone(),
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn line(text: &mut String, label: &str, value: &str) {
    let _ = writeln!(text, "  {label:<9} {value}");
}
