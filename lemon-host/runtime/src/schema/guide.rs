//! What a schema says of the shape of a value, in a form that can be followed along with the value: which types a value
//! may have, which members an object declares, and what is within them.
//!
//! A [`Shape`] gathers all schemas that apply to one place: the schema itself, what it refers to, and all branches of
//! `allOf`, `anyOf`, `oneOf` and conditions. It decides nothing: what is valid, the validator says.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};
use unicase::UniCase;

use super::bounds::References;

/// How many schemas are looked at in all, and how many shapes are made; a place beyond has no shape.
const STEPS: usize = 1 << 17;
const SHAPES: usize = 1 << 14;

/// A type of JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    Array,
    Object,
}

impl Type {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "null" => Self::Null,
            "boolean" => Self::Boolean,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "string" => Self::String,
            "array" => Self::Array,
            "object" => Self::Object,
            _ => return None,
        })
    }

    fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Boolean,
            Value::Number(number) if number.is_f64() => Self::Number,
            Value::Number(_) => Self::Integer,
            Value::String(_) => Self::String,
            Value::Array(_) => Self::Array,
            Value::Object(_) => Self::Object,
        }
    }
}

/// A shape's number.
pub(crate) type ShapeId = u32;

/// What is known of one place.
#[derive(Debug, Default)]
pub(crate) struct Shape {
    /// The types that a value may have, in the order in which the schema names them; none where it says nothing.
    pub(crate) types: Option<Vec<Type>>,
    /// The declared members, in the order of their names.
    members: Vec<(Box<str>, ShapeId)>,
    /// The same with case folded.
    folded: Vec<(Box<str>, u32)>,
    /// Members that are not declared.
    rest: Option<ShapeId>,
    /// The first items.
    first: Vec<ShapeId>,
    /// The items after these.
    items: Option<ShapeId>,
}

impl Shape {
    /// The shape of a declared member.
    pub(crate) fn member(&self, name: &str) -> Option<ShapeId> {
        let found = self.members.binary_search_by(|(own, _)| (**own).cmp(name)).ok()?;
        Some(self.members[found].1)
    }

    /// The shape of members that are not declared.
    pub(crate) fn rest(&self) -> Option<ShapeId> {
        self.rest
    }

    /// The declared name that an undeclared one is when case is folded.
    pub(crate) fn alike(&self, name: &str) -> Option<&str> {
        if self.folded.is_empty() {
            return None;
        }
        let name = fold(name);
        let found = self.folded.binary_search_by(|(folded, _)| folded.cmp(&name)).ok()?;
        self.members.get(self.folded[found].1 as usize).map(|(name, _)| &**name)
    }

    /// The declared names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|(name, _)| &**name)
    }

    /// The shape of an item.
    pub(crate) fn item(&self, number: usize) -> Option<ShapeId> {
        self.first.get(number).copied().or(self.items)
    }

    /// Whether nothing within a value is known.
    pub(crate) fn is_leaf(&self) -> bool {
        self.members.is_empty() && self.rest.is_none() && self.first.is_empty() && self.items.is_none()
    }
}

fn fold(name: &str) -> Box<str> {
    UniCase::unicode(name).to_folded_case().into()
}

/// All shapes of a schema; the root's is number 0.
#[derive(Debug)]
pub(crate) struct Guide {
    shapes: Vec<Shape>,
}

impl Guide {
    /// The root's shape.
    pub(crate) const ROOT: ShapeId = 0;

    /// Reads a schema that [`check`](super::bounds::check) has passed: its references lead somewhere, and what they lead
    /// to in place ends.
    pub(crate) fn of(schema: &Value) -> Self {
        let references = References::of(schema);
        let (known, waiting) = (HashMap::new(), Vec::new());
        let mut draft = Draft { references, known, waiting, steps: STEPS };
        draft.shape(vec![schema]);
        let mut shapes = Vec::new();
        while let Some(schemas) = draft.waiting.get(shapes.len()).cloned() {
            shapes.push(draft.read(&schemas));
        }
        Self { shapes }
    }

    pub(crate) fn shape(&self, id: ShapeId) -> Option<&Shape> {
        self.shapes.get(id as usize)
    }
}

struct Draft<'a> {
    references: References<'a>,
    known: HashMap<Vec<*const Value>, ShapeId>,
    waiting: Vec<Vec<&'a Value>>,
    steps: usize,
}

/// What schemas say of one place.
#[derive(Default)]
struct Facts<'a> {
    members: BTreeMap<&'a str, Vec<&'a Value>>,
    rest: Vec<&'a Value>,
    first: Vec<Vec<&'a Value>>,
    items: Vec<&'a Value>,
    /// Names may be meant by patterns, which are not followed.
    patterns: bool,
}

impl<'a> Draft<'a> {
    /// The number of the shape that some schemas have together.
    fn shape(&mut self, mut schemas: Vec<&'a Value>) -> Option<ShapeId> {
        schemas.retain(|schema| schema.is_object());
        schemas.sort_unstable_by_key(|schema| std::ptr::from_ref::<Value>(schema));
        schemas.dedup_by_key(|schema| std::ptr::from_ref::<Value>(schema));
        let key: Vec<*const Value> = schemas.iter().map(|schema| std::ptr::from_ref::<Value>(schema)).collect();
        if let Some(known) = self.known.get(&key) {
            return Some(*known);
        }
        if self.waiting.len() >= SHAPES {
            return None;
        }
        let id = self.waiting.len() as ShapeId;
        self.known.insert(key, id);
        self.waiting.push(schemas);
        Some(id)
    }

    fn read(&mut self, schemas: &[&'a Value]) -> Shape {
        let mut facts = Facts::default();
        let mut types = None;
        for schema in schemas {
            self.gather(schema, &mut facts);
            types = both(types, self.types(schema));
        }
        let Facts { members, rest, first, items, patterns } = facts;
        let members: Vec<_> =
            members.into_iter().filter_map(|(name, schemas)| Some((Box::from(name), self.shape(schemas)?))).collect();
        let mut folded: Vec<_> = (0..).zip(&members).map(|(number, (name, _))| (fold(name), number)).collect();
        folded.sort_unstable();
        let mut known = |schemas: Vec<&'a Value>| if schemas.is_empty() { None } else { self.shape(schemas) };
        let rest = if patterns { None } else { known(rest) };
        let items = known(items);
        let count = first.len();
        let first: Vec<_> = first.into_iter().map_while(&mut known).collect();
        // What comes after a first item that nothing is known of is not known either.
        let items = items.filter(|_| first.len() == count);
        Shape { types, members, folded, rest, first, items }
    }

    fn step(&mut self) -> bool {
        self.steps = self.steps.saturating_sub(1);
        self.steps > 0
    }

    fn gather(&mut self, schema: &'a Value, facts: &mut Facts<'a>) {
        let Value::Object(schema) = schema else { return };
        if !self.step() {
            return;
        }
        for (name, member) in object(schema, "properties") {
            facts.members.entry(name).or_default().push(member);
        }
        facts.patterns |=
            schema.get("patternProperties").is_some_and(|named| named.as_object().is_some_and(|n| !n.is_empty()));
        facts.rest.extend(schema.get("additionalProperties").filter(|rest| rest.is_object()));
        let (first, items) = match (schema.get("prefixItems"), schema.get("items")) {
            (_, Some(Value::Array(first))) => (first.as_slice(), schema.get("additionalItems")),
            (Some(Value::Array(first)), items) => (first.as_slice(), items),
            (_, items) => ([].as_slice(), items),
        };
        for (number, item) in first.iter().enumerate() {
            if facts.first.len() <= number {
                facts.first.push(Vec::new());
            }
            facts.first[number].push(item);
        }
        facts.items.extend(items.filter(|items| items.is_object()));
        for schema in self.in_place(schema) {
            self.gather(schema, facts);
        }
    }

    /// What a schema applies to the same value.
    fn in_place(&self, schema: &'a Map<String, Value>) -> Vec<&'a Value> {
        let referred = schema.get("$ref").and_then(Value::as_str);
        let referred = referred.and_then(|text| self.references.resolve(text).ok());
        let branches = ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|keyword| array(schema, keyword));
        let conditions = ["then", "else"].into_iter().filter_map(|keyword| schema.get(keyword));
        let dependent = ["dependentSchemas", "dependencies"].into_iter().flat_map(|keyword| object(schema, keyword));
        referred.into_iter().chain(branches).chain(conditions).chain(dependent.map(|(_, schema)| schema)).collect()
    }

    /// The types that a schema allows.
    fn types(&mut self, schema: &'a Value) -> Option<Vec<Type>> {
        let Value::Object(schema) = schema else { return None };
        if !self.step() {
            return None;
        }
        let mut own = match (schema.get("type"), schema.get("const"), schema.get("enum")) {
            (Some(Value::String(name)), ..) => Some(Type::named(name).into_iter().collect()),
            (Some(Value::Array(names)), ..) => {
                Some(distinct(names.iter().filter_map(Value::as_str).filter_map(Type::named)))
            }
            (_, Some(only), _) => Some(vec![Type::of(only)]),
            (_, _, Some(Value::Array(choices))) => Some(distinct(choices.iter().map(Type::of))),
            _ => None,
        };
        if let (Some(own), Some(Value::Bool(true))) = (&mut own, schema.get("nullable")) {
            own.push(Type::Null);
        }
        let referred = schema.get("$ref").and_then(Value::as_str);
        if let Some(referred) = referred.and_then(|text| self.references.resolve(text).ok()) {
            own = both(own, self.types(referred));
        }
        for branch in array(schema, "allOf") {
            own = both(own, self.types(branch));
        }
        for keyword in ["anyOf", "oneOf"] {
            let branches: Option<Vec<_>> = array(schema, keyword).map(|branch| self.types(branch)).collect();
            let branches = branches.filter(|branches| !branches.is_empty());
            own = both(own, branches.map(|branches| distinct(branches.into_iter().flatten())));
        }
        own
    }
}

fn array<'a>(schema: &'a Map<String, Value>, keyword: &str) -> impl Iterator<Item = &'a Value> {
    schema.get(keyword).and_then(Value::as_array).into_iter().flatten()
}

fn object<'a>(schema: &'a Map<String, Value>, keyword: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    let named = schema.get(keyword).and_then(Value::as_object).into_iter().flatten();
    named.map(|(name, schema)| (name.as_str(), schema))
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
