//! Where the references of a schema lead: to its own parts only, by pointer or by anchor.

use std::collections::HashMap;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use super::SchemaFault;

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
        let id = if is_draft_4(root) { "id" } else { "$id" };
        let mut references = Self { root, id, anchors: HashMap::new() };
        references.find_anchors(root);
        references
    }

    /// Finds what looks like an anchor anywhere: one in a place that is no schema can only make a name ambiguous.
    fn find_anchors(&mut self, value: &'a Value) {
        match value {
            Value::Object(members) => {
                for keyword in ["$anchor", "$dynamicAnchor"] {
                    if let Some(name) = members.get(keyword).and_then(Value::as_str) {
                        self.anchors.entry(name).and_modify(|found| *found = None).or_insert(Some(value));
                    }
                }
                members.values().for_each(|member| self.find_anchors(member));
            }
            Value::Array(items) => items.iter().for_each(|item| self.find_anchors(item)),
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
        if is_draft_4(schema) != (self.id == "id") && members.get("$schema").is_some_and(Value::is_string) {
            return Err(SchemaFault::Embedded { keyword: "$schema" });
        }
        Ok(())
    }

    /// What a reference leads to.
    ///
    /// # Errors
    /// When it leads out of the schema, to nothing, or through a part that is a document of its own.
    pub(crate) fn resolve(&self, text: &str) -> Result<&'a Value, SchemaFault> {
        let external = || SchemaFault::External { reference: text.to_owned() };
        let missing = || SchemaFault::Missing { reference: text.to_owned() };
        let fragment = text.strip_prefix('#').ok_or_else(external)?;
        let fragment = percent_decode_str(fragment).decode_utf8().map_err(|_| missing())?;
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
        Ok(at)
    }
}

fn is_draft_4(schema: &Value) -> bool {
    schema.get("$schema").and_then(Value::as_str).is_some_and(|uri| uri.contains("draft-04"))
}
