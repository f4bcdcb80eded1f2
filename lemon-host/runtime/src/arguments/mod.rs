//! The arguments of a tool call, from the text that a caller wrote to what gates see and the tool gets.
//!
//! [`Arguments::read`] brings the text into canonical form, refuses keys that languages would read differently, fits
//! values to the types of the tool's schema where their meaning is plain, and checks the whole schema. It changes
//! nothing that is valid as it is. docs/arguments.md has the rules.

mod coerce;
mod spelling;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::value::RawValue;

use crate::limits::Limits;
use crate::schema::place::Place;
use crate::schema::text::{Canonical, TextFault};
use crate::schema::thread::on_large_stack;
use crate::schema::tree::Node;
use crate::schema::violation::{Violation, Violations};
use crate::schema::{Compiled, Schema, TEXT_AT_ONCE};

/// The arguments of one call: a JSON object in one line without insignificant white space.
#[derive(Debug, Clone)]
pub(crate) struct Arguments {
    given: Box<RawValue>,
    /// None when it is what was given.
    sent: Option<Box<RawValue>>,
}

/// All that is wrong with the arguments of a call, safe to show. It never holds a given value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentsFault(Violations);

impl Arguments {
    /// Reads arguments for a tool. Nothing, and `null`, mean that there are none; an object may stand in a JSON string.
    ///
    /// Takes microseconds where it is called; what is large is worked on elsewhere, and given up when the future is
    /// dropped.
    ///
    /// # Errors
    /// All that is wrong with them, each with its place; or that the tool has no usable schema.
    pub(crate) async fn read(text: &str, schema: &Arc<Compiled>, limits: &Limits) -> Result<Self, ArgumentsFault> {
        let most = limits.argument_values;
        if text.len() <= TEXT_AT_ONCE {
            let given = object(text, most)?;
            let compiled = usable(schema)?;
            if compiled.is_quick_for(&given) {
                return settle(given, compiled, most, None);
            }
            let schema = schema.clone();
            return elsewhere(move |stopped| settle(given, usable(&schema)?, most, Some(stopped))).await;
        }
        let (text, schema) = (text.to_owned(), schema.clone());
        elsewhere(move |stopped| settle(object(&text, most)?, usable(&schema)?, most, Some(stopped))).await
    }

    /// What the caller wrote, in canonical form: what gates, approvals and the ledger see.
    pub(crate) fn given(&self) -> &RawValue {
        &self.given
    }

    /// What the tool gets: the same, but for values that were fitted to their types.
    pub(crate) fn sent(&self) -> &RawValue {
        self.sent.as_ref().unwrap_or(&self.given)
    }

    /// What the tool gets.
    pub(crate) fn into_sent(self) -> Box<RawValue> {
        self.sent.unwrap_or(self.given)
    }

    /// Whether a value was fitted to its type.
    #[cfg(test)]
    pub(crate) fn is_coerced(&self) -> bool {
        self.sent.is_some()
    }
}

/// A JSON object in canonical form, whatever its tool's schema says.
///
/// # Errors
/// It is no object, or has a key twice.
pub(crate) fn canonical(text: &str, limits: &Limits) -> Result<Box<RawValue>, ArgumentsFault> {
    object(text, limits.argument_values).map(|object| object.text)
}

impl ArgumentsFault {
    /// What is wrong, the first twenty.
    pub fn violations(&self) -> &[Violation] {
        self.0.list()
    }

    /// How much more is wrong.
    pub fn more(&self) -> usize {
        self.0.more()
    }

    fn whole(message: impl fmt::Display) -> Self {
        Self(Violation::at(&Place::ROOT, message).into())
    }
}

impl fmt::Display for ArgumentsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for ArgumentsFault {}

impl From<Violations> for ArgumentsFault {
    fn from(violations: Violations) -> Self {
        Self(violations)
    }
}

impl From<TextFault> for ArgumentsFault {
    fn from(fault: TextFault) -> Self {
        Self::whole(fault)
    }
}

async fn elsewhere(
    work: impl FnOnce(&Arc<AtomicBool>) -> Result<Arguments, ArgumentsFault> + Send + 'static,
) -> Result<Arguments, ArgumentsFault> {
    let done = on_large_stack(work).await;
    done.unwrap_or_else(|fault| Err(ArgumentsFault::whole(format!("they can't be checked: {fault}"))))
}

fn usable(schema: &Compiled) -> Result<&Schema, ArgumentsFault> {
    schema.schema().map_err(|fault| ArgumentsFault::whole(format!("the tool's input schema can't be used: {fault}")))
}

/// The object that a text holds.
fn object(text: &str, most_values: usize) -> Result<Canonical, ArgumentsFault> {
    if text.trim_ascii().is_empty() {
        return Ok(Canonical::read("{}", most_values)?);
    }
    let given = Canonical::read(text, most_values)?;
    match given.text.get().as_bytes().first() {
        Some(b'{') => return Ok(given),
        Some(b'n') => return Ok(Canonical::read("{}", most_values)?),
        Some(b'"') => {
            let inner: Result<String, _> = serde_json::from_str(given.text.get());
            let inner = inner.ok().and_then(|inner| Canonical::read(&inner, most_values).ok());
            if let Some(inner) = inner.filter(|inner| inner.text.get().starts_with('{')) {
                return Ok(inner);
            }
        }
        _ => {}
    }
    let found = Node::read(given.text.get())?.type_name();
    Err(ArgumentsFault::whole(format!("expected a JSON object, got {found}")))
}

fn settle(
    given: Canonical,
    schema: &Schema,
    most_values: usize,
    stopped: Option<&Arc<AtomicBool>>,
) -> Result<Arguments, ArgumentsFault> {
    let node = Node::read(given.text.get())?;
    let spelled = spelling::check(&node, schema.guide());
    if schema.is_valid(&node, given.values, stopped)? {
        spelled?;
        drop(node);
        return Ok(Arguments { given: given.text, sent: None });
    }
    let Some(sent) = coerce::coerced(&node, schema.guide(), most_values) else {
        return Err(all(spelled, schema.validate(&node, given.values, stopped)));
    };
    let sent = Canonical::read(&sent, most_values)?;
    let node = Node::read(sent.text.get())?;
    // Once more: an object may have come out of a string.
    let (spelled, fits) = (spelling::check(&node, schema.guide()), schema.validate(&node, sent.values, stopped));
    if spelled.is_err() || fits.is_err() {
        return Err(all(spelled, fits));
    }
    drop(node);
    Ok(Arguments { given: given.text, sent: Some(sent.text) })
}

/// The faults of both checks.
fn all(spelled: Result<(), Violations>, fits: Result<(), Violations>) -> ArgumentsFault {
    let mut faults = spelled.err().unwrap_or_default();
    faults.extend(fits.err().unwrap_or_default());
    faults.into()
}
