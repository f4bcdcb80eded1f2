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
use super::guide::Guide;
use super::instance::Instance;
use super::nullable::Nullable;
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

/// Finds out whether a schema can be used at all, without compiling it: cheap enough for a long list.
///
/// # Errors
/// It could cost too much, or is no valid schema of its dialect.
pub(crate) fn check(schema: &Value, limits: &Limits) -> Result<Bounds, SchemaFault> {
    let bounds = bounds::check(schema, limits)?;
    valid(schema)?;
    Ok(bounds)
}

/// Whether a schema is so small that it may be read where it is asked for. What nothing refers to counts as well.
pub(super) fn is_small(schema: &Value) -> bool {
    const BYTES: usize = 16 * 1024;
    bounds::is_within(schema, BYTES) && !has_patterns(schema)
}

fn valid(schema: &Value) -> Result<(), SchemaFault> {
    let fault = match dialect(schema) {
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

/// The dialect that a schema names, else the newest one.
fn dialect(schema: &Value) -> Draft {
    let named = schema.get("$schema").and_then(Value::as_str).unwrap_or_default();
    let named = named.split_once("://").map_or(named, |(_, rest)| rest).trim_end_matches(['#', '/']);
    match named {
        "json-schema.org/draft-04/schema" => Draft::Draft4,
        "json-schema.org/draft-06/schema" => Draft::Draft6,
        "json-schema.org/draft-07/schema" => Draft::Draft7,
        "json-schema.org/draft/2019-09/schema" => Draft::Draft201909,
        _ => Draft::Draft202012,
    }
}

/// Compiles a schema whose bounds may be known already. Takes up to seconds for a hostile one, and a large stack.
///
/// # Errors
/// As [`check`], and when a pattern can't be used that may not be ignored.
pub(super) fn compile(
    schema: &Value,
    limits: &Limits,
    bounds: Option<Bounds>,
    patterns: Patterns,
    stopped: Option<&Arc<AtomicBool>>,
) -> Result<Schema, SchemaFault> {
    let bounds = bounds.map_or_else(|| bounds::check(schema, limits), Ok)?;
    valid(schema)?;
    let draft = dialect(schema);
    let guide = Guide::of(schema, draft);
    let mut schema = schema.clone();
    let found = Found::of(&mut schema, stopped);
    if let (Some(pattern), Patterns::Refuse) = (found.unusable().next(), patterns) {
        return Err(SchemaFault::Pattern { pattern: PluginText::new(pattern).capped(200).to_string() });
    }
    let ignored: Vec<String> = found.unusable().map(str::to_owned).collect();
    let size = found.largest();
    let nullable = Nullable::of(&schema);
    let (mut patterns_a_name, mut cited_bytes) = (1, 0);
    each_schema(&mut schema, &mut |members| {
        members.remove("$schema");
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
    Ok(Schema { validator, guide, bounds, pattern_bytes, patterns_a_name, cited_bytes, ignored })
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
    fn of(schema: &mut Value, stopped: Option<&Arc<AtomicBool>>) -> Self {
        let mut found = BTreeMap::new();
        each_schema(schema, &mut |members| {
            let named = members.get("patternProperties").and_then(Value::as_object).into_iter().flat_map(Map::keys);
            let all = members.get("pattern").and_then(Value::as_str).into_iter().chain(named.map(String::as_str));
            found.extend(all.map(|pattern| (pattern.to_owned(), None)));
        });
        let share = PATTERN_BYTES / found.len().max(1);
        for (pattern, size) in found.iter_mut().take(MOST_PATTERNS) {
            if stopped.is_some_and(|stopped| stopped.load(Ordering::Relaxed)) {
                break;
            }
            let alone = json!({ "pattern": pattern });
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
