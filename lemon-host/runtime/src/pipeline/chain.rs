//! Calls that are made from within calls, as a chain of tools that wait for each other.

use std::fmt;
use std::sync::Arc;

use crate::catalog::Entry;

/// The tools that are waiting, the outermost first. Clones share what they have in common.
#[derive(Clone, Default)]
pub(crate) struct Chain(Option<Link>);

/// One tool. The last one, which most chains have alone, needs no place of its own.
#[derive(Clone)]
struct Link {
    before: Option<Arc<Link>>,
    tool: Arc<Entry>,
}

impl Chain {
    /// The chain with one more tool at its end.
    pub(crate) fn with(self, tool: Arc<Entry>) -> Self {
        Self(Some(Link { before: self.0.map(Arc::new), tool }))
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
        std::iter::successors(self.0.as_ref(), |link| link.before.as_deref())
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
