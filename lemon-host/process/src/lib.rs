//! One child process and its whole tree: started cleanly, watched, and ended for sure.
//!
//! The crate knows no protocol. It starts a program in a session of its own with three pipes,
//! exactly the environment it is given and nothing else inherited; tells how the program
//! ended; and, when asked or when the host itself dies, leaves none of its descendants behind.
//!
//! ```no_run
//! use lemon_process::{Grace, ProcessSpec, ResourceLimits, Spawner, guard};
//!
//! # #[allow(clippy::needless_doctest_main)]
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     // First of all: this program is also started as the guard of its own plugins.
//!     guard::init();
//!     let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//!     runtime.block_on(async {
//!         let spawner = Spawner::new();
//!         let mut process = spawner.spawn(&ProcessSpec {
//!             name: "hello".into(),
//!             program: "/usr/bin/cat".into(),
//!             args: vec![],
//!             cwd: "/".into(),
//!             env: vec![],
//!             limits: ResourceLimits::default(),
//!         })?;
//!         process.control().closing_stdin();
//!         drop(process.stdin.take()); // end of file: please go
//!         let ending = process.control().end(Grace::default()).await;
//!         assert_eq!(ending.status.to_string(), "exit status 0");
//!         Ok(())
//!     })
//! }
//! ```
//!
//! # How a process and its descendants end
//!
//! 1. The caller closes stdin, and [`Control::end`] waits for the exit, then sends SIGTERM to the
//!    process group, waits again, then sends SIGKILL.
//! 2. The **sweep** kills what is left of the group, and then everything whose environment
//!    carries this process's [`Cookie`], so that neither `setsid` nor a double fork escapes.
//!    Outside the group nothing without the cookie is ever killed.
//! 3. Only then is the process reaped, since until that moment its number, which is the
//!    group's number too, can't be given to a stranger.
//!
//! When the host is killed and can do none of this, the [`guard`] does it.
//!
//! # What can still escape
//!
//! A descendant that leaves the group *and* starts a program with a cleaned environment, or
//! overwrites its own environment block, or runs as another user than the host (unless the host
//! is root). And a chain of processes outside the group, each of which forks the next one and exits
//! within microseconds: it is never where it was seen. Only a cgroup would hold these.
//!
//! SIGPIPE must be ignored in the host, as Rust does by default: the pipes of a
//! process that died would otherwise kill the host that writes to them.

#![warn(missing_docs)]

mod control;
mod cookie;
mod diagnose;
mod environment;
mod error;
pub mod files;
pub mod guard;
pub mod lookup;
mod os;
mod process;
mod spawner;
mod spec;
mod status;
pub mod stderr;
mod sweep;

pub use control::Control;
pub use cookie::Cookie;
pub use environment::environment_base;
pub use error::SpawnError;
pub use process::Process;
pub use spawner::{Protection, Spawner};
pub use spec::{ProcessSpec, ResourceLimits};
pub use status::{Ending, ExitStatus, Grace, Signal, Step};

/// When process `pid` started, in clock ticks since the boot; `None` if there is no such process.
///
/// A process number and its start time together name one process for ever: the number alone
/// is given to another one later.
pub fn process_start_time(pid: u32) -> Option<u64> {
    os::start_time(pid)
}
