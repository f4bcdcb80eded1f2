//! What is found in a manifest, where, and that nothing that is read does harm.

mod files;
mod properties;

use std::path::Path;

use super::file::check;
use super::problem::{ManifestProblem, ProblemKind, Severity};

/// A valid manifest with some members more, or in place of its own.
fn with(members: &str) -> String {
    let own = [
        (r#""schema_version""#, r#""schema_version": 1"#),
        (r#""name""#, r#""name": "x""#),
        (r#""version""#, r#""version": "1""#),
        (r#""host""#, r#""host": {"type": "external", "command": ["python3"]}"#),
    ];
    let own = own.iter().filter(|(key, _)| !members.starts_with(&format!("{key}:")));
    let own: Vec<_> = own.map(|(_, member)| *member).collect();
    match members {
        "" => format!("{{{}}}", own.join(", ")),
        _ => format!("{{{},\n{members}}}", own.join(", ")),
    }
}

fn problems(text: &str) -> Vec<ManifestProblem> {
    let checked = check(text, None);
    let is_valid = checked.problems.iter().all(|problem| problem.severity == Severity::Warning);
    assert_eq!(checked.manifest.is_some(), is_valid, "{text}: {:?}", checked.problems);
    checked.problems
}

/// `kind pointer` of each problem.
fn kinds(text: &str) -> Vec<String> {
    let told = |problem: ManifestProblem| match problem.pointer {
        Some(pointer) => format!("{} {pointer}", problem.kind),
        None => problem.kind.to_string(),
    };
    problems(text).into_iter().map(told).collect()
}

#[test]
fn the_least_and_the_most_are_valid() {
    assert_eq!(kinds(&with("")), [""; 0]);
    let seeds = r#"{
      "schema_version": 1, "name": "my-extension", "version": "1.0.0",
      "capabilities": ["tools", "hooks", "memory_provider"],
      "providers": [{"type": "model", "name": "custom-model"}, {"type": "memory", "name": "team-memory"}],
      "host": {"type": "beam"},
      "distribution": {"source": "git", "url": "https://example.com/my-extension.git"},
      "audit": {"status": "pending"}
    }"#;
    assert_eq!(kinds(seeds), ["not_loadable /host"]);
    let most = with(
        r#""$schema": "x", "description": "d", "hosts": ["wasm", {"type": "mcp", "command": ["a", "${workspace}"]}],
        "build": [["make", "-C", "${extension_dir}"], ["cp", "a", "${data_dir}/b"]],
        "protocol": {"min": "1.0", "max": "1.4"}, "platforms": ["linux", "macos-aarch64"],
        "multi_session": true, "exclusive": false, "tools_depend_on_cwd": false, "idempotent": ["t"],
        "env": {"A_B": "why", "C": {"why": "why", "required": true, "secret": true}},
        "permissions": {"tools": "why", "session": {"why": "why"}},
        "tools": [{"name": "t", "title": "T", "inputSchema": {"type": "object", "properties": {"type": {"type": "string"}}},
          "outputSchema": {"type": "object"}, "annotations": {}, "_meta": {"dev.lemon/tool": {"timeoutMs": 5}}}],
        "commands": [{"name": "review", "description": "d", "usage": "[FILE]"}],
        "hooks": [{"event": "tool_call", "mode": "intercept", "tools": ["bash"], "timeoutMs": 100, "failure": "closed"}],
        "configSchema": {"type": "object", "properties": {"k": {"type": "string", "secret": true, "default": ""}}},
        "distribution": {"type": "local"}, "audit": "passed", "x-own": 1"#,
    );
    assert_eq!(kinds(&most), [""; 0]);
}

/// Members to add, and the problems that they make.
const TABLE: &[(&str, &[&str])] = &[
    // The three that are required.
    (r#""name": 1"#, &["wrong_type /name"]),
    (r#""name": """#, &["empty /name"]),
    (r#""name": " ""#, &["empty /name"]),
    (r#""name": "Hello World""#, &["name /name"]),
    (r#""name": "-x""#, &["name /name"]),
    (r#""name": "../x""#, &["name /name"]),
    (r#""name": "a\u0000b""#, &["nul /name"]),
    // The second letter is Cyrillic.
    (r#""name": "r\u0435ad""#, &["name /name"]),
    (r#""name": "bui1t-in""#, &["name_reserved /name"]),
    (r#""version": """#, &["empty /version"]),
    (r#""version": 1"#, &["wrong_type /version"]),
    (r#""version": null"#, &["wrong_type /version"]),
    (r#""schema_version": "1""#, &[]),
    (r#""schema_version": 2"#, &["schema_version /schema_version"]),
    (r#""schema_version": "1.0""#, &["schema_version /schema_version"]),
    (r#""schema_version": [1]"#, &["wrong_type /schema_version"]),
    (r#""schema_version": null"#, &["wrong_type /schema_version"]),
    // How it is run.
    (r#""host": 1"#, &["wrong_type /host"]),
    (r#""host": null"#, &["wrong_type /host"]),
    (r#""host": "docker""#, &["unsupported /host"]),
    (r#""host": "external""#, &["no_command /host"]),
    (r#""host": {"type": "mcp"}"#, &["no_command /host"]),
    (r#""host": {"command": ["a"]}"#, &["missing /host"]),
    (r#""host": "wasm""#, &["not_loadable /host"]),
    (r#""host": {"type": "beam"}"#, &["not_loadable /host"]),
    (r#""host": {"type": "wasm"}, "hosts": [{"type": "mcp", "command": ["a"]}]"#, &[]),
    (r#""host": {"type": "mcp", "comand": ["a"], "command": ["a"]}"#, &["unknown_key /host/comand"]),
    (r#""host": {"type": "mcp", "command": []}"#, &["empty /host/command"]),
    (r#""host": {"type": "mcp", "command": [""]}"#, &["empty /host/command/0"]),
    (r#""host": {"type": "mcp", "command": ["a", ""]}"#, &[]),
    (r#""host": {"type": "mcp", "command": "a b"}"#, &["wrong_type /host/command"]),
    (
        r#""host": {"type": "mcp", "command": ["a", 1, "b\u0000"]}"#,
        &["wrong_type /host/command/1", "nul /host/command/2"],
    ),
    (r#""host": {"type": "mcp", "command": ["${home}/a"]}"#, &["placeholder /host/command/0"]),
    (r#""host": {"type": "mcp", "command": ["a", "${workspace"]}"#, &["placeholder /host/command/1"]),
    (r#""host": {"type": "mcp", "command": ["a", "$${home}", "$HOME"]}"#, &[]),
    (r#""host": {"type": "mcp", "command": ["${workspace}/a"]}"#, &["path_outside /host/command/0"]),
    (r#""host": {"type": "mcp", "command": ["../a"]}"#, &["path_outside /host/command/0"]),
    (r#""host": {"type": "mcp", "command": ["b/../../a"]}"#, &["path_outside /host/command/0"]),
    (r#""host": {"type": "mcp", "command": ["a", "${extension_dir}/../b"]}"#, &["path_outside /host/command/1"]),
    (r#""host": {"type": "mcp", "command": ["a", "${extension_dir}/b/../c", "../d"]}"#, &[]),
    (r#""host": {"type": "mcp", "command": ["/usr/bin/a"]}"#, &["absolute_path /host/command/0"]),
    (r#""hosts": {"type": "mcp"}"#, &["wrong_type /hosts"]),
    (r#""hosts": [1, "docker"]"#, &["wrong_type /hosts/0", "unsupported /hosts/1"]),
    (r#""build": ["make", "all"]"#, &["wrong_type /build"]),
    (r#""build": [[]]"#, &["empty /build/0"]),
    (r#""build": "make""#, &["wrong_type /build"]),
    (r#""build": [["make", "${workspace}"]]"#, &["placeholder /build/0/1"]),
    (r#""protocol": "1""#, &["unsupported /protocol"]),
    (r#""protocol": 1.0"#, &["wrong_type /protocol"]),
    (r#""protocol": {"max": "1.0"}"#, &["missing /protocol"]),
    (r#""protocol": {"min": "1.2", "max": "1.0"}"#, &["range /protocol/max"]),
    (r#""protocol": "7.0""#, &["not_loadable /protocol"]),
    (r#""platforms": "linux""#, &["wrong_type /platforms"]),
    (
        r#""platforms": ["linux", "amiga", "linux-z80", 1]"#,
        &["unsupported /platforms/1", "unsupported /platforms/2", "wrong_type /platforms/3"],
    ),
    (r#""platforms": ["windows"]"#, &["not_loadable /platforms"]),
    (
        r#""multiSession": "yes", "exclusive": 1, "toolsDependOnCwd": null"#,
        &["wrong_type /multiSession", "wrong_type /exclusive", "wrong_type /toolsDependOnCwd"],
    ),
    // What it asks for.
    (r#""env": ["A"]"#, &["wrong_type /env"]),
    (
        r#""env": {"A": "", "B": {}, "C": 1, "D": {"why": "w", "required": 1}}"#,
        &["empty /env/A", "missing /env/B", "wrong_type /env/C", "wrong_type /env/D/required"],
    ),
    (
        r#""env": {"A=B": "w", "": "w", "1A": "w", "LEMON_HOST_PID": "w"}"#,
        &["name /env/A=B", "name /env/", "name /env/1A", "name_reserved /env/LEMON_HOST_PID"],
    ),
    (r#""permissions": ["tools"]"#, &["wrong_type /permissions"]),
    (r#""permissions": {"tool": "w", "exec": " "}"#, &["unsupported /permissions/tool", "empty /permissions/exec"]),
    // What it offers.
    (r#""tools": {}"#, &["wrong_type /tools"]),
    (r#""tools": [1, {}]"#, &["wrong_type /tools/0", "missing /tools/1", "missing /tools/1"]),
    (r#""tools": [{"name": "", "inputSchema": {}}]"#, &["empty /tools/0/name", "json_schema /tools/0/inputSchema"]),
    (
        r#""tools": [{"name": "a", "inputSchema": {"type": "object", "properties": {"b": {"type": 5}}}}]"#,
        &["json_schema /tools/0/inputSchema"],
    ),
    (
        r#""tools": [{"name": "a", "inputSchema": {"type": "object", "properties": {"b": {"$ref": "file:///etc/passwd"}}}}]"#,
        &["json_schema /tools/0/inputSchema"],
    ),
    (
        r#""tools": [{"name": "a", "inputSchema": {"type": "object"}}, {"name": "a", "inputSchema": {"type": "object"}}]"#,
        &["duplicate /tools/1/name"],
    ),
    (r#""tools": [{"name": "mcp.a_b", "inputSchema": {"type": "object"}}]"#, &["name_reserved /tools/0/name"]),
    (r#""tools": [{"name": "a b", "inputSchema": {"type": "object"}, "own": 1}]"#, &["tool_name /tools/0/name"]),
    (
        r#""tools": [{"name": "a", "description": 1, "annotations": [], "_meta": 1, "inputSchema": {"type": "object"}}]"#,
        &["wrong_type /tools/0/description", "wrong_type /tools/0/annotations", "wrong_type /tools/0/_meta"],
    ),
    (r#""idempotent": ["a"]"#, &[]),
    (r#""idempotent": ["a"], "tools": []"#, &["unknown_tool /idempotent/0"]),
    (
        r#""commands": [{"name": "/a"}, {"name": "b"}, {"name": "b"}, {}]"#,
        &["name /commands/0/name", "duplicate /commands/2/name", "missing /commands/3"],
    ),
    (
        r#""hooks": [{"event": "on_tool_call"}, {"event": "Tool Call"}, {}]"#,
        &["unknown_event /hooks/0/event", "name /hooks/1/event", "missing /hooks/2"],
    ),
    (
        r#""hooks": [{"event": "turn_end", "mode": "watch", "failure": "shut", "timeoutMs": 0, "tools": [""]}]"#,
        &[
            "unsupported /hooks/0/mode",
            "unsupported /hooks/0/failure",
            "wrong_type /hooks/0/timeoutMs",
            "empty /hooks/0/tools/0",
        ],
    ),
    (r#""config_schema": []"#, &["wrong_type /config_schema"]),
    (r#""config_schema": {"type": "string"}"#, &["json_schema /config_schema"]),
    (r#""config_schema": {"properties": {"a": 1}}"#, &["json_schema /config_schema"]),
    // The package, as the seed has it.
    (r#""capabilities": "tools""#, &["wrong_type /capabilities"]),
    (r#""capabilities": ["tools", "", 1]"#, &["empty /capabilities/1", "wrong_type /capabilities/2"]),
    (r#""providers": {}"#, &["wrong_type /providers"]),
    (
        r#""providers": ["model", {}, {"type": "search", "name": ""}, {"type": 1, "name": "a"}]"#,
        &[
            "wrong_type /providers/0",
            "missing /providers/1",
            "missing /providers/1",
            "unsupported /providers/2/type",
            "empty /providers/2/name",
            "wrong_type /providers/3/type",
        ],
    ),
    (r#""distribution": 1"#, &["wrong_type /distribution"]),
    (r#""distribution": "ftp""#, &["unsupported /distribution"]),
    (r#""distribution": {"url": "u"}"#, &["missing /distribution"]),
    (r#""audit": []"#, &["wrong_type /audit"]),
    (r#""audit": {"status": "fine"}"#, &["unsupported /audit/status"]),
    // Keys.
    (r#""nmae": 1, "x-mine": 1"#, &["unknown_key /nmae"]),
    (r#""a/b~c": 1"#, &["unknown_key /a~1b~0c"]),
    (r#""schemaVersion": 1"#, &["duplicate_key /schemaVersion"]),
    (r#""multiSession": true, "multi_session": true"#, &["duplicate_key /multi_session"]),
    (
        r#""tools": [{"name": "a", "inputSchema": {"type": "object", "required": [], "required": []}}]"#,
        &["duplicate_key /tools/0/inputSchema/required"],
    ),
];

#[test]
fn each_fault_is_found_at_its_place() {
    for (members, expected) in TABLE {
        assert_eq!(kinds(&with(members)), *expected, "{members}");
    }
}

#[test]
fn every_vector_of_the_protocol_is_seen_as_it_says() {
    let vectors = include_str!("../../../../../protocol/vectors/manifest.json");
    let vectors: serde_json::Value = serde_json::from_str(vectors).unwrap();
    for vector in vectors["vectors"].as_array().unwrap() {
        let (id, text) = (&vector["id"], vector["manifest"].as_str().unwrap());
        assert_eq!(serde_json::json!(kinds(text)), vector["problems"], "{id}");
        assert_eq!(check(text, None).manifest.is_some(), vector["valid"].as_bool().unwrap(), "{id}");
    }
}

#[test]
fn the_whole_may_be_wrong() {
    let cases: &[(&str, &str)] = &[
        ("", "not_json"),
        ("{", "not_json"),
        ("nonsense", "not_json"),
        ("{} {}", "not_json"),
        ("{'a': 1}", "not_json"),
        ("{\"a\": 1,}", "not_json"),
        ("// c\n{}", "not_json"),
        ("{\"a\": \"\\ud800\"}", "not_json"),
        ("[]", "not_an_object "),
        ("null", "not_an_object "),
    ];
    for (text, expected) in cases {
        assert_eq!(kinds(text), [*expected], "{text}");
    }
    let deep = format!("{{\"a\": {}{}}}", "[".repeat(70), "]".repeat(70));
    assert_eq!(kinds(&deep), ["too_deep"]);
    assert_eq!(kinds("{}"), ["missing ", "missing ", "missing "]);
}

#[test]
fn all_is_told_at_once_by_place_with_line_and_column() {
    let text = "{\n  \"name\": \"Ü\",\n  \"é\": 1, \"version\": 2,\n\t\"host\": \"wsm\"\n}\n";
    let told: Vec<_> =
        problems(text).into_iter().map(|one| (one.kind.as_str(), one.line.unwrap(), one.column.unwrap())).collect();
    let expected =
        [("missing", 1, 1), ("name", 2, 11), ("unknown_key", 3, 3), ("wrong_type", 3, 22), ("unsupported", 4, 10)];
    assert_eq!(told, expected);
}

#[test]
fn the_text_says_what_was_expected_and_what_to_do() {
    let text = |members: &str| problems(&with(members)).iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    assert_eq!(
        text(r#""host": {"type": "extrenal", "command": ["a"]}"#),
        "2:18: error: /host/type: \"extrenal\" is not a type of hosts: it is one of external, mcp, wasm, beam\n  \
         hint: did you mean \"external\"?"
    );
    assert!(text(r#""name": "Hello""#).contains("write \"hello\""));
    assert!(text("\"name\": \"r\u{435}ad\"").contains("U+0435"), "{}", text("\"name\": \"r\u{435}ad\""));
    assert!(text(r#""build": ["make", "all"]"#).contains(r#"write [["make", "all"]]"#));
    let wasm = text(r#""host": "wasm""#);
    assert!(wasm.contains("can't be loaded yet") && wasm.contains("WebAssembly"), "{wasm}");
    assert!(text(r#""host": "beam""#).contains("Erlang virtual machine"));
    assert!(text(r#""hooks": [{"event": "on_tool_call"}]"#).contains("did you mean \"tool_call\"?"));
}

#[test]
fn a_thousand_faults_are_counted_and_a_hundred_told() {
    let items = vec!["\"\""; 1000].join(",");
    let checked = check(&with(&format!("\"capabilities\": [{items}]")), None);
    assert_eq!((checked.problems.len(), checked.more), (100, [900, 0]));
}

#[test]
fn one_long_key_around_many_values_is_no_work() {
    let text = with(&format!("\"{}\": [{}1]", "k".repeat(100_000), "1,".repeat(50_000)));
    let checked = check(&text, Some(Path::new("/")));
    assert_eq!(checked.problems.iter().map(|one| one.kind).collect::<Vec<_>>(), [ProblemKind::UnknownKey]);
}
