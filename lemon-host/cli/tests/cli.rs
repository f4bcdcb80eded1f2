//! The command line as its users see it, with no plugin or those of `examples/` only.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod place;

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use insta::assert_snapshot;

use place::{Place, hello_python, hello_shell, zoo};

#[test]
fn help_documents_the_exit_codes() {
    let help = Place::new().run(&["--help"]);
    assert!(help.starts_with("exit 0\n--- stdout\n"), "{help}");
    let (_, codes) = help.split_once("Exit codes:\n").unwrap();
    assert_snapshot!(codes, @"
      0  it worked; `status` is a report, and ends so even if plugins have failed
      1  the tool answered with an error
      2  the command line, the arguments of a call, a config file or a manifest are wrong
      3  there is no such tool
      4  a plugin failed: it did not start, crashed or broke the protocol
      5  a call ran out of time
      6  `lemon` itself failed, such as on a full disk
      7  something needed is not trusted, and nobody was asked; see `lemon plugin trust`
      129, 130, 143
         a SIGHUP, Ctrl-C or SIGTERM ended it; a second one kills all plugins at once

    Plugins come from --plugin, then --config FILE, then ~/.lemon/config.toml, then
    the folders of `extension_paths`, ~/.lemon/agent/extensions, and the project's
    .lemon folder; the first of a name wins. LEMON_HOME names another folder than
    ~/.lemon. `lemon config show` shows what is in force and where it comes from.
    ");
}

#[test]
fn a_wrong_command_line_ends_with_2() {
    let place = Place::new();
    for line in
        [&["tools", "--nope"][..], &["call"], &["-C", ".", "tools", "-C", "."], &["call", "x", "--timeout", "0"]]
    {
        assert!(place.run(line).starts_with("exit 2\n--- stderr\nerror: "), "{line:?}");
    }
    assert_snapshot!(place.run(&["tools", "-C", "nowhere"]), @"
    exit 2
    --- stderr
    error: can't work in nowhere
      why: No such file or directory (os error 2)
      hint: give `-C` a folder that exists
    ");
    assert_snapshot!(place.run(&["--plugin", "./nope.py", "tools", "--plugin", " "]), @"
    exit 2
    --- stderr
    error: `--plugin ./nope.py` names no plugin
      why: there is no file [ROOT]/place/./nope.py
      hint: it is a script, a program, a folder with a manifest, or a command with its arguments in quotes
    error: `--plugin  ` names no plugin
      why: it is empty: give a script, a program, or a command with its arguments
      hint: it is a script, a program, a folder with a manifest, or a command with its arguments in quotes
    ");
}

#[test]
fn without_a_plugin_it_says_how_to_add_one() {
    let place = Place::new();
    assert_snapshot!(place.run(&["tools"]), @r#"
    exit 0
    --- stderr
    warning: there are no plugins
    hint: add one with `--plugin PATH-OR-COMMAND`, or as [plugins.NAME] with `command = ["PROGRAM", "ARGUMENT"]` in [ROOT]/home/.lemon/config.toml
    "#);
    let call = place.run(&["call", "hello"]);
    assert!(call.starts_with("exit 3\n") && call.contains("there are no plugins"), "{call}");
    assert_eq!(place.json(&["tools", "--json"])["tools"], serde_json::json!([]));
}

#[test]
fn tools_are_listed_in_columns() {
    let listed = Place::new().run(&["--plugin", &hello_python(), "tools", "--plugin", &hello_shell()]);
    assert_snapshot!(listed, @"
    exit 0
    --- stdout
    hello  hello  Greets someone.
    add    hello  Adds two numbers.
    shout  shell  Says a text in upper case.
    ");
}

#[test]
fn a_tool_is_shown_with_its_arguments() {
    let place = Place::new();
    assert_snapshot!(place.run(&["tools", "add", "--plugin", &hello_python()]), @"
    exit 0
    --- stdout
    add  of plugin hello

      Adds two numbers.

      arguments:
        a  number
        b  number
    ");
    assert_snapshot!(place.run(&["tools", "ad", "--plugin", &hello_python()]), @"
    exit 3
    --- stderr
    error: there is no tool named `ad`
      hint: did you mean `add`?
    ");
}

#[test]
fn a_tool_is_shown_with_all_that_its_arguments_may_be() {
    let place = Place::new();
    let tools = r##"[{"name": "search", "title": "Search", "inputSchema": {
        "type": "object",
        "required": ["query"],
        "properties": {
            "query": {"type": "string", "description": "What to look for.\nAny words."},
            "order": {"enum": ["new", "old"], "default": "new"},
            "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}},
            "limit": {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 50}, {"type": "null"}], "default": null},
            "filter": {"type": "object", "required": ["by"], "properties": {
                "by": {"type": "string", "format": "uri"},
                "deep": {"type": "array", "items": {"type": "object", "properties": {"er": {"type": "boolean"}}}}
            }}
        },
        "$defs": {"tag": {"type": "string", "enum": ["a", "b"]}}
    }}]"##;
    let plugin = place.server_with(tools);
    assert_snapshot!(place.run(&["tools", "search", "--plugin", &plugin]), @r#"
    exit 0
    --- stdout
    search  of plugin server
      Search

      arguments:
        query   string                     What to look for.
                                           Any words.
        filter  object, optional
          by    string                     format: uri
          deep  array of object, optional
            er  boolean, optional
        limit   integer|null, optional     at least 1; at most 50; default: null
        order   string, optional           one of "new", "old"; default: "new"
        tags    array of string, optional  each one of "a", "b"
    "#);
}

#[test]
fn an_empty_list_says_why_it_is_empty() {
    let place = Place::new();
    let python = hello_python();
    assert_snapshot!(place.run(&["tools", "--plugin", &python, "--disable", "add,hello"]), @r#"
    exit 0
    --- stderr
    warning: all 2 tools are hidden by `--disable`, `--enable-only` or [tools] of a config file: "add" is among the disabled tools; "hello" is among the disabled tools
    "#);
    assert_snapshot!(place.run(&["tools", "--plugin", &python, "--enable-only", "nope"]), @"
    exit 0
    --- stderr
    warning: no tool is named `nope`, which is to be disabled or enabled
    warning: all 2 tools are hidden by `--disable`, `--enable-only` or [tools] of a config file: it is not among the only enabled tools
    ");
    assert_snapshot!(place.run(&["tools", "--plugin", &place.server_with("[]")]), @"
    exit 0
    --- stderr
    warning: the plugins offer no tools
    ");
    place.user_config("[plugins.a]\ncommand = ['true']\nenabled = false\n");
    assert_snapshot!(place.run(&["tools"]), @"
    exit 0
    --- stderr
    warning: all plugins are disabled: a
    hint: take `enabled = false` out of [ROOT]/home/.lemon/config.toml:1
    ");
    assert_snapshot!(place.run(&["call", "x"]), @"
    exit 3
    --- stderr
    error: there is no tool named `x`
      why: all plugins are disabled: a
      hint: take `enabled = false` out of [ROOT]/home/.lemon/config.toml:1
    ");
}

#[test]
fn progress_is_told_line_by_line_to_those_who_ask_and_have_no_terminal() {
    let place = Place::new();
    let call =
        |verbose: &[&str]| place.run(&[&["call", "progress", "steps=2", "--plugin", &zoo("none")], verbose].concat());
    assert!(!call(&[]).contains("progress:"));
    let shown = call(&["-v"]);
    assert!(shown.contains("progress:") && shown.contains("(2/2)"), "{shown}");
}

#[test]
fn tools_as_json() {
    let json = Place::new().json(&["tools", "--json", "--plugin", &hello_python(), "--plugin", "gone=no-such-program"]);
    let keys: Vec<_> = json.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["conflicts", "failed", "quarantined", "tools"]);
    assert_eq!(json["tools"][0]["name"], "hello");
    assert_eq!(json["failed"][0]["plugin"], "gone");
    assert!(json["failed"][0]["error"].as_str().unwrap().contains("no-such-program was not found"));
}

#[test]
fn a_call_takes_words_or_json_or_stdin() {
    let place = Place::new();
    let python = hello_python();
    let call = |words: &[&str]| place.run(&[&["call", "--plugin", &python], words].concat());
    assert_eq!(call(&["hello", "name=World"]), "exit 0\n--- stdout\nHello, World!\n");
    assert_eq!(call(&["hello", "name=5"]), "exit 0\n--- stdout\nHello, 5!\n");
    assert_eq!(call(&["hello", "name=a=b"]), "exit 0\n--- stdout\nHello, a=b!\n");
    assert_eq!(call(&["add", "a=1", "b:=2.5"]), "exit 0\n--- stdout\n3.5\n");
    assert_eq!(call(&["add", "{\"a\": 1,\n\"b\": 2}"]), "exit 0\n--- stdout\n3\n");
    for stdin in ["{\"a\": 1,\r\n \"b\": 4}\n", r#""{\"a\": 1, \"b\": 4}""#] {
        let answer = place.run_with_stdin(stdin, &["call", "add", "-", "--plugin", &python]);
        assert_eq!(answer, "exit 0\n--- stdout\n5\n");
    }
    let zoo = zoo("none");
    for nothing in ["", " \n", "null"] {
        let answer = place.run_with_stdin(nothing, &["call", "config", "-", "--plugin", &zoo]);
        assert_eq!(answer, "exit 0\n--- stdout\nnull\n");
    }
    let raw = call(&["hello", "name=x", "--json"]);
    assert_eq!(
        raw,
        "exit 0\n--- stdout\n{\"content\": [{\"type\": \"text\", \"text\": \"Hello, x!\"}], \"isError\": false}\n"
    );
}

#[test]
fn wrong_arguments_are_named() {
    let place = Place::new();
    let python = hello_python();
    let call = |words: &[&str]| place.run(&[&["call", "add", "--plugin", &python], words].concat());
    assert_snapshot!(call(&["a=x", "A=1"]), @r#"
    exit 2
    --- stderr
    error: the arguments of `add` are not acceptable
      why: A: the key "A" differs from "a" in case only; missing required argument "b"; a: expected number, got string
      hint: `lemon tools add` shows all arguments
    "#);
    assert_snapshot!(call(&[r#"{"a": "1", "b": [2], "a": 3}"#]), @r#"
    exit 2
    --- stderr
    error: the arguments of `add` are not acceptable
      why: a: the key "a" is given twice
      hint: `lemon tools add` shows all arguments
    "#);
    assert_snapshot!(call(&["a=1", "a=2"]), @"
    exit 2
    --- stderr
    error: `a` is given twice
      hint: give several values as one array: key:='[1, 2]'
    ");
    assert_snapshot!(call(&["a"]), @"
    exit 2
    --- stderr
    error: `a` is not an argument
      why: it is neither key=value nor a JSON object
      hint: write key=value, or key:=JSON, or one JSON object, or `-` to read it from stdin
    ");
    assert_snapshot!(call(&["a:=x"]), @"
    exit 2
    --- stderr
    error: the value of `a` is not JSON
      why: expected value at line 1 column 1
      hint: write `a=…` for a string
    ");
    assert_snapshot!(call(&["[1]"]), @r#"
    exit 2
    --- stderr
    error: the arguments are not a JSON object
      why: the argument is JSON of another sort
      hint: give an object such as '{"key": "value"}', or words like key=value
    "#);
}

#[test]
fn an_error_of_the_tool_is_its_answer() {
    let zoo = zoo("none");
    assert_snapshot!(Place::new().run(&["call", "relay", "tool=nothing", "--plugin", &zoo]), @r#"
    exit 1
    --- stdout
    unknown_tool: there is no tool named "nothing"
    --- stderr
    error: the tool `relay` of plugin zoo reported an error
      hint: what it says is on stdout
    "#);
}

#[test]
fn a_tool_that_is_not_offered_is_told_with_the_reason() {
    let zoo = zoo("hostile-schemas");
    let shown = Place::new().run(&["call", "remote", "--plugin", &zoo]);
    let why = "why: plugin zoo lists it, and it can't be offered: its input schema can't be used";
    assert!(shown.starts_with("exit 3\n") && shown.contains(why), "{shown}");
}

#[test]
fn an_unknown_tool_ends_with_3_and_the_nearest_name() {
    assert_snapshot!(Place::new().run(&["call", "helo", "--plugin", &hello_python()]), @"
    exit 3
    --- stderr
    error: there is no tool named `helo`
      hint: did you mean `hello`?
    ");
}

#[test]
fn a_plugin_that_fails_leaves_the_others_at_work() {
    let place = Place::new();
    let exits = "exits=sh -c 'echo no key >&2; exit 3'";
    assert_snapshot!(place.run(&["tools", "--plugin", exits, "--plugin", &hello_shell()]), @"
    exit 4
    --- stdout
    shout  shell  Says a text in upper case.
    --- stderr
    error: plugin exits did not start
      why: it ended during the handshake (initialize): exit status 3; its stderr ends with:
        no key
      hint: run it by hand to see more: `sh -c 'echo no key >&2; exit 3'` (it gets your whole environment there, and here only what its `env` in a config file adds to PATH, HOME and the like); `lemon plugin logs exits` shows its log
    ");
    let answer = place.run(&["call", "shout", "text=a", "--plugin", exits, "--plugin", &hello_shell()]);
    assert_eq!(answer, "exit 0\n--- stdout\nA\n");
    assert!(place.run(&["call", "other", "--plugin", exits]).starts_with("exit 4\n"));
    let status = place.run(&["status", "--plugin", exits]);
    assert!(status.starts_with("exit 0\n"), "{status}");
    for part in
        ["ms after its start", "error      it ended during the handshake (initialize): exit status 3", "retry      in "]
    {
        assert!(status.contains(part), "no {part:?} in {status}");
    }
}

#[test]
fn status_as_json_has_what_a_program_needs() {
    let place = Place::new();
    let json = place.json(&["status", "--json", "--plugin", &hello_python()]);
    let keys = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(keys(&json), "config status warnings");
    assert_eq!(keys(&json["config"]), "disabled files held home ignored project");
    assert_eq!(keys(&json["status"]), "conflicts hidden idleFilters losers plugins protection");
    let plugin = &json["status"]["plugins"][0];
    assert_eq!(
        (&plugin["state"], &plugin["tools"], &plugin["serverVersion"]),
        (&"ready".into(), &2.into(), &"1.0.0".into())
    );
    assert!(plugin["process"]["pid"].is_u64() && plugin["process"]["readyAfterMs"].is_u64());
    let one = place.json(&["status", "shell", "--json", "--plugin", &hello_python(), "--plugin", &hello_shell()]);
    let plugins = one["status"]["plugins"].as_array().unwrap();
    assert!(plugins.len() == 1 && plugins[0]["name"] == "shell", "{one}");
}

#[test]
fn a_trace_shows_each_message_and_verbose_the_states() {
    let shown = Place::new().run(&["call", "hello", "name=x", "--trace", "-v", "--plugin", &hello_python()]);
    for part in [" hello → {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"", " hello ← {", "\nhello: ready\n"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(shown.starts_with("exit 0\n--- stdout\nHello, x!\n---"), "{shown}");
    assert!(!shown.contains('\u{1b}'));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let place = Place::new();
    let mut command = place.command("sh");
    let script = "{ \"$0\" tools --plugin \"$1\"; echo \"exit $?\" >&2; } | true";
    command.args(["-c", script, env!("CARGO_BIN_EXE_lemon"), &hello_python()]);
    assert_eq!(place.shown(command), "exit 0\n--- stderr\nexit 0\n");
}

#[test]
fn an_answer_that_can_not_be_written_is_an_error() {
    let place = Place::new();
    let mut command = place.lemon(&["call", "hello", "name=x", "--plugin", &hello_python()]);
    command.stdout(fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
    command.stderr(Stdio::piped());
    let output = command.spawn().unwrap().wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(6));
    assert!(String::from_utf8_lossy(&output.stderr).contains("can't write the answer to stdout"));
}

#[test]
fn a_signal_ends_it_during_the_start() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        let place = Place::new();
        // A shell starts what runs in the background with SIGINT ignored, and lemon leaves it so.
        let mut lemon = place.command("env");
        lemon.args(["--default-signal=INT,HUP,TERM", env!("CARGO_BIN_EXE_lemon")]);
        lemon.args(["-v", "tools", "--plugin", "silent=sleep 1000"]);
        let mut lemon = lemon.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut stderr = BufReader::new(lemon.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("handshaking") {
            line.clear();
            assert_ne!(stderr.read_line(&mut line).unwrap(), 0, "it ended before its plugin was started");
        }
        assert!(place.command("kill").args([signal, &lemon.id().to_string()]).status().unwrap().success());
        std::io::copy(&mut stderr, &mut std::io::sink()).unwrap();
        assert_eq!(lemon.wait().unwrap().code(), Some(code));
    }
}
