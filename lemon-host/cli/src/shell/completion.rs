//! What the word that is being typed may become.

use lemon_host::Host;
use serde_json::Value;

use super::command;
use crate::commands::Work;
use crate::schema;

/// Where the word begins, and what it may become.
pub(super) fn complete(typed: &str, work: &Work) -> (usize, Vec<String>) {
    let start = typed
        .rfind(char::is_whitespace)
        .map_or(0, |space| space + typed[space..].chars().next().map_or(1, char::len_utf8));
    let word = &typed[start..];
    let before: Vec<&str> = typed[..start].split_whitespace().collect();
    let mut candidates = match before[..] {
        [] | ["help"] => spaced(command::names()),
        ["tools", ..] | ["call"] => spaced(tools(&work.host)),
        ["call", tool, ..] => arguments(tool, &work.host),
        ["logs", ..] => spaced(work.setup.names().iter().map(ToString::to_string).collect()),
        ["status" | "start" | "stop" | "restart" | "reload" | "kill", ..] => {
            spaced(work.host.status().plugins.iter().map(|plugin| plugin.name.to_string()).collect())
        }
        _ => Vec::new(),
    };
    candidates.retain(|candidate| candidate.starts_with(word));
    (start, candidates)
}

fn spaced(words: Vec<String>) -> Vec<String> {
    words.into_iter().map(|word| word + " ").collect()
}

fn tools(host: &Host) -> Vec<String> {
    host.tools().into_iter().map(|tool| tool.name).collect()
}

/// The arguments that a tool takes; with the values that one may have, if they are few.
fn arguments(tool: &str, host: &Host) -> Vec<String> {
    let Ok(tool) = host.tool(tool) else { return Vec::new() };
    let arguments = schema::arguments(&tool.input_schema, &tool.input_schema);
    // A name that a plugin made up so that it needs quotes is typed by hand, or not at all.
    let plain = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
    let of = |argument: &schema::Argument<'_>| {
        let values = schema::choices(argument.schema, &tool.input_schema);
        let values = values.into_iter().filter_map(Value::as_str);
        let values: Vec<String> =
            values.filter(|value| plain(value)).map(|value| format!("{}={value} ", argument.name)).collect();
        if values.is_empty() { vec![format!("{}=", argument.name)] } else { values }
    };
    arguments.iter().filter(|argument| plain(argument.name)).flat_map(of).collect()
}
