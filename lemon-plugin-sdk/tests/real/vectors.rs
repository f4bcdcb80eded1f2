//! The protocol's test vectors, as a plugin sees them.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::process::{Process, initialize};

#[derive(Deserialize)]
struct Group {
    vectors: Vec<Vector>,
}

#[derive(Deserialize)]
struct Vector {
    id: String,
    line: Option<String>,
    bytes_hex: Option<String>,
    valid: bool,
    message: Option<String>,
    payload: Option<String>,
    payload_valid: Option<bool>,
    lemon_valid: Option<bool>,
    binds: Option<String>,
    #[serde(default)]
    type_accepts: bool,
}

impl Vector {
    fn bytes(&self) -> Vec<u8> {
        match (&self.line, &self.bytes_hex) {
            (Some(line), None) => line.clone().into_bytes(),
            (None, Some(hex)) => {
                let pairs = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
                pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
            }
            _ => panic!("{}: one of line and bytes_hex", self.id),
        }
    }

    fn method(&self) -> Option<String> {
        let message: Value = serde_json::from_slice(&self.bytes()).ok()?;
        message["method"].as_str().map(str::to_owned)
    }
}

/// Requests whose params a plugin reads.
const READ: [&str; 5] = ["initialize", "tools/list", "tools/call", "lemon/configure", "lemon/shutdown"];

pub(crate) fn every_vector_of_the_protocol_is_taken_as_it_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../protocol/vectors");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        // Manifests are for hosts, and are no lines.
        let is_of_lines = path.file_stem().is_some_and(|stem| stem != "manifest");
        if is_of_lines && path.extension().is_some_and(|extension| extension == "json") {
            let group: Group = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
            for vector in group.vectors {
                check(&vector);
                count += 1;
            }
        }
    }
    assert!(count >= 120, "{count} vectors");
}

fn check(vector: &Vector) {
    let id = &vector.id;
    let mut process = Process::start();
    let method = vector.method();
    if method.as_deref() != Some("initialize") {
        process.ask("initialize", initialize(Some(std::process::id())));
    }
    process.write(&[vector.bytes(), b"\n".to_vec()].concat());
    process.send("the end", "ping", json!({}));
    let ended = process.end();
    assert!(ended.status.success(), "{id}: {}", ended.stderr);
    let (pongs, answers): (Vec<Value>, Vec<Value>) =
        ended.messages.into_iter().partition(|message| message["id"] == "the end");
    // Nothing that it could say to such a host is that short.
    if answers.is_empty() && vector.line.as_ref().is_some_and(|line| line.contains(r#""maxMessageBytes":1,"#)) {
        assert!(pongs.is_empty(), "{id}");
        return;
    }
    assert_eq!(pongs.len(), 1, "{id}: it goes on");
    // A plugin may take these otherwise, but must not end by them.
    if vector.binds.as_deref() == Some("host") {
        return;
    }
    if !vector.valid {
        let refused = |answer: &Value| answer["error"]["code"] == -32600 || answer["error"]["code"] == -32700;
        assert!(answers.iter().all(refused), "{id}: {answers:?}");
        return;
    }
    if vector.message.as_deref() != Some("request") {
        assert!(answers.is_empty(), "{id}: {answers:?}");
        return;
    }
    let [answer] = answers.as_slice() else { panic!("{id}: one answer, not {answers:?}") };
    let Some(method) = method.filter(|method| READ.contains(&method.as_str())) else { return };
    let bad = vector.payload_valid == Some(false) || vector.lemon_valid == Some(false);
    let message = format!("{id}: {method} {:?} got {answer}", vector.payload);
    if bad && !vector.type_accepts {
        assert_eq!(answer["error"]["code"], -32602, "{message}");
    }
    if !bad && ["initialize", "tools/list", "lemon/shutdown"].contains(&method.as_str()) {
        let other_version = answer["error"]["data"]["kind"] == "unsupported_version";
        let no_page = answer["error"]["message"].as_str().is_some_and(|text| text.contains("no page"));
        assert!(answer["result"].is_object() || other_version || no_page, "{message}");
    }
}
