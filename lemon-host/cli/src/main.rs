//! `lemon`: the plugin host on the command line.
//!
//! This crate is the only one that prints, reads the user's environment and decides on exit codes; all that is about
//! plugins is in `lemon-host`.

mod args;
mod arguments;
mod commands;
mod config;
mod errors;
mod exit;
mod output;
mod prompt;
mod schema;
mod screen;
mod shell;
mod signals;
mod table;
mod trace;

use std::io::Write as _;
use std::process::ExitCode;

use errors::Failure;
use exit::Exit;
use output::Output;

fn main() -> ExitCode {
    // First of all: this program is also started as the guard of its own plugins.
    lemon_host::guard::init();
    let (global, request) = match args::parse(std::env::args_os()) {
        Ok(parsed) => parsed,
        Err(error) => {
            // Fails when nobody reads it, which is none of our business.
            let _ = match error.use_stderr() {
                // It repeats what was typed, or made by a script.
                true => write!(std::io::stderr(), "{}", errors::safe(&error.to_string())),
                false => error.print(),
            };
            return if error.use_stderr() { Exit::Usage } else { Exit::Done }.into();
        }
    };
    let output = Output::new(global.no_color);
    if global.verbose > 1 {
        trace::show_host(&output);
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            output.failure(&Failure::new(Exit::Internal, "can't start").why(error.to_string()));
            output.flush_now();
            return Exit::Internal.into();
        }
    };
    let exit = runtime.block_on(commands::run(&global, request, &output));
    // A thread that is stuck, such as in a write that nobody reads, must not hold up the end.
    runtime.shutdown_background();
    exit.into()
}
