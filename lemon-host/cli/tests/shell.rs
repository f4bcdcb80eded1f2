//! `lemon shell`, with commands from a pipe and from someone at a terminal.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod place;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use insta::assert_snapshot;
use rexpect::reader::Options;
use rexpect::session::{PtySession, spawn_with_options};

use place::{Place, hello_python, hello_shell, zoo};

/// Longer than anything takes.
const PATIENCE: u64 = 60_000;

fn piped(place: &Place, commands: &str, args: &[&str]) -> String {
    place.run_with_stdin(commands, &[&["shell"], args].concat())
}

#[test]
fn piped_commands_are_carried_out_in_their_order() {
    let place = Place::new();
    let commands = "\
# a comment, and quotes as in a POSIX shell
call hello name='World  and \"you\"'

call add a=1 b:=2.5 --json
tools
call shout text=$HOME\\ ok
";
    assert_snapshot!(piped(&place, commands, &["--plugin", &hello_python(), "--plugin", &hello_shell()]), @r#"
    exit 0
    --- stdout
    Hello, World  and "you"!
    {"content": [{"type": "text", "text": "3.5"}], "isError": false}
    hello  hello  Greets someone.
    add    hello  Adds two numbers.
    shout  shell  Says a text in upper case.
    $HOME OK
    "#);
}

#[test]
fn a_failed_command_is_told_with_its_line_and_the_first_one_decides_on_the_exit_code() {
    let place = Place::new();
    let commands = "\
call helo
cal hello
call
call hello name='x
call hello -
call add a=x b=1
restart nobody
status nobody
help nothing
quit now
quit &
cancel 3
&
call hello name=World
";
    assert_snapshot!(piped(&place, commands, &["--plugin", &hello_python()]), @r#"
    exit 3
    --- stdout
    Hello, World!
    --- stderr
    line 1: error: there is no tool named `helo`
      hint: did you mean `hello`?
    line 2: error: there is no command `cal`
      hint: did you mean `call`?
    line 3: error: the following required arguments were not provided: <TOOL>
    line 4: error: a quote is not closed, or a `\` ends the line
    line 5: error: `-` can't be used in the shell, whose commands stdin has
      hint: write the arguments out, in quotes if they have spaces
    line 6: error: the arguments of `add` are not acceptable
      why: a: expected number, got string
      hint: `lemon tools add` shows all arguments
    line 7: error: there is no plugin named `nobody`
      hint: there is only hello
    line 8: error: there is no plugin named `nobody`
      hint: there is only hello
    line 9: error: there is no command `nothing`
      hint: `help` lists the commands
    line 10: error: unexpected argument 'now' found
    line 11: error: this command takes no time and can't go on in the background
    line 12: error: there is no job 3
      hint: `jobs` lists them
    line 13: error: there is no command before `&`
    "#);
}

#[test]
fn plugins_are_stopped_and_started_by_hand() {
    let place = Place::new();
    let commands = "\
stop hello shell
call hello name=x
start hello
call hello name=x
kill hello
restart hello
reload hello
call hello name=y
";
    let shown = piped(&place, commands, &["--plugin", &hello_python(), "--plugin", &hello_shell()]);
    let shown: Vec<_> = shown.lines().map(|line| line.trim_end_matches(|c: char| c.is_ascii_digit())).collect();
    assert_snapshot!(shown.join("\n"), @"
    exit 
    --- stdout
    hello: stopped
    shell: stopped
    hello: started, process 
    Hello, x!
    hello: killed
    hello: restarted, process 
    hello: reloaded, process 
    Hello, y!
    --- stderr
    line 2: error: there is no tool named `hello`
      why: it may be one of plugin hello, which is stopped
      hint: `start hello` starts it
    ");
}

#[test]
fn a_plugin_that_can_not_start_is_told_by_the_command_that_wanted_it() {
    let place = Place::new();
    let shown = piped(&place, "start gone\nrestart gone\nstatus gone\n", &["--plugin", "gone=no-such-program"]);
    assert!(shown.starts_with("exit 4\n--- stdout\ngone  failed\n"), "{shown}");
    assert!(shown.contains("\nline 1: error: plugin gone did not start\n"), "{shown}");
    assert!(shown.contains("\nline 2: error: plugin gone did not start\n"), "{shown}");
}

#[test]
fn jobs_go_on_in_the_background_and_are_waited_for_at_the_end() {
    let place = Place::new();
    let commands = "\
call sleep seconds=600 &
call sleep seconds=0.01 &
wait 2
cancel 1
wait
jobs
call echo text=meanwhile
call relay tool=nothing &
";
    assert_snapshot!(piped(&place, commands, &["--plugin", &zoo("none")]), @r#"
    exit 1
    --- stdout
    slept for 0.01 s
    meanwhile
    unknown_tool: there is no tool named "nothing"
    --- stderr
    [1] call sleep seconds=600
    [2] call sleep seconds=0.01
    [2] done: call sleep seconds=0.01
    [1] cancelled: call sleep seconds=600
    [3] call relay tool=nothing
    [3] error: the tool `relay` of plugin zoo reported an error
      hint: what it says is on stdout
    "#);
}

#[test]
fn quit_cancels_what_goes_on() {
    let place = Place::new();
    let shown = piped(&place, "call sleep seconds=600 &\nquit\nnothing\n", &["--plugin", &zoo("none")]);
    assert_eq!(shown, "exit 0\n--- stderr\n[1] call sleep seconds=600\n[1] cancelled: call sleep seconds=600\n");
}

#[test]
fn calls_of_one_shell_are_of_one_session() {
    let place = Place::new();
    let shown = piped(&place, "call session\ncall session\n", &["--plugin", &zoo("none")]);
    let session = |line: &str| {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        let sessions = value["sessions"].as_object().unwrap();
        assert_eq!(sessions.len(), 1, "{line}");
        sessions.values().next().unwrap()["id"].clone()
    };
    let lines: Vec<_> = shown.lines().filter(|line| line.starts_with('{')).collect();
    assert_eq!(lines.len(), 2, "{shown}");
    assert_eq!(session(lines[0]), session(lines[1]));
}

#[test]
fn only_calls_with_yes_may_call_tools_of_others() {
    let place = Place::new();
    let relay = r#"call relay tool=hello arguments='{"name": "x"}'"#;
    let commands = format!("{relay}\n{relay} --yes\n{relay}\n");
    let shown = piped(&place, &commands, &["--plugin", &zoo("none"), "--plugin", &hello_python()]);
    assert_eq!(shown.matches("and was refused").count(), 2, "{shown}");
    assert_eq!(shown.matches("Hello, x!").count(), 1, "{shown}");
}

#[test]
fn a_line_that_is_no_text_does_not_end_the_shell() {
    let place = Place::new();
    fs::write(place.path("stdin"), b"call \xff\ncall hello name=x").unwrap();
    let mut command = place.lemon(&["shell", "--plugin", &hello_python()]);
    command.stdin(fs::File::open(place.path("stdin")).unwrap());
    let shown = place.shown(command);
    assert!(shown.starts_with("exit 2\n--- stdout\nHello, x!\n"), "{shown}");
    assert!(shown.contains("line 1: error: the line can't be read\n  why: it is not UTF-8\n"), "{shown}");
}

#[test]
fn a_signal_ends_it_in_the_middle_of_a_call_and_between_two() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        for command in ["call sleep seconds=600\n", ""] {
            let place = Place::new();
            let mut lemon = place.command("env");
            lemon.args([
                "--default-signal=INT,HUP,TERM",
                env!("CARGO_BIN_EXE_lemon"),
                "shell",
                "--plugin",
                &zoo("none"),
            ]);
            let mut lemon = lemon.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
            let mut stdin = lemon.stdin.take().unwrap();
            let mut answers = BufReader::new(lemon.stdout.take().unwrap()).lines();
            write!(stdin, "call pids\n{command}").unwrap();
            let pids: serde_json::Value = serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap();
            assert!(place.command("kill").args([signal, &lemon.id().to_string()]).status().unwrap().success());
            assert_eq!(lemon.wait().unwrap().code(), Some(code), "{signal}");
            assert!(!Path::new("/proc").join(pids["pid"].to_string()).exists(), "{signal}: the plugin is left");
            drop(stdin);
        }
    }
}

#[test]
fn a_hidden_tool_is_told_as_soon_as_there_is_a_prompt() {
    let (a, b) = (hello_shell().replace("shell=", "a="), hello_shell().replace("shell=", "b="));
    let mut typist = Typist::new(&["--plugin", &a, "--plugin", &b]);
    typist.enters("tools");
    typist.sees("the tool `shout` of plugin b is hidden by the one of plugin a");
    typist.enters("stop a");
    typist.sees("a: stopped");
    typist.enters("call shout text=x");
    typist.sees("X\r\n");
}

/// Someone at a terminal.
struct Typist {
    place: Place,
    session: PtySession,
}

impl Typist {
    fn new(args: &[&str]) -> Self {
        let place = Place::new();
        let session = Self::sit_down(&place, args);
        Self { place, session }
    }

    fn sit_down(place: &Place, args: &[&str]) -> PtySession {
        // A shell starts what runs in the background with SIGINT ignored, and lemon leaves it so.
        let script = "trap : INT; stty -a >../before; env --default-signal=INT,HUP,TERM \"$0\" shell \"$@\"
            echo \"ended with $?\"; stty -a >../after";
        let mut command = place.command("sh");
        command
            .args(["-c", script, env!("CARGO_BIN_EXE_lemon")])
            .args(args)
            .env("TERM", "xterm-256color")
            .stdin(Stdio::inherit());
        let options = Options::new().timeout_ms(Some(PATIENCE)).strip_ansi_escape_codes(true);
        spawn_with_options(command, options).unwrap()
    }

    /// Waits for a text, and gives what came before it.
    fn sees(&mut self, text: &str) -> String {
        self.session.exp_string(text).unwrap_or_else(|error| panic!("{text:?} did not come: {error}"))
    }

    fn types(&mut self, text: &str) {
        self.session.send(text).unwrap();
        self.session.flush().unwrap();
    }

    /// Types a command as soon as there is a prompt.
    fn enters(&mut self, command: &str) {
        self.types(&format!("{command}\r"));
        self.sees(command);
    }

    /// Waits for the end, after which the terminal is as it was.
    fn ends_with(mut self, code: i32) -> Place {
        self.sees(&format!("ended with {code}"));
        self.session.process().wait().unwrap();
        let mode = |name: &str| fs::read_to_string(self.place.path(name)).unwrap();
        assert_eq!(mode("before"), mode("after"));
        self.place
    }
}

#[test]
fn someone_types_and_is_answered() {
    let mut typist = Typist::new(&["--plugin", &hello_python()]);
    typist.sees("hello: ready");
    typist.enters("call hello name='you there'");
    typist.sees("Hello, you there!\r\n");
    typist.enters("nonsense");
    typist.sees("error: there is no command `nonsense`");
    typist.sees("lemon> ");
    typist.types("\u{4}");
    typist.ends_with(0);
}

#[test]
fn tab_completes_commands_tools_and_arguments() {
    let mut typist = Typist::new(&["--plugin", &hello_python()]);
    typist.sees("hello: ready");
    typist.types("cal\t");
    typist.sees("lemon> call ");
    typist.types("hel\t");
    typist.sees("lemon> call hello ");
    typist.types("n\t");
    typist.sees("lemon> call hello name=");
    typist.types("x\r");
    typist.sees("Hello, x!");
    typist.types("rest\t");
    typist.sees("lemon> restart ");
    typist.types("h\t\r");
    typist.sees("hello: restarted, process ");
}

#[test]
fn what_happens_is_told_above_the_line_that_is_typed() {
    let mut typist = Typist::new(&["--plugin", &zoo("none")]);
    typist.sees("zoo: ready");
    typist.enters("call sleep seconds=0.3 &");
    typist.sees("[1] call sleep");
    typist.types("call echo te");
    typist.sees("slept for 0.3 s\r\nlemon> call echo te");
    typist.sees("[1] done: call sleep seconds=0.3\r\nlemon> call echo te");
    typist.types("xt=whole\r");
    typist.sees("whole\r\n");
}

#[test]
fn ctrl_c_cancels_the_call_and_clears_the_line() {
    let mut typist = Typist::new(&["--plugin", &zoo("none")]);
    typist.sees("zoo: ready");
    typist.enters("call sleep seconds=600");
    typist.sees("\n");
    typist.session.send_control('c').unwrap();
    typist.sees("error: the call was cancelled");
    typist.sees("lemon> ");
    typist.types("call echo text=no");
    typist.sees("call echo text=no");
    typist.session.send_control('c').unwrap();
    typist.sees("lemon> ");
    typist.enters("call echo text=yes");
    let before = typist.sees("yes\r\n");
    assert!(!before.contains("no"), "{before}");
    typist.enters("quit");
    typist.ends_with(0);
}

#[test]
fn a_signal_ends_it_and_all_plugins_whatever_is_typed() {
    for (signal, code) in [("-TERM", 143), ("-HUP", 129)] {
        let mut typist = Typist::new(&["--plugin", &zoo("none")]);
        typist.sees("zoo: ready");
        typist.enters("call pids");
        let (_, pid) = typist.session.exp_regex("\"pid\": *[0-9]+").unwrap();
        let plugin = pid.trim_start_matches(|c: char| !c.is_ascii_digit()).to_owned();
        typist.sees("lemon> ");
        typist.types("half a line");
        typist.sees("half a line");
        let host = host_of(&plugin);
        assert!(typist.place.command("kill").args([signal, &host]).status().unwrap().success());
        typist.ends_with(code);
        assert!(!Path::new("/proc").join(&plugin).exists(), "{signal}: the plugin is left");
    }
}

/// The parent of a process.
fn host_of(pid: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap().trim().to_owned()
}

#[test]
fn the_history_is_kept_for_the_next_time_and_for_nobody_else() {
    let mut typist = Typist::new(&["--plugin", &hello_python()]);
    typist.sees("hello: ready");
    typist.enters("call hello name=first");
    typist.sees("Hello, first!");
    typist.enters(" call hello name=secret");
    typist.sees("Hello, secret!");
    typist.types("\u{4}");
    let place = typist.ends_with(0);
    let file = place.path("home/.lemon/shell_history");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let history = fs::read_to_string(&file).unwrap();
    assert!(history.contains("name=first") && !history.contains("secret"), "{history}");
    let session = Typist::sit_down(&place, &["--plugin", &hello_python()]);
    let mut typist = Typist { place, session };
    typist.sees("hello: ready");
    typist.types("\u{1b}[A");
    typist.sees("lemon> call hello name=first");
    typist.types("\r");
    typist.sees("Hello, first!");
}
