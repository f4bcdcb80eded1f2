//! The subcommands, and the life of a host that most of them have.

mod call;
mod config;
mod consent;
mod lifecycle;
mod logs;
mod plugin_config;
mod plugins;
mod status;
mod told;
mod tools;
mod trust;
mod validate;

use std::sync::Arc;
use std::time::Duration;

use lemon_host::{Host, Session, SessionOptions};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::args::{ConfigRequest, Global, PluginRequest, Request};
use crate::arguments;
use crate::config::{Refused, Setup, gather};
use crate::errors::Failure;
use crate::exit::Exit;
use crate::output::Output;
use crate::shell;
use crate::signals::Signals;
use crate::trace::{Events, Level, Trace};

pub(crate) use call::{ShowProgress, call, progress_on_stderr};
pub(crate) use consent::Consent;
pub(crate) use lifecycle::{Change, change};
pub(crate) use logs::logs;
pub(crate) use status::status;
pub(crate) use told::{awake, settled, tell_failed, warn};
pub(crate) use tools::tools;

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

/// What every command works with. Clones are the same.
#[derive(Clone)]
pub(crate) struct Work {
    pub(crate) setup: Arc<Setup>,
    pub(crate) host: Host,
    pub(crate) session: Session,
    pub(crate) consent: Consent,
    pub(crate) output: Output,
    /// Whether progress that can't be shown in a line of its own is told line by line.
    pub(crate) verbose: bool,
}

/// Runs one subcommand from the start to the end.
pub(crate) async fn run(global: &Global, request: Request, output: &Output) -> Exit {
    let prepared = match prepare(global, request) {
        Ok(prepared) => prepared,
        Err(refused) => return fail(output, &refused).await,
    };
    let signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(error) => {
            let failure = Failure::new(Exit::Internal, "can't listen to signals").why(error.to_string());
            return fail(output, &failure.into()).await;
        }
    };
    let exit = match prepared {
        Prepared::Logs(logs) => {
            let shown = logs::alone(&logs, global, output, signals.token());
            told(shown.await, &signals, output)
        }
        Prepared::Validate(request) => told(validate::validate(&request, global, output).await, &signals, output),
        Prepared::OfDisk(setup, request) => {
            let done = match request {
                OfDisk::List(list) => plugins::list(&list, &setup, output).await,
                OfDisk::Trust(trust) => trust::trust(&trust, &setup, output, signals.token()).await,
                OfDisk::Untrust(untrust) => trust::untrust(&untrust, &setup, output).await,
            };
            told(done, &signals, output)
        }
        Prepared::WithHost(setup, Hosted::Shell) if shell::is_interactive() && setup.waits_for_trust() => {
            match asked(global, &setup, &signals, output).await {
                Ok(setup) => with_host(global, setup, Hosted::Shell, &signals, output).await,
                Err(refused) => return fail(output, &refused).await,
            }
        }
        Prepared::PluginConfig(request) => {
            let shown = plugin_config::plugin_config(&request, global, output, signals.token());
            told(shown.await, &signals, output)
        }
        Prepared::Config(request) => told(config::config(&request, global, output).await, &signals, output),
        Prepared::WithHost(setup, request) => with_host(global, setup, request, &signals, output).await,
    };
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

/// Asks about what is not trusted before a session starts, and gathers the plugins anew.
async fn asked(global: &Global, setup: &Setup, signals: &Signals, output: &Output) -> Result<Arc<Setup>, Refused> {
    let asked = trust::trust(&crate::args::Trust::default(), setup, output, signals.token()).await;
    match asked {
        Err(failure) if failure.exit == Exit::Interrupt => return Err(failure.into()),
        Err(failure) => output.failure(&failure),
        Ok(_) => {}
    }
    gather(global).map(Arc::new)
}

/// A host from its start to its end, and what is done in between.
async fn with_host(global: &Global, setup: Arc<Setup>, request: Hosted, signals: &Signals, output: &Output) -> Exit {
    let consent = Consent::new(output);
    let is_shell = matches!(request, Hosted::Shell);
    let level = match global.verbose {
        0 if is_shell && shell::is_interactive() => Level::Changes,
        0 => Level::Needed,
        _ => Level::All,
    };
    // A report on the plugins is to say how they are.
    let lazy = !matches!(request, Hosted::Status(_));
    let host = start(&setup, global, level, &consent, output, lazy);
    setup.secrets.hide(host.redactor());
    output.redact_with(host.redactor());
    let ending = end_limit(&setup);
    let session = host.session(SessionOptions::default());
    let verbose = global.verbose > 0;
    let work = Work { setup, host, session, consent, output: output.clone(), verbose };
    let cancel = signals.token();
    let done = async {
        match request {
            Hosted::Shell => shell::run(&work, signals).await,
            Hosted::Tools(request) => {
                settled(&work, cancel).await?;
                warn(&work);
                tools(&request, &work, cancel).await
            }
            Hosted::Call(request, arguments) => {
                settled(&work, cancel).await?;
                warn(&work);
                call::tell_shadowed(&request, &work);
                call(&request, arguments, &work, cancel, &progress_on_stderr(&work)).await
            }
            Hosted::Status(request) => {
                settled(&work, cancel).await?;
                status(&request, &work).await
            }
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
        done = done => done,
        () = given_up => Err(interrupted()),
    };
    output.progress(None);
    let exit = told(done, signals, output);
    end(&work.host, signals, ending, output).await;
    exit
}

/// Tells of a failure.
fn told(done: Result<Exit, Failure>, signals: &Signals, output: &Output) -> Exit {
    done.unwrap_or_else(|failure| {
        match signals.received() {
            None => output.failure(&failure),
            // Who pressed Ctrl-C knows.
            Some(Exit::Interrupt) => {}
            Some(signal) => output.failure(&Failure::new(signal, "ended by a signal from outside")),
        }
        failure.exit
    })
}

enum Prepared {
    Logs(crate::args::Logs),
    Validate(crate::args::Validate),
    /// Needs to know which plugins there are, and none of them.
    OfDisk(Box<Setup>, OfDisk),
    PluginConfig(crate::args::PluginConfig),
    Config(ConfigRequest),
    WithHost(Arc<Setup>, Hosted),
}

enum OfDisk {
    List(crate::args::List),
    Trust(crate::args::Trust),
    Untrust(crate::args::Untrust),
}

enum Hosted {
    Tools(crate::args::Tools),
    Call(crate::args::Call, String),
    Status(crate::args::Status),
    Shell,
}

/// All that can go wrong before anything is started.
fn prepare(global: &Global, request: Request) -> Result<Prepared, Refused> {
    let setup = || gather(global).map(Arc::new);
    let disk = || gather(global).map(Box::new);
    Ok(match request {
        Request::Plugin(PluginRequest::Logs(logs)) => Prepared::Logs(logs.own),
        Request::Plugin(PluginRequest::Validate(validate)) => Prepared::Validate(validate.own),
        Request::Plugin(PluginRequest::List(list)) => Prepared::OfDisk(disk()?, OfDisk::List(list.own)),
        Request::Plugin(PluginRequest::Trust(trust)) => Prepared::OfDisk(disk()?, OfDisk::Trust(trust.own)),
        Request::Plugin(PluginRequest::Untrust(untrust)) => Prepared::OfDisk(disk()?, OfDisk::Untrust(untrust.own)),
        Request::Plugin(PluginRequest::Config(config)) => Prepared::PluginConfig(config.own),
        Request::Config(request) => Prepared::Config(request),
        Request::Tools(tools) => Prepared::WithHost(setup()?, Hosted::Tools(tools.own)),
        Request::Call(call) => {
            let setup = setup()?;
            // Stdin, too, as it may be someone who types.
            let arguments = arguments::read(&call.own.arguments)?;
            Prepared::WithHost(setup, Hosted::Call(call.own, arguments))
        }
        Request::Status(status) => Prepared::WithHost(setup()?, Hosted::Status(status.own)),
        Request::Shell(_) => Prepared::WithHost(setup()?, Hosted::Shell),
    })
}

/// Tells of all that is wrong but the last, which is left to the caller.
fn last_of(Refused { setup, mut failures }: Refused, output: &Output) -> Failure {
    setup.warnings.iter().for_each(|warning| output.warning(warning));
    let last = failures.pop();
    failures.iter().for_each(|failure| output.failure(failure));
    last.unwrap_or_else(|| Failure::new(Exit::Usage, "the config can't be used"))
}

async fn fail(output: &Output, refused: &Refused) -> Exit {
    refused.setup.warnings.iter().for_each(|warning| output.warning(warning));
    refused.failures.iter().for_each(|failure| output.failure(failure));
    output.flush().await;
    refused.failures.first().map_or(Exit::Usage, |failure| failure.exit)
}

pub(crate) fn interrupted() -> Failure {
    Failure::new(Exit::Interrupt, "interrupted")
}

/// Whether something was to end before it was done.
pub(crate) async fn unless<T>(cancel: &CancellationToken, work: impl Future<Output = T>) -> Result<T, Failure> {
    tokio::select! {
        biased;
        done = work => Ok(done),
        () = cancel.cancelled() => Err(interrupted()),
    }
}

fn start(setup: &Setup, global: &Global, level: Level, consent: &Consent, output: &Output, lazy: bool) -> Host {
    let mut builder = Host::builder()
        .lazy_start(lazy)
        .cwd(&setup.cwd)
        .filter(setup.filter.clone())
        .limits(setup.limits.clone())
        .timeouts(setup.timeouts.clone())
        .client("lemon", env!("CARGO_PKG_VERSION"))
        .secrets(setup.secrets.clone())
        .events(Events { output: output.clone(), level })
        .approver(consent.clone());
    if let Some(home) = &setup.sources.home {
        builder = builder.log_dir(home.join("logs")).cache_dir(home.join("cache")).data_dir(home.join("data"));
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
    if let Some(gate) = setup.stale_gate() {
        builder = builder.gate(gate);
    }
    builder.start()
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
