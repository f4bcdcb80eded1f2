//! How a plugin ends: with its input, its output, its host, a signal; never with a handler.

use std::process::{Command, Stdio};

use serde_json::json;

use crate::process::{AS_PLUGIN, MAIN, Process, command, ended, ended_in_time, initialize_by, start_time, text};

pub(crate) fn the_end_of_the_input_ends_the_plugin() {
    let ended = Process::start().end();
    assert!(ended.status.success());
    assert_eq!((ended.messages.len(), ended.stderr.as_str()), (0, ""));
}

pub(crate) fn a_call_that_ends_soon_after_the_input_is_still_answered() {
    let mut process = Process::start();
    process.call(1, "soon", json!({}));
    process.call(2, "echo", json!({"text": "x"}));
    process.write(b"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\"}");
    let mut ended = process.end();
    ended.messages.sort_by_key(|message| message["id"].as_u64());
    assert_eq!(ended.messages.len(), 2, "what has no line end is no message");
    assert_eq!(text(&ended.messages[0]), "as soon as I could");
}

pub(crate) fn a_handler_that_hangs_does_not_hold_up_the_end() {
    let mut process = Process::start();
    process.call(1, "hang", json!({}));
    let ended = process.end();
    assert!(ended.status.success());
    assert_eq!(ended.messages[0]["error"]["data"]["kind"], "shutting_down");
}

pub(crate) fn a_handler_that_blocks_the_only_thread_does_not_hold_up_the_end() {
    let mut process = Process::start();
    process.call(1, "block", json!({}));
    process.stderr_says("blocking");
    assert!(process.end().status.success());
}

fn terminate(process: &Process) {
    assert!(Command::new("kill").args(["-TERM", &process.pid()]).status().unwrap().success());
}

pub(crate) fn sigterm_ends_the_plugin() {
    let mut process = Process::start();
    process.call(1, "soon", json!({}));
    process.ask("ping", json!({}));
    terminate(&process);
    let ended = process.wait_in_time();
    assert!(ended.status.success(), "in order: its handlers were told");
    assert_eq!(text(&ended.messages[0]), "as soon as I could");
}

pub(crate) fn after_sigterm_a_handler_that_hangs_is_given_up_in_order() {
    let mut process = Process::start();
    process.call(1, "hang", json!({}));
    process.ask("ping", json!({}));
    terminate(&process);
    let ended = process.wait_in_time();
    assert!(ended.status.success());
    let kind = &ended.messages[0]["error"]["data"]["kind"];
    assert_eq!(kind, "shutting_down", "before the process is taken down: {:?}", ended.messages);
}

/// A program with a `main` of its own, in which a thread is blocked that its runtime waits for.
fn with_a_blocked_thread() -> Process {
    let mut command = command();
    command.env(MAIN, "1");
    let mut process = Process::of(command);
    process.call(1, "block_thread", json!({}));
    process.stderr_says("blocking");
    process
}

pub(crate) fn a_runtime_that_waits_for_a_blocked_thread_does_not_hold_up_the_end() {
    let ended = with_a_blocked_thread().end();
    assert!(ended.stderr.contains("served"), "the program was at its own end: {}", ended.stderr);
}

pub(crate) fn sigterm_ends_a_program_that_no_longer_serves() {
    let mut process = with_a_blocked_thread();
    process.call(2, "give_up", json!({}));
    process.stderr_says("served");
    // Its input is still open.
    terminate(&process);
    process.wait_in_time();
}

pub(crate) fn what_is_done_at_an_exit_does_not_hold_up_the_end() {
    let mut child = command().spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "stuck", "arguments": {}}});
    std::io::Write::write_all(&mut input, format!("{call}\n").as_bytes()).unwrap();
    // It begins to write on stderr, which nobody reads on, and what is buffered for stdout goes there too.
    std::io::Read::read_exact(child.stderr.as_mut().unwrap(), &mut [0; 1]).unwrap();
    drop(input);
    assert!(ended_in_time(&mut child).success());
}

pub(crate) fn a_socket_that_is_shut_down_in_one_direction_is_an_end_too() {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut command = command();
    command.stdin(std::os::fd::OwnedFd::from(theirs));
    let process = Process::of(command);
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "block", "arguments": {}}});
    std::io::Write::write_all(&mut &ours, format!("{call}\n").as_bytes()).unwrap();
    process.stderr_says("blocking");
    ours.shutdown(std::net::Shutdown::Write).unwrap();
    process.wait_in_time();
}

pub(crate) fn sigterm_ends_a_plugin_whose_only_thread_is_blocked() {
    let mut process = Process::start();
    process.call(1, "block", json!({}));
    process.stderr_says("blocking");
    terminate(&process);
    process.wait_in_time();
}

pub(crate) fn the_death_of_the_host_ends_the_plugin_though_the_pipe_stays_open() {
    let mut host = Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn().unwrap();
    let mut process = Process::of_lemon(host.id());
    process.ask("ping", json!({}));
    host.kill().unwrap();
    host.wait().unwrap();
    // This test holds the pipe, as a process that the host left behind would.
    assert!(process.wait_in_time().status.success());
}

pub(crate) fn a_host_that_died_before_its_offer_was_read_ends_the_plugin() {
    // A shell is the host, and starts the plugin on its own streams. What runs in the background has no input of its
    // own but for the copy.
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"exec 3<&0; "$0" <&3 3<&- & exec sleep 1000 >/dev/null 2>&1"#]);
    shell.arg(std::env::current_exe().unwrap()).env(AS_PLUGIN, "1");
    shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut host = Process::of(shell);
    host.ask("ping", json!({}));
    let pid: u32 = host.pid().parse().unwrap();
    let process = json!({"pid": pid, "startTime": start_time(pid)});
    host.kill();
    host.send(1, "initialize", initialize_by(Some(process)));
    // This test holds the input open. The output ends with the plugin, which has it from the shell.
    while host.try_next().is_some() {}
}

pub(crate) fn a_host_that_can_not_be_seen_does_not_end_the_plugin() {
    let mut child = Command::new("true").spawn().unwrap();
    let process = json!({"pid": child.id(), "startTime": start_time(child.id())});
    child.wait().unwrap();
    let mut plugin = Process::start();
    // It never was among those that started the plugin: it may be one of another machine.
    plugin.ask("initialize", initialize_by(Some(process)));
    for _ in 0..3 {
        plugin.ask("ping", json!({}));
    }
    assert!(plugin.end().status.success());
}

pub(crate) fn an_output_that_nobody_reads_any_more_ends_the_plugin() {
    let mut child = command().spawn().unwrap();
    drop(child.stdout.take());
    let mut input = child.stdin.take().unwrap();
    // The plugin may be gone already at the second.
    for _ in 0..2 {
        let _ = std::io::Write::write_all(&mut input, b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n");
    }
    assert!(ended(&mut child).success());
    drop(input);
}

pub(crate) fn an_output_that_is_open_but_never_read_ends_the_plugin() {
    let mut child = command().spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let id = "i".repeat(1 << 20);
    let ping = json!({"jsonrpc": "2.0", "id": id, "method": "ping"}).to_string() + "\n";
    // Each is answered with as many bytes. Writing fails once the plugin is gone.
    let refused = (0..200).find(|_| std::io::Write::write_all(&mut input, ping.as_bytes()).is_err());
    assert!(refused.is_some(), "it reads for ever");
    assert!(ended(&mut child).success());
}

pub(crate) fn what_is_wrong_with_the_plugin_is_told_on_stderr() {
    let mut command = command();
    command.env("BROKEN", "1");
    let ended = Process::of(command).wait();
    assert_eq!(ended.status.code(), Some(1));
    let expected = "Error: tool broken: the type of its arguments: uint32 is no object in JSON";
    assert!(ended.stderr.starts_with(expected), "{}", ended.stderr);
}
