//! Lets `jsonschema` look at a [`Node`], so that numbers are judged as they were written and a text is read once.
//!
//! All looking is metered: what a validation may cost was bounded before it in nodes and values, but neither in bytes of
//! text and digits, nor for a caller who goes away.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::slice::Iter;

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node as JsonNode, NodeIdentity, Object};
use serde_json::Value;

use super::meter::Meter;
use super::number::{Decimal, Number};
use super::tree::{Kind, Members, Node};

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
        // Names come with the meter of their object, see below: nothing gets here.
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
        // A short one is read anew for each question, of a long one the answers are known.
        self.node.number().filter(|_| self.meter.spend_reading(self.node.raw))
    }

    fn is_number(&self) -> bool {
        matches!(self.node.kind, Kind::Number(_))
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
        // Nothing here can end the work, but the next look at what is within will.
        self.meter.spend(1);
        match self.node.kind {
            Kind::Null => JsonType::Null,
            Kind::Boolean(_) => JsonType::Boolean,
            Kind::Number(_) => JsonType::Number,
            Kind::String(_) => JsonType::String,
            Kind::Array(_) => JsonType::Array,
            Kind::Object(_) => JsonType::Object,
        }
    }

    fn string_length(&self) -> Option<u64> {
        match &self.node.kind {
            Kind::String(text) if self.meter.spend_reading(text) => Some(text.chars().count() as u64),
            _ => None,
        }
    }

    fn string_length_within(&self, min: u64, max: u64) -> Option<bool> {
        let Kind::String(text) = &self.node.kind else { return None };
        // A character takes one to four bytes, which often decides.
        let (least, most) = (text.len().div_ceil(4) as u64, text.len() as u64);
        if min <= least && most <= max {
            return Some(true);
        }
        if most < min || max < least {
            return Some(false);
        }
        self.string_length().map(|length| (min..=max).contains(&length))
    }

    fn equals_value(&self, expected: &Value) -> bool {
        self.equals(self.node, expected)
    }

    fn to_value(&self) -> Cow<'a, Value> {
        // Asked for by errors alone, of which there may be one for each part of the value, and ours say what they are
        // about by its place.
        self.meter.take_error();
        Cow::Owned(Value::Null)
    }

    fn identity(&self) -> Option<NodeIdentity> {
        Some(NodeIdentity::new(std::ptr::from_ref(self.node) as usize))
    }
}

impl Metered<'_> {
    /// Whether a node, which is this one or within it, is a value of the schema's.
    fn equals(&self, node: &Node<'_>, expected: &Value) -> bool {
        if !self.meter.spend(1) {
            return false;
        }
        match (&node.kind, expected) {
            (Kind::Null, Value::Null) => true,
            (Kind::Boolean(value), Value::Bool(expected)) => value == expected,
            (Kind::Number(_), Value::Number(expected)) => {
                let expected = expected.to_string();
                node.raw == expected || node.number().is_some_and(|number| number.decimal() == Decimal::of(&expected))
            }
            (Kind::String(text), Value::String(expected)) => {
                text.len() == expected.len() && self.meter.spend_reading(text) && text == expected
            }
            (Kind::Array(items), Value::Array(expected)) => {
                items.len() == expected.len()
                    && items.iter().zip(expected).all(|(item, expected)| self.equals(item, expected))
            }
            (Kind::Object(members), Value::Object(expected)) => {
                members.list().len() == expected.len()
                    && members.list().iter().all(|(name, node)| {
                        self.meter.spend_reading(name)
                            && expected.get(name.as_ref()).is_some_and(|expected| self.equals(node, expected))
                    })
            }
            _ => false,
        }
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
        self.meter.spend_reading(key).then_some(())?;
        self.members.get(key).map(|node| Metered { node, meter: self.meter })
    }

    fn members(&self) -> MembersIter<'a> {
        MembersIter { list: self.members.list().iter(), meter: self.meter }
    }

    fn try_for_each_name_node<B>(
        &self,
        _: &mut Meter,
        mut f: impl FnMut(Metered<'_>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        self.members().try_for_each(|(name, _)| {
            let node = Node { raw: "", kind: Kind::String(Cow::Borrowed(name)) };
            f(Metered { node: &node, meter: self.meter })
        })
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
        self.meter.spend_name(name).then_some((name.as_ref(), Metered { node, meter: self.meter }))
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
    Number(Decimal<'a>),
    String(&'a str),
    Array(Vec<Worth<'a>>),
    Object(Vec<(&'a str, Worth<'a>)>),
}

impl<'a> Worth<'a> {
    fn of(node: &'a Node<'_>) -> Self {
        match &node.kind {
            Kind::Null => Self::Null,
            Kind::Boolean(value) => Self::Boolean(*value),
            Kind::Number(long) => Self::Number(Number { text: node.raw, long: long.as_deref() }.decimal()),
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
