//! Tools that a program registers at run time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::host_tool::HostTool;

/// Tools that parts of the embedding program register while it runs. Clones are the same registry.
///
/// It may be filled before a host is built with it or afterwards, in any order, and may serve several hosts. A
/// registered tool never takes the name of a built-in one: it stays registered, is listed as shadowed, and comes up
/// when that name is free.
#[derive(Debug, Clone, Default)]
pub struct ToolRegistry(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    tools: RwLock<BTreeMap<String, HostTool>>,
    version: AtomicU64,
}

impl ToolRegistry {
    /// Registers a tool under its name. The one that had the name in this registry is replaced, and returned.
    pub fn register(&self, tool: HostTool) -> Option<HostTool> {
        self.change(|tools| tools.insert(tool.name().to_owned(), tool))
    }

    /// Takes a tool out. Calls that are under way go on.
    pub fn unregister(&self, name: &str) -> Option<HostTool> {
        self.change(|tools| tools.remove(name))
    }

    fn change<T>(&self, change: impl FnOnce(&mut BTreeMap<String, HostTool>) -> T) -> T {
        let mut tools = self.0.tools.write().unwrap_or_else(PoisonError::into_inner);
        let changed = change(&mut tools);
        self.0.version.fetch_add(1, Ordering::Release);
        changed
    }

    /// Counts the changes.
    pub(crate) fn version(&self) -> u64 {
        self.0.version.load(Ordering::Acquire)
    }

    /// The tools by name, and how many changes led to them.
    pub(crate) fn tools(&self) -> (Vec<HostTool>, u64) {
        let tools = self.0.tools.read().unwrap_or_else(PoisonError::into_inner);
        (tools.values().cloned().collect(), self.version())
    }
}
