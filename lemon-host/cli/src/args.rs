//! What can be said on the command line.
//!
//! The global options are taken before and after the subcommand, and `--plugin` adds up over both places, which clap's
//! own global arguments would not do: they are declared twice and [merged](Global::merge).

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{ArgAction, Args, ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand};

const EXIT_CODES: &str = "\
Exit codes:
  0  done; `status` is a report and ends so even if plugins have failed
  1  the tool answered with an error
  2  the command line, the arguments of a call or a config file are wrong
  3  there is no such tool
  4  a plugin failed: it did not start, crashed or broke the protocol
  5  the call timed out
  6  lemon itself failed, such as to write its output
  129, 130, 143: ended by SIGHUP, SIGINT (Ctrl-C) or SIGTERM; a second signal
     kills all plugins at once

Plugins come from --plugin, then --config FILE, then ~/.lemon/config.toml; the
first of a name wins. LEMON_HOME names another folder than ~/.lemon.";

/// Lists and calls the tools of plugins, which are programs in any language.
#[derive(Debug, Parser)]
#[command(name = "lemon", version, after_help = EXIT_CODES, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    request: Request,
}

/// The options that every subcommand has.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Work in this folder, as if lemon had been started there
    #[arg(short = 'C', long = "directory", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,

    /// Start this plugin: a script, a program, or a command with its arguments in quotes; NAME=… gives it a name
    #[arg(long = "plugin", value_name = "PATH-OR-COMMAND")]
    pub(crate) plugins: Vec<OsString>,

    /// Read this config file, too; its entries win over those of the user's own
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Hide this tool, whoever provides it; `*` stands for any characters, and several may be given with commas
    #[arg(long = "disable", value_name = "TOOL", value_delimiter = ',')]
    pub(crate) disabled: Vec<String>,

    /// Hide all tools but this one; `*` stands for any characters, and several may be given with commas
    #[arg(long = "enable-only", value_name = "TOOL", value_delimiter = ',')]
    pub(crate) enabled_only: Vec<String>,

    /// Tell on stderr what happens: states of plugins, their log messages, noise; twice: also what the host itself does
    #[arg(short, long, action = ArgAction::Count)]
    pub(crate) verbose: u8,

    /// Show on stderr every message between lemon and the plugins, without secrets
    #[arg(long)]
    pub(crate) trace: bool,

    /// Use no colors, as with NO_COLOR set
    #[arg(long)]
    pub(crate) no_color: bool,
}

/// A subcommand with what is its own.
#[derive(Debug, Subcommand)]
pub(crate) enum Request {
    /// List the tools of all plugins
    Tools(Tools),
    /// Call a tool and print its answer
    Call(Call),
    /// Report on the plugins: their states, versions, processes, tools and errors
    Status(Status),
}

/// `lemon tools`.
#[derive(Debug, Args)]
pub(crate) struct Tools {
    /// Show these tools in full, with their arguments
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,

    /// Print one JSON object: tools, failed, conflicts, quarantined
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    global: Global,
}

/// `lemon call`.
#[derive(Debug, Args)]
#[command(after_help = "\
Arguments are one JSON object, or words: key=value takes the type that the
tool's schema gives the key; key:=JSON is JSON whatever the schema says.

Examples:
  lemon call hello name=World
  lemon call add '{\"a\": 1, \"b\": 2}'
  lemon call add a=1 b=2
  echo '{\"name\": \"World\"}' | lemon call hello -

Only the answer goes to stdout; progress shows on stderr where that is a
terminal. A text in the answer that does not end with a newline gets one;
--json has it as it is.")]
pub(crate) struct Call {
    /// The tool's name, as `lemon tools` lists it
    pub(crate) tool: String,

    /// The arguments: one JSON object, `-` to read it from stdin, or words like key=value
    #[arg(value_name = "JSON|KEY=VALUE")]
    pub(crate) arguments: Vec<String>,

    /// Print the whole result as one line of JSON, as the plugin wrote it
    #[arg(long)]
    pub(crate) json: bool,

    /// Give the call so many seconds in all, from when its arguments are checked, whatever the tool and the config say
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,

    /// Allow plugins to call tools of other plugins during this call; otherwise they are refused
    #[arg(long)]
    pub(crate) yes: bool,

    #[command(flatten)]
    global: Global,
}

/// `lemon status`.
#[derive(Debug, Args)]
pub(crate) struct Status {
    /// Print one JSON object: status, config, warnings
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    global: Global,
}

/// Reads the command line.
///
/// # Errors
/// What clap says of a wrong one; also `--help` and `--version`, which it holds as errors.
pub(crate) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<(Global, Request), clap::Error> {
    let words: Vec<OsString> = words.into_iter().collect();
    let mut command = Cli::command();
    // Also for what is said of a wrong command line, which is therefore looked at before it is understood.
    if words.iter().take_while(|word| *word != "--").any(|word| word == "--no-color") {
        command = command.color(ColorChoice::Never);
    }
    let cli = Cli::from_arg_matches(&command.try_get_matches_from_mut(words)?)?;
    let mut request = cli.request;
    let after = std::mem::take(match &mut request {
        Request::Tools(tools) => &mut tools.global,
        Request::Call(call) => &mut call.global,
        Request::Status(status) => &mut status.global,
    });
    let global = cli.global.merge(after).map_err(|option| {
        let message = format!("the argument '{option}' cannot be used multiple times");
        command.error(ErrorKind::ArgumentConflict, message)
    })?;
    Ok((global, request))
}

impl Global {
    /// Puts what was said before and after the subcommand together; the error is an option that was said twice.
    fn merge(self, after: Self) -> Result<Self, &'static str> {
        Ok(Self {
            directory: one(self.directory, after.directory, "-C <DIR>")?,
            plugins: self.plugins.into_iter().chain(after.plugins).collect(),
            config: one(self.config, after.config, "--config <FILE>")?,
            disabled: self.disabled.into_iter().chain(after.disabled).collect(),
            enabled_only: self.enabled_only.into_iter().chain(after.enabled_only).collect(),
            verbose: self.verbose.saturating_add(after.verbose),
            trace: self.trace || after.trace,
            no_color: self.no_color || after.no_color,
        })
    }
}

fn one<T>(before: Option<T>, after: Option<T>, option: &'static str) -> Result<Option<T>, &'static str> {
    match (before, after) {
        (Some(_), Some(_)) => Err(option),
        (before, after) => Ok(before.or(after)),
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().map_err(|_| "it must be a number of seconds, such as 30 or 0.5".to_owned())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        Ok(_) => Err("it must be at least a nanosecond".to_owned()),
        Err(_) if seconds > 0.0 => Err("it is longer than can be counted; leave it out for the usual time".to_owned()),
        Err(_) => Err("it must be more than 0 seconds".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<(Global, Request), clap::Error> {
        parse(line.split(' ').map(OsString::from))
    }

    #[test]
    fn the_definition_holds_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn global_options_are_taken_in_both_places_and_plugins_add_up() {
        let (global, request) = parsed("lemon --plugin a -v tools --plugin b -v --trace x").unwrap();
        assert_eq!(global.plugins, ["a", "b"]);
        assert_eq!((global.verbose, global.trace), (2, true));
        assert!(matches!(request, Request::Tools(tools) if tools.names == ["x"]));
        let error = parsed("lemon -C a tools -C b").unwrap_err();
        assert!(error.to_string().contains("'-C <DIR>' cannot be used multiple times"));
    }

    #[test]
    fn a_lone_dash_and_values_with_dashes_are_arguments_of_the_call() {
        let (_, request) = parsed("lemon call x - --json").unwrap();
        assert!(matches!(request, Request::Call(call) if call.arguments == ["-"] && call.json));
        let (_, request) = parsed("lemon call x a=-1 -- --b=2").unwrap();
        assert!(matches!(request, Request::Call(call) if call.arguments == ["a=-1", "--b=2"]));
    }

    #[test]
    fn a_timeout_is_a_positive_number_of_seconds() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for wrong in ["0", "-1", "x", "nan", "inf", ""] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
