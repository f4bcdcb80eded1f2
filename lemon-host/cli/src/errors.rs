//! What is told when something fails: what happened, why, and what to do next.

use std::fmt::Display;

use anstyle::Style;
use lemon_host::{
    CallError, ConfigProblem, LookupError, PluginName, PluginStatus, PluginText, Provenance, SpawnError, StartError,
    StateKind, StoredSecrets,
};

use crate::exit::Exit;
use crate::table::indent;

/// A failure on its way to stderr.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) what: String,
    pub(crate) why: Option<String>,
    pub(crate) hint: Option<String>,
    /// The places in config files that it is about, if it is; `why` has them, too.
    pub(crate) problems: Vec<ConfigProblem>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self { exit, what: what.into(), why: None, hint: None, problems: Vec::new() }
    }

    /// Says why it happened.
    pub(crate) fn why(self, why: impl Into<String>) -> Self {
        Self { why: Some(why.into()), ..self }
    }

    /// Says what to do next.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Says which places in config files it is about.
    pub(crate) fn at(self, problems: &[ConfigProblem]) -> Self {
        Self { problems: problems.to_vec(), ..self }
    }

    /// Ends the program with another code.
    pub(crate) fn exit(self, exit: Exit) -> Self {
        Self { exit, ..self }
    }

    /// The lines for a reader, the first of which begins with `label`.
    pub(crate) fn show(&self, label: &str, style: Style) -> String {
        let mut text = format!("{style}{label}{style:#}: {}", indent(&safe(&self.what), 2));
        for (label, detail) in [("why", &self.why), ("hint", &self.hint)] {
            if let Some(detail) = detail {
                text.push_str(&format!("\n  {label}: {}", indent(&safe(detail), 4)));
            }
        }
        text
    }
}

/// What is told of a call that has no result. `plugins` are the states at that moment.
pub(crate) fn of_call(error: &CallError, tool: &str, plugins: &[PluginStatus]) -> Failure {
    let tool = PluginText::new(tool);
    let state_of = |plugin: &PluginName| plugins.iter().find(|status| status.name == *plugin);
    match error {
        CallError::UnknownTool { nearest, .. } => {
            let failure = Failure::new(Exit::NoSuchTool, format!("there is no tool named `{}`", tool.capped(80)));
            match nearest {
                Some(nearest) => failure.hint(format!("did you mean `{nearest}`?")),
                None => failure.hint("`lemon tools` lists all tools"),
            }
        }
        CallError::Disabled { rule, .. } => {
            Failure::new(Exit::NoSuchTool, format!("the tool `{}` is disabled", tool.capped(80)))
                .why(rule.to_string())
                .hint("`lemon status` shows what is hidden; the rule is in `--disable`, `--enable-only` or [tools] of a config file")
        }
        CallError::Arguments { fault, .. } => {
            Failure::new(Exit::Usage, format!("the arguments of `{}` are not acceptable", tool.capped(80)))
                .why(fault.to_string())
                .hint(format!("`lemon tools {}` shows all arguments", tool.capped(80)))
        }
        CallError::NotReady { plugin, state, reason } => match state_of(plugin).and_then(of_start) {
            Some(failure) => failure,
            None => Failure::new(Exit::Plugin, format!("plugin {plugin} is not ready ({state})"))
                .why(reason.clone().unwrap_or_else(|| "it is being stopped or started".to_owned()))
                .hint("see `lemon status`"),
        },
        CallError::Timeout { callee, after, idle, dropped, .. } => {
            let progress = if *idle { " without progress" } else { "" };
            let what =
                format!("`{}` did not answer within {}{progress}", tool.capped(80), seconds(after.as_secs_f64()));
            let dropped = match dropped {
                0 => String::new(),
                n => format!("; {n} of its lines were dropped as noise, one of which may have been the answer"),
            };
            let hint = if dropped.is_empty() {
                "give the call more time with `--timeout SECONDS`, or see what the plugin does with `--trace`"
            } else {
                "see what the plugin writes with `--trace`"
            };
            Failure::new(Exit::TimedOut, what)
                .why(format!("{callee} is running, and was told that the call is cancelled{dropped}"))
                .hint(hint)
        }
        CallError::Cancelled { callee } => {
            Failure::new(Exit::Interrupt, "the call was cancelled").why(format!("{callee} was told so"))
        }
        CallError::Crashed { plugin, status, stderr } => {
            let failure = Failure::new(Exit::Plugin, format!("plugin {plugin} ended during the call"));
            if stderr.raw().trim().is_empty() {
                failure.why(format!("{status}; it wrote nothing to stderr")).hint("`--trace` shows the last messages")
            } else {
                failure
                    .why(format!("{status}; its stderr ends with:\n{}", stderr.block()))
                    .hint(log(plugin))
            }
        }
        CallError::Answered { plugin, code, message, data, .. } => {
            let data = data
                .as_ref()
                .map_or_else(String::new, |data| format!("\ndata: {}", PluginText::new(data.to_string()).line()));
            Failure::new(Exit::ToolError, format!("plugin {plugin} answered the call with an error"))
                .why(format!("{} (code {code}){data}", message.block()))
        }
        CallError::Protocol { plugin, method, detail } => {
            Failure::new(Exit::Plugin, format!("plugin {plugin} broke the protocol"))
                .why(format!("in its answer to {method}: {}", detail.line()))
                .hint("tell its author; `--trace` shows the message")
        }
        CallError::TooLarge { plugin, what, bytes, limit, key } => {
            // The arguments are the caller's, the answer is the plugin's.
            let (exit, what) = if what.contains("request") {
                (Exit::Usage, format!("the arguments for plugin {plugin} are too large"))
            } else {
                (Exit::Plugin, format!("the answer of plugin {plugin} is too large"))
            };
            let key = key.trim_start_matches("limits.");
            Failure::new(exit, what)
                .why(format!("{bytes} bytes; the limit is {limit}"))
                .hint(format!("raise `{key}` under [limits] in {}", user_config()))
        }
        CallError::NotReading { plugin, bytes } => {
            Failure::new(Exit::Plugin, format!("plugin {plugin} does not read its input"))
                .why(format!("{bytes} bytes are waiting for it"))
                .hint("it hangs or is very busy; `--trace` shows what it was sent")
        }
        CallError::Unsent { .. } => {
            let what = format!("`{}` could not be called in time", tool.capped(80));
            Failure::new(Exit::TimedOut, what).why(error.to_string()).hint("give it more time with `--timeout SECONDS`")
        }
        other => Failure::new(Exit::Plugin, "the call was not made").why(other.to_string()),
    }
}

/// The plugin of that name.
///
/// # Errors
/// There is none; the nearest name, or all that there are.
pub(crate) fn known_plugin(name: &str, plugins: &[PluginStatus]) -> Result<PluginName, Failure> {
    let names = plugins.iter().map(|plugin| &plugin.name);
    if let Some(known) = names.clone().find(|known| known.as_str() == name) {
        return Ok(known.clone());
    }
    Err(unknown_plugin(name, &names.map(PluginName::as_str).collect::<Vec<_>>()))
}

/// What is told of a name that no plugin has.
pub(crate) fn unknown_plugin(name: &str, known: &[&str]) -> Failure {
    const LISTED: usize = 20;
    let failure = Failure::new(Exit::Usage, format!("there is no plugin named `{}`", PluginText::new(name).capped(80)));
    match known.len() {
        0 => failure.hint("there are no plugins"),
        1 => failure.hint(format!("there is only {}", known.concat())),
        2..=LISTED => failure.hint(format!("there are {}", known.join(", "))),
        _ => failure.hint("`lemon status` lists them all"),
    }
}

/// Whether a plugin can't be used now.
pub(crate) fn has_failed(status: &PluginStatus) -> bool {
    let works = matches!(status.state, StateKind::Ready | StateKind::Degraded);
    !works && (status.error.is_some() || status.state != StateKind::Dormant)
}

/// What is told of a plugin that can't be used; none if it can.
pub(crate) fn of_start(status: &PluginStatus) -> Option<Failure> {
    if !has_failed(status) {
        return None;
    }
    let name = &status.name;
    let Some(failure) = &status.failure else {
        let what = format!("plugin {name} is not ready ({})", status.state);
        return Some(Failure::new(Exit::Plugin, what).hint("see `lemon status`"));
    };
    let what = match failure {
        StartError::Crashed { .. } => format!("plugin {name} crashed"),
        StartError::Stopped => format!("plugin {name} was stopped"),
        StartError::Noise { .. } | StartError::NotReading { .. } => format!("plugin {name} was given up"),
        _ => format!("plugin {name} did not start"),
    };
    // The text is free of secrets, the data is not.
    let why = status.error.clone().unwrap_or_default();
    let failed = Failure::new(Exit::Plugin, what).why(why);
    Some(match hint(status) {
        Some(hint) => failed.hint(hint),
        None => failed,
    })
}

/// What to do about a plugin that can't be used.
pub(crate) fn hint(status: &PluginStatus) -> Option<String> {
    let failure = status.failure.as_ref().filter(|_| has_failed(status))?;
    let name = &status.name;
    let from = source(&status.provenance);
    Some(match failure {
        StartError::Lookup(error) => match &**error {
            LookupError::NotInPath { ignored, .. } if !ignored.is_empty() => {
                format!(
                    "install the program, or give its whole path in {from}; a folder of PATH inside the project is not searched"
                )
            }
            LookupError::NotInPath { .. } => format!("install the program, or give its whole path in {from}"),
            LookupError::NotFound { .. } if status.manifest.is_some() => {
                "if its manifest has `build`, run that by hand first: no session runs it".to_owned()
            }
            LookupError::NotExecutable { path } => format!("run `chmod +x {}`", shown(&path.to_string_lossy())),
            _ => format!("correct the command in {from}"),
        },
        StartError::Spawn(error) => match &**error {
            SpawnError::CwdMissing { .. } | SpawnError::CwdNotDirectory { .. } => format!("correct `cwd` in {from}"),
            SpawnError::NotExecutable { program } => format!("run `chmod +x {}`", shown(&program.to_string_lossy())),
            SpawnError::MissingInterpreter { .. } | SpawnError::InterpreterNotExecutable { .. } => {
                "install the interpreter, or correct the file's first line".to_owned()
            }
            SpawnError::NoInterpreterLine { .. } => {
                "give it a first line such as `#!/bin/sh`, or name the interpreter in the command".to_owned()
            }
            SpawnError::WrongArchitecture { .. } => "install the program that is built for this machine".to_owned(),
            SpawnError::Os { .. } => return None,
            _ => format!("correct the command in {from}"),
        },
        StartError::Manifest(_) => "correct it; `lemon plugin validate` says more".to_owned(),
        StartError::Variable { name: variable, .. } if matches!(status.provenance, Provenance::Found { .. }) => {
            format!("`lemon plugin trust {name} --grant-env {variable}` gives it, if it is set where lemon runs")
        }
        StartError::Variable { name: variable, .. } => format!(
            "give it with `env = {{ {variable} = {{ secret = \"{variable}\" }} }}` under [plugins.{name}] of a config file, \
             beside `path`"
        ),
        StartError::Secret { name: secret, .. } => missing_secret(secret),
        StartError::Exited { stderr, .. } if stderr.raw().contains("bad option: --experimental-strip-types") => {
            "this Node can't run TypeScript: install 22.6 or newer, or compile the plugin to JavaScript".to_owned()
        }
        StartError::Exited { stderr, .. } | StartError::Crashed { stderr, .. } => {
            let by_hand = format!(
                "run it by hand to see more: `{}` (it gets your whole environment there, and here only what its `env` in a \
                 config file adds to PATH, HOME and the like)",
                shown(&command(status))
            );
            if stderr.raw().trim().is_empty() { by_hand } else { format!("{by_hand}; {}", log(name)) }
        }
        StartError::Timeout { dropped: 0, .. } => {
            "see with `--trace` whether it answers (does it flush stdout after each line?); if it needs more time, set \
            `start_timeout_ms` for it in a config file, or `start_ms` under [timeouts]"
                .to_owned()
        }
        StartError::Timeout { .. } | StartError::Noise { .. } => {
            "its stdout is for messages only, all else has to go to stderr; see with `--trace` what it writes"
                .to_owned()
        }
        StartError::Config { .. } => match &status.provenance {
            Provenance::Config { .. } => format!("correct its `config` in {from}"),
            _ => "put the plugin into a config file, with its `config`".to_owned(),
        },
        StartError::McpVersion { .. } => "use a release of it that speaks one of these".to_owned(),
        StartError::Refused { .. } | StartError::Protocol { .. } => {
            "tell its author; `--trace` shows the messages".to_owned()
        }
        StartError::NotReading { .. } => "it hangs or is very busy; see with `--trace` what it was sent".to_owned(),
        StartError::CircuitOpen { .. } => log(name),
        _ => return None,
    })
}

/// What to do about a secret that is not there.
pub(crate) fn missing_secret(secret: &str) -> String {
    match secret.split_once('/') {
        // Such a one is made by the command, and can't be a variable.
        Some((plugin, key)) => format!("`lemon plugin config {} {}=…` sets it", shown(plugin), shown(key)),
        None => format!(
            "set the environment variable `{0}`, or write `{0} = \"…\"` into {1}",
            shown(secret),
            secrets_file()
        ),
    }
}

fn secrets_file() -> String {
    let file = crate::config::lemon_home().map(|home| shown(&StoredSecrets::file(&home).to_string_lossy()));
    file.map_or_else(|| "secrets.toml".to_owned(), |file| format!("{file}, which only you may be able to read"))
}

/// What brought a plugin in, for the middle of a sentence.
fn source(provenance: &Provenance) -> String {
    match provenance {
        Provenance::Flag => "`--plugin`".to_owned(),
        other => shown(&other.to_string()),
    }
}

/// The command as someone would type it, as well as a line can show it.
pub(crate) fn command(status: &PluginStatus) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:@%+,~".contains(c);
    let quoted = status.command.iter().map(|word| {
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", shown(word).replace('\'', r"'\''"))
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// How to see more of what a plugin wrote.
fn log(plugin: &PluginName) -> String {
    match crate::config::lemon_home() {
        Some(_) => format!("`lemon plugin logs {plugin}` shows its log"),
        None => "its log is not kept, as HOME is not set".to_owned(),
    }
}

fn user_config() -> String {
    crate::config::lemon_home()
        .map_or_else(|| "a config file".to_owned(), |home| shown(&home.join("config.toml").to_string_lossy()))
}

/// Any text, on as many lines as it has, without what a terminal would obey, and not longer than anyone reads.
///
/// Paths and names that a person or a project chose end up in messages, too.
pub(crate) fn safe(text: &str) -> String {
    const LENGTH: usize = 8000;
    PluginText::new(text).block().capped(LENGTH).to_string()
}

/// Any text in one harmless line.
pub(crate) fn shown(text: &str) -> String {
    PluginText::new(text).to_string()
}

pub(crate) fn seconds(seconds: f64) -> impl Display {
    format!("{} s", (seconds * 1000.0).round() / 1000.0)
}
