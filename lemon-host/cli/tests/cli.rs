//! The command line as its users see it, with no plugin or those of `examples/` only.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use insta::assert_snapshot;
use tempfile::TempDir;

/// A home and a working folder of their own.
struct Place {
    root: TempDir,
}

impl Place {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("place")).unwrap();
        fs::create_dir_all(root.path().join("home/.lemon")).unwrap();
        Self { root }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn user_config(&self, text: &str) {
        self.write("home/.lemon/config.toml", text);
    }

    #[expect(clippy::disallowed_methods, reason = "the program under test is started like any user does")]
    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.path("home"))
            .current_dir(self.path("place"))
            .stdin(Stdio::null());
        command
    }

    fn lemon(&self, args: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_lemon"));
        command.args(args);
        command
    }

    /// Exit code, stdout and stderr, with this place's own paths taken out.
    fn run(&self, args: &[&str]) -> String {
        self.shown(self.lemon(args))
    }

    fn run_with_stdin(&self, stdin: &str, args: &[&str]) -> String {
        self.write("stdin", stdin);
        let mut command = self.lemon(args);
        command.stdin(fs::File::open(self.path("stdin")).unwrap());
        self.shown(command)
    }

    fn shown(&self, mut command: Command) -> String {
        let output = command.output().unwrap();
        let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let mut text = format!("exit {}\n", output.status.code().unwrap());
        for (name, stream) in [("stdout", stdout), ("stderr", stderr)] {
            if !stream.is_empty() {
                text.push_str(&format!("--- {name}\n{stream}"));
            }
        }
        let root = self.root.path().canonicalize().unwrap();
        text.replace(root.to_str().unwrap(), "[ROOT]").replace(examples().to_str().unwrap(), "[EXAMPLES]")
    }

    /// Stdout of a run that must go well.
    fn json(&self, args: &[&str]) -> serde_json::Value {
        let output = self.lemon(args).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    }
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").canonicalize().unwrap()
}

fn hello_python() -> String {
    let path = examples().join("hello-python/hello.py");
    path.to_str().unwrap().to_owned()
}

fn hello_shell() -> String {
    let path = examples().join("hello-shell/hello.sh");
    format!("shell={}", path.to_str().unwrap())
}

#[test]
fn help_documents_the_exit_codes() {
    let help = Place::new().run(&["--help"]);
    assert!(help.starts_with("exit 0\n--- stdout\n"), "{help}");
    let (_, codes) = help.split_once("Exit codes:\n").unwrap();
    assert_snapshot!(codes, @"
      0  done; `status` is a report and ends so even if plugins have failed
      1  the tool answered with an error
      2  the command line, the arguments of a call or a config file are wrong
      3  there is no such tool
      4  a plugin failed: it did not start, crashed or broke the protocol
      5  the call timed out
      6  lemon itself failed, such as to write its output
      129, 130, 143: ended by SIGHUP, SIGINT (Ctrl-C) or SIGTERM; a second signal
         kills all plugins at once

    Plugins come from --plugin, then --config FILE, then ~/.lemon/config.toml; the
    first of a name wins. LEMON_HOME names another folder than ~/.lemon.
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
      hint: it is a script, a program, or a command with its arguments in quotes
    error: `--plugin  ` names no plugin
      why: it is empty: give a script, a program, or a command with its arguments
      hint: it is a script, a program, or a command with its arguments in quotes
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
    let zoo = examples().join("../tests/misbehaving/misbehave.py").canonicalize().unwrap();
    let zoo = format!("zoo=python3 {} none", zoo.to_str().unwrap());
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
    error: the argument `a` is given twice
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
    error: the argument `a` is not JSON
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
    let zoo = examples().join("../tests/misbehaving/misbehave.py").canonicalize().unwrap();
    let zoo = format!("zoo=python3 {} none", zoo.to_str().unwrap());
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
    let zoo = examples().join("../tests/misbehaving/misbehave.py").canonicalize().unwrap();
    let zoo = format!("zoo=python3 {} hostile-schemas", zoo.to_str().unwrap());
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
      hint: run it by hand to see more: `sh -c 'echo no key >&2; exit 3'` (it gets your whole environment there, and here only what its `env` in a config file adds to PATH, HOME and the like); its log is [ROOT]/home/.lemon/logs/exits.log
    ");
    let answer = place.run(&["call", "shout", "text=a", "--plugin", exits, "--plugin", &hello_shell()]);
    assert_eq!(answer, "exit 0\n--- stdout\nA\n");
    assert!(place.run(&["call", "other", "--plugin", exits]).starts_with("exit 4\n"));
    assert!(place.run(&["status", "--plugin", exits]).starts_with("exit 0\n"));
}

#[test]
fn all_problems_of_all_files_are_told_and_nothing_starts() {
    let place = Place::new();
    place.user_config("[plugins.x]\ncommand = \"python3 x.py\"\nenabled = 3\n[timeouts]\nstart_ms = 0\n");
    place.write("place/other.toml", "[plugins");
    let marker = place.path("marker");
    let plugin = format!("touch {}", marker.to_str().unwrap());
    assert_snapshot!(place.run(&["tools", "--config", "other.toml", "--plugin", &plugin]), @r#"
    exit 2
    --- stderr
    error: the config file other.toml is wrong
      why: other.toml:1:9: unclosed table, expected `]`
          |
        1 | [plugins
          |         ^
      hint: correct it; nothing was started
    error: the config file [ROOT]/home/.lemon/config.toml is wrong
      why: [ROOT]/home/.lemon/config.toml:2:11: `command` must be an array: write ["python3", "x.py"]
          |
        2 | command = "python3 x.py"
          |           ^^^^^^^^^^^^^^
        [ROOT]/home/.lemon/config.toml:3:11: `enabled` must be true or false, not an integer
          |
        3 | enabled = 3
          |           ^
        [ROOT]/home/.lemon/config.toml:5:12: `timeouts.start_ms` must be a whole number from 1 to 9223372036854775807
          |
        5 | start_ms = 0
          |            ^
      hint: correct them; nothing was started
    "#);
    assert!(!marker.exists());
    assert_snapshot!(place.run(&["tools", "--config", "none.toml", "-C", ".."]).lines().take(4).collect::<Vec<_>>().join("\n"), @"
    exit 2
    --- stderr
    error: can't read the config file none.toml
      why: No such file or directory (os error 2)
    ");
}

#[test]
fn a_flag_wins_over_a_file_and_a_file_over_the_users_own() {
    let place = Place::new();
    let entry = |name: &str, rest: &str| {
        format!("[plugins.{name}]\ncommand = ['sh', '{}']\n{rest}", hello_shell().trim_start_matches("shell="))
    };
    place.user_config(
        &[entry("a", ""), entry("b", ""), entry("c", "colour = 1\n"), "[limits]\ncall = 1\n".into()].concat(),
    );
    place.write("place/other.toml", &[entry("b", ""), entry("c", "enabled = false\n")].concat());
    let flag = hello_shell().replace("shell=", "a=");
    let args = ["--config", "other.toml", "--plugin", &flag];
    assert_snapshot!(place.run(&[&["tools"], &args[..]].concat()), @"
    exit 0
    --- stdout
    shout  a  Says a text in upper case.
    --- stderr
    warning: [ROOT]/home/.lemon/config.toml:7: unknown key `colour` in [plugins.c] is ignored
    warning: [ROOT]/home/.lemon/config.toml:9: unknown key `call` in [limits] is ignored; did you mean `calls`?
    warning: plugin a of [ROOT]/home/.lemon/config.toml:1 is not started: --plugin has one of that name, and wins
    warning: plugin b of [ROOT]/home/.lemon/config.toml:3 is not started: other.toml:1 has one of that name, and wins
    warning: the tool `shout` of plugin b is hidden by the one of plugin a
    ");
    let status = place.run(&[&["status"], &args[..]].concat());
    assert!(status.contains("disabled     c of other.toml:3 (enabled = false)\n"), "{status}");
    assert!(status.contains("disabled     c of [ROOT]/home/.lemon/config.toml:5 (by other.toml:3)\n"), "{status}");
    assert!(
        status.contains("unknown key `colour`")
            && status.contains("shadowed     the tool `shout` of plugin b is hidden by the one of plugin a"),
        "{status}"
    );
}

#[test]
fn tools_are_disabled_by_flags_and_files_together() {
    let place = Place::new();
    let python = hello_python();
    place.user_config("[tools]\nenabled_only = ['hello', 'ad*']\ndisable = []\n");
    assert_snapshot!(place.run(&["tools", "--plugin", &python, "--disable", "hello,helo"]), @"
    exit 0
    --- stdout
    add  hello  Adds two numbers.
    --- stderr
    warning: [ROOT]/home/.lemon/config.toml:3: unknown key `disable` in [tools] is ignored; did you mean `disabled`?
    warning: no tool is named `helo`, which is to be disabled or enabled
    ");
    assert_snapshot!(place.run(&["call", "hello", "name=x", "--plugin", &python, "--disable", "h*"]), @r#"
    exit 3
    --- stderr
    warning: [ROOT]/home/.lemon/config.toml:3: unknown key `disable` in [tools] is ignored; did you mean `disabled`?
    error: the tool `hello` is disabled
      why: "h*" is among the disabled tools
      hint: `lemon status` shows what is hidden; the rule is in `--disable`, `--enable-only` or [tools] of a config file
    "#);
    let both = place.run(&["tools", "--plugin", &python, "--plugin", &hello_shell()]);
    assert!(both.contains("\nhello  ") && both.contains("\nadd  ") && !both.contains("shout"), "{both}");
    place.user_config("[tools]\ndisabled = 'hello'\n");
    let refused = place.run(&["tools", "--plugin", &python]);
    assert!(refused.contains("`tools.disabled` must be an array of tools' names, not a string"), "{refused}");
    place.user_config("");
    let status = place.run(&["status", "--plugin", &python, "--enable-only", "add"]);
    assert!(status.contains("hidden       the tool `hello`: it is not among the only enabled tools\n"), "{status}");
}

#[test]
fn a_project_is_named_and_nothing_of_it_is_started() {
    let place = Place::new();
    let marker = place.path("marker");
    place.write(
        "place/.lemon/config.toml",
        &format!("[plugins.x]\ncommand = ['touch', '{}']", marker.to_str().unwrap()),
    );
    fs::create_dir_all(place.path("place/deep/er")).unwrap();
    let status = place.run(&["-C", "deep/er", "status"]);
    let line = "project      [ROOT]/place/.lemon/config.toml is not trusted: ignored, nothing of it is started\n";
    assert!(status.contains(line), "{status}");
    assert!(!marker.exists());
    let json = place.json(&["status", "--json", "-C", "deep"]);
    assert!(json["config"]["untrustedProject"].as_str().unwrap().ends_with("place/.lemon/config.toml"));
}

#[test]
fn a_program_in_the_working_repository_is_not_found_by_its_bare_name() {
    let place = Place::new();
    fs::create_dir_all(place.path("place/.git")).unwrap();
    fs::copy(hello_shell().trim_start_matches("shell="), place.path("place/shadow")).unwrap();
    let mut command = place.lemon(&["tools", "--plugin", "shadow --x"]);
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", place.path("place").canonicalize().unwrap().to_str().unwrap()));
    let shown = place.shown(command);
    assert!(
        shown.starts_with("exit 4\n") && shown.contains("a folder of PATH inside the project is not searched"),
        "{shown}"
    );
}

#[test]
fn status_as_json_has_what_a_program_needs() {
    let place = Place::new();
    let json = place.json(&["status", "--json", "--plugin", &hello_python()]);
    let keys = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(keys(&json), "config status warnings");
    assert_eq!(keys(&json["config"]), "disabled files home untrustedProject");
    assert_eq!(keys(&json["status"]), "conflicts hidden idleFilters losers plugins protection");
    let plugin = &json["status"]["plugins"][0];
    assert_eq!(
        (&plugin["state"], &plugin["tools"], &plugin["serverVersion"]),
        (&"ready".into(), &2.into(), &"1.0.0".into())
    );
    assert!(plugin["process"]["pid"].is_u64() && plugin["process"]["readyAfterMs"].is_u64());
}

#[test]
fn a_secret_is_shown_nowhere() {
    let place = Place::new();
    let leaks = "[plugins.leaks]\ncommand = ['sh', '-c', 'echo \"key: $API_KEY\" >&2; exit 1']\nenv = { API_KEY = 'hunter2hunter2' }\n";
    place.user_config(leaks);
    for line in [&["tools", "-vv", "--trace"][..], &["tools", "--json"], &["status"], &["status", "--json"]] {
        let shown = place.run(line);
        assert!(shown.contains("key: [redacted]") && !shown.contains("hunter2"), "{shown}");
    }
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
