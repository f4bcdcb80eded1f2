//! The text of a config file, and where in it something stands.

use std::{ops::Range, path::Path};

use super::{ConfigProblem, Origin};
use crate::report::PluginText;

/// How many characters of a long line are shown, from some way before the fault.
const SHOWN: usize = 120;
const SHOWN_BEFORE: usize = 60;

/// A config file's text, with the way to it.
pub(super) struct Source<'a> {
    pub(super) path: &'a Path,
    text: &'a str,
    /// Where each line begins, in bytes.
    lines: Vec<usize>,
}

impl<'a> Source<'a> {
    pub(super) fn new(path: &'a Path, text: &'a str) -> Self {
        let breaks = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        let lines = std::iter::once(0).chain(breaks.map(|(at, _)| at + 1)).collect();
        Self { path, text, lines }
    }

    /// The file and line of a byte offset.
    pub(super) fn origin(&self, at: usize) -> Origin {
        Origin { file: self.path.to_owned(), line: self.line(at) }
    }

    /// The column of a byte offset, in characters from 1.
    pub(super) fn column(&self, at: usize) -> usize {
        let start = self.lines[self.line(at) - 1];
        1 + self.text[start..self.text.floor_char_boundary(at)].chars().count()
    }

    /// Counts from 1.
    fn line(&self, at: usize) -> usize {
        self.lines.partition_point(|&start| start <= at)
    }

    /// What is wrong with the bytes of `span`.
    pub(super) fn problem(&self, span: Range<usize>, message: String) -> ConfigProblem {
        // The parser marks the end of the text with an offset behind it, and may mark half a
        // character.
        let start = self.text.floor_char_boundary(span.start);
        let end = self.text.ceil_char_boundary(span.end).max(start);
        let line = self.line(start);
        let line_start = self.lines[line - 1];
        let written = self.text[line_start..].lines().next().unwrap_or_default();
        let before = self.column(start) - 1;
        let marked = self.text[start..end].lines().next().unwrap_or_default().chars().count();
        // As many characters as were written, so that the places stay.
        let source = &without_secrets(written);
        let part = |from: usize, length: usize| source.chars().skip(from).take(length);
        let left_out = before.saturating_sub(SHOWN_BEFORE);
        ConfigProblem {
            origin: self.origin(start),
            column: before + 1,
            message,
            source_line: shown(part(left_out, SHOWN)),
            mark_at: shown(part(left_out, before - left_out)).chars().count(),
            mark_width: shown(part(before, marked.min(SHOWN - SHOWN_BEFORE))).chars().count().max(1),
        }
    }
}

/// A line in which the values of secrets can't be read: errors end up in the logs of CI runs.
///
/// What stands in quotes is masked if anything in the line is called like a secret.
fn without_secrets(line: &str) -> String {
    const WORDS: &[&str] = &["token", "secret", "passw", "credential", "key", "auth"];
    let lower = line.to_ascii_lowercase();
    if !WORDS.iter().any(|word| lower.contains(word)) {
        return line.to_owned();
    }
    let mut quote = None;
    let mask = |c: char| match quote {
        Some(open) if c == open => {
            quote = None;
            c
        }
        Some(_) => '*',
        None => {
            quote = (c == '"' || c == '\'').then_some(c);
            c
        }
    };
    line.chars().map(mask).collect()
}

/// Part of a line as it is shown: without what a terminal would obey, and tabs as wide as they are
/// counted.
fn shown(part: impl Iterator<Item = char>) -> String {
    let part: String = part.map(|c| if c == '\t' { ' ' } else { c }).collect();
    PluginText::new(part).to_string()
}
