//! Making a host: what its plugins are, and what it is given along.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};

use lemon_process::Spawner;
use lemon_protocol::Implementation;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{Core, Host, HostInner};
use crate::catalog::{HostTool, ToolFilter, ToolRegistry};
use crate::host_api;
use crate::limits::{Limits, Timeouts};
use crate::plugin::{Plugin, PluginSpec};
use crate::report::{Loser, Redactor};
use crate::schema::SchemaCache;
use crate::seams::{Approver, DenyAll, Environment, EventSink, Gate, NoEvents, Secrets};
use crate::wire::{TraceSink, Tracer};

/// What a [`Host`] is made of. Everything has a default.
#[must_use]
pub struct HostBuilder {
    plugins: Vec<PluginSpec>,
    limits: Limits,
    timeouts: Timeouts,
    client: Implementation,
    cwd: Option<PathBuf>,
    untrusted: Vec<PathBuf>,
    log_dir: Option<PathBuf>,
    cache_dir: Option<PathBuf>,
    data_dir: Option<PathBuf>,
    secrets: Arc<dyn Secrets>,
    events: Arc<dyn EventSink>,
    builtins: Vec<HostTool>,
    registry: ToolRegistry,
    filter: ToolFilter,
    gates: Vec<Arc<dyn Gate>>,
    approver: Arc<dyn Approver>,
    trace: Option<Arc<dyn TraceSink>>,
    lazy_start: bool,
}

impl Default for HostBuilder {
    fn default() -> Self {
        let client =
            Implementation { name: "lemon".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned(), title: None };
        Self {
            plugins: Vec::new(),
            limits: Limits::default(),
            timeouts: Timeouts::default(),
            client,
            cwd: None,
            untrusted: Vec::new(),
            log_dir: None,
            cache_dir: None,
            data_dir: None,
            secrets: Arc::new(Environment),
            events: Arc::new(NoEvents),
            builtins: Vec::new(),
            registry: ToolRegistry::default(),
            filter: ToolFilter::default(),
            gates: Vec::new(),
            approver: Arc::new(DenyAll),
            trace: None,
            lazy_start: false,
        }
    }
}

impl HostBuilder {
    /// Adds a plugin. Of several with one name the first is started, the others are told in the status.
    pub fn plugin(mut self, spec: PluginSpec) -> Self {
        self.plugins.push(spec);
        self
    }

    /// Sets the bounds on sizes and counts.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the bounds on time.
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Says who the host is, for plugins that want to know; `lemon` by default.
    pub fn client(mut self, name: impl Into<String>, version: impl Into<String>) -> Self {
        self.client = Implementation { name: name.into(), version: version.into(), title: None };
        self
    }

    /// Says where plugins run and sessions work, unless they say otherwise; the process's own folder by default.
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    /// Names a folder from which no program is run by a bare name, whatever PATH says.
    pub fn untrusted(mut self, folder: impl Into<PathBuf>) -> Self {
        self.untrusted.push(folder.into());
        self
    }

    /// Says where each plugin's stderr is logged, as `NAME.log`; nowhere by default.
    pub fn log_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.log_dir = Some(dir.into());
        self
    }

    /// Says where the host remembers what plugins offer, and where plugins may cache what they compile, outside of their
    /// own folders.
    pub fn cache_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.cache_dir = Some(dir.into());
        self
    }

    /// Says where extensions have a folder of their own each, which their manifests call `${data_dir}`.
    pub fn data_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.data_dir = Some(dir.into());
        self
    }

    /// Brings secrets along; the process's environment by default.
    pub fn secrets(mut self, secrets: impl Secrets + 'static) -> Self {
        self.secrets = Arc::new(secrets);
        self
    }

    /// Takes events.
    pub fn events(mut self, events: impl EventSink + 'static) -> Self {
        self.events = Arc::new(events);
        self
    }

    /// Adds a tool that is part of the program: it wins over every other of its name. Of several with one name the
    /// first wins.
    pub fn builtin(mut self, tool: HostTool) -> Self {
        self.builtins.push(tool);
        self
    }

    /// Takes tools from a registry that is already there; otherwise the host has an empty one of its own.
    pub fn registry(mut self, registry: ToolRegistry) -> Self {
        self.registry = registry;
        self
    }

    /// Hides tools, beside those that are hidden already.
    pub fn filter(mut self, filter: ToolFilter) -> Self {
        self.filter = self.filter.and(filter);
        self
    }

    /// Adds a gate behind the others. It sees every call, whoever makes it.
    pub fn gate(mut self, gate: impl Gate + 'static) -> Self {
        self.gates.push(Arc::new(gate));
        self
    }

    /// Decides on calls that models and plugins make; all are denied by default.
    pub fn approver(mut self, approver: impl Approver + 'static) -> Self {
        self.approver = Arc::new(approver);
        self
    }

    /// Takes every message that crosses a pipe.
    pub fn trace(mut self, sink: impl TraceSink + 'static) -> Self {
        self.trace = Some(Arc::new(sink));
        self
    }

    /// Leaves a plugin asleep until one of its tools is called, if its tools are known without it: from its manifest, or
    /// from the [cache](Self::cache_dir), where it has to be the same plugin in all that counts. One that may stop calls, and
    /// one of which nothing is known, is started all the same. By default all are started.
    pub fn lazy_start(mut self, lazy: bool) -> Self {
        self.lazy_start = lazy;
        self
    }

    /// Starts all plugins, side by side, and does not wait for them.
    ///
    /// # Panics
    /// Outside of a tokio runtime with io and time enabled.
    pub fn start(self) -> Host {
        let (plugins, losers) = one_of_each(self.plugins);
        let mut specs = plugins;
        // The order of plugins everywhere: by class, the user's before a project's, then by identity.
        specs.sort_by(|a, b| (a.class, a.of_project, &a.name).cmp(&(b.class, b.of_project, &b.name)));
        let redactor = Redactor::new();
        let tracer = self.trace.map(|sink| Tracer { sink, redactor: redactor.clone() });
        let cwd = self.cwd.or_else(|| std::env::current_dir().ok()).unwrap_or_else(|| PathBuf::from("/"));
        let starts = std::thread::available_parallelism().map_or(2, std::num::NonZero::get) * 2;
        Host(Arc::new_cyclic(|host| {
            let core = Arc::new(Core {
                limits: Arc::new(self.limits),
                timeouts: Arc::new(self.timeouts),
                client: self.client,
                cwd,
                untrusted: self.untrusted,
                log_dir: self.log_dir,
                cache_dir: self.cache_dir,
                data_dir: self.data_dir,
                redactor,
                secrets: self.secrets,
                events: self.events,
                tracer,
                spawner: Spawner::new(),
                starts: Arc::new(Semaphore::new(starts)),
                lazy_start: self.lazy_start,
                catalog_is_stale: AtomicBool::new(true),
                host: host.clone(),
            });
            HostInner {
                plugins: specs.into_iter().map(|spec| Arc::new(Plugin::start(spec, core.clone()))).collect(),
                losers,
                builtins: self.builtins,
                registry: self.registry,
                filter: self.filter,
                methods: host_api::methods(),
                gates: self.gates,
                approver: self.approver,
                schemas: SchemaCache::default(),
                catalog: Mutex::default(),
                told: Mutex::default(),
                running: TaskTracker::new(),
                ending: CancellationToken::new(),
                last_session: AtomicU64::new(1),
                last_call: AtomicU64::new(1),
                core,
            }
        }))
    }
}

/// Of several plugins with one name the first is taken.
fn one_of_each(specs: Vec<PluginSpec>) -> (Vec<PluginSpec>, Vec<Loser>) {
    let (mut taken, mut losers) = (Vec::<PluginSpec>::new(), Vec::new());
    for spec in specs {
        match taken.iter().find(|winner| winner.name == spec.name) {
            Some(winner) => {
                losers.push(Loser { name: spec.name, provenance: spec.provenance, winner: winner.provenance.clone() })
            }
            None => taken.push(spec),
        }
    }
    (taken, losers)
}
