//! One caller: makes its calls one after the other, has each judged, and sees to it that its plugin runs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lemon_host::{CallError, CommandError, Host, PluginName, Session, SessionOptions, ToolResult};
use tokio_util::sync::CancellationToken;

use crate::deed::{Arguments, Deed};
use crate::judge::{Ended, GRACE, kind};
use crate::plan::{Change, Command, Part, Plan, Planned, Role, Step};
use crate::tally::Tally;

/// How long a command may take: a start has ten seconds, on a machine that is busy with others.
const COMMAND: Duration = Duration::from_secs(30);

/// Longer than the host waits before it starts a plugin again that failed once.
const PATIENCE: Duration = Duration::from_millis(1500);

type Outcome = Result<ToolResult, CallError>;

pub(crate) struct Caller {
    host: Host,
    tally: Arc<Tally>,
    plugin: PluginName,
    part: Part,
    plan: Plan,
    session: Session,
    /// What its tokens begin with.
    prefix: String,
    steps: u64,
}

impl Caller {
    pub(crate) fn new(host: Host, tally: Arc<Tally>, seed: u64, place: (usize, usize), part: &Part) -> Option<Self> {
        let (index, number) = place;
        Some(Self {
            session: host.session(SessionOptions::default()),
            host,
            tally,
            plugin: part.name.parse().ok()?,
            plan: Plan::new(seed, index, number, part.role),
            prefix: format!("{}-{number}", part.name),
            part: part.clone(),
            steps: 0,
        })
    }

    /// Goes on until the run is over.
    pub(crate) async fn run(mut self) {
        while !self.tally.is_over() {
            self.steps += 1;
            match self.plan.next() {
                Step::Call(planned) => self.call(&planned).await,
                Step::Command(command) => self.command(command).await,
                Step::NewSession => {
                    self.session.close().await;
                    self.renew();
                }
                Step::State => {
                    let step = serde_json::Value::from(self.steps);
                    self.session.set_state([("step".to_owned(), step)].into_iter().collect());
                }
            }
        }
        self.session.close().await;
    }

    fn renew(&mut self) {
        self.session = self.host.session(SessionOptions::default());
    }

    async fn call(&mut self, planned: &Planned) {
        let token = format!("{}-{}", self.prefix, self.steps);
        let pad = "x".repeat(planned.pad);
        let expected = if planned.deed == Deed::Large { format!("{token}:{pad}") } else { token.clone() };
        let arguments = Arguments { token, deed: planned.deed, after: planned.after, pad };
        let Ok(arguments) = serde_json::to_string(&arguments) else { return };
        self.tally.make();
        let start = Instant::now();
        let made = tokio::time::timeout(planned.deadline + GRACE, self.make(planned, arguments)).await;
        let took = start.elapsed();
        let Ok((outcome, changed)) = made else {
            self.tally.resolve("never ended");
            return self.violation(planned, &format!("it had not ended after {took:?}"));
        };
        if changed == Some(Change::Close) {
            self.session.close().await;
            self.renew();
        }
        let Some(outcome) = outcome else {
            self.tally.resolve("dropped by the caller");
            return self.settle(planned).await;
        };
        self.tally.resolve(kind(&outcome));
        let ended = Ended { role: self.part.role, planned, expected: &expected, changed, took };
        if let Some(fault) = ended.fault(&outcome) {
            self.violation(planned, &fault);
        }
        self.recover(planned, &outcome).await;
    }

    /// Makes the call, with the caller's change of mind; no outcome if it was dropped.
    async fn make(&self, planned: &Planned, arguments: String) -> (Option<Outcome>, Option<Change>) {
        let cancel = CancellationToken::new();
        let call = self.session.call(self.part.name.as_str(), arguments);
        let call = call.deadline(planned.deadline).cancelled_by(cancel.clone()).into_future();
        let Some((change, after)) = planned.change_of_mind else { return (Some(call.await), None) };
        let mut call = call;
        tokio::select! {
            outcome = &mut call => return (Some(outcome), None),
            () = tokio::time::sleep(after) => {}
        }
        match change {
            Change::Drop => (None, Some(change)),
            Change::Cancel => {
                cancel.cancel();
                (Some(call.await), Some(change))
            }
            Change::Close => {
                let (outcome, ()) = tokio::join!(call, self.session.close());
                (Some(outcome), Some(change))
            }
        }
    }

    /// Sees to it that the plugin runs.
    async fn recover(&self, planned: &Planned, outcome: &Outcome) {
        let command = match outcome {
            _ if self.part.role == Role::Solo && planned.deed.is_the_end() => return self.settle(planned).await,
            Err(CallError::Timeout { .. } | CallError::Unsent { .. } | CallError::NotReading { .. })
                if planned.deed.is_the_end() || !planned.deed.is_silent() =>
            {
                if planned.is_patient {
                    Command::Kill
                } else {
                    Command::Restart
                }
            }
            Err(
                CallError::Crashed { .. }
                | CallError::NotReady { .. }
                | CallError::UnknownTool { .. }
                | CallError::ShuttingDown { .. },
            ) => {
                if planned.is_patient {
                    tokio::time::sleep(PATIENCE).await;
                }
                Command::Start
            }
            _ => return,
        };
        self.command(command).await;
    }

    /// What comes after a call that ends the process of a caller's own plugin is to be judged by its own deed.
    async fn settle(&self, planned: &Planned) {
        if self.part.role == Role::Solo && planned.deed.is_the_end() {
            self.command(Command::Restart).await;
        }
    }

    /// A command that has not come to its end in time is lost, which must not be.
    async fn command(&self, command: Command) {
        let (name, outcome) = match command {
            Command::Start => ("start", self.in_time(self.host.start(&self.plugin)).await),
            Command::Stop => ("stop", self.in_time(self.host.stop(&self.plugin)).await),
            Command::Restart => ("restart", self.in_time(self.host.restart(&self.plugin)).await),
            Command::Reload => ("reload", self.in_time(self.host.reload(&self.plugin)).await),
            Command::Kill => ("kill", self.in_time(self.host.kill(&self.plugin)).await),
        };
        self.tally.command(name);
        let fault = match outcome {
            None => format!("it had not ended after {COMMAND:?}; {}", self.states()),
            Some(Err(CommandError::Start(error))) if self.part.role != Role::Wild => error.to_string(),
            Some(_) => return,
        };
        self.tally.violation(format!("{} {}, step {}: {fault}", name, self.prefix, self.steps));
    }

    /// What the host says of the plugin's processes.
    fn states(&self) -> String {
        let status = self.host.status();
        let Some(plugin) = status.plugins.iter().find(|plugin| plugin.name == self.plugin) else {
            return "the host does not know the plugin".to_owned();
        };
        let others = plugin.session_processes.iter().map(|process| process.state.to_string());
        let states: Vec<_> = std::iter::once(plugin.state.to_string()).chain(others).collect();
        format!("its processes are {}", states.join(", "))
    }

    async fn in_time<T>(&self, command: impl Future<Output = T>) -> Option<T> {
        tokio::time::timeout(COMMAND, command).await.ok()
    }

    fn violation(&self, planned: &Planned, fault: &str) {
        let what = format!("call {}-{}, {planned:?}: {fault}", self.prefix, self.steps);
        self.tally.violation(what);
    }
}
