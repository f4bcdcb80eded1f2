//! Makes the shapes of a schema, place by place from the root on.
//!
//! What applies to a place is kept apart by how sure it is: schemas that always apply, lists of alternatives of which one
//! does, and schemas that may apply on a condition. Types come from the first two, names from all three.

use std::collections::{BTreeSet, HashMap};

use jsonschema::Draft;
use serde_json::{Map, Value};

use super::super::bounds::References;
use super::{Shape, ShapeId, Type, fold};

/// How many schemas are looked at in all, and how many shapes are made; a place beyond has no shape.
const STEPS: usize = 1 << 18;
const SHAPES: usize = 1 << 14;

/// A schema, known by its address.
#[derive(Clone, Copy)]
struct Part<'a>(&'a Map<String, Value>);

impl Part<'_> {
    fn address(&self) -> usize {
        std::ptr::from_ref(self.0) as usize
    }
}

impl PartialEq for Part<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.address() == other.address()
    }
}

impl Eq for Part<'_> {}

impl PartialOrd for Part<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Part<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.address().cmp(&other.address())
    }
}

impl std::hash::Hash for Part<'_> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.address().hash(state);
    }
}

/// What applies to one place.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Terms<'a> {
    /// All of these.
    all: Vec<Part<'a>>,
    /// One of each list.
    any: Vec<Vec<Terms<'a>>>,
    /// Some of these, or none.
    perhaps: Vec<Part<'a>>,
}

impl<'a> Terms<'a> {
    fn of(schema: &'a Value) -> Self {
        Self { all: schema.as_object().map(Part).into_iter().collect(), ..Self::default() }
    }

    fn says_nothing(&self) -> bool {
        self.all.is_empty() && self.any.is_empty()
    }

    fn and(&mut self, other: Self) {
        self.all.extend(other.all);
        self.any.extend(other.any);
        self.perhaps.extend(other.perhaps);
    }

    /// All schemas in it, however sure.
    fn parts(self, parts: &mut Vec<Part<'a>>) {
        parts.extend(self.all);
        parts.extend(self.perhaps);
        self.any.into_iter().flatten().for_each(|terms| terms.parts(parts));
    }

    fn in_order(mut self) -> Self {
        for parts in [&mut self.all, &mut self.perhaps] {
            parts.sort_unstable();
            parts.dedup();
        }
        for branches in &mut self.any {
            *branches = std::mem::take(branches).into_iter().map(Self::in_order).collect();
        }
        self.any.sort_unstable();
        self.any.dedup();
        self
    }
}

/// A step from a place into a value.
#[derive(Clone, Copy)]
enum Step<'s> {
    /// A member of that name; without one, any that is not declared.
    Member(Option<&'s str>),
    /// An item of that number; without one, any after the first ones.
    Item(Option<usize>),
}

/// What is found of a place apart from its types.
#[derive(Default)]
struct Found<'a> {
    names: BTreeSet<&'a str>,
    first: usize,
    /// Names may be meant by patterns, which are not followed.
    patterns: bool,
}

pub(super) struct Drafting<'a> {
    references: References<'a>,
    dialect: Draft,
    known: HashMap<Terms<'a>, ShapeId>,
    waiting: Vec<Terms<'a>>,
    steps: usize,
}

impl<'a> Drafting<'a> {
    /// All shapes of a schema, the root's first.
    pub(super) fn of(schema: &'a Value, dialect: Draft) -> Vec<Shape> {
        let references = References::of(schema);
        let mut drafting = Drafting { references, dialect, known: HashMap::new(), waiting: Vec::new(), steps: STEPS };
        drafting.shape(Terms::of(schema));
        let mut shapes = Vec::new();
        while let Some(terms) = drafting.waiting.get(shapes.len()).cloned() {
            shapes.push(drafting.read(&terms));
        }
        shapes
    }

    /// The number of the shape of a place.
    fn shape(&mut self, terms: Terms<'a>) -> Option<ShapeId> {
        let terms = terms.in_order();
        if let Some(known) = self.known.get(&terms) {
            return Some(*known);
        }
        if self.waiting.len() >= SHAPES {
            return None;
        }
        let id = self.waiting.len() as ShapeId;
        self.known.insert(terms.clone(), id);
        self.waiting.push(terms);
        Some(id)
    }

    fn read(&mut self, terms: &Terms<'a>) -> Shape {
        let mut found = Found::default();
        self.find(terms, &mut found);
        let types = self.types(terms);
        let Found { names, first, patterns } = found;
        let members: Vec<_> =
            names.into_iter().map(|name| (Box::from(name), self.inner(terms, Step::Member(Some(name))))).collect();
        let mut folded: Vec<_> = (0..).zip(&members).map(|(number, (name, _))| (fold(name), number)).collect();
        folded.sort_unstable();
        let rest = if patterns { None } else { self.inner(terms, Step::Member(None)) };
        let first = (0..first).map(|number| self.inner(terms, Step::Item(Some(number)))).collect();
        let items = self.inner(terms, Step::Item(None));
        Shape { types, members, folded, rest, first, items }
    }

    /// The shape of what is within; none where nothing is said of it.
    fn inner(&mut self, terms: &Terms<'a>, step: Step<'_>) -> Option<ShapeId> {
        let terms = self.within(terms, step)?;
        if terms == Terms::default() { None } else { self.shape(terms) }
    }

    fn step(&mut self) -> bool {
        self.steps = self.steps.saturating_sub(1);
        self.steps > 0
    }

    /// What applies within; none if nothing may be there.
    fn within(&mut self, terms: &Terms<'a>, step: Step<'_>) -> Option<Terms<'a>> {
        let mut within = Terms::default();
        for part in &terms.all {
            within.and(self.within_part(*part, step)?);
        }
        for branches in &terms.any {
            within.and(self.within_any(branches.iter(), step)?);
        }
        for part in &terms.perhaps {
            if let Some(inner) = self.within_part(*part, step) {
                inner.parts(&mut within.perhaps);
            }
        }
        Some(within)
    }

    /// What applies if one of some alternatives does: where one of them says nothing, the others may or may not.
    fn within_any<'b>(&mut self, branches: impl Iterator<Item = &'b Terms<'a>>, step: Step<'_>) -> Option<Terms<'a>>
    where
        'a: 'b,
    {
        let mut inner: Vec<_> = branches.filter_map(|branch| self.within(branch, step)).collect();
        if inner.len() < 2 {
            return inner.pop();
        }
        let mut terms = Terms::default();
        if inner.iter().any(Terms::says_nothing) {
            inner.into_iter().for_each(|branch| branch.parts(&mut terms.perhaps));
        } else {
            terms.any.push(inner);
        }
        Some(terms)
    }

    fn within_part(&mut self, part: Part<'a>, step: Step<'_>) -> Option<Terms<'a>> {
        if !self.step() {
            return Some(Terms::default());
        }
        let Part(schema) = part;
        let mut within = match (self.is_reference(schema), self.own(schema, step)) {
            (false, Some(Value::Bool(false))) => return None,
            (false, Some(own)) => Terms::of(own),
            _ => Terms::default(),
        };
        for inner in self.always(schema) {
            within.and(self.within_part(inner, step)?);
        }
        for keyword in self.alternatives(schema) {
            let branches: Vec<_> = array(schema, keyword).map(Terms::of).collect();
            within.and(self.within_any(branches.iter(), step)?);
        }
        for inner in self.sometimes(schema) {
            if let Some(inner) = self.within_part(inner, step) {
                inner.parts(&mut within.perhaps);
            }
        }
        Some(within)
    }

    /// What a schema itself says of what is within.
    fn own(&self, schema: &'a Map<String, Value>, step: Step<'_>) -> Option<&'a Value> {
        match step {
            Step::Member(name) => {
                let declared = name.and_then(|name| schema.get("properties")?.as_object()?.get(name));
                let patterns = schema.get("patternProperties").and_then(Value::as_object);
                let has_patterns = patterns.is_some_and(|patterns| !patterns.is_empty());
                declared.or_else(|| if has_patterns { None } else { schema.get("additionalProperties") })
            }
            Step::Item(number) => {
                let (first, rest) = self.items(schema);
                number.and_then(|number| first.get(number)).or(rest)
            }
        }
    }

    /// The schemas of the first items, and that of the others.
    fn items(&self, schema: &'a Map<String, Value>) -> (&'a [Value], Option<&'a Value>) {
        let has_prefix = !matches!(self.dialect, Draft::Draft4 | Draft::Draft6 | Draft::Draft7 | Draft::Draft201909);
        match (schema.get("prefixItems"), schema.get("items")) {
            (Some(Value::Array(first)), items) if has_prefix => (first, items),
            (_, Some(Value::Array(first))) => (first, schema.get("additionalItems")),
            (_, items) => (&[], items),
        }
    }

    /// Whether a schema is a reference and, in its dialect, nothing beside it.
    fn is_reference(&self, schema: &Map<String, Value>) -> bool {
        matches!(self.dialect, Draft::Draft4 | Draft::Draft6 | Draft::Draft7)
            && schema.get("$ref").is_some_and(Value::is_string)
    }

    /// What applies wherever a schema does.
    fn always(&self, schema: &'a Map<String, Value>) -> impl Iterator<Item = Part<'a>> + use<'a> {
        let referred = schema.get("$ref").and_then(Value::as_str);
        let referred = referred.and_then(|text| self.references.resolve(text).ok());
        let branches = (!self.is_reference(schema)).then(|| array(schema, "allOf"));
        referred.into_iter().chain(branches.into_iter().flatten()).filter_map(Value::as_object).map(Part)
    }

    /// The keywords of which one schema applies wherever this one does.
    fn alternatives(&self, schema: &'a Map<String, Value>) -> impl Iterator<Item = &'static str> + use<'a> {
        let keywords = if self.is_reference(schema) { [].as_slice() } else { &["anyOf", "oneOf"] };
        keywords.iter().copied().filter(|keyword| array(schema, keyword).next().is_some())
    }

    /// What applies to some values to which a schema does.
    fn sometimes(&self, schema: &'a Map<String, Value>) -> impl Iterator<Item = Part<'a>> + use<'a> {
        let none = self.is_reference(schema);
        let conditions = ["then", "else"].into_iter().filter_map(|keyword| schema.get(keyword));
        let dependent = ["dependentSchemas", "dependencies"].into_iter().flat_map(|keyword| {
            schema.get(keyword).and_then(Value::as_object).into_iter().flatten().map(|(_, schema)| schema)
        });
        let all = conditions.chain(dependent).filter_map(Value::as_object).map(Part);
        all.filter(move |_| !none)
    }

    fn find(&mut self, terms: &Terms<'a>, found: &mut Found<'a>) {
        let mut parts = Vec::new();
        terms.clone().parts(&mut parts);
        while let Some(part) = parts.pop() {
            if !self.step() {
                return;
            }
            let Part(schema) = part;
            parts.extend(self.always(schema));
            for keyword in self.alternatives(schema) {
                parts.extend(array(schema, keyword).filter_map(Value::as_object).map(Part));
            }
            parts.extend(self.sometimes(schema));
            if self.is_reference(schema) {
                continue;
            }
            let object = |keyword: &str| schema.get(keyword).and_then(Value::as_object).into_iter().flatten();
            found.names.extend(object("properties").map(|(name, _)| name.as_str()));
            found.patterns |= object("patternProperties").next().is_some();
            found.first = found.first.max(self.items(schema).0.len());
        }
    }

    /// The types that a value may have; none where all may be.
    fn types(&mut self, terms: &Terms<'a>) -> Option<Vec<Type>> {
        let mut types = None;
        for part in &terms.all {
            types = both(types, self.types_of(*part));
        }
        for branches in &terms.any {
            let branches: Option<Vec<_>> = branches.iter().map(|branch| self.types(branch)).collect();
            types = both(types, branches.map(|branches| distinct(branches.into_iter().flatten())));
        }
        types
    }

    fn types_of(&mut self, part: Part<'a>) -> Option<Vec<Type>> {
        if !self.step() {
            return None;
        }
        let Part(schema) = part;
        let mut types = if self.is_reference(schema) { None } else { self.own_types(schema) };
        for inner in self.always(schema) {
            types = both(types, self.types_of(inner));
        }
        for keyword in self.alternatives(schema) {
            let branches: Option<Vec<_>> =
                array(schema, keyword).map(|branch| self.types(&Terms::of(branch))).collect();
            types = both(types, branches.map(|branches| distinct(branches.into_iter().flatten())));
        }
        if let (Some(types), Some(Value::Bool(true))) = (&mut types, schema.get("nullable"))
            && !types.contains(&Type::Null)
        {
            types.push(Type::Null);
        }
        types
    }

    fn own_types(&self, schema: &'a Map<String, Value>) -> Option<Vec<Type>> {
        let named = match schema.get("type") {
            Some(Value::String(name)) => Some(Type::named(name).into_iter().collect()),
            Some(Value::Array(names)) => Some(distinct(names.iter().filter_map(Value::as_str).filter_map(Type::named))),
            _ => None,
        };
        let only = schema.get("const").filter(|_| self.dialect != Draft::Draft4);
        let chosen = match schema.get("enum") {
            Some(Value::Array(choices)) => Some(distinct(choices.iter().map(Type::of))),
            _ => None,
        };
        both(both(named, only.map(|only| vec![Type::of(only)])), chosen)
    }
}

fn array<'a>(schema: &'a Map<String, Value>, keyword: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    schema.get(keyword).and_then(Value::as_array).into_iter().flatten()
}

fn distinct(types: impl Iterator<Item = Type>) -> Vec<Type> {
    types.fold(Vec::new(), |mut types, kind| {
        if !types.contains(&kind) {
            types.push(kind);
        }
        types
    })
}

/// The types that two schemas allow together.
fn both(one: Option<Vec<Type>>, other: Option<Vec<Type>>) -> Option<Vec<Type>> {
    let (one, other) = match (one, other) {
        (Some(one), Some(other)) => (one, other),
        (one, other) => return one.or(other),
    };
    let narrowed = one.iter().filter_map(|kind| match kind {
        kind if other.contains(kind) => Some(*kind),
        Type::Integer if other.contains(&Type::Number) => Some(Type::Integer),
        Type::Number if other.contains(&Type::Integer) => Some(Type::Integer),
        _ => None,
    });
    Some(distinct(narrowed))
}
