//! What the host is promised to hold to at its worst: memory, the time to an error, the time to its own end.
//!
//! Each case runs in a process of its own, as the most memory that a process ever had is counted for its whole life, and
//! on the runtime that the lemon command has. Beside the plugin at hand a healthy one is called all the time.

use std::fmt;
use std::pin::pin;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use futures_util::future::join_all;
use lemon_host::{CallError, Class, Host, PluginName, PluginSpec, Session, SessionOptions};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::args::{Case, Dialect};
use crate::deed::{Arguments, Deed};
use crate::plan::HEALTHY;
use crate::run::AllowAll;
use crate::system::status;

const MIB: usize = 1024 * 1024;

/// The plugin that does harm.
const WORST: &str = "worst";

/// What a case brought.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Figures {
    what: String,
    /// What was measured, beside the memory.
    result: String,
    /// Resident with the plugins ready, and at the most.
    rss_kib: u64,
    peak_kib: u64,
    /// Calls of the healthy plugin in the meantime, and the slowest of them.
    neighbours: u64,
    slowest_ms: f64,
}

/// The figures of all cases, as a table.
pub(crate) struct Table(pub(crate) Vec<Figures>);

/// Has each case told by a process of its own.
#[expect(clippy::disallowed_methods, reason = "what is started is a host and no plugin")]
pub(crate) fn all() -> Result<Table> {
    let mut table = Vec::new();
    for case in Case::value_variants() {
        let name = case.to_possible_value().context("a case without a name")?;
        let mut command = Command::new(std::env::current_exe()?);
        let output = command.args(["measure", name.get_name()]).stderr(Stdio::inherit()).output()?;
        ensure!(output.status.success(), "{} ended with {}", name.get_name(), output.status);
        table.push(serde_json::from_slice(&output.stdout)?);
    }
    Ok(Table(table))
}

/// Goes through one case.
pub(crate) fn one(case: Case) -> Result<Figures> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(measure(case))
}

async fn measure(case: Case) -> Result<Figures> {
    let count = match case {
        Case::Idle => 50,
        Case::Exit => 8,
        _ => 1,
    };
    let worst: Vec<String> = (0..count).map(|n| format!("{WORST}{n}")).collect();
    let host = host(&worst)?;
    host.settled().await;
    let session = host.session(SessionOptions::default());
    // What the first call brings along is none of the case's.
    call(&session, HEALTHY, Deed::Answer, 0).await?;
    let (rss_kib, end) = (status("VmRSS:")?, CancellationToken::new());
    let neighbour = tokio::spawn(neighbour(session.clone(), end.clone()));
    let (what, result) = match case {
        Case::Idle => (format!("{count} idle plugins and a healthy one"), idle(&host).await?),
        Case::Kill => ("kill -9 of a plugin until its caller has the error".to_owned(), killed(&host, &session).await?),
        Case::Exit => (
            "shutdown of 8 plugins that ignore all but SIGKILL, calls under way".to_owned(),
            exit(&host, &session, &worst).await?,
        ),
        Case::BothWays => ("200 calls with 64 KiB there and back at once".to_owned(), both_ways(&session).await?),
        Case::Progress => ("a million notes on progress".to_owned(), often(&session, Deed::ProgressStorm, 1000).await?),
        Case::Stderr => ("1 GiB on stderr".to_owned(), often(&session, Deed::Stderr, 1024).await?),
        Case::EndlessLine => ("a line of 1 GiB that never ends".to_owned(), endless(&session).await?),
        Case::LargeNotes => ("64 log messages of 15 MiB".to_owned(), often(&session, Deed::LargeNotes, 1).await?),
        Case::LargeRequests => (
            "64 calls of another plugin under way, with 15 MiB each".to_owned(),
            silent(&session, Deed::LargeRequests).await?,
        ),
        Case::Requests => {
            ("a million requests from one that reads no answer".to_owned(), silent(&session, Deed::Requests).await?)
        }
        Case::StoppedReader => {
            ("64 MiB for one that reads nothing".to_owned(), unread(&host, &session, Deed::StopReading).await?)
        }
        Case::SlowReader => {
            ("64 MiB for one that reads a byte a second".to_owned(), unread(&host, &session, Deed::ReadSlowly).await?)
        }
    };
    let peak_kib = status("VmHWM:")?;
    end.cancel();
    let (neighbours, slowest) = neighbour.await??;
    host.kill_all().await;
    Ok(Figures { what, result, rss_kib, peak_kib, neighbours, slowest_ms: slowest.as_secs_f64() * 1e3 })
}

fn host(worst: &[String]) -> Result<Host> {
    let program = std::env::current_exe()?.to_str().context("this program's path is not UTF-8")?.to_owned();
    let mut host = Host::builder().approver(AllowAll);
    for name in worst.iter().map(String::as_str).chain([HEALTHY]) {
        let command = [&program, "plugin", name, Dialect::Lemon.as_str()];
        host = host.plugin(PluginSpec::new(name.parse()?, Class::Extension, command));
    }
    Ok(host.start())
}

/// Calls the healthy plugin until the end. Says how often, and what the slowest call took.
async fn neighbour(session: Session, end: CancellationToken) -> Result<(u64, Duration)> {
    let (mut calls, mut slowest) = (0, Duration::ZERO);
    while !end.is_cancelled() {
        let start = Instant::now();
        match call(&session, HEALTHY, Deed::Answer, 0).await {
            Ok(()) => {}
            // The host may be at its end: that is a case of its own.
            Err(CallError::ShuttingDown { .. } | CallError::SessionOver { .. }) => break,
            Err(error) => return Err(error.into()),
        }
        slowest = slowest.max(start.elapsed());
        calls += 1;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok((calls, slowest))
}

async fn call(session: &Session, tool: &str, deed: Deed, pad: usize) -> Result<(), CallError> {
    let arguments = Arguments { token: "t".to_owned(), deed, after: 0, pad: "x".repeat(pad) };
    let arguments = serde_json::to_string(&arguments).unwrap_or_default();
    session.call(tool, arguments).await.map(drop)
}

fn first() -> String {
    format!("{WORST}0")
}

async fn idle(host: &Host) -> Result<String> {
    tokio::time::sleep(Duration::from_secs(2)).await;
    let ready = host.status().plugins.iter().filter(|plugin| plugin.tools == 1).count();
    Ok(format!("{ready} plugins are ready"))
}

async fn killed(host: &Host, session: &Session) -> Result<String> {
    const ROUNDS: usize = 300;
    let (name, mut times): (PluginName, _) = (first().parse()?, Vec::new());
    for _ in 0..ROUNDS {
        host.start(&name).await?;
        let pid = host
            .status()
            .plugins
            .iter()
            .find(|plugin| plugin.name == name)
            .and_then(|plugin| plugin.process.as_ref().map(|process| process.pid));
        let pid = Pid::from_raw(i32::try_from(pid.context("it has no process")?)?);
        let (session, tool) = (session.clone(), first());
        let waiting = tokio::spawn(async move { call(&session, &tool, Deed::Never, 0).await });
        // The call is on its way; when it has arrived does not matter to what follows.
        tokio::time::sleep(Duration::from_millis(2)).await;
        let start = Instant::now();
        kill(pid, Signal::SIGKILL)?;
        match waiting.await? {
            Err(CallError::Crashed { .. }) => times.push(start.elapsed()),
            other => bail!("a call whose plugin was killed ended with {other:?}"),
        }
    }
    times.sort_unstable();
    let [median, late, worst] = [ROUNDS / 2, ROUNDS * 99 / 100, ROUNDS - 1].map(|at| times[at].as_secs_f64() * 1e3);
    Ok(format!("{ROUNDS} times: median {median:.2} ms, 99 % within {late:.2} ms, worst {worst:.2} ms"))
}

async fn exit(host: &Host, session: &Session, worst: &[String]) -> Result<String> {
    let mut waiting = Vec::new();
    for (n, name) in worst.iter().enumerate() {
        call(session, name, Deed::ChildOwnSession, 0).await?;
        call(session, name, Deed::OutliveEnd, 0).await?;
        let deed = if n % 2 == 0 { Deed::StopReading } else { Deed::StopItself };
        let (session, name) = (session.clone(), name.clone());
        waiting.push(tokio::spawn(async move { call(&session, &name, deed, 0).await }));
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    let start = Instant::now();
    host.shutdown().await;
    let took = start.elapsed();
    let ended = join_all(waiting).await.into_iter().filter(|ended| matches!(ended, Ok(Err(_)))).count();
    let left = crate::system::Reading::take()?.processes;
    Ok(format!("{:.2} s; {ended} of 8 calls have their error, {left} processes are left", took.as_secs_f64()))
}

async fn both_ways(session: &Session) -> Result<String> {
    let start = Instant::now();
    let tool = first();
    let all = join_all((0..200).map(|_| call(session, &tool, Deed::Large, 64 * 1024))).await;
    let answered = all.iter().filter(|ended| ended.is_ok()).count();
    Ok(format!("{answered} answered in {:.0} ms", start.elapsed().as_secs_f64() * 1e3))
}

async fn often(session: &Session, deed: Deed, times: usize) -> Result<String> {
    let start = Instant::now();
    for _ in 0..times {
        call(session, &first(), deed, 0).await?;
    }
    Ok(format!("in {times} calls, all answered, {:.1} s", start.elapsed().as_secs_f64()))
}

async fn endless(session: &Session) -> Result<String> {
    let start = Instant::now();
    match call(session, &first(), Deed::EndlessLine, 0).await {
        Err(CallError::TooLarge { .. }) => {}
        other => bail!("an endless answer ended with {other:?}"),
    }
    let failed = start.elapsed();
    // The rest streams by in the meantime; there is no sign of its end but the plugin's silence.
    tokio::time::sleep(Duration::from_secs(5)).await;
    Ok(format!("the call failed as too large after {:.0} ms", failed.as_secs_f64() * 1e3))
}

/// A call that is not answered.
async fn silent(session: &Session, deed: Deed) -> Result<String> {
    let start = Instant::now();
    let arguments = Arguments { token: "t".to_owned(), deed, after: 0, pad: String::new() };
    let call = session.call(first(), serde_json::to_string(&arguments)?).deadline(Duration::from_secs(20));
    let Err(error) = call.await else { bail!("a call that is not answered succeeded") };
    Ok(format!("after {:.1} s: {error}", start.elapsed().as_secs_f64()))
}

async fn unread(host: &Host, session: &Session, deed: Deed) -> Result<String> {
    let deadline = Duration::from_secs(3);
    let tool = first();
    let call = |deed, pad| {
        let arguments = Arguments { token: "t".to_owned(), deed, after: 0, pad: "x".repeat(pad) };
        let arguments = serde_json::to_string(&arguments).unwrap_or_default();
        session.call(tool.as_str(), arguments).deadline(deadline).into_future()
    };
    let stop = call(deed, 0);
    let calls = join_all((0..64).map(|_| call(Deed::Large, MIB)));
    let mut all = pin!(futures_util::future::join(stop, calls));
    let mut most = 0;
    let (_, ended) = loop {
        tokio::select! {
            ended = &mut all => break ended,
            () = tokio::time::sleep(Duration::from_millis(10)) => most = most.max(outbox(host, &tool)),
        }
    };
    let timed_out = ended.iter().filter(|ended| {
        matches!(ended, Err(CallError::Timeout { .. } | CallError::Unsent { .. } | CallError::NotReading { .. }))
    });
    let most = most as f64 / MIB as f64;
    Ok(format!("{} of 64 calls of 1 MiB ended at their deadline, at most {most:.1} MiB waited", timed_out.count()))
}

/// Bytes that wait to be written to a plugin.
fn outbox(host: &Host, plugin: &str) -> usize {
    let status = host.status();
    let plugin = status.plugins.iter().find(|status| status.name.as_str() == plugin);
    plugin.and_then(|plugin| plugin.process.as_ref()).map_or(0, |process| process.outbox_bytes)
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", crate::system::machine())?;
        writeln!(f, "{:>9} {:>9} {:>14}", "ready,", "peak,", "slowest of the")?;
        writeln!(f, "{:>9} {:>9} {:>14}", "KiB", "KiB", "neighbours, ms")?;
        for Figures { what, result, rss_kib, peak_kib, slowest_ms, .. } in &self.0 {
            writeln!(f, "{rss_kib:>9} {peak_kib:>9} {slowest_ms:>14.1}  {what}: {result}")?;
        }
        Ok(())
    }
}
