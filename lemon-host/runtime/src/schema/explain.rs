//! What a validator found, in words for whoever made the call: a person or a model.

use std::fmt::Display;

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Fault};
use serde_json::Value;

use super::Schema;
use super::guide::{Guide, Shape};
use super::place::{Place, quoted};
use super::tree::{Kind, Node};
use super::violation::{Violation, Violations};
use crate::nearest::nearest;
use crate::report::PluginText;

/// The most characters of a schema's value or pattern that are shown, and the most of its choices.
const VALUE: usize = 60;
const PATTERN: usize = 100;
const CHOICES: usize = 12;
/// The most levels of alternatives within alternatives that are told of.
const NESTED: usize = 3;

/// Adds what one error says.
pub(super) fn explain(error: &ValidationError<'_>, root: &Node<'_>, schema: &Schema, violations: &mut Violations) {
    if violations.is_full() {
        return violations.count(match error.kind() {
            Fault::AdditionalProperties { unexpected } | Fault::UnevaluatedProperties { unexpected } => {
                unexpected.len()
            }
            _ => 1,
        });
    }
    Spot::find(error.instance_path().as_str(), root, &schema.guide, &mut |spot| match error.kind() {
        Fault::AdditionalProperties { unexpected } | Fault::UnevaluatedProperties { unexpected } => {
            for (told, name) in unexpected.iter().enumerate() {
                if violations.is_full() {
                    return violations.count(unexpected.len() - told);
                }
                let message = spot.unknown(name, violations.may_suggest());
                violations.push(Violation::at(&spot.place, message));
            }
        }
        _ => violations.push(Violation::at(&spot.place, message(error, spot, root, schema, NESTED))),
    });
}

/// A place, with the value there and what is known of it.
struct Spot<'a> {
    place: Place<'a>,
    node: Option<&'a Node<'a>>,
    shape: Option<&'a Shape>,
}

impl<'a> Spot<'a> {
    /// Follows a JSON pointer.
    fn find(pointer: &str, root: &Node<'_>, guide: &Guide, then: &mut dyn FnMut(&Spot<'_>)) {
        let start = Spot { place: Place::ROOT, node: Some(root), shape: guide.shape(Guide::ROOT) };
        start.follow(pointer, guide, then);
    }

    fn follow(&self, pointer: &str, guide: &Guide, then: &mut dyn FnMut(&Spot<'_>)) {
        let Some(rest) = pointer.strip_prefix('/') else { return then(self) };
        let (step, rest) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let inner = |id: Option<u32>| id.and_then(|id| guide.shape(id));
        if let Some(Node { kind: Kind::Array(items), .. }) = self.node {
            let number: usize = step.parse().unwrap_or(0);
            let shape = inner(self.shape.and_then(|shape| shape.item(number)));
            Spot { place: self.place.item(number), node: items.get(number), shape }.follow(rest, guide, then);
            return;
        }
        let name = step.replace("~1", "/").replace("~0", "~");
        let node = match self.node {
            Some(Node { kind: Kind::Object(members), .. }) => members.get(&name),
            _ => None,
        };
        let shape = inner(self.shape.and_then(|shape| shape.inner(&name)));
        Spot { place: self.place.member(&name), node, shape }.follow(rest, guide, then);
    }

    fn got(&self) -> &'static str {
        self.node.map_or("nothing", Node::type_name)
    }

    fn unknown(&self, name: &str, suggest: bool) -> String {
        let shape = self.shape.filter(|_| suggest);
        let near = shape.and_then(|shape| nearest(name, shape.names()));
        match near {
            Some(near) => format!("unknown argument {}, is it {}?", quoted(name), quoted(near)),
            None => format!("unknown argument {}", quoted(name)),
        }
    }
}

fn message(error: &ValidationError<'_>, spot: &Spot<'_>, root: &Node<'_>, schema: &Schema, nested: usize) -> String {
    match error.kind() {
        Fault::AdditionalProperties { unexpected } | Fault::UnevaluatedProperties { unexpected } => {
            // Within an alternative.
            let first = unexpected.first().map(|name| spot.unknown(name, true)).unwrap_or_default();
            let more = unexpected.len().saturating_sub(1);
            if more > 0 { format!("{first} and {more} more") } else { first }
        }
        Fault::Type { kind } => format!("expected {}, got {}", listed(types(kind).into_iter()), spot.got()),
        Fault::Required { property } => {
            format!("missing required argument {}", quoted(property.as_str().unwrap_or_default()))
        }
        Fault::Enum { options } => {
            let choices = options.as_array().map(Vec::as_slice).unwrap_or_default();
            let shown: Vec<String> = choices.iter().take(CHOICES).map(shown).collect();
            let more = choices.len().saturating_sub(CHOICES);
            let more = if more > 0 { format!(" or {more} others") } else { String::new() };
            format!("expected one of {}{more}", shown.join(", "))
        }
        Fault::Constant { expected_value } => format!("expected {}", shown(expected_value)),
        Fault::Minimum { limit } => format!("must be at least {}", shown(limit)),
        Fault::Maximum { limit } => format!("must be at most {}", shown(limit)),
        Fault::ExclusiveMinimum { limit } => format!("must be greater than {}", shown(limit)),
        Fault::ExclusiveMaximum { limit } => format!("must be less than {}", shown(limit)),
        Fault::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        Fault::MinLength { limit } => format!("must have at least {}", counted(*limit, "character")),
        Fault::MaxLength { limit } => format!("must have at most {}", counted(*limit, "character")),
        Fault::MinItems { limit } => format!("must have at least {}", counted(*limit, "item")),
        Fault::MaxItems { limit } => format!("must have at most {}", counted(*limit, "item")),
        Fault::AdditionalItems { limit } => format!("must have at most {}", counted(*limit as u64, "item")),
        Fault::UnevaluatedItems { .. } => "has more items than it may".to_owned(),
        Fault::MinProperties { limit } => format!("must have at least {}", counted(*limit, "member")),
        Fault::MaxProperties { limit } => format!("must have at most {}", counted(*limit, "member")),
        Fault::UniqueItems => "has the same item twice".to_owned(),
        Fault::Contains => "does not have the items that it must have".to_owned(),
        Fault::Pattern { pattern } => {
            format!("does not match the pattern {}", PluginText::new(pattern.as_str()).capped(PATTERN))
        }
        Fault::PropertyNames { error } => {
            let inner = message(error, &Spot { node: None, ..*spot }, root, schema, nested.saturating_sub(1));
            format!("has a key that is not allowed: {inner}")
        }
        Fault::Not { .. } => "is just what it must not be".to_owned(),
        Fault::FalseSchema => "is not allowed".to_owned(),
        Fault::OneOfMultipleValid { .. } => "fits more than one of the alternatives, and must fit one".to_owned(),
        Fault::AnyOf { context } | Fault::OneOfNotValid { context } => {
            alternatives(context, spot, root, schema, nested)
        }
        _ => PluginText::new(error.masked_with("the value").to_string()).capped(VALUE * 2).to_string(),
    }
}

/// Why none of some alternatives fits.
fn alternatives(
    context: &[Vec<ValidationError<'static>>],
    spot: &Spot<'_>,
    root: &Node<'_>,
    schema: &Schema,
    nested: usize,
) -> String {
    let here = spot.place.pointer();
    let is_here = |error: &ValidationError<'_>| error.instance_path().as_str() == here;
    // The types alone decide, as in `["string", null]` by another name.
    let wrong_types: Option<Vec<_>> = context
        .iter()
        .map(|branch| match branch.as_slice() {
            [error] if is_here(error) => match error.kind() {
                Fault::Type { kind } => Some(types(kind)),
                _ => None,
            },
            _ => None,
        })
        .collect();
    if let Some(types) = wrong_types.filter(|types| !types.is_empty()) {
        let mut types = types.concat();
        types.dedup();
        return format!("expected {}, got {}", listed(types.into_iter()), spot.got());
    }
    let count = context.len();
    let decided = |error: &ValidationError<'_>| {
        matches!(error.kind(), Fault::Type { .. } | Fault::FalseSchema)
            || matches!(error.kind(), Fault::Constant { .. } | Fault::Enum { .. })
    };
    // The nearest alternative: not of another type or kind, and with the fewest faults.
    let nearest = (1..).zip(context).filter(|(_, branch)| !branch.is_empty()).min_by_key(|(_, branch)| {
        let wrong = branch.iter().filter(|error| decided(error)).count();
        (branch.iter().any(|error| is_here(error) && decided(error)), wrong, branch.len())
    });
    let Some((number, branch)) = nearest.filter(|_| nested > 0) else {
        return format!("fits none of the {count} alternatives");
    };
    let mut told = Vec::new();
    for error in branch.iter().take(2) {
        Spot::find(error.instance_path().as_str(), root, &schema.guide, &mut |inner| {
            let path = if is_here(error) { String::new() } else { format!("{}: ", inner.place.path()) };
            told.push(path + &message(error, inner, root, schema, nested - 1));
        });
    }
    format!("fits none of the {count} alternatives; the nearest is number {number}: {}", told.join(", "))
}

fn types(kind: &TypeKind) -> Vec<&'static str> {
    match kind {
        TypeKind::Single(kind) => vec![kind.as_str()],
        TypeKind::Multiple(kinds) => kinds.iter().map(|kind| kind.as_str()).collect(),
    }
}

fn listed(names: impl DoubleEndedIterator<Item = &'static str>) -> String {
    let names: Vec<_> = names.collect();
    names.join(" or ")
}

fn counted(count: u64, what: &str) -> impl Display {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// A value of the schema's.
fn shown(value: &Value) -> String {
    PluginText::new(value.to_string()).capped(VALUE).to_string()
}
