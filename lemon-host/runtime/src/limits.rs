//! Every bound of the host, in one place: sizes and counts in [`Limits`], spans of time in [`Timeouts`].
//!
//! Both are read from the tables `[limits]` and `[timeouts]` of a config file, each field under its own name; times
//! are in milliseconds there and end in `_ms`. What reaches a bound is told in an error, an event or the status.

use std::time::Duration;

use serde::{Deserialize, Serialize};

macro_rules! table {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $kind:ty = $default:expr,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        #[non_exhaustive]
        pub struct $name { $($(#[$field_doc])* pub $field: $kind,)* }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl $name {
            /// The keys that the table has in a config file.
            pub const KEYS: &'static [&'static str] = &[$(stringify!($field)),*];
        }
    };
}

/// A span of time that config files give in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(u64);

impl Millis {
    /// So many milliseconds.
    pub const fn new(milliseconds: u64) -> Self {
        Self(milliseconds)
    }

    /// The span.
    pub const fn get(self) -> Duration {
        Duration::from_millis(self.0)
    }

    /// The span, or none for zero, which stands for "no limit".
    pub const fn limit(self) -> Option<Duration> {
        if self.0 == 0 { None } else { Some(self.get()) }
    }
}

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

table! {
    /// Bounds on sizes and counts.
    Limits {
        /// The longest line that is read from a plugin, in bytes. A longer one is dropped; if it answered a call, the
        /// call fails.
        inbound_message_bytes: usize = 16 * MIB,
        /// The longest line that is written to a Lemon plugin, in bytes.
        outbound_message_bytes: usize = 16 * MIB,
        /// The longest line that is written to an MCP server that is no Lemon plugin, in bytes: some exit above it.
        foreign_outbound_message_bytes: usize = 10 * MIB,
        /// From so many bytes waiting to be written on, callers wait before they add more.
        outbox_soft_bytes: usize = 8 * MIB,
        /// At so many bytes waiting to be written the plugin has failed: it does not read.
        outbox_hard_bytes: usize = 64 * MIB,
        /// Tool calls under way in one plugin; more wait.
        calls: usize = 64,
        /// Requests of one plugin that the host works on at once; more are answered with `busy`.
        inbound_requests: usize = 64,
        /// The params of these requests, in bytes; what would make them more is answered with `busy`, unless it is alone.
        inbound_request_bytes: usize = 32 * MIB,
        /// Tools of one plugin; the rest of its list is left out.
        tools: usize = 4096,
        /// All tools of one plugin, in bytes; the rest of its list is left out.
        list_bytes: usize = 16 * MIB,
        /// A schema of a plugin's, in bytes: a larger one puts its tool in quarantine, or refuses the configuration.
        schema_bytes: usize = 256 * KIB,
        /// How deep such a schema may nest.
        schema_depth: usize = 64,
        /// Compiled schemas of tools that were called; the one not used for the longest time makes room.
        compiled_schemas: usize = 256,
        /// Values in the arguments of one call, those within lists and objects included.
        argument_values: usize = 262_144,
        /// The end of a plugin's stderr that is kept for reports, in bytes.
        stderr_tail_bytes: usize = 64 * KIB,
        /// A plugin's log file, in bytes; when it is full it becomes the one older file that is kept.
        log_file_bytes: u64 = 4 * MIB as u64,
        /// Lines that are no message, within `noise_window_ms`, at which the plugin has failed.
        noise_lines: u64 = 1000,
        /// Cancelled calls of a Lemon plugin that never ended, at which it counts as degraded.
        abandoned_calls: u32 = 16,
        /// Failures of a plugin within `failure_window_ms` at which it is not started again by itself; 0 means no bound.
        failures_in_window: usize = 5,
        /// Failures of a plugin in a row, however slow, at which it is not started again by itself; 0 means no bound.
        failures_in_a_row: u32 = 10,
        /// Progress notes of one call that wait for its caller; the oldest are dropped.
        progress_notes: usize = 64,
        /// A partial result of a plugin's call, in bytes; a larger one is left out of its progress note.
        partial_result_bytes: usize = 256 * KIB,
        /// Calls within calls.
        call_depth: usize = 8,
    }
}

table! {
    /// Bounds on time.
    Timeouts {
        /// From the spawn to the end of the handshake, the configuration and the first list of tools.
        start_ms: Millis = Millis::new(10_000),
        /// The same through a launcher (`npx`, `uvx` and the like), which may download the program first.
        start_launcher_ms: Millis = Millis::new(30_000),
        /// A tool call in all, unless the tool or the config says otherwise; 0 means no limit.
        call_ms: Millis = Millis::new(300_000),
        /// A tool call without progress; 0 means no limit.
        call_idle_ms: Millis = Millis::new(0),
        /// How long a cancelled call keeps its slot when the plugin does not tell that it ended.
        linger_ms: Millis = Millis::new(10_000),
        /// The quiet after `notifications/tools/list_changed` before the tools are listed again.
        list_debounce_ms: Millis = Millis::new(200),
        /// The window of `noise_lines`.
        noise_window_ms: Millis = Millis::new(10_000),
        /// The delay before a plugin that failed is started again; it doubles with each failure in a row, and up to half
        /// of it is left out at random.
        restart_ms: Millis = Millis::new(1_000),
        /// The longest such delay.
        restart_max_ms: Millis = Millis::new(60_000),
        /// The window of `failures_in_window`.
        failure_window_ms: Millis = Millis::new(60_000),
        /// Up for so long, with a good answer, a plugin has made up for its earlier failures.
        healthy_ms: Millis = Millis::new(120_000),
        /// A plugin that is not started again by itself is tried once in this time if it is called.
        retry_failed_ms: Millis = Millis::new(60_000),
        /// A plugin that was silent for so long and has nothing to do is pinged.
        ping_idle_ms: Millis = Millis::new(60_000),
        /// The answer to a ping.
        ping_ms: Millis = Millis::new(5_000),
        /// Calls under way in a process that is being replaced or stopped.
        drain_ms: Millis = Millis::new(10_000),
        /// The answer to `lemon/shutdown`.
        shutdown_ms: Millis = Millis::new(1_000),
        /// From the end of stdin to SIGTERM.
        eof_ms: Millis = Millis::new(2_000),
        /// From SIGTERM to SIGKILL.
        term_ms: Millis = Millis::new(1_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_gives_what_it_names_and_the_rest_keeps_its_default() {
        let timeouts: Timeouts = toml::from_str("start_ms = 5\ncall_ms = 0").unwrap();
        assert_eq!((timeouts.start_ms.get(), timeouts.call_ms.limit()), (Duration::from_millis(5), None));
        assert_eq!(timeouts.term_ms, Timeouts::default().term_ms);
        assert!(Timeouts::KEYS.iter().all(|key| key.ends_with("_ms")));
        assert!(Limits::KEYS.contains(&"noise_lines"));
    }

    #[test]
    fn the_reference_names_every_key() {
        let reference = include_str!("../../../docs/config.md");
        for key in Limits::KEYS.iter().chain(Timeouts::KEYS) {
            assert!(reference.contains(&format!("| `{key}` |")), "{key} is not in docs/config.md");
        }
    }
}
