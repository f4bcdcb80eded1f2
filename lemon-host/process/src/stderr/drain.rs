//! Reads a process's stderr to its end, whatever happens to what is read.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::net::unix::pipe;
use tokio::task::JoinHandle;

use super::lines::Lines;
use super::timestamp::rfc3339;
use super::{LogFile, StderrTail};

/// Turns a line into what may be shown and kept of it, such as a redactor does. It sees at most
/// 12 KiB of a line, of which 8 KiB are kept, and finds a secret of up to 4 KiB wherever it stands.
/// A secret of several lines is seen line by line.
pub type Filter = Arc<dyn Fn(&str) -> Cow<'_, str> + Send + Sync>;

/// Where the lines go.
#[derive(Clone)]
pub struct StderrSink {
    /// The last lines, in memory.
    pub tail: StderrTail,
    /// All lines, in a file.
    pub log: Option<LogFile>,
    /// What each line goes through first.
    pub filter: Filter,
}

/// A tail of the default size, no log, and every line as it is.
impl Default for StderrSink {
    fn default() -> Self {
        Self { tail: StderrTail::default(), log: None, filter: Arc::new(|line| Cow::Borrowed(line)) }
    }
}

impl fmt::Debug for StderrSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StderrSink").field("tail", &self.tail).field("log", &self.log).finish_non_exhaustive()
    }
}

/// Reads until the last process that holds the other end closes it.
///
/// A log that can't be written, or not fast enough, loses lines and never stops the reading. An
/// idle drain holds no buffer.
pub async fn drain(receiver: pipe::Receiver, sink: StderrSink) {
    let StderrSink { tail, log, filter } = sink;
    let mut lines = Lines::default();
    let mut writer = log.map(Writer::new);
    let keep = |writer: &mut Option<Writer>, line: String| {
        if let Some(writer) = writer {
            writer.line(&line);
        }
        tail.push(line);
    };
    loop {
        tokio::select! {
            () = written(&mut writer) => {}
            ready = receiver.readable() => {
                let mut chunk = [0; 16 * 1024];
                match ready.and_then(|()| receiver.try_read(&mut chunk)) {
                    Ok(0) => break,
                    Ok(count) => {
                        tail.count(count);
                        lines.push(&chunk[..count], &*filter, |line| keep(&mut writer, line));
                    }
                    Err(error) if is_transient(&error) => {}
                    Err(_) => break,
                }
            }
        }
        if let Some(writer) = &mut writer {
            writer.pump();
        }
        // A process that writes without pause must not keep the runtime from everyone else.
        tokio::task::coop::consume_budget().await;
    }
    if let Some(line) = lines.finish(&*filter) {
        keep(&mut writer, line);
    }
    if let Some(writer) = writer {
        writer.finish().await;
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Resolves when the write in flight is done; never if there is none.
async fn written(writer: &mut Option<Writer>) {
    match writer.as_mut().and_then(|writer| writer.in_flight.as_mut()) {
        Some(in_flight) => {
            // A write that panicked counts as done: the log has its own word for failing.
            let _ = in_flight.await;
        }
        None => std::future::pending().await,
    }
    if let Some(writer) = writer {
        writer.in_flight = None;
    }
}

/// Hands lines to the log on the runtime's blocking threads, one write at a time.
struct Writer {
    log: LogFile,
    pending: Vec<u8>,
    lost: usize,
    in_flight: Option<JoinHandle<()>>,
}

impl Writer {
    /// Bytes that may wait for a slow disk.
    const MAX_PENDING: usize = 1024 * 1024;
    /// How long the end may wait for it.
    const LAST_WRITE: Duration = Duration::from_secs(1);

    fn new(log: LogFile) -> Self {
        Self { log, pending: Vec::new(), lost: 0, in_flight: None }
    }

    fn line(&mut self, line: &str) {
        if self.pending.len() > Self::MAX_PENDING {
            self.lost += 1;
            return;
        }
        if self.lost > 0 {
            let lost = std::mem::take(&mut self.lost);
            self.push(&format!("({lost} lines lost: the log could not keep up)"));
        }
        self.push(line);
    }

    fn push(&mut self, line: &str) {
        let time = rfc3339(SystemTime::now());
        for part in [time.as_str(), " ", line, "\n"] {
            self.pending.extend_from_slice(part.as_bytes());
        }
    }

    fn pump(&mut self) {
        if self.in_flight.is_some() || self.pending.is_empty() {
            return;
        }
        let (log, lines) = (self.log.clone(), std::mem::take(&mut self.pending));
        self.in_flight = Some(tokio::task::spawn_blocking(move || log.append(&lines)));
    }

    async fn finish(mut self) {
        let rest = async {
            loop {
                if let Some(in_flight) = self.in_flight.take() {
                    let _ = in_flight.await;
                }
                if self.pending.is_empty() {
                    return;
                }
                self.pump();
            }
        };
        let _ = tokio::time::timeout(Self::LAST_WRITE, rest).await;
    }
}
