//! What `--trace` and `--verbose` show, on stderr.

use std::io::{self, Write};

use lemon_host::{Direction, Event, EventSink, PluginText, StateKind, TraceLine, TraceSink};
use tokio::time::Instant;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::errors;
use crate::output::Output;
use crate::table::indent;

/// How many characters of a message are shown.
const CAP: usize = 64 * 1024;

/// Shows every message: seconds since the start, plugin, direction, text.
pub(crate) struct Trace {
    pub(crate) output: Output,
    pub(crate) start: Instant,
}

impl TraceSink for Trace {
    fn line(&self, line: &TraceLine<'_>) {
        let arrow = match line.direction {
            Direction::ToPlugin => "→",
            Direction::FromPlugin => "←",
        };
        let after = line.at.saturating_duration_since(self.start).as_secs_f64();
        let text = PluginText::new(line.text);
        self.output.line(format!("{after:8.3} {} {arrow} {}", line.plugin, text.capped(CAP)));
    }
}

/// How much is told of what happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// What the user has to know, and nothing else tells.
    Needed,
    /// Also what changes, for someone who watches.
    Changes,
    /// Everything.
    All,
}

/// Tells what happens.
pub(crate) struct Events {
    pub(crate) output: Output,
    pub(crate) level: Level,
}

impl EventSink for Events {
    fn event(&self, event: &Event) {
        let note = match event {
            Event::LogFile { plugin, reason } => {
                return self.output.warning(format!("the log of plugin {plugin} can't be written: {reason}"));
            }
            Event::SchemaIgnored { tool, reason } => {
                let reason = reason.capped(400);
                return self.output.warning(format!("the schema of the tool `{tool}` is not used in full: {reason}"));
            }
            Event::Drift { plugin, drift } => {
                return self.output.warning(format!("plugin {plugin} is not what its manifest says: {drift}"));
            }
            _ if self.level == Level::Needed => return,
            Event::State { state: StateKind::Spawning | StateKind::Handshaking, .. } if self.level < Level::All => {
                return;
            }
            Event::State { plugin, session, state, reason, retry_in, .. } => {
                let session = session.as_ref().map(|id| format!(" (session {})", errors::safe(id)));
                let retry = retry_in.map(|after| format!(", next try in {}", errors::seconds(after.as_secs_f64())));
                let reason = reason.as_ref().map(|reason| format!(": {}", indent(reason, 2)));
                let [session, retry, reason] = [session, retry, reason].map(Option::unwrap_or_default);
                format!("{plugin}{session}: {state}{retry}{reason}")
            }
            Event::ToolsChanged { plugin } => format!("{plugin}: its tools have changed"),
            Event::Shadowed { tool, source, winner } => {
                format!("the tool `{tool}` of {source} is hidden by the one of {winner}")
            }
            Event::Log { plugin, level, text } => {
                format!("{plugin}: [{}] {}", level.capped(20), indent(&text.block().to_string(), 2))
            }
            Event::Noise { plugin, kind, first } => format!("{plugin}: noise ({kind}): {first}"),
            _ => return,
        };
        self.output.note(note);
    }
}

/// Shows what the host itself does, for `-vv`.
pub(crate) fn show_host(output: &Output) {
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new("lemon=trace,lemon_host=trace,lemon_process=trace"))
        .with_ansi(false)
        .with_writer(Lines(output.clone()))
        .finish();
    // Fails only if it was done before.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

struct Lines(Output);

impl<'a> MakeWriter<'a> for Lines {
    type Writer = &'a Lines;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

impl Write for &Lines {
    /// Gets one whole event at a time.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = PluginText::new(String::from_utf8_lossy(bytes).trim_end());
        self.0.note(text.block().capped(CAP));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
