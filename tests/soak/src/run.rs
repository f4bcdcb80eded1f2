//! The run: a host with its plugins and their callers, from the first reading to the last one.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures_util::future::join_all;
use lemon_host::{Approval, Approver, CallRequest, Class, Host, Limits, Millis, PluginSpec, Timeouts};

use crate::args::Run;
use crate::caller::Caller;
use crate::deed::{INBOUND, NOISE_LINES};
use crate::plan::{Part, cast};
use crate::report::Report;
use crate::system::Reading;
use crate::tally::{Ear, Tally};
use crate::trend::Trend;

/// A run in which no call ends for so long is stuck.
const STUCK: Duration = Duration::from_secs(60);

/// Threads that wait for blocking work go after so long without any.
const KEEP_ALIVE: Duration = Duration::from_millis(500);

/// How long all may take to be as it was, and how long nothing has changed when it is.
const QUIET: (Duration, Duration) = (Duration::from_secs(20), Duration::from_millis(1500));

/// What a host may take to end all plugins, with the times that it has here, on a machine that is busy.
const SHUTDOWN: Duration = Duration::from_secs(10);

/// What the run's own counts and the runtime may keep of the heap.
const KEPT_KIB: u64 = 512;

/// What a half of a run may gain: large messages come and go, and the allocator keeps some of what was freed.
const HEAP_COMES_AND_GOES_KIB: f64 = 1024.0;
const RSS_COMES_AND_GOES_KIB: f64 = 4096.0;

/// The host's memory over the run.
#[derive(Default)]
struct Memory {
    rss: Trend,
    heap: Trend,
}

/// Lets plugins call each other's tools.
pub(crate) struct AllowAll;

impl Approver for AllowAll {
    fn approve<'a>(&'a self, _: CallRequest<'a>) -> std::pin::Pin<Box<dyn Future<Output = Approval> + Send + 'a>> {
        Box::pin(std::future::ready(Approval::Allow))
    }
}

/// Goes through the whole run.
pub(crate) fn run(options: &Run, seed: u64) -> Result<Report> {
    let mut runtime = match options.threads {
        0 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let threads = usize::try_from(options.threads)?.max(1);
    let runtime = runtime.worker_threads(threads).thread_keep_alive(KEEP_ALIVE).enable_all().build()?;
    let folder = tempfile::tempdir().context("failed to make a folder")?;
    runtime.block_on(soak(options, seed, &folder.path().join("ledger")))
}

async fn soak(options: &Run, seed: u64, ledger: &Path) -> Result<Report> {
    let parts = cast(usize::try_from(options.plugins)?);
    // What the first host of a program starts for good, such as the guard, is not the run's.
    let first = host(&parts[..1], &Arc::default(), ledger)?;
    first.settled().await;
    first.shutdown().await;
    drop(first);
    let before = quiet(None).await?;
    let (start, tally) = (Instant::now(), Arc::<Tally>::default());
    let host = host(&parts, &tally, ledger)?;
    host.settled().await;
    let mut callers = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        for number in 0..part.callers {
            let caller = Caller::new(host.clone(), tally.clone(), seed, (index, number), part);
            callers.push(tokio::spawn(caller.context("a plugin's name is none")?.run()));
        }
    }
    let mut memory = Memory::default();
    let busiest = watch(options, &tally, &host, &mut memory).await?;
    tally.end();
    for caller in join_all(callers).await {
        if caller.is_err() {
            tally.violation("a caller panicked".to_owned());
        }
    }
    let took = start.elapsed();
    let end = Instant::now();
    host.shutdown().await;
    let shutdown = end.elapsed();
    // Nothing is waited for here: no process may be left when the shutdown is over.
    let right_after = Reading::take()?;
    drop(host);
    let after = quiet(Some(&before)).await?;
    check(&tally, (&before, &right_after, &after), shutdown, &memory);
    twice(&tally, ledger);
    let courses = [memory.rss.course(), memory.heap.course()];
    Ok(Report::new(options, seed, took, shutdown, [before, busiest, after], courses, &tally))
}

fn host(parts: &[Part], tally: &Arc<Tally>, ledger: &Path) -> Result<Host> {
    let program = std::env::current_exe()?.to_str().context("this program's path is not UTF-8")?.to_owned();
    let ledger = ledger.to_str().context("the folder's path is not UTF-8")?;
    let (limits, timeouts) = bounds();
    let mut host = Host::builder().limits(limits).timeouts(timeouts).approver(AllowAll).events(Ear(tally.clone()));
    for part in parts {
        let command = [&program, "plugin", &part.name, part.dialect.as_str(), ledger];
        host = host.plugin(PluginSpec::new(part.name.parse()?, Class::Extension, command));
    }
    Ok(host.start())
}

/// Short times, so that the run is about faults and not about waiting, and bounds that faults reach often.
fn bounds() -> (Limits, Timeouts) {
    let mut limits = Limits::default();
    limits.inbound_message_bytes = INBOUND;
    limits.noise_lines = NOISE_LINES;
    let mut timeouts = Timeouts::default();
    timeouts.linger_ms = Millis::new(500);
    timeouts.list_debounce_ms = Millis::new(20);
    timeouts.ping_idle_ms = Millis::new(1000);
    timeouts.ping_ms = Millis::new(500);
    timeouts.drain_ms = Millis::new(2000);
    timeouts.shutdown_ms = Millis::new(200);
    timeouts.eof_ms = Millis::new(100);
    timeouts.term_ms = Millis::new(100);
    (limits, timeouts)
}

/// Looks at the run now and then until it has gone on for long enough. Gives the reading with the most processes.
async fn watch(options: &Run, tally: &Tally, host: &Host, memory: &mut Memory) -> Result<Reading> {
    const EVERY: Duration = Duration::from_millis(500);
    /// How often a person is told.
    const TOLD: u32 = 60;
    let mut busiest = Reading::take()?;
    let start = Instant::now();
    let mut last = (tally.resolved(), start);
    for look in 1_u32.. {
        tokio::time::sleep(EVERY).await;
        let reading = Reading::take()?;
        memory.rss.add(start.elapsed(), reading.rss_kib);
        memory.heap.add(start.elapsed(), reading.heap_kib);
        if reading.processes >= busiest.processes {
            busiest = reading;
        }
        // They are asked for while everything changes, as a user does.
        let status = host.status();
        let _ = (host.tools(), host.conflicts());
        let (calls, cycles) = (tally.resolved(), tally.cycles());
        if look % TOLD == 0 {
            let states: Vec<_> =
                status.plugins.iter().map(|plugin| format!("{} {}", plugin.name, plugin.state)).collect();
            tell(&format!(
                "{} s: {calls} calls, {cycles} restarts, {} KiB; {}",
                start.elapsed().as_secs(),
                reading.rss_kib,
                states.join(", ")
            ));
        }
        if calls >= options.calls && cycles >= options.crashes {
            break;
        }
        if calls > last.0 {
            last = (calls, Instant::now());
        } else if last.1.elapsed() > STUCK {
            bail!("no call has ended for {STUCK:?}; {:?}", tally.violations().0);
        }
    }
    Ok(busiest)
}

#[expect(clippy::print_stderr, reason = "a long run says how far it is")]
fn tell(line: &str) {
    eprintln!("{line}");
}

/// Waits until nothing goes on any more, or all is as it was before, and reads.
async fn quiet(before: Option<&Reading>) -> Result<Reading> {
    let start = Instant::now();
    let (mut last, mut since) = (Reading::take()?, start);
    loop {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let reading = Reading::take()?;
        if !reading.is_as(&last) {
            since = Instant::now();
        }
        let is_quiet = before.map_or(since.elapsed() > QUIET.1, |before| reading.is_as(before));
        if is_quiet || start.elapsed() > QUIET.0 {
            return Ok(reading);
        }
        last = reading;
    }
}

fn check(tally: &Tally, readings: (&Reading, &Reading, &Reading), shutdown: Duration, memory: &Memory) {
    let (before, right_after, after) = readings;
    let must = |is: bool, what: &str| {
        if !is {
            tally.violation(what.to_owned());
        }
    };
    must(tally.made() == tally.resolved(), "some calls have no end");
    must(right_after.processes == 0, "processes of plugins are left after the shutdown");
    must(right_after.zombies == 0, "zombies are left after the shutdown");
    must(after.is_as(before), "threads, descriptors or processes are not what they were before");
    must(shutdown < SHUTDOWN, "the shutdown took too long");
    must(after.heap_kib < before.heap_kib + KEPT_KIB, "memory is not freed when the host is gone");
    must(!memory.heap.grows(HEAP_COMES_AND_GOES_KIB), "the heap grows and grows");
    must(!memory.rss.grows(RSS_COMES_AND_GOES_KIB), "the memory grows and grows");
}

/// A call that may have been made must not be made again by itself.
fn twice(tally: &Tally, ledger: &Path) {
    let lines = std::fs::read_to_string(ledger).unwrap_or_default();
    let mut seen = BTreeSet::new();
    for token in lines.lines() {
        if !seen.insert(token) {
            tally.violation(format!("the call {token} reached its plugin twice"));
        }
    }
}
