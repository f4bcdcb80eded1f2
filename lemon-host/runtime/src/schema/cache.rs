//! The compiled schemas of the tools that were called, the latest ones.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use lemon_protocol::Tool;
use rustc_hash::FxHashMap;
use tokio::sync::OnceCell;

use super::thread::Share;
use super::{Patterns, Schema, SchemaFault};
use crate::catalog::ToolSource;
use crate::limits::Limits;
use crate::report::PluginText;

/// A tool's compiled schema, or why there is none.
#[derive(Debug)]
pub(crate) struct Compiled {
    schema: Result<Schema, SchemaFault>,
    told: AtomicBool,
    share: Share,
}

impl Compiled {
    /// The schema.
    ///
    /// # Errors
    /// The tool can't be called: what was not found when it was listed.
    pub(crate) fn schema(&self) -> Result<&Schema, &SchemaFault> {
        self.schema.as_ref()
    }

    /// The threads that the tool's source may have.
    pub(crate) fn share(&self) -> &Share {
        &self.share
    }

    /// What is to be told of patterns that are not checked, to whoever asks first.
    pub(crate) fn untold_note(&self) -> Option<String> {
        /// The most patterns that are shown, and the most characters of one.
        const SHOWN: usize = 5;
        const PATTERN: usize = 100;
        let ignored = self.schema.as_ref().map_or(&[][..], Schema::ignored_patterns);
        if ignored.is_empty() || self.told.swap(true, Ordering::Relaxed) {
            return None;
        }
        let shown = |pattern: &String| format!("\"{}\"", PluginText::new(pattern.as_str()).capped(PATTERN));
        let mut patterns: Vec<_> = ignored.iter().take(SHOWN).map(shown).collect();
        if ignored.len() > SHOWN {
            patterns.push(format!("{} more", ignored.len() - SHOWN));
        }
        let (subject, object) = if ignored.len() == 1 { ("pattern is", "it is") } else { ("patterns are", "they are") };
        Some(format!(
            "{} {subject} not checked, as {object} malformed, too large or not to be matched in linear time: {}",
            ignored.len(),
            patterns.join(", ")
        ))
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
    by_tool: FxHashMap<usize, Entry>,
    shares: HashMap<ToolSource, Share>,
    uses: u64,
}

#[derive(Debug)]
struct Entry {
    tool: Weak<Tool>,
    compiled: Arc<OnceCell<Arc<Compiled>>>,
    used: u64,
}

impl SchemaCache {
    /// The compiled input schema of a source's tool; calls of one tool at the same time compile it once.
    pub(crate) async fn of(&self, tool: &Arc<Tool>, source: &ToolSource, limits: &Limits) -> Arc<Compiled> {
        let cell = match self.look_up(tool, limits.compiled_schemas) {
            Ok(compiled) => return compiled,
            Err(cell) => cell,
        };
        let compile = async || {
            let share = self.share(source);
            let schema = Schema::compile(&tool.input_schema, limits, Patterns::Ignore, &share).await;
            Arc::new(Compiled { schema, told: AtomicBool::new(false), share })
        };
        // It is large and seldom needed, and every call would carry its size.
        Box::pin(cell.get_or_init(compile)).await.clone()
    }

    /// The compiled schema of a tool, or where it will be.
    fn look_up(&self, tool: &Arc<Tool>, most: usize) -> Result<Arc<Compiled>, Arc<OnceCell<Arc<Compiled>>>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let entries = &mut *entries;
        entries.uses += 1;
        let address = Arc::as_ptr(tool) as usize;
        // A weak reference keeps the address from being given to another tool.
        if let Some(entry) = entries.by_tool.get_mut(&address) {
            entry.used = entries.uses;
            return entry.compiled.get().cloned().ok_or_else(|| entry.compiled.clone());
        }
        entries.by_tool.retain(|_, entry| entry.tool.strong_count() > 0);
        while entries.by_tool.len() >= most.max(1) {
            let oldest = entries.by_tool.iter().min_by_key(|(_, entry)| entry.used).map(|(address, _)| *address);
            oldest.and_then(|oldest| entries.by_tool.remove(&oldest));
        }
        let entry = Entry { tool: Arc::downgrade(tool), compiled: Arc::default(), used: entries.uses };
        let compiled = entry.compiled.clone();
        entries.by_tool.insert(address, entry);
        Err(compiled)
    }

    fn share(&self, source: &ToolSource) -> Share {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.shares.retain(|other, share| other == source || !share.is_idle());
        entries.shares.entry(source.clone()).or_default().clone()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.lock().unwrap().by_tool.len()
    }
}
