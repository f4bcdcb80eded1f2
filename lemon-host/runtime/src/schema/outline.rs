//! A schema that asks no more than most do: types, names and a few bounds. A text is held against it while it is read,
//! once and without anything being built from it.
//!
//! An [`Outline`] only ever says yes: the text is canonical JSON, valid, and has no key that is not declared, or twice.
//! What asks more, and what is written in an unusual way, it leaves to the tree and the validator, which decide alone.

mod drawing;
mod reading;

use serde_json::Value;

use self::reading::Reading;

/// A simple schema.
#[derive(Debug)]
pub(crate) struct Outline(Part);

/// What one place takes.
#[derive(Debug, Clone)]
struct Part {
    types: Types,
    /// The least and the greatest number; where there are such, only whole numbers are read.
    numbers: Option<(i64, i64)>,
    /// The fewest and the most characters of a string.
    characters: (usize, usize),
    /// The strings that there are, if not all.
    strings: Option<Vec<Box<str>>>,
    /// The fewest and the most items of an array.
    count: (usize, usize),
    /// What its items are, if the schema says that.
    items: Option<Box<Part>>,
    /// The declared members of an object.
    members: Vec<(Box<str>, Part)>,
    /// Those that have to be there, a bit for each.
    required: u64,
}

/// A set of JSON's types, a bit for each. A whole number is an integer and a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Types(u8);

impl Types {
    const NONE: Self = Self(0);
    const NULL: Self = Self(1);
    const BOOLEAN: Self = Self(2);
    const INTEGER: Self = Self(4);
    const NUMBER: Self = Self(4 | 8);
    const STRING: Self = Self(16);
    const ARRAY: Self = Self(32);
    const OBJECT: Self = Self(64);
    const SCALAR: Self = Self(31);
    const ALL: Self = Self(127);

    fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Part {
    /// Takes all that is of these types.
    const fn of(types: Types) -> Self {
        Self {
            types,
            numbers: None,
            characters: (0, usize::MAX),
            strings: None,
            count: (0, usize::MAX),
            items: None,
            members: Vec::new(),
            required: 0,
        }
    }
}

/// Items of which nothing is known. What is within them could be anything, which is the tree's to read.
static ITEM: Part = Part::of(Types::SCALAR);

impl Outline {
    /// Reads a schema that [`check`](super::bounds::check) has passed.
    pub(super) fn of(schema: &Value) -> Self {
        Self(drawing::part(schema, drawing::LEVELS))
    }

    /// Whether a text is plainly an object that the schema takes, of no more than so many values.
    pub(super) fn takes(&self, text: &str, most_values: usize) -> bool {
        text.starts_with('{') && Reading::of(text, most_values).whole(&self.0).is_some()
    }
}
