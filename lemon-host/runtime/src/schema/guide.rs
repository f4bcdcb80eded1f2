//! What a schema says of the shape of a value, in a form that can be followed along with the value: which types a value
//! may have, which members an object declares, and what is within them.
//!
//! A [`Shape`] gathers all schemas that apply to one place: the schema itself, what it refers to, and all branches of
//! `allOf`, `anyOf`, `oneOf` and conditions. It decides nothing: what is valid, the validator says. Its types leave out
//! only what can't be valid there, whichever alternative is meant and whichever condition holds.

mod drafting;
#[cfg(test)]
mod tests;

use serde_json::Value;
use unicase::UniCase;

use self::drafting::Drafting;
use super::tree::{Kind, Node};
use jsonschema::Draft;
use jsonschema::json::JsonNumber;

/// Up to so many members are looked through one by one.
const FEW: usize = 16;

/// A type of JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    Array,
    Object,
}

impl Type {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "null" => Self::Null,
            "boolean" => Self::Boolean,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "string" => Self::String,
            "array" => Self::Array,
            "object" => Self::Object,
            _ => return None,
        })
    }

    /// What the schema calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::String => "string",
            Self::Array => "array",
            Self::Object => "object",
        }
    }

    /// Whether a value is of this type.
    pub(crate) fn fits(self, node: &Node<'_>) -> bool {
        match (&node.kind, self) {
            (Kind::Number(_), Self::Integer) => node.number().is_some_and(|number| number.is_integer()),
            (Kind::Null, Self::Null)
            | (Kind::Boolean(_), Self::Boolean)
            | (Kind::Number(_), Self::Number)
            | (Kind::String(_), Self::String)
            | (Kind::Array(_), Self::Array)
            | (Kind::Object(_), Self::Object) => true,
            _ => false,
        }
    }

    fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Boolean,
            Value::Number(number) if number.is_f64() => Self::Number,
            Value::Number(_) => Self::Integer,
            Value::String(_) => Self::String,
            Value::Array(_) => Self::Array,
            Value::Object(_) => Self::Object,
        }
    }
}

/// A shape's number.
pub(crate) type ShapeId = u32;

/// What is known of one place.
#[derive(Debug, Default)]
pub(crate) struct Shape {
    /// The types that a value may have, in the order in which the schema names them; none where it says nothing.
    pub(crate) types: Option<Vec<Type>>,
    /// The declared members, in the order of their names.
    members: Vec<(Box<str>, Option<ShapeId>)>,
    /// The same with case folded.
    folded: Vec<(Box<str>, u32)>,
    /// Members that are not declared.
    rest: Option<ShapeId>,
    /// The first items.
    first: Vec<Option<ShapeId>>,
    /// The items after these.
    items: Option<ShapeId>,
}

impl Shape {
    /// The shape of a member if it is declared.
    pub(crate) fn member(&self, name: &str) -> Option<Option<ShapeId>> {
        let found = if self.members.len() <= FEW {
            self.members.iter().position(|(own, _)| **own == *name)?
        } else {
            self.members.binary_search_by(|(own, _)| (**own).cmp(name)).ok()?
        };
        Some(self.members[found].1)
    }

    /// The shape of a member that is not declared.
    pub(crate) fn rest(&self) -> Option<ShapeId> {
        self.rest
    }

    /// The shape of a member, declared or not.
    pub(crate) fn inner(&self, name: &str) -> Option<ShapeId> {
        self.member(name).unwrap_or(self.rest)
    }

    /// The declared name that an undeclared one is when case is folded.
    pub(crate) fn alike(&self, name: &str) -> Option<&str> {
        if self.folded.is_empty() {
            return None;
        }
        let name = fold(name);
        let found = self.folded.binary_search_by(|(folded, _)| folded.cmp(&name)).ok()?;
        self.members.get(self.folded[found].1 as usize).map(|(name, _)| &**name)
    }

    /// The declared names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|(name, _)| &**name)
    }

    /// The shape of an item.
    pub(crate) fn item(&self, number: usize) -> Option<ShapeId> {
        self.first.get(number).copied().unwrap_or(self.items)
    }

    /// Whether nothing within a value is known.
    pub(crate) fn is_leaf(&self) -> bool {
        self.members.is_empty() && self.rest.is_none() && self.first.is_empty() && self.items.is_none()
    }
}

fn fold(name: &str) -> Box<str> {
    UniCase::unicode(name).to_folded_case().into()
}

/// All shapes of a schema; the root's is number 0.
#[derive(Debug)]
pub(crate) struct Guide {
    shapes: Vec<Shape>,
}

impl Guide {
    /// The root's shape.
    pub(crate) const ROOT: ShapeId = 0;

    /// Reads a schema of a dialect that [`check`](super::bounds::check) has passed: its references lead somewhere, and
    /// what they lead to in place ends.
    pub(crate) fn of(schema: &Value, dialect: Draft) -> Self {
        Self { shapes: Drafting::of(schema, dialect) }
    }

    pub(crate) fn shape(&self, id: ShapeId) -> Option<&Shape> {
        self.shapes.get(id as usize)
    }
}
