//! Lets `jsonschema` look at a [`Node`], so that numbers are judged as they were written and a text is read once.
//!
//! All looking is metered: what a validation may cost was bounded before it, but neither for the bytes that patterns
//! meet, nor for a caller who goes away.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashSet;
use std::slice::Iter;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node as JsonNode, NodeIdentity, Object};
use serde_json::Value;

use super::number::{Decimal, Number};
use super::tree::{Kind, Members, Node};

/// What a validation may still do.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    /// Steps until the next look at `stopped`.
    near: Cell<u64>,
    far: Cell<u64>,
    /// Steps for each byte of text.
    per_byte: u64,
    stopped: Option<Arc<AtomicBool>>,
    over: Cell<bool>,
}

/// Steps between two looks at whether anybody still waits.
const SLICE: u64 = 1 << 16;

impl Meter {
    pub(crate) fn new(steps: u64, per_byte: u64, stopped: Option<Arc<AtomicBool>>) -> Self {
        Self { near: Cell::new(0), far: Cell::new(steps), per_byte, stopped, over: Cell::new(false) }
    }

    /// Whether it ran out, so that what was found out means nothing.
    pub(crate) fn is_over(&self) -> bool {
        self.over.get()
    }

    fn spend(&self, steps: u64) -> bool {
        match self.near.get().checked_sub(steps) {
            Some(left) => {
                self.near.set(left);
                true
            }
            None => self.refill(steps),
        }
    }

    #[cold]
    fn refill(&self, steps: u64) -> bool {
        let stopped = self.stopped.as_ref().is_some_and(|stopped| stopped.load(Ordering::Relaxed));
        match self.far.get().checked_sub(steps) {
            Some(left) if !stopped && !self.over.get() => {
                let slice = SLICE.min(left);
                self.near.set(slice);
                self.far.set(left - slice);
                true
            }
            _ => {
                self.over.set(true);
                false
            }
        }
    }

    fn spend_text(&self, text: &str) -> bool {
        self.spend(1 + self.per_byte.saturating_mul(text.len() as u64))
    }
}

/// The representation, as `jsonschema` calls it.
#[derive(Debug)]
pub(crate) struct Instance;

/// A value under validation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Metered<'a> {
    pub(crate) node: &'a Node<'a>,
    pub(crate) meter: &'a Meter,
}

impl Json for Instance {
    type Node<'a> = Metered<'a>;
    type PreparedKey = String;
    type StringBuffer = Meter;

    // A look-up goes through the members one by one, or orders names.
    const KEYS_PER_LOOKUP: usize = 2;
    const ACYCLIC: bool = true;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(free: &mut Meter, string: &str, f: impl FnOnce(Metered<'_>) -> T) -> T {
        // The name was paid for when it was listed.
        *free = Meter::new(u64::MAX, 0, None);
        let node = Node { raw: "", kind: Kind::String(Cow::Borrowed(string)) };
        f(Metered { node: &node, meter: free })
    }
}

impl<'a> JsonNode<'a, Instance> for Metered<'a> {
    type Object = MeteredMembers<'a>;
    type Array = MeteredItems<'a>;
    type Number = Number<'a>;

    fn as_object(&self) -> Option<MeteredMembers<'a>> {
        match &self.node.kind {
            Kind::Object(members) if self.meter.spend(1) => Some(MeteredMembers { members, meter: self.meter }),
            _ => None,
        }
    }

    fn as_array(&self) -> Option<MeteredItems<'a>> {
        match &self.node.kind {
            Kind::Array(items) if self.meter.spend(1) => Some(MeteredItems { items, meter: self.meter }),
            _ => None,
        }
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        match &self.node.kind {
            Kind::String(text) if self.meter.spend_text(text) => Some(Cow::Borrowed(text)),
            _ => None,
        }
    }

    fn as_number(&self) -> Option<Number<'a>> {
        matches!(self.node.kind, Kind::Number).then_some(Number(self.node.raw))
    }

    fn as_boolean(&self) -> Option<bool> {
        match self.node.kind {
            Kind::Boolean(value) => Some(value),
            _ => None,
        }
    }

    fn is_null(&self) -> bool {
        matches!(self.node.kind, Kind::Null)
    }

    fn json_type(&self) -> JsonType {
        match self.node.kind {
            Kind::Null => JsonType::Null,
            Kind::Boolean(_) => JsonType::Boolean,
            Kind::Number => JsonType::Number,
            Kind::String(_) => JsonType::String,
            Kind::Array(_) => JsonType::Array,
            Kind::Object(_) => JsonType::Object,
        }
    }

    fn string_length(&self) -> Option<u64> {
        match &self.node.kind {
            Kind::String(text) => Some(text.chars().count() as u64),
            _ => None,
        }
    }

    fn equals_value(&self, expected: &Value) -> bool {
        self.meter.spend(1) && equals(self.node, expected)
    }

    fn to_value(&self) -> Cow<'a, Value> {
        // Asked for by errors alone, of which there may be one for each part of the value, and ours say what they are
        // about by its place.
        Cow::Owned(Value::Null)
    }

    fn identity(&self) -> Option<NodeIdentity> {
        Some(NodeIdentity::new(std::ptr::from_ref(self.node) as usize))
    }
}

/// An object under validation.
#[derive(Debug)]
pub(crate) struct MeteredMembers<'a> {
    members: &'a Members<'a>,
    meter: &'a Meter,
}

impl<'a> Object<'a, Instance> for MeteredMembers<'a> {
    type Node = Metered<'a>;
    type MemberName = &'a str;
    type MembersIter = MembersIter<'a>;

    fn len(&self) -> usize {
        self.members.list().len()
    }

    fn get(&self, key: &String) -> Option<Metered<'a>> {
        self.members.get(key).map(|node| Metered { node, meter: self.meter })
    }

    fn members(&self) -> MembersIter<'a> {
        MembersIter { list: self.members.list().iter(), meter: self.meter }
    }
}

/// The members of an object, as long as the meter runs.
#[derive(Debug)]
pub(crate) struct MembersIter<'a> {
    list: Iter<'a, (Cow<'a, str>, Node<'a>)>,
    meter: &'a Meter,
}

impl<'a> Iterator for MembersIter<'a> {
    type Item = (&'a str, Metered<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, node) = self.list.next()?;
        self.meter.spend_text(name).then_some((name.as_ref(), Metered { node, meter: self.meter }))
    }
}

/// An array under validation.
#[derive(Debug)]
pub(crate) struct MeteredItems<'a> {
    items: &'a [Node<'a>],
    meter: &'a Meter,
}

impl<'a> Array<'a, Instance> for MeteredItems<'a> {
    type Node = Metered<'a>;
    type ElementsIter = ItemsIter<'a>;

    fn len(&self) -> usize {
        self.items.len()
    }

    fn elements(&self) -> ItemsIter<'a> {
        ItemsIter { items: self.items.iter(), meter: self.meter }
    }

    fn is_unique(&self) -> bool {
        let mut seen = HashSet::with_capacity(self.items.len());
        self.items.iter().all(|item| !self.meter.spend(item.raw.len() as u64) || seen.insert(Worth::of(item)))
    }
}

/// The items of an array, as long as the meter runs.
#[derive(Debug)]
pub(crate) struct ItemsIter<'a> {
    items: Iter<'a, Node<'a>>,
    meter: &'a Meter,
}

impl<'a> Iterator for ItemsIter<'a> {
    type Item = Metered<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let node = self.items.next()?;
        self.meter.spend(1).then_some(Metered { node, meter: self.meter })
    }
}

/// What makes two values the same one: members in any order, numbers by their value.
#[derive(PartialEq, Eq, Hash)]
enum Worth<'a> {
    Null,
    Boolean(bool),
    Number(Decimal),
    String(&'a str),
    Array(Vec<Worth<'a>>),
    Object(Vec<(&'a str, Worth<'a>)>),
}

impl<'a> Worth<'a> {
    fn of(node: &'a Node<'_>) -> Self {
        match &node.kind {
            Kind::Null => Self::Null,
            Kind::Boolean(value) => Self::Boolean(*value),
            Kind::Number => Self::Number(Decimal::of(node.raw)),
            Kind::String(text) => Self::String(text),
            Kind::Array(items) => Self::Array(items.iter().map(Self::of).collect()),
            Kind::Object(members) => {
                let mut members: Vec<_> =
                    members.list().iter().map(|(name, node)| (name.as_ref(), Self::of(node))).collect();
                members.sort_by_key(|(name, _)| *name);
                Self::Object(members)
            }
        }
    }
}

fn equals(node: &Node<'_>, expected: &Value) -> bool {
    match (&node.kind, expected) {
        (Kind::Null, Value::Null) => true,
        (Kind::Boolean(value), Value::Bool(expected)) => value == expected,
        (Kind::Number, Value::Number(expected)) => {
            let expected = expected.to_string();
            node.raw == expected || Decimal::of(node.raw) == Decimal::of(&expected)
        }
        (Kind::String(text), Value::String(expected)) => text == expected,
        (Kind::Array(items), Value::Array(expected)) => {
            items.len() == expected.len() && items.iter().zip(expected).all(|(item, expected)| equals(item, expected))
        }
        (Kind::Object(members), Value::Object(expected)) => {
            members.list().len() == expected.len()
                && members
                    .list()
                    .iter()
                    .all(|(name, node)| expected.get(name.as_ref()).is_some_and(|expected| equals(node, expected)))
        }
        _ => false,
    }
}
