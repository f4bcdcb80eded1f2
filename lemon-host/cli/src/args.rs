//! What can be said on the command line.
//!
//! The global options are taken before and after the subcommand, and `--plugin` adds up over both places, which clap's
//! own global arguments would not do: they are declared twice and [merged](Global::merge).

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{ArgAction, Args, ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::exit;

fn after_help() -> String {
    format!(
        "\
Exit codes:
{}
Plugins come from --plugin, then --config FILE, then ~/.lemon/config.toml, then
the folders of `extension_paths`, ~/.lemon/agent/extensions, and the project's
.lemon folder; the first of a name wins. LEMON_HOME names another folder than
~/.lemon. `lemon config show` shows what is in force and where it comes from.",
        exit::meanings()
    )
}

/// Lists and calls the tools of plugins, which are programs in any language.
#[derive(Debug, Parser)]
#[command(name = "lemon", version, after_help = after_help(), max_term_width = 100)]
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

    /// Start this plugin: a script, a program, a folder with a manifest, or a command with its arguments in quotes; NAME=…
    /// gives it a name
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
    Tools(With<Tools>),
    /// Call a tool and print its answer
    Call(With<Call>),
    /// Report on the plugins: their states, versions, processes, tools and errors
    Status(With<Status>),
    /// Keep the plugins running and take commands, from a prompt or from stdin
    Shell(With<Shell>),
    /// What concerns one plugin
    #[command(subcommand)]
    Plugin(PluginRequest),
    /// What is configured, and where it comes from
    #[command(subcommand)]
    Config(ConfigRequest),
}

/// A subcommand of `lemon config`.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigRequest {
    /// Show every setting that is in force, and what says so
    Show(With<ShowConfig>),
    /// Check the config files, and all that they name, without starting anything
    Check(With<CheckConfig>),
}

/// `lemon config show`.
#[derive(Debug, Args)]
#[command(after_help = "\
It is TOML, with the place of each value in a comment: a file with its line, a
variable, a flag, a manifest, or built-in. What says something else and does not
count stands below. Values of `env`, and what may be a secret, are shown as
\"[set]\". Nothing is started.")]
pub(crate) struct ShowConfig {
    /// Print one JSON object: files, project, settings, plugins, ignored, warnings
    #[arg(long)]
    pub(crate) json: bool,
}

/// `lemon config check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Without FILE it checks the files that are read: the one of --config, the user's
own, and that of a trusted project. It also tells whether each plugin's program
is there, each secret set, and each `config` such as the manifest wants it.

It ends with 0 if there are no errors, warnings aside, and with 2 otherwise.")]
pub(crate) struct CheckConfig {
    /// Check these files instead
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Print one JSON object: valid, files, findings
    #[arg(long)]
    pub(crate) json: bool,
}

/// A subcommand of `lemon plugin`.
#[derive(Debug, Subcommand)]
pub(crate) enum PluginRequest {
    /// Show what a plugin has written to stderr, which is its log
    Logs(With<Logs>),
    /// List all plugins, also those that do not run, and why; starts nothing
    List(With<List>),
    /// Show what a plugin is that is not trusted, and trust it as it is now
    Trust(With<Trust>),
    /// Trust plugins no longer
    Untrust(With<Untrust>),
    /// Check manifests of extensions, without running anything
    Validate(With<Validate>),
    /// Show, set or ask for a plugin's own settings
    Config(With<PluginConfig>),
}

/// A subcommand's own words, and the options that all have.
#[derive(Debug, Args)]
pub(crate) struct With<T: Args> {
    #[command(flatten)]
    pub(crate) own: T,
    #[command(flatten)]
    global: Global,
}

/// `lemon tools`.
#[derive(Debug, Args)]
pub(crate) struct Tools {
    /// Show these tools in full, with their arguments
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,

    /// Start every plugin and ask it, also one whose tools are known from its manifest or from when it last ran
    #[arg(long)]
    pub(crate) refresh: bool,

    /// Print one JSON object: tools, failed, conflicts, quarantined
    #[arg(long)]
    pub(crate) json: bool,
}

/// `lemon call`.
#[derive(Debug, Args)]
#[command(after_help = "\
Arguments are one JSON object, or words: key=value is a string, from which the
number, list or whatever else the tool's schema wants is made; key:=JSON is JSON.

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
}

/// `lemon status`.
#[derive(Debug, Args)]
pub(crate) struct Status {
    /// Report on these plugins only
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,

    /// Print one JSON object: status, config, warnings
    #[arg(long)]
    pub(crate) json: bool,
}

/// `lemon shell`.
#[derive(Debug, Args)]
#[command(after_help = "\
In a terminal it has a prompt with history and completion (Tab). Otherwise it
reads one command a line from stdin, without a prompt, and ends with the exit
code of the first command that failed. `help` lists the commands.

Examples:
  lemon --plugin ./hello.py shell
  printf 'call hello name=World\\nstatus hello\\n' | lemon --plugin ./hello.py shell")]
pub(crate) struct Shell {}

/// `lemon plugin logs`.
#[derive(Debug, Args)]
#[command(after_help = "\
The log outlives lemon and is the same whichever lemon started the plugin: its
newest lines are in ~/.lemon/logs/NAME.log, older ones in NAME.log.1. What a
terminal would obey is shown as an escape, such as \\u{1b}.")]
pub(crate) struct Logs {
    /// The plugin
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// Go on with each new line, until Ctrl-C
    #[arg(short, long)]
    pub(crate) follow: bool,

    /// Show so many of the last lines, or `all` that are kept
    #[arg(short = 'n', long, value_name = "LINES", default_value = "100", value_parser = lines)]
    pub(crate) lines: usize,
}

/// `lemon plugin list`.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Print one JSON object: plugins, ignored
    #[arg(long)]
    pub(crate) json: bool,
}

/// `lemon plugin trust`.
#[derive(Debug, Default, Args)]
#[command(after_help = "\
Extensions in ~/.lemon/agent/extensions and in a project's .lemon/extensions run
once they are trusted, and as long as they are what they were then: each file is
bound by its hash, and a read-only copy is what runs. If its manifest has a
`build`, that runs now, and at no other time. Without a name, all that is not
trusted or has changed is gone through, the project included.

In a terminal it asks. Elsewhere it shows what there is and ends with 7, unless
--yes says that this was looked at.

Examples:
  lemon plugin trust hello
  lemon plugin trust issues --yes --grant-env GITHUB_TOKEN
  lemon plugin trust --project")]
pub(crate) struct Trust {
    /// Plugins, by name or path
    #[arg(value_name = "NAME|PATH")]
    pub(crate) names: Vec<String>,

    /// Trust the project that is worked in: its config, and the extensions in its folder
    #[arg(long, conflicts_with = "names")]
    pub(crate) project: bool,

    /// Trust without asking
    #[arg(long)]
    pub(crate) yes: bool,

    /// Give the plugin this variable of your environment, which its manifest asks for; several may be given with commas
    #[arg(long, value_name = "VARIABLE", value_delimiter = ',')]
    pub(crate) grant_env: Vec<String>,
}

/// `lemon plugin untrust`.
#[derive(Debug, Args)]
pub(crate) struct Untrust {
    /// Plugins, by name or path
    #[arg(value_name = "NAME|PATH", required_unless_present = "project")]
    pub(crate) names: Vec<String>,

    /// Trust the project that is worked in no longer, nor what is in its folder
    #[arg(long, conflicts_with = "names")]
    pub(crate) project: bool,
}

/// `lemon plugin validate`.
#[derive(Debug, Args)]
#[command(after_help = "\
A path is a manifest, a folder that has one (lemon_extension.json, extension.json
or .lemon-extension.json), or a folder of such folders. All that is wrong is told
at once, with its place, what was expected, and what to do.

It ends with 0 if every manifest is valid, warnings aside, and with 2 otherwise.
docs/manifest.md describes the fields, every kind of problem, and what --json
prints.")]
pub(crate) struct Validate {
    /// Manifests, or folders with them
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,

    /// Print one JSON object: valid, manifests
    #[arg(long)]
    pub(crate) json: bool,
}

/// `lemon plugin config`.
#[derive(Debug, Args)]
#[command(after_help = "\
Without KEY=VALUE it asks for each setting that the plugin's manifest describes,
if someone sits at a terminal, and otherwise shows what is set. KEY=VALUE is a
string, from which the number, list or whatever else the schema wants is made;
KEY:=JSON is JSON.

Settings are written into ~/.lemon/config.toml, with its comments kept. The value
of a setting that the schema marks as secret goes to ~/.lemon/secrets.toml, which
only you can read, and is shown nowhere. A command line is seen by others on the
same machine and kept in your shell's history: `KEY=-` reads the value from stdin.

Examples:
  lemon plugin config hello
  lemon plugin config hello greeting=Hi retries:=3 --unset loud
  lemon plugin config hello api_key=- < key.txt")]
pub(crate) struct PluginConfig {
    /// The plugin
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// Set these; `KEY=-` reads the value from stdin
    #[arg(value_name = "KEY=VALUE")]
    pub(crate) values: Vec<String>,

    /// Take this setting out
    #[arg(long, value_name = "KEY")]
    pub(crate) unset: Vec<String>,

    /// Print one JSON object: name, file, settings, missing
    #[arg(long)]
    pub(crate) json: bool,
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
        Request::Shell(shell) => &mut shell.global,
        Request::Plugin(PluginRequest::Logs(logs)) => &mut logs.global,
        Request::Plugin(PluginRequest::Validate(validate)) => &mut validate.global,
        Request::Plugin(PluginRequest::List(list)) => &mut list.global,
        Request::Plugin(PluginRequest::Trust(trust)) => &mut trust.global,
        Request::Plugin(PluginRequest::Untrust(untrust)) => &mut untrust.global,
        Request::Plugin(PluginRequest::Config(config)) => &mut config.global,
        Request::Config(ConfigRequest::Show(show)) => &mut show.global,
        Request::Config(ConfigRequest::Check(check)) => &mut check.global,
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
        Err(_) if seconds > 0.0 => Err("it is longer than can be counted; leave it out for the usual time".to_owned()),
        _ => {
            Err("it must be more than 0 seconds; `timeout_ms = 0` of a plugin in a config file means no limit"
                .to_owned())
        }
    }
}

fn lines(text: &str) -> Result<usize, String> {
    match text {
        "all" => Ok(usize::MAX),
        _ => text.parse().map_err(|_| "it must be a number of lines, or `all`".to_owned()),
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
        assert!(matches!(request, Request::Tools(tools) if tools.own.names == ["x"]));
        let error = parsed("lemon -C a tools -C b").unwrap_err();
        assert!(error.to_string().contains("'-C <DIR>' cannot be used multiple times"));
    }

    #[test]
    fn a_lone_dash_and_values_with_dashes_are_arguments_of_the_call() {
        let (_, request) = parsed("lemon call x - --json").unwrap();
        assert!(matches!(request, Request::Call(call) if call.own.arguments == ["-"] && call.own.json));
        let (_, request) = parsed("lemon call x a=-1 -- --b=2").unwrap();
        assert!(matches!(request, Request::Call(call) if call.own.arguments == ["a=-1", "--b=2"]));
    }

    #[test]
    fn a_timeout_is_a_positive_number_of_seconds() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for wrong in ["0", "-1", "x", "nan", "inf", ""] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
