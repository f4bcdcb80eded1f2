//! What the extension says that it offers: tools, commands, hooks, configuration.

use lemon_protocol::manifest::{FailurePolicy, HookEvent, HookMode};

use super::checking::{Checking, Field, quoted};
use super::problem::ProblemKind;
use super::tree::{Node, Value};
use crate::catalog::nearest;
use crate::limits::Limits;
use crate::schema;

pub(super) fn check(root: &Field<'_>, checking: &mut Checking<'_>) {
    let names = root.get("tools").map(|field| tools(&field, checking));
    let idempotent = root.get("idempotent").and_then(|field| checking.list(&field, "a list of tools' names"));
    for item in idempotent.unwrap_or_default() {
        if let (Some(name), Some(names)) = (checking.filled(&item, "a tool's name"), &names)
            && !names.contains(&name)
        {
            let message = format!("{} is none of the tools in `tools`", quoted(name));
            let hint = nearest(name, names.iter().copied()).map(|near| format!("did you mean {near:?}?"));
            checking.note(ProblemKind::UnknownTool, &item, message, hint.unwrap_or_default());
        }
    }
    let commands = root.get("commands").and_then(|field| checking.list(&field, "a list of objects"));
    let mut named = Vec::new();
    for item in commands.unwrap_or_default() {
        named.extend(command(&item, checking));
    }
    checking.unique(&named);
    for item in root.get("hooks").and_then(|field| checking.list(&field, "a list of objects")).unwrap_or_default() {
        hook(&item, checking);
    }
    if let Some(field) = root.get("config_schema") {
        json_schema(&field, false, checking);
    }
}

/// Checks the tools, and gives the names of those that have one.
fn tools<'t>(field: &Field<'t>, checking: &mut Checking<'_>) -> Vec<&'t str> {
    let items = checking.list(field, "a list of tools, as tools/list gives them");
    let mut named = Vec::new();
    for item in items.unwrap_or_default() {
        named.extend(tool(&item, checking));
    }
    checking.unique(&named);
    named.into_iter().map(|(_, name)| name).collect()
}

fn tool<'t>(item: &Field<'t>, checking: &mut Checking<'_>) -> Option<(Field<'t>, &'t str)> {
    if !checking.object(item, "a tool: an object with `name` and `inputSchema`") {
        return None;
    }
    for key in ["title", "description"] {
        if let Some(field) = item.get(key) {
            checking.text(&field, "a text");
        }
    }
    for key in ["annotations", "_meta"] {
        if let Some(field) = item.get(key) {
            checking.object(&field, "an object");
        }
    }
    if let Some(field) = checking.required(item, "inputSchema", "the JSON Schema of the arguments") {
        json_schema(&field, true, checking);
    }
    if let Some(field) = item.get("outputSchema") {
        json_schema(&field, false, checking);
    }
    let field = checking.required(item, "name", "the tool's name")?;
    let name = checking.filled(&field, "a tool's name")?;
    if name.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-', "_").starts_with("mcp_") {
        let message = format!("{} is reserved: `mcp_…` is for the tools of MCP servers", quoted(name));
        checking.note(
            ProblemKind::NameReserved,
            &field,
            message,
            "leave `mcp_` out; the host adds it where it belongs",
        );
    } else if name.len() > 64 || name.contains(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-') {
        let message =
            format!("{} will be called otherwise: models take 1 to 64 of A-Z, a-z, 0-9, `_` and `-`", quoted(name));
        checking.note(ProblemKind::ToolName, &field, message, "rename it in the plugin as well");
    }
    Some((field, name))
}

fn json_schema(field: &Field<'_>, of_arguments: bool, checking: &mut Checking<'_>) {
    // A schema may be `true`, but one of arguments or of a configuration describes an object.
    if !checking.object(field, "a JSON Schema that describes an object") {
        return;
    }
    let kind = member(field.node, "type");
    let describes = matches!(kind.map(|kind| &kind.value), Some(Value::String(kind)) if kind == "object");
    if !describes && (of_arguments || kind.is_some()) {
        let message = "the root of the JSON Schema must have \"type\": \"object\"";
        return checking.note(ProblemKind::JsonSchema, field, message, "add it");
    }
    let Ok(schema) = serde_json::from_str(checking.raw(field.node)) else { return };
    if let Err(fault) = schema::check(&schema, &Limits::default()) {
        checking.note(ProblemKind::JsonSchema, field, format!("the JSON Schema can't be used: {fault}"), "");
    }
}

fn member<'t>(node: &'t Node, key: &str) -> Option<&'t Node> {
    match &node.value {
        Value::Object(members) => members.iter().find(|member| member.key == key).map(|member| &member.node),
        _ => None,
    }
}

fn command<'t>(item: &Field<'t>, checking: &mut Checking<'_>) -> Option<(Field<'t>, &'t str)> {
    if !checking.object(item, "a command: an object with `name`") {
        return None;
    }
    checking.known(item, &["name", "description", "usage"]);
    for key in ["description", "usage"] {
        if let Some(field) = item.get(key) {
            checking.text(&field, "a text");
        }
    }
    let field = checking.required(item, "name", "the command's name")?;
    let name = checking.filled(&field, "a command's name")?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.len() > 64 || !name.chars().all(plain) || !name.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        let message = format!(
            "{} is not a command's name: 1 to 64 of A-Z, a-z, 0-9, `_` and `-`, beginning with a letter or digit",
            quoted(name)
        );
        let hint = if name.starts_with('/') { "leave the slash out" } else { "" };
        checking.note(ProblemKind::Name, &field, message, hint);
    }
    Some((field, name))
}

fn hook(item: &Field<'_>, checking: &mut Checking<'_>) {
    if !checking.object(item, "a hook: an object with `event`") {
        return;
    }
    checking.known(item, &["event", "mode", "tools", "timeoutMs", "failure"]);
    if let Some(field) = checking.required(item, "event", "the event's name")
        && let Some(event) = checking.filled(&field, "an event's name")
    {
        self::event(event, &field, checking);
    }
    if let Some(field) = item.get("mode") {
        checking.word(&field, "a mode of hooks", &HookMode::NAMES);
    }
    if let Some(field) = item.get("failure") {
        checking.word(&field, "a failure policy", &FailurePolicy::NAMES);
    }
    for tool in item.get("tools").and_then(|field| checking.list(&field, "a list of tools' names")).unwrap_or_default()
    {
        checking.filled(&tool, "a tool's name");
    }
    if let Some(field) = item.get("timeoutMs") {
        let milliseconds = match &field.node.value {
            Value::Number(text) => text.parse().unwrap_or(0_u64),
            _ => 0,
        };
        if milliseconds == 0 {
            let message = format!("it must be a whole number of milliseconds from 1, not {}", field.node.type_name());
            checking.note(ProblemKind::WrongType, &field, message, "");
        }
    }
}

fn event(event: &str, field: &Field<'_>, checking: &mut Checking<'_>) {
    if HookEvent::NAMES.contains(&event) {
        return;
    }
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if event.len() > 64 || !event.chars().all(plain) || !event.starts_with(|c: char| c.is_ascii_lowercase()) {
        let message = format!("{} is not an event's name: 1 to 64 of a-z, 0-9 and `_`", quoted(event));
        return checking.note(ProblemKind::Name, field, message, "");
    }
    let bare = event.strip_prefix("on_").unwrap_or(event);
    let hint = nearest(bare, HookEvent::NAMES).map(|near| format!("did you mean {near:?}?"));
    let message = format!("the event {event:?} is not known to this version; the hook will not be called");
    checking.note(ProblemKind::UnknownEvent, field, message, hint.unwrap_or_default());
}
