//! The compiled schemas of the tools that were called, the latest ones.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use lemon_protocol::Tool;
use tokio::sync::OnceCell;

use super::{Patterns, Schema, SchemaFault};
use crate::limits::Limits;

/// A tool's compiled schema, or why there is none.
#[derive(Debug)]
pub(crate) struct Compiled {
    schema: Result<Schema, SchemaFault>,
    told: AtomicBool,
}

impl Compiled {
    /// The schema.
    ///
    /// # Errors
    /// The tool can't be called: what was not found when it was listed.
    pub(crate) fn schema(&self) -> Result<&Schema, &SchemaFault> {
        self.schema.as_ref()
    }

    /// The patterns that are not checked, to whoever asks first.
    pub(crate) fn untold_patterns(&self) -> &[String] {
        match &self.schema {
            Ok(schema) if !schema.ignored_patterns().is_empty() && !self.told.swap(true, Ordering::Relaxed) => {
                schema.ignored_patterns()
            }
            _ => &[],
        }
    }
}

/// Compiled schemas, for as many tools as [`Limits::compiled_schemas`]; the one that was not used for the longest time
/// makes room.
#[derive(Debug, Default)]
pub(crate) struct SchemaCache {
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    /// By the address of the tool.
    by_tool: HashMap<usize, Entry>,
    uses: u64,
}

#[derive(Debug)]
struct Entry {
    tool: Weak<Tool>,
    compiled: Arc<OnceCell<Arc<Compiled>>>,
    used: u64,
}

impl SchemaCache {
    /// The compiled input schema of a tool; calls of one tool at the same time compile it once.
    pub(crate) async fn of(&self, tool: &Arc<Tool>, limits: &Limits) -> Arc<Compiled> {
        let cell = self.cell(tool, limits.compiled_schemas);
        if let Some(compiled) = cell.get() {
            return compiled.clone();
        }
        let compile = async || {
            let schema = Schema::compile(&tool.input_schema, limits, Patterns::Ignore).await;
            Arc::new(Compiled { schema, told: AtomicBool::new(false) })
        };
        cell.get_or_init(compile).await.clone()
    }

    fn cell(&self, tool: &Arc<Tool>, most: usize) -> Arc<OnceCell<Arc<Compiled>>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let entries = &mut *entries;
        entries.uses += 1;
        let address = Arc::as_ptr(tool) as usize;
        // A weak reference keeps the address from being given to another tool.
        if let Some(entry) = entries.by_tool.get_mut(&address) {
            entry.used = entries.uses;
            return entry.compiled.clone();
        }
        entries.by_tool.retain(|_, entry| entry.tool.strong_count() > 0);
        while entries.by_tool.len() >= most.max(1) {
            let oldest = entries.by_tool.iter().min_by_key(|(_, entry)| entry.used).map(|(address, _)| *address);
            oldest.and_then(|oldest| entries.by_tool.remove(&oldest));
        }
        let entry = Entry { tool: Arc::downgrade(tool), compiled: Arc::default(), used: entries.uses };
        let compiled = entry.compiled.clone();
        entries.by_tool.insert(address, entry);
        compiled
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.lock().unwrap().by_tool.len()
    }
}
