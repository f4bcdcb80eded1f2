//! Real processes and real signals: whatever ends `lemon`, nothing that it started is left.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use crate::published_servers::installed;
use crate::support::{Lemon, finish, marked, root, run, until, zoo};

/// A `lemon call` that does not end by itself, with a plugin that marks what it starts.
struct Running {
    lemon: Lemon,
    host: Child,
    marker: String,
}

impl Running {
    fn start(fault: &str, tool: &str, arguments: &str) -> Self {
        let lemon = Lemon::new();
        let marker = format!("LEMON_E2E={}", lemon.home.path().display());
        let config = lemon.config(&format!(
            "[plugins.victim]\ncommand = [\"python3\", {:?}, {fault:?}]\nenv = {{ LEMON_E2E = {:?} }}\n",
            root("tests/misbehaving/misbehave.py"),
            lemon.home.path(),
        ));
        let host = lemon
            .process()
            .arg("--config")
            .arg(config)
            .args(["call", tool, arguments])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self { lemon, host, marker }
    }

    fn processes(&self) -> usize {
        marked(&self.marker).len()
    }

    fn signal(&self, signal: &str) {
        assert_cmd::Command::new("kill").args([signal, &self.host.id().to_string()]).assert().success();
    }
}

#[test]
fn a_host_that_is_killed_leaves_nothing_behind() {
    for (fault, tool, processes) in [
        ("none", "sleep", 1),
        ("ignore-eof-and-term", "sleep", 1),
        ("grandchild", "grandchild", 2),
        ("grandchild-setsid", "grandchild", 2),
        ("grandchild-stubborn", "grandchild", 2),
    ] {
        let arguments = r#"{"seconds": 1000}"#;
        let mut running = Running::start(fault, tool, arguments);
        until(fault, || running.processes() >= processes);
        running.signal("-KILL");
        running.host.wait().unwrap();
        until(&format!("{fault}: the end of {:?}", marked(&running.marker)), || running.processes() == 0);
        drop(running.lemon);
    }
}

/// Starts its arguments as a child and passes its input on, but neither its input's end nor a signal; the child's input stays
/// open as long as it lives.
const WRAPPER: &str = "
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE)
for line in sys.stdin.buffer:
    child.stdin.write(line)
    child.stdin.flush()
time.sleep(1000)
";

/// Neither the host's end nor the wrapper's tells the program behind it that it ought to go.
#[test]
fn a_host_that_is_killed_leaves_nothing_behind_a_wrapper_that_holds_stdin() {
    let (zoo, npm) = (root("tests/misbehaving/misbehave.py"), installed("npm"));
    let ours = format!("command = [\"python3\", \"-c\", {WRAPPER:?}, \"python3\", {zoo:?}, \"none\"]");
    let npx = format!("command = [\"npx\", \"--no\", \"mcp-server-everything\"]\ncwd = {npm:?}");
    for (entry, tool, arguments, processes) in [
        (ours, "sleep", r#"{"seconds": 1000}"#, 2),
        (npx, "trigger-long-running-operation", r#"{"duration": 1000, "steps": 1000}"#, 2),
    ] {
        let lemon = Lemon::new();
        let marker = format!("LEMON_E2E={}", lemon.home.path().display());
        let home = lemon.home.path();
        let config = lemon.config(&format!("[plugins.wrapped]\n{entry}\nenv = {{ LEMON_E2E = {home:?} }}\n"));
        let mut host = lemon.process();
        host.arg("--config").arg(config).args(["-v", "call", tool, arguments]);
        let mut host = host.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        // The whole of it is there when it is ready.
        let mut told = BufReader::new(host.stderr.take().unwrap()).lines().map(Result::unwrap);
        assert!(told.any(|line| line.contains("wrapped: ready")));
        assert!(marked(&marker).len() >= processes, "{:?}", marked(&marker));
        host.kill().unwrap();
        host.wait().unwrap();
        until(&format!("the end of {:?}", marked(&marker)), || marked(&marker).is_empty());
    }
}

#[test]
fn a_signal_cancels_the_call_and_ends_everything_in_order() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        let running = Running::start("none", "sleep", r#"{"seconds": 1000}"#);
        until("the call", || running.processes() == 1);
        // The plugin is there; whether the start or the call is under way, the end is the same.
        running.signal(signal);
        let output = finish(running.host);
        assert_eq!(output.status.code(), Some(code), "{signal}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stdout.is_empty());
        assert_eq!(marked(&running.marker).len(), 0);
    }
}

#[test]
fn a_second_interrupt_does_not_wait_for_a_stubborn_plugin() {
    let running = Running::start("ignore-eof-and-term", "sleep", r#"{"seconds": 1000}"#);
    until("the plugin", || running.processes() == 1);
    running.signal("-INT");
    running.signal("-INT");
    let output = finish(running.host);
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(marked(&running.marker).len(), 0);
}

#[test]
fn a_call_that_ends_leaves_nothing_behind_whatever_the_plugin_is() {
    for fault in ["none", "ignore-eof-and-term", "grandchild", "grandchild-setsid", "slow-exit 5000"] {
        let lemon = Lemon::new();
        let marker = format!("LEMON_E2E={}", lemon.home.path().display());
        let words: Vec<String> = fault.split(' ').map(|word| format!("{word:?}")).collect();
        let config = lemon.config(&format!(
            "[plugins.victim]\ncommand = [\"python3\", {:?}, {}]\nenv = {{ LEMON_E2E = {:?} }}\n",
            root("tests/misbehaving/misbehave.py"),
            words.join(", "),
            lemon.home.path(),
        ));
        let tool = if fault.starts_with("grandchild") { "grandchild" } else { "echo" };
        let ran = run(lemon.command().arg("--config").arg(config).args(["call", tool, r#"{"text": "x"}"#]));
        assert_eq!(ran.code, Some(0), "{fault}: {}", ran.stderr);
        assert_eq!(marked(&marker).len(), 0, "{fault}");
    }
}

#[test]
fn each_fault_costs_its_own_plugin_a_specific_message_and_the_others_nothing() {
    for (fault, expected) in [
        ("exit-before-hello", "exit status 3"),
        ("exit-zero-before-hello", "exit status 0"),
        ("bad-version", "no protocol version in common"),
        ("bad-mcp-version", "speaks MCP revision"),
        ("closes-stdout", "closed its stdout"),
    ] {
        let lemon = Lemon::new();
        let hello = format!("hello=python3 '{}'", root("examples/hello-python/hello.py"));
        let ran = run(lemon.command().args(["--plugin", &hello, "--plugin", &zoo(fault), "tools"]));
        assert_eq!(ran.code, Some(4), "{fault}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{fault}: {}", ran.stderr);
        assert!(ran.stderr.contains(fault), "the message names the plugin: {}", ran.stderr);
        assert!(ran.stdout.contains("hello"), "{fault}: {}", ran.stdout);
    }
}

#[test]
fn faults_in_a_call_have_their_own_message_and_code() {
    for (fault, code, expected) in [
        ("die-in-call", 4, "exit status 7"),
        ("kill-self", 4, "SIGKILL"),
        ("huge-line", 4, "too large"),
        ("string-id", 4, "is the string"),
        ("result-null", 4, "not an object"),
        ("hangs", 5, "`echo` did not answer within 1 s"),
    ] {
        let lemon = Lemon::new();
        let timeout = if fault == "hangs" { "1" } else { "60" };
        let ran = run(lemon.command().args(["--plugin", &zoo(fault), "call", "echo", "text=x", "--timeout", timeout]));
        assert_eq!(ran.code, Some(code), "{fault}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{fault}: {}", ran.stderr);
        assert_eq!(ran.stdout, "", "{fault}");
    }
}

#[test]
fn missing_and_unfit_programs_say_what_to_do() {
    let lemon = Lemon::new();
    let script = lemon.home.path().join("script");
    std::fs::write(&script, "echo hello\n").unwrap();
    let config = lemon.config(&format!(
        "[plugins.missing]\ncommand = [\"no-such-program\"]\n[plugins.script]\ncommand = [{script:?}]\n"
    ));
    let ran = run(lemon.command().arg("--config").arg(config).arg("tools"));
    assert_eq!(ran.code, Some(4));
    assert!(ran.stderr.contains("no-such-program was not found"), "{}", ran.stderr);
    assert!(ran.stderr.contains("chmod +x"), "{}", ran.stderr);
}

#[test]
fn hostile_text_never_reaches_the_terminal_raw() {
    let lemon = Lemon::new();
    for arguments in [["tools"].as_slice(), &["status"], &["call", "fail"], &["-v", "tools"], &["--trace", "tools"]] {
        let ran = run(lemon.command().args(["--plugin", &zoo("hostile-text")]).args(arguments));
        for text in [&ran.stdout, &ran.stderr] {
            let bad = text.chars().find(|c| {
                (c.is_control() && *c != '\n' && *c != '\t')
                    || matches!(*c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}'..='\u{200f}')
            });
            // The answer of a tool itself goes to a pipe as it is.
            if arguments[0] != "call" || std::ptr::eq(text, &ran.stderr) {
                assert_eq!(bad, None, "{arguments:?}: {text:?}");
            }
        }
    }
}

#[test]
fn a_secret_is_in_no_message_trace_log_or_list() {
    let lemon = Lemon::new();
    let secret = "s3cr3t-0123456789-value";
    let config = lemon.config(&format!(
        "[plugins.leaky]\ncommand = [\"python3\", {:?}, \"leak-secret\", \"API_KEY\"]\nenv = {{ API_KEY = {{ secret = \"E2E_SECRET\" }} }}\n",
        root("tests/misbehaving/misbehave.py"),
    ));
    for arguments in [
        ["tools"].as_slice(),
        &["tools", "--json"],
        &["status"],
        &["status", "--json"],
        &["-v", "--trace", "tools"],
        &["--trace", "-v", "call", "leak"],
        &["call", "leak", "key=other"],
    ] {
        let mut command = lemon.command();
        let ran = run(command.env("E2E_SECRET", secret).arg("--config").arg(&config).args(arguments));
        assert!(!ran.stderr.contains(secret), "{arguments:?}: {}", ran.stderr);
        assert!(!ran.stdout.contains(secret) || arguments.contains(&"call"), "{arguments:?}: {}", ran.stdout);
    }
    let logs = lemon.home.path().join("logs");
    let log = std::fs::read_to_string(logs.join("leaky.log")).unwrap();
    assert!(log.contains("[redacted]") && !log.contains(secret), "{log}");
    let ran = run(lemon.command().arg("--config").arg(&config).arg("tools"));
    assert!(ran.stderr.contains("E2E_SECRET") && ran.stderr.contains("not set"), "{}", ran.stderr);
}

#[test]
fn a_project_is_named_as_not_trusted_and_nothing_of_it_runs() {
    let lemon = Lemon::new();
    let project = lemon.home.path().join("project");
    std::fs::create_dir_all(project.join(".lemon")).unwrap();
    let proof = project.join("ran");
    std::fs::write(project.join(".lemon/config.toml"), format!("[plugins.evil]\ncommand = [\"touch\", {proof:?}]\n"))
        .unwrap();
    let ran = run(lemon.command().arg("-C").arg(&project).arg("status"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let all = format!("{}{}", ran.stdout, ran.stderr);
    let line =
        format!("the project {} is not trusted: its config is ignored", project.canonicalize().unwrap().display());
    assert!(all.contains(&line), "{all}");
    assert!(!proof.exists());
}

#[test]
fn a_projects_programs_do_not_run_through_the_path_that_a_plugin_gets() {
    let lemon = Lemon::new();
    let project = lemon.home.path().join("project");
    std::fs::create_dir_all(project.join(".git")).unwrap();
    std::fs::create_dir_all(project.join("bin")).unwrap();
    let proof = project.join("ran");
    let program = format!("#!/bin/sh\ntouch {proof:?}\nexec /usr/bin/env -u PATH python3 \"$@\"\n");
    for place in ["bin/python3", "python3"] {
        std::fs::write(project.join(place), &program).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(project.join(place), mode).unwrap();
    }
    let path = std::env::var("PATH").unwrap();
    for path in [format!("{}:{path}", project.join("bin").display()), format!(".:{path}"), format!(":{path}")] {
        let mut command = lemon.command();
        // Its first line is `#!/usr/bin/env python3`.
        let plugin = root("examples/hello-python/hello.py");
        command.env("PATH", &path).arg("-C").arg(&project).args(["--plugin", &plugin, "call", "hello", "name=x"]);
        let ran = run(&mut command);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Hello, x!\n"), "{path}: {}", ran.stderr);
        assert!(!proof.exists(), "{path}");
    }
}
