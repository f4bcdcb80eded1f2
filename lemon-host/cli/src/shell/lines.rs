//! Where the commands come from: a thread that reads the next line when it is asked to.

use std::io::{self, BufRead, Read as _};
use std::sync::mpsc;

use tokio::sync::mpsc as queue;

use super::editor;
use crate::commands::Work;
use crate::signals::Signals;

/// The longest line; nobody types more, and a call's message is bounded as well.
const LINE: u64 = 64 * 1024 * 1024;

/// What came.
#[derive(Debug)]
pub(super) enum Read {
    Line(String),
    /// Ctrl-C was typed in place of a line.
    Interrupted,
    /// A line that is none; the next one may be.
    Bad(String),
    End,
    Failed(String),
}

/// The lines, one after the other.
pub(super) struct Lines {
    wanted: mpsc::SyncSender<()>,
    read: queue::Receiver<Read>,
    /// Gives the terminal back.
    terminal: Option<editor::Terminal>,
}

impl Lines {
    /// Lines as they come, without a prompt.
    pub(super) fn piped() -> io::Result<Self> {
        Self::from(None, || next(&mut io::stdin().lock()))
    }

    /// Lines that someone types at a prompt.
    pub(super) fn edited(work: &Work, signals: &Signals) -> io::Result<Self> {
        let (terminal, next) = editor::open(work, signals)?;
        Self::from(Some(terminal), next)
    }

    fn from(terminal: Option<editor::Terminal>, mut next: impl FnMut() -> Read + Send + 'static) -> io::Result<Self> {
        let (wanted, asked) = mpsc::sync_channel(1);
        let (sender, read) = queue::channel(1);
        let serve = move || {
            while asked.recv().is_ok() {
                if sender.blocking_send(next()).is_err() {
                    break;
                }
            }
        };
        std::thread::Builder::new().name("lines".to_owned()).spawn(serve)?;
        Ok(Self { wanted, read, terminal })
    }

    /// The next line. Nothing is read before it is asked for.
    pub(super) async fn next(&mut self) -> Read {
        if self.wanted.try_send(()).is_err() {
            return Read::End;
        }
        self.read.recv().await.unwrap_or(Read::End)
    }

    /// Nothing is read any more, and the terminal is as it was.
    pub(super) fn end(&mut self) {
        self.terminal = None;
    }
}

fn next(stdin: &mut impl BufRead) -> Read {
    let mut bytes = Vec::new();
    match stdin.take(LINE + 1).read_until(b'\n', &mut bytes) {
        Err(error) => Read::Failed(error.to_string()),
        Ok(0) => Read::End,
        Ok(length) if length as u64 > LINE => match skip_line(stdin) {
            Ok(()) => Read::Bad(format!("it is longer than {LINE} bytes")),
            Err(error) => Read::Failed(error.to_string()),
        },
        Ok(_) => match std::str::from_utf8(&bytes) {
            Ok(line) => Read::Line(line.trim_end_matches(['\n', '\r']).to_owned()),
            Err(_) => Read::Bad("it is not UTF-8".to_owned()),
        },
    }
}

fn skip_line(stdin: &mut impl BufRead) -> io::Result<()> {
    loop {
        let bytes = stdin.fill_buf()?;
        let (length, end) = (bytes.len(), bytes.iter().position(|byte| *byte == b'\n'));
        stdin.consume(end.map_or(length, |end| end + 1));
        if length == 0 || end.is_some() {
            return Ok(());
        }
    }
}
