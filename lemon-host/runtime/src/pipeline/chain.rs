//! Calls that are made from within calls, as a chain of tools that wait for each other.

use std::fmt;
use std::sync::Arc;

use crate::catalog::Entry;

/// The tools that are waiting, the outermost first. Clones share what they have in common.
#[derive(Clone, Default)]
pub(crate) struct Chain(Option<Arc<Link>>);

struct Link {
    before: Chain,
    tool: Arc<Entry>,
}

impl Chain {
    /// The chain with one more tool at its end.
    pub(crate) fn with(&self, tool: Arc<Entry>) -> Self {
        Self(Some(Arc::new(Link { before: self.clone(), tool })))
    }

    /// Whether a tool of that name is waiting.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.links().any(|link| link.tool.name.as_str() == name)
    }

    /// How many are waiting.
    pub(crate) fn len(&self) -> usize {
        self.links().count()
    }

    /// The tools' names.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = self.links().map(|link| link.tool.name.to_string()).collect();
        names.reverse();
        names
    }

    /// From the end to the beginning.
    fn links(&self) -> impl Iterator<Item = &Link> {
        std::iter::successors(self.0.as_deref(), |link| link.before.0.as_deref())
    }
}

impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().join(" → "))
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}
