//! Which of a plugin's processes something belongs to.

use std::fmt;

use serde::Serialize;

/// Counts a plugin's processes from 1. What carries an older generation than the current one is never acted on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Generation(pub(super) u64);

impl Generation {
    /// What comes before the first process.
    pub(crate) const NONE: Self = Self(0);

    pub(crate) fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
