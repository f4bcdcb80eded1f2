//! `lemon config`: what is configured, where each value comes from, and whether all of it can be used. Starts nothing.

mod check;
pub(super) mod effective;
pub(super) mod plugins;
pub(super) mod show;

use lemon_host::Redactor;

use super::last_of;
use crate::args::{ConfigRequest, Global};
use crate::config::{self, Setup};
use crate::errors::Failure;
use crate::exit::Exit;
use crate::output::Output;

/// Carries out one of the subcommands.
///
/// # Errors
/// When what was asked for can't be told.
pub(super) async fn config(request: &ConfigRequest, global: &Global, output: &Output) -> Result<Exit, Failure> {
    match request {
        ConfigRequest::Show(request) => show::show(&request.own, global, output).await,
        ConfigRequest::Check(request) => check::check(&request.own, global, output).await,
    }
}

/// Gathers all that is configured. From then on the secrets of the file are hidden in all that is told.
///
/// # Errors
/// The last of what is wrong, after the others were told.
pub(super) fn gathered(global: &Global, output: &Output) -> Result<(Setup, Redactor), Failure> {
    let setup = config::gather(global).map_err(|refused| last_of(refused, output))?;
    let redactor = Redactor::new();
    setup.secrets.hide(&redactor);
    output.redact_with(&redactor);
    Ok((setup, redactor))
}
