//! Asking one process for all of its tools: page by page, bounded, with each tool taken on its own merits.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use lemon_protocol::Tool;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::CallError;
use crate::limits::Limits;
use crate::plugin::live::{Quarantined, ToolList};
use crate::report::PluginText;
use crate::schema::{self, SchemaFault};
use crate::wire::{CallOptions, Peer, PluginApiClient, call_error};

/// Lists all tools of a process.
///
/// A cursor that comes back, as well as a list that is too long, ends the listing with what there is, and is told.
///
/// # Errors
/// When a page can't be had at all.
pub(crate) async fn list_tools(peer: &Peer, limits: &Limits) -> Result<ToolList, Result<CallError, String>> {
    /// The longest cursor that is taken, in bytes.
    const CURSOR: usize = 4096;
    let mut list = ToolList::default();
    let mut names = HashSet::new();
    let mut cursors = HashSet::new();
    let mut cursor: Option<String> = None;
    let mut bytes = 0;
    loop {
        let page = peer.with(CallOptions::default()).list_tools(cursor.as_deref()).await.map_err(call_error)?;
        for entry in page.tools {
            if list.tools.len() + list.quarantined.len() >= limits.tools {
                let reason = format!("the list has more than {} tools (limits.tools)", limits.tools);
                list.quarantine("…", reason);
                return Ok(list);
            }
            bytes += entry.get().len();
            if bytes > limits.list_bytes {
                let reason = format!("the list has more than {} bytes (limits.list_bytes)", limits.list_bytes);
                list.quarantine("…", reason);
                return Ok(list);
            }
            list.take(entry, &mut names, limits, |tool, fault| {
                peer.note("output_schema", || format!("the output schema of {tool:?} is left out: {fault}"));
            })
            .await;
        }
        match page.next_cursor {
            None => return Ok(list),
            Some(next) => {
                if next.len() > CURSOR {
                    peer.note("page_loop", || format!("tools/list gave a cursor of {} bytes", next.len()));
                    return Ok(list);
                }
                if !cursors.insert(next.clone()) {
                    peer.note("page_loop", || format!("tools/list gave the cursor {next:?} a second time"));
                    return Ok(list);
                }
                cursor = Some(next);
            }
        }
    }
}

impl ToolList {
    /// The list of a plugin that was not asked for one, with the reason.
    pub(crate) fn undeclared() -> Self {
        let mut list = Self::default();
        let reason = "the answer to initialize has no capabilities.tools, so the plugin was not asked for its tools";
        list.quarantine("…", reason.to_owned());
        list
    }

    /// Takes a tool, or puts it in quarantine. An output schema that can't be used is left out and noted.
    ///
    /// Schemas take long to check for what they are: others have a turn after each, and the runtime's thread is not held
    /// up by a large one.
    pub(crate) async fn take(
        &mut self,
        entry: Box<RawValue>,
        names: &mut HashSet<String>,
        limits: &Limits,
        note: impl FnOnce(&str, &SchemaFault),
    ) {
        /// About a millisecond of work.
        const AT_ONCE: usize = 8 * 1024;
        let (name, tool) = if entry.get().len() <= AT_ONCE {
            tokio::task::yield_now().await;
            examine(&entry, limits)
        } else {
            let limits = limits.clone();
            match tokio::task::spawn_blocking(move || examine(&entry, &limits)).await {
                Ok(examined) => examined,
                Err(_) => return self.quarantine("(unknown)", "the check of its schemas broke down".to_owned()),
            }
        };
        let (mut tool, output) = match tool {
            Ok(tool) => tool,
            Err(reason) => return self.quarantine(&name, reason),
        };
        if !names.insert(name.clone()) {
            return self.quarantine(&name, "the plugin lists another tool of the same name before it".to_owned());
        }
        if let Err(fault) = output {
            note(&name, &fault);
            tool.output_schema = None;
        }
        self.tools.push(Arc::new(tool));
    }

    fn quarantine(&mut self, tool: &str, reason: String) {
        /// A longer name says no more.
        const NAME: usize = 200;
        let tool: String = tool.chars().take(NAME).collect();
        self.quarantined.push(Quarantined { tool: PluginText::new(tool), reason: PluginText::new(reason) });
    }
}

/// A tool, and whether its output schema can be used; or why it can't be called.
type Examined = Result<(Tool, Result<(), SchemaFault>), String>;

/// What an entry says of its tool, with the tool's name.
fn examine(entry: &RawValue, limits: &Limits) -> (String, Examined) {
    /// What can be read of an entry even if its schemas can't.
    #[derive(Deserialize, Default)]
    struct Head<'a> {
        #[serde(borrow, default)]
        name: Cow<'a, str>,
        #[serde(borrow, default)]
        execution: Option<&'a RawValue>,
    }
    let head: Head<'_> = serde_json::from_str(entry.get()).unwrap_or_default();
    let name = if head.name.is_empty() { "(without a name)" } else { &*head.name }.to_owned();
    let needs_tasks = head.execution.is_some_and(|execution| {
        let execution: Value = serde_json::from_str(execution.get()).unwrap_or_default();
        execution["taskSupport"] == "required"
    });
    let examined = match serde_json::from_str::<Tool>(entry.get()) {
        Err(fault) => Err(format!("its entry can't be read: {fault}")),
        Ok(_) if needs_tasks => Err("it can be called as a task only, which this host does not do".to_owned()),
        Ok(tool) => match usable(&tool.input_schema, limits) {
            Err(fault) => Err(format!("its input schema can't be used: {fault}")),
            Ok(()) => {
                let output = tool.output_schema.as_ref().map(|schema| schema::check(schema, limits));
                Ok((tool, output.map_or(Ok(()), |output| output.map(|_| ()))))
            }
        },
    };
    (name, examined)
}

/// Whether arguments can be checked against a schema (LPP-TOOL-04, LPP-LIM-10).
fn usable(schema: &Value, limits: &Limits) -> Result<(), SchemaFault> {
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err(SchemaFault::NoObject);
    }
    schema::check(schema, limits).map(|_| ())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The tools that are taken, the reasons for those that are not, and what is noted.
    async fn taken(entries: &[Value]) -> (Vec<Arc<Tool>>, Vec<String>, Vec<String>) {
        let (mut list, mut names, mut notes) = (ToolList::default(), HashSet::new(), Vec::new());
        for entry in entries {
            let entry = RawValue::from_string(entry.to_string()).unwrap();
            list.take(entry, &mut names, &Limits::default(), |tool, fault| notes.push(format!("{tool}: {fault}")))
                .await;
        }
        let reasons = list.quarantined.iter().map(|one| format!("{}: {}", one.tool.raw(), one.reason.raw())).collect();
        (list.tools, reasons, notes)
    }

    #[tokio::test]
    async fn a_schema_that_cannot_be_used_puts_its_own_tool_in_quarantine() {
        let tool = |name: &str, schema: Value| json!({ "name": name, "inputSchema": schema });
        let doubled = json!({ "allOf": [{ "$ref": "#/$defs/b" }, { "$ref": "#/$defs/b" }] });
        let back = json!({ "allOf": [{ "$ref": "#/$defs/a" }, { "$ref": "#/$defs/a" }] });
        let (tools, reasons, notes) = taken(&[
            tool("good", json!({ "type": "object" })),
            tool("untyped", json!({})),
            tool("list", json!({ "type": ["object", "null"] })),
            tool("not", json!(true)),
            tool("wrong", json!({ "type": "object", "properties": { "a": { "type": 5 } } })),
            tool("far", json!({ "type": "object", "properties": { "a": { "$ref": "file:///etc/passwd" } } })),
            tool("endless", json!({ "type": "object", "$defs": { "a": doubled, "b": back } })),
            tool("look", json!({ "type": "object", "properties": { "a": { "pattern": "^(?=x)" } } })),
        ])
        .await;
        assert_eq!(tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["good", "look"]);
        let cause = "its input schema can't be used:";
        let no_object = format!("{cause} its root has no \"type\": \"object\" (LPP-TOOL-04)");
        assert_eq!(reasons[..3], ["untyped", "list", "not"].map(|name| format!("{name}: {no_object}")));
        assert!(reasons[3].starts_with(&format!("wrong: {cause} it is no valid JSON Schema: ")), "{}", reasons[3]);
        assert!(reasons[3].ends_with("at \"/properties/a/type\""), "{}", reasons[3]);
        assert_eq!(
            reasons[4],
            format!("far: {cause} \"file:///etc/passwd\" refers to something outside of the schema")
        );
        assert!(reasons[5].starts_with(&format!("endless: {cause} ")) && reasons[5].ends_with("for the same value"));
        assert!(notes.is_empty());
    }

    #[tokio::test]
    async fn an_output_schema_that_cannot_be_used_is_left_out_and_the_tool_stays() {
        let tool = |schema: Value| json!({ "name": "x", "inputSchema": { "type": "object" }, "outputSchema": schema });
        let (tools, reasons, notes) = taken(&[tool(json!({ "$ref": "https://example.com/s" }))]).await;
        assert!(tools[0].output_schema.is_none() && reasons.is_empty());
        assert_eq!(notes, ["x: \"https://example.com/s\" refers to something outside of the schema"]);
        assert!(taken(&[tool(json!({ "type": "object" }))]).await.0[0].output_schema.is_some());
    }
    #[tokio::test]
    async fn a_long_list_holds_nobody_up() {
        let text = "x".repeat(20_000);
        let tool = |at: usize| match at % 2 {
            0 => json!({ "name": format!("t{at}"), "inputSchema": { "type": "object" } }),
            _ => json!({ "name": format!("t{at}"), "inputSchema": { "type": "object", "description": text } }),
        };
        let tools: Vec<_> = (0..100).map(tool).collect();
        let (listed, mut turns) = (std::cell::Cell::new(false), 0);
        let others = async {
            while !listed.get() {
                turns += 1;
                tokio::task::yield_now().await;
            }
        };
        let listing = async {
            assert_eq!(taken(&tools).await.0.len(), 100);
            listed.set(true);
        };
        tokio::join!(listing, others);
        assert!(turns >= 100, "{turns}");
    }
}
