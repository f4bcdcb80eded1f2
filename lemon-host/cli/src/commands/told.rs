//! What several commands tell alike: what is waited for, what is odd in the config, which tools are missing and why.

use std::collections::BTreeSet;

use lemon_host::{Conflict, ConflictReport, Loser, PluginStatus, PluginText, Provenance, StateKind, Status};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{NOTICEABLE, Work, interrupted};
use crate::config::Setup;
use crate::errors::{self, Failure};

/// Waits until every plugin that has to run is ready or has failed, and shows which ones it is waiting for.
pub(crate) async fn settled(work: &Work, cancel: &CancellationToken) -> Result<(), Failure> {
    started(work, cancel, work.host.settled()).await
}

/// Starts the plugins that have not run yet as well.
pub(crate) async fn awake(work: &Work, cancel: &CancellationToken) -> Result<(), Failure> {
    started(work, cancel, work.host.wake()).await
}

async fn started(work: &Work, cancel: &CancellationToken, done: impl Future<Output = ()>) -> Result<(), Failure> {
    let Work { host, output, .. } = work;
    let mut done = std::pin::pin!(done);
    let settled = loop {
        tokio::select! {
            biased;
            () = &mut done => break Ok(()),
            () = cancel.cancelled() => break Err(interrupted()),
            () = sleep(NOTICEABLE) => {}
        }
        let is_starting = |plugin: &PluginStatus| matches!(plugin.state, StateKind::Spawning | StateKind::Handshaking);
        let plugins = host.status().plugins;
        let names: Vec<_> =
            plugins.iter().filter(|plugin| is_starting(plugin)).map(|plugin| plugin.name.as_str()).collect();
        output.progress(Some(format!("starting {}", names.join(", "))));
    };
    output.progress(None);
    settled
}

/// What has to be said of the config before a list or a call is of use.
pub(crate) fn warn(work: &Work) {
    let Work { setup, host, output, .. } = work;
    setup.warnings.iter().for_each(|warning| output.warning(warning));
    let held = setup.held_lines();
    let more = held.len().saturating_sub(HELD);
    for (what, hint) in held.into_iter().take(HELD) {
        output.warning(what);
        hint.into_iter().for_each(|hint| output.hint(hint));
    }
    if more > 0 {
        output.warning(format!("{more} more are left out"));
        output.hint("`lemon plugin list` shows all of them");
    }
    for Loser { name, provenance, winner, .. } in host.status().losers {
        if (&provenance, &winner) == (&Provenance::Flag, &Provenance::Flag) {
            output.warning(format!("several `--plugin` are named {name}: only the first is started"));
            output.hint("give each a name of its own: `--plugin NAME=PATH-OR-COMMAND`");
            continue;
        }
        let (loser, winner) = (errors::shown(&provenance.to_string()), errors::shown(&winner.to_string()));
        output.warning(format!("plugin {name} of {loser} is not started: {winner} has one of that name, and wins"));
    }
}

/// Of so many plugins that are left out each is told of; they are in every list.
const HELD: usize = 5;

/// More lines of one kind nobody reads.
pub(super) const LINES: usize = 20;

/// A line for each tool that another one of its name hides.
pub(super) fn shadowed(conflicts: &ConflictReport) -> Vec<String> {
    let all = conflicts.conflicts.iter().flat_map(|Conflict { tool_name, winner, shadowed, .. }| {
        shadowed.iter().map(move |loser| format!("the tool `{tool_name}` of {loser} is hidden by the one of {winner}"))
    });
    first(all, "more tools are hidden")
}

/// A line for each name that `--disable` and its like give in vain.
pub(super) fn idle_filters(status: &Status) -> Vec<String> {
    // Nobody knows what a plugin that failed would have offered.
    let of = if status.plugins.iter().any(errors::has_failed) { " of the plugins that are ready" } else { "" };
    let all = status.idle_filters.iter().map(|pattern| {
        let pattern = PluginText::new(pattern.as_str());
        format!("no tool{of} is named `{}`, which is to be disabled or enabled", pattern.capped(80))
    });
    first(all, "more names stand for no tool")
}

/// The first lines, and how many more there are.
fn first(lines: impl Iterator<Item = String>, more: &str) -> Vec<String> {
    let mut lines: Vec<_> = lines.collect();
    if let Some(left @ 1..) = lines.len().checked_sub(LINES) {
        lines.truncate(LINES);
        lines.push(format!("{left} {more}; `lemon status --json` has them all"));
    }
    lines
}

/// Tells of the plugins that can't be used, and says whether there are any.
pub(crate) fn tell_failed(Work { host, output, .. }: &Work) -> bool {
    let plugins = host.status().plugins;
    let failures: Vec<Failure> = plugins.iter().filter_map(errors::of_start).collect();
    failures.iter().for_each(|failure| output.failure(failure));
    !failures.is_empty()
}

/// That there is no plugin at all, and what to do about it.
pub(super) fn no_plugins(setup: &Setup) -> (String, String) {
    if setup.waits_for_trust() {
        return ("no plugin is trusted".to_owned(), "`lemon plugin trust` shows what is to be trusted".to_owned());
    }
    let disabled: Vec<_> = setup.sources.disabled.iter().map(|disabled| disabled.name.as_str()).collect();
    if let Some(first) = setup.sources.disabled.first() {
        let (all, at) = (disabled.join(", "), errors::shown(&first.by.to_string()));
        return (format!("all plugins are disabled: {all}"), format!("take `enabled = false` out of {at}"));
    }
    let config = setup.sources.home.as_ref().map(|home| home.join("config.toml"));
    let config =
        config.map_or_else(|| "a file for `--config`".to_owned(), |file| errors::shown(&file.to_string_lossy()));
    let how = format!(
        "add one with `--plugin PATH-OR-COMMAND`, or as [plugins.NAME] with `command = [\"PROGRAM\", \"ARGUMENT\"]` in {config}"
    );
    ("there are no plugins".to_owned(), how)
}

/// Why a list of tools is empty although there are plugins.
pub(super) fn no_tools(status: &Status) -> Option<String> {
    if status.hidden.is_empty() {
        let is_silent = |plugin: &PluginStatus| errors::has_failed(plugin) || !plugin.quarantined.is_empty();
        // Otherwise that is told already.
        return (!status.plugins.iter().any(is_silent)).then(|| "the plugins offer no tools".to_owned());
    }
    let rules: BTreeSet<String> = status.hidden.iter().map(|hidden| errors::shown(&hidden.rule.to_string())).collect();
    let rules: Vec<_> = rules.into_iter().take(LINES).collect();
    let count = status.hidden.len();
    let what = if count == 1 { "the only tool is hidden".to_owned() } else { format!("all {count} tools are hidden") };
    Some(format!("{what} by `--disable`, `--enable-only` or [tools] of a config file: {}", rules.join("; ")))
}
