//! Runs `vectors/manifest.json` against the types and the checked-in schema of manifests.

use std::collections::BTreeSet;

use lemon_protocol::manifest::Manifest;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Vectors {
    vectors: Vec<Vector>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vector {
    id: String,
    manifest: String,
    valid: bool,
    why: String,
    problems: Vec<String>,
    #[serde(default)]
    schema_accepts: bool,
    #[serde(default)]
    type_accepts: bool,
}

#[test]
fn every_vector_is_seen_as_it_says() {
    let Vectors { vectors } = serde_json::from_str(include_str!("../vectors/manifest.json")).unwrap();
    let schema: Value = serde_json::from_str(include_str!("../schema/lemon-extension-1.schema.json")).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let mut ids = BTreeSet::new();
    for vector in &vectors {
        let id = &vector.id;
        assert!(ids.insert(id) && !vector.why.is_empty(), "{id}");
        assert!(vector.valid || !vector.problems.is_empty(), "{id}: what is wrong?");
        let read = Manifest::from_json(&vector.manifest);
        assert_eq!(read.is_ok(), vector.valid || vector.type_accepts, "{id}: the type says {read:?}");
        let accepts = serde_json::from_str(&vector.manifest).is_ok_and(|value| schema.is_valid(&value));
        assert_eq!(accepts, vector.valid || vector.schema_accepts, "{id}: the schema");
    }
    assert!(vectors.len() >= 40);
}

#[test]
fn a_manifest_survives_being_written_and_read() {
    let Vectors { vectors } = serde_json::from_str(include_str!("../vectors/manifest.json")).unwrap();
    for vector in vectors.iter().filter(|vector| vector.valid) {
        let manifest = Manifest::from_json(&vector.manifest).unwrap();
        let written = serde_json::to_string(&manifest).unwrap();
        assert_eq!(Manifest::from_json(&written).unwrap(), manifest, "{}", vector.id);
    }
}
