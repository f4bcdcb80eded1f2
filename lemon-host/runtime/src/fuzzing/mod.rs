//! The parts of the host that read what plugins and models wrote, as a fuzzer meets them: each function takes any bytes,
//! does with them what the host does, and panics if something does not hold that holds of all bytes.
//!
//! It is there with the feature `fuzzing` only, for `tests/fuzz`; no program has a use for it, and it promises nothing.

mod manifest;
mod start;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use lemon_protocol::{ListToolsResult, Tool};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::arguments::Arguments;
use crate::catalog::{ToolSource, names};
use crate::limits::Limits;
use crate::plugin::live::ToolList;
use crate::report::PluginText;
use crate::schema::{self, Compiled, SchemaCache};

pub use manifest::manifest;
pub use start::start;

/// Bytes are the result of `tools/list`, one page of it.
pub fn list(bytes: &[u8]) {
    let Ok(page) = serde_json::from_slice::<ListToolsResult>(bytes) else { return };
    block_on(async {
        let (mut list, mut taken, limits) = (ToolList::default(), Default::default(), limits());
        let entries = page.tools.len();
        for entry in page.tools {
            list.take(entry, &mut taken, &limits, |name, fault| {
                is_tellable(&PluginText::new(name).to_string());
                is_tellable(&PluginText::new(fault.to_string()).to_string());
            })
            .await;
        }
        assert_eq!(list.tools.len() + list.quarantined.len(), entries, "a tool is neither taken nor in quarantine");
        are_callable(&list);
    });
}

/// The first line is a schema, what follows are arguments for it.
pub fn schema(bytes: &[u8]) {
    let mut parts = bytes.splitn(2, |byte| *byte == b'\n');
    let (schema, text) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let (Ok(schema), Ok(text)) = (serde_json::from_slice::<Value>(schema), std::str::from_utf8(text)) else { return };
    let limits = limits();
    let checked = schema::check(&schema, &limits);
    let Some(tool) = tool(schema) else { return };
    block_on(async {
        let compiled = SchemaCache::default().of(&tool, &ToolSource::Builtin, &limits).await;
        match (&checked, compiled.schema()) {
            // What the list lets through can be called, but for a thread that the system does not give.
            (Ok(_), Err(fault)) => panic!("a schema that passes the check can't be compiled: {fault}"),
            (Err(_), Ok(_)) => panic!("a schema that does not pass the check is compiled"),
            (_, Err(fault)) => is_tellable(&PluginText::new(fault.to_string()).to_string()),
            (_, Ok(_)) => {}
        }
        if let Some(note) = compiled.untold_note() {
            is_tellable(&PluginText::new(note).to_string());
        }
        read(text, &compiled, &limits).await;
    });
}

/// The first byte chooses one of some schemas, the rest are arguments for it.
pub fn arguments(bytes: &[u8]) {
    thread_local! {
        static KNOWN: (Vec<Arc<Tool>>, SchemaCache) =
            (schemas().into_iter().filter_map(tool).collect(), SchemaCache::default());
    }
    let Some((choice, text)) = bytes.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let limits = limits();
    KNOWN.with(|(tools, cache)| {
        block_on(async {
            let compiled = cache.of(&tools[usize::from(*choice) % tools.len()], &ToolSource::Builtin, &limits).await;
            read(text, &compiled, &limits).await;
        });
    });
}

fn tool(schema: Value) -> Option<Arc<Tool>> {
    serde_json::from_value(json!({ "name": "tool", "inputSchema": schema })).ok().map(Arc::new)
}

/// Reads arguments by a schema.
async fn read(text: &str, compiled: &Arc<Compiled>, limits: &Limits) {
    let arguments = match Arguments::read(text, compiled, limits).await {
        Ok(arguments) => arguments,
        Err(fault) => return is_tellable(&fault.to_string()),
    };
    for text in [arguments.given(), arguments.sent()] {
        assert!(!text.contains('\n') && text.starts_with('{'), "arguments are one line: {text}");
        assert!(serde_json::from_str::<&RawValue>(text).is_ok(), "arguments are JSON: {text}");
    }
    let again = Arguments::read(arguments.sent(), compiled, limits).await;
    let again = again.unwrap_or_else(|fault| panic!("what is sent is not acceptable: {fault}"));
    assert_eq!(again.sent(), arguments.sent(), "reading what is sent changes it again");
}

/// Whether each tool has a name that a model takes, and what is told of the others can be told.
fn are_callable(list: &ToolList) {
    for tool in &list.tools {
        for source in [names::Source::Plain, names::Source::Mcp("server")] {
            let name = names::RawName { source, name: &tool.name }.alone();
            let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            assert!((1..=names::MAX_NAME).contains(&name.as_str().len()) && name.as_str().chars().all(allowed));
        }
    }
    for out in &list.quarantined {
        is_tellable(&out.tool.line().to_string());
        is_tellable(&out.reason.block().to_string());
    }
}

/// Whether a text can be shown on a terminal: nothing in it acts on one.
fn is_tellable(text: &str) {
    let acts = |c: char| c.is_control() && c != '\n' && c != '\t';
    assert!(!text.chars().any(acts), "it is told raw: {text:?}");
}

/// The defaults, and small where that makes a bound reachable by few bytes.
fn limits() -> Limits {
    Limits { tools: 16, schema_depth: 16, schema_bytes: 16 * 1024, argument_values: 512, ..Limits::default() }
}

fn schemas() -> Vec<Value> {
    let scalars =
        json!({ "n": { "type": "integer" }, "x": { "type": ["number", "null"] }, "b": { "type": "boolean" } });
    let nested = json!({
        "list": { "type": "array", "items": { "type": "integer" }, "maxItems": 4, "uniqueItems": true },
        "map": { "type": "object", "additionalProperties": { "type": "string", "maxLength": 5 } },
        "one": { "oneOf": [{ "type": "object", "properties": { "a": { "type": "integer" } } }, { "const": 1 }] },
        "Name": { "type": "string", "pattern": "^[a-z]+$" },
        "deep": { "$ref": "#" },
    });
    vec![
        json!({ "type": "object" }),
        json!({ "type": "object", "properties": scalars, "additionalProperties": false, "required": ["n"] }),
        json!({ "type": "object", "properties": nested }),
        json!({ "type": "object", "patternProperties": { "^a": { "type": "integer", "minimum": 1.5, "multipleOf": 0.1 } } }),
    ]
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    thread_local! {
        static RUNTIME: tokio::runtime::Runtime = match tokio::runtime::Builder::new_current_thread().enable_time().build() {
            Ok(runtime) => runtime,
            Err(error) => panic!("there is no runtime: {error}"),
        };
    }
    RUNTIME.with(|runtime| runtime.block_on(work))
}
