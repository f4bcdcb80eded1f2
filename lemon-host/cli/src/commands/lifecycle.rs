//! What changes a plugin's life: start, stop, restart, reload, kill.

use futures_util::future::join_all;
use lemon_host::{CommandError, Host, PluginName, PluginStatus};
use tokio_util::sync::CancellationToken;

use super::Work;
use crate::errors::{self, Failure};
use crate::exit::Exit;

/// What is to happen to a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Start,
    Stop,
    Restart,
    Reload,
    Kill,
}

impl Change {
    fn done(self) -> &'static str {
        match self {
            Self::Start => "started",
            Self::Stop => "stopped",
            Self::Restart => "restarted",
            Self::Reload => "reloaded",
            Self::Kill => "killed",
        }
    }

    async fn make(self, host: &Host, plugin: &PluginName) -> Result<(), CommandError> {
        match self {
            Self::Start => host.start(plugin).await,
            Self::Stop => host.stop(plugin).await,
            Self::Restart => host.restart(plugin).await,
            Self::Reload => host.reload(plugin).await,
            Self::Kill => host.kill(plugin).await,
        }
    }
}

/// Makes the change to all of these plugins side by side, and says what became of each.
///
/// # Errors
/// The last failure; the others are told.
pub(crate) async fn change(
    change: Change,
    names: &[String],
    work: &Work,
    cancel: &CancellationToken,
) -> Result<Exit, Failure> {
    let plugins = names.iter().map(|name| errors::known_plugin(name, &work.host.status().plugins));
    let plugins: Vec<PluginName> = plugins.collect::<Result<_, _>>()?;
    let all = plugins.iter().map(|plugin| async move {
        let interrupted = || {
            let what = format!("the command goes on: plugin {plugin} is still to be {}", change.done());
            Failure::new(Exit::Interrupt, what).why("only the waiting for it was cancelled")
        };
        let made = tokio::select! {
            made = change.make(&work.host, plugin) => made.map_err(|error| failure(change, plugin, &error, work)),
            () = cancel.cancelled() => Err(interrupted()),
        };
        made.map(|()| said(change, plugin, work))
    });
    let mut failures = Vec::new();
    for done in join_all(all).await {
        match done {
            Ok(line) => work.output.report(&line).await?,
            Err(failure) => failures.push(failure),
        }
    }
    let last = failures.pop();
    failures.iter().for_each(|failure| work.output.failure(failure));
    last.map_or(Ok(Exit::Done), Err)
}

fn status_of(plugin: &PluginName, work: &Work) -> Option<PluginStatus> {
    work.host.status().plugins.into_iter().find(|status| status.name == *plugin)
}

fn said(change: Change, plugin: &PluginName, work: &Work) -> String {
    let process = status_of(plugin, work).and_then(|status| status.process);
    match process {
        Some(process) => format!("{plugin}: {}, process {}\n", change.done(), process.pid),
        None => format!("{plugin}: {}\n", change.done()),
    }
}

fn failure(change: Change, plugin: &PluginName, error: &CommandError, work: &Work) -> Failure {
    let own = || {
        let what = format!("plugin {plugin} was not {}", change.done());
        Failure::new(Exit::Plugin, what).why(error.to_string())
    };
    match error {
        CommandError::Start(_) => {
            status_of(plugin, work).and_then(|status| errors::of_start(&status)).unwrap_or_else(own)
        }
        _ => own(),
    }
}
