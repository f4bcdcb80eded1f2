//! One pass over a manifest: takes values of the right type out of it, and notes each that is of another.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use lemon_protocol::manifest::SPELLINGS;

use super::problem::{ManifestProblem, ProblemKind, Severity};
use super::tree::{Member, Node, Value};
use crate::catalog::nearest;
use crate::report::PluginText;

/// So many errors, and as many warnings, are listed; the others are counted.
const MOST: usize = 100;

/// A value with the JSON pointer to it.
#[derive(Debug, Clone)]
pub(super) struct Field<'t> {
    pub(super) node: &'t Node,
    pub(super) pointer: String,
}

impl<'t> Field<'t> {
    /// The text that it is, good or not.
    pub(super) fn str(&self) -> Option<&'t str> {
        match &self.node.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The member of that name or of its other spelling.
    pub(super) fn get(&self, key: &str) -> Option<Self> {
        let Value::Object(members) = &self.node.value else { return None };
        let member = members.iter().find(|member| member.key == key || spelling(&member.key) == Some(key))?;
        Some(self.member(member))
    }

    fn member(&self, member: &'t Member) -> Self {
        Self { node: &member.node, pointer: format!("{}/{}", self.pointer, escape(&member.key)) }
    }

    /// The items, or none if it is no list.
    pub(super) fn items(&self) -> Vec<Self> {
        let items: &'t [Node] = match &self.node.value {
            Value::Array(items) => items,
            _ => &[],
        };
        let item = |(at, node)| Self { node, pointer: format!("{}/{at}", self.pointer) };
        items.iter().enumerate().map(item).collect()
    }

    /// The members, or none if it is no object.
    pub(super) fn members(&self) -> impl Iterator<Item = (&'t Member, Self)> {
        let members: &'t [Member] = match &self.node.value {
            Value::Object(members) => members,
            _ => &[],
        };
        members.iter().map(|member| (member, self.member(member)))
    }
}

/// The spelling of the schema for a key that is written in the other one.
fn spelling(key: &str) -> Option<&'static str> {
    SPELLINGS.iter().find(|(_, other)| *other == key).map(|(one, _)| *one)
}

pub(super) struct Checking<'a> {
    pub(super) text: &'a str,
    /// Where each line begins, in bytes.
    lines: Vec<usize>,
    errors: Vec<(usize, ManifestProblem)>,
    warnings: Vec<(usize, ManifestProblem)>,
    more: [usize; 2],
}

impl<'a> Checking<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let breaks = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        let lines = std::iter::once(0).chain(breaks.map(|(at, _)| at + 1)).collect();
        Self { text, lines, errors: Vec::new(), warnings: Vec::new(), more: [0, 0] }
    }

    /// All problems by place, and how many errors and warnings are beyond those that are listed.
    pub(super) fn finish(self) -> (Vec<ManifestProblem>, [usize; 2]) {
        let mut all = self.errors;
        all.extend(self.warnings);
        all.sort_by_key(|(at, problem)| (*at, problem.severity));
        (all.into_iter().map(|(_, problem)| problem).collect(), self.more)
    }

    pub(super) fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    /// Notes what is wrong at a byte of the text.
    pub(super) fn note_at(&mut self, kind: ProblemKind, pointer: Option<&str>, at: usize, message: &str, hint: &str) {
        let severity = kind.severity();
        let (list, more) = match severity {
            Severity::Error => (&mut self.errors, &mut self.more[0]),
            Severity::Warning => (&mut self.warnings, &mut self.more[1]),
        };
        if list.len() >= MOST {
            *more += 1;
            return;
        }
        let at = self.text.floor_char_boundary(at);
        let line = self.lines.partition_point(|&start| start <= at);
        let column = 1 + self.text[self.lines[line - 1]..at].chars().count();
        let problem = ManifestProblem {
            kind,
            severity,
            pointer: pointer.map(str::to_owned),
            line: Some(line),
            column: Some(column),
            message: message.to_owned(),
            hint: Some(hint.to_owned()).filter(|hint| !hint.is_empty()),
        };
        list.push((at, problem));
    }

    /// Notes what is wrong with a value.
    pub(super) fn note(
        &mut self,
        kind: ProblemKind,
        field: &Field<'_>,
        message: impl AsRef<str>,
        hint: impl AsRef<str>,
    ) {
        self.note_at(kind, Some(&field.pointer), field.node.span.start, message.as_ref(), hint.as_ref());
    }

    /// Whether a further problem of this severity would be listed.
    fn has_room(&self, severity: Severity) -> bool {
        let list = if severity == Severity::Error { &self.errors } else { &self.warnings };
        list.len() < MOST
    }

    pub(super) fn expected(&mut self, field: &Field<'_>, what: &str) {
        let message = format!("it must be {what}, not {}", field.node.type_name());
        self.note(ProblemKind::WrongType, field, message, "");
    }

    /// A text without NUL.
    pub(super) fn text<'t>(&mut self, field: &Field<'t>, what: &str) -> Option<&'t str> {
        match field.str() {
            None => self.expected(field, what),
            Some(text) if text.contains('\0') => {
                self.note(ProblemKind::Nul, field, "it must not contain a NUL character", "take \\u0000 out");
            }
            text => return text,
        }
        None
    }

    /// A text that is not only white space.
    pub(super) fn filled<'t>(&mut self, field: &Field<'t>, what: &str) -> Option<&'t str> {
        let text = self.text(field, what)?;
        if text.trim().is_empty() {
            self.note(ProblemKind::Empty, field, format!("it must be {what}, and is empty"), "");
            return None;
        }
        Some(text)
    }

    /// One of some words.
    pub(super) fn word<'t>(&mut self, field: &Field<'t>, what: &str, known: &[&str]) -> Option<&'t str> {
        let word = self.text(field, what)?;
        if known.contains(&word) {
            return Some(word);
        }
        let message = format!("{} is not {what}: it is one of {}", quoted(word), known.join(", "));
        let hint = nearest(word, known.iter().copied()).map(|near| format!("did you mean {near:?}?"));
        self.note(ProblemKind::Unsupported, field, message, hint.unwrap_or_default());
        None
    }

    pub(super) fn boolean(&mut self, field: &Field<'_>) -> Option<bool> {
        match field.node.value {
            Value::Boolean(value) => return Some(value),
            _ => self.expected(field, "true or false"),
        }
        None
    }

    /// The items of a list.
    pub(super) fn list<'t>(&mut self, field: &Field<'t>, what: &str) -> Option<Vec<Field<'t>>> {
        if !matches!(field.node.value, Value::Array(_)) {
            self.expected(field, what);
            return None;
        }
        Some(field.items())
    }

    /// Whether it is an object.
    pub(super) fn object(&mut self, field: &Field<'_>, what: &str) -> bool {
        let is_object = matches!(field.node.value, Value::Object(_));
        if !is_object {
            self.expected(field, what);
        }
        is_object
    }

    /// A member that has to be there.
    pub(super) fn required<'t>(&mut self, object: &Field<'t>, key: &str, what: &str) -> Option<Field<'t>> {
        let field = object.get(key);
        if field.is_none() {
            let hint = format!("add \"{key}\"");
            self.note(ProblemKind::Missing, object, format!("`{key}` is missing: {what}"), hint);
        }
        field
    }

    /// Warns of each member that has none of these names. Names that begin with `x-` are the author's own.
    pub(super) fn known(&mut self, object: &Field<'_>, known: &[&str]) {
        for (member, field) in object.members() {
            let key = spelling(&member.key).filter(|key| known.contains(key)).unwrap_or(&member.key);
            if known.contains(&key) || key.starts_with("x-") {
                continue;
            }
            let hint = self.has_room(Severity::Warning).then(|| nearest(key, known.iter().copied())).flatten();
            let hint = hint.map_or_else(String::new, |near| format!("did you mean `{near}`?"));
            let message = format!("the key {} is not known and is ignored", quoted(&member.key));
            self.note_at(ProblemKind::UnknownKey, Some(&field.pointer), member.key_span.start, &message, &hint);
        }
    }

    /// Notes each key that stands twice in one object, at any depth, or in two spellings.
    pub(super) fn duplicates(&mut self, root: &Field<'_>) {
        self.duplicates_in(root.node, &mut Vec::new(), true);
    }

    /// The way to a value is only put together where there is something to tell: keys may be long and many.
    fn duplicates_in<'t>(&mut self, node: &'t Node, way: &mut Vec<Cow<'t, str>>, spellings: bool) {
        match &node.value {
            Value::Array(items) => {
                for (at, node) in items.iter().enumerate() {
                    way.push(at.to_string().into());
                    self.duplicates_in(node, way, spellings);
                    way.pop();
                }
            }
            Value::Object(members) => {
                let mut seen = HashSet::new();
                for member in members {
                    way.push(member.key.as_str().into());
                    // In a schema or an annotation both spellings may mean something.
                    let is_own = !SPELLED_BY_OTHERS.contains(&member.key.as_str());
                    let key = spelling(&member.key).filter(|_| spellings).unwrap_or(&member.key);
                    if !seen.insert(key) {
                        let pointer: String = way.iter().map(|part| format!("/{}", escape(part))).collect();
                        let message = format!("the key {} stands twice in this object", quoted(key));
                        let hint = "take one of them out; readers disagree on which one counts";
                        let at = member.key_span.start;
                        self.note_at(ProblemKind::DuplicateKey, Some(&pointer), at, &message, hint);
                    }
                    self.duplicates_in(&member.node, way, spellings && is_own);
                    way.pop();
                }
            }
            _ => {}
        }
    }

    /// Notes each entry whose name an earlier one has.
    pub(super) fn unique<'t>(&mut self, entries: &[(Field<'t>, &'t str)]) {
        let mut seen = HashSet::new();
        for (field, name) in entries {
            if !seen.insert(*name) {
                let message = format!("{} is the name of another entry before this one", quoted(name));
                self.note(ProblemKind::Duplicate, field, message, "give each its own name");
            }
        }
    }

    /// The text of a value.
    pub(super) fn raw(&self, node: &Node) -> &'a str {
        let Range { start, end } = node.span;
        self.text.get(start..end).unwrap_or_default()
    }
}

/// Keys whose values are not the manifest's own.
const SPELLED_BY_OTHERS: &[&str] = &["tools", "config_schema", "configSchema", "env", "permissions"];

pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", PluginText::from(text).capped(80))
}

fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
