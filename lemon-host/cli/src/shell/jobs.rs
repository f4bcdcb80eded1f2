//! What goes on in the background.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lemon_host::PluginText;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::carry_out;
use super::command::Command;
use crate::commands::Work;
use crate::errors::Failure;
use crate::exit::Exit;

/// More lines of text than anybody reads.
const TEXT: usize = 200;

/// The jobs, and what has failed so far.
pub(super) struct Jobs {
    work: Work,
    last: u32,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Changes whenever a job ends.
    ended: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    running: BTreeMap<u32, Job>,
    /// The line of the first failed command, and how it failed.
    failure: Option<(usize, Exit)>,
}

pub(super) struct Job {
    pub(super) id: u32,
    /// Whether it only ends when it is cancelled.
    pub(super) is_endless: bool,
    text: PluginText,
    started: Instant,
    cancel: CancellationToken,
    progress: Option<String>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Jobs {
    pub(super) fn new(work: &Work) -> Self {
        Self { work: work.clone(), last: 0, shared: Arc::default() }
    }

    /// Begins a job, which tells itself how it ends.
    pub(super) fn start(&mut self, command: Command, arguments: String, text: &str, number: usize) {
        self.last += 1;
        let (id, cancel, work, shared) = (self.last, CancellationToken::new(), self.work.clone(), self.shared.clone());
        let text = PluginText::new(text);
        work.output.note(format!("[{id}] {}", text.capped(TEXT)));
        let job = Job {
            id,
            is_endless: command.is_endless(),
            text: text.clone(),
            started: Instant::now(),
            cancel: cancel.clone(),
            progress: None,
        };
        self.shared.state().running.insert(id, job);
        tokio::spawn(async move {
            let show = |progress: Option<String>| {
                if let Some(job) = shared.state().running.get_mut(&id).filter(|_| progress.is_some()) {
                    job.progress = progress;
                }
            };
            let done = carry_out(command, arguments, &work, &cancel, &show).await;
            match done {
                Ok(_) => work.output.note(format!("[{id}] done: {}", text.capped(TEXT))),
                // Whoever cancelled it wanted that.
                Err(failure) if cancel.is_cancelled() && failure.exit == Exit::Interrupt => {
                    work.output.note(format!("[{id}] cancelled: {}", text.capped(TEXT)));
                }
                Err(failure) => {
                    work.output.failure_of(&format!("[{id}] "), &failure);
                    shared.state().fail(number, failure.exit);
                }
            }
            shared.state().running.remove(&id);
            shared.ended.send_replace(());
        });
    }

    /// A line for each job.
    pub(super) fn list(&self) -> String {
        let state = self.shared.state();
        let line = |job: &Job| {
            let progress = job.progress.as_ref().map(|progress| format!("  ({progress})")).unwrap_or_default();
            format!("[{}]  {:>4} s  {}{progress}\n", job.id, job.started.elapsed().as_secs(), job.text.capped(TEXT))
        };
        state.running.values().map(line).collect()
    }

    /// Whether there are such jobs, or have been.
    pub(super) fn known(&self, ids: &[u32]) -> Result<(), Failure> {
        match ids.iter().find(|id| !(1..=self.last).contains(*id)) {
            Some(id) => Err(Failure::new(Exit::Usage, format!("there is no job {id}")).hint("`jobs` lists them")),
            None => Ok(()),
        }
    }

    /// Cancels these jobs, or the only one.
    pub(super) fn cancel(&self, ids: &[u32]) -> Result<(), Failure> {
        self.known(ids)?;
        let state = self.shared.state();
        let running: Vec<u32> = state.running.keys().copied().collect();
        let ids = match (ids, &running[..]) {
            ([], [_]) => &running,
            ([], []) => return Err(Failure::new(Exit::Usage, "there is no job")),
            ([], _) => return Err(Failure::new(Exit::Usage, "several jobs go on: say which").hint("`jobs` lists them")),
            (ids, _) => ids,
        };
        ids.iter().filter_map(|id| state.running.get(id)).for_each(|job| job.cancel.cancel());
        match ids.iter().find(|id| !state.running.contains_key(id)) {
            Some(id) => Err(Failure::new(Exit::Usage, format!("job {id} has ended already"))),
            None => Ok(()),
        }
    }

    pub(super) fn cancel_all(&self) {
        self.shared.state().running.values().for_each(|job| job.cancel.cancel());
    }

    /// Waits until no such job goes on.
    pub(super) async fn ended(&self, which: impl Fn(&Job) -> bool) {
        let mut ended = self.shared.ended.subscribe();
        while self.shared.state().running.values().any(&which) {
            if ended.changed().await.is_err() {
                break;
            }
        }
    }

    /// Keeps that a command has failed.
    pub(super) fn failed(&self, number: usize, exit: Exit) {
        self.shared.state().fail(number, exit);
    }

    /// How the first command that failed did so.
    pub(super) fn first_failure(&self) -> Exit {
        self.shared.state().failure.map_or(Exit::Done, |(_, exit)| exit)
    }
}

impl State {
    fn fail(&mut self, number: usize, exit: Exit) {
        if self.failure.is_none_or(|(first, _)| number < first) {
            self.failure = Some((number, exit));
        }
    }
}
