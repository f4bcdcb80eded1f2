//! `lemon plugin config`, for scripts and for someone at a terminal.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod place;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Stdio;

use insta::assert_snapshot;
use rexpect::reader::Options;
use rexpect::session::{PtySession, spawn_with_options};

use place::Place;

/// Longer than anything takes.
const PATIENCE: u64 = 60_000;

const MANIFEST: &str = r#"{
    "schema_version": 1, "name": "greet", "version": "1.0.0",
    "host": { "type": "external", "command": ["python3", "${extension_dir}/greet.py"] },
    "config_schema": {
        "type": "object",
        "properties": {
            "api_key": { "type": "string", "title": "API\u001b[31m key", "secret": true, "minLength": 6 },
            "wait": { "type": "integer", "minimum": 1, "default": 5, "description": "Seconds to wait" },
            "mode": { "enum": ["fast", "slow"], "default": "fast" },
            "tags": { "type": "array", "items": { "type": "string" } }
        },
        "required": ["api_key"],
        "additionalProperties": false
    }
}"#;

/// It answers a call of its one tool with its configuration.
const PLUGIN: &str = r#"
import json, sys
config, schema = None, json.load(open(__file__.replace("greet.py", "lemon_extension.json")))["config_schema"]
for line in sys.stdin:
    message = json.loads(line)
    method, result = message.get("method"), {}
    if method == "initialize":
        lemon = {"dev.lemon/plugin": {"version": "1.0", "configSchema": schema}}
        result = {"protocolVersion": "2025-11-25", "serverInfo": {"name": "greet", "version": "1.0.0"},
                  "capabilities": {"tools": {}, "experimental": lemon}}
    elif method == "lemon/configure":
        config = message["params"]["values"]
    elif method == "tools/list":
        result = {"tools": [{"name": "config", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": json.dumps(config, sort_keys=True)}]}
    if "id" in message and method:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

/// A home with the plugin `greet`, and what the user wrote of it.
fn place() -> Place {
    let place = Place::new();
    place.write("home/greet/lemon_extension.json", MANIFEST);
    place.write("home/greet/greet.py", PLUGIN);
    place.user_config("# mine\n[plugins.greet]\npath = '../greet'  # here\n\n[limits]\ncalls = 3\n");
    place
}

fn config(place: &Place) -> String {
    fs::read_to_string(place.path("home/.lemon/config.toml")).unwrap()
}

fn secrets(place: &Place) -> String {
    fs::read_to_string(place.path("home/.lemon/secrets.toml")).unwrap_or_default()
}

#[test]
fn settings_are_typed_by_the_schema_and_reach_the_plugin() {
    let place = place();
    let args = ["plugin", "config", "greet", "wait=7", "tags=a", "mode=slow", "api_key=s3cret-value"];
    assert_snapshot!(place.run(&args), @r#"
    exit 0
    --- stdout
    api_key = { secret = "greet/api_key" }        # [ROOT]/home/.lemon/config.toml:6; it is set in secrets.toml
    mode = "slow"                                 # [ROOT]/home/.lemon/config.toml:7
    tags = ["a"]                                  # [ROOT]/home/.lemon/config.toml:8
    wait = 7                                      # [ROOT]/home/.lemon/config.toml:9
    "#);
    assert_snapshot!(config(&place), @r#"
    # mine
    [plugins.greet]
    path = '../greet'  # here

    [plugins.greet.config]
    api_key = { secret = "greet/api_key" }
    mode = "slow"
    tags = ["a"]
    wait = 7

    [limits]
    calls = 3
    "#);
    assert!(secrets(&place).ends_with("\"greet/api_key\" = \"s3cret-value\"\n"), "{}", secrets(&place));
    let mode = |file: &str| fs::metadata(place.path(file)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("home/.lemon/secrets.toml"), 0o600);
    let called = place.run(&["call", "config"]);
    let values = r#"{"api_key": "s3cret-value", "mode": "slow", "tags": ["a"], "wait": 7}"#;
    assert!(called.contains(values), "{called}");
}

#[test]
fn what_does_not_fit_changes_nothing() {
    let place = place();
    let before = config(&place);
    assert_snapshot!(place.run(&["plugin", "config", "greet", "wait=0", "mode=other", "api_key=s3cre", "oth=1"]), @r#"
    exit 2
    --- stderr
    error: plugin greet does not take this; nothing was changed
      why: api_key: must have at least 6 characters
        mode: expected one of "fast", "slow"
        wait: must be at least 1
        unknown setting "oth"
      hint: its settings are api_key, mode, tags, wait
    "#);
    for (args, told) in [
        (&["wait"][..], "`wait` is not an argument"),
        (&["wait=1", "wait=2"], "`wait` is given twice"),
        (&["wait:=x"], "the value of `wait` is not JSON"),
        (&["wait=1", "--unset", "wait"], "`wait` is both set and taken out"),
        (&["--unset", "wait"], "`wait` of greet is not set in your config"),
        (&["tags:=[null]"], "tags[0]: expected string, got null"),
        (&["wait:={\"secret\": \"PATH\"}"], "does not mark this key as secret"),
    ] {
        let shown = place.run(&[&["plugin", "config", "greet"], args].concat());
        assert!(shown.starts_with("exit 2\n") && shown.contains(told), "{shown}");
    }
    assert_eq!((config(&place), secrets(&place)), (before, String::new()));
    let nobody = place.run(&["plugin", "config", "nobody", "a=1"]);
    assert!(nobody.contains("there is no plugin named `nobody`"), "{nobody}");
}

#[test]
fn a_secret_is_shown_nowhere_and_taken_out_with_its_setting() {
    let place = place();
    let set = place.run_with_stdin("s3cret-value\n", &["plugin", "config", "greet", "api_key=-"]);
    assert!(secrets(&place).contains("= \"s3cret-value\"\n"), "the line's end is no part of it");
    for shown in [
        set,
        place.run(&["plugin", "config", "greet"]),
        place.run(&["plugin", "config", "greet", "--json"]),
        place.run(&["config", "show"]),
        place.run(&["config", "show", "--json"]),
        place.run(&["config", "check"]),
        place.run(&["status", "-vv", "--trace"]),
        place.run(&["plugin", "config", "greet", "mode=s3cret-value"]),
    ] {
        assert!(!shown.contains("s3cret-value"), "{shown}");
    }
    let shown = place.run(&["plugin", "config", "greet", "--unset", "api_key"]);
    assert!(shown.contains("can't be started like this: missing required setting \"api_key\""), "{shown}");
    assert!(!secrets(&place).contains("api_key") && !config(&place).contains("api_key"));
}

#[test]
fn a_secrets_file_that_others_can_read_is_refused_by_every_command() {
    let place = place();
    place.write("home/.lemon/secrets.toml", "A = 's3cret-value'\n");
    fs::set_permissions(place.path("home/.lemon/secrets.toml"), fs::Permissions::from_mode(0o644)).unwrap();
    for args in [&["tools"][..], &["config", "show"], &["plugin", "config", "greet", "api_key=s3cret-two"]] {
        let shown = place.run(args);
        let told = "holds secrets, and others can read or write it (its mode is 0644); run `chmod 600 ";
        assert!(shown.starts_with("exit 2\n") && shown.contains(told), "{shown}");
    }
    let checked = place.json(&["config", "check", "--json"]);
    assert_eq!(checked["valid"], false);
    assert_eq!(secrets(&place), "A = 's3cret-value'\n");
}

#[test]
fn the_environment_wins_over_the_file() {
    let place = place();
    place.user_config("[plugins.greet]\npath = '../greet'\nconfig = { api_key = { secret = 'GREET_KEY' } }\n");
    place.write("home/.lemon/secrets.toml", "GREET_KEY = 'of the file'\n");
    fs::set_permissions(place.path("home/.lemon/secrets.toml"), fs::Permissions::from_mode(0o600)).unwrap();
    assert!(place.run(&["call", "config"]).contains("of the file"));
    let mut command = place.lemon(&["call", "config"]);
    command.env("GREET_KEY", "of the environment");
    assert!(place.shown(command).contains("of the environment"));
    fs::remove_file(place.path("home/.lemon/secrets.toml")).unwrap();
    let shown = place.run(&["call", "config"]);
    let hint =
        "set the environment variable `GREET_KEY`, or write `GREET_KEY = \"…\"` into [ROOT]/home/.lemon/secrets.toml";
    assert!(shown.contains(hint), "{shown}");
}

#[test]
fn without_a_schema_types_are_guessed_and_nothing_like_a_secret_is_written() {
    let place = Place::new();
    place.user_config("[mcp.servers.x]\ncommand = ['true']\n");
    let shown = place.run(&["plugin", "config", "x", "n=1", "b=true", "s=1.2.3", "j:=\"1\"", "l=[1]"]);
    assert_eq!(shown.matches("no manifest of x describes its settings").count(), 5, "{shown}");
    let expected = "\n[mcp.servers.x.config]\nb = true\nj = \"1\"\nl = [1]\nn = 1\ns = \"1.2.3\"\n";
    assert!(config(&place).ends_with(expected), "{}", config(&place));
    let refused = place.run(&["plugin", "config", "x", "auth_token=s3cret-value"]);
    assert!(refused.starts_with("exit 2\n") && refused.contains("`auth_token` looks like a secret"), "{refused}");
    assert!(!config(&place).contains("s3cret") && !refused.contains("s3cret"));
}

#[test]
fn a_broken_file_is_refused_and_a_link_is_kept() {
    let place = place();
    fs::rename(place.path("home/.lemon/config.toml"), place.path("home/dotfile")).unwrap();
    symlink("../dotfile", place.path("home/.lemon/config.toml")).unwrap();
    assert!(place.run(&["plugin", "config", "greet", "wait=2"]).starts_with("exit 0\n"));
    assert!(place.path("home/.lemon/config.toml").is_symlink());
    assert!(fs::read_to_string(place.path("home/dotfile")).unwrap().contains("wait = 2"));
    place.write("home/dotfile", "[plugins.greet]\npath = '../greet'\n[plugins\n");
    let shown = place.run(&["plugin", "config", "greet", "wait=2"]);
    assert!(shown.starts_with("exit 2\n") && shown.contains("config.toml:3:9: unclosed table"), "{shown}");
}

#[test]
fn what_another_file_sets_up_is_not_set_where_it_would_not_count() {
    let place = place();
    place.write("place/other.toml", "[plugins.greet]\npath = '../home/greet'\n");
    let shown = place.run(&["plugin", "config", "greet", "wait=2", "--config", "other.toml"]);
    assert!(shown.starts_with("exit 2\n") && shown.contains("which wins over the one of your own config"), "{shown}");
    let folder = place.path("home/greet");
    let flag = format!("hi={}", folder.to_str().unwrap());
    assert!(place.run(&["plugin", "config", "hi", "api_key=s3cret-value", "--plugin", &flag]).starts_with("exit 0\n"));
    let called = place.run(&["call", "config", "--plugin", &flag]);
    assert!(called.contains("s3cret-value"), "{called}");
    let shown = place.run(&["plugin", "config", "greet", "wait=2", "--plugin", &flag.replace("hi=", "greet=")]);
    assert!(shown.contains("plugin greet comes from --plugin, which wins"), "{shown}");
}

/// Someone at a terminal.
struct Person {
    session: PtySession,
    place: Place,
}

impl Person {
    fn asked(place: Place) -> Self {
        // What runs in the background is started with SIGINT ignored, and lemon leaves it so.
        let script = "trap : INT; stty -a >../before; env --default-signal=INT \"$0\" plugin config greet
            echo \"ended with $?\"; stty -a >../after";
        let mut command = place.command("sh");
        command.args(["-c", script, env!("CARGO_BIN_EXE_lemon")]).env("TERM", "xterm").stdin(Stdio::inherit());
        let options = Options::new().timeout_ms(Some(PATIENCE)).strip_ansi_escape_codes(true);
        Self { session: spawn_with_options(command, options).unwrap(), place }
    }

    /// Waits for the end, after which the terminal is as it was; gives what came before it.
    fn ends_with(mut self, code: i32) -> (Place, String) {
        let shown = self.sees(&format!("ended with {code}"));
        self.session.process().wait().unwrap();
        let mode = |name: &str| fs::read_to_string(self.place.path(name)).unwrap();
        assert_eq!(mode("before"), mode("after"));
        (self.place, shown)
    }

    fn sees(&mut self, text: &str) -> String {
        self.session.exp_string(text).unwrap_or_else(|error| panic!("{text:?} did not come: {error}"))
    }

    fn enters(&mut self, text: &str) {
        self.session.send(&format!("{text}\r")).unwrap();
        self.session.flush().unwrap();
    }
}

#[test]
fn each_setting_is_asked_for_and_a_wrong_answer_is_asked_again() {
    let mut person = Person::asked(place());
    let before = person.sees("api_key (secret, required): ");
    assert!(before.contains(r"API\u{1b}[31m key"), "{before}");
    person.enters("short");
    person.sees("must have at least 6 characters");
    person.sees("api_key (secret, required): ");
    person.enters("s3cret-value");
    let shown = person.sees("one of fast, slow");
    assert!(!shown.contains("s3cret"), "{shown}");
    person.sees("default fast): ");
    person.enters("slow");
    person.sees("tags (array of string): ");
    person.enters("");
    person.sees("Seconds to wait");
    person.sees("wait (integer, default 5): ");
    person.enters("x");
    person.sees("expected integer, got string");
    person.sees("wait (integer, default 5): ");
    person.enters("9");
    person.sees("wait = 9");
    let (place, rest) = person.ends_with(0);
    assert!(!rest.contains("s3cret"), "{rest}");
    assert!(secrets(&place).contains("s3cret-value"));
    assert!(config(&place).contains("mode = \"slow\"") && !config(&place).contains("tags"));
}

#[test]
fn an_answer_is_kept_or_taken_out_and_ctrl_c_changes_nothing() {
    let place = place();
    place.run(&["plugin", "config", "greet", "wait=7", "api_key=s3cret-value"]);
    let before = config(&place);
    let mut person = Person::asked(place);
    person.sees("api_key (secret, set): ");
    person.enters("");
    person.sees("mode (");
    person.enters("slow");
    person.sees("tags (");
    person.session.send_control('c').unwrap();
    let (place, _) = person.ends_with(130);
    assert_eq!(config(&place), before);
    let mut person = Person::asked(place);
    person.sees("api_key (secret, set): ");
    person.session.send_control('c').unwrap();
    let (place, _) = person.ends_with(130);
    assert_eq!(config(&place), before);
    let mut person = Person::asked(place);
    for (asked, answer) in
        [("api_key (secret, set): ", ""), ("mode (", ""), ("tags (", ""), ("wait (integer, now 7): ", "-")]
    {
        person.sees(asked);
        person.enters(answer);
    }
    let (place, _) = person.ends_with(0);
    assert_eq!(config(&place), before.replace("wait = 7\n", ""));
}
