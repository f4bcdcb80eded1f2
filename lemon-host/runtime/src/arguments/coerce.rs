//! Fits values to the types that a schema gives them, where what was meant is plain: models write `"5"` for 5.
//!
//! A value whose type is among those that the schema allows is left alone. Changes are splices: everything around them
//! keeps its bytes.

use std::borrow::Cow;
use std::ops::Range;

use crate::schema::guide::{Guide, Shape, ShapeId, Type};
use crate::schema::number::number_length;
use crate::schema::place::Place;
use crate::schema::text::{Canonical, DEPTH};
use crate::schema::tree::{Kind, Node};
use crate::schema::violation::pointer;

/// A text with values fitted.
pub(super) struct Coerced {
    pub(super) text: String,
    /// The pointers of the values that were, as [`Violation`]s have them.
    pub(super) changed: Vec<String>,
}

/// The text with values fitted; none if nothing was to be.
pub(super) fn coerced(node: &Node<'_>, guide: &Guide, most_values: usize) -> Option<Coerced> {
    let mut splices = Vec::new();
    let fitting = Fitting { guide, most_values };
    fitting.value(node, node.raw.as_ptr() as usize, Some(Guide::ROOT), &Place::ROOT, 0, &mut splices);
    let changed = splices.iter().take(CHANGES).map(|splice| splice.pointer.clone()).collect();
    Some(Coerced { text: spliced(node.raw, splices)?, changed })
}

/// So many changes are remembered for the explanation of what is still wrong: as many as faults are told, and more.
const CHANGES: usize = 100;

struct Fitting<'a> {
    guide: &'a Guide,
    most_values: usize,
}

/// A piece of a text and what comes in its place.
struct Splice {
    piece: Range<usize>,
    instead: String,
    pointer: String,
}

/// The text with what comes in place of pieces of it; none if nothing does.
fn spliced(raw: &str, splices: Vec<Splice>) -> Option<String> {
    if splices.is_empty() {
        return None;
    }
    let mut text = String::with_capacity(raw.len());
    let mut kept = 0;
    for Splice { piece, instead, .. } in splices {
        text.push_str(&raw[kept..piece.start]);
        text.push_str(&instead);
        kept = piece.end;
    }
    text.push_str(&raw[kept..]);
    Some(text)
}

impl Fitting<'_> {
    /// The text of a value with what is in it fitted; none if nothing was.
    fn text(&self, node: &Node<'_>, shape: Option<ShapeId>, depth: usize) -> Option<String> {
        let mut splices = Vec::new();
        self.value(node, node.raw.as_ptr() as usize, shape, &Place::ROOT, depth, &mut splices);
        spliced(node.raw, splices)
    }

    fn value(
        &self,
        node: &Node<'_>,
        start: usize,
        shape: Option<ShapeId>,
        place: &Place<'_>,
        depth: usize,
        splices: &mut Vec<Splice>,
    ) {
        let Some((id, shape)) = shape.and_then(|id| Some((id, self.guide.shape(id)?))) else { return };
        // What comes out of strings nests within what they stand in.
        if depth > DEPTH {
            return;
        }
        if shape.types.as_ref().is_some_and(|types| !types.iter().any(|kind| kind.fits(node))) {
            if let Some(instead) = self.instead(node, id, shape, depth) {
                let at = node.raw.as_ptr() as usize - start;
                let pointer = if splices.len() < CHANGES { pointer(place) } else { String::new() };
                splices.push(Splice { piece: at..at + node.raw.len(), instead, pointer });
            }
            return;
        }
        match &node.kind {
            Kind::Array(items) => {
                for (number, item) in items.iter().enumerate() {
                    self.value(item, start, shape.item(number), &place.item(number), depth + 1, splices);
                }
            }
            Kind::Object(members) => {
                for (name, member) in members.list() {
                    self.value(member, start, shape.inner(name), &place.member(name), depth + 1, splices);
                }
            }
            _ => {}
        }
    }

    /// What stands for a value that is of none of the types.
    fn instead(&self, node: &Node<'_>, id: ShapeId, shape: &Shape, depth: usize) -> Option<String> {
        let types = shape.types.as_deref().unwrap_or_default();
        if types.contains(&Type::Null) && matches!(&node.kind, Kind::String(text) if text == "null") {
            return Some("null".to_owned());
        }
        types.iter().find_map(|kind| match (kind, &node.kind) {
            (Type::Boolean, Kind::String(text)) => {
                let text = text.trim().to_ascii_lowercase();
                matches!(text.as_str(), "true" | "false").then_some(text)
            }
            (Type::Integer, Kind::String(text)) => {
                (is_number(text) && !text.contains(['.', 'e', 'E'])).then(|| text.to_string())
            }
            (Type::Number, Kind::String(text)) => is_number(text).then(|| text.to_string()),
            (Type::Object, Kind::String(text)) => self.within('{', text, id, depth),
            (Type::Array, Kind::String(text)) => {
                self.within('[', text, id, depth).or_else(|| self.wrapped(node, shape, depth))
            }
            (Type::Array, Kind::Boolean(_) | Kind::Number(_)) => self.wrapped(node, shape, depth),
            _ => None,
        })
    }

    /// The object or array that a string holds, fitted.
    fn within(&self, open: char, text: &str, id: ShapeId, depth: usize) -> Option<String> {
        if !text.trim_ascii_start().starts_with(open) {
            return None;
        }
        let inner = Canonical::read(text, self.most_values).ok().filter(|inner| depth + inner.depth <= DEPTH)?;
        let node = Node::read(inner.text.get()).ok()?;
        let fitted = self.text(&node, Some(id), depth);
        Some(fitted.unwrap_or_else(|| inner.text.get().to_owned()))
    }

    /// The value as the only item of a list, fitted.
    fn wrapped(&self, node: &Node<'_>, shape: &Shape, depth: usize) -> Option<String> {
        let item = self.text(node, shape.item(0), depth + 1).map_or(Cow::Borrowed(node.raw), Cow::Owned);
        Some(format!("[{item}]"))
    }
}

/// Whether a text is a JSON number from its first to its last character.
fn is_number(text: &str) -> bool {
    number_length(text.as_bytes()) == Some(text.len())
}
