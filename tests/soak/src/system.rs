//! What /proc says of this process and of those that it left.

use std::fs;

use anyhow::{Context, Result};
use serde::Serialize;

/// This process at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Reading {
    /// Living processes of plugins, and those that they left behind.
    pub(crate) processes: usize,
    /// Children of this process that nobody waited for.
    pub(crate) zombies: usize,
    pub(crate) threads: usize,
    pub(crate) descriptors: usize,
    pub(crate) rss_kib: u64,
    /// What is allocated and not freed.
    pub(crate) heap_kib: u64,
}

impl Reading {
    pub(crate) fn take() -> Result<Self> {
        let own = std::process::id();
        let others = others();
        Ok(Self {
            processes: others.iter().filter(|pid| is_of_host(**pid, own)).count(),
            zombies: others.iter().filter(|pid| is_zombie_of(**pid, own)).count(),
            threads: usize::try_from(status("Threads:")?)?,
            // The one through which they are listed is among them, each time.
            descriptors: fs::read_dir("/proc/self/fd")?.count(),
            rss_kib: status("VmRSS:")?,
            heap_kib: crate::HEAP.allocated() as u64 / 1024,
        })
    }

    /// Whether all but the memory is as it was.
    pub(crate) fn is_as(&self, before: &Self) -> bool {
        let counts = |reading: &Self| (reading.processes, reading.zombies, reading.threads, reading.descriptors);
        counts(self) == counts(before)
    }
}

/// A number from this process's status; sizes are in KiB.
pub(crate) fn status(key: &str) -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let value = status.lines().find_map(|line| line.strip_prefix(key)).with_context(|| format!("there is no {key}"))?;
    Ok(value.trim().trim_end_matches(" kB").parse()?)
}

/// The processor's name, as the system tells it, and how many there are.
pub(crate) fn machine() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let count = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    format!("{count} x {}", name.map_or("unknown processor", |(_, name)| name.trim()))
}

fn others() -> Vec<u32> {
    let own = std::process::id();
    let names = fs::read_dir("/proc").into_iter().flatten().flatten();
    names.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(|pid| *pid != own).collect()
}

/// Whether a process says in its environment that this host, or a plugin of it, started it.
fn is_of_host(pid: u32, host: u32) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let own = format!("LEMON_HOST_PID={host}");
    environment.split(|byte| *byte == 0).any(|entry| entry == own.as_bytes())
}

fn is_zombie_of(pid: u32, parent: u32) -> bool {
    let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let stat = String::from_utf8_lossy(&stat);
    // A program's name may have blanks and brackets in it.
    let Some((_, rest)) = stat.rsplit_once(") ") else { return false };
    let mut fields = rest.split_ascii_whitespace();
    fields.next() == Some("Z") && fields.next().and_then(|field| field.parse().ok()) == Some(parent)
}
