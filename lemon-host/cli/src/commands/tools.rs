//! `lemon tools`: what there is to call.

mod detail;

use lemon_host::{Conflict, Host, PluginName, PluginText, StateKind, ToolInfo};
use serde::Serialize;

use tokio_util::sync::CancellationToken;

use super::told::{idle_filters, no_plugins, no_tools, shadowed, tell_failed};
use super::{Work, awake};
use crate::args::Tools;
use crate::errors::{self, Failure};
use crate::exit::Exit;
use crate::output::Output;
use crate::table::rows;

#[derive(Serialize)]
struct Report<'a> {
    tools: &'a [ToolInfo],
    failed: Vec<Failed>,
    conflicts: &'a [Conflict],
    quarantined: Vec<Refused>,
}

#[derive(Serialize)]
struct Failed {
    plugin: PluginName,
    state: StateKind,
    error: Option<String>,
}

#[derive(Serialize)]
struct Refused {
    plugin: PluginName,
    tool: PluginText,
    reason: PluginText,
}

pub(crate) async fn tools(request: &Tools, work: &Work, cancel: &CancellationToken) -> Result<Exit, Failure> {
    let Work { setup, host, output, .. } = work;
    if request.refresh {
        awake(work, cancel).await?;
    }
    let status = host.status();
    shadowed(&status.conflicts).into_iter().chain(idle_filters(&status)).for_each(|line| output.warning(line));
    for plugin in &status.plugins {
        for refused in &plugin.quarantined {
            let (tool, name) = (refused.tool.capped(80), &plugin.name);
            output.warning(format!("the tool `{tool}` of plugin {name} is not offered: {}", refused.reason));
        }
    }
    let any_failed = tell_failed(work);
    let exit = if any_failed { Exit::Plugin } else { Exit::Done };
    // Nobody knows what a plugin that failed would have offered.
    let missing = |failure: Failure| if any_failed { failure.exit(Exit::Plugin) } else { failure };
    let tools = chosen(request, host).map_err(missing)?;
    if status.plugins.is_empty() {
        let (what, hint) = no_plugins(setup);
        output.warning(what);
        output.hint(hint);
    } else if tools.is_empty()
        && let Some(why) = no_tools(&status)
    {
        output.warning(why);
    }
    if request.json {
        let failed = status.plugins.iter().filter(|plugin| errors::has_failed(plugin)).map(|plugin| Failed {
            plugin: plugin.name.clone(),
            state: plugin.state,
            error: plugin.error.clone(),
        });
        let quarantined = status.plugins.iter().flat_map(|plugin| {
            plugin.quarantined.iter().map(|refused| Refused {
                plugin: plugin.name.clone(),
                tool: refused.tool.clone(),
                reason: refused.reason.clone(),
            })
        });
        let report = Report {
            tools: &tools,
            failed: failed.collect(),
            conflicts: &status.conflicts.conflicts,
            quarantined: quarantined.collect(),
        };
        output.json(&report).await?;
    } else if request.names.is_empty() {
        output.report(&table(&tools)).await?;
    } else {
        let details: Vec<String> = tools.iter().map(detail::of).collect();
        output.report(&details.join("\n")).await?;
    }
    Ok(exit)
}

fn chosen(request: &Tools, host: &Host) -> Result<Vec<ToolInfo>, Failure> {
    if request.names.is_empty() {
        return Ok(host.tools());
    }
    let of = |name: &String| host.tool(name).map_err(|error| errors::of_call(&error, name, &[]));
    request.names.iter().map(of).collect()
}

/// A line for each tool.
fn table(tools: &[ToolInfo]) -> String {
    let row = |tool: &ToolInfo| {
        let described = tool.description.as_ref().or(tool.title.as_ref());
        let first = described.and_then(|text| text.raw().lines().map(str::trim).find(|line| !line.is_empty()));
        [
            tool.name.clone(),
            tool.source.plugin().map_or_else(|| tool.source.to_string(), ToString::to_string),
            first.map(errors::shown).unwrap_or_default(),
        ]
    };
    rows(&tools.iter().map(row).collect::<Vec<_>>(), Output::width())
}
