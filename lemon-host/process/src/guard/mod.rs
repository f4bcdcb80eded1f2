//! A process that outlives the host by a moment, to end what the host could not.
//!
//! A host that dies by SIGKILL, or of a lack of memory, runs no code any more. Its processes see the end
//! of their stdin, and most of them go; the guard sees the end of its own, and ends the rest: it waits
//! the grace, sends SIGTERM, then SIGKILL, to all groups that it was told of and to all that carries
//! one of their cookies, until none is left.
//!
//! ```text
//! host ──"expect COOKIE"──────────────▶ guard     before a process is started
//!      ──"add PID START COOKIE EOF TERM"▶          right after
//!      ──"forget COOKIE"───────────────▶          once it was ended and reaped
//!      ──end of file, or the host is gone▶        ends all that was not forgotten, and exits
//! ```
//!
//! The guard is this very program, executed again, in a session of its own so that no signal from a
//! terminal or to the host's group reaches it, and with no cookie in its environment, so that no other
//! host's sweep does. If it dies, a thread of the host notices and starts another. After five deaths
//! in ten seconds there is none any more, and [`Spawner::protection`](crate::Spawner::protection) says
//! so.

mod link;
mod order;
mod watch;

pub(crate) use link::Link;

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether this program, executed again, would become the guard.
static AVAILABLE: AtomicBool = AtomicBool::new(false);

/// Makes this program able to be its own guard. Call it first of all in `main`, before any thread,
/// argument or environment variable matters.
///
/// Where the program was started as the guard, this never returns.
pub fn init() {
    if let Some(host) = watch::host() {
        watch::run(host);
    }
    AVAILABLE.store(true, Ordering::Release);
}

/// The name under which process listings show the guard.
const NAME: &str = "lemon-guard";

/// Holds the host's process number and start time in the guard's environment. Together with the name
/// it tells the guard that it is one.
const ENV: &str = "LEMON_GUARD";
