//! Asks someone at a terminal for each setting of a plugin.

use std::io;

use lemon_host::{ConfigSchema, PluginText, Redactor, SettingValue};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use serde_json::{Map, Value};

use super::change::Change;
use super::shown_key;
use super::target::Target;
use crate::commands::interrupted;
use crate::config::Setup;
use crate::errors::Failure;
use crate::exit::Exit;
use crate::output::Output;
use crate::schema::{Argument, arguments, choices, kind, said};

/// How much is shown of what a manifest says.
const TEXT: usize = 300;
/// How many choices are listed.
const CHOICES: usize = 20;

/// The terminal as it was found, and is left, whatever is being typed.
struct Terminal(Termios);

impl Terminal {
    /// Shows nothing of what is typed from now on: what is pasted may come before the prompt is there.
    fn silence(&self) {
        let mut silent = self.0.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &silent);
    }

    fn restore(&self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.restore();
    }
}

/// Asks for all settings that the schema describes; those that the plugin needs come first. Nothing is written yet.
///
/// # Errors
/// Someone pressed Ctrl-C or Ctrl-D, or the terminal can't be read.
pub(super) async fn ask(
    target: &Target,
    schema: &ConfigSchema,
    setup: &Setup,
    redactor: &Redactor,
    output: &Output,
) -> Result<Change, Failure> {
    let failed = |error: io::Error| Failure::new(Exit::Internal, "can't ask at this terminal").why(error.to_string());
    let terminal = Terminal(tcgetattr(io::stdin()).map_err(|error| failed(error.into()))?);
    let editor = DefaultEditor::new().map_err(|error| failed(io::Error::other(error)))?;
    let mut asking = Asking { terminal, editor: Some(editor) };
    let mut change = Change::default();
    output.note("Enter keeps a value, `-` takes it out, Ctrl-C changes nothing");
    for argument in arguments(schema.json(), schema.json()) {
        output.report(&described(&argument, schema)).await?;
        loop {
            // What was said of the last answer stands above the question.
            output.flush().await;
            let one = asking.answer(&argument, schema, target).await?;
            let Some(one) = Change::of(one, argument.name, schema, target).await? else { break };
            one.secrets.values().for_each(|secret| {
                redactor.add(secret);
            });
            match target.check(&one, setup).await {
                Ok(()) => {
                    change.join(one);
                    break;
                }
                Err(failure) => output.failure(&failure),
            }
        }
    }
    Ok(change)
}

/// What was answered.
enum Answer {
    Keep,
    Unset,
    Text(String),
}

struct Asking {
    terminal: Terminal,
    /// Here between two questions.
    editor: Option<DefaultEditor>,
}

impl Asking {
    async fn answer(
        &mut self,
        argument: &Argument<'_>,
        schema: &ConfigSchema,
        target: &Target,
    ) -> Result<Answer, Failure> {
        let failed = |why: String| Failure::new(Exit::Internal, "can't read the answer").why(why);
        let prompt = prompt(argument, schema, target);
        let is_secret = schema.is_secret(argument.name);
        let mut editor = self.editor.take();
        if is_secret {
            self.terminal.silence();
        }
        let read = tokio::task::spawn_blocking(move || {
            let text = match &mut editor {
                _ if is_secret => rpassword::prompt_password(&prompt).map_err(ReadlineError::Io),
                Some(editor) => editor.readline(&prompt),
                None => Err(ReadlineError::Eof),
            };
            (editor, text)
        });
        let (editor, text) = read.await.map_err(|broken| failed(broken.to_string()))?;
        self.editor = editor;
        if is_secret {
            self.terminal.restore();
        }
        match text {
            Ok(text) if text.is_empty() => Ok(Answer::Keep),
            Ok(text) if text == "-" => Ok(Answer::Unset),
            Ok(text) => Ok(Answer::Text(text)),
            Err(ReadlineError::Interrupted | ReadlineError::Eof) => Err(interrupted()),
            Err(ReadlineError::Io(error)) if error.kind() == io::ErrorKind::Interrupted => Err(interrupted()),
            Err(error) => Err(failed(error.to_string())),
        }
    }
}

impl Change {
    /// One answer as a change; none if nothing is to be changed.
    async fn of(answer: Answer, key: &str, schema: &ConfigSchema, target: &Target) -> Result<Option<Self>, Failure> {
        let mut change = Self::default();
        match answer {
            Answer::Keep => return Ok(None),
            Answer::Unset if !target.values.contains_key(key) => return Ok(None),
            Answer::Unset => {
                change.unset.insert(key.to_owned());
            }
            Answer::Text(text) if schema.is_secret(key) => change.add(key, text.into(), true, target)?,
            Answer::Text(text) => {
                let text = Map::from_iter([(key.to_owned(), Value::String(text))]);
                let fitted = schema.fit(&text).await;
                change.set =
                    fitted.map_err(|why| Failure::new(Exit::Usage, "the settings can't be checked").why(why))?;
            }
        }
        Ok(Some(change))
    }

    fn join(&mut self, other: Self) {
        self.set.extend(other.set);
        self.secrets.extend(other.secrets);
        self.unset.extend(other.unset);
    }
}

/// What the manifest says of a setting.
fn described(argument: &Argument<'_>, schema: &ConfigSchema) -> String {
    let text =
        |key| said(argument.schema, schema.json(), key).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let texts = [text("title"), text("description")].into_iter().flatten();
    let texts = texts.map(|text| format!("{}\n", PluginText::new(text).capped(TEXT)));
    let choices = choices(argument.schema, schema.json());
    let shown: Vec<_> = choices.iter().take(CHOICES).map(|choice| written(argument.name, choice)).collect();
    let more = if choices.len() > CHOICES { ", …" } else { "" };
    let choices = if shown.is_empty() { String::new() } else { format!("one of {}{more}\n", shown.join(", ")) };
    format!("\n{}{choices}", texts.collect::<String>())
}

fn prompt(argument: &Argument<'_>, schema: &ConfigSchema, target: &Target) -> String {
    let key = argument.name;
    let is_secret = schema.is_secret(key);
    let mut notes = vec![if is_secret {
        "secret".to_owned()
    } else {
        PluginText::new(kind(argument.schema, schema.json())).capped(60).to_string()
    }];
    match (target.values.get(key), schema.default_of(key)) {
        (Some(_), _) if is_secret => notes.push("set".to_owned()),
        (Some(value), _) => notes.push(format!("now {}", written(key, value))),
        (None, Some(_)) if is_secret => {}
        (None, Some(default)) => notes.push(format!("default {}", written(key, default))),
        (None, None) if argument.required => notes.push("required".to_owned()),
        (None, None) => {}
    }
    format!("{} ({}): ", shown_key(key), notes.join(", "))
}

/// A value as one would type it.
fn written(key: &str, value: &Value) -> String {
    match (SettingValue::of_config(key, value), value) {
        (SettingValue::Plain(_), Value::String(text)) => PluginText::new(text.as_str()).capped(80).to_string(),
        (value, _) => PluginText::new(value.to_string()).capped(80).to_string(),
    }
}
