//! One tool with all that a caller has to know.

use anstyle::Style;
use lemon_host::{PluginText, ToolInfo};
use serde_json::Value;
use unicode_width::UnicodeWidthStr as _;

use crate::errors::shown;
use crate::schema::{self, Argument};
use crate::table::{cut, indent, pad};

/// How deep arguments within arguments are shown.
const DEPTH: usize = 4;

/// More arguments of one tool nobody reads.
const MOST: usize = 200;

/// The widest name of an argument.
const NAME: usize = 60;

/// An argument on its way to the reader.
struct Row {
    name: String,
    kind: String,
    what: String,
}

/// The tool as a text of several lines.
pub(super) fn of(tool: &ToolInfo) -> String {
    let bold = Style::new().bold();
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
    let mut rows = Vec::new();
    collect(&tool.input_schema, &tool.input_schema, 0, &mut rows);
    if rows.is_empty() {
        text.push_str("  It takes no arguments.\n");
        return text;
    }
    let name_width = rows.iter().map(|row| row.name.width()).max().unwrap_or(0);
    let kind_width = rows.iter().map(|row| row.kind.width()).max().unwrap_or(0);
    text.push_str("  arguments:\n");
    for Row { name, kind, what } in &rows {
        let line = format!("    {}  {}  ", pad(name, name_width), pad(kind, kind_width));
        text.push_str(format!("{line}{}", indent(what, name_width + kind_width + 8)).trim_end());
        text.push('\n');
    }
    if rows.len() == MOST {
        text.push_str("    … and more: `lemon tools --json` has the whole schema\n");
    }
    text
}

/// The arguments that a schema has, each with those within it.
fn collect(schema: &Value, root: &Value, depth: usize, rows: &mut Vec<Row>) {
    if depth == DEPTH {
        return;
    }
    for argument in schema::arguments(schema, root) {
        if rows.len() == MOST {
            return;
        }
        rows.push(row(&argument, root, depth));
        collect(argument.schema, root, depth + 1, rows);
        if let Some(items) = schema::items(argument.schema, root) {
            collect(items, root, depth + 1, rows);
        }
    }
}

fn row(argument: &Argument<'_>, root: &Value, depth: usize) -> Row {
    let Argument { name, required, schema } = argument;
    let said = |key: &str| schema::said(schema, root, key);
    let optional = if *required { "" } else { ", optional" };
    let description = said("description").and_then(Value::as_str).unwrap_or_default();
    let mut what = PluginText::new(description.trim()).block().to_string();
    let mut notes = Vec::new();
    let json = |value: &Value| shown(&value.to_string());
    let choices = |schema: &Value| {
        let values = schema::choices(schema, root);
        let values: Vec<String> = values.iter().map(ToString::to_string).collect();
        (!values.is_empty()).then(|| format!("one of {}", shown(&values.join(", "))))
    };
    notes.extend(choices(schema));
    notes.extend(schema::items(schema, root).and_then(choices).map(|choices| format!("each {choices}")));
    notes.extend(said("minimum").map(|least| format!("at least {}", json(least))));
    notes.extend(said("maximum").map(|most| format!("at most {}", json(most))));
    notes.extend(said("format").and_then(Value::as_str).map(|format| format!("format: {}", shown(format))));
    notes.extend(said("default").map(|default| format!("default: {}", json(default))));
    if !notes.is_empty() {
        let notes = notes.join("; ");
        what = if what.is_empty() { notes } else { format!("{what} ({notes})") };
    }
    let name = format!("{}{}", "  ".repeat(depth), cut(&shown(name), NAME));
    Row { name, kind: format!("{}{optional}", schema::kind(schema, root)), what }
}
