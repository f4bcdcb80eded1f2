//! This program as a plugin: one tool, which does what its arguments say.
//!
//! It speaks the protocol by hand, without the SDK: it has to write what no SDK lets through, it starts in a
//! millisecond, and it shares no reading of the protocol with the host.

mod deeds;
mod linger;
mod stdio;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::args::Dialect;
pub(crate) use linger::linger;
use stdio::{Lines, Stdout};

/// A plugin's side of the connection.
struct Plugin {
    name: String,
    dialect: Dialect,
    stdout: Arc<Stdout>,
    /// The calls that are answered later.
    waiting: deeds::Waiting,
    /// Where calls that may end badly are written down, so that one that is made twice is found out.
    ledger: Option<PathBuf>,
    outlives: Arc<AtomicBool>,
}

/// Serves until the end of the input.
pub(crate) fn serve(name: String, dialect: Dialect, ledger: Option<PathBuf>) -> Result<()> {
    let mut plugin = Plugin {
        name,
        dialect,
        stdout: Arc::default(),
        waiting: deeds::Waiting::default(),
        ledger,
        outlives: Arc::default(),
    };
    let mut lines = Lines::default();
    while let Some(read) = lines.read()? {
        for line in read {
            plugin.line(&line);
        }
        plugin.stdout.flush();
    }
    if plugin.outlives.load(Ordering::Relaxed) {
        stdio::wait_for_ever();
    }
    Ok(())
}

/// A message of the host's.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: Option<&'a str>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
}

impl Plugin {
    fn line(&mut self, line: &[u8]) {
        // A host that writes what can't be read has a fault that its callers' checks tell.
        let Ok(Message { id, method, params, result }) = serde_json::from_slice(line) else { return };
        match (method, id) {
            (Some("tools/call"), Some(id)) => self.call(id.get(), params),
            (Some("notifications/cancelled"), None) => self.cancelled(params),
            (Some(method), Some(id)) => {
                let result = match method {
                    "initialize" => self.hello(),
                    "tools/list" => json!({ "tools": [self.tool()] }),
                    _ => json!({}),
                };
                self.stdout.add(format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, id.get()));
            }
            (None, Some(id)) => self.relayed(id.get(), result),
            _ => {}
        }
    }

    fn hello(&self) -> Value {
        let mut capabilities = json!({ "tools": { "listChanged": true }, "logging": {} });
        if self.dialect != Dialect::Mcp {
            let lemon = json!({ "version": "1.0", "multiSession": self.dialect == Dialect::Lemon });
            capabilities["experimental"] = json!({ "dev.lemon/plugin": lemon });
        }
        json!({
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "serverInfo": { "name": "lemon-soak", "version": "1.0.0" },
        })
    }

    fn tool(&self) -> Value {
        let properties = json!({
            "token": { "type": "string" },
            "deed": { "type": "string" },
            "after": { "type": "integer", "minimum": 0 },
            "pad": { "type": "string" },
        });
        let schema = json!({ "type": "object", "properties": properties, "required": ["token", "deed"] });
        json!({ "name": self.name, "description": "Does what it is told.", "inputSchema": schema })
    }
}
