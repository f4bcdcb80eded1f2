//! Starts processes.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::unix::pipe;

use crate::guard::Link;
use crate::os::{self, Handle, Launch};
use crate::sweep::{Leader, Mark, sweep};
use crate::{Control, Cookie, Process, ProcessSpec, Signal, SpawnError, diagnose};

/// Starts processes. One a host; its clones are the same spawner.
///
/// The guard lives as long as the last clone, and as long as a process that it watches.
#[derive(Debug, Clone)]
pub struct Spawner {
    guard: Option<Arc<Link>>,
}

/// What ends the processes when the host dies without ending them, as by SIGKILL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protection {
    /// The [guard](crate::guard): it ends each process and all its descendants.
    Guard,
    /// The kernel kills each process when its parent dies. Descendants stay.
    ParentDeathSignal,
}

impl Spawner {
    /// Starts the guard if [`guard::init`](crate::guard::init) ran in this program. Without it, or if the
    /// guard can't be started, processes are tied to this one by a parent-death signal.
    #[expect(clippy::new_without_default, reason = "it starts a process, which no default should")]
    pub fn new() -> Self {
        Self { guard: Link::open().map(Arc::new) }
    }

    /// What protects processes that are started now.
    pub fn protection(&self) -> Protection {
        match self.live_guard() {
            Some(_) => Protection::Guard,
            None => Protection::ParentDeathSignal,
        }
    }

    /// The guard's process number, if there is a guard.
    pub fn guard_pid(&self) -> Option<u32> {
        self.guard.as_ref()?.pid()
    }

    /// Starts a process. It is executing its program when this returns.
    ///
    /// Blocks for the time of a posix_spawn (about a millisecond), or of a fork where there is no
    /// guard.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime, or in one without io. Nothing is started then.
    pub fn spawn(&self, spec: &ProcessSpec) -> Result<Process, SpawnError> {
        check_strings(spec)?;
        let failed = |call| {
            let program = spec.program.clone();
            move |source| SpawnError::Os { program, call, source }
        };
        let cookie = Cookie::new();
        let (pipes, theirs) = Pipes::new().map_err(failed("pipe"))?;

        let launch = Launch {
            program: spec.program.clone(),
            argv: [&spec.program].into_iter().map(Into::into).chain(spec.args.clone()).collect(),
            env: environment(spec, &cookie),
            cwd: spec.cwd.clone(),
            stdio: theirs,
        };

        let guard = self.live_guard();
        if let Some(guard) = guard {
            guard.expect(&cookie);
        }
        let started = Instant::now();
        let pid = match start(&launch, guard.is_none()) {
            Ok(pid) => pid,
            Err(error) => {
                if let Some(guard) = guard {
                    guard.forget(&cookie);
                }
                return Err(diagnose::explain(spec, error));
            }
        };

        // Until it is reaped, which only the `Control` does, the number means this process.
        let limited = os::set_limits(pid, &spec.limits);
        let leader = os::start_time(pid).map(|start| Leader { pid, start });
        let mark = Mark { cookie, leader };
        if let Some(guard) = guard {
            guard.add(&mark);
        }
        let control = Handle::open(pid).map_err(|source| ("pidfd_open", source)).and_then(|handle| {
            let name = spec.name.clone();
            Control::new(name, pid, mark.clone(), handle, guard.cloned()).map_err(|source| ("epoll_ctl", source))
        });
        let control = match control {
            Ok(control) => control,
            Err((call, source)) => {
                discard(pid, &mark);
                if let Some(guard) = guard {
                    guard.forget(&mark.cookie);
                }
                return Err(failed(call)(source));
            }
        };
        // From here on the control, dropped, ends the process.
        limited.map_err(failed("prlimit"))?;
        Ok(Process {
            stdin: Some(pipes.stdin),
            stdout: Some(pipes.stdout),
            stderr: Some(pipes.stderr),
            started,
            control,
        })
    }

    fn live_guard(&self) -> Option<&Arc<Link>> {
        self.guard.as_ref().filter(|guard| guard.pid().is_some())
    }
}

/// The host's ends of the three pipes.
struct Pipes {
    stdin: pipe::Sender,
    stdout: pipe::Receiver,
    stderr: pipe::Receiver,
}

impl Pipes {
    /// Made before the process is, so that a missing runtime shows before there is one.
    fn new() -> io::Result<(Self, [OwnedFd; 3])> {
        let (child_stdin, stdin) = os::pipe()?;
        let (stdout, child_stdout) = os::pipe()?;
        let (stderr, child_stderr) = os::pipe()?;
        let ours = Self {
            stdin: pipe::Sender::from_owned_fd(stdin)?,
            stdout: pipe::Receiver::from_owned_fd(stdout)?,
            stderr: pipe::Receiver::from_owned_fd(stderr)?,
        };
        Ok((ours, [child_stdin, child_stdout, child_stderr]))
    }
}

/// A file that was just written may still be open for writing in a child that another thread is forking
/// right now. That passes within milliseconds.
const BUSY_RETRIES: u32 = 5;

fn start(launch: &Launch, tied: bool) -> io::Result<u32> {
    let mut attempt = 0;
    loop {
        let result = match tied {
            true => os::spawn_tied(launch),
            false => os::spawn(launch),
        };
        let busy = |error: &io::Error| error.kind() == io::ErrorKind::ExecutableFileBusy;
        if attempt == BUSY_RETRIES || !result.as_ref().is_err_and(busy) {
            return result;
        }
        std::thread::sleep(Duration::from_millis(1 << attempt));
        attempt += 1;
    }
}

/// Ends a process that was started and can't be watched, as when the host has no file descriptor left.
fn discard(pid: u32, mark: &Mark) {
    sweep(mark, || os::kill_group(pid, Signal::Kill));
    os::wait_for(pid);
}

/// The environment with the cookie, each key once: programs disagree on which of two counts.
fn environment(spec: &ProcessSpec, cookie: &Cookie) -> Vec<(OsString, OsString)> {
    let mut env: Vec<(OsString, OsString)> = Vec::with_capacity(spec.env.len() + 1);
    let cookie = (Cookie::ENV.into(), cookie.as_str().into());
    for (name, value) in spec.env.iter().chain([&cookie]) {
        match env.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => known.clone_from(value),
            None => env.push((name.clone(), value.clone())),
        }
    }
    env
}

fn check_strings(spec: &ProcessSpec) -> Result<(), SpawnError> {
    let has_zero = |text: &std::ffi::OsStr| text.as_encoded_bytes().contains(&0);
    let bad_env = |(name, value): &(OsString, OsString)| has_zero(name) || has_zero(value);
    let place = if has_zero(spec.program.as_os_str()) {
        "the program's path"
    } else if has_zero(spec.cwd.as_os_str()) {
        "the working directory"
    } else if spec.args.iter().any(|arg| has_zero(arg)) {
        "an argument"
    } else if spec.env.iter().any(bad_env) {
        "an environment variable"
    } else {
        return Ok(());
    };
    Err(SpawnError::ZeroByte { place })
}
