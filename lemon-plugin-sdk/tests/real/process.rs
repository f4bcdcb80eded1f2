//! A plugin's process and its client: lines in, lines out, every wait with an end.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Set where this program is to be the plugin.
pub(crate) const AS_PLUGIN: &str = "LEMON_SDK_TEST_PLUGIN";
/// Set where the plugin is to be served by a `main` with a runtime of its own.
pub(crate) const MAIN: &str = "LEMON_SDK_TEST_MAIN";
/// How long a test waits for what ought to come at once, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long the end of a plugin may take, which the protocol bounds: two seconds, and as much as a busy machine adds.
const IN_TIME: Duration = Duration::from_secs(5);

pub(crate) fn command() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(AS_PLUGIN, "1").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub(crate) struct Process {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    stderr: Receiver<String>,
    readers: Vec<JoinHandle<()>>,
}

impl Process {
    pub(crate) fn start() -> Self {
        Self::of(command())
    }

    pub(crate) fn of(command: Command) -> Self {
        let mut process = Self::unread(command);
        process.read();
        process
    }

    /// Reads nothing of its output yet.
    pub(crate) fn unread(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let (stderr, reads_stderr) = follow(child.stderr.take().unwrap());
        Self { input: child.stdin.take(), child, lines: channel().1, stderr, readers: vec![reads_stderr] }
    }

    /// Begins to read its output.
    pub(crate) fn read(&mut self) {
        let (lines, reads_lines) = follow(self.child.stdout.take().unwrap());
        self.lines = lines;
        self.readers.push(reads_lines);
    }

    /// After the handshake of a Lemon host whose process is the one given.
    pub(crate) fn of_lemon(host: u32) -> Self {
        let mut process = Self::start();
        let answer = process.ask("initialize", initialize(Some(host)));
        assert!(answer["result"].is_object(), "{answer}");
        process
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    pub(crate) fn line(&mut self, line: &str) {
        self.write(format!("{line}\n").as_bytes());
    }

    pub(crate) fn send(&mut self, id: impl Into<Value>, method: &str, params: Value) {
        self.line(&json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params}).to_string());
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.line(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    pub(crate) fn call(&mut self, id: impl Into<Value>, tool: &str, arguments: Value) {
        self.send(id, "tools/call", json!({"name": tool, "arguments": arguments}));
    }

    /// The next message.
    pub(crate) fn next(&self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// The next message; none at the end of the output.
    pub(crate) fn try_next(&self) -> Option<Value> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => Some(serde_json::from_str(&line).unwrap()),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("neither a message nor the end"),
        }
    }

    /// Sends a request and takes its answer, which must be the next message.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        self.send("ask", method, params);
        let answer = self.next();
        assert_eq!(answer["id"], "ask", "{answer}");
        answer
    }

    /// Waits for a line on stderr.
    pub(crate) fn stderr_says(&self, text: &str) {
        while !self.stderr.recv_timeout(PATIENCE).unwrap().contains(text) {}
    }

    pub(crate) fn pid(&self) -> String {
        self.child.id().to_string()
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    /// Waits for the end without closing anything.
    pub(crate) fn wait(self) -> Ended {
        self.wait_within(PATIENCE)
    }

    /// The same for an end that has its time.
    pub(crate) fn wait_in_time(self) -> Ended {
        self.wait_within(IN_TIME)
    }

    fn wait_within(mut self, bound: Duration) -> Ended {
        let status = ended_within(&mut self.child, bound);
        self.readers.into_iter().for_each(|reader| reader.join().unwrap());
        let messages = self.lines.iter().map(|line| serde_json::from_str(&line).unwrap()).collect();
        Ended { status, messages, stderr: self.stderr.iter().map(|line| line + "\n").collect() }
    }

    /// Closes the input and waits for the end, which has its time.
    pub(crate) fn end(mut self) -> Ended {
        self.close_input();
        self.wait_in_time()
    }
}

/// Waits for the end of a process that ought to end by itself.
pub(crate) fn ended(child: &mut Child) -> ExitStatus {
    ended_within(child, PATIENCE)
}

/// The same for an end that has its time.
pub(crate) fn ended_in_time(child: &mut Child) -> ExitStatus {
    ended_within(child, IN_TIME)
}

fn ended_within(child: &mut Child, bound: Duration) -> ExitStatus {
    let start = Instant::now();
    loop {
        match child.try_wait().unwrap() {
            Some(status) => return status,
            None if start.elapsed() > bound => {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("it did not end");
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// What a process left behind.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    /// The messages that nobody had taken yet.
    pub(crate) messages: Vec<Value>,
    pub(crate) stderr: String,
}

fn follow(stream: impl Read + Send + 'static) -> (Receiver<String>, JoinHandle<()>) {
    let (sender, lines) = channel();
    let reader = std::thread::spawn(move || {
        for line in BufReader::new(stream).lines() {
            let Ok(line) = line else { return };
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    (lines, reader)
}

/// The params of `initialize`, with an offer if a host's process is given.
pub(crate) fn initialize(host: Option<u32>) -> Value {
    initialize_by(host.map(|pid| json!({"pid": pid, "startTime": start_time(pid)})))
}

/// The same, with the process as the offer has it.
pub(crate) fn initialize_by(host: Option<Value>) -> Value {
    let mut capabilities = json!({});
    if let Some(process) = host {
        let offer = json!({"versions": ["1.0"], "methods": [], "maxMessageBytes": 16 << 20, "process": process});
        capabilities = json!({"experimental": {"dev.lemon/plugin": offer}, "extensions": {"dev.lemon/plugin": {}}});
    }
    let client = json!({"name": "test", "version": "1"});
    json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client})
}

pub(crate) fn start_time(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// The text of a result.
pub(crate) fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}
