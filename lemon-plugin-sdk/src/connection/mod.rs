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

use lemon_protocol::{LineSplitter, RequestId, method};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

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
use crate::stdio::HostTeller;

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
    /// Handlers, each a task.
    tasks: TaskTracker,
    /// Handlers that still run are dropped.
    abandon: CancellationToken,
    /// Told of the host's process, to watch it.
    host_process: Option<HostTeller>,
    put_away: PutAway,
}

/// What the plugin does before its end: one task, which nobody drops.
#[derive(Default)]
struct PutAway {
    started: AtomicBool,
    done: CancellationToken,
}

/// How a connection is told to end, by a signal for example.
pub(crate) struct Ending {
    pub(crate) token: CancellationToken,
    pub(crate) host_process: Option<HostTeller>,
}

/// How long handlers have to end once the connection does; then a moment is left for the last answers.
const GRACE: Duration = Duration::from_millis(1_300);
const LAST_WORDS: Duration = Duration::from_millis(300);

/// So many lines are taken in before handlers have a turn.
const BATCH: usize = 64;

/// Serves until the end of the input, of the output, or until told to end.
pub(crate) async fn serve(
    definition: Arc<Definition>,
    mut input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
    ending: Ending,
) -> io::Result<()> {
    let connection = Arc::new(Connection::new(definition, ending.host_process));
    let mut writer = tokio::spawn({
        let connection = connection.clone();
        async move { connection.outbox.write_to(output).await }
    });
    let mut lines = LineSplitter::new(INBOUND);
    let mut buffer = vec![0; 64 * 1024];
    let ended = loop {
        let read = tokio::select! {
            biased;
            () = ending.token.cancelled() => break Ok(()),
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
            connection.received(piece);
            taken += 1;
            // Handlers have their turn while a client sends thousands of calls in one go.
            if taken % BATCH == 0 {
                tokio::task::yield_now().await;
            }
        }
    };
    connection.end().await;
    if !writer.is_finished() {
        let _ = tokio::time::timeout(LAST_WORDS, &mut writer).await;
        writer.abort();
    }
    ended
}

impl Connection {
    fn new(definition: Arc<Definition>, host_process: Option<HostTeller>) -> Self {
        Self {
            definition,
            outbox: Outbox::default(),
            pending: Pending::default(),
            peer: Mutex::default(),
            calls: Calls::default(),
            sessions: Sessions::default(),
            config: Config::default(),
            tasks: TaskTracker::new(),
            abandon: CancellationToken::new(),
            host_process,
            put_away: PutAway::default(),
        }
    }

    /// Lets handlers end, and ends those that do not.
    async fn end(self: &Arc<Self>) {
        self.calls.stop_all();
        self.pending.close();
        self.sessions.close_all();
        // The task that it starts is one of those that are waited for.
        drop(self.put_away());
        self.tasks.close();
        let _ = tokio::time::timeout(GRACE, self.tasks.wait()).await;
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

    /// Sends a notification that may be lost.
    pub(crate) fn notify(&self, method: &str, params: &impl Serialize) -> Result<(), Unsent> {
        self.outbox.try_push(&Notification { jsonrpc: Version::V2, method, params }, self.limit())
    }

    /// Sends a notification that must arrive.
    pub(crate) fn notify_now(&self, method: &str, params: &impl Serialize) {
        let _ = self.outbox.push_now(&Notification { jsonrpc: Version::V2, method, params }, self.limit());
    }

    /// Sends a log message, unless the client wants only weightier ones.
    pub(crate) fn log(&self, era: Era, level: Level, text: &str) {
        if era != Era::Modern && level < self.peer().log_level {
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
