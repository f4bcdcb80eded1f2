//! The well-behaved plugin beside the faulty one: it is called all the time, and each of its calls must succeed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lemon_host::{Generation, Host, PluginStatus, Session, SessionOptions, StateKind};
use tokio::task::JoinHandle;

use crate::cage::within;

/// Its name: as an MCP server's, so that none of its tools is hidden by one of the faulty plugin's.
pub(crate) const WITNESS: &str = "witness";

/// A normal deadline: far from what a call takes, and far from for ever.
const DEADLINE: Duration = Duration::from_secs(30);
/// So that the calls are not all that the machine does.
const PAUSE: Duration = Duration::from_millis(20);

static SLOWEST_MICROS: AtomicU64 = AtomicU64::new(0);

/// The slowest call of all witnesses.
pub(crate) fn slowest() -> Duration {
    Duration::from_micros(SLOWEST_MICROS.load(Ordering::Relaxed))
}

pub(crate) struct Witness {
    host: Host,
    generation: Generation,
    answered: Arc<AtomicU64>,
    calling: JoinHandle<()>,
}

impl Witness {
    /// Waits for the plugin to be ready and begins to call it. Returns when it has answered.
    pub(crate) async fn begin(host: &Host) -> Self {
        within("the start of the witness", host.start(&WITNESS.parse().unwrap())).await.unwrap();
        let (host, answered) = (host.clone(), Arc::<AtomicU64>::default());
        let session = host.session(SessionOptions::default());
        let calling = tokio::spawn(call_always(session, answered.clone()));
        let witness = Self { generation: status(&host).generation, host, answered, calling };
        witness.goes_on().await;
        witness
    }

    /// Waits until it has answered calls that began after this one.
    pub(crate) async fn goes_on(&self) {
        let before = self.answered.load(Ordering::Relaxed);
        within("the progress of the witness", async {
            while self.answered.load(Ordering::Relaxed) < before + 2 {
                assert!(!self.calling.is_finished(), "a call of the witness failed");
                tokio::time::sleep(PAUSE).await;
            }
        })
        .await;
    }

    /// Says that it has noticed nothing, and ends its calls.
    pub(crate) async fn has_noticed_nothing(self) {
        self.goes_on().await;
        self.calling.abort();
        let status = status(&self.host);
        assert_eq!((status.state, status.restarts), (StateKind::Ready, 0), "{:?}", status.error);
        assert_eq!(status.generation, self.generation, "the witness was started again");
        let noise = status.process.map(|process| process.noise.total());
        assert_eq!(noise, Some(0), "the witness is taken for noisy");
    }
}

async fn call_always(session: Session, answered: Arc<AtomicU64>) {
    for number in 0_u64.. {
        let arguments = format!(r#"{{"text":"{number}"}}"#);
        let begun = Instant::now();
        let result = session.call(format!("mcp_{WITNESS}_echo"), arguments).deadline(DEADLINE).await;
        let result = result.unwrap_or_else(|error| panic!("call {number} of the witness failed: {error}"));
        let text: String = result.texts().map(|text| text.raw().to_owned()).collect();
        assert_eq!(text, number.to_string());
        let took = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        SLOWEST_MICROS.fetch_max(took, Ordering::Relaxed);
        answered.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(PAUSE).await;
    }
}

fn status(host: &Host) -> PluginStatus {
    host.status().plugins.into_iter().find(|plugin| plugin.name.as_str() == WITNESS).unwrap()
}
