//! Schemas of plugins, and values that are checked against them.
//!
//! A schema is hostile input. [`check`] says whether one can be used at all, before anything follows it; a [`Schema`] is
//! compiled when it is first needed and kept in a [`SchemaCache`]. Nothing that a schema refers to is ever fetched or
//! read. Small work is done where it is asked for, in microseconds; larger work on a thread with a large stack, which
//! gives up when its caller has gone.

pub(crate) mod bounds;
mod cache;
mod compile;
mod explain;
pub(crate) mod guide;
mod instance;
pub(crate) mod number;
pub(crate) mod place;
#[cfg(test)]
mod tests;
pub(crate) mod text;
pub(crate) mod thread;
pub(crate) mod tree;
pub(crate) mod violation;
mod walk;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use jsonschema::Validator;

use self::bounds::Bounds;
pub(crate) use self::bounds::SchemaFault;
pub(crate) use self::cache::Compiled;
pub(crate) use self::cache::SchemaCache;
pub(crate) use self::compile::check;
use self::guide::Guide;
use self::instance::{Instance, Meter, Metered};
use self::text::Canonical;
use self::tree::Node;
use self::violation::{Violation, Violations};
use crate::limits::Limits;

/// The most that nodes of the schema times values may come to: about a second of work.
const CHECKS: usize = 1 << 27;
/// The same for work that is done where it is asked for.
const CHECKS_AT_ONCE: usize = 1 << 15;
/// Text that is read, and levels of the schema times levels of the value that are followed, where it is asked for.
pub(crate) const TEXT_AT_ONCE: usize = 64 * 1024;
const LEVELS_AT_ONCE: usize = 192;
/// What one validation may take in steps, the ones of patterns included: an automaton without look-around takes one for
/// each of its states and each byte at worst. A few seconds of work.
const STEPS: u64 = 1 << 31;
/// Bytes of a compiled pattern for each state, roughly.
const STATE_BYTES: u64 = 32;
/// Above so many checks the first violation is told and no other is looked for, as each takes memory.
const CHECKS_FOR_ALL: usize = 1 << 18;

/// What happens to patterns that can't be matched in linear time and bounded memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patterns {
    /// They are not checked, and are told.
    Ignore,
    /// The schema is not used.
    Refuse,
}

/// A compiled schema.
#[derive(Debug)]
pub(crate) struct Schema {
    validator: Validator<Instance>,
    guide: Guide,
    bounds: Bounds,
    /// The size of the largest pattern, in bytes; 0 if there is none.
    pattern_bytes: usize,
    ignored: Vec<String>,
}

impl Schema {
    /// Compiles a schema, on a thread of its own unless it is small.
    ///
    /// # Errors
    /// The schema is not used; see [`SchemaFault`].
    pub(crate) async fn compile(
        schema: &serde_json::Value,
        limits: &Limits,
        patterns: Patterns,
    ) -> Result<Self, SchemaFault> {
        /// About a millisecond of work.
        const NODES: usize = 300;
        let small = bounds::check(schema, limits)?.nodes <= NODES && !compile::has_patterns(schema);
        if small {
            return compile::compile(schema, limits, patterns);
        }
        let (schema, limits) = (schema.clone(), limits.clone());
        let compiled = thread::on_large_stack(move |_| compile::compile(&schema, &limits, patterns)).await;
        compiled.map_err(|fault| SchemaFault::Invalid { detail: fault.to_string() })?
    }

    /// The patterns that are not checked.
    pub(crate) fn ignored_patterns(&self) -> &[String] {
        &self.ignored
    }

    /// The shapes of what is valid.
    pub(crate) fn guide(&self) -> &Guide {
        &self.guide
    }

    /// Whether a text is checked so quickly that it needs no thread.
    pub(crate) fn is_quick_for(&self, text: &Canonical) -> bool {
        text.text.get().len() <= TEXT_AT_ONCE
            && self.bounds.nodes.saturating_mul(text.values) <= CHECKS_AT_ONCE
            && self.bounds.levels.saturating_mul(text.depth + 1) <= LEVELS_AT_ONCE
            && self.steps_a_byte().saturating_mul(text.text.get().len() as u64) <= CHECKS_AT_ONCE as u64 * 64
    }

    fn steps_a_byte(&self) -> u64 {
        (self.pattern_bytes as u64).div_ceil(STATE_BYTES)
    }

    /// Whether a value that has so many values within is valid.
    ///
    /// # Errors
    /// That it takes too long to find out.
    pub(crate) fn is_valid(
        &self,
        node: &Node<'_>,
        values: usize,
        stopped: Option<&Arc<AtomicBool>>,
    ) -> Result<bool, Violations> {
        if self.bounds.nodes.saturating_mul(values) > CHECKS {
            return Err(too_much());
        }
        let meter = self.meter(stopped);
        let valid = self.validator.is_valid(Metered { node, meter: &meter });
        if meter.is_over() { Err(too_much()) } else { Ok(valid) }
    }

    /// Checks a value that has so many values within.
    ///
    /// # Errors
    /// All that is wrong with it, or that the check takes too long. Where finding all would be too much, the first.
    pub(crate) fn validate(
        &self,
        node: &Node<'_>,
        values: usize,
        stopped: Option<&Arc<AtomicBool>>,
    ) -> Result<(), Violations> {
        if self.is_valid(node, values, stopped)? {
            return Ok(());
        }
        let meter = self.meter(stopped);
        let metered = Metered { node, meter: &meter };
        let mut violations = Violations::default();
        let mut explain = |error| explain::explain(&error, node, self, &mut violations);
        if self.bounds.nodes.saturating_mul(values) > CHECKS_FOR_ALL {
            self.validator.validate(metered).err().into_iter().for_each(&mut explain);
        } else {
            self.validator.iter_errors(metered).for_each(&mut explain);
        }
        if meter.is_over() || violations.is_empty() { Err(too_much()) } else { Err(violations) }
    }

    fn meter(&self, stopped: Option<&Arc<AtomicBool>>) -> Meter {
        Meter::new(STEPS, self.steps_a_byte(), stopped.cloned())
    }
}

/// Nobody can say whether a value is valid.
fn too_much() -> Violations {
    let what = "there are too many values, or too much text, to check them against this schema";
    Violation::at(&place::Place::ROOT, what).into()
}
