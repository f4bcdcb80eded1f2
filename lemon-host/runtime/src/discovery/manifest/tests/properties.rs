//! Whatever a manifest says, the check ends, tells every fault in its place, and agrees with the types and the schema.

use std::fs;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::ManifestReport;
use super::{TABLE, with};
use crate::fuzzing::manifest;

/// JSON of any shape, with the keys and words of manifests in it.
fn any_json() -> impl Strategy<Value = Value> {
    let words = [
        "schema_version",
        "schemaVersion",
        "name",
        "version",
        "host",
        "hosts",
        "type",
        "command",
        "build",
        "env",
        "why",
        "permissions",
        "tools",
        "inputSchema",
        "hooks",
        "event",
        "config_schema",
        "external",
        "mcp",
        "object",
        "1.0",
        "${extension_dir}",
        "${x",
        "min",
        "max",
        "protocol",
        "platforms",
        "linux",
        "idempotent",
        "distribution",
        "audit",
    ];
    let word = prop::sample::select(words.to_vec()).prop_map(str::to_owned);
    let text = prop_oneof![4 => word, 1 => any::<String>()];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        Just(json!(1)),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((text.clone(), inner), 0..8)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// A manifest in which one member was replaced.
fn nearly_right() -> impl Strategy<Value = String> {
    let keys = [
        "schema_version",
        "name",
        "version",
        "description",
        "host",
        "hosts",
        "build",
        "protocol",
        "platforms",
        "multiSession",
        "exclusive",
        "toolsDependOnCwd",
        "idempotent",
        "env",
        "permissions",
        "tools",
        "commands",
        "hooks",
        "config_schema",
        "capabilities",
        "providers",
        "distribution",
        "audit",
    ];
    (prop::sample::select(keys.to_vec()), any_json()).prop_map(|(key, value)| {
        let mut manifest: Value = serde_json::from_str(&with("")).expect("a valid manifest");
        manifest[key] = value;
        manifest.to_string()
    })
}

#[test]
fn the_table_holds_together() {
    TABLE.iter().for_each(|(members, _)| manifest(with(members).as_bytes()));
}

proptest! {
    #[test]
    fn any_json_is_checked(value in any_json()) {
        manifest(value.to_string().as_bytes());
    }

    #[test]
    fn a_manifest_with_one_odd_member_is_checked(text in nearly_right()) {
        manifest(text.as_bytes());
    }

    #[test]
    fn any_text_is_checked(text in any::<String>()) {
        manifest(text.as_bytes());
    }

    #[test]
    fn a_manifest_with_a_few_bytes_changed_is_checked(
        row in 0..TABLE.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let mut bytes = with(TABLE[row].0).into_bytes();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        manifest(&bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn any_bytes_in_a_file_are_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("extension.json"), &bytes).unwrap();
        let report = ManifestReport::of(folder.path());
        assert_eq!(report.is_valid(), report.problems.iter().all(|one| one.severity != super::Severity::Error));
    }
}
