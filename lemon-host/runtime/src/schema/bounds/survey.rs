//! Reads a schema into its targets and the references between them. Looks at each part once for each target that it is
//! in, and stops early: nothing here follows a reference.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value};

use super::references::{References, fragment};
use super::{NODES, Parts, SchemaFault};
use crate::schema::nullable;

/// The most steps that the check itself takes; reached only by schemas that refer to overlapping parts of themselves.
pub(super) const STEPS: usize = 16 * NODES;

/// To find out what `unevaluatedProperties` or `unevaluatedItems` is left with, what stands beside it in place is applied
/// to the same value once more, at each level of a nest of them. Measured: a bit under three times as much a level.
const AGAIN: usize = 4;

/// What is applied again for them.
const APPLIED_AGAIN: [&str; 11] =
    ["$ref", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies", "contains"];

/// One step into a value. The order puts steps next to each other that may be the same one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step<'a> {
    AnyMember,
    Member(&'a str),
    AnyItem,
    Item(usize),
}

impl Step<'_> {
    fn may_be(self, other: Self) -> bool {
        match (self, other) {
            (Self::Member(one), Self::Member(two)) => one == two,
            (Self::Item(one), Self::Item(two)) => one == two,
            (Self::AnyMember | Self::Member(_), Self::AnyMember | Self::Member(_)) => true,
            (Self::AnyItem | Self::Item(_), Self::AnyItem | Self::Item(_)) => true,
            _ => false,
        }
    }
}

/// Whether two ways into a value may lead through the same place to the end of one of them.
pub(super) fn overlap(one: &[Step<'_>], two: &[Step<'_>]) -> bool {
    one.iter().zip(two).all(|(one, two)| one.may_be(*two))
}

/// A reference, as seen from the target that it stands in.
pub(super) struct Edge<'a> {
    pub(super) to: usize,
    pub(super) text: &'a str,
    /// How it leads into the value; empty for one in place.
    pub(super) way: Vec<Step<'a>>,
    /// How deep in its target's schema it stands.
    pub(super) depth: usize,
    /// How often what it leads to is applied where the target is applied once.
    pub(super) times: usize,
}

/// A part of the schema that is read as one: up to its references, and no further.
pub(super) struct Target<'a> {
    schema: &'a Value,
    /// Its own, without what references lead to.
    pub(super) nodes: usize,
    pub(super) edges: Vec<Edge<'a>>,
}

/// All targets of a schema and the references between them.
pub(super) struct Survey<'a> {
    references: References<'a>,
    numbers: HashMap<*const Value, usize>,
    /// The parts that stand where a schema stands.
    placed: HashSet<*const Value>,
    pub(super) targets: Vec<Target<'a>>,
    steps: usize,
    /// How often what is being read is applied; see [`AGAIN`].
    times: usize,
}

impl<'a> Survey<'a> {
    /// Reads the whole of a schema; the root is target 0.
    ///
    /// # Errors
    /// For a reference that is not followed, a part that has a meaning of its own, or too many nodes.
    pub(super) fn of(root: &'a Value) -> Result<Self, SchemaFault> {
        let references = References::of(root);
        let (numbers, placed) = (HashMap::new(), HashSet::new());
        let mut survey = Self { references, numbers, placed, targets: Vec::new(), steps: 0, times: 1 };
        survey.number(root);
        let mut next = 0;
        while let Some(target) = survey.targets.get(next) {
            let mut found = Target { schema: target.schema, nodes: 0, edges: Vec::new() };
            survey.read(found.schema, &mut found, &mut Vec::new(), 0)?;
            survey.targets[next] = found;
            next += 1;
        }
        Ok(survey)
    }

    /// The parts that only a reference makes schemas, with their pointers: no other look at the whole takes them for that.
    pub(super) fn loose(&self) -> Parts<'a> {
        let edges = self.targets.iter().flat_map(|target| &target.edges);
        let texts: BTreeMap<usize, &str> = edges.filter(|edge| edge.to > 0).map(|edge| (edge.to, edge.text)).collect();
        let parts = texts.into_iter().map(|(to, text)| (text, self.targets[to].schema));
        let loose = parts.filter(|(_, schema)| !self.placed.contains(&std::ptr::from_ref(*schema)));
        // An anchor is only ever found where a schema stands.
        loose.filter_map(|(text, schema)| Some((fragment(text)?.into_owned(), schema))).collect()
    }

    fn number(&mut self, schema: &'a Value) -> usize {
        let next = self.targets.len();
        let number = *self.numbers.entry(std::ptr::from_ref(schema)).or_insert(next);
        if number == next {
            self.targets.push(Target { schema, nodes: 0, edges: Vec::new() });
        }
        number
    }

    /// Counts a node of the check's own work and of the target.
    fn count(&mut self, found: &mut Target<'a>) -> Result<(), SchemaFault> {
        self.steps += 1;
        found.nodes = found.nodes.saturating_add(self.times);
        if self.steps > STEPS || found.nodes > NODES { Err(SchemaFault::Nodes) } else { Ok(()) }
    }

    /// Reads a schema. The keywords are those of all drafts together: what one of them ignores costs it nothing.
    fn read(
        &mut self,
        schema: &'a Value,
        found: &mut Target<'a>,
        way: &mut Vec<Step<'a>>,
        depth: usize,
    ) -> Result<(), SchemaFault> {
        let Value::Object(members) = schema else { return self.data(schema, found) };
        self.count(found)?;
        self.references.no_document_of_its_own(schema, members)?;
        let depth = depth + if nullable::is_deeper(members) { nullable::LEVELS } else { 0 };
        let times = self.times;
        let again = ["unevaluatedProperties", "unevaluatedItems"].iter().any(|keyword| members.contains_key(*keyword));
        for (key, value) in members {
            let in_place = None;
            let applied_again = again && APPLIED_AGAIN.contains(&key.as_str());
            self.times = if applied_again { times.saturating_mul(AGAIN) } else { times };
            match (key.as_str(), value) {
                ("$dynamicRef", Value::String(_)) => return Err(SchemaFault::Dynamic { keyword: "$dynamicRef" }),
                ("$recursiveRef", Value::String(_)) => return Err(SchemaFault::Dynamic { keyword: "$recursiveRef" }),
                ("$ref", Value::String(text)) => {
                    self.count(found)?;
                    let target = self.references.resolve(text)?;
                    let to = self.number(target);
                    self.steps += way.len();
                    found.edges.push(Edge { to, text, way: way.clone(), depth, times: self.times });
                }
                ("$defs" | "definitions", Value::Object(named)) => {
                    // Nodes only where something refers to them, but read all the same.
                    for definition in named.values() {
                        self.placed.insert(std::ptr::from_ref(definition));
                        self.number(definition);
                    }
                }
                ("allOf" | "anyOf" | "oneOf", Value::Array(branches)) => {
                    self.each(branches, |_| in_place, found, way, depth)?;
                }
                ("not" | "if" | "then" | "else", _) => self.part(value, in_place, found, way, depth + 1)?,
                ("dependentSchemas" | "dependencies", Value::Object(named)) => {
                    self.members(named, |_| in_place, found, way, depth)?;
                }
                ("properties", Value::Object(named)) => {
                    self.members(named, |name| Some(Step::Member(name)), found, way, depth)?;
                }
                ("patternProperties", Value::Object(named)) => {
                    self.members(named, |_| Some(Step::AnyMember), found, way, depth)?;
                }
                ("additionalProperties" | "unevaluatedProperties" | "propertyNames" | "contentSchema", _) => {
                    self.part(value, Some(Step::AnyMember), found, way, depth + 1)?;
                }
                ("items" | "prefixItems", Value::Array(schemas)) => {
                    self.each(schemas, |at| Some(Step::Item(at)), found, way, depth)?;
                }
                ("items" | "additionalItems" | "unevaluatedItems" | "contains", _) => {
                    self.part(value, Some(Step::AnyItem), found, way, depth + 1)?;
                }
                _ => self.data(value, found)?,
            }
        }
        self.times = times;
        Ok(())
    }

    fn each(
        &mut self,
        schemas: &'a [Value],
        step: impl Fn(usize) -> Option<Step<'a>>,
        found: &mut Target<'a>,
        way: &mut Vec<Step<'a>>,
        depth: usize,
    ) -> Result<(), SchemaFault> {
        self.count(found)?;
        schemas.iter().enumerate().try_for_each(|(at, schema)| self.part(schema, step(at), found, way, depth + 2))
    }

    fn members(
        &mut self,
        schemas: &'a Map<String, Value>,
        step: impl Fn(&'a str) -> Option<Step<'a>>,
        found: &mut Target<'a>,
        way: &mut Vec<Step<'a>>,
        depth: usize,
    ) -> Result<(), SchemaFault> {
        self.count(found)?;
        schemas.iter().try_for_each(|(name, schema)| self.part(schema, step(name), found, way, depth + 2))
    }

    fn part(
        &mut self,
        schema: &'a Value,
        step: Option<Step<'a>>,
        found: &mut Target<'a>,
        way: &mut Vec<Step<'a>>,
        depth: usize,
    ) -> Result<(), SchemaFault> {
        self.placed.insert(std::ptr::from_ref(schema));
        let length = way.len();
        way.extend(step);
        self.read(schema, found, way, depth)?;
        way.truncate(length);
        Ok(())
    }

    /// Counts what is no schema, such as a default or what no draft knows.
    fn data(&mut self, value: &'a Value, found: &mut Target<'a>) -> Result<(), SchemaFault> {
        self.count(found)?;
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| self.data(item, found)),
            Value::Object(members) => members.values().try_for_each(|member| self.data(member, found)),
            _ => Ok(()),
        }
    }
}
