//! `lemon config show` and `lemon config check`: what is in force, and what is wrong with it.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod place;

use std::fs;

use insta::assert_snapshot;

use place::Place;

const MANIFEST: &str = r#"{
    "schema_version": 1, "name": "greet", "version": "1.0.0",
    "host": { "type": "external", "command": ["sh", "run.sh"] },
    "config_schema": { "type": "object", "properties": {
        "key": { "type": "string", "secret": true },
        "wait": { "type": "integer", "minimum": 1, "default": 5 }
    }, "required": ["key"] }
}"#;

/// What is shown, without what is built in.
fn shown(place: &Place, args: &[&str]) -> String {
    let shown = place.run(&[&["config", "show"], args].concat());
    let lines = shown.lines().filter(|line| !line.ends_with("# built-in"));
    // How far a value is from its comment depends on where the test runs.
    let line = |line: &str| match line.split_once("  # ") {
        Some((value, comment)) => format!("{}  # {comment}", value.trim_end()),
        None => line.to_owned(),
    };
    lines.map(line).collect::<Vec<_>>().join("\n")
}

fn whole() -> Place {
    let place = Place::new();
    place.write("home/greet/lemon_extension.json", MANIFEST);
    place.write("home/greet/run.sh", "touch ../marker");
    place.user_config(
        "colour = 1\n\
         [plugins.greet]\npath = '../greet'\nenv = { LEVEL = 'hunter2', T = { secret = 'NO_SUCH' } }\n\
         config = { key = 'hunter2hunter2', wait = 0 }\n\
         [plugins.gone]\ncommand = ['no-such-program']\n\
         [plugins.off]\ncommand = ['sh']\nenabled = false\n\
         [plugins.nothing]\ntimeout_ms = 4\n\
         [tools]\ndisabled = ['bash']\n\
         [limits]\ncalls = 32\n",
    );
    place
}

#[test]
fn each_value_stands_with_what_says_it_and_what_it_overrules() {
    let place = whole();
    place.write("place/other.toml", "[limits]\ncalls = 8\n[plugins.gone]\ncommand = ['sh']\n");
    place.write("place/.lemon/config.toml", "[plugins.x]\ncommand = ['touch', 'marker']\n");
    let args = ["--config", "other.toml", "--plugin", "e=sh -c 'exit 1'", "--disable", "a,b"];
    assert_snapshot!(shown(&place, &args), @r#"
    exit 0
    --- stdout
    # --config other.toml
    # user     [ROOT]/home/.lemon/config.toml
    # project  [ROOT]/place (untrusted: its config is ignored; `lemon plugin trust --project` shows what it would do)

    [runtime]

    [runtime.extensions]

    [tools]
    disabled = ["a", "b"]  # --disable
    disabled = ["bash"]  # [ROOT]/home/.lemon/config.toml:14

    [limits]
    calls = 8  # other.toml:2
    # calls = 32  # [ROOT]/home/.lemon/config.toml:16 (overruled)

    [timeouts]

    [plugins.e]  # --plugin
    command = ["sh", "-c", "exit 1"]  # --plugin

    [plugins.gone]  # other.toml:3
    command = ["sh"]  # other.toml:4

    # [plugins.gone] of [ROOT]/home/.lemon/config.toml:6 does not count: other.toml:3 has one of that name, and wins

    [plugins.greet]  # [ROOT]/home/.lemon/config.toml:2
    command = ["sh", "run.sh"]  # [ROOT]/home/.lemon/../greet/lemon_extension.json (the plugin's manifest)
    path = "[ROOT]/home/.lemon/../greet"  # [ROOT]/home/.lemon/config.toml:3
    env.LEVEL = "[set]"  # [ROOT]/home/.lemon/config.toml:4
    env.T = { secret = "NO_SUCH" }  # [ROOT]/home/.lemon/config.toml:4; it is not set
    config.key = "[set]"  # [ROOT]/home/.lemon/config.toml:5
    config.wait = 0  # [ROOT]/home/.lemon/config.toml:5

    # [plugins.nothing] of [ROOT]/home/.lemon/config.toml:11 sets up nothing: it has no `command`, and no folder of extensions has a plugin of that name

    # [plugins.off] of [ROOT]/home/.lemon/config.toml:8 is disabled: enabled = false
    --- stderr
    warning: [ROOT]/home/.lemon/config.toml:1: unknown key `colour` is ignored
    warning: [ROOT]/home/.lemon/config.toml:11: [plugins.nothing] has no `command`, and there is no plugin of that name in a folder of extensions
    warning: [ROOT]/home/.lemon/../greet/lemon_extension.json:3:53: "run.sh" is a file of the extension, but the plugin runs in the workspace; write "${extension_dir}/run.sh"
    "#);
    assert!(!place.path("place/marker").exists() && !place.path("home/marker").exists());
    let json = place.run(&[&["config", "show", "--json"], &args[..]].concat());
    assert!(!json.contains("hunter2") && json.contains(r#"{"key":"env.LEVEL","value":null,"hidden":true,"#), "{json}");
}

#[test]
fn what_a_trusted_project_may_not_say_is_listed_with_why() {
    let place = Place::new();
    let text = "[tools]\ndisabled = ['z']\n[limits]\ncalls = 1\n[plugins.x]\ncommand = ['sh']\n\
                env = { LD_PRELOAD = 'x', T = { secret = 'AWS' } }\n";
    place.write("place/.lemon/config.toml", text);
    let folder = place.path("place").canonicalize().unwrap();
    let hash = lemon_host::trust::Sha::of(text.as_bytes());
    lemon_host::trust::TrustStore::edit(&place.path("home/.lemon"), |store| store.trust_project(&folder, Some(hash)))
        .unwrap();
    assert_snapshot!(shown(&place, &[]), @r#"
    exit 0
    --- stdout
    # user     [ROOT]/home/.lemon/config.toml (there is none)
    # project  [ROOT]/place/.lemon/config.toml
    # project  [ROOT]/place (trusted)

    [runtime]

    [runtime.extensions]

    [tools]
    disabled = ["z"]  # [ROOT]/place/.lemon/config.toml:2

    [limits]

    [timeouts]

    # [plugins.x] of [ROOT]/place/.lemon/config.toml is not started: [ROOT]/place/.lemon/config.toml is not trusted
    --- stderr
    warning: [ROOT]/place/.lemon/config.toml:3: `limits` is ignored: only the user's own config can set it
    warning: [ROOT]/place/.lemon/config.toml:7: `LD_PRELOAD` in [plugins.x.env] is ignored: only the user's own config can set it
    warning: [ROOT]/place/.lemon/config.toml:7: `T` in [plugins.x.env] is ignored: only the user's own config can set it
    "#);
    let report = place.json(&["config", "show", "--json"]);
    let ignored: Vec<_> = report["ignored"].as_array().unwrap().iter().map(|it| it["what"].as_str().unwrap()).collect();
    assert_eq!(ignored.len(), 3, "{ignored:?}");
    assert_eq!(report["project"]["trust"], "trusted");
    assert_eq!(report["plugins"][0]["state"], "held");
}

#[test]
fn a_variable_is_named_as_what_says_so_and_a_wrong_one_is_an_error() {
    let place = Place::new();
    let mut command = place.lemon(&["config", "show"]);
    command.env("LEMON_EXTENSIONS_ENABLED", "").env("LEMON_EXTENSION_PATHS", "/srv/a, b");
    let shown = place.shown(command);
    assert!(shown.contains("\nenabled = true                                # built-in\n"), "{shown}");
    let paths = "extension_paths = [\"/srv/a\", \"[ROOT]/place/b\"]  # LEMON_EXTENSION_PATHS\n";
    assert!(shown.contains(paths), "{shown}");
    let mut command = place.lemon(&["config", "check"]);
    command.env("LEMON_EXTENSIONS_ENABLED", "perhaps");
    let shown = place.shown(command);
    assert!(
        shown.starts_with("exit 2\n--- stdout\nerror: LEMON_EXTENSIONS_ENABLED is neither true nor false\n"),
        "{shown}"
    );
}

#[test]
fn all_that_is_wrong_is_told_with_its_place() {
    let place = whole();
    let shown = place.run(&["config", "check"]);
    let path = std::env::var("PATH").unwrap().replace(':', ", ");
    assert_snapshot!(shown.replace(&path, "[PATH]"), @r#"
    exit 2
    --- stdout
    warning: [ROOT]/home/.lemon/config.toml:11: [plugins.nothing] has no `command`, and there is no plugin of that name in a folder of extensions
    warning: [ROOT]/home/.lemon/../greet/lemon_extension.json:3:53: "run.sh" is a file of the extension, but the plugin runs in the workspace; write "${extension_dir}/run.sh"
    [ROOT]/home/.lemon/config.toml:1:1: warning: unknown key `colour` is ignored
    [ROOT]/home/.lemon/config.toml:4:28: error: plugin greet: the secret `NO_SUCH` is not set
      hint: set the environment variable `NO_SUCH`, or write `NO_SUCH = "…"` into [ROOT]/home/.lemon/secrets.toml, which only you may be able to read
    [ROOT]/home/.lemon/config.toml:5:36: error: plugin greet: config does not fit its manifest: wait: must be at least 1
      hint: `lemon plugin config greet` shows and sets its settings
    [ROOT]/home/.lemon/config.toml:7:1: error: plugin gone: no-such-program was not found; PATH searched: [PATH]
      hint: install the program, or give its whole path
    1 file: 3 errors, 3 warnings
    "#);
    assert!(!place.path("home/marker").exists());
    let report = place.json(&["config", "check", "--json"]);
    assert_eq!(report["valid"], false);
    let places: Vec<_> = report["findings"].as_array().unwrap().iter().map(|it| (&it["line"], &it["column"])).collect();
    assert!(places.contains(&(&4.into(), &28.into())), "{places:?}");
    assert!(!report.to_string().contains("hunter2"));
}

#[test]
fn a_file_that_can_not_be_used_is_told_with_its_lines_and_so_are_the_others() {
    let place = Place::new();
    place.user_config("[plugins.x]\ncomand = 1\ncommand = 'a b'\n[limits]\ncalls = 0\n");
    place.write("place/other.toml", "[plugins\n");
    assert_snapshot!(place.run(&["config", "check", "--config", "other.toml"]), @r#"
    exit 2
    --- stdout
    [ROOT]/home/.lemon/config.toml:2:1: warning: unknown key `comand` in [plugins.x] is ignored
      hint: did you mean `command`?
    [ROOT]/home/.lemon/config.toml:3:11: error: `command` must be an array: write ["a", "b"]
        |
      3 | command = 'a b'
        |           ^^^^^
    [ROOT]/home/.lemon/config.toml:5:9: error: `limits.calls` must be a whole number from 1 to 9223372036854775807
        |
      5 | calls = 0
        |         ^
    other.toml:1:9: error: unclosed table, expected `]`
        |
      1 | [plugins
        |         ^
    2 files: 3 errors, 1 warning
    "#);
}

#[test]
fn files_are_checked_by_themselves_and_a_project_s_as_one() {
    let place = whole();
    place.write("place/good.toml", "[plugins.a]\ncommand = ['sh']\n[limits]\ncalls = 1\n");
    place.write("place/.lemon/config.toml", "[plugins.'a\u{202e}']\ncommand = ['sh']\n[limits]\ncalls = 1\n");
    assert_eq!(place.run(&["config", "check", "good.toml"]), "exit 0\n--- stdout\n1 file: 0 errors, 0 warnings\n");
    let shown = place.run(&["config", "check", "good.toml", ".lemon/config.toml", "none.toml"]);
    assert_snapshot!(shown, @r#"
    exit 2
    --- stdout
    error: can't read the config file none.toml: No such file or directory (os error 2)
    .lemon/config.toml:1:10: error: `a\u{202e}` is not a plugin name: 1 to 64 of `a-z`, `0-9`, `.`, `_` and `-`, beginning with a letter or digit
        |
      1 | [plugins.'a\u{202e}']
        |          ^^^^^^^^^^^
    .lemon/config.toml:3:2: warning: `limits` is ignored: only the user's own config can set it
    3 files: 2 errors, 1 warning
    "#);
    fs::create_dir_all(place.path("place/sub")).unwrap();
    let shown = place.run(&["-C", "sub", "config", "check", "../.lemon/config.toml"]);
    assert!(shown.contains("`limits` is ignored: only the user's own config can set it"), "{shown}");
}

#[test]
fn nothing_wrong_ends_with_0() {
    let place = Place::new();
    assert_eq!(place.run(&["config", "check"]), "exit 0\n--- stdout\n0 files: 0 errors, 0 warnings\n");
    place.user_config("colour = 1\n");
    assert!(place.run(&["config", "check"]).ends_with("1 file: 0 errors, 1 warning\n"));
}
