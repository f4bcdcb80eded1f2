//! This program, started again as a host that is going to be killed.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use lemon_process::Spawner;
use nix::sys::signal::Signal;

use super::leaks;
use super::support::*;

/// The environment variable that names the role.
pub(crate) const ROLE: &str = "LEMON_TEST_ROLE";

/// A host, seen by the test. It is killed if the test forgets it.
pub(crate) struct Host {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Host {
    pub(crate) fn start(role: &str) -> Self {
        Self::start_in(role, Path::new("/"))
    }

    pub(crate) fn start_in(role: &str, folder: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.env(ROLE, role).current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// The next line of numbers.
    pub(crate) fn pids(&mut self) -> Vec<u32> {
        self.line().split(' ').map(|pid| pid.parse().unwrap()).collect()
    }

    /// The number of its guard now.
    pub(crate) fn ask(&mut self) -> u32 {
        self.child.stdin.as_mut().unwrap().write_all(b"?\n").unwrap();
        self.pids()[0]
    }

    /// Kills it as the kernel does when memory runs out.
    pub(crate) fn kill(&mut self) {
        kill(self.child.id(), Signal::SIGKILL);
        self.child.wait().unwrap();
    }

    /// Lets it go its way.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        drop(self.child.stdin.take());
        self.child.wait().unwrap()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn play(role: &str) {
    match role {
        "leaks" => leaks::role(),
        "orderly" => host(End::Orderly),
        "hasty" => host(End::Hasty),
        "panicking" => host(End::Panicking),
        "aborting" => host(End::Aborting),
        other => panic!("no role {other}"),
    }
}

enum End {
    Orderly,
    Hasty,
    Panicking,
    Aborting,
}

/// Ignores the end of its input and SIGTERM, like its descendant in its group and the one outside.
const STUBBORN: &str = "trap '' TERM
sleep 1000 & echo $!
setsid sh -c 'echo $$; exec sleep 1000' &
read line
exec sleep 1000";

/// Needs a moment to go, and gets it.
const POLITE: &str = "trap 'exit 9' TERM; echo $$; read line; sleep 0.3; echo bye > bye";

/// Says first the guard's number, then those of all that has to go, then waits for its input's end.
fn host(end: End) {
    run_long(async {
        let spawner = Spawner::new();
        println!("{}", spawner.guard_pid().unwrap_or_default());
        let mut stubborn = spawner.spawn(&sh(STUBBORN)).unwrap();
        let mut lines_of = lines(&mut stubborn);
        let (one, two) = (next_pid(&mut lines_of).await, next_pid(&mut lines_of).await);
        println!("{} {one} {two}", stubborn.pid());
        let mut polite = sh(POLITE);
        polite.cwd = std::env::current_dir().unwrap();
        let mut polite = spawner.spawn(&polite).unwrap();
        next_pid(&mut lines(&mut polite)).await;
        println!("{}", polite.pid());

        // Answers each line with the guard's number.
        let questions = std::io::stdin().lock().lines();
        for _ in questions {
            println!("{}", spawner.guard_pid().unwrap_or_default());
        }
        match end {
            End::Orderly => {}
            End::Hasty => std::process::exit(0),
            End::Panicking => panic!("this host panics"),
            End::Aborting => std::process::abort(),
        }
        stubborn.control().kill().await;
        polite.control().kill().await;
    });
}

fn run_long<T>(host: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(host)
}
