//! A plugin as it was built, checked: what a connection serves.

use std::collections::HashMap;
use std::pin::Pin;
use std::time::Duration;

use lemon_protocol::Implementation;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::config::Declared;
use crate::error::ServeError;
use crate::tool::Tool;

/// What the plugin does before its end.
pub(crate) type OnShutdown = Box<dyn Fn() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

pub(crate) struct Definition {
    pub(crate) name: String,
    /// `serverInfo`.
    pub(crate) server_info: Box<RawValue>,
    pub(crate) instructions: Option<String>,
    pub(crate) multi_session: bool,
    pub(crate) exclusive: bool,
    pub(crate) config: Option<Declared>,
    pub(crate) config_schema: Option<Value>,
    pub(crate) on_shutdown: Vec<OnShutdown>,
    pub(crate) cancel_grace: Duration,
    /// The tools as they are listed, in the order of their definition.
    pub(crate) listed: Box<RawValue>,
    tools: HashMap<String, Tool>,
}

/// What the builder gathered.
pub(crate) struct Parts {
    pub(crate) info: Implementation,
    pub(crate) instructions: Option<String>,
    pub(crate) multi_session: bool,
    pub(crate) exclusive: bool,
    pub(crate) config: Option<Declared>,
    pub(crate) on_shutdown: Vec<OnShutdown>,
    pub(crate) cancel_grace: Duration,
    pub(crate) tools: Vec<Tool>,
}

impl Definition {
    pub(crate) fn check(parts: Parts) -> Result<Self, ServeError> {
        let mut listed = Vec::with_capacity(parts.tools.len());
        let mut tools = HashMap::with_capacity(parts.tools.len());
        for tool in parts.tools {
            listed.push(tool.listed()?);
            if let Some(twice) = tools.insert(tool.name.clone(), tool) {
                return Err(ServeError::Tool { tool: twice.name, problem: "it is there twice".to_owned() });
            }
        }
        let config_schema = match &parts.config {
            None => None,
            Some(declared) => Some(declared.schema.clone().map_err(ServeError::Config)?),
        };
        let json =
            |source: serde_json::Error| ServeError::Io { action: "write the list of tools", source: source.into() };
        Ok(Self {
            server_info: to_raw_value(&parts.info).map_err(json)?,
            name: parts.info.name,
            instructions: parts.instructions,
            multi_session: parts.multi_session,
            exclusive: parts.exclusive,
            config: parts.config,
            config_schema,
            on_shutdown: parts.on_shutdown,
            cancel_grace: parts.cancel_grace,
            listed: to_raw_value(&listed).map_err(json)?,
            tools,
        })
    }

    pub(crate) fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.get(name)
    }
}
