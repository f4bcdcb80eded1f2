//! Schemas of plugins, and values that are checked against them.
//!
//! A schema is hostile input. [`check`] says whether one can be used at all, before anything follows it; a [`Schema`] is
//! compiled when it is first needed and kept in a [`SchemaCache`]. Nothing that a schema refers to is ever fetched or
//! read. Small work is done where it is asked for, in microseconds; larger work on a thread with a large stack, which
//! gives up when its caller has gone.

pub(crate) mod bounds;
mod cache;
mod compile;
mod dialect;
mod explain;
pub(crate) mod guide;
mod instance;
pub(crate) mod meter;
mod misfit;
mod nullable;
pub(crate) mod number;
mod outline;
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
use self::instance::{Instance, Metered};
pub(crate) use self::meter::Effort;
use self::meter::{Meter, Rates, State};
use self::outline::Outline;
use self::thread::Share;
use self::tree::Node;
use self::violation::{Violation, Violations};
use crate::limits::Limits;

/// The most that nodes of the schema times values may come to: about a second of work.
const CHECKS: usize = 1 << 27;
/// The same for work that is done where it is asked for, and for one that says all that is wrong.
const CHECKS_AT_ONCE: usize = 1 << 15;
const CHECKS_FOR_ALL: usize = 1 << 24;
/// Text that is read, and levels of the schema times levels of the value that are followed, where it is asked for.
pub(crate) const TEXT_AT_ONCE: usize = 64 * 1024;
const LEVELS_AT_ONCE: usize = 192;
/// Bytes of a compiled pattern for each state, roughly: an automaton without look-around takes a step for each of its
/// states and each byte at worst.
const STATE_BYTES: u64 = 32;
/// What the errors of one validation may take together, and one without its place and what it cites, in bytes.
const ERRORS_BYTES: u64 = 32 * 1024 * 1024;
const ERROR_BYTES: u64 = 512;

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
    outline: Outline,
    guide: Guide,
    bounds: Bounds,
    /// The size of the largest pattern, in bytes; 0 if there is none.
    pattern_bytes: usize,
    /// How many patterns one name may meet.
    patterns_a_name: usize,
    /// The largest piece of it that an error cites, in bytes.
    cited_bytes: usize,
    ignored: Vec<String>,
}

/// It takes too long to find out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooMuch;

impl Schema {
    /// Compiles a schema, on a thread of its own unless it is small.
    ///
    /// # Errors
    /// The schema is not used; see [`SchemaFault`].
    pub(crate) async fn compile(
        schema: &serde_json::Value,
        limits: &Limits,
        patterns: Patterns,
        share: &Share,
    ) -> Result<Self, SchemaFault> {
        /// About a millisecond of work.
        const NODES: usize = 300;
        let mut known = None;
        if compile::is_small(schema) {
            let checked = check(schema, limits)?;
            if checked.bounds.nodes <= NODES {
                return compile::compile(schema, limits, Some(checked), patterns, None);
            }
            known = Some(checked);
        }
        let (schema, limits) = (schema.clone(), limits.clone());
        let work = move |stopped: &_| compile::compile(&schema, &limits, known, patterns, Some(stopped));
        share.on_large_stack(work).await.map_err(|fault| SchemaFault::Invalid { detail: fault.to_string() })?
    }

    /// Compiles a schema on this thread, which has a large stack.
    ///
    /// # Errors
    /// The schema is not used; see [`SchemaFault`].
    pub(crate) fn compile_here(
        schema: &serde_json::Value,
        limits: &Limits,
        patterns: Patterns,
        stopped: &Arc<AtomicBool>,
    ) -> Result<Self, SchemaFault> {
        compile::compile(schema, limits, None, patterns, Some(stopped))
    }

    /// The patterns that are not checked.
    pub(crate) fn ignored_patterns(&self) -> &[String] {
        &self.ignored
    }

    /// The shapes of what is valid.
    pub(crate) fn guide(&self) -> &Guide {
        &self.guide
    }

    /// Whether a text is plainly valid arguments of no more than so many values: canonical as it is, and with no key that
    /// is not declared, or twice. If not, nothing is known of it.
    pub(crate) fn plainly_takes(&self, text: &str, most_values: usize) -> bool {
        self.outline.takes(text, most_values)
    }

    /// Whether a text may be checked where it is asked for: its values and their depth are few, and what text and
    /// patterns take is metered.
    pub(crate) fn is_quick_for(&self, bytes: usize, values: usize, depth: usize) -> bool {
        bytes <= TEXT_AT_ONCE
            && self.bounds.nodes.saturating_mul(values) <= CHECKS_AT_ONCE
            && self.bounds.levels.saturating_mul(depth + 1) <= LEVELS_AT_ONCE
    }

    /// Whether a value that has so many values within is valid.
    ///
    /// # Errors
    /// See [`TooMuch`].
    pub(crate) fn is_valid(&self, node: &Node<'_>, values: usize, effort: Effort<'_>) -> Result<bool, TooMuch> {
        if self.bounds.nodes.saturating_mul(values) > CHECKS {
            return Err(TooMuch);
        }
        let meter = Meter::new(effort, self.rates(0), 0);
        let valid = self.validator.is_valid(Metered { node, meter: &meter });
        if meter.is_over() { Err(TooMuch) } else { Ok(valid) }
    }

    /// What is wrong with a value that has so many values within, nothing if it is valid. Where finding all would be too
    /// much, the first that is found, or only that something is.
    ///
    /// # Errors
    /// See [`TooMuch`].
    pub(crate) fn faults(&self, node: &Node<'_>, values: usize, effort: Effort<'_>) -> Result<Violations, TooMuch> {
        if self.is_valid(node, values, effort)? {
            return Ok(Violations::default());
        }
        // An error has a copy of its place and may have one of what the schema says.
        let error_bytes = ERROR_BYTES + node.longest_pointer() as u64 + self.cited_bytes as u64;
        let nodes = self.bounds.nodes;
        // When there is no more room, the nodes that apply to the place at hand are still asked.
        if nodes.saturating_mul(values) > CHECKS_FOR_ALL || (nodes as u64).saturating_mul(error_bytes) > ERRORS_BYTES {
            return Ok(misfit::misfit(node, &self.guide));
        }
        let meter = Meter::new(effort, self.rates(error_bytes), ERRORS_BYTES);
        let errors = self.validator.iter_errors(Metered { node, meter: &meter });
        match meter.state() {
            State::Running => {}
            State::OutOfRoom => return Ok(misfit::misfit(node, &self.guide)),
            State::OutOfSteps => return Err(TooMuch),
        }
        let mut violations = Violations::default();
        for error in errors {
            explain::explain(&error, node, self, &mut violations);
        }
        Ok(if violations.is_empty() { misfit::misfit(node, &self.guide) } else { violations })
    }

    fn rates(&self, error_bytes: u64) -> Rates {
        let per_byte = (self.pattern_bytes as u64).div_ceil(STATE_BYTES);
        Rates { per_byte, per_name: self.patterns_a_name as u64, error_bytes }
    }
}

impl From<TooMuch> for Violations {
    fn from(_: TooMuch) -> Self {
        let what = "there are too many values, or too much text, to check them against this schema";
        Violation::at(&place::Place::ROOT, what).into()
    }
}
