//! Runs `vectors/*.json` against the splitter, the envelope, the types and the checked-in schema, and holds the
//! vectors and the tables of `SPEC.md` against each other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use lemon_protocol::{
    CallToolParams, CallToolResult, CancelledParams, Capabilities, ConfigureParams, ErrorObject, HostOffer,
    InitializeParams, InitializeResult, Kind, ListToolsParams, ListToolsResult, LogMessage, Message, PluginAnswer,
    ProgressParams, SessionClosed, SessionDelta, SessionInfo, SessionOpen, Settled, ShutdownParams, Toolbox,
};
use serde::Deserialize;
use serde_json::Value;

mod stream;
use stream::{Whole, split};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    group: String,
    spec: Vec<String>,
    vectors: Vec<Vector>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Vector {
    id: String,
    line: Option<String>,
    bytes_hex: Option<String>,
    valid: bool,
    why: String,
    spec: String,
    message: Option<String>,
    fault: Option<String>,
    payload: Option<String>,
    payload_valid: Option<bool>,
    /// Absent, null and a definition's name are three things.
    #[serde(default, deserialize_with = "present")]
    lemon: Option<Option<String>>,
    lemon_valid: Option<bool>,
    #[serde(default, deserialize_with = "present")]
    kind: Option<Option<String>>,
    binds: Option<String>,
    #[serde(default)]
    schema_accepts: bool,
    #[serde(default)]
    type_accepts: bool,
}

fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

impl Vector {
    fn bytes(&self) -> Vec<u8> {
        match (&self.line, &self.bytes_hex) {
            (Some(line), None) => line.clone().into_bytes(),
            (None, Some(hex)) => hex
                .as_bytes()
                .chunks(2)
                .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).expect("hex"), 16).expect("hex"))
                .collect(),
            _ => panic!("{}: either line or bytes_hex", self.id),
        }
    }
}

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn spec() -> String {
    std::fs::read_to_string(folder().join("SPEC.md")).expect("SPEC.md")
}

fn groups() -> Vec<Group> {
    let mut groups = Vec::new();
    for entry in std::fs::read_dir(folder().join("vectors")).expect("the vectors") {
        let path = entry.expect("an entry").path();
        // Manifests are no lines; `manifests.rs` runs those.
        let is_of_lines = path.file_stem().is_some_and(|stem| stem != "manifest");
        if is_of_lines && path.extension().is_some_and(|extension| extension == "json") {
            let text = std::fs::read_to_string(&path).expect("a readable file");
            let group: Group = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            assert_eq!(path.file_stem().and_then(|stem| stem.to_str()), Some(group.group.as_str()));
            groups.push(group);
        }
    }
    groups
}

/// Reads a payload into the type of that definition.
fn read(definition: &str, text: &str) -> Result<(), String> {
    macro_rules! types {
        ($($name:ident)*) => {
            match definition {
                $(stringify!($name) => serde_json::from_str::<$name>(text).map(drop).map_err(|e| e.to_string()),)*
                other => panic!("no type for {other}"),
            }
        };
    }
    types! {
        CallToolParams CallToolResult CancelledParams ConfigureParams ErrorObject HostOffer InitializeParams
        InitializeResult ListToolsParams ListToolsResult LogMessage PluginAnswer ProgressParams SessionClosed
        SessionDelta SessionInfo SessionOpen Settled ShutdownParams Toolbox
    }
}

/// Validates against the checked-in schema.
struct Schema {
    document: Value,
    compiled: BTreeMap<String, jsonschema::Validator>,
}

impl Schema {
    fn load() -> Self {
        let text = std::fs::read_to_string(folder().join("schema/lemon-protocol-1.0.schema.json")).expect("the schema");
        Self { document: serde_json::from_str(&text).expect("JSON"), compiled: BTreeMap::new() }
    }

    fn accepts(&mut self, definition: &str, text: &str) -> bool {
        // A text that no value can be made of, such as one with half a surrogate pair, fits no definition.
        let Ok(value) = serde_json::from_str::<Value>(text) else {
            return false;
        };
        let validator = self.compiled.entry(definition.to_owned()).or_insert_with(|| {
            let mut schema = self.document.clone();
            assert!(schema["$defs"].get(definition).is_some(), "no definition {definition}");
            schema["$ref"] = format!("#/$defs/{definition}").into();
            jsonschema::validator_for(&schema).expect("a valid schema")
        });
        validator.is_valid(&value)
    }

    fn check(&mut self, vector: &Vector, definition: &str, text: &str, valid: bool) {
        let id = &vector.id;
        let read = read(definition, text);
        assert_eq!(read.is_ok(), valid || vector.type_accepts, "{id}: the type {definition} says {read:?}");
        let accepts = self.accepts(definition, text);
        assert_eq!(accepts, valid || vector.schema_accepts, "{id}: the schema's {definition}");
    }
}

#[test]
fn every_vector_is_seen_as_it_says() {
    let mut schema = Schema::load();
    let mut count = 0;
    for vector in groups().iter().flat_map(|group| &group.vectors) {
        let id = &vector.id;
        let mut bytes = vector.bytes();
        assert!(!bytes.contains(&b'\n'), "{id}: one line");
        bytes.push(b'\n');
        let pieces = split(&bytes, &[], 16 << 20);
        let [Whole::Line(line)] = pieces.as_slice() else { panic!("{id}: {pieces:?}") };
        count += 1;

        let (message, payload) = match Message::parse(line) {
            Err(fault) => {
                assert!(!vector.valid, "{id}: refused as {fault}");
                assert_eq!(vector.fault.as_deref(), Some(fault.kind.as_str()), "{id}");
                assert!(vector.payload.is_none() && vector.message.is_none(), "{id}: nothing to look into");
                continue;
            }
            Ok(Message::Request { params, .. }) => ("request", params),
            Ok(Message::Notification { params, .. }) => ("notification", params),
            Ok(Message::Response { outcome: Ok(result), .. }) => ("response", Some(result)),
            Ok(Message::Response { outcome: Err(error), .. }) => ("response", Some(error)),
        };
        assert!(vector.valid && vector.fault.is_none(), "{id}: taken as a {message}");
        assert_eq!(vector.message.as_deref(), Some(message), "{id}");

        let payload = payload.map_or("{}", |payload| payload.get());
        assert_eq!(vector.payload.is_some(), vector.payload_valid.is_some(), "{id}");
        if let (Some(definition), Some(valid)) = (&vector.payload, vector.payload_valid) {
            schema.check(vector_for_payload(vector), definition, payload, valid);
        }
        if let Some(lemon) = &vector.lemon {
            check_lemon(&mut schema, vector, payload, lemon.as_deref());
        }
        if let Some(kind) = &vector.kind {
            let error: ErrorObject = serde_json::from_str(payload).unwrap();
            assert_eq!(error.kind().map(Kind::as_str), kind.as_deref(), "{id}");
        }
    }
    assert!(count >= 120, "{count} vectors");
}

/// Where a vector is about Lemon's part, its leniences are about that part too.
fn vector_for_payload(vector: &Vector) -> &Vector {
    static PLAIN: std::sync::OnceLock<Vector> = std::sync::OnceLock::new();
    let plain = || serde_json::from_str(r#"{"id":"the whole","valid":true,"why":"","spec":""}"#).expect("a vector");
    if vector.lemon.is_some() { PLAIN.get_or_init(plain) } else { vector }
}

fn check_lemon(schema: &mut Schema, vector: &Vector, payload: &str, definition: Option<&str>) {
    #[derive(Deserialize)]
    struct Handshake {
        capabilities: Capabilities,
    }
    let id = &vector.id;
    let handshake: Handshake = serde_json::from_str(payload).unwrap_or_else(|e| panic!("{id}: {e}"));
    match (handshake.capabilities.lemon(), definition, vector.lemon_valid) {
        (None, None, None) => {}
        (Some(body), Some(definition), Some(valid)) => schema.check(vector, definition, &body.to_string(), valid),
        other => panic!("{id}: {other:?}"),
    }
}

#[test]
fn every_vector_has_a_name_of_its_own_a_reason_and_a_requirement() {
    let spec = spec();
    let requirements = requirements(&spec);
    let mut ids = BTreeSet::new();
    for group in groups() {
        for chapter in &group.spec {
            assert!(requirements.iter().any(|known| known.starts_with(&format!("{chapter}-"))), "{chapter}");
        }
        for vector in group.vectors {
            assert!(requirements.contains(vector.spec.as_str()), "{}: no requirement {}", vector.id, vector.spec);
            assert!(!vector.why.is_empty(), "{}: why?", vector.id);
            assert!(matches!(vector.binds.as_deref(), None | Some("host")), "{}: binds", vector.id);
            if let Some(fault) = vector.fault {
                assert!(spec.contains(&format!("\n| `{fault}` |")), "{fault} is not in SPEC.md's table of faults");
            }
            assert!(ids.insert(vector.id.clone()), "{} is there twice", vector.id);
        }
    }
}

/// The ids of SPEC.md's requirements, each of which binds a side and has a word of RFC 2119.
fn requirements(spec: &str) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    for line in spec.lines().filter_map(|line| line.strip_prefix("- **LPP-")) {
        let (number, text) = line.split_once("** (").expect("a side");
        assert!(["host) ", "plugin) ", "both) "].iter().any(|side| text.starts_with(side)), "{line}");
        assert!(["MUST", "SHOULD", "MAY"].iter().any(|word| text.contains(word)), "{line}");
        let id = &spec[number.as_ptr() as usize - spec.as_ptr() as usize - 4..][..number.len() + 4];
        assert!(found.insert(id), "{id} is there twice");
    }
    found
}

#[test]
fn every_requirement_that_is_referred_to_exists() {
    let spec = spec();
    let known = requirements(&spec);
    let mut texts = vec![spec.clone()];
    let mut folders = vec![folder().join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            match entry.unwrap().path() {
                path if path.is_dir() => folders.push(path),
                path => texts.push(std::fs::read_to_string(path).unwrap()),
            }
        }
    }
    for text in &texts {
        for (at, _) in text.match_indices("LPP-") {
            let end = text[at..].find(|c: char| c != '-' && !c.is_ascii_alphanumeric()).unwrap_or(text.len() - at);
            let id = text[at..at + end].trim_end_matches('-');
            let chapter = id.bytes().all(|byte| !byte.is_ascii_digit()) && id.len() > 4;
            let exists = known.contains(id) || chapter && known.iter().any(|known| known.starts_with(id));
            assert!(exists || ["LPP", "LPP-HOOK"].contains(&id), "{id} is not in SPEC.md");
        }
    }
}

#[test]
fn the_error_table_of_the_spec_is_the_one_of_the_crate() {
    let spec = spec();
    let rows: Vec<&str> = spec.lines().filter(|line| line.starts_with("| 4")).collect();
    let expected: Vec<String> = Kind::ALL
        .into_iter()
        .map(|kind| format!("| {} | `{}` | {} |", kind.code(), kind.as_str(), kind.meaning()))
        .collect();
    assert_eq!(rows, expected);
}

#[test]
fn every_example_line_of_the_spec_is_a_message() {
    let spec = spec();
    let mut examples = 0;
    for line in spec.lines() {
        if let Some(example) = line.strip_prefix("→ ").or_else(|| line.strip_prefix("← ")) {
            Message::parse(example.as_bytes()).unwrap_or_else(|fault| panic!("{fault}: {line}"));
            examples += 1;
        }
    }
    assert!(examples > 30);
}
