//! What a JSON Schema may cost, found out before anything compiles it.
//!
//! A schema is a plugin's word: two kilobytes of nested `allOf` can validate for ever, and a long chain of references
//! ends the whole process by its stack. What passes [`check`] is bounded: each place of a checked value is met by at
//! most [`NODES`] nodes of the schema, on at most twice `schema_depth` frames. Nothing here looks at a value.
//!
//! A reference is an edge between *targets*: the root, what is referred to, and each definition. An edge is either
//! *in place* (the target is applied to the same value) or leads further into the value. A target that can come back
//! to itself must do so by ways that lead to different places of the value, else the ways multiply with its depth.

mod references;
mod survey;
#[cfg(test)]
mod tests;

use std::io::{Error, Write};

use serde_json::Value;

pub(crate) use self::references::{References, fragment};
use self::survey::{STEPS, Step, Survey, Target, overlap};
use super::nullable;
use crate::limits::Limits;

/// The most nodes that a schema may have once each reference is replaced by what it refers to.
pub(crate) const NODES: usize = 65_536;

/// Why a schema is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SchemaFault {
    /// It is too long.
    #[error("it is larger than {limit} bytes (limits.schema_bytes)")]
    Size {
        /// The limit.
        limit: usize,
    },
    /// It, or what it refers to in place, is too deep.
    #[error("it nests deeper than {limit} levels (limits.schema_depth)")]
    Depth {
        /// The limit.
        limit: usize,
    },
    /// It is too large when references are expanded.
    #[error("it has more than {NODES} nodes with its references expanded")]
    Nodes,
    /// A reference leads out of the schema.
    #[error("{reference:?} refers to something outside of the schema")]
    External {
        /// The reference.
        reference: String,
    },
    /// A reference leads nowhere, or to one of several anchors.
    #[error("{reference:?} refers to nothing in the schema, or to more than one part of it")]
    Missing {
        /// The reference.
        reference: String,
    },
    /// A reference depends on how it is reached.
    #[error("it uses {keyword:?}, which is not supported")]
    Dynamic {
        /// `$dynamicRef` or `$recursiveRef`.
        keyword: &'static str,
    },
    /// A part of it is a document of its own, which changes what references mean.
    #[error("a part of it has an {keyword:?} of its own, which is not supported")]
    Embedded {
        /// The keyword.
        keyword: &'static str,
    },
    /// It is no schema of its dialect.
    #[error("it is no valid JSON Schema: {detail}")]
    Invalid {
        /// What is wrong, and where.
        detail: String,
    },
    /// Its root describes no object.
    #[error("its root has no \"type\": \"object\" (LPP-TOOL-04)")]
    NoObject,
    /// A pattern can't be used, and was not to be ignored.
    #[error("its pattern {pattern:?} is malformed, too large, or looks around or back, which is not supported")]
    Pattern {
        /// The pattern.
        pattern: String,
    },
    /// References lead back to themselves without going into the value.
    #[error("{reference:?} refers back to itself for the same value")]
    Endless {
        /// A reference on the way.
        reference: String,
    },
    /// A cycle is reached on more than one path.
    #[error("{reference:?} leads to a cycle that is reached on more than one path for the same value")]
    Branching {
        /// A reference on the way.
        reference: String,
    },
}

/// Parts of a schema, each with its pointer.
type Parts<'a> = Vec<(String, &'a Value)>;

/// Refuses a schema that could take too long, or too much stack, to compile or to apply. Gives the parts that only a
/// reference makes schemas as well, with their pointers.
///
/// # Errors
/// The first [`SchemaFault`] that is found.
pub(super) fn check<'a>(schema: &'a Value, limits: &Limits) -> Result<(Bounds, Parts<'a>), SchemaFault> {
    // Depth first: everything else recurses.
    #[cfg(test)]
    CHECKS.set(CHECKS.get() + 1);
    let depth = SchemaFault::Depth { limit: limits.schema_depth };
    let nested = nesting(schema, limits.schema_depth).ok_or(depth)?;
    if !is_within(schema, limits.schema_bytes) {
        return Err(SchemaFault::Size { limit: limits.schema_bytes });
    }
    let survey = Survey::of(schema)?;
    let Expansion { nodes, cyclic } = survey.expand()?;
    let (in_place, chained) = survey.in_place_order(limits.schema_depth)?;
    survey.branching(&in_place, &cyclic)?;
    Ok((Bounds { nodes, levels: nested + chained }, survey.loose()))
}

/// Whether a value takes at most so many bytes as text.
pub(super) fn is_within(value: &Value, bytes: usize) -> bool {
    serde_json::to_writer(Allowance(bytes), value).is_ok()
}

/// What a schema that is used may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// How many nodes it has with references expanded: times the values within a value, that bounds what one validation
    /// takes.
    pub(crate) nodes: usize,
    /// How deep it nests, references in place followed: times the depth of a value, that bounds the stack.
    pub(crate) levels: usize,
}

#[cfg(test)]
thread_local! {
    /// How many schemas were checked on this thread.
    pub(super) static CHECKS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// How deep a value nests, if it nests no deeper than so.
fn nesting(value: &Value, most: usize) -> Option<usize> {
    let deepest = |deepest: usize, inner: &Value| Some(deepest.max(1 + nesting(inner, most.checked_sub(1)?)?));
    match value {
        Value::Array(_) | Value::Object(_) if most == 0 => None,
        Value::Array(items) => items.iter().try_fold(1, deepest),
        Value::Object(members) => {
            // What `nullable` comes to when it is compiled.
            let added = if nullable::is_deeper(members) { nullable::LEVELS } else { 0 };
            let most = most.checked_sub(added)?;
            let deepest = |deepest: usize, inner: &Value| Some(deepest.max(1 + nesting(inner, most.checked_sub(1)?)?));
            Some(added + members.values().try_fold(1, deepest)?)
        }
        _ => Some(0),
    }
}

/// Takes so many bytes and keeps none.
struct Allowance(usize);

impl Write for Allowance {
    fn write(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or_else(|| Error::other("too many bytes"))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

/// What the root comes to when references are expanded.
struct Expansion {
    nodes: usize,
    /// The targets that are on a cycle, or between two.
    cyclic: Vec<bool>,
}

impl Survey<'_> {
    /// The targets, each after those that it refers to in place, and how deep such references lead at most.
    fn in_place_order(&self, depth_limit: usize) -> Result<(Vec<usize>, usize), SchemaFault> {
        let in_place = |target: &Target<'_>| {
            target.edges.iter().filter(|edge| edge.way.is_empty()).map(|edge| edge.to).collect::<Vec<_>>()
        };
        let edges: Vec<_> = self.targets.iter().map(in_place).collect();
        let order = peel(&edges);
        if order.len() < self.targets.len() {
            let mut endless = vec![true; self.targets.len()];
            order.iter().for_each(|&number| endless[number] = false);
            return Err(SchemaFault::Endless { reference: self.in_place_reference_among(&endless) });
        }
        let mut depths = vec![0; self.targets.len()];
        for &number in &order {
            let in_place = self.targets[number].edges.iter().filter(|edge| edge.way.is_empty());
            depths[number] = in_place.map(|edge| edge.depth + 1 + depths[edge.to]).max().unwrap_or(0);
            if depths[number] > depth_limit {
                return Err(SchemaFault::Depth { limit: depth_limit });
            }
        }
        Ok((order, depths.into_iter().max().unwrap_or(0)))
    }

    /// Counts nodes with references expanded, each target once.
    fn expand(&self) -> Result<Expansion, SchemaFault> {
        let count = self.targets.len();
        let edges: Vec<Vec<_>> =
            self.targets.iter().map(|target| target.edges.iter().map(|edge| edge.to).collect()).collect();
        let straight = peel(&edges);
        let mut cyclic = vec![true; count];
        straight.iter().for_each(|&number| cyclic[number] = false);
        // Of those that lead to a cycle, the ones that nothing on a cycle leads to.
        let mut backward = vec![Vec::new(); count];
        for (from, targets) in edges.iter().enumerate().filter(|(from, _)| cyclic[*from]) {
            targets.iter().filter(|to| cyclic[**to]).for_each(|&to| backward[to].push(from));
        }
        let mut upstream = peel(&backward);
        upstream.retain(|&number| cyclic[number]);
        upstream.iter().for_each(|&number| cyclic[number] = false);

        let mut weights = vec![0_usize; count];
        let weigh = |number: usize, weights: &[usize], cycles: usize| {
            let expanded = self.targets[number].edges.iter().map(|edge| {
                let once = if cyclic[edge.to] { cycles } else { weights[edge.to] };
                once.saturating_mul(edge.times)
            });
            expanded.fold(self.targets[number].nodes, usize::saturating_add)
        };
        let within = |weight: usize| if weight > NODES { Err(SchemaFault::Nodes) } else { Ok(weight) };
        for &number in &straight {
            weights[number] = within(weigh(number, &weights, 0))?;
        }
        // All cycles count as one thing: once round it is what each of its targets expands to.
        let on_cycles = (0..count).filter(|&number| cyclic[number]);
        let cycles = within(on_cycles.map(|number| weigh(number, &weights, 0)).fold(0, usize::saturating_add))?;
        for &number in upstream.iter().rev() {
            weights[number] = within(weigh(number, &weights, cycles))?;
        }
        let nodes = if cyclic[0] { cycles } else { weights[0] };
        Ok(Expansion { nodes, cyclic })
    }

    /// Refuses cycles whose ways back, or on to another cycle, may lead to the same place of a value.
    fn branching(&self, in_place: &[usize], cyclic: &[bool]) -> Result<(), SchemaFault> {
        let mut steps = 0;
        let mut ways: Vec<Vec<&[Step<'_>]>> = vec![Vec::new(); self.targets.len()];
        for &number in in_place.iter().filter(|&&number| cyclic[number]) {
            let mut onward = Vec::new();
            for edge in self.targets[number].edges.iter().filter(|edge| cyclic[edge.to]) {
                if edge.times > 1 {
                    return Err(SchemaFault::Branching { reference: edge.text.to_owned() });
                }
                if edge.way.is_empty() {
                    onward.extend_from_slice(&ways[edge.to]);
                } else {
                    onward.push(edge.way.as_slice());
                }
            }
            steps += onward.len();
            if steps > STEPS {
                return Err(SchemaFault::Nodes);
            }
            onward.sort_unstable();
            if onward.windows(2).any(|pair| overlap(pair[0], pair[1])) {
                let edge = self.targets[number].edges.iter().find(|edge| cyclic[edge.to]);
                return Err(SchemaFault::Branching {
                    reference: edge.map(|edge| edge.text).unwrap_or_default().to_owned(),
                });
            }
            ways[number] = onward;
        }
        Ok(())
    }

    /// A reference between two of the chosen targets, for a message.
    fn in_place_reference_among(&self, chosen: &[bool]) -> String {
        let from = self.targets.iter().zip(chosen).filter(|(_, chosen)| **chosen).flat_map(|(target, _)| &target.edges);
        let mut among = from.filter(|edge| chosen[edge.to] && edge.way.is_empty());
        among.next().map(|edge| edge.text).unwrap_or_default().to_owned()
    }
}

/// Numbers in an order in which each comes after all that it has an edge to; what is on a cycle, or leads to one, is
/// left out.
fn peel(edges: &[Vec<usize>]) -> Vec<usize> {
    let mut waits_for: Vec<_> = edges.iter().map(Vec::len).collect();
    let mut backward = vec![Vec::new(); edges.len()];
    for (from, targets) in edges.iter().enumerate() {
        targets.iter().for_each(|&to| backward[to].push(from));
    }
    let mut order: Vec<_> = (0..edges.len()).filter(|&number| waits_for[number] == 0).collect();
    let mut next = 0;
    while let Some(&number) = order.get(next) {
        for &from in &backward[number] {
            waits_for[from] -= 1;
            if waits_for[from] == 0 {
                order.push(from);
            }
        }
        next += 1;
    }
    order
}
