//! From a schema as a plugin wrote it to one that values are checked against.
//!
//! What is taken from it: patterns that take more than linear time or too much memory, which are ignored and told, and
//! dialects that nobody knows, which are read as 2020-12. What is put in: `null` where the schema says `nullable`.
//! `format` is an annotation in every dialect, as it is in the newest one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::{Map, Value, json};

use super::bounds::{self, Bounds, SchemaFault};
use super::dialect::{dialect, id_keyword};
use super::guide::Guide;
use super::instance::Instance;
use super::nullable::Nullable;
use super::outline::Outline;
use super::walk::each_schema;
use super::{Patterns, Schema};
use crate::limits::Limits;
use crate::report::PluginText;

/// What all patterns of a schema together may take compiled, in bytes.
const PATTERN_BYTES: usize = 16 * 1024 * 1024;
/// The sizes that are tried for one pattern, as powers of two: the size bounds what a match takes for each byte.
const TIERS: std::ops::RangeInclusive<u32> = 10..=20;
/// The most patterns; further ones are ignored.
const MOST_PATTERNS: usize = 4096;

/// What is known of a schema that can be used.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(super) bounds: Bounds,
    /// The pointers of the parts that only a reference makes schemas.
    loose: Vec<String>,
}

/// Finds out whether a schema can be used at all, without compiling it: cheap enough for a long list.
///
/// # Errors
/// It could cost too much, or is no valid schema of its dialect.
pub(crate) fn check(schema: &Value, limits: &Limits) -> Result<Checked, SchemaFault> {
    let (bounds, loose) = bounds::check(schema, limits)?;
    let dialect = dialect(schema);
    valid(schema, dialect)?;
    let loose = loose.into_iter().map(|(pointer, part)| valid(part, dialect).map(|()| pointer));
    Ok(Checked { bounds, loose: loose.collect::<Result<_, _>>()? })
}

/// Whether a schema is so small that it may be read where it is asked for. What nothing refers to counts as well.
pub(super) fn is_small(schema: &Value) -> bool {
    const BYTES: usize = 16 * 1024;
    bounds::is_within(schema, BYTES) && !has_patterns(schema)
}

fn valid(schema: &Value, dialect: Draft) -> Result<(), SchemaFault> {
    let fault = match dialect {
        Draft::Draft4 => jsonschema::draft4::meta::validate(schema),
        Draft::Draft6 => jsonschema::draft6::meta::validate(schema),
        Draft::Draft7 => jsonschema::draft7::meta::validate(schema),
        Draft::Draft201909 => jsonschema::draft201909::meta::validate(schema),
        _ => jsonschema::draft202012::meta::validate(schema),
    };
    fault.map_err(|fault| {
        let place = PluginText::new(fault.instance_path().as_str());
        SchemaFault::Invalid { detail: format!("{} at {:?}", fault.masked(), place.capped(200).to_string()) }
    })
}

/// Compiles a schema that may have been checked already. Takes up to seconds for a hostile one, and a large stack.
///
/// # Errors
/// As [`check`], and when a pattern can't be used that may not be ignored.
pub(super) fn compile(
    schema: &Value,
    limits: &Limits,
    checked: Option<Checked>,
    patterns: Patterns,
    stopped: Option<&Arc<AtomicBool>>,
) -> Result<Schema, SchemaFault> {
    let Checked { bounds, loose } = checked.map_or_else(|| check(schema, limits), Ok)?;
    let draft = dialect(schema);
    let (guide, outline) = (Guide::of(schema, draft), Outline::of(schema));
    let mut schema = schema.clone();
    let found = Found::of(&mut schema, &loose, stopped);
    if let (Some(pattern), Patterns::Refuse) = (found.unusable().next(), patterns) {
        return Err(SchemaFault::Pattern { pattern: PluginText::new(pattern).capped(200).to_string() });
    }
    let ignored: Vec<String> = found.unusable().map(str::to_owned).collect();
    let size = found.largest();
    let nullable = Nullable::of(&schema);
    let (mut patterns_a_name, mut cited_bytes) = (1, 0);
    each_schema(&mut schema, &loose, &mut |members| {
        members.remove("$schema");
        // The root's, which nothing refers to and which need not be an address.
        members.remove(id_keyword(draft));
        nullable.allow_null(members);
        if !ignored.is_empty() {
            found.take_from(members);
        }
        let named = members.get("patternProperties").and_then(Value::as_object);
        patterns_a_name = patterns_a_name.max(named.map_or(0, Map::len));
        let cited = members.get("const").map_or(0, weight).max(members.get("required").map_or(0, weight));
        cited_bytes = cited_bytes.max(cited);
    });
    let validator = build(draft, size, &schema)?;
    let pattern_bytes = if found.0.is_empty() { 0 } else { size };
    Ok(Schema { validator, outline, guide, bounds, pattern_bytes, patterns_a_name, cited_bytes, ignored })
}

/// What a copy of a value takes in memory, roughly.
fn weight(value: &Value) -> usize {
    /// A value, and a member with its name.
    const VALUE: usize = 32;
    const MEMBER: usize = 96;
    VALUE
        + match value {
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(weight).sum(),
            Value::Object(members) => members.iter().map(|(name, value)| MEMBER + name.len() + weight(value)).sum(),
            _ => 0,
        }
}

/// Whether a schema may have patterns: they take long to compile.
pub(super) fn has_patterns(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members
            .iter()
            .any(|(key, value)| matches!(key.as_str(), "pattern" | "patternProperties") || has_patterns(value)),
        Value::Array(items) => items.iter().any(has_patterns),
        _ => false,
    }
}

fn build(draft: Draft, size: usize, schema: &Value) -> Result<Validator<Instance>, SchemaFault> {
    // References to anything outside of the schema are refused: no way to follow them is compiled in.
    let options = jsonschema::options_for::<Instance>()
        .with_draft(draft)
        .should_validate_formats(false)
        .with_pattern_options(PatternOptions::regex().size_limit(size).dfa_size_limit(size.max(1 << 16)));
    options.build(schema).map_err(|fault| {
        let place = PluginText::new(fault.instance_path().as_str());
        SchemaFault::Invalid { detail: format!("{} at {:?}", fault.masked(), place.capped(200).to_string()) }
    })
}

/// The patterns of a schema, each with the size that it needs, none if it can't be used.
struct Found(BTreeMap<String, Option<usize>>);

impl Found {
    /// Tries all patterns, as long as somebody waits.
    fn of(schema: &mut Value, loose: &[String], stopped: Option<&Arc<AtomicBool>>) -> Self {
        let mut found = BTreeMap::new();
        each_schema(schema, loose, &mut |members| {
            let named = members.get("patternProperties").and_then(Value::as_object).into_iter().flat_map(Map::keys);
            let all = members.get("pattern").and_then(Value::as_str).into_iter().chain(named.map(String::as_str));
            found.extend(all.map(|pattern| (pattern.to_owned(), None)));
        });
        const MORE_THAN_A_PREFIX: &str = "(a+b+)+";
        let share = PATTERN_BYTES / found.len().max(1);
        for (pattern, size) in found.iter_mut().take(MOST_PATTERNS) {
            if stopped.is_some_and(|stopped| stopped.load(Ordering::Relaxed)) {
                break;
            }
            // A mere prefix is compiled if it stands beside a pattern that is more.
            let alone = json!({ "pattern": pattern, "patternProperties": { pattern: true, MORE_THAN_A_PREFIX: true } });
            let mut sizes = TIERS.map(|tier| 1_usize << tier).filter(|size| *size <= share);
            *size = sizes.find(|size| build(Draft::Draft202012, *size, &alone).is_ok());
        }
        Self(found)
    }

    fn unusable(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(_, size)| size.is_none()).map(|(pattern, _)| pattern.as_str())
    }

    fn largest(&self) -> usize {
        self.0.values().flatten().copied().max().unwrap_or(1 << TIERS.start())
    }

    /// Takes away what can't be used.
    fn take_from(&self, members: &mut Map<String, Value>) {
        let unusable = |pattern: &str| self.0.get(pattern).is_some_and(Option::is_none);
        if members.get("pattern").and_then(Value::as_str).is_some_and(unusable) {
            members.remove("pattern");
        }
        if let Some(Value::Object(named)) = members.get_mut("patternProperties") {
            let before = named.len();
            named.retain(|pattern, _| !unusable(pattern));
            // Nobody knows which names it meant, so none counts as additional.
            if named.len() < before {
                named.insert(String::new(), Value::Bool(true));
            }
        }
    }
}
