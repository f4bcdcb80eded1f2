//! The guard's side: remembers what it is told, waits for the host's end, ends what is left.

use std::collections::{HashMap, HashSet};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::order::Order;
use super::{ENV, NAME};
use crate::os::{self, Handle};
use crate::sweep::{self, Leader, Look, Mark};
use crate::{Cookie, Grace, Signal};

/// Between two looks at what is still there.
const PAUSE: Duration = Duration::from_millis(20);

/// How long the guard goes on killing. What is there then hangs in the kernel, or is not the user's.
const GIVE_UP: Duration = Duration::from_secs(30);

/// All that the guard watches, by the cookie.
type Watched = HashMap<Cookie, (Mark, Grace)>;

/// The host, if this process was started as a guard.
pub(super) fn host() -> Option<Leader> {
    let name = std::env::args_os().next()?;
    let value = std::env::var(ENV).ok()?;
    let (pid, start) = value.split_once(' ')?;
    let host = Leader { pid: pid.parse().ok()?, start: start.parse().ok()? };
    (name == NAME).then_some(host)
}

/// The guard's whole life.
#[expect(clippy::exit, reason = "this process is the guard and nothing else")]
pub(super) fn run(host: Leader) -> ! {
    os::name_process(NAME);
    os::ignore_signals();
    let watched = listen(host);
    end(&watched);
    std::process::exit(0);
}

/// Takes the host's orders until it is gone.
fn listen(host: Leader) -> Watched {
    let mut watched = Watched::new();
    let Ok(mut orders) = io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from) else {
        return watched;
    };
    // The pipe alone may stay open past the host's end, held by a child that it forked.
    let handle = Handle::open(host.pid).ok();
    let was_gone = os::start_time(host.pid) != Some(host.start);
    let mut pending = Vec::new();
    loop {
        if was_gone || is_gone(&orders, handle.as_ref()) {
            // What it said last is still to be read, without waiting for more.
            let _ = orders.set_nonblocking(true);
        }
        let mut chunk = [0; 4096];
        match orders.read(&mut chunk) {
            Ok(0) => return watched,
            Ok(count) => pending.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return watched,
        }
        while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = pending.drain(..=end).collect();
            if let Some(order) = std::str::from_utf8(&line).ok().and_then(Order::parse) {
                follow(&mut watched, order);
            }
        }
    }
}

/// Waits for an order or for the host's end. True if it is the end.
fn is_gone(orders: &UnixStream, host: Option<&Handle>) -> bool {
    // Without a handle only the end of the orders tells.
    let Some(host) = host else { return false };
    let mut fds = [PollFd::new(orders.as_fd(), PollFlags::POLLIN), PollFd::new(host.as_fd(), PollFlags::POLLIN)];
    while poll(&mut fds, PollTimeout::NONE) == Err(Errno::EINTR) {}
    fds[1].any().unwrap_or(false)
}

fn follow(watched: &mut Watched, order: Order) {
    match order {
        Order::Expect(cookie) => {
            let mark = Mark { cookie: cookie.clone(), leader: None };
            watched.insert(cookie, (mark, Grace::default()));
        }
        Order::Add(mark, grace) => {
            watched.insert(mark.cookie.clone(), (mark, grace));
        }
        Order::Forget(cookie) => {
            watched.remove(&cookie);
        }
    }
}

/// Ends all that is watched, politely first.
fn end(watched: &Watched) {
    let marks: Vec<Mark> = watched.values().map(|(mark, _)| mark.clone()).collect();
    let longest = |grace: fn(&Grace) -> Duration| {
        let all = watched.values().map(|(_, of_one)| grace(of_one));
        all.max().unwrap_or_default()
    };
    let term = Instant::now() + longest(|grace| grace.eof);
    let kill = term + longest(|grace| grace.term);
    let mut asked = HashSet::new();
    loop {
        let now = Instant::now();
        let Look { found, unsettled } = sweep::look(&marks);
        if (found.is_empty() && !unsettled) || now > kill + GIVE_UP {
            return;
        }
        for process in &found {
            if now >= kill {
                sweep::signal(process, Signal::Kill);
            } else if now >= term && asked.insert((process.pid, process.start)) {
                sweep::signal(process, Signal::Term);
                // A stopped process would not notice.
                sweep::signal(process, Signal::Cont);
            }
        }
        thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// What a host that died in the middle of a start leaves: a process of which the guard knows the
    /// cookie and nothing else.
    #[expect(clippy::disallowed_methods, reason = "no spawner, as it would end the process itself")]
    fn orphan(cookie: &Cookie) -> Child {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "trap '' TERM; echo; exec sleep 1000"]).process_group(0).stdout(Stdio::piped());
        let mut child = command.env(Cookie::ENV, cookie.as_str()).spawn().unwrap();
        // From here on it ignores the signal.
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        child
    }

    #[test]
    fn a_process_of_which_only_the_cookie_is_known_is_ended() {
        let (known, unknown) = (Cookie::new(), Cookie::new());
        let mut watched = Watched::new();
        follow(&mut watched, Order::Expect(known.clone()));
        follow(&mut watched, Order::Expect(unknown.clone()));
        follow(&mut watched, Order::Forget(unknown.clone()));
        for (_, grace) in watched.values_mut() {
            *grace = Grace { eof: Duration::ZERO, term: Duration::from_millis(50) };
        }
        let (mut ours, mut other) = (orphan(&known), orphan(&unknown));

        end(&watched);

        use std::os::unix::process::ExitStatusExt;
        assert_eq!(ours.wait().unwrap().signal(), Some(9));
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn a_group_whose_number_was_given_to_another_is_spared() {
        let mut stranger = orphan(&Cookie::new());
        let start = os::start_time(stranger.id()).unwrap();
        let leader = Leader { pid: stranger.id(), start: start - 1 };
        let mark = Mark { cookie: Cookie::new(), leader: Some(leader) };
        assert_eq!(sweep::look(std::slice::from_ref(&mark)).found, []);

        let found = os::stat(stranger.id()).unwrap();
        let before = os::Stat { start: start - 1, ..found };
        assert!(sweep::signal(&before, Signal::Kill).is_none());
        assert!(stranger.try_wait().unwrap().is_none());
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }
}
