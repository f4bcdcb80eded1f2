//! One connection: what both sides share, from the first byte to the last.
//!
//! A reader hands each line to [`dispatch`]; whatever needs time runs as a task of its own; all that goes out passes the
//! [`outbox`]. The connection ends with its input, with an output that nobody reads, or when it is told to.

pub(crate) mod calls;
mod dispatch;
pub(crate) mod era;
mod handshake;
pub(crate) mod message;
pub(crate) mod outbox;
mod pending;
mod running;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lemon_protocol::{LineSplitter, Piece, RequestId, method};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use self::calls::Calls;
use self::era::{Era, Peer};
use self::message::{Log, Notification, Version};
use self::outbox::{Outbox, Unsent};
use self::pending::Pending;
use crate::config::Config;
use crate::context::Level;
use crate::definition::Definition;
use crate::error::ConfigError;
use crate::session::Sessions;
use crate::stdio::{Signals, Watch};

/// The longest line that is read (LPP-LIM-05).
const INBOUND: usize = 16 << 20;
/// The longest line that is sent to a client which does not say what it takes: some published ones break above it.
const OUTBOUND: usize = 10 << 20;

pub(crate) struct Connection {
    pub(crate) definition: Arc<Definition>,
    pub(crate) outbox: Outbox,
    pub(crate) pending: Pending,
    peer: Mutex<Peer>,
    calls: Calls,
    sessions: Sessions,
    config: Config,
    /// What handlers run on; they may tell of progress from threads that know of no runtime.
    pub(crate) runtime: Handle,
    /// Handlers, each a task.
    tasks: TaskTracker,
    /// Handlers that still run are dropped.
    abandon: CancellationToken,
    /// Watches the process from outside of the runtime; none for a plugin in memory.
    watch: Option<Watch>,
    put_away: PutAway,
}

/// What the plugin does before its end: one task, which nobody drops.
#[derive(Default)]
struct PutAway {
    started: AtomicBool,
    done: CancellationToken,
}

/// How long handlers have to end once the connection does; then a moment is left for the last answers.
const GRACE: Duration = Duration::from_millis(1_300);
/// The same after SIGTERM.
const SHORT_GRACE: Duration = Duration::from_millis(500);
const LAST_WORDS: Duration = Duration::from_millis(200);

/// So many lines are taken in before handlers have a turn.
const BATCH: usize = 64;

/// Serves until the end of the input, of the output, or until told to end.
pub(crate) async fn serve(
    definition: Arc<Definition>,
    mut input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
    watch: Option<Watch>,
    signals: Signals,
) -> io::Result<()> {
    let connection = Arc::new(Connection::new(definition, watch));
    let _stopped = Stopped(connection.clone());
    let mut writer = AbortOnDropHandle::new(tokio::spawn({
        let connection = connection.clone();
        async move { connection.outbox.write_to(output).await }
    }));
    let mut lines = LineSplitter::new(INBOUND);
    let mut buffer = vec![0; 64 * 1024];
    let ended = loop {
        let read = tokio::select! {
            biased;
            () = signals.ending.cancelled() => break Ok(()),
            // Nobody reads the answers any more.
            _ = &mut writer => break Ok(()),
            () = connection.outbox.overflown() => {
                writer.abort();
                break Ok(());
            }
            read = input.read(&mut buffer) => read,
        };
        match read {
            Ok(0) => break Ok(()),
            Ok(length) => lines.extend(&buffer[..length]),
            Err(error) => break Err(error),
        }
        let mut taken = 0;
        while let Some(piece) = lines.next_piece() {
            match piece {
                Piece::Line(line) => connection.received(line),
                Piece::Oversized { bytes, .. } => connection.oversized(bytes, lines.dropped()),
            }
            taken += 1;
            // Handlers have their turn while a client sends thousands of calls in one go.
            if taken % BATCH == 0 {
                tokio::task::yield_now().await;
            }
        }
    };
    connection.end(&signals).await;
    if !writer.is_finished() {
        let _ = tokio::time::timeout(LAST_WORDS, &mut writer).await;
    }
    ended
}

/// Nothing runs on when whoever served the connection no longer does: at its end, or because it was dropped.
struct Stopped(Arc<Connection>);

impl Drop for Stopped {
    fn drop(&mut self) {
        self.0.stop();
        self.0.abandon.cancel();
        self.0.outbox.close();
    }
}

impl Connection {
    fn new(definition: Arc<Definition>, watch: Option<Watch>) -> Self {
        Self {
            definition,
            outbox: Outbox::default(),
            pending: Pending::default(),
            peer: Mutex::default(),
            calls: Calls::default(),
            sessions: Sessions::default(),
            config: Config::default(),
            runtime: Handle::current(),
            tasks: TaskTracker::new(),
            abandon: CancellationToken::new(),
            watch,
            put_away: PutAway::default(),
        }
    }

    /// Tells all that runs to stop.
    fn stop(&self) {
        self.calls.stop_all();
        self.pending.close();
        self.sessions.close_all();
        self.tasks.close();
    }

    /// Lets handlers end, and ends those that do not.
    async fn end(self: &Arc<Self>, signals: &Signals) {
        if let Some(watch) = &self.watch {
            watch.ends();
        }
        self.stop();
        // The task that it starts is one of those that are waited for.
        drop(self.put_away());
        let hurry = async {
            signals.hurry.cancelled().await;
            tokio::time::sleep(SHORT_GRACE).await;
        };
        tokio::select! {
            () = self.tasks.wait() => {}
            () = tokio::time::sleep(GRACE) => {}
            () = hurry => {}
        }
        self.abandon.cancel();
        // A dropped future takes a turn of the runtime; what blocks its thread is left to itself.
        let _ = tokio::time::timeout(Duration::from_millis(50), self.tasks.wait()).await;
        self.outbox.close();
    }

    /// Starts what the plugin wants to do before its end, if that has not started, and gives what waits for it. It is a
    /// task of its own: whoever waits may go, and it still runs once and to its end.
    fn put_away(self: &Arc<Self>) -> impl Future<Output = ()> + Send + use<> {
        let done = self.put_away.done.clone();
        if !self.put_away.started.swap(true, Ordering::Relaxed) {
            let (connection, done) = (self.clone(), done.clone().drop_guard());
            self.tasks.spawn(async move {
                for handler in &connection.definition.on_shutdown {
                    running::caught(async { handler().await }).await.ok();
                }
                drop(done);
            });
        }
        done.cancelled_owned()
    }

    /// Whether the other side has cancelled a request in flight; the plugin's end cancels none.
    pub(crate) fn is_cancelled(&self, id: &RequestId<'static>) -> bool {
        self.calls.is_cancelled(id)
    }

    fn peer(&self) -> MutexGuard<'_, Peer> {
        self.peer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the host answers that request (LPP-REV-01).
    pub(crate) fn offers(&self, method: &str) -> bool {
        self.peer().offer.as_ref().is_some_and(|offer| offer.methods.iter().any(|offered| offered == method))
    }

    /// The longest line that the other side reads.
    pub(crate) fn limit(&self) -> usize {
        match &self.peer().offer {
            Some(offer) => usize::try_from(offer.max_message_bytes).unwrap_or(usize::MAX),
            None => OUTBOUND,
        }
    }

    /// The configuration in force.
    pub(crate) fn config<T: DeserializeOwned + Send + Sync + 'static>(&self) -> Result<Arc<T>, ConfigError> {
        self.config.get(self.definition.config.as_ref())
    }

    /// Sends a notification that may be lost, and says how long it is.
    pub(crate) fn notify(&self, method: &str, params: &impl Serialize) -> Result<usize, Unsent> {
        self.outbox.try_push(&Notification { jsonrpc: Version::V2, method, params }, self.limit())
    }

    /// Sends a notification that must arrive.
    pub(crate) fn notify_now(&self, method: &str, params: &impl Serialize) {
        let _ = self.outbox.push_now(&Notification { jsonrpc: Version::V2, method, params }, self.limit());
    }

    /// Sends a log message, unless the client wants only weightier ones.
    pub(crate) fn log(&self, era: Era, level: Level, text: &str) {
        if era != Era::Modern && self.peer().log_level.is_some_and(|least| level < least) {
            return;
        }
        let logger = self.definition.name.as_str().into();
        let _ = self.notify(method::MESSAGE, &Log { level: level.as_str(), logger, data: text });
    }

    /// Says that a cancelled handler has ended (LPP-CANCEL-07).
    fn settled(&self, id: &RequestId<'static>) {
        self.notify_now(method::SETTLED, &lemon_protocol::Settled { request_id: id.clone() });
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;
    use crate::{Context, NoArgs, Plugin};

    #[tokio::test]
    async fn a_connection_that_is_dropped_leaves_no_handler_running() {
        let (sender, mut handlers) = tokio::sync::mpsc::channel::<()>(1);
        let plugin = Plugin::new("test", "1.0.0").tool("hang", "", move |_: NoArgs, _: Context| {
            let sender = sender.clone();
            async move {
                sender.send(()).await.unwrap();
                std::future::pending::<()>().await;
            }
        });
        let (mut ours, theirs) = tokio::io::duplex(1024);
        let (read, write) = tokio::io::split(theirs);
        let serving = tokio::spawn(serve(plugin.checked().unwrap(), read, write, None, Signals::default()));
        let call = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"hang\"}}\n";
        ours.write_all(call).await.unwrap();
        handlers.recv().await.unwrap();
        serving.abort();
        assert!(handlers.recv().await.is_none(), "the tool and what it ran are gone");
        let mut rest = Vec::new();
        ours.read_to_end(&mut rest).await.unwrap();
        assert!(rest.is_empty(), "and the output is closed");
    }
}
