//! Manifests on the command line: `lemon plugin validate`, and folders as plugins.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod place;

use std::fs;
use std::os::unix::fs::symlink;

use insta::assert_snapshot;
use serde_json::{Value, json};

use place::{Place, examples};

const GOOD: &str = r#"{
  "schema_version": 1, "name": "good", "version": "1.2.0",
  "host": {"type": "external", "command": ["sh", "${extension_dir}/good.sh"]},
  "capabilities": ["tools"], "providers": [{"type": "memory", "name": "m"}], "distribution": "git", "audit": "passed"
}"#;

const BAD: &str = r#"{
  "schema_version": 1,
  "name": "Bad Name",
  "host": {"type": "extrenal", "command": ["${home}/run"]},
  "tols": []
}"#;

/// A place in which a program that is run leaves a trace.
fn place() -> Place {
    let place = Place::new();
    place.write("place/good/lemon_extension.json", GOOD);
    place.write("place/good/good.sh", "touch ran\n");
    place.write("place/bad/extension.json", BAD);
    place
}

#[test]
fn all_errors_are_told_at_once_with_their_places() {
    let place = place();
    assert_snapshot!(place.run(&["plugin", "validate", "good", "bad/extension.json"]), @r#"
    exit 2
    --- stdout
    good/lemon_extension.json: valid: good 1.2.0, a Lemon plugin
    bad/extension.json: not valid, 4 errors, 1 warning
      bad/extension.json:1:1: error: `version` is missing: the extension's version
        hint: add "version"
      bad/extension.json:3:11: error: /name: `Bad Name` is not a plugin name: 1 to 64 of `a-z`, `0-9`, `.`, `_` and `-`, beginning with a letter or digit
        hint: write "bad-name"
      bad/extension.json:4:20: error: /host/type: "extrenal" is not a type of hosts: it is one of external, mcp, wasm, beam
        hint: did you mean "external"?
      bad/extension.json:4:44: error: /host/command/0: there is no placeholder `${home}`; known are ${extension_dir}, ${workspace} and ${data_dir}
      bad/extension.json:5:3: warning: /tols: the key "tols" is not known and is ignored
        hint: did you mean `tools`?
    "#);
    assert_snapshot!(place.run(&["plugin", "validate", "good/lemon_extension.json"]), @"
    exit 0
    --- stdout
    good/lemon_extension.json: valid: good 1.2.0, a Lemon plugin
    ");
    assert!(!place.path("place/ran").exists() && !place.path("place/good/ran").exists(), "nothing is run");
}

#[test]
fn a_folder_of_extensions_is_looked_through_and_odd_paths_are_told() {
    let place = place();
    fs::remove_file(place.path("place/bad/extension.json")).unwrap();
    place.write("place/bad/lemon_extension.json", "[1,\n 2,]");
    place.write("place/bad/extension.json", GOOD);
    fs::create_dir(place.path("place/empty")).unwrap();
    fs::create_dir(place.path("place/linked")).unwrap();
    symlink("/dev/zero", place.path("place/linked/extension.json")).unwrap();
    assert_snapshot!(place.run(&["plugin", "validate", "."]), @"
    exit 2
    --- stdout
    ./bad/lemon_extension.json: not valid, 1 error, 1 warning
      warning: the folder has a second manifest, extension.json, which does not count: lemon_extension.json does
        hint: keep one of them
      ./bad/lemon_extension.json:2:4: error: expected value
        hint: take out the comma before it
    ./good/lemon_extension.json: valid: good 1.2.0, a Lemon plugin
    ./linked/extension.json: not valid, 1 error
      error: it is a symbolic link
        hint: put the file itself there: what a link points to can change without the folder changing
    ");
    assert_snapshot!(place.run(&["plugin", "validate", "empty", "nowhere", "/dev/zero", "evil\u{1b}[31m"]), @r#"
    exit 2
    --- stdout
    empty: not valid, 1 error
      error: the folder has no manifest: none of lemon_extension.json, extension.json, .lemon-extension.json
        hint: docs/manifest.md shows what one looks like
    nowhere: not valid, 1 error
      error: No such file or directory (os error 2)
        hint: give a folder with a manifest, or the manifest
    /dev/zero: not valid, 1 error
      error: it is a pipe, a socket or a device
        hint: a manifest is a regular file
    evil\u{1b}[31m: not valid, 1 error
      error: No such file or directory (os error 2)
        hint: give a folder with a manifest, or the manifest
    "#);
    assert_snapshot!(place.run(&["plugin", "validate", "-C", "good", "."]), @"
    exit 0
    --- stdout
    ./lemon_extension.json: valid: good 1.2.0, a Lemon plugin
    ");
    assert!(place.run(&["plugin", "validate"]).starts_with("exit 2\n--- stderr\nerror: "));
}

#[test]
fn the_json_is_one_object_of_a_stable_shape() {
    let place = place();
    let report = place.json(&["plugin", "validate", "--json", "good", "bad"]);
    assert_eq!(report["valid"], false);
    let [good, bad] = report["manifests"].as_array().unwrap().as_slice() else { panic!("{report}") };
    let expected = json!({
        "path": "good/lemon_extension.json", "valid": true, "byteSize": GOOD.len(), "name": "good", "version": "1.2.0",
        "loadable": true, "errors": [], "warnings": [], "moreErrors": 0, "moreWarnings": 0, "capabilities": ["tools"],
        "providerTypes": ["memory"], "hostTypes": ["external"], "distributionSources": ["git"],
        "auditStatuses": ["passed"],
    });
    assert_eq!(*good, expected);
    let kinds = |list: &Value| -> Vec<String> {
        let list = list.as_array().unwrap().iter();
        list.map(|one| format!("{} {}", one["kind"].as_str().unwrap(), one["pointer"].as_str().unwrap())).collect()
    };
    let errors = ["missing ", "name /name", "unsupported /host/type", "placeholder /host/command/0"];
    assert_eq!(kinds(&bad["errors"]), errors);
    assert_eq!(kinds(&bad["warnings"]), ["unknown_key /tols"]);
    let expected = json!({
        "kind": "unknown_key", "severity": "warning", "pointer": "/tols", "line": 5, "column": 3,
        "message": "the key \"tols\" is not known and is ignored", "hint": "did you mean `tools`?",
    });
    assert_eq!(bad["warnings"][0], expected);
    assert_eq!(place.json(&["plugin", "validate", "--json", "good"])["valid"], true);
}

#[test]
fn every_example_has_a_valid_manifest() {
    let examples = examples();
    let report = Place::new().json(&["plugin", "validate", "--json", examples.to_str().unwrap()]);
    let names: Vec<_> = report["manifests"].as_array().unwrap().iter().map(|one| one["name"].clone()).collect();
    assert_eq!(names, ["hello-python", "hello", "hello-shell", "slow"]);
    for manifest in report["manifests"].as_array().unwrap() {
        assert_eq!((&manifest["valid"], &manifest["loadable"]), (&json!(true), &json!(true)), "{manifest}");
        assert_eq!(manifest["warnings"], json!([]), "{manifest}");
    }
}

#[test]
fn a_folder_is_a_plugin_and_its_manifest_is_true() {
    let place = Place::new();
    for (example, call, answer) in
        [("hello-python", ["hello", "name=World"], "Hello, World!"), ("hello-shell", ["shout", "text=hi"], "HI")]
    {
        let folder = examples().join(example);
        let folder = folder.to_str().unwrap();
        let shown = place.run(&["--plugin", folder, "call", call[0], call[1]]);
        assert_eq!(shown, format!("exit 0\n--- stdout\n{answer}\n"));
        let status = place.json(&["--plugin", &format!("own={folder}"), "status", "--json"]);
        let plugin = &status["status"]["plugins"][0];
        assert_eq!((&plugin["name"], &plugin["drift"]), (&json!("own"), &Value::Null), "{plugin}");
        assert!(plugin["manifest"].as_str().unwrap().ends_with("lemon_extension.json"));
    }
}

#[test]
fn a_folder_that_cannot_be_started_says_why() {
    let place = place();
    place.write("place/wasm/extension.json", r#"{"schema_version": 1, "name": "w", "version": "1", "host": "wasm"}"#);
    fs::create_dir(place.path("place/empty")).unwrap();
    assert_snapshot!(place.run(&["--plugin", "bad", "tools"]), @r#"
    exit 2
    --- stderr
    error: `--plugin bad` can't be started
      why: the manifest [ROOT]/place/bad/extension.json is not valid
        1:1: error: `version` is missing: the extension's version
          hint: add "version"
        3:11: error: /name: `Bad Name` is not a plugin name: 1 to 64 of `a-z`, `0-9`, `.`, `_` and `-`, beginning with a letter or digit
          hint: write "bad-name"
        4:20: error: /host/type: "extrenal" is not a type of hosts: it is one of external, mcp, wasm, beam
          hint: did you mean "external"?
        4:44: error: /host/command/0: there is no placeholder `${home}`; known are ${extension_dir}, ${workspace} and ${data_dir}
      hint: correct it; `lemon plugin validate` tells warnings, too
    "#);
    assert_snapshot!(place.run(&["--plugin", "wasm", "--plugin", "empty", "tools"]), @"
    exit 2
    --- stderr
    error: `--plugin wasm` can't be started
      why: [ROOT]/place/wasm/extension.json: it can't be loaded yet: it is a WebAssembly component (host type wasm), and this version of lemon runs processes only
    error: `--plugin empty` can't be started
      why: [ROOT]/place/empty: the folder has no manifest: none of lemon_extension.json, extension.json, .lemon-extension.json
      hint: correct it; `lemon plugin validate` tells warnings, too
    ");
}

#[test]
fn a_config_file_names_a_folder_and_grants_what_it_asks_for() {
    let place = Place::new();
    let hello = examples().join("hello-python");
    let manifest = fs::read_to_string(hello.join("lemon_extension.json")).unwrap();
    let mut manifest: Value = serde_json::from_str(&manifest).unwrap();
    manifest["env"] = json!({ "HELLO_TOKEN": { "why": "to greet by name", "required": true, "secret": true } });
    place.write("place/ext/lemon_extension.json", &manifest.to_string());
    fs::copy(hello.join("hello.py"), place.path("place/ext/hello.py")).unwrap();
    place.write("place/wasm/extension.json", r#"{"schema_version": 1, "name": "w", "version": "1", "host": "wasm"}"#);
    place.write("place/c.toml", "[plugins.hello]\npath = \"ext\"\n\n[plugins.w]\npath = \"wasm\"\n");
    assert_snapshot!(place.run(&["--config", "c.toml", "call", "hello", "name=x"]), @r#"
    exit 4
    --- stderr
    error: plugin hello did not start
      why: it requires the variable HELLO_TOKEN, which it is not given: to greet by name
      hint: give it with `env = { HELLO_TOKEN = { secret = "HELLO_TOKEN" } }` under [plugins.hello] of a config file, beside `path`
    "#);
    place.write("place/c.toml", "[mcp.servers.hello]\npath = \"ext\"\nenv = { HELLO_TOKEN = \"abc-123\" }\n");
    assert_eq!(
        place.run(&["--config", "c.toml", "call", "mcp_hello_hello", "name=x"]),
        "exit 0\n--- stdout\nHello, x!\n"
    );
    place.write("place/c.toml", "[plugins.a]\npath = \"ext\"\ncommand = [\"x\"]\n\n[plugins.b]\ncwd = \".\"\n");
    assert_snapshot!(place.run(&["--config", "c.toml", "tools"]), @"
    exit 2
    --- stderr
    error: the config file c.toml is wrong
      why: c.toml:1:10: [plugins.a] has both `command` and `path`, the manifest of which says the command: keep one
          |
        1 | [plugins.a]
          |          ^
        c.toml:5:10: [plugins.b] has no `command`: an array with the program and its arguments; nor a `path`: an extension's folder
          |
        5 | [plugins.b]
          |          ^
      hint: correct them; nothing was started
    ");
}

#[test]
fn what_is_odd_in_a_manifest_is_told_when_it_is_used() {
    let place = Place::new();
    let manifest = fs::read_to_string(examples().join("hello-python/lemon_extension.json")).unwrap();
    place.write("place/ext/lemon_extension.json", &manifest.replace("\"distribution\"", "\"distributon\""));
    fs::copy(examples().join("hello-python/hello.py"), place.path("place/ext/hello.py")).unwrap();
    assert_snapshot!(place.run(&["--plugin", "ext", "call", "hello", "name=x"]), @r#"
    exit 0
    --- stdout
    Hello, x!
    --- stderr
    warning: [ROOT]/place/ext/lemon_extension.json:31:3: the key "distributon" is not known and is ignored; did you mean `distribution`?
    "#);
}

#[test]
fn a_tool_beyond_the_manifest_is_told_and_not_offered() {
    let place = Place::new();
    let hello = examples().join("hello-python");
    let manifest = fs::read_to_string(hello.join("lemon_extension.json")).unwrap();
    let mut manifest: Value = serde_json::from_str(&manifest).unwrap();
    manifest["tools"].as_array_mut().unwrap().remove(1);
    manifest["idempotent"] = json!([]);
    place.write("place/ext/lemon_extension.json", &manifest.to_string());
    fs::copy(hello.join("hello.py"), place.path("place/ext/hello.py")).unwrap();
    assert_snapshot!(place.run(&["--plugin", "ext", "tools", "--refresh"]), @r#"
    exit 0
    --- stdout
    hello  hello-python  Greets someone.
    --- stderr
    warning: plugin hello-python is not what its manifest says: the tool "add" is not declared in its manifest, so it is not offered
    warning: the tool `add` of plugin hello-python is not offered: the manifest has `tools`, and this one is not among them
    "#);
    let status = place.run(&["--plugin", "ext", "status"]);
    assert!(status.contains("manifest   the tool \"add\" is not declared in its manifest"), "{status}");
}
