//! An extension's manifest, with any bytes in it.

use std::path::Path;

use serde_json::Value;

use super::is_tellable;
use crate::discovery::{ManifestProblem, ProblemKind, check_manifest};

/// Bytes are a manifest.
pub fn manifest(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let checked = check_manifest(text, Some(Path::new("/nowhere")));
    assert!(checked.problems.len() <= 200, "{text}: {} problems", checked.problems.len());
    let lines = text.matches('\n').count() + 1;
    // Of two values with one key a place means either, and other readers know the last one only.
    let is_twice = |problem: &ManifestProblem| problem.kind == ProblemKind::DuplicateKey;
    let is_clear = checked.more == [0, 0] && !checked.problems.iter().any(is_twice);
    let value = serde_json::from_str::<Value>(text).ok().filter(|_| is_clear);
    for problem in &checked.problems {
        is_tellable(&problem.to_string());
        let has_place = problem.line.is_some_and(|line| (1..=lines).contains(&line)) && problem.column >= Some(1);
        assert!(has_place, "{text}: {problem:?}");
        assert!(
            !problem.message.starts_with("it can't be taken over"),
            "the rules and the types differ: {text}: {problem}"
        );
        if let (Some(pointer), Some(value)) = (&problem.pointer, &value) {
            assert!(value.pointer(pointer).is_some(), "{pointer:?} is not in {text}");
        }
    }
    if checked.manifest.is_some() {
        fits_the_schema(text);
    }
}

/// The schema for editors is never stricter than the check.
fn fits_the_schema(text: &str) {
    thread_local! {
        static SCHEMA: jsonschema::Validator =
            match jsonschema::validator_for(&lemon_protocol::manifest::schema::document()) {
                Ok(schema) => schema,
                Err(error) => panic!("the schema of manifests is none: {error}"),
            };
    }
    let value: Value =
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{text} is valid and no JSON: {error}"));
    SCHEMA.with(|schema| {
        let faults: Vec<_> = schema.iter_errors(&value).map(|fault| fault.to_string()).collect();
        assert!(faults.is_empty(), "{text}: {faults:?}");
    });
}
