//! What is wrong with a value, place by place.

use std::fmt;

use super::place::Place;
use crate::report::PluginText;

/// The most violations that are told; the others are counted.
const MOST: usize = 20;
/// The most characters of one, and of its pointer.
const MESSAGE: usize = 400;
const POINTER: usize = 1000;
/// So many are told with what may have been meant.
const SUGGESTIONS: usize = 5;

/// One thing that is wrong, safe to show. It never holds a given value, only keys and what the schema says: values may
/// be secrets.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Violation {
    /// Where, as a JSON pointer, in which characters that nobody sees are written `\\u{…}` and what is longer than 1,000
    /// characters is cut.
    pub pointer: String,
    /// Where, for people: `filter.tags[2]`, and nothing for the whole.
    pub path: String,
    /// What: `expected string, got integer`.
    pub what: String,
}

impl Violation {
    /// A violation at a place.
    pub(crate) fn at(place: &Place<'_>, what: impl fmt::Display) -> Self {
        let what = PluginText::new(what.to_string()).capped(MESSAGE).to_string();
        let path = PluginText::new(place.path()).capped(MESSAGE).to_string();
        Self { pointer: pointer(place), path, what }
    }
}

/// The pointer of a place as violations have it.
pub(crate) fn pointer(place: &Place<'_>) -> String {
    #[cfg(test)]
    POINTERS.set(POINTERS.get() + 1);
    PluginText::new(place.pointer()).capped(POINTER).to_string()
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.what)
    }
}

/// All that is wrong with a value: the first few, and how many more there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Violations {
    list: Vec<Violation>,
    more: usize,
    suggestions: usize,
}

impl Violations {
    pub(crate) fn push(&mut self, violation: Violation) {
        if self.list.len() < MOST { self.list.push(violation) } else { self.more += 1 }
    }

    /// Adds one, for which nothing is made of its place if it is only counted: a place may be long, and there may be many.
    pub(crate) fn add(&mut self, place: &Place<'_>, what: impl fmt::Display) {
        if self.is_full() { self.more += 1 } else { self.list.push(Violation::at(place, what)) }
    }

    /// Changes what is said of each place.
    pub(crate) fn reworded(mut self, reword: impl Fn(&str) -> String) -> Self {
        self.list.iter_mut().for_each(|violation| violation.what = reword(&violation.what));
        self
    }

    /// Whether further ones are only counted.
    pub(super) fn is_full(&self) -> bool {
        self.list.len() >= MOST
    }

    /// Whether the next one should say what may have been meant, which takes a look at all names.
    pub(super) fn may_suggest(&mut self) -> bool {
        self.suggestions += 1;
        self.suggestions <= SUGGESTIONS
    }

    /// Counts some that are not told.
    pub(super) fn count(&mut self, more: usize) {
        self.more += more;
    }

    /// Takes out those that are not wanted.
    pub(crate) fn retain(&mut self, wanted: impl FnMut(&Violation) -> bool) {
        self.list.retain(wanted);
    }

    pub(crate) fn extend(&mut self, others: Self) {
        self.more += others.more;
        others.list.into_iter().for_each(|violation| self.push(violation));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The ones that are told.
    pub(crate) fn list(&self) -> &[Violation] {
        &self.list
    }

    /// How many more there are.
    pub(crate) fn more(&self) -> usize {
        self.more
    }
}

impl From<Violation> for Violations {
    fn from(violation: Violation) -> Self {
        Self { list: vec![violation], ..Self::default() }
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, violation) in self.list.iter().enumerate() {
            write!(f, "{}{violation}", if at == 0 { "" } else { "; " })?;
        }
        if self.more > 0 { write!(f, "; and {} more", self.more) } else { Ok(()) }
    }
}

#[cfg(test)]
thread_local! {
    /// How many pointers were made on this thread.
    pub(crate) static POINTERS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}
