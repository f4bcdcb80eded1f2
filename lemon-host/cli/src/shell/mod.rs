//! `lemon shell`: a host that goes on while commands come, from someone at a prompt or from stdin.
//!
//! Each command is the one of the command line, with the same words and the same output. One that ends with `&` goes on
//! in the background, as a job. At a prompt Ctrl-C cancels the command in the foreground, and a failed command is only
//! told; without one, signals end the shell as they end every command, and the first failure decides on the exit code.

mod command;
mod completion;
mod editor;
mod jobs;
mod lines;

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use self::command::{Command, Line};
use self::jobs::Jobs;
use self::lines::{Lines, Read};
use crate::arguments;
use crate::commands::{
    self, Change, Work, call, change, logs, progress_on_stderr, settled, status, tell_failed, tools, warn,
};
use crate::errors::Failure;
use crate::exit::Exit;
use crate::signals::{Interrupt, Signals};

/// How long a prompt waits for what was said before it.
const SAID: Duration = Duration::from_millis(100);

/// How long the jobs may take to end when they are cancelled.
const CANCELLED: Duration = Duration::from_millis(500);

/// Whether someone sits at a prompt.
pub(crate) fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Takes commands until there are no more.
///
/// # Errors
/// When the commands can't be read.
pub(crate) async fn run(work: &Work, signals: &Signals) -> Result<Exit, Failure> {
    let is_interactive = is_interactive();
    let lines = if is_interactive { Lines::edited(work, signals) } else { Lines::piped() };
    let lines = lines.map_err(|error| Failure::new(Exit::Internal, "can't read commands").why(error.to_string()))?;
    if is_interactive {
        work.output.note(format!(
            "lemon {}: `help` lists the commands, Tab completes, Ctrl-D ends it",
            env!("CARGO_PKG_VERSION")
        ));
    }
    let mut shell = Shell { work, signals, is_interactive, jobs: Jobs::new(work), lines, is_settled: false };
    let done = tokio::select! {
        done = shell.take_commands() => done,
        () = signals.first() => Err(commands::interrupted()),
    };
    // From now on Ctrl-C is about the end.
    signals.on_interrupt(Interrupt::Ends);
    shell.lines.end();
    shell.jobs.cancel_all();
    // A cancelled one ends by itself, and says so.
    let _ = tokio::time::timeout(CANCELLED, shell.jobs.ended(|_| true)).await;
    done?;
    Ok(if is_interactive { Exit::Done } else { shell.jobs.first_failure() })
}

struct Shell<'a> {
    work: &'a Work,
    signals: &'a Signals,
    is_interactive: bool,
    jobs: Jobs,
    lines: Lines,
    /// Whether all plugins have once had the time to get ready.
    is_settled: bool,
}

/// What a command in the foreground leads to.
enum Next {
    Go,
    Quit,
}

impl Shell<'_> {
    async fn take_commands(&mut self) -> Result<(), Failure> {
        for number in 1.. {
            if self.is_interactive {
                // What was said of the last command stands above the prompt.
                let _ = tokio::time::timeout(SAID, self.work.output.flush()).await;
                self.signals.on_interrupt(Interrupt::Idle);
            }
            let text = match self.lines.next().await {
                Read::Line(text) => text,
                Read::Interrupted => continue,
                Read::Bad(why) => {
                    self.tell(number, &Failure::new(Exit::Usage, "the line can't be read").why(why));
                    continue;
                }
                Read::End => break,
                Read::Failed(why) => return Err(Failure::new(Exit::Internal, "can't read commands").why(why)),
            };
            match self.obey(&text, number).await {
                Ok(Next::Go) => {}
                Ok(Next::Quit) => return Ok(()),
                Err(failure) => self.tell(number, &failure),
            }
        }
        if self.is_interactive {
            return Ok(());
        }
        // Their answers were asked for; what follows a log would go on for ever.
        self.jobs.ended(|job| !job.is_endless).await;
        Ok(())
    }

    /// Tells of the failure of a command.
    fn tell(&mut self, number: usize, failure: &Failure) {
        self.work.output.progress(None);
        let name = if self.is_interactive { String::new() } else { format!("line {number}: ") };
        self.work.output.failure_of(&name, failure);
        self.jobs.failed(number, failure.exit);
    }

    async fn obey(&mut self, text: &str, number: usize) -> Result<Next, Failure> {
        let Some(Line { command, text, in_background }) = command::read(text)? else { return Ok(Next::Go) };
        let command = match command {
            Command::Help(text) => {
                self.work.output.report(&text).await?;
                return Ok(Next::Go);
            }
            Command::Quit => return Ok(Next::Quit),
            command => Prepared::of(command)?,
        };
        let cancel = if self.is_interactive { self.signals.cancelling() } else { CancellationToken::new() };
        let done = self.carry_out(command, &text, in_background, number, &cancel).await;
        done.map(|()| Next::Go)
    }

    async fn carry_out(
        &mut self,
        Prepared { command, arguments }: Prepared,
        text: &str,
        in_background: bool,
        number: usize,
        cancel: &CancellationToken,
    ) -> Result<(), Failure> {
        // Before all plugins have had the time to get ready, nobody can say what a name means.
        let needs_all = !self.is_interactive || matches!(command, Command::Tools(_) | Command::Call(_));
        if needs_all && !self.is_settled {
            settled(self.work, cancel).await?;
            self.is_settled = true;
            warn(self.work);
            if !self.is_interactive {
                tell_failed(self.work);
            }
        }
        match command {
            Command::Jobs => self.work.output.report(&self.jobs.list()).await,
            Command::Cancel(jobs) => self.jobs.cancel(&jobs.ids),
            Command::Wait(jobs) => {
                self.jobs.known(&jobs.ids)?;
                let ended = self.jobs.ended(|job| jobs.ids.is_empty() || jobs.ids.contains(&job.id));
                commands::unless(cancel, ended).await
            }
            command if in_background => {
                self.jobs.start(command, arguments, text, number);
                Ok(())
            }
            command => {
                let progress = progress_on_stderr(self.work);
                let is_endless = command.is_endless();
                match carry_out(command, arguments, self.work, cancel, &progress).await {
                    // There is no other end.
                    Err(failure) if is_endless && failure.exit == Exit::Interrupt => Ok(()),
                    done => done.map(|_| ()),
                }
            }
        }
    }
}

/// A command and the arguments of its call.
struct Prepared {
    command: Command,
    arguments: String,
}

impl Prepared {
    fn of(command: Command) -> Result<Self, Failure> {
        let arguments = match &command {
            Command::Call(call) if call.arguments == [arguments::STDIN] => {
                return Err(Failure::new(Exit::Usage, "`-` can't be used in the shell, whose commands stdin has")
                    .hint("write the arguments out, in quotes if they have spaces"));
            }
            Command::Call(call) => arguments::read(&call.arguments)?,
            _ => String::new(),
        };
        Ok(Self { command, arguments })
    }
}

/// Carries out a command that the command line has, too.
async fn carry_out(
    command: Command,
    arguments: String,
    work: &Work,
    cancel: &CancellationToken,
    progress: &commands::ShowProgress<'_>,
) -> Result<Exit, Failure> {
    match command {
        Command::Tools(request) => tools(&request, work, cancel).await,
        Command::Call(request) => call(&request, arguments, work, cancel, progress).await,
        Command::Status(request) => status(&request, work).await,
        Command::Start(plugins) => change(Change::Start, &plugins.names, work, cancel).await,
        Command::Stop(plugins) => change(Change::Stop, &plugins.names, work, cancel).await,
        Command::Restart(plugins) => change(Change::Restart, &plugins.names, work, cancel).await,
        Command::Reload(plugins) => change(Change::Reload, &plugins.names, work, cancel).await,
        Command::Kill(plugins) => change(Change::Kill, &plugins.names, work, cancel).await,
        Command::Logs(request) => {
            let folder = work.setup.log_folder();
            logs(&request, folder.as_deref(), &work.setup.names(), &work.output, cancel).await
        }
        Command::Jobs | Command::Cancel(_) | Command::Wait(_) | Command::Help(_) | Command::Quit => Ok(Exit::Done),
    }
}
