//! The host's side: starts the guard, tells it what to watch, replaces it when it dies.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use super::order::Order;
use super::{AVAILABLE, ENV, NAME};
use crate::os::{self, Handle, Launch};
use crate::sweep::Mark;
use crate::{Cookie, Grace, Signal};

/// So many deaths within so much time, and guards are given up.
const DEATHS: (usize, Duration) = (5, Duration::from_secs(10));

/// How long a guard with nothing to do may take to exit.
const LEAVE: Duration = Duration::from_secs(1);

/// The line to the guard. Dropping it lets the guard go.
#[derive(Debug)]
pub(crate) struct Link {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    guard: Option<Guard>,
    /// All that a new guard has to be told.
    marks: HashMap<Cookie, Mark>,
    deaths: VecDeque<Instant>,
}

#[derive(Debug)]
struct Guard {
    pid: u32,
    handle: Arc<Handle>,
    socket: UnixStream,
}

impl Link {
    /// Starts a guard, if this program can be one.
    pub(crate) fn open() -> Option<Self> {
        if !AVAILABLE.load(Ordering::Acquire) {
            return None;
        }
        let shared = Arc::new(Shared::default());
        let mut state = shared.state();
        state.guard = Some(Guard::start(&shared).ok()?);
        drop(state);
        Some(Self { shared })
    }

    /// The guard's number; `None` once guards were given up.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.shared.state().guard.as_ref().map(|guard| guard.pid)
    }

    /// A process with this cookie is about to be started. Were the host to die between its start and
    /// `add`, its cookie is enough to find it.
    pub(crate) fn expect(&self, cookie: &Cookie) {
        let mark = Mark { cookie: cookie.clone(), leader: None };
        self.add(&mark);
    }

    /// The process was started.
    pub(crate) fn add(&self, mark: &Mark) {
        let mut state = self.shared.state();
        state.marks.insert(mark.cookie.clone(), mark.clone());
        self.shared.send(&mut state, &Order::Add(mark.clone(), Grace::default()));
    }

    /// The process was ended.
    pub(crate) fn forget(&self, cookie: &Cookie) {
        let mut state = self.shared.state();
        state.marks.remove(cookie);
        self.shared.send(&mut state, &Order::Forget(cookie.clone()));
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let Some(Guard { handle, socket, .. }) = self.shared.state().guard.take() else {
            return;
        };
        drop(socket);
        // Nothing is registered any more, so no harm comes from a guard that is not waited for.
        if !handle.wait(Some(LEAVE)) {
            handle.signal(Signal::Kill);
            handle.wait(Some(LEAVE));
        }
        handle.reap();
    }
}

impl Shared {
    /// What can't be sent has killed the guard, or found it dead or stuck. The next one is told
    /// everything anyway.
    fn send(self: &Arc<Self>, state: &mut State, order: &Order) {
        let Some(guard) = &state.guard else { return };
        if os::send(&guard.socket, order.to_string().as_bytes()).is_err() {
            self.replace(state);
        }
    }

    fn replace(self: &Arc<Self>, state: &mut State) {
        if let Some(old) = state.guard.take() {
            // One that is stuck must not wake up later and end what its successor watches.
            old.handle.signal(Signal::Kill);
        }
        let (count, time) = DEATHS;
        state.deaths.push_back(Instant::now());
        if state.deaths.len() > count {
            state.deaths.pop_front();
        }
        let oldest = state.deaths.front().map(Instant::elapsed);
        if state.deaths.len() == count && oldest.is_some_and(|age| age < time) {
            return;
        }
        let Ok(guard) = Guard::start(self) else {
            return;
        };
        let marks = state.marks.values();
        let orders = marks.map(|mark| Order::Add(mark.clone(), Grace::default()).to_string());
        let told = os::send(&guard.socket, orders.collect::<String>().as_bytes());
        state.guard = Some(guard);
        if told.is_err() {
            self.replace(state);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Guard {
    fn start(shared: &Arc<Shared>) -> io::Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        let null = || std::fs::File::options().write(true).open("/dev/null");
        let start = os::start_time(std::process::id());
        let start = start.ok_or_else(|| io::Error::other("no start time of the host"))?;
        let mut env = vec![(ENV.into(), format!("{} {start}", std::process::id()).into())];
        // A program that finds its libraries by this would not start without it.
        env.extend(std::env::var_os("LD_LIBRARY_PATH").map(|path| ("LD_LIBRARY_PATH".into(), path)));
        let pid = os::spawn(&Launch {
            program: os::own_program(),
            argv: vec![NAME.into()],
            env,
            cwd: "/".into(),
            stdio: [OwnedFd::from(theirs), null()?.into(), null()?.into()],
        })?;
        let handle = Arc::new(Handle::open(pid).inspect_err(|_| {
            drop(socket.shutdown(std::net::Shutdown::Both));
            os::wait_for(pid);
        })?);
        let guard = Self { pid, handle: Arc::clone(&handle), socket };

        let shared = Arc::downgrade(shared);
        thread::Builder::new()
            .name("lemon-guard".into())
            .stack_size(128 * 1024)
            .spawn(move || watch(&handle, &shared))?;
        Ok(guard)
    }
}

/// Waits for a guard's end, and replaces it if that was not the host's wish.
fn watch(handle: &Arc<Handle>, shared: &Weak<Shared>) {
    handle.wait(None);
    handle.reap();
    if let Some(shared) = shared.upgrade() {
        let mut state = shared.state();
        if state.guard.as_ref().is_some_and(|guard| Arc::ptr_eq(&guard.handle, handle)) {
            shared.replace(&mut state);
        }
    }
}
