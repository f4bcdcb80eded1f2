//! Fits values to the types that a schema gives them, where what was meant is plain: models write `"5"` for 5.
//!
//! A value whose type is among those that the schema allows is left alone. Changes are splices: everything around them
//! keeps its bytes.

use std::borrow::Cow;
use std::ops::Range;

use jsonschema::json::JsonNumber;
use serde_json::value::RawValue;

use crate::schema::guide::{Guide, Shape, ShapeId, Type};
use crate::schema::number::Number;
use crate::schema::text::{Canonical, DEPTH};
use crate::schema::tree::{Kind, Node};

/// The text with values fitted; none if nothing was to be.
pub(super) fn coerced(node: &Node<'_>, guide: &Guide, most_values: usize) -> Option<String> {
    Fitting { guide, most_values }.text(node, Some(Guide::ROOT), 0)
}

struct Fitting<'a> {
    guide: &'a Guide,
    most_values: usize,
}

/// A piece of a text and what comes in its place.
type Splice = (Range<usize>, String);

impl Fitting<'_> {
    /// The text of a value with what is in it fitted; none if nothing was.
    fn text(&self, node: &Node<'_>, shape: Option<ShapeId>, depth: usize) -> Option<String> {
        let mut splices = Vec::new();
        self.value(node, node.raw.as_ptr() as usize, shape, depth, &mut splices);
        if splices.is_empty() {
            return None;
        }
        let mut text = String::with_capacity(node.raw.len());
        let mut kept = 0;
        for (piece, instead) in splices {
            text.push_str(&node.raw[kept..piece.start]);
            text.push_str(&instead);
            kept = piece.end;
        }
        text.push_str(&node.raw[kept..]);
        Some(text)
    }

    fn value(&self, node: &Node<'_>, start: usize, shape: Option<ShapeId>, depth: usize, splices: &mut Vec<Splice>) {
        let Some((id, shape)) = shape.and_then(|id| Some((id, self.guide.shape(id)?))) else { return };
        // What comes out of strings nests within what they stand in.
        if depth > DEPTH {
            return;
        }
        if shape.types.as_ref().is_some_and(|types| !types.iter().any(|kind| fits(node, *kind))) {
            if let Some(instead) = self.instead(node, id, shape, depth) {
                let at = node.raw.as_ptr() as usize - start;
                splices.push((at..at + node.raw.len(), instead));
            }
            return;
        }
        match &node.kind {
            Kind::Array(items) => {
                for (number, item) in items.iter().enumerate() {
                    self.value(item, start, shape.item(number), depth + 1, splices);
                }
            }
            Kind::Object(members) => {
                for (name, member) in members.list() {
                    self.value(member, start, shape.member(name).or(shape.rest()), depth + 1, splices);
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
            (Type::Array, Kind::Boolean(_) | Kind::Number) => self.wrapped(node, shape, depth),
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

fn fits(node: &Node<'_>, kind: Type) -> bool {
    match (&node.kind, kind) {
        (Kind::Number, Type::Integer) => Number(node.raw).is_integer(),
        (Kind::Null, Type::Null)
        | (Kind::Boolean(_), Type::Boolean)
        | (Kind::Number, Type::Number)
        | (Kind::String(_), Type::String)
        | (Kind::Array(_), Type::Array)
        | (Kind::Object(_), Type::Object) => true,
        _ => false,
    }
}

/// Whether a text is a JSON number from its first to its last character.
fn is_number(text: &str) -> bool {
    text.starts_with(|first: char| first == '-' || first.is_ascii_digit())
        && serde_json::from_str::<&RawValue>(text).is_ok_and(|raw| raw.get().len() == text.len())
}
