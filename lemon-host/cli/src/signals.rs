//! The signals that ask the program to end: the first one nicely, the second one at once.

use std::future::pending;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::exit::Exit;

/// What has come so far. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Signals {
    first: CancellationToken,
    second: CancellationToken,
    exit: Arc<OnceLock<Exit>>,
    interrupt: Arc<Mutex<Interrupt>>,
}

/// What Ctrl-C does.
#[derive(Debug, Clone, Default)]
pub(crate) enum Interrupt {
    /// It ends the program, like the other signals.
    #[default]
    Ends,
    /// It cancels what is being done, and the second one ends the program.
    Cancels(CancellationToken),
    /// Nothing is being done.
    Idle,
}

impl Interrupt {
    /// Whether that was all.
    fn is_enough(&self) -> bool {
        match self {
            Self::Ends => false,
            Self::Cancels(token) if token.is_cancelled() => false,
            Self::Cancels(token) => {
                token.cancel();
                true
            }
            Self::Idle => true,
        }
    }
}

impl Signals {
    /// Takes the signals over from now on.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn listen() -> io::Result<Self> {
        let signals = Self::default();
        let ignored = ignored();
        // What is ignored at the start stays so: `nohup lemon …` must not end with its terminal.
        let take = |kind: SignalKind| -> io::Result<Option<Signal>> {
            let is_ignored = ignored & (1 << (kind.as_raw_value() - 1)) != 0;
            if is_ignored { Ok(None) } else { signal(kind).map(Some) }
        };
        let mut interrupt = take(SignalKind::interrupt())?;
        let mut terminate = take(SignalKind::terminate())?;
        let mut hangup = take(SignalKind::hangup())?;
        let heard = signals.clone();
        tokio::spawn(async move {
            loop {
                let exit = tokio::select! {
                    () = next(&mut interrupt) => {
                        if heard.interrupt().is_enough() {
                            continue;
                        }
                        Exit::Interrupt
                    }
                    () = next(&mut terminate) => Exit::Terminate,
                    () = next(&mut hangup) => Exit::Hangup,
                };
                if heard.exit.set(exit).is_ok() {
                    heard.first.cancel();
                } else {
                    heard.second.cancel();
                }
            }
        });
        Ok(signals)
    }

    /// Says what Ctrl-C does from now on.
    pub(crate) fn on_interrupt(&self, interrupt: Interrupt) {
        *self.interrupt() = interrupt;
    }

    /// From now on Ctrl-C is about what begins here; the token is the same until something else is said.
    pub(crate) fn cancelling(&self) -> CancellationToken {
        let mut interrupt = self.interrupt();
        if let Interrupt::Cancels(token) = &*interrupt {
            return token.clone();
        }
        let token = CancellationToken::new();
        *interrupt = Interrupt::Cancels(token.clone());
        token
    }

    fn interrupt(&self) -> MutexGuard<'_, Interrupt> {
        self.interrupt.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancelled by the first signal.
    pub(crate) fn token(&self) -> &CancellationToken {
        &self.first
    }

    /// Waits for the first signal.
    pub(crate) async fn first(&self) {
        self.first.cancelled().await;
    }

    /// Waits for the second signal.
    pub(crate) async fn second(&self) {
        self.second.cancelled().await;
    }

    /// The exit code of the first signal, if one has come.
    pub(crate) fn received(&self) -> Option<Exit> {
        self.exit.get().copied()
    }
}

async fn next(signal: &mut Option<Signal>) {
    let heard = match signal {
        Some(signal) => signal.recv().await,
        None => None,
    };
    // Nothing can come any more.
    if heard.is_none() {
        pending().await
    }
}

/// The signals that this program was started with ignored, one bit each; none where that can't be told.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ctrl_c_cancels_what_is_done_and_the_second_one_is_not_enough() {
        let signals = Signals::default();
        assert!(!signals.interrupt().is_enough(), "it ends the program unless something else is said");
        signals.on_interrupt(Interrupt::Idle);
        assert!(signals.interrupt().is_enough());
        let command = signals.cancelling();
        assert!(signals.interrupt().is_enough() && command.is_cancelled());
        assert!(signals.cancelling().is_cancelled(), "it came before the command was looked at");
        assert!(!signals.interrupt().is_enough());
        signals.on_interrupt(Interrupt::Idle);
        assert!(!signals.cancelling().is_cancelled());
    }
}
