//! The arguments of a tool call, from the text that a caller wrote to what gates see and the tool gets.
//!
//! [`Arguments::read`] brings the text into canonical form, refuses keys that languages would read differently, fits
//! values to the types of the tool's schema where their meaning is plain, and checks the whole schema. It changes
//! nothing that is valid as it is. docs/arguments.md has the rules.

mod coerce;
mod spelling;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::limits::Limits;
use crate::schema::place::Place;
use crate::schema::text::{Canonical, TextFault};
use crate::schema::tree::{Kind, Node};
use crate::schema::violation::{Violation, Violations};
use crate::schema::{Compiled, Effort, Schema, TEXT_AT_ONCE, TooMuch};

/// The arguments of one call: a JSON object in one line without insignificant white space. Those that were written that
/// way are not copied.
#[derive(Debug, Clone)]
pub(crate) struct Arguments<'a> {
    given: Cow<'a, str>,
    /// None when it is what was given.
    sent: Option<String>,
}

/// All that is wrong with the arguments of a call, safe to show. It never holds a given value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentsFault(Violations);

impl<'a> Arguments<'a> {
    /// Reads arguments for a tool. Nothing, and `null`, mean that there are none; an object may stand in a JSON string.
    ///
    /// Takes microseconds where it is called; what is large is worked on elsewhere, and given up when the future is
    /// dropped.
    ///
    /// # Errors
    /// All that is wrong with them, each with its place; or that the tool has no usable schema.
    pub(crate) async fn read(text: &'a str, schema: &Arc<Compiled>, limits: &Limits) -> Result<Self, ArgumentsFault> {
        let most = limits.argument_values;
        if text.len() <= TEXT_AT_ONCE {
            if let Ok(compiled) = schema.schema()
                && is_plain(text, compiled, most)
            {
                return Ok(Self { given: Cow::Borrowed(text), sent: None });
            }
            let given = object(text, most)?;
            let compiled = usable(schema)?;
            let given = match at_once(given, compiled, most) {
                Ok(settled) => return settled,
                Err(given) => given,
            };
            let work = move |schema: &Schema, effort: Effort<'_>| settle(given, schema, most, effort);
            return elsewhere(schema, work).await;
        }
        let text = text.to_owned();
        elsewhere(schema, move |schema, effort| settle(object(&text, most)?, schema, most, effort)).await
    }

    /// What the caller wrote, in canonical form: what gates, approvals and the ledger see.
    pub(crate) fn given(&self) -> &str {
        &self.given
    }

    /// What the tool gets: the same, but for values that were fitted to their types.
    pub(crate) fn sent(&self) -> &str {
        self.sent.as_deref().unwrap_or(&self.given)
    }

    /// What the tool gets.
    pub(crate) fn into_sent(self) -> Cow<'a, str> {
        self.sent.map_or(self.given, Cow::Owned)
    }

    /// Whether a value was fitted to its type.
    #[cfg(test)]
    pub(crate) fn is_coerced(&self) -> bool {
        self.sent.is_some()
    }
}

/// A JSON object in canonical form, whatever its tool's schema says. It has to be written as one: nothing, `null` and a
/// string that holds an object are none here.
///
/// # Errors
/// It is no object, nests too deep or holds too many values, has a key twice anywhere, or half of a surrogate pair.
pub(crate) fn canonical(text: &str, limits: &Limits) -> Result<Box<RawValue>, ArgumentsFault> {
    let object = Canonical::read(text, limits.argument_values)?;
    let node = Node::read(object.text.get())?;
    if !matches!(node.kind, Kind::Object(_)) {
        return Err(ArgumentsFault::whole(format!("expected a JSON object, got {}", node.type_name())));
    }
    drop(node);
    Ok(object.text)
}

/// A JSON object with its values fitted to a schema as those of a call are; nothing else is asked of it.
///
/// # Errors
/// It is no object that could be read.
pub(crate) fn fitted(text: &str, schema: &Schema, most_values: usize) -> Result<String, ArgumentsFault> {
    let given = object(text, most_values)?;
    let coerced = coerce::coerced(&Node::read(given.text.get())?, schema.guide(), most_values);
    Ok(coerced.map_or_else(|| given.into_text(), |coerced| coerced.text))
}

/// Arguments as JSON, for those who look into them.
///
/// # Errors
/// They are no JSON, which what was [read](Arguments::read) always is.
pub(crate) fn json(text: &str) -> Result<&RawValue, ArgumentsFault> {
    serde_json::from_str(text).map_err(|fault| TextFault::Syntax(fault.to_string()).into())
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

    /// The same without the secrets that the tool's schema, which it quotes, may hold.
    pub(crate) fn redacted(self, redact: impl Fn(&str) -> String) -> Self {
        Self(self.0.reworded(redact))
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

/// Does some work with the schema on a thread of its own.
async fn elsewhere(
    compiled: &Arc<Compiled>,
    work: impl FnOnce(&Schema, Effort<'_>) -> Result<Arguments<'static>, ArgumentsFault> + Send + 'static,
) -> Result<Arguments<'static>, ArgumentsFault> {
    let schema = compiled.clone();
    let work = move |stopped: &_| work(usable(&schema)?, Effort::until(stopped));
    // Every call would carry its size.
    let done = Box::pin(compiled.share().on_large_stack(work)).await;
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

/// Whether arguments are as most are: canonical as they were written, valid as they are, and quickly checked. Anything
/// else is read anew, with all the questions that this one does not ask.
fn is_plain(text: &str, schema: &Schema, most_values: usize) -> bool {
    schema.plainly_takes(text, most_values) || is_plain_tree(text, schema, most_values)
}

/// The same, whatever the schema asks.
fn is_plain_tree(text: &str, schema: &Schema, most_values: usize) -> bool {
    if !text.starts_with('{') {
        return false;
    }
    let Some((node, values, depth)) = Node::read_plain(text) else { return false };
    values <= most_values
        && schema.is_quick_for(text.len(), values, depth)
        && spelling::check(&node, schema.guide()).is_ok()
        && schema.is_valid(&node, values, Effort::AT_ONCE) == Ok(true)
}

/// Checks and fits arguments where it is asked for; gives them back if that could take long.
fn at_once(
    given: Canonical,
    schema: &Schema,
    most_values: usize,
) -> Result<Result<Arguments<'static>, ArgumentsFault>, Canonical> {
    let quick = |text: &Canonical| {
        let is_quick = schema.is_quick_for(text.text.get().len(), text.values, text.depth);
        is_quick.then_some(Effort::AT_ONCE).ok_or(TooMuch)
    };
    if quick(&given).is_err() {
        return Err(given);
    }
    match checked(&given, schema, most_values, quick) {
        Ok(Ok(sent)) => Ok(Ok(Arguments { given: given.into_text().into(), sent })),
        Ok(Err(fault)) => Ok(Err(fault)),
        Err(TooMuch) => Err(given),
    }
}

/// The same, however long it takes within the effort.
fn settle(
    given: Canonical,
    schema: &Schema,
    most_values: usize,
    effort: Effort<'_>,
) -> Result<Arguments<'static>, ArgumentsFault> {
    match checked(&given, schema, most_values, |_| Ok(effort)) {
        Ok(sent) => {
            let sent = sent?;
            Ok(Arguments { given: given.into_text().into(), sent })
        }
        Err(too_much) => Err(Violations::from(too_much).into()),
    }
}

/// What is sent if it is not what was given. The effort is settled for each text: coercion can make one that takes far
/// more than what was given, as when a string holds a deep object.
///
/// # Errors
/// All that is wrong; and without that, that there is too much to find out.
fn checked<'a>(
    given: &Canonical,
    schema: &Schema,
    most_values: usize,
    effort: impl Fn(&Canonical) -> Result<Effort<'a>, TooMuch>,
) -> Result<Result<Option<String>, ArgumentsFault>, TooMuch> {
    let node = match Node::read(given.text.get()) {
        Ok(node) => node,
        Err(faults) => return Ok(Err(faults.into())),
    };
    let spelled = spelling::check(&node, schema.guide());
    if schema.is_valid(&node, given.values, effort(given)?)? {
        return Ok(spelled.map(|()| None).map_err(Into::into));
    }
    // Asked for only where it is told: it takes longer than to find out that there are some.
    let faults = || schema.faults(&node, given.values, effort(given)?);
    let all = |more: Violations| {
        let mut faults = spelled.clone().err().unwrap_or_default();
        faults.extend(more);
        Ok(Err(ArgumentsFault::from(faults)))
    };
    let Some(coerced) = coerce::coerced(&node, schema.guide(), most_values) else { return all(faults()?) };
    let sent = match Canonical::read(&coerced.text, most_values) {
        Ok(sent) => sent,
        Err(fault) => return Ok(Err(fault.into())),
    };
    let inner = match Node::read(sent.text.get()) {
        Ok(inner) => inner,
        Err(faults) => return Ok(Err(faults.into())),
    };
    // Once more: an object may have come out of a string.
    let spelled_within = spelling::check(&inner, schema.guide());
    let still = schema.faults(&inner, sent.values, effort(&sent)?)?;
    if still.is_empty() {
        return Ok(spelled_within.map(|()| Some(sent.into_text())).map_err(Into::into));
    }
    // What is told is about what was given, but for the places that coercion has mended.
    let is_at = |pointer: &str, place: &str| {
        pointer.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let is_mended = |pointer: &String| {
        coerced.changed.contains(pointer) && !still.list().iter().any(|fault| is_at(&fault.pointer, pointer))
    };
    let mut told = faults()?;
    told.retain(|fault| !is_mended(&fault.pointer));
    all(if told.is_empty() { still } else { told })
}
