//! The prompt: a line editor with history and completion, that lets lines be told while one is typed.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Config, Context, Editor, ExternalPrinter as _, Helper};

use super::completion;
use super::lines::Read;
use crate::commands::Work;
use crate::screen::{Screen, State};
use crate::signals::Signals;

const PROMPT: &str = "lemon> ";

/// How many lines are kept.
const HISTORY: usize = 1000;

/// The terminal as it was found, and is left.
pub(super) struct Terminal {
    mode: Termios,
    screen: Arc<Screen>,
}

impl Drop for Terminal {
    /// The editor may still be waiting for a key.
    fn drop(&mut self) {
        let is_typing = self.screen.is_editing();
        self.screen.release();
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.mode);
        if is_typing {
            let _ = io::stdout().write_all(b"\n");
        }
    }
}

/// Begins to edit lines: gives the terminal's guard, and what gives each line.
pub(super) fn open(work: &Work, signals: &Signals) -> io::Result<(Terminal, impl FnMut() -> Read + Send + use<>)> {
    let screen = work.output.screen().clone();
    let terminal = Terminal { mode: tcgetattr(io::stdin())?, screen: screen.clone() };
    // Without it a paste of several lines is several commands, as it would be in a file.
    let config = Config::builder().bracketed_paste(false).history_ignore_space(true).auto_add_history(true);
    let config = config.max_history_size(HISTORY).map_err(io::Error::other)?.build();
    let mut editor: Editor<Prompt, FileHistory> = Editor::with_config(config).map_err(io::Error::other)?;
    // A terminal that can't do more than print has no lines to save.
    let edits = match editor.create_external_printer() {
        Ok(mut printer) => {
            screen.edited_by(Box::new(move |text| printer.print(text).map_err(io::Error::other)));
            true
        }
        Err(_) => false,
    };
    editor.set_helper(Some(Prompt { work: work.clone(), signals: signals.clone(), screen: screen.clone() }));
    let history = work.setup.sources.home.as_deref().and_then(history_file);
    if let Some(file) = &history {
        let _ = editor.load_history(file);
    }
    let next = move || {
        if edits {
            screen.set(State::Changing);
        }
        let read = editor.readline(PROMPT);
        screen.set(State::Free);
        match read {
            Ok(line) => {
                if let Some(file) = &history {
                    // A history that can't be kept is no reason to stop.
                    let _ = editor.append_history(file);
                }
                Read::Line(line)
            }
            Err(ReadlineError::Interrupted) => Read::Interrupted,
            Err(ReadlineError::Eof) => Read::End,
            Err(error) => Read::Failed(error.to_string()),
        }
    };
    Ok((terminal, next))
}

/// The file of the history, which only its owner can read; none if it can't be made.
fn history_file(home: &Path) -> Option<PathBuf> {
    DirBuilder::new().recursive(true).mode(0o700).create(home).ok()?;
    let file = home.join("shell_history");
    OpenOptions::new().append(true).create(true).mode(0o600).open(&file).ok()?;
    fs::canonicalize(file).ok()
}

/// What the editor asks while a line is typed.
struct Prompt {
    work: Work,
    signals: Signals,
    screen: Arc<Screen>,
}

impl Completer for Prompt {
    type Candidate = Pair;

    fn complete(&self, line: &str, position: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, words) = completion::complete(&line[..position], &self.work);
        let pair = |word: String| Pair { display: word.clone(), replacement: word };
        Ok((start, words.into_iter().map(pair).collect()))
    }
}

impl Hinter for Prompt {
    type Hint = String;

    /// Asked whenever the line is drawn: from now on the editor shows what is told.
    fn hint(&self, _: &str, _: usize, _: &Context<'_>) -> Option<String> {
        self.screen.begin_editing();
        None
    }
}

impl Validator for Prompt {
    /// Asked when the line is complete: from now on the editor shows nothing any more, and Ctrl-C, which is no key then,
    /// is about the command.
    fn validate(&self, _: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        self.signals.cancelling();
        self.screen.set(State::Changing);
        Ok(ValidationResult::Valid(None))
    }
}

impl Highlighter for Prompt {}

impl Helper for Prompt {}
