//! What the tests share.

use std::ffi::OsString;
use std::fs;
use std::future::Future;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use lemon_process::{Grace, Process, ProcessSpec, ResourceLimits, Spawner};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::unix::pipe;

/// So long a test waits for what has to happen.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// A grace that a test does not run out of.
pub(crate) const PATIENT: Grace = Grace { eof: DEADLINE, term: DEADLINE };

pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let within = async { tokio::time::timeout(DEADLINE * 2, test).await };
    runtime.unwrap().block_on(within).expect("in time")
}

pub(crate) fn spec(program: &str, args: &[&str]) -> ProcessSpec {
    ProcessSpec {
        name: "test".into(),
        program: PathBuf::from(program),
        args: args.iter().map(OsString::from).collect(),
        cwd: "/".into(),
        env: vec![("PATH".into(), std::env::var_os("PATH").unwrap())],
        limits: ResourceLimits::default(),
    }
}

pub(crate) fn sh(script: &str) -> ProcessSpec {
    spec("/bin/sh", &["-c", script])
}

pub(crate) fn spawn(spec: &ProcessSpec) -> Process {
    Spawner::new().spawn(spec).unwrap()
}

pub(crate) fn lines(process: &mut Process) -> BufReader<pipe::Receiver> {
    BufReader::new(process.stdout.take().unwrap())
}

pub(crate) async fn next_line(lines: &mut BufReader<pipe::Receiver>) -> String {
    let mut line = String::new();
    lines.read_line(&mut line).await.unwrap();
    line.trim_end().to_owned()
}

pub(crate) async fn next_pid(lines: &mut BufReader<pipe::Receiver>) -> u32 {
    next_line(lines).await.parse().unwrap()
}

pub(crate) fn close_stdin(process: &mut Process) {
    process.control().closing_stdin();
    drop(process.stdin.take());
}

/// All of a process's output, then its end.
pub(crate) async fn output(mut process: Process) -> String {
    drop(process.stdin.take());
    let mut text = String::new();
    process.stdout.take().unwrap().read_to_string(&mut text).await.unwrap();
    process.control().end(PATIENT).await;
    text
}

/// Whether a process is there and not a zombie that waits for whoever inherited it.
pub(crate) fn is_alive(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(") ").next().unwrap_or_default().starts_with('Z'))
}

/// Waits until it is so, and fails if it does not come to be.
#[track_caller]
pub(crate) fn until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < DEADLINE, "{what} did not come to be");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn kill(pid: u32, signal: nix::sys::signal::Signal) {
    let pid = nix::unistd::Pid::from_raw(i32::try_from(pid).unwrap());
    nix::sys::signal::kill(pid, signal).unwrap();
}

/// A set of signals in the text of /proc/PID/status. The two that libc keeps for itself, and lets every
/// child ignore, are left out.
pub(crate) fn signal_mask(status: &str, name: &str) -> u64 {
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    let mask = u64::from_str_radix(line.split_whitespace().nth(1).unwrap(), 16).unwrap();
    mask & !(0b11 << 31)
}
