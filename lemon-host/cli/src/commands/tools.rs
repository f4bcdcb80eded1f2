//! `lemon tools`: what there is to call.

use lemon_host::{Conflict, Host, PluginName, PluginText, StateKind, ToolInfo};
use serde::Serialize;

use super::{how_to_add, idle_filters, settled, shadowed, tell_failed, warn};
use crate::args::Tools;
use crate::config::Setup;
use crate::errors::{self, Failure};
use crate::exit::Exit;
use crate::output::Output;
use crate::schema;
use crate::signals::Signals;
use crate::table::{cut, indent, pad, rows};

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

pub(super) async fn run(
    request: &Tools,
    setup: &Setup,
    host: &Host,
    signals: &Signals,
    output: &Output,
) -> Result<Exit, Failure> {
    settled(host, signals, output).await?;
    warn(setup, host, output);
    let status = host.status();
    shadowed(&status.conflicts).into_iter().chain(idle_filters(&status)).for_each(|line| output.warning(line));
    for plugin in &status.plugins {
        for refused in &plugin.quarantined {
            let (tool, name) = (refused.tool.capped(80), &plugin.name);
            output.warning(format!("the tool `{tool}` of plugin {name} is not offered: {}", refused.reason));
        }
    }
    let any_failed = tell_failed(host, output);
    let exit = if any_failed { Exit::Plugin } else { Exit::Done };
    // Nobody knows what a plugin that failed would have offered.
    let missing = |failure: Failure| if any_failed { failure.exit(Exit::Plugin) } else { failure };
    let tools = chosen(request, host).map_err(missing)?;
    if status.plugins.is_empty() {
        output.warning("there are no plugins");
        output.hint(how_to_add(setup));
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
        let details: Vec<String> = tools.iter().map(detail).collect();
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

/// A tool with all that a caller has to know.
fn detail(tool: &ToolInfo) -> String {
    let bold = anstyle::Style::new().bold();
    let mut text = format!("{bold}{}{bold:#}  of {}\n", tool.name, tool.source);
    if tool.raw_name.raw() != tool.name {
        text.push_str(&format!("  the plugin calls it `{}`\n", tool.raw_name.capped(200)));
    }
    if let Some(title) = &tool.title {
        text.push_str(&format!("  {title}\n"));
    }
    if let Some(description) = &tool.description {
        let description = description.block().capped(usize::MAX).to_string();
        text.push_str(&format!("\n  {}\n", indent(&description, 2)));
    }
    text.push('\n');
    let arguments = schema::arguments(&tool.input_schema);
    if arguments.is_empty() {
        text.push_str("  It takes no arguments.\n");
        return text;
    }
    let lines: Vec<[String; 3]> = arguments.iter().map(|argument| argument_line(argument, tool)).collect();
    let name_width = lines.iter().map(|[name, ..]| unicode_width::UnicodeWidthStr::width(&**name)).max().unwrap_or(0);
    let type_width = lines.iter().map(|[_, kind, _]| unicode_width::UnicodeWidthStr::width(&**kind)).max().unwrap_or(0);
    text.push_str("  arguments:\n");
    for [name, kind, what] in lines {
        let line = format!("    {}  {}  ", pad(&name, name_width), pad(&kind, type_width));
        let margin = name_width + type_width + 8;
        text.push_str(format!("{line}{}", indent(&what, margin)).trim_end());
        text.push('\n');
    }
    text
}

fn argument_line(argument: &schema::Argument<'_>, tool: &ToolInfo) -> [String; 3] {
    let types = schema::types(argument.schema, &tool.input_schema);
    let types: Vec<_> = types.iter().map(|kind| kind.name()).collect();
    let kind = if types.is_empty() { "anything".to_owned() } else { types.join("|") };
    let required = if argument.required { "" } else { ", optional" };
    let mut what = argument.schema["description"]
        .as_str()
        .map(|text| PluginText::new(text.trim()).block().to_string())
        .unwrap_or_default();
    let mut notes = Vec::new();
    if let Some(values) = argument.schema["enum"].as_array() {
        let values: Vec<String> = values.iter().map(ToString::to_string).collect();
        notes.push(format!("one of {}", errors::shown(&values.join(", "))));
    }
    if let Some(default) = argument.schema.get("default") {
        notes.push(format!("default: {}", errors::shown(&default.to_string())));
    }
    if !notes.is_empty() {
        let notes = notes.join("; ");
        what = if what.is_empty() { notes } else { format!("{what} ({notes})") };
    }
    [cut(&errors::shown(argument.name), 60), format!("{kind}{required}"), what]
}
