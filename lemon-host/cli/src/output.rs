//! The only place that writes to stdout and stderr.
//!
//! stdout gets the answer and nothing else, in one piece. stderr is written by a thread of its own, so that a slow
//! reader holds up neither a plugin nor a signal; its lines wait in a queue that is bounded in bytes, and when it is
//! full, lines are left out and counted. All lines of stderr pass the host's redactor.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::Duration;

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use lemon_host::{PluginText, Redactor};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;
use tokio::sync::oneshot;

use crate::errors::{Failure, safe};
use crate::exit::Exit;
use crate::screen::Screen;

/// How many bytes may wait to be written to stderr.
const QUEUE: usize = 16 * 1024 * 1024;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default();
const DIM: Style = Style::new().dimmed();

/// Both streams. Clones are the same.
#[derive(Clone)]
pub(crate) struct Output(Arc<Inner>);

struct Inner {
    stderr: mpsc::Sender<Item>,
    waiting: Arc<AtomicUsize>,
    left_out: AtomicUsize,
    redactor: OnceLock<Redactor>,
    /// Whether stderr can show a line that is rewritten.
    shows_progress: bool,
    colors: ColorChoice,
    screen: Arc<Screen>,
}

/// Whether somebody still reads stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    There,
    Gone,
}

enum Item {
    Line(String),
    /// The line that is rewritten, or its end.
    Progress(Option<String>),
    /// The line that is rewritten makes room; it comes back with the next one.
    Aside,
    Flush(oneshot::Sender<()>),
}

impl Output {
    pub(crate) fn new(no_color: bool) -> Self {
        let colors = if no_color { ColorChoice::Never } else { ColorChoice::Auto };
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        // Bounded by `waiting`, in bytes.
        let (sender, queue) = mpsc::channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let taken = waiting.clone();
        let screen = Arc::<Screen>::default();
        let shared = screen.clone();
        // Without the thread nothing can be said, not even that; the exit code still can.
        let _ = std::thread::Builder::new()
            .name("stderr".to_owned())
            .spawn(move || write_stderr(&queue, &taken, is_colored(&io::stderr(), colors), &shared));
        Self(Arc::new(Inner {
            stderr: sender,
            waiting,
            left_out: AtomicUsize::new(0),
            redactor: OnceLock::new(),
            shows_progress: io::stderr().is_terminal() && !dumb,
            colors,
            screen,
        }))
    }

    /// The terminal, in which somebody may be typing.
    pub(crate) fn screen(&self) -> &Arc<Screen> {
        &self.0.screen
    }

    /// From now on the host's secrets are taken out of what goes to stderr.
    pub(crate) fn redact_with(&self, redactor: &Redactor) {
        let _ = self.0.redactor.set(redactor.clone());
    }

    /// A text without the host's secrets.
    pub(crate) fn redacted(&self, text: &str) -> String {
        match self.0.redactor.get() {
            Some(redactor) => redactor.redact(text).into_owned(),
            None => text.to_owned(),
        }
    }

    /// Whether a person reads stdout as it is written.
    pub(crate) fn is_terminal() -> bool {
        io::stdout().is_terminal()
    }

    /// The width to which lines on stdout are cut; none when no person reads them there.
    pub(crate) fn width() -> Option<usize> {
        let (width, _) = terminal_size::terminal_size_of(io::stdout()).filter(|_| Self::is_terminal())?;
        Some(usize::from(width.0))
    }

    /// Writes the answer to stdout as it is.
    ///
    /// A reader that went away is none of our business.
    ///
    /// # Errors
    /// When the answer can't be written otherwise, such as on a full disk.
    pub(crate) async fn answer(&self, bytes: impl Into<Vec<u8>>) -> Result<(), Failure> {
        self.write(bytes.into()).await.map(|_| ())
    }

    /// Writes lines to stdout, without secrets, and says whether there is any use in more.
    pub(crate) async fn lines(&self, lines: String) -> Result<Reader, Failure> {
        self.write(self.redacted(&lines).into_bytes()).await
    }

    /// Whether stdout is a pipe that nobody reads any more.
    pub(crate) fn reader() -> Reader {
        let stdout = io::stdout();
        let mut pipe = [PollFd::new(&stdout, PollFlags::empty())];
        match poll(&mut pipe, Some(&Timespec::default())) {
            Ok(1..) if pipe[0].revents().contains(PollFlags::ERR) => Reader::Gone,
            _ => Reader::There,
        }
    }

    /// Writes on a thread, so that a signal is heard while a slow reader makes us wait.
    async fn write(&self, bytes: Vec<u8>) -> Result<Reader, Failure> {
        /// In a terminal, what was said before stands before the answer, unless that would hold it up.
        const ORDER: Duration = Duration::from_millis(100);
        if Self::is_terminal() && self.0.shows_progress {
            let _ = self.0.stderr.send(Item::Aside);
        }
        let _ = tokio::time::timeout(ORDER, self.flush()).await;
        let screen = self.0.screen.clone();
        let write = move || {
            let mut stdout = io::stdout().lock();
            screen.write(Self::is_terminal(), &bytes, |bytes| stdout.write_all(bytes).and_then(|()| stdout.flush()))
        };
        let written = tokio::task::spawn_blocking(write).await.unwrap_or_else(|panic| Err(io::Error::other(panic)));
        match written {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                Err(Failure::new(Exit::Internal, "can't write the answer to stdout").why(error.to_string()))
            }
            Err(_) => Ok(Reader::Gone),
            Ok(()) => Ok(Reader::There),
        }
    }

    /// Writes styled text to stdout, without secrets.
    pub(crate) async fn report(&self, text: &str) -> Result<(), Failure> {
        let text = self.redacted(text);
        self.answer(styled(text, is_colored(&io::stdout(), self.0.colors))).await
    }

    /// Writes one line of JSON to stdout, without secrets, and in a terminal without what a terminal obeys.
    pub(crate) async fn json(&self, value: &impl Serialize) -> Result<(), Failure> {
        let json = serde_json::to_string(value)
            .map_err(|error| Failure::new(Exit::Internal, "can't write the report as JSON").why(error.to_string()))?;
        let json = self.0.redactor.get().map_or_else(|| json.clone(), |redactor| redact(&json, redactor));
        self.raw_json(&json).await
    }

    /// Writes one line of JSON to stdout as it is, but in a terminal without what a terminal obeys.
    pub(crate) async fn raw_json(&self, json: &str) -> Result<(), Failure> {
        let line = if Self::is_terminal() { json_for_terminal(json) } else { json.to_owned() };
        self.answer(line + "\n").await
    }

    /// Tells of a failure on stderr: what happened, why, and what to do next.
    pub(crate) fn failure(&self, failure: &Failure) {
        self.failure_of("", failure);
    }

    /// The same of something that has a name.
    pub(crate) fn failure_of(&self, name: &str, failure: &Failure) {
        self.line(format!("{name}{}", failure.show("error", ERROR)));
    }

    /// Tells of something odd on stderr.
    pub(crate) fn warning(&self, text: impl Display) {
        self.line(format!("{WARNING}warning{WARNING:#}: {}", safe(&text.to_string())));
    }

    /// Says on stderr what to do.
    pub(crate) fn hint(&self, text: impl Display) {
        self.line(format!("{HINT}hint{HINT:#}: {}", safe(&text.to_string())));
    }

    /// Says something on stderr that is told only to those who asked.
    pub(crate) fn note(&self, text: impl Display) {
        self.line(format!("{DIM}{}{DIM:#}", safe(&text.to_string())));
    }

    /// Writes a line to stderr; never waits.
    pub(crate) fn line(&self, line: impl Into<String>) {
        let line = self.redacted(&line.into());
        let bytes = line.len();
        if self.0.waiting.fetch_add(bytes, Ordering::Relaxed) + bytes > QUEUE {
            self.0.waiting.fetch_sub(bytes, Ordering::Relaxed);
            self.0.left_out.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let _ = self.0.stderr.send(Item::Line(line));
    }

    pub(crate) fn shows_progress(&self) -> bool {
        self.0.shows_progress
    }

    /// Rewrites the progress line; none ends it.
    pub(crate) fn progress(&self, text: Option<String>) {
        if self.0.shows_progress && self.0.waiting.load(Ordering::Relaxed) < QUEUE {
            let _ = self.0.stderr.send(Item::Progress(text.map(|text| self.redacted(&text))));
        }
    }

    /// Waits until all that was said on stderr is written.
    pub(crate) async fn flush(&self) {
        let _ = self.flushed().await;
    }

    /// The same outside of a runtime.
    pub(crate) fn flush_now(&self) {
        let _ = self.flushed().blocking_recv();
    }

    fn flushed(&self) -> oneshot::Receiver<()> {
        let left_out = self.0.left_out.swap(0, Ordering::Relaxed);
        if left_out > 0 {
            // Past the bound, as it is the last.
            let text = format!("warning: {left_out} lines were left out here, as stderr was read too slowly");
            self.0.waiting.fetch_add(text.len(), Ordering::Relaxed);
            let _ = self.0.stderr.send(Item::Line(text));
        }
        let (done, flushed) = oneshot::channel();
        let _ = self.0.stderr.send(Item::Flush(done));
        flushed
    }
}

fn is_colored(stream: &impl RawStream, choice: ColorChoice) -> bool {
    let choice = if choice == ColorChoice::Auto { AutoStream::choice(stream) } else { choice };
    choice != ColorChoice::Never
}

fn styled(text: String, colored: bool) -> String {
    if colored { text } else { anstream::adapter::strip_str(&text).to_string() }
}

/// Writes lines until the program ends, each in one piece. A stderr that can't be written to is no reason to stop
/// working.
fn write_stderr(queue: &mpsc::Receiver<Item>, waiting: &AtomicUsize, colored: bool, screen: &Screen) {
    const CLEAR: &str = "\r\x1b[K";
    let is_terminal = io::stderr().is_terminal();
    let write = |text: &str| {
        let _ = screen.write(is_terminal, text.as_bytes(), |bytes| io::stderr().write_all(bytes));
    };
    let mut progress: Option<String> = None;
    for item in queue {
        let text = match item {
            Item::Line(line) => {
                let bytes = line.len();
                let line = styled(line, colored);
                let text = match &progress {
                    Some(shown) => format!("{CLEAR}{line}\n{shown}"),
                    None => line + "\n",
                };
                write(&text);
                // Only now: what is being written waits, too.
                waiting.fetch_sub(bytes, Ordering::Relaxed);
                continue;
            }
            Item::Progress(Some(text)) => {
                // One line of the terminal, or it could not be cleared again.
                let width = terminal_size::terminal_size_of(io::stderr()).map_or(80, |(width, _)| usize::from(width.0));
                let text = crate::table::cut(&text, width.saturating_sub(1));
                progress = Some(text.clone());
                format!("{CLEAR}{text}")
            }
            Item::Progress(None) => progress.take().map_or_else(String::new, |_| CLEAR.to_owned()),
            Item::Aside => progress.as_ref().map_or_else(String::new, |_| CLEAR.to_owned()),
            Item::Flush(done) => {
                let _ = done.send(());
                continue;
            }
        };
        write(&text);
    }
}

/// Takes secrets out of the strings of a JSON text, and of these only: without a number that happens to be a secret it
/// would not be JSON any more.
fn redact(json: &str, redactor: &Redactor) -> String {
    let mut redacted = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(start) = rest.find('"') {
        let string = &rest[start..];
        let mut escaped = false;
        let end = string[1..].find(|c| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        let (string, after) = string.split_at(end.map_or(string.len(), |end| end + 2));
        redacted.push_str(&rest[..start]);
        let value: String = serde_json::from_str(string).unwrap_or_default();
        match redactor.redact(&value) {
            Cow::Borrowed(_) => redacted.push_str(string),
            Cow::Owned(value) => redacted.push_str(&serde_json::Value::from(value).to_string()),
        }
        rest = after;
    }
    redacted + rest
}

/// The same JSON with an escape for each character that a terminal would obey or not show.
///
/// Such characters stand in strings only, where JSON takes an escape as well.
fn json_for_terminal(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_ascii() && !c.is_ascii_control() || PluginText::new(c).line().to_string().chars().eq([c]) {
            shown.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            shown.push_str(&format!("\\u{unit:04x}"));
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_in_a_terminal_is_the_same_json_and_harmless() {
        let json = "{\"a\":\"é\u{202e}\u{9b}\u{e0041}\u{7f}\"}";
        let shown = json_for_terminal(json);
        assert_eq!(shown, "{\"a\":\"é\\u202e\\u009b\\udb40\\udc41\\u007f\"}");
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&shown), value(json));
    }

    #[test]
    fn a_secret_of_digits_does_not_break_the_json() {
        let redactor = Redactor::new();
        redactor.add("12345");
        redactor.add("\"quoted\\");
        let json = r#"{"z12345":["x12345y",12345,"\\","a\"b"],"a":"-\"quoted\\-","":[]}"#;
        let expected = r#"{"z[redacted]":["x[redacted]y",12345,"\\","a\"b"],"a":"-[redacted]-","":[]}"#;
        assert_eq!(redact(json, &redactor), expected);
    }
}
