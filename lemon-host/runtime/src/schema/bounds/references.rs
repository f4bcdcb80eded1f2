//! Where the references of a schema lead: to its own parts only, by pointer or by anchor.

use std::borrow::Cow;
use std::collections::HashMap;

use jsonschema::Draft;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use super::SchemaFault;
use crate::schema::dialect::{dialect, id_keyword};

/// A schema's references.
pub(crate) struct References<'a> {
    root: &'a Value,
    /// The keyword that makes a part a document of its own.
    pub(super) id: &'static str,
    anchors: HashMap<&'a str, Option<&'a Value>>,
}

impl<'a> References<'a> {
    /// Finds what can be referred to.
    pub(crate) fn of(root: &'a Value) -> Self {
        let dialect = dialect(root);
        let mut references = Self { root, id: id_keyword(dialect), anchors: HashMap::new() };
        references.find_anchors(root, Some(dialect));
        references
    }

    /// Finds what looks like an anchor anywhere. It names the part that it stands in if that is a schema, of a dialect
    /// that is given, and no other one has the name; else it makes the name one that refers to nothing.
    fn find_anchors(&mut self, value: &'a Value, dialect: Option<Draft>) {
        match value {
            Value::Object(members) => {
                for keyword in ["$anchor", "$dynamicAnchor"] {
                    if let Some(name) = members.get(keyword).and_then(Value::as_str) {
                        let found = dialect.filter(|dialect| knows(*dialect, keyword)).map(|_| value);
                        self.anchors.entry(name).and_modify(|found| *found = None).or_insert(found);
                    }
                }
                for (keyword, inner) in members {
                    match (dialect.and_then(|dialect| schemas(dialect, keyword)), inner) {
                        (Some(Under::One), Value::Object(_)) => self.find_anchors(inner, dialect),
                        (Some(Under::List), Value::Array(list)) => {
                            list.iter().for_each(|inner| self.find_anchors(inner, dialect));
                        }
                        (Some(Under::Names), Value::Object(named)) => {
                            named.values().for_each(|inner| self.find_anchors(inner, dialect));
                        }
                        _ => self.find_anchors(inner, None),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.find_anchors(item, None)),
            _ => {}
        }
    }

    /// Refuses what is a document of its own within the schema.
    pub(super) fn no_document_of_its_own(
        &self,
        schema: &Value,
        members: &Map<String, Value>,
    ) -> Result<(), SchemaFault> {
        if std::ptr::eq(schema, self.root) {
            return Ok(());
        }
        if members.get(self.id).is_some_and(Value::is_string) {
            return Err(SchemaFault::Embedded { keyword: self.id });
        }
        // The one draft that would have other keywords.
        if may_be_draft_4(schema) != (self.id == "id") && members.get("$schema").is_some_and(Value::is_string) {
            return Err(SchemaFault::Embedded { keyword: "$schema" });
        }
        Ok(())
    }

    /// What a reference leads to.
    ///
    /// # Errors
    /// When it leads out of the schema, to nothing, or through a part that is a document of its own.
    pub(crate) fn resolve(&self, text: &str) -> Result<&'a Value, SchemaFault> {
        let missing = || SchemaFault::Missing { reference: text.to_owned() };
        if !text.starts_with('#') {
            return Err(SchemaFault::External { reference: text.to_owned() });
        }
        let fragment = fragment(text).ok_or_else(missing)?;
        if fragment.is_empty() {
            return Ok(self.root);
        }
        let Some(pointer) = fragment.strip_prefix('/') else {
            return self.anchors.get(fragment.as_ref()).copied().flatten().ok_or_else(missing);
        };
        let mut at = self.root;
        for step in pointer.split('/') {
            if let Value::Object(members) = at {
                self.no_document_of_its_own(at, members)?;
            }
            at = at.pointer(&format!("/{step}")).ok_or_else(missing)?;
        }
        if at.is_object() || at.is_boolean() { Ok(at) } else { Err(missing()) }
    }
}

/// The pointer or anchor of a reference within the schema, if it is one and is text.
pub(crate) fn fragment(reference: &str) -> Option<Cow<'_, str>> {
    percent_decode_str(reference.strip_prefix('#')?).decode_utf8().ok()
}

/// What a keyword has under it that is a schema.
enum Under {
    One,
    List,
    Names,
}

/// Where a dialect that has anchors looks for them. What is left out, such as the tuples of 2019-09, has none.
fn schemas(dialect: Draft, keyword: &str) -> Option<Under> {
    match keyword {
        "additionalProperties"
        | "contains"
        | "contentSchema"
        | "else"
        | "if"
        | "items"
        | "not"
        | "propertyNames"
        | "then"
        | "unevaluatedItems"
        | "unevaluatedProperties" => Some(Under::One),
        "allOf" | "anyOf" | "oneOf" => Some(Under::List),
        "prefixItems" if dialect == Draft::Draft202012 => Some(Under::List),
        "$defs" | "definitions" | "dependentSchemas" | "patternProperties" | "properties" => Some(Under::Names),
        _ => None,
    }
}

/// Whether a dialect has such anchors.
fn knows(dialect: Draft, keyword: &str) -> bool {
    dialect == Draft::Draft202012 || (dialect == Draft::Draft201909 && keyword == "$anchor")
}

/// Whether a part may be taken for one of draft 4, whatever becomes of its dialect.
fn may_be_draft_4(schema: &Value) -> bool {
    schema.get("$schema").and_then(Value::as_str).is_some_and(|uri| uri.contains("draft-04"))
}
