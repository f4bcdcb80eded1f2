//! Plugins made with the Rust SDK: under the command line, and under MCP clients that nobody here wrote.

use std::collections::HashMap;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use assert_cmd::Command;
use serde_json::{Value, json};

use crate::published_servers::installed;
use crate::support::{Lemon, root, run};

/// An example's program, built if need be, as `cargo test -p lemon` builds no other package's. It is built as the program
/// under test was, and is where cargo says.
fn example(name: &str) -> String {
    static BUILT: OnceLock<HashMap<String, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        // The folder of a profile has its name, but for those of development.
        let folder = Path::new(env!("CARGO_BIN_EXE_lemon")).parent().unwrap().file_name().unwrap().to_str().unwrap();
        let profile = if folder == "debug" { "dev" } else { folder };
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.current_dir(root(".")).args(["build", "-q", "--profile", profile, "--message-format", "json"]);
        let output = cargo.args(["-p", "hello-rust", "-p", "slow-rust"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let messages = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let messages = messages.map(|line| serde_json::from_slice::<Value>(line).unwrap());
        let program = |message: Value| {
            let executable = message["executable"].as_str()?.to_owned();
            Some((message["target"]["name"].as_str()?.to_owned(), executable))
        };
        messages.filter_map(program).collect()
    });
    built[name].clone()
}

#[test]
fn the_ten_lines_are_a_lemon_plugin() {
    let lemon = Lemon::new();
    let plugin = example("hello-rust");
    let ran = run(lemon.command().args(["--plugin", &plugin, "call", "greet", "name=Ann"]));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Hello, Ann!\n"), "{}", ran.stderr);
    let ran = run(lemon.command().args(["--plugin", &plugin, "call", "greet"]));
    assert_eq!(ran.code, Some(2), "the host knows the schema: {}", ran.stderr);
    assert!(ran.stderr.contains(r#"missing required argument "name""#), "{}", ran.stderr);
    let ran = run(lemon.command().args(["--plugin", &plugin, "status", "--json"]));
    let status: Value = serde_json::from_str(&ran.stdout).unwrap();
    let plugin = &status["status"]["plugins"][0];
    assert_eq!((&plugin["state"], &plugin["dialect"]["protocol"]), (&json!("ready"), &json!("lemon")), "{plugin}");
    assert_eq!(plugin["process"]["noise"]["counts"], json!({}));
}

#[test]
fn a_slow_tool_shows_what_it_has_and_stops_when_its_time_is_over() {
    let lemon = Lemon::new();
    let plugin = example("slow-rust");
    let ran = run(lemon.command().args(["--plugin", &plugin, "--trace", "call", "count", "to=3", "pause_ms=1"]));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "1 2 3\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("counted to 3") && ran.stderr.contains("dev.lemon/partial"), "{}", ran.stderr);
    let ran = run(lemon.command().args(["--plugin", &plugin, "call", "count", "to=1000001"]));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "a million is far enough\n"), "{}", ran.stderr);
    let endless = ["--trace", "call", "count", "to=1000000", "pause_ms=10", "--timeout", "1"];
    let ran = run(lemon.command().args(["--plugin", &plugin]).args(endless));
    assert_eq!(ran.code, Some(5), "{}", ran.stderr);
    assert!(ran.stderr.contains("notifications/cancelled"), "{}", ran.stderr);
    assert!(ran.stderr.contains("lemon/settled"), "{}", ran.stderr);
}

/// What a client script saw of the two examples.
fn saw(mut client: Command, era: &str) -> Value {
    client.args([era, &example("hello-rust"), &example("slow-rust")]).timeout(Duration::from_secs(120));
    let ran = run(&mut client);
    assert_eq!(ran.code, Some(0), "{era}: {}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

fn check(saw: &Value, version: &str) {
    assert_eq!(saw["version"], version, "{saw}");
    assert_eq!(saw["tools"], json!(["greet"]));
    assert_eq!(saw["greeting"], "Hello, Ann!");
    assert_eq!(saw["wrong"], json!([true, "argument name: invalid type: integer, expected a string"]));
    assert_eq!(saw["unknown"], -32602);
    assert_eq!(saw["counted"], "1 2 3");
    assert_eq!(saw["progress"][0][2], "counted to 1");
    assert_eq!((&saw["cancelled"], &saw["after"]), (&json!(true), &json!("1")), "and the plugin lives");
}

#[test]
fn the_published_python_client_uses_them_in_both_eras() {
    for (era, version) in [("legacy", "2025-11-25"), ("2026-07-28", "2026-07-28"), ("auto", "2026-07-28")] {
        let mut client = Command::new(installed("py/bin/python"));
        client.args(["-W", "ignore", &root("tests/e2e/clients/client.py")]);
        check(&saw(client, era), version);
    }
}

#[test]
fn the_published_javascript_client_uses_them_in_both_eras() {
    for (era, version) in [("legacy", "2025-11-25"), ("2026-07-28", "2026-07-28"), ("auto", "2026-07-28")] {
        let mut client = Command::new(installed("bin/node"));
        client.arg(root("tests/e2e/clients/client.mjs")).env("LEMON_TEST_NPM", installed("npm"));
        check(&saw(client, era), version);
    }
}
