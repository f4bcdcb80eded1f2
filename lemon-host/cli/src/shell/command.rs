//! A line of the shell as a command: words with a POSIX shell's quotes and comments, without anything that expands.

use clap::error::{ContextKind, ContextValue};
use clap::{Args, CommandFactory, Parser, Subcommand};
use lemon_host::PluginText;

use crate::args;
use crate::errors::Failure;
use crate::exit::Exit;

/// A line that is not empty.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) command: Command,
    /// The command as it was typed.
    pub(super) text: String,
    pub(super) in_background: bool,
}

#[derive(Debug, Parser)]
#[command(
    no_binary_name = true,
    disable_help_flag = true,
    disable_help_subcommand = true,
    help_template = "{subcommands}{after-help}",
    after_help = "\
A command that ends with & goes on in the background. Words are quoted as in a
POSIX shell, and nothing is expanded. `help COMMAND` tells more about one. Ctrl-C
cancels a command, Ctrl-D ends the shell."
)]
struct Typed {
    #[command(subcommand)]
    command: Command,
}

/// What the shell can be told.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List the tools of all plugins
    Tools(args::Tools),
    /// Call a tool and print its answer
    #[command(after_help = "\
Arguments are one JSON object, or words: key=value is a string, from which the
number, list or whatever else the tool's schema wants is made; key:=JSON is JSON.

  call hello name='you there'
  call add '{\"a\": 1, \"b\": 2}'
  call slow seconds=10 &")]
    Call(args::Call),
    /// Report on the plugins: their states, versions, processes, tools and errors
    Status(args::Status),
    /// Start plugins that were stopped or have failed
    Start(Plugins),
    /// Stop plugins, until they are started again
    Stop(Plugins),
    /// Give plugins another process, after the calls under way
    Restart(Plugins),
    /// Give plugins another process, which takes over when it is ready; else the old one stays
    Reload(Plugins),
    /// Kill the processes of plugins, which then stay stopped
    Kill(Plugins),
    /// Show what a plugin has written to stderr, which is its log
    Logs(args::Logs),
    /// List what goes on in the background
    Jobs,
    /// Cancel jobs
    Cancel(Ids),
    /// Wait until jobs have ended, all of them unless some are named
    Wait(Ids),
    /// Show the commands, or what one takes
    #[command(skip)]
    Help(String),
    /// End the shell and all plugins
    #[command(visible_alias = "exit")]
    Quit,
}

impl Command {
    /// Whether it only ends when it is cancelled.
    pub(super) fn is_endless(&self) -> bool {
        matches!(self, Self::Logs(logs) if logs.follow)
    }

    /// Whether it is about the shell itself, and takes no time.
    fn is_instant(&self) -> bool {
        matches!(self, Self::Jobs | Self::Cancel(_) | Self::Wait(_) | Self::Help(_) | Self::Quit)
    }
}

/// Names of plugins.
#[derive(Debug, Args)]
pub(super) struct Plugins {
    /// The plugins
    #[arg(value_name = "NAME", required = true)]
    pub(super) names: Vec<String>,
}

/// Numbers of jobs.
#[derive(Debug, Args)]
pub(super) struct Ids {
    /// The jobs, as `jobs` lists them
    #[arg(value_name = "ID")]
    pub(super) ids: Vec<u32>,
}

/// The names of all commands.
pub(super) fn names() -> Vec<String> {
    let commands = Typed::command();
    commands.get_subcommands().map(|command| command.get_name().to_owned()).chain(["help".to_owned()]).collect()
}

/// Reads a line; none if there is nothing in it.
///
/// # Errors
/// What is wrong with it, in one line.
pub(super) fn read(line: &str) -> Result<Option<Line>, Failure> {
    let usage = |what: &str| Failure::new(Exit::Usage, what);
    let text = line.trim();
    let (text, in_background) = match text.strip_suffix('&') {
        Some(text) if text.is_empty() || text.ends_with(char::is_whitespace) => (text.trim_end(), true),
        _ => (text, false),
    };
    let Some(words) = shlex::split(text) else {
        return Err(usage("a quote is not closed, or a `\\` ends the line"));
    };
    if words.is_empty() {
        return if in_background { Err(usage("there is no command before `&`")) } else { Ok(None) };
    }
    let command = match words.split_first() {
        Some((help, about)) if help == "help" || help == "?" => help_about(about.first().map(String::as_str))?,
        Some((name, [flag])) if flag == "--help" || flag == "-h" => help_about(Some(name))?,
        _ => Typed::try_parse_from(&words).map_err(|error| of_wrong_words(&error))?.command,
    };
    if in_background && command.is_instant() {
        return Err(usage("this command takes no time and can't go on in the background"));
    }
    Ok(Some(Line { command, text: text.to_owned(), in_background }))
}

fn help_about(name: Option<&str>) -> Result<Command, Failure> {
    let mut commands = Typed::command();
    let help = match name {
        None => commands.render_help(),
        Some(name) => match commands.find_subcommand(name) {
            Some(command) => command.clone().bin_name(command.get_name().to_owned()).render_help(),
            None => return Err(no_command(name, None)),
        },
    };
    let lines = help.ansi().to_string();
    // Aligning leaves spaces behind.
    Ok(Command::Help(lines.lines().map(|line| line.trim_end().to_owned() + "\n").collect()))
}

fn no_command(name: &str, nearest: Option<&str>) -> Failure {
    let failure = Failure::new(Exit::Usage, format!("there is no command `{}`", PluginText::new(name).capped(80)));
    match nearest {
        Some(nearest) => failure.hint(format!("did you mean `{nearest}`?")),
        None => failure.hint("`help` lists the commands"),
    }
}

/// What clap says, in one line.
fn of_wrong_words(error: &clap::Error) -> Failure {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        Some(ContextValue::Strings(texts)) => texts.first().map(String::as_str),
        _ => None,
    };
    if let Some(name) = text(ContextKind::InvalidSubcommand) {
        return no_command(name, text(ContextKind::SuggestedSubcommand));
    }
    let plain = error.render().to_string();
    let what = plain.split("\n\n").next().unwrap_or_default().trim_start_matches("error:");
    Failure::new(Exit::Usage, what.split_whitespace().collect::<Vec<_>>().join(" "))
}
