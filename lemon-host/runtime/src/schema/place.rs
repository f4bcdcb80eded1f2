//! Where a value stands, as a path for people (`filter.tags[2]`) and as a JSON pointer.

use std::fmt::{Display, Write};

use crate::report::PluginText;

/// The most characters of a key that are shown.
const KEY: usize = 60;

/// A place in a value; each holds on to the one that it is in, and costs nothing until it is shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    parent: Option<&'a Place<'a>>,
    step: Step<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    Member(&'a str),
    Item(usize),
}

impl Place<'_> {
    /// The whole.
    pub(crate) const ROOT: Place<'static> = Place { parent: None, step: Step::Item(0) };

    pub(crate) fn member<'b>(&'b self, name: &'b str) -> Place<'b> {
        Place { parent: Some(self), step: Step::Member(name) }
    }

    pub(crate) fn item(&self, number: usize) -> Place<'_> {
        Place { parent: Some(self), step: Step::Item(number) }
    }

    /// The JSON pointer.
    pub(crate) fn pointer(&self) -> String {
        let mut pointer = self.parent.map(Place::pointer).unwrap_or_default();
        match (self.parent, self.step) {
            (None, _) => {}
            (_, Step::Member(name)) => {
                pointer.push('/');
                pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
            }
            (_, Step::Item(number)) => {
                let _ = write!(pointer, "/{number}");
            }
        }
        pointer
    }

    /// The path for people; empty for the whole.
    pub(crate) fn path(&self) -> String {
        let Some(parent) = self.parent else { return String::new() };
        let mut path = parent.path();
        let plain = |name: &str| !name.is_empty() && name.len() <= KEY && name.bytes().all(is_plain);
        let _ = match self.step {
            Step::Item(number) => write!(path, "[{number}]"),
            Step::Member(name) if !plain(name) => write!(path, "[{}]", quoted(name)),
            Step::Member(name) if path.is_empty() => write!(path, "{name}"),
            Step::Member(name) => write!(path, ".{name}"),
        };
        path
    }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'$')
}

/// A key in quotes, safe to show and not too long.
pub(crate) fn quoted(key: &str) -> impl Display {
    format!("\"{}\"", PluginText::new(key.chars().take(KEY * 4).collect::<String>()).capped(KEY))
}
