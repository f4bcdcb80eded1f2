//! How a plugin differs from what was trusted.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::contents::Contents;
use crate::report::PluginText;

/// How many parts of a change are named; the rest is counted.
const SHOWN: usize = 10;

/// What is not as it was when it was trusted. Never empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Change {
    /// Those that are different first, then those that are gone, then new ones.
    pub parts: Vec<ChangedPart>,
}

/// One thing that is different.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ChangedPart {
    /// A file's path within the plugin, or a part of how it is started, such as `command` or `env TOKEN`.
    pub name: String,
    /// In which way.
    pub how: How,
}

/// In which way something is different.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum How {
    /// It was something else.
    Changed,
    /// It is not there any more.
    Gone,
    /// It was not there.
    New,
}

impl Change {
    /// The difference between two plugins' files and between the ways they are started; none if there is none.
    pub(super) fn between(
        (trusted, now): (&Contents, &Contents),
        (trusted_start, start): (&BTreeMap<String, String>, &BTreeMap<String, String>),
    ) -> Option<Self> {
        let mut parts = differences(trusted_start, start);
        parts.extend(differences(&trusted.files, &now.files));
        (!parts.is_empty()).then_some(Self { parts })
    }
}

fn differences<T: PartialEq>(before: &BTreeMap<String, T>, now: &BTreeMap<String, T>) -> Vec<ChangedPart> {
    let gone = before.keys().filter(|name| !now.contains_key(*name)).map(|name| (name, How::Gone));
    let other = now.iter().filter_map(|(name, value)| match before.get(name) {
        None => Some((name, How::New)),
        Some(old) if old != value => Some((name, How::Changed)),
        Some(_) => None,
    });
    let mut parts: Vec<_> = gone.chain(other).map(|(name, how)| ChangedPart { name: name.clone(), how }).collect();
    // What was there and is another thing now stands before what may be many new files.
    parts.sort_by(|a, b| (a.how, &a.name).cmp(&(b.how, &b.name)));
    parts
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, part) in self.parts.iter().take(SHOWN).enumerate() {
            let how = match part.how {
                How::New => "new",
                How::Gone => "gone",
                How::Changed => "changed",
            };
            let comma = if n == 0 { "" } else { ", " };
            write!(f, "{comma}{how}: {}", PluginText::new(part.name.clone()).capped(120))?;
        }
        match self.parts.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, ", and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::trust::contents::{FileContents, Sha};

    fn contents(files: &[(&str, &str)]) -> Contents {
        let file =
            |text: &str| FileContents { sha256: Sha::of(text.as_bytes()), bytes: text.len() as u64, executable: false };
        Contents { files: files.iter().map(|(name, text)| ((*name).to_owned(), file(text))).collect() }
    }

    #[test]
    fn a_change_names_what_is_new_gone_and_different() {
        let start = |command: &str| BTreeMap::from([("command".to_owned(), command.to_owned())]);
        let (old, new) =
            (contents(&[("a", "1"), ("b", "2"), ("c", "3")]), contents(&[("a", "1"), ("b", "x"), ("d", "4")]));
        let change = Change::between((&old, &new), (&start("x"), &start("y"))).unwrap();
        assert_eq!(change.to_string(), "changed: command, changed: b, gone: c, new: d");
        assert_eq!(Change::between((&old, &old), (&start("x"), &start("x"))), None);
    }

    #[test]
    fn a_long_change_is_cut_and_a_name_can_not_act_on_a_terminal() {
        let names: Vec<String> = (0..15).map(|n| format!("{n:02}\u{1b}[2J")).collect();
        let many: Vec<_> = names.iter().map(|name| (name.as_str(), "1")).collect();
        let none = BTreeMap::new();
        let text = Change::between((&contents(&[]), &contents(&many)), (&none, &none)).unwrap().to_string();
        assert!(text.ends_with(", and 5 more") && !text.contains('\u{1b}'), "{text}");
    }
}
