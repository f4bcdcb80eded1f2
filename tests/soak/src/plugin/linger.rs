//! This program as a process that a plugin leaves behind.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use signal_hook::consts::{SIGHUP, SIGTERM};

/// Starts one, which holds the plugin's stdout.
#[expect(clippy::disallowed_methods, reason = "it is a plugin's child, which no host may know of")]
pub(super) fn leave(own_session: bool) {
    let Ok(program) = std::env::current_exe() else { return };
    let mut command = Command::new(program);
    command.arg("linger").args(own_session.then_some("--own-session")).stdin(Stdio::null());
    // It is never waited for, like those of careless plugins.
    drop(command.spawn());
}

/// Stays until it is killed.
pub(crate) fn linger(own_session: bool) -> Result<()> {
    ignore_ends(&Arc::default())?;
    if own_session {
        nix::unistd::setsid()?;
    }
    super::stdio::wait_for_ever()
}

/// Ignores what asks a process to end.
pub(super) fn ignore_ends(ignored: &Arc<AtomicBool>) -> Result<()> {
    for signal in [SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, ignored.clone())?;
    }
    Ok(())
}
