//! The dialect of JSON Schema that a schema is read as.

use jsonschema::Draft;
use serde_json::Value;

/// The dialect that a schema names, else the newest one.
pub(super) fn dialect(schema: &Value) -> Draft {
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

/// The keyword that makes a part of a schema a document of its own.
pub(super) fn id_keyword(dialect: Draft) -> &'static str {
    if dialect == Draft::Draft4 { "id" } else { "$id" }
}
