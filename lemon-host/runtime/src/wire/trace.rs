//! A look at every message that crosses a pipe, for people who debug a plugin.

use tokio::time::Instant;

use crate::plugin::{Generation, PluginName};
use crate::report::Redactor;

/// Which way a message went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the host to the plugin.
    ToPlugin,
    /// From the plugin to the host.
    FromPlugin,
}

/// One line of a trace.
#[derive(Debug)]
#[non_exhaustive]
pub struct TraceLine<'a> {
    /// When, on the host's clock.
    pub at: Instant,
    /// The plugin.
    pub plugin: &'a PluginName,
    /// Which of the plugin's processes.
    pub generation: Generation,
    /// Which way.
    pub direction: Direction,
    /// The line without its end, free of secrets, as it was written otherwise: it may hold control characters.
    pub text: &'a str,
}

/// Takes the lines of a trace. It is called on the wire's own tasks and must not block.
///
/// ```
/// use std::sync::{Mutex, PoisonError};
///
/// use lemon_host::{Direction, Host, TraceLine, TraceSink};
///
/// /// Keeps all that was said.
/// #[derive(Default)]
/// struct Record(Mutex<Vec<String>>);
///
/// impl TraceSink for Record {
///     fn line(&self, line: &TraceLine<'_>) {
///         let arrow = if line.direction == Direction::ToPlugin { "->" } else { "<-" };
///         let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
///         lines.push(format!("{arrow} {} {}", line.plugin, line.text));
///     }
/// }
///
/// let builder = Host::builder().trace(Record::default());
/// ```
pub trait TraceSink: Send + Sync {
    /// One message.
    fn line(&self, line: &TraceLine<'_>);
}

#[derive(Clone)]
pub(crate) struct Tracer {
    pub(crate) sink: std::sync::Arc<dyn TraceSink>,
    pub(crate) redactor: Redactor,
}

impl Tracer {
    pub(super) fn line(&self, plugin: &PluginName, generation: Generation, direction: Direction, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let text = self.redactor.redact(text.trim_end_matches(['\r', '\n']));
        self.sink.line(&TraceLine { at: Instant::now(), plugin, generation, direction, text: &text });
    }
}
