//! The subcommands, and the life of a host that all of them have.

mod call;
mod status;
mod tools;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use lemon_host::{
    Approval, Approver, CallRequest, Conflict, ConflictReport, Host, Loser, PluginStatus, PluginText, Provenance,
    StateKind, Status,
};
use tokio::time::{Instant, sleep, timeout};

use crate::args::{Global, Request};
use crate::arguments::Arguments;
use crate::config::{self, Setup};
use crate::errors::{self, Failure};
use crate::exit::Exit;
use crate::output::Output;
use crate::signals::Signals;
use crate::trace::{Events, Trace};

/// How long a command may take to end by itself after the first signal.
const AFTER_SIGNAL: Duration = Duration::from_secs(2);

/// How long the end of all plugins may take, beyond what the host allows each; the guard does the rest.
const END_MARGIN: Duration = Duration::from_secs(5);

/// From here on someone who waits wonders.
const NOTICEABLE: Duration = Duration::from_millis(700);

/// How long what is to be said on stderr is waited for after a signal.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How long the killing of all plugins may take.
const KILL: Duration = Duration::from_secs(3);

/// Runs one subcommand from the start to the end of its host.
pub(crate) async fn run(global: &Global, request: Request, output: &Output) -> Exit {
    let (setup, request) = match prepare(global, request) {
        Ok(prepared) => prepared,
        Err(failures) => return fail(output, &failures).await,
    };
    let signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(error) => {
            let failure = Failure::new(Exit::Internal, "can't listen to signals").why(error.to_string());
            return fail(output, &[failure]).await;
        }
    };
    let approve = matches!(&request, Prepared::Call(call, _) if call.yes);
    let host = start(&setup, global, approve, output);
    output.redact_with(host.redactor());
    let ending = end_limit(&setup);

    let work = async {
        match &request {
            Prepared::Tools(tools) => tools::run(tools, &setup, &host, &signals, output).await,
            Prepared::Call(call, arguments) => call::run(call, arguments, &setup, &host, &signals, output).await,
            Prepared::Status(status) => status::run(status, &setup, &host, &signals, output).await,
        }
    };
    let given_up = async {
        signals.first().await;
        tokio::select! {
            () = sleep(AFTER_SIGNAL) => {}
            () = signals.second() => {}
        }
    };
    let done = tokio::select! {
        done = work => done,
        () = given_up => Err(interrupted()),
    };
    output.progress(None);
    let exit = done.unwrap_or_else(|failure| {
        match signals.received() {
            None => output.failure(&failure),
            // Who pressed Ctrl-C knows.
            Some(Exit::Interrupt) => {}
            Some(signal) => output.failure(&Failure::new(signal, "ended by a signal from outside")),
        }
        failure.exit
    });
    end(&host, &signals, ending, output).await;
    // A reader of stderr may take its time, until somebody wants an end.
    let enough = async {
        signals.first().await;
        sleep(LAST_WORDS).await;
    };
    tokio::select! {
        () = output.flush() => {}
        () = enough => {}
    }
    // A signal decides, whatever came of the work in the meantime.
    signals.received().unwrap_or(exit)
}

enum Prepared {
    Tools(crate::args::Tools),
    Call(crate::args::Call, Arguments),
    Status(crate::args::Status),
}

/// All that can go wrong before anything is started.
fn prepare(global: &Global, request: Request) -> Result<(Setup, Prepared), Vec<Failure>> {
    let setup = config::gather(global)?;
    let request = match request {
        // Stdin, too, as it may be someone who types.
        Request::Call(call) => {
            let arguments = Arguments::read(&call.arguments).map_err(|failure| vec![failure])?;
            Prepared::Call(call, arguments)
        }
        Request::Tools(tools) => Prepared::Tools(tools),
        Request::Status(status) => Prepared::Status(status),
    };
    Ok((setup, request))
}

async fn fail(output: &Output, failures: &[Failure]) -> Exit {
    failures.iter().for_each(|failure| output.failure(failure));
    output.flush().await;
    failures.first().map_or(Exit::Usage, |failure| failure.exit)
}

fn interrupted() -> Failure {
    Failure::new(Exit::Interrupt, "interrupted")
}

fn start(setup: &Setup, global: &Global, approve: bool, output: &Output) -> Host {
    let mut builder = Host::builder()
        .cwd(&setup.cwd)
        .filter(setup.filter.clone())
        .limits(setup.limits.clone())
        .timeouts(setup.timeouts.clone())
        .client("lemon", env!("CARGO_PKG_VERSION"))
        .events(Events { output: output.clone(), verbose: global.verbose > 0 })
        .approver(Consent { all: approve, output: output.clone() });
    if let Some(home) = &setup.sources.home {
        builder = builder.log_dir(home.join("logs")).cache_dir(home.join("cache"));
    }
    if let Some(folder) = &setup.untrusted {
        builder = builder.untrusted(folder);
    }
    if global.trace {
        builder = builder.trace(Trace { output: output.clone(), start: Instant::now() });
    }
    for spec in &setup.specs {
        builder = builder.plugin(spec.clone());
    }
    builder.start()
}

/// Waits until every plugin is ready or has failed, and shows which ones it is waiting for.
async fn settled(host: &Host, signals: &Signals, output: &Output) -> Result<(), Failure> {
    let mut settled = std::pin::pin!(host.settled());
    let settled = loop {
        tokio::select! {
            biased;
            () = &mut settled => break Ok(()),
            () = signals.first() => break Err(interrupted()),
            () = sleep(NOTICEABLE) => {}
        }
        let is_starting = |plugin: &PluginStatus| matches!(plugin.state, StateKind::Spawning | StateKind::Handshaking);
        let plugins = host.status().plugins;
        let names: Vec<_> =
            plugins.iter().filter(|plugin| is_starting(plugin)).map(|plugin| plugin.name.as_str()).collect();
        output.progress(Some(format!("starting {}", names.join(", "))));
    };
    output.progress(None);
    settled
}

/// What has to be said of the config before a list or a call is of use.
fn warn(setup: &Setup, host: &Host, output: &Output) {
    setup.warnings.iter().for_each(|warning| output.warning(warning));
    for Loser { name, provenance, winner, .. } in host.status().losers {
        if (&provenance, &winner) == (&Provenance::Flag, &Provenance::Flag) {
            output.warning(format!("several `--plugin` are named {name}: only the first is started"));
            output.hint("give each a name of its own: `--plugin NAME=PATH-OR-COMMAND`");
            continue;
        }
        let (loser, winner) = (errors::shown(&provenance.to_string()), errors::shown(&winner.to_string()));
        output.warning(format!("plugin {name} of {loser} is not started: {winner} has one of that name, and wins"));
    }
}

/// More lines of one kind nobody reads.
const LINES: usize = 20;

/// A line for each tool that another one of its name hides.
fn shadowed(conflicts: &ConflictReport) -> Vec<String> {
    let all = conflicts.conflicts.iter().flat_map(|Conflict { tool_name, winner, shadowed, .. }| {
        shadowed.iter().map(move |loser| format!("the tool `{tool_name}` of {loser} is hidden by the one of {winner}"))
    });
    first(all, "more tools are hidden")
}

/// A line for each name that `--disable` and its like give in vain.
fn idle_filters(status: &Status) -> Vec<String> {
    let all = status.idle_filters.iter().map(|pattern| {
        let pattern = PluginText::new(pattern.as_str());
        format!("no tool is named `{}`, which is to be disabled or enabled", pattern.capped(80))
    });
    first(all, "more names stand for no tool")
}

/// The first lines, and how many more there are.
fn first(lines: impl Iterator<Item = String>, more: &str) -> Vec<String> {
    let mut lines: Vec<_> = lines.collect();
    if let Some(left @ 1..) = lines.len().checked_sub(LINES) {
        lines.truncate(LINES);
        lines.push(format!("{left} {more}; `lemon status --json` has them all"));
    }
    lines
}

/// Tells of the plugins that can't be used, and says whether there are any.
fn tell_failed(host: &Host, output: &Output) -> bool {
    let plugins = host.status().plugins;
    let failures: Vec<Failure> = plugins.iter().filter_map(errors::of_start).collect();
    failures.iter().for_each(|failure| output.failure(failure));
    !failures.is_empty()
}

/// What to do when there is no plugin at all.
fn how_to_add(setup: &Setup) -> String {
    let config = setup.sources.home.as_ref().map(|home| home.join("config.toml"));
    let config =
        config.map_or_else(|| "a file for `--config`".to_owned(), |file| errors::shown(&file.to_string_lossy()));
    format!(
        "add one with `--plugin PATH-OR-COMMAND`, or as [plugins.NAME] with `command = [\"PROGRAM\", \"ARGUMENT\"]` in {config}"
    )
}

/// How long the orderly end of all plugins may take.
fn end_limit(setup: &Setup) -> Duration {
    let times = &setup.timeouts;
    [times.drain_ms, times.shutdown_ms, times.eof_ms, times.term_ms]
        .iter()
        .fold(END_MARGIN, |sum, time| sum.saturating_add(time.get()))
}

/// Ends the host, whatever the plugins do.
async fn end(host: &Host, signals: &Signals, limit: Duration, output: &Output) {
    let patience = async {
        signals.first().await;
        sleep(NOTICEABLE).await;
        output.note("waiting for the plugins to end; Ctrl-C again kills them at once");
        std::future::pending::<()>().await;
    };
    let orderly = tokio::select! {
        ended = timeout(limit, host.shutdown()) => ended.is_ok(),
        () = signals.second() => false,
        () = patience => false,
    };
    if !orderly && timeout(KILL, host.kill_all()).await.is_err() {
        output.warning("some plugins could not be ended; the guard goes on with it");
    }
}

/// Decides on the calls that plugins make.
struct Consent {
    all: bool,
    output: Output,
}

impl Approver for Consent {
    fn approve<'a>(&'a self, request: CallRequest<'a>) -> Pin<Box<dyn Future<Output = Approval> + Send + 'a>> {
        let approval = if self.all {
            Approval::Allow
        } else {
            self.output.warning(format!(
                "{} wanted to call the tool `{}` and was refused; `--yes` allows it",
                request.caller, request.tool
            ));
            Approval::deny("the user did not allow plugins to call other tools (lemon call --yes)")
        };
        Box::pin(std::future::ready(approval))
    }
}
