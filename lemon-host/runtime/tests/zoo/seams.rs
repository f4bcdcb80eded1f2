//! What the host of a case is given along: it notes what it is told.

use std::pin::Pin;
use std::sync::{Arc, Mutex};

use lemon_host::{
    Approval, Approver, CallRequest, Direction, Event, EventSink, HostTool, ToolCall, ToolResult, TraceLine, TraceSink,
};
use serde_json::json;

use crate::cage::LOOK;
use crate::case::VICTIM;

/// All that was told of the faulty plugin, in order.
#[derive(Clone, Default)]
pub(crate) struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    pub(crate) fn add(&self, note: impl Into<String>) {
        self.0.lock().unwrap().push(note.into());
    }

    pub(crate) fn has(&self, part: &str) -> bool {
        self.count(part) > 0
    }

    pub(crate) fn count(&self, part: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|note| note.contains(part)).count()
    }

    /// For a message.
    pub(crate) fn all(&self) -> String {
        self.0.lock().unwrap().join("\n")
    }
}

impl EventSink for Notes {
    fn event(&self, event: &Event) {
        match event {
            Event::State { plugin, state, .. } if plugin.as_str() == VICTIM => self.add(format!("state {state}")),
            // A flood of them would be a flood of notes.
            Event::Log { plugin, level, text } if plugin.as_str() == VICTIM && self.count("log ") < 100 => {
                self.add(format!("log {level}: {text}"));
            }
            Event::Noise { plugin, kind, first } if plugin.as_str() == VICTIM => {
                self.add(format!("noise {kind}: {first}"));
            }
            Event::ToolsChanged { plugin } if plugin.as_str() == VICTIM => self.add("tools changed"),
            _ => {}
        }
    }
}

impl TraceSink for Notes {
    fn line(&self, line: &TraceLine<'_>) {
        let arrow = match line.direction {
            Direction::ToPlugin => "→",
            Direction::FromPlugin => "←",
        };
        if line.plugin.as_str() == VICTIM {
            self.add(format!("{arrow} {}", line.text));
        }
    }
}

/// Lets plugins call what they like.
pub(crate) struct AllowAll;

impl Approver for AllowAll {
    fn approve<'a>(&'a self, _: CallRequest<'a>) -> Pin<Box<dyn Future<Output = Approval> + Send + 'a>> {
        Box::pin(std::future::ready(Approval::Allow))
    }
}

/// A tool of the program's that answers at once.
pub(crate) fn told() -> HostTool {
    HostTool::new("told", "Answers.", json!({ "type": "object" }), |_| async { "told" }).unwrap()
}

/// A tool of the program's that answers when something was told.
pub(crate) fn patient(notes: &Notes) -> HostTool {
    let notes = notes.clone();
    let schema = json!({ "type": "object", "properties": { "until": { "type": "string" } }, "required": ["until"] });
    HostTool::new("patient", "Waits.", schema, move |call: ToolCall| {
        let notes = notes.clone();
        async move {
            let arguments: serde_json::Value = call.arguments().unwrap();
            while !notes.has(arguments["until"].as_str().unwrap()) {
                tokio::time::sleep(LOOK).await;
            }
            ToolResult::text("told")
        }
    })
    .unwrap()
}

/// A tool of the program's that ends when its caller wants no answer any more, and notes both.
pub(crate) fn endless(notes: &Notes) -> HostTool {
    let notes = notes.clone();
    HostTool::new("endless", "Never ends.", json!({ "type": "object" }), move |call: ToolCall| {
        let notes = notes.clone();
        async move {
            notes.add("endless begins");
            call.cancelled().await;
            notes.add("endless ends");
            ToolResult::text("")
        }
    })
    .unwrap()
}
