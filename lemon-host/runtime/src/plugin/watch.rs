//! Watches one process: what its peer raises, and how it ends.

use std::time::Duration;

use lemon_process::Control;
use lemon_process::stderr::StderrTail;
use tokio::sync::{mpsc, oneshot};

use super::generation::Generation;
use super::supervisor::Message;
use crate::error::ProcessEnd;
use crate::report::PluginText;
use crate::wire::{Peer, PeerEvent};

/// How long the pipes of a process that ended may stay open, held by something it left behind.
const LEAK: Duration = Duration::from_millis(200);
/// Lines of stderr that an error carries.
const STDERR_LINES: usize = 10;

/// Reports what a process does, until it has ended or closed its stdout.
pub(super) async fn watch_process(
    generation: Generation,
    peer: Peer,
    control: Control,
    stderr_done: oneshot::Receiver<()>,
    sender: mpsc::Sender<Message>,
) {
    let exited = control.exited();
    tokio::pin!(exited);
    // What a process wrote before its end is still in the pipes.
    let rest = async {
        while peer.event().await != PeerEvent::StdoutClosed {}
        let _ = stderr_done.await;
    };
    let end = loop {
        let event = tokio::select! {
            status = &mut exited => {
                let _ = tokio::time::timeout(LEAK, rest).await;
                break ProcessEnd::Exited(status);
            }
            event = peer.event() => event,
        };
        let closed = match event {
            PeerEvent::StdoutClosed => ProcessEnd::ClosedStdout,
            PeerEvent::StdinClosed => ProcessEnd::ClosedStdin,
            event => {
                let _ = sender.send(Message::Peer(generation, event)).await;
                continue;
            }
        };
        break match tokio::time::timeout(LEAK, &mut exited).await {
            Ok(status) => {
                // After stdout only stderr is left; its end is not raised again.
                if closed == ProcessEnd::ClosedStdout {
                    peer.raise(PeerEvent::StdoutClosed);
                }
                let _ = tokio::time::timeout(LEAK, rest).await;
                ProcessEnd::Exited(status)
            }
            Err(_) => closed,
        };
    };
    let _ = sender.send(Message::Lost(generation, end)).await;
}

/// The last lines of stderr.
pub(super) fn stderr_text(stderr: &StderrTail) -> PluginText {
    PluginText::new(stderr.last_lines(STDERR_LINES).join("\n"))
}
