//! The `lemon` program, and what the tests look at beside its output.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Output};
use std::time::{Duration, Instant};

use assert_cmd::Command;
use tempfile::TempDir;

/// A path of the repository.
pub(crate) fn root(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    root.join(path).display().to_string()
}

/// A `--plugin` value that starts the zoo with one fault, under the fault's name.
pub(crate) fn zoo(fault: &str) -> String {
    let name = fault.split(' ').next().unwrap();
    format!("{name}=python3 '{}' {fault}", root("tests/misbehaving/misbehave.py"))
}

/// A `lemon` with a home folder of its own, so that nothing of the user's takes part.
pub(crate) struct Lemon {
    pub(crate) home: TempDir,
}

impl Lemon {
    pub(crate) fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lemon"));
        command.env("LEMON_HOME", self.home.path()).current_dir(self.home.path());
        command.timeout(Duration::from_secs(120));
        command
    }

    /// The same for tests that look at the process while it runs. Its signals are at their default, as in a terminal:
    /// a shell starts what runs in the background with SIGINT ignored.
    #[expect(clippy::disallowed_methods, reason = "the host itself is the child here")]
    pub(crate) fn process(&self) -> std::process::Command {
        let mut command = std::process::Command::new("env");
        command.args(["--default-signal=INT,HUP,TERM", env!("CARGO_BIN_EXE_lemon")]);
        command.env("LEMON_HOME", self.home.path()).current_dir(self.home.path());
        command
    }

    /// Writes a config file and gives its path.
    pub(crate) fn config(&self, text: &str) -> PathBuf {
        let path = self.home.path().join("test.toml");
        std::fs::write(&path, text).unwrap();
        path
    }
}

/// What a run printed.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

pub(crate) fn run(command: &mut Command) -> Ran {
    let output = command.output().unwrap();
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Processes that have `marker` in their environment, and are no zombies.
pub(crate) fn marked(marker: &str) -> BTreeSet<u32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == marker.as_bytes())
    })
    .collect()
}

/// Waits for something to become true.
pub(crate) fn until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what} never came true");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits for a process that ought to end, and ends it if it does not.
pub(crate) fn finish(mut host: Child) -> Output {
    let start = Instant::now();
    while host.try_wait().unwrap().is_none() {
        if start.elapsed() > Duration::from_secs(60) {
            host.kill().unwrap();
            panic!("it did not end: {:?}", host.wait_with_output());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    host.wait_with_output().unwrap()
}
