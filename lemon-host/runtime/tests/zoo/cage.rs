//! A host with two plugins, the faulty one and the witness, and what a case looks at and does in it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lemon_host::{
    CallError, Class, CommandError, EnvValue, Host, PluginName, PluginSpec, PluginStatus, ProcessStatus, Session,
    SessionOptions, StateKind, ToolResult,
};
use tempfile::TempDir;

use crate::case::{NotStarted, Setup, VICTIM};
use crate::seams::{AllowAll, Notes, endless, patient, told};
use crate::witness::{WITNESS, Witness};

/// The program with the faults.
pub(crate) const PROGRAM: &str = "tests/misbehaving/misbehave.py";
/// How long a case waits for what ought to come.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often it looks.
pub(crate) const LOOK: Duration = Duration::from_millis(10);

/// A path of the repository.
pub(crate) fn root(path: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path).canonicalize().unwrap().display().to_string()
}

/// Waits for something that ought to end.
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(outcome) => outcome,
        Err(_) => panic!("{what} did not come"),
    }
}

/// Whether a process is there and is no zombie.
pub(crate) fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
}

pub(crate) struct Cage {
    pub(crate) host: Host,
    pub(crate) session: Session,
    /// What became of the start.
    pub(crate) started: Result<(), CommandError>,
    /// What the host told.
    pub(crate) notes: Notes,
    pub(crate) logs: PathBuf,
    /// In the environment of all that the faulty plugin starts.
    marker: String,
    /// How often it was started, when all was well.
    restarts: u32,
    name: PluginName,
}

/// Runs a case: its fault begins when the witness is being called already.
pub(crate) fn run(setup: Setup, check: impl AsyncFnOnce(&mut Cage)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let home = tempfile::tempdir().unwrap();
        let host = host(&home, setup);
        let (host, notes, marker) = host;
        let name: PluginName = VICTIM.parse().unwrap();
        // It has not done anything yet: all plugins of a host begin to start when the host does.
        within("its end before its start", host.kill(&name)).await.unwrap();
        let witness = Witness::begin(&host).await;
        let started = within("an end of the start", host.start(&name)).await;
        let session = host.session(SessionOptions::default().cwd(home.path()));
        let logs = home.path().join("logs");
        let mut cage = Cage { host, session, started, notes, logs, marker, restarts: 0, name };
        cage.restarts = cage.status().restarts;
        check(&mut cage).await;
        witness.has_noticed_nothing().await;
        let pids: Vec<u32> =
            cage.host.status().plugins.iter().filter_map(|plugin| Some(plugin.process.as_ref()?.pid)).collect();
        within("the end of the host", cage.host.shutdown()).await;
        assert_eq!(cage.marked(), Vec::<u32>::new(), "processes are left");
        for pid in pids {
            assert!(!Path::new(&format!("/proc/{pid}")).exists(), "{pid} was not reaped");
        }
    });
}

fn host(home: &TempDir, setup: Setup) -> (Host, Notes, String) {
    static CASES: AtomicU32 = AtomicU32::new(0);
    let marker = format!("{}-{}", std::process::id(), CASES.fetch_add(1, Ordering::Relaxed));
    let Setup { mut spec, limits, timeouts, traced, .. } = setup;
    spec.env.insert("LEMON_ZOO".to_owned(), EnvValue::Literal(marker.clone()));
    let witness = PluginSpec::new(WITNESS.parse().unwrap(), Class::Mcp, ["python3", "-S", &root(PROGRAM), "none"]);
    let notes = Notes::default();
    let mut builder = Host::builder()
        .plugin(spec)
        .plugin(witness)
        .limits(limits)
        .timeouts(timeouts)
        .log_dir(home.path().join("logs"))
        .builtin(told())
        .builtin(endless(&notes))
        .builtin(patient(&notes))
        .approver(AllowAll)
        .events(notes.clone());
    if traced {
        builder = builder.trace(notes.clone());
    }
    (builder.start(), notes, format!("LEMON_ZOO={marker}"))
}

impl Cage {
    /// Why it did not start.
    pub(crate) fn start_error(&self) -> String {
        self.started.as_ref().expect_err("it started").to_string()
    }

    pub(crate) fn status(&self) -> PluginStatus {
        self.host.status().plugins.into_iter().find(|plugin| plugin.name == self.name).unwrap()
    }

    /// How often it was started again, when the case began.
    pub(crate) fn restarts(&self) -> u32 {
        self.restarts
    }

    /// Its process, which has to be there.
    pub(crate) fn process(&self) -> ProcessStatus {
        let status = self.status();
        status.process.unwrap_or_else(|| panic!("there is no process: {} {:?}", status.state, status.error))
    }

    /// How much noise of a kind was counted in its process.
    pub(crate) fn noise(&self, kind: &str) -> u64 {
        let process = self.status().process;
        process.and_then(|process| process.noise.counts.get(kind).copied()).unwrap_or(0)
    }

    /// Calls echo, with a deadline that is not reached.
    pub(crate) async fn echo(&self) -> Result<ToolResult, CallError> {
        self.call("echo", r#"{"text":"x"}"#).await
    }

    /// Calls echo with a deadline in milliseconds.
    pub(crate) async fn echo_within(&self, milliseconds: u64) -> Result<ToolResult, CallError> {
        let call = self.session.call("echo", r#"{"text":"x"}"#).deadline(Duration::from_millis(milliseconds));
        within("an end of a call", call.into_future()).await
    }

    pub(crate) async fn call(&self, tool: &str, arguments: &str) -> Result<ToolResult, CallError> {
        within("an end of a call", self.session.call(tool, arguments).into_future()).await
    }

    /// What a tool says, which must not fail.
    pub(crate) async fn says(&self, tool: &str, arguments: &str) -> String {
        let result = self.call(tool, arguments).await.unwrap_or_else(|error| panic!("{tool} failed: {error}"));
        result.texts().map(|text| text.raw().to_owned()).collect()
    }

    /// It is as it was before the fault: calls are answered, by the same process.
    pub(crate) async fn works(&self) {
        let pid = self.pid_told().await;
        let status = self.status();
        assert_eq!((status.state, status.restarts), (StateKind::Ready, self.restarts), "{:?}", status.error);
        assert_eq!(Some(pid), status.process.map(|process| process.pid));
    }

    async fn pid_told(&self) -> u32 {
        let told: serde_json::Value = serde_json::from_str(&self.says("pids", "{}").await).unwrap();
        told["pid"].as_u64().and_then(|pid| pid.try_into().ok()).unwrap()
    }

    /// It is started again by itself, and answers calls.
    pub(crate) async fn comes_back(&self) {
        self.until("another start", |cage| {
            let status = cage.status();
            status.state == StateKind::Ready && status.restarts > self.restarts
        })
        .await;
        self.pid_told().await;
    }

    /// It did not start, is told as such, and nothing of it is running.
    pub(crate) async fn rests_as(&self, end: NotStarted) {
        let (state, retried) = match end {
            NotStarted::Backoff => (StateKind::Backoff, true),
            NotStarted::Failed => (StateKind::Failed, false),
        };
        self.until("the state", |cage| cage.notes.has(&format!("state {state}"))).await;
        if end == NotStarted::Failed {
            let status = self.status();
            assert_eq!((status.state, status.retry_in_ms.is_some()), (state, retried));
            assert!(status.error.is_some());
            assert_eq!(self.marked(), Vec::<u32>::new());
        }
        let call = self.call("echo", r#"{"text":"x"}"#).await.unwrap_err();
        assert!(matches!(call, CallError::UnknownTool { .. } | CallError::NotReady { .. }), "{call}");
    }

    /// Ends it as a user does; returns when nothing of it is left.
    pub(crate) async fn stop(&self) {
        within("the end of a stop", self.host.stop(&self.name)).await.unwrap();
        assert_eq!(self.status().state, StateKind::Dormant);
        assert_eq!(self.marked(), Vec::<u32>::new(), "processes are left");
    }

    /// Waits for something to become true.
    pub(crate) async fn until(&self, what: &str, condition: impl Fn(&Self) -> bool) {
        let waiting = async {
            while !condition(self) {
                tokio::time::sleep(LOOK).await;
            }
        };
        if tokio::time::timeout(PATIENCE, waiting).await.is_err() {
            panic!("{what} never came; told: {}; status: {:?}", self.notes.all(), self.status());
        }
    }

    /// The processes that belong to the faulty plugin, zombies aside.
    pub(crate) fn marked(&self) -> Vec<u32> {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        pids.filter(|pid| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == self.marker.as_bytes())
        })
        .collect()
    }

    /// The log of its stderr.
    pub(crate) fn log(&self) -> String {
        let bytes = std::fs::read(self.logs.join(format!("{VICTIM}.log"))).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
