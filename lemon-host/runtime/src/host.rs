//! The host: all plugins of one program, and what they share.

mod builder;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use jsonrpsee::core::server::Methods;
use lemon_process::{Protection, Spawner};
use lemon_protocol::Implementation;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use builder::HostBuilder;

use crate::catalog::{
    Catalog, Conflict, ConflictReport, Entry, HostTool, LoadError, Offers, ToolFilter, ToolInfo, ToolRegistry,
    ToolSource, nearest,
};
use crate::error::CallError;
use crate::event::Event;
use crate::host_api::PluginInbound;
use crate::limits::{Limits, Timeouts};
use crate::pipeline::CallId;
use crate::plugin::{Command, CommandError, Plugin, PluginName, PluginSpec, StateKind};
use crate::report::{Hidden, Loser, PluginStatus, Redactor, Status};
use crate::schema::SchemaCache;
use crate::seams::{Approver, EventSink, Gate, Secrets};
use crate::session::{Session, SessionKey, SessionOptions};
use crate::wire::{Inbound, Peer, Tracer};

/// What all plugins of a host share.
pub(crate) struct Core {
    pub(crate) limits: Arc<Limits>,
    pub(crate) timeouts: Arc<Timeouts>,
    pub(crate) client: Implementation,
    pub(crate) cwd: PathBuf,
    pub(crate) untrusted: Vec<PathBuf>,
    pub(crate) log_dir: Option<PathBuf>,
    pub(crate) cache_dir: Option<PathBuf>,
    pub(crate) data_dir: Option<PathBuf>,
    pub(crate) redactor: Redactor,
    pub(crate) secrets: Arc<dyn Secrets>,
    pub(crate) events: Arc<dyn EventSink>,
    pub(crate) tracer: Option<Tracer>,
    pub(crate) spawner: Spawner,
    /// Bounds the starts that are under way at once.
    pub(crate) starts: Arc<Semaphore>,
    pub(crate) lazy_start: bool,
    catalog_is_stale: AtomicBool,
    host: Weak<HostInner>,
}

impl Core {
    pub(crate) fn catalog_changed(&self) {
        self.catalog_is_stale.store(true, Ordering::Release);
    }

    pub(crate) fn inbound(&self, spec: &PluginSpec) -> Arc<dyn Inbound> {
        Arc::new(PluginInbound::new(self.host.clone(), spec))
    }
}

pub(crate) struct HostInner {
    core: Arc<Core>,
    plugins: Vec<Arc<Plugin>>,
    losers: Vec<Loser>,
    builtins: Vec<HostTool>,
    registry: ToolRegistry,
    filter: ToolFilter,
    methods: Methods,
    gates: Vec<Arc<dyn Gate>>,
    approver: Arc<dyn Approver>,
    schemas: SchemaCache,
    catalog: Mutex<Arc<Catalog>>,
    /// The hidden tools that were told of: each name with who lost.
    told: Mutex<HashSet<(String, ToolSource)>>,
    /// The tools of the program's own that run, and how they learn of the host's end.
    running: TaskTracker,
    ending: CancellationToken,
    last_session: AtomicU64,
    last_call: AtomicU64,
}

impl HostInner {
    pub(crate) fn cwd(&self) -> &Path {
        &self.core.cwd
    }
}

/// All plugins of one program. Clones are the same host.
///
/// It runs on its caller's tokio runtime. End it with [`shutdown`](Self::shutdown); a host that is merely dropped ends
/// its plugins in the same order, as long as the runtime goes on, and else kills them.
#[derive(Clone)]
pub struct Host(Arc<HostInner>);

impl Host {
    /// Begins a host.
    pub fn builder() -> HostBuilder {
        HostBuilder::default()
    }

    pub(crate) fn from_inner(inner: Arc<HostInner>) -> Self {
        Self(inner)
    }

    /// Waits until each plugin is ready, has failed for now, or [need not run](HostBuilder::lazy_start).
    pub async fn settled(&self) {
        for plugin in &self.0.plugins {
            plugin.at_rest().await;
        }
    }

    /// Starts the plugins that are asleep because nobody has called them yet, and waits until each is ready or has failed.
    pub async fn wake(&self) {
        self.settled().await;
        let asleep = self.0.plugins.iter().filter(|plugin| plugin.is_asleep());
        futures_util::future::join_all(asleep.map(|plugin| plugin.wake())).await;
    }

    /// Opens a session.
    pub fn session(&self, options: SessionOptions) -> Session {
        let key = SessionKey(self.0.last_session.fetch_add(1, Ordering::Relaxed));
        Session::new(&self.0, key, options)
    }

    /// The tools that can be called: the program's own, and those of all plugins that are ready, in order of precedence.
    pub fn tools(&self) -> Vec<ToolInfo> {
        self.catalog().entries().map(|entry| entry.info()).collect()
    }

    /// The tool of that name.
    ///
    /// # Errors
    /// [`CallError::UnknownTool`], with the most similar name that there is, and [`CallError::Disabled`].
    pub fn tool(&self, name: &str) -> Result<ToolInfo, CallError> {
        self.find(name, &ToolFilter::default()).map(|entry| entry.info())
    }

    /// Tools that the program provides at run time. More can be registered at any moment.
    pub fn registry(&self) -> &ToolRegistry {
        &self.0.registry
    }

    /// Which tools have one name and who won, and which plugins could not be loaded.
    pub fn conflicts(&self) -> ConflictReport {
        let catalog = self.catalog();
        let plugins: Vec<_> = self.0.plugins.iter().map(|plugin| plugin.status(&catalog)).collect();
        report(&catalog, &plugins)
    }

    /// The state of everything.
    pub fn status(&self) -> Status {
        let catalog = self.catalog();
        let plugins: Vec<_> = self.0.plugins.iter().map(|plugin| plugin.status(&catalog)).collect();
        Status {
            protection: match self.0.core.spawner.protection() {
                Protection::Guard => "guard",
                Protection::ParentDeathSignal => "parent-death-signal",
            },
            conflicts: report(&catalog, &plugins),
            hidden: catalog
                .hidden()
                .iter()
                .map(|(tool, rule)| Hidden { tool: tool.clone(), rule: rule.clone() })
                .collect(),
            idle_filters: self.0.filter.idle(catalog.all_names()),
            plugins,
            losers: self.0.losers.clone(),
        }
    }

    /// Takes the values of all known secrets out of a text.
    pub fn redactor(&self) -> &Redactor {
        &self.0.core.redactor
    }

    /// Starts a plugin, and forgets its failures. Returns when it is ready.
    ///
    /// # Errors
    /// The reason if it does not get ready.
    pub async fn start(&self, plugin: &PluginName) -> Result<(), CommandError> {
        self.command(plugin, Command::Start).await
    }

    /// Stops a plugin until it is started again. Returns when its process is gone.
    ///
    /// # Errors
    /// When a later command takes its place.
    pub async fn stop(&self, plugin: &PluginName) -> Result<(), CommandError> {
        self.command(plugin, Command::Stop).await
    }

    /// Gives a plugin another process; calls under way get some time to finish.
    ///
    /// # Errors
    /// The reason if it does not get ready.
    pub async fn restart(&self, plugin: &PluginName) -> Result<(), CommandError> {
        self.command(plugin, Command::Restart).await
    }

    /// Gives a plugin another process, which takes over when it is ready; if it does not get ready, the old one stays.
    ///
    /// # Errors
    /// The reason if the new process does not get ready.
    pub async fn reload(&self, plugin: &PluginName) -> Result<(), CommandError> {
        self.command(plugin, Command::Reload).await
    }

    /// Ends a plugin's process at once. It stays stopped until it is started again.
    ///
    /// # Errors
    /// When a later command takes its place.
    pub async fn kill(&self, plugin: &PluginName) -> Result<(), CommandError> {
        self.command(plugin, Command::Kill).await
    }

    async fn command(&self, name: &PluginName, command: Command) -> Result<(), CommandError> {
        match self.0.plugins.iter().find(|plugin| plugin.name() == name) {
            Some(plugin) => plugin.command(command).await,
            None => Err(CommandError::Unknown { plugin: name.clone() }),
        }
    }

    /// Ends all plugins side by side: each is asked, then loses its input, then gets SIGTERM, then SIGKILL.
    ///
    /// Returns when no process is left and what they wrote to stderr is in their logs. With the default times that takes
    /// four seconds if it comes to SIGKILL, and some more at the most if a process hangs in the kernel, or something that
    /// escaped holds a plugin's stderr.
    pub async fn shutdown(&self) {
        self.end_own_tools();
        let plugins = futures_util::future::join_all(self.0.plugins.iter().map(|plugin| plugin.shut_down()));
        let patience = self.timeouts().eof_ms.get();
        // A tool that goes on for longer is dropped with the runtime, if not before.
        let own = tokio::time::timeout(patience, self.0.running.wait());
        let _ = futures_util::future::join(plugins, own).await;
    }

    /// Kills all processes at once, without asking.
    pub async fn kill_all(&self) {
        self.end_own_tools();
        let kill = |plugin: &Arc<Plugin>| {
            let plugin = plugin.clone();
            async move {
                // Refused only when the end is under way already.
                let _ = plugin.command(Command::Kill).await;
                plugin.shut_down().await;
            }
        };
        futures_util::future::join_all(self.0.plugins.iter().map(kill)).await;
    }

    /// No call is taken from now on. Tools of the program's own are told; they are dropped if they go on.
    fn end_own_tools(&self) {
        self.0.ending.cancel();
        self.0.running.close();
    }

    /// Whether the host has been shut down.
    pub(crate) fn is_ending(&self) -> bool {
        self.0.running.is_closed()
    }

    pub(crate) fn own_tools(&self) -> (&TaskTracker, &CancellationToken) {
        (&self.0.running, &self.0.ending)
    }

    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        let inner = &self.0;
        let mut catalog = inner.catalog.lock().unwrap_or_else(PoisonError::into_inner);
        let stale = &inner.core.catalog_is_stale;
        let is_stale = stale.load(Ordering::Acquire) && stale.swap(false, Ordering::AcqRel);
        if !is_stale && catalog.registry_version == inner.registry.version() {
            return catalog.clone();
        }
        let fresh = Arc::new(Catalog::build(&Offers {
            builtins: &inner.builtins,
            registry: &inner.registry,
            plugins: &inner.plugins,
            filter: &inner.filter,
        }));
        *catalog = fresh.clone();
        drop(catalog);
        self.tell_conflicts(&fresh);
        fresh
    }

    /// Tells of each hidden tool once, as long as it is hidden.
    fn tell_conflicts(&self, catalog: &Catalog) {
        let hidden =
            catalog.conflicts().flat_map(|conflict| conflict.shadowed.iter().map(move |source| (conflict, source)));
        let mut fresh = Vec::new();
        {
            let mut told = self.0.told.lock().unwrap_or_else(PoisonError::into_inner);
            let mut now = HashSet::new();
            for (Conflict { tool_name, winner, .. }, source) in hidden {
                let one = (tool_name.clone(), source.clone());
                if !told.contains(&one) {
                    fresh.push(Event::Shadowed {
                        tool: tool_name.clone(),
                        source: source.clone(),
                        winner: winner.clone(),
                    });
                }
                now.insert(one);
            }
            *told = now;
        }
        fresh.iter().for_each(|event| self.tell(event));
    }

    /// The tool of that name, white space around it aside.
    pub(crate) fn find(&self, name: &str, filter: &ToolFilter) -> Result<Arc<Entry>, CallError> {
        /// A longer name is no tool's.
        const NAME: usize = 200;
        let catalog = self.catalog();
        let tool = name.trim();
        let Some((entry, hidden)) = catalog.find(tool) else {
            let visible = catalog.entries().filter(|entry| entry.hidden_by(filter).is_none());
            let nearest = nearest(tool, visible.map(|entry| entry.name.as_str())).map(ToOwned::to_owned);
            return Err(CallError::UnknownTool { name: tool.chars().take(NAME).collect(), nearest });
        };
        match hidden.cloned().or_else(|| entry.hidden_by(filter)) {
            Some(rule) => Err(CallError::Disabled { tool: tool.to_owned(), rule }),
            None => Ok(entry.clone()),
        }
    }

    /// A name for one call, the same in all that is told of it.
    pub(crate) fn next_call(&self) -> CallId {
        CallId(self.0.last_call.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.0.core.limits
    }

    pub(crate) fn timeouts(&self) -> &Timeouts {
        &self.0.core.timeouts
    }

    pub(crate) fn methods(&self) -> &Methods {
        &self.0.methods
    }

    pub(crate) fn approver(&self) -> &dyn Approver {
        &*self.0.approver
    }

    pub(crate) fn gates(&self) -> &[Arc<dyn Gate>] {
        &self.0.gates
    }

    pub(crate) fn schemas(&self) -> &SchemaCache {
        &self.0.schemas
    }

    pub(crate) fn tell(&self, event: &Event) {
        self.0.core.events.event(event);
    }

    pub(crate) fn session_of(&self, peer: &Peer, handle: u32) -> Option<Session> {
        self.0.plugins.iter().find(|plugin| plugin.name() == peer.plugin())?.session_of(peer, handle)
    }

    pub(crate) async fn close_session(&self, session: &Session) {
        futures_util::future::join_all(self.0.plugins.iter().map(|plugin| plugin.close_session(session.key()))).await;
    }
}

fn report(catalog: &Catalog, plugins: &[PluginStatus]) -> ConflictReport {
    // What the user stopped is no error.
    let failed = plugins.iter().filter(|plugin| plugin.state != StateKind::Dormant).filter_map(|plugin| {
        Some(LoadError {
            plugin: plugin.name.clone(),
            source: plugin.provenance.clone(),
            error_message: plugin.error.clone()?,
        })
    });
    ConflictReport { load_errors: failed.collect(), ..catalog.report() }
}
