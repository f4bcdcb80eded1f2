//! `lemon plugin logs`, beside the lemon that the plugin runs under and after it.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod place;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, ChildStdin, Stdio};

use insta::assert_snapshot;

use place::{Place, hello_shell};

/// A plugin that greets on stderr, in red.
fn red() -> String {
    let hello = hello_shell();
    let hello = hello.trim_start_matches("shell=");
    format!(r#"red=sh -c "printf '\033[31mred\033[0m \342\200\256and more\n' >&2; exec sh {hello}""#)
}

/// What is shown, without the times.
fn logs(place: &Place, args: &[&str]) -> String {
    without_times(&place.run(&[&["plugin", "logs"], args].concat()))
}

fn without_times(shown: &str) -> String {
    let line = |line: &str| match line.split_once(' ') {
        Some((time, rest)) if time.len() > 20 && time.ends_with('Z') => format!("TIME {rest}\n"),
        _ => format!("{line}\n"),
    };
    shown.lines().map(line).collect()
}

#[test]
fn a_log_outlives_its_run_and_no_terminal_obeys_it() {
    let place = Place::new();
    place.run(&["tools", "--plugin", &red()]);
    place.run(&["tools", "--plugin", &red()]);
    assert_snapshot!(logs(&place, &["red"]), @r#"
    exit 0
    --- stdout
    TIME \u{1b}[31mred\u{1b}[0m \u{202e}and more
    TIME \u{1b}[31mred\u{1b}[0m \u{202e}and more
    "#);
    assert_snapshot!(logs(&place, &["red", "-n", "1"]), @r#"
    exit 0
    --- stdout
    TIME \u{1b}[31mred\u{1b}[0m \u{202e}and more
    --- stderr
    1 more before these; `-n all` shows them all
    "#);
    assert_snapshot!(logs(&place, &["red", "-n", "some"]), @"
    exit 2
    --- stderr
    error: invalid value 'some' for '--lines <LINES>': it must be a number of lines, or `all`

    For more information, try '--help'.
    ");
}

#[test]
fn older_lines_come_from_the_older_file() {
    let place = Place::new();
    place.write("home/.lemon/logs/x.log.1", "1\n2\n");
    place.write("home/.lemon/logs/x.log", "3\n");
    assert_eq!(logs(&place, &["x", "-n", "all"]), "exit 0\n--- stdout\n1\n2\n3\n");
    fs::remove_file(place.path("home/.lemon/logs/x.log")).unwrap();
    assert_eq!(logs(&place, &["x"]), "exit 0\n--- stdout\n1\n2\n");
}

#[test]
fn a_plugin_without_a_log_is_told_from_one_that_is_not_there() {
    let place = Place::new();
    place.user_config("[plugins.quiet]\ncommand = ['true']\n[plugins.off]\ncommand = ['true']\nenabled = false\n");
    for name in ["quiet", "off"] {
        let shown = logs(&place, &[name]);
        assert_eq!(shown, format!("exit 0\n--- stderr\nwarning: plugin {name} has written nothing to its log yet\n"));
    }
    for name in ["quite", "../../config", ""] {
        assert!(logs(&place, &[name]).starts_with("exit 2\n--- stderr\nerror: there is no plugin named"), "{name}");
    }
    place.write("home/.lemon/logs/dir.log/x", "");
    assert!(
        logs(&place, &["dir"])
            .starts_with("exit 6\n--- stderr\nerror: the log [ROOT]/home/.lemon/logs/dir.log can't be read\n")
    );
    place.user_config("[plugins");
    assert!(logs(&place, &["quiet"]).starts_with("exit 2\n--- stderr\nerror: the config file"));
    place.write("home/.lemon/logs/quiet.log", "a line\n");
    assert_eq!(logs(&place, &["quiet"]), "exit 0\n--- stdout\na line\n");
}

#[test]
fn the_log_is_shown_to_whom_it_belongs_only() {
    let place = Place::new();
    place.run(&["tools", "--plugin", &red()]);
    let mode = fs::metadata(place.path("home/.lemon/logs/red.log")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// A lemon that goes on until its stdin is closed.
struct Shell {
    child: Child,
    stdin: ChildStdin,
}

impl Shell {
    fn new(place: &Place, plugin: &str) -> Self {
        let mut command = place.lemon(&["shell", "--plugin", plugin]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        Self { stdin: child.stdin.take().unwrap(), child }
    }

    fn enters(&mut self, line: &str) {
        writeln!(self.stdin, "{line}").unwrap();
    }

    fn ends(mut self) {
        drop(self.stdin);
        assert!(self.child.wait().unwrap().success());
    }
}

#[test]
fn it_follows_the_log_of_another_lemon_over_a_rotation_until_a_signal() {
    let place = Place::new();
    // Full after each line.
    place.user_config("[limits]\nlog_file_bytes = 60\n");
    let mut shell = Shell::new(&place, &red());
    let mut follow = place.command("env");
    follow.args([
        "--default-signal=INT",
        env!("CARGO_BIN_EXE_lemon"),
        "plugin",
        "logs",
        "red",
        "-f",
        "--plugin",
        &red(),
    ]);
    let mut follow = follow.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines();
    let mut next = move || without_times(&lines.next().unwrap().unwrap());
    let red = "TIME \\u{1b}[31mred\\u{1b}[0m \\u{202e}and more\n";
    assert_eq!(next(), red);
    for _ in 0..3 {
        shell.enters("restart red");
        assert_eq!(next(), red);
    }
    assert!(place.path("home/.lemon/logs/red.log.1").exists());
    assert!(place.command("kill").args(["-INT", &follow.id().to_string()]).status().unwrap().success());
    assert_eq!(follow.wait().unwrap().code(), Some(130));
    shell.ends();
}

#[test]
fn it_does_not_follow_for_nobody() {
    let place = Place::new();
    place.write("home/.lemon/logs/x.log", "1\n");
    let mut command = place.command("sh");
    let script = "{ \"$0\" plugin logs x -f; echo \"exit $?\" >&2; } | true";
    command.args(["-c", script, env!("CARGO_BIN_EXE_lemon")]);
    assert_eq!(place.shown(command), "exit 0\n--- stderr\nexit 0\n");
}

#[test]
fn the_shell_shows_the_same() {
    let place = Place::new();
    place.write("home/.lemon/logs/red.log", "1\n2\n");
    let commands = "logs red -n 1\nlogs nobody\nlogs red -f &\n";
    let shown = place.run_with_stdin(commands, &["shell", "--plugin", &hello_shell().replace("shell=", "red=")]);
    assert_snapshot!(shown, @"
    exit 2
    --- stdout
    2
    1
    2
    --- stderr
    1 more before these; `-n all` shows them all
    line 2: error: there is no plugin named `nobody`
      hint: there is only red
    [1] logs red -f
    [1] cancelled: logs red -f
    ");
}
