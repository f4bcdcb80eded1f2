//! A start that ties the program's life to the host's, for hosts without a guard.
//!
//! The kernel's parent-death signal is bound to the *thread* that forked: it is sent when that thread
//! ends, though the host lives on. So one thread, which never ends, starts all of them. It forks,
//! which takes longer the more memory the host has, and the signal reaches the program alone and not
//! what it started.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use super::check;
use super::spawn::Image;
use crate::os::Launch;

struct Request {
    launch: Launch,
    reply: Sender<io::Result<u32>>,
}

/// Starts a program that the kernel kills when the host dies.
pub(crate) fn spawn_tied(launch: &Launch) -> io::Result<u32> {
    static THREAD: OnceLock<Option<Sender<Request>>> = OnceLock::new();
    let gone = || io::Error::other("the thread that starts processes is not there");
    let thread = THREAD.get_or_init(start_thread).as_ref().ok_or_else(gone)?;
    let launch = launch.try_clone()?;
    let (reply, answer) = channel();
    thread.send(Request { launch, reply }).map_err(|_| gone())?;
    answer.recv().map_err(|_| gone())?
}

fn start_thread() -> Option<Sender<Request>> {
    let (requests, inbox) = channel::<Request>();
    let serve = move || {
        for Request { launch, reply } in inbox {
            // The asker waits for it, so it is there.
            let _ = reply.send(fork(launch));
        }
    };
    let thread = thread::Builder::new().name("lemon-spawn".into()).spawn(serve);
    thread.is_ok().then_some(requests)
}

#[expect(clippy::disallowed_methods, reason = "this is where processes are started")]
fn fork(launch: Launch) -> io::Result<u32> {
    let image = Image::new(&launch)?;
    let [stdin, stdout, stderr] = launch.stdio.map(Stdio::from);
    let mut command = Command::new(&launch.program);
    command.current_dir(&launch.cwd);
    command.stdin(stdin).stdout(stdout).stderr(stderr);
    let host = std::process::id();
    let start = move || {
        prepare(host)?;
        // Not left to std, which has a shell run what the kernel can't.
        Err(image.execute())
    };
    // SAFETY: between fork and exec the closure makes system calls only: it takes no lock and
    // allocates nothing.
    unsafe { command.pre_exec(start) };
    // The caller reaps it, by its number.
    Ok(command.spawn()?.id())
}

/// Runs in the child, before the program is executed.
fn prepare(host: u32) -> io::Result<()> {
    // SAFETY: plain system calls; the set is initialised before it is used. What signal and
    // close_range may refuse (numbers that libc keeps for itself, a kernel before 5.11) can't be helped.
    unsafe {
        check(libc::setsid())?;
        check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong))?;
        // Had the host died before, no signal would come any more.
        if libc::getppid().unsigned_abs() != host {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        for signal in 1..=libc::SIGRTMAX() {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
        let flags = libc::CLOSE_RANGE_CLOEXEC;
        libc::syscall(libc::SYS_close_range, 3 as libc::c_uint, libc::c_uint::MAX, flags);
    }
    Ok(())
}
