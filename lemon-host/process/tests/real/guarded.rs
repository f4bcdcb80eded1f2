//! What happens to the processes when the host dies.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use lemon_process::{Protection, Spawner};
use nix::sys::signal::Signal;

use super::Test;
use super::hosts::Host;
use super::support::*;

pub(crate) const TESTS: &[Test] = &[
    ("a_killed_host_leaves_nothing", a_killed_host_leaves_nothing),
    ("a_host_that_just_exits_leaves_nothing", a_host_that_just_exits_leaves_nothing),
    ("a_host_that_panics_leaves_nothing", a_host_that_panics_leaves_nothing),
    ("a_host_that_aborts_leaves_nothing", a_host_that_aborts_leaves_nothing),
    ("an_orderly_host_leaves_no_guard", an_orderly_host_leaves_no_guard),
    ("a_killed_guard_is_replaced", a_killed_guard_is_replaced),
    ("a_guard_is_deaf_to_polite_signals", a_guard_is_deaf_to_polite_signals),
    ("a_stuck_guard_is_replaced", a_stuck_guard_is_replaced),
    ("guards_that_keep_dying_are_given_up", guards_that_keep_dying_are_given_up),
    ("a_dropped_spawner_takes_its_guard_along", a_dropped_spawner_takes_its_guard_along),
    ("a_guard_has_nothing_of_its_host", a_guard_has_nothing_of_its_host),
];

pub(crate) const TIED_TESTS: &[Test] =
    &[("a_killed_host_takes_the_processes_along", a_killed_host_takes_the_processes_along)];

/// A host with its processes running.
struct Scene {
    folder: tempfile::TempDir,
    host: Host,
    guard: u32,
    stubborn: Vec<u32>,
    polite: u32,
}

impl Scene {
    fn set(role: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut host = Host::start_in(role, folder.path());
        let guard = host.pids()[0];
        let stubborn = host.pids();
        let polite = host.pids()[0];
        Self { folder, host, guard, stubborn, polite }
    }

    fn all(&self) -> Vec<u32> {
        let mut all = self.stubborn.clone();
        all.push(self.polite);
        all
    }

    fn assert_all_go(&self) {
        until("the end of all", || !self.all().into_iter().any(is_alive));
        assert!(self.said_bye(), "the polite one had the time it needs");
        until("the guard's end", || !is_alive(self.guard));
    }

    fn said_bye(&self) -> bool {
        let bye: &Path = self.folder.path();
        bye.join("bye").exists()
    }
}

fn a_killed_host_leaves_nothing() {
    let other = Scene::set("orderly");
    let mut scene = Scene::set("orderly");
    assert!(scene.guard != 0 && is_alive(scene.guard));
    assert!(scene.all().into_iter().all(is_alive));
    scene.host.kill();
    scene.assert_all_go();
    assert!(other.all().into_iter().all(is_alive), "another host's processes are none of its business");
}

fn a_host_that_just_exits_leaves_nothing() {
    let mut scene = Scene::set("hasty");
    assert!(scene.host.wait().success());
    scene.assert_all_go();
}

fn a_host_that_panics_leaves_nothing() {
    let mut scene = Scene::set("panicking");
    assert_eq!(scene.host.wait().code(), Some(101));
    // What is dropped as the panic unwinds is killed at once, by the host itself.
    until("the end of all", || !scene.all().into_iter().any(is_alive));
}

fn a_host_that_aborts_leaves_nothing() {
    let mut scene = Scene::set("aborting");
    assert_eq!(scene.host.wait().signal(), Some(Signal::SIGABRT as i32));
    scene.assert_all_go();
}

fn an_orderly_host_leaves_no_guard() {
    let mut scene = Scene::set("orderly");
    assert!(scene.host.wait().success());
    assert!(!scene.all().into_iter().any(is_alive));
    assert!(!is_alive(scene.guard));
}

fn a_killed_guard_is_replaced() {
    let mut scene = Scene::set("orderly");
    kill(scene.guard, Signal::SIGKILL);
    until("the guard's end", || !is_alive(scene.guard));
    scene.guard = loop {
        let guard = scene.host.ask();
        if guard != scene.guard {
            break guard;
        }
    };
    assert!(is_alive(scene.guard));
    assert!(scene.all().into_iter().all(is_alive));
    scene.host.kill();
    scene.assert_all_go();
}

fn a_guard_is_deaf_to_polite_signals() {
    let mut scene = Scene::set("orderly");
    // It is deaf once it runs, which the kernel shows: SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM.
    let status = format!("/proc/{}/status", scene.guard);
    let ignored = || signal_mask(&std::fs::read_to_string(&status).unwrap(), "SigIgn");
    until("its deafness", || ignored() == 0x5007);
    for signal in [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM] {
        kill(scene.guard, signal);
    }
    scene.host.kill();
    scene.assert_all_go();
}

fn a_stuck_guard_is_replaced() {
    run(async {
        let spawner = Spawner::new();
        let first = spawner.guard_pid().unwrap();
        kill(first, Signal::SIGSTOP);
        let mut spawned = 0;
        while spawner.guard_pid() == Some(first) {
            spawner.spawn(&spec("/bin/true", &[])).unwrap().control().kill().await;
            spawned += 1;
            assert!(spawned < 2000);
        }
        assert_eq!(spawner.protection(), Protection::Guard);
        until("the stuck one's end", || !is_alive(first));
    });
}

fn guards_that_keep_dying_are_given_up() {
    run(async {
        let spawner = Spawner::new();
        while let Some(guard) = spawner.guard_pid() {
            assert_eq!(spawner.protection(), Protection::Guard);
            kill(guard, Signal::SIGKILL);
            until("a change", || spawner.guard_pid() != Some(guard));
        }
        assert_eq!(spawner.protection(), Protection::ParentDeathSignal);
        let process = spawner.spawn(&spec("/bin/cat", &["/proc/self/stat"])).unwrap();
        assert!(!output(process).await.is_empty());
    });
}

fn a_dropped_spawner_takes_its_guard_along() {
    run(async {
        let spawner = Spawner::new();
        let guard = spawner.guard_pid().unwrap();
        let process = spawner.spawn(&spec("/bin/cat", &[])).unwrap();
        drop(spawner);
        assert!(is_alive(guard), "there is still something to watch");
        process.control().kill().await;
        drop(process);
        until("the guard's end", || lemon_process::process_start_time(guard).is_none());
    });
}

fn a_guard_has_nothing_of_its_host() {
    let mut scene = Scene::set("orderly");
    let of_guard = |file: &str| std::fs::read(format!("/proc/{}/{file}", scene.guard)).unwrap();
    assert_eq!(of_guard("cmdline"), b"lemon-guard\0");
    until("its name", || of_guard("comm") == b"lemon-guard\n");
    assert!(of_guard("environ").starts_with(b"LEMON_GUARD="));
    assert_eq!(std::fs::read_link(format!("/proc/{}/cwd", scene.guard)).unwrap(), Path::new("/"));
    let stat = String::from_utf8(of_guard("stat")).unwrap();
    let session = stat.split(' ').nth(5).unwrap();
    assert_eq!(session, scene.guard.to_string());
    scene.host.wait();
}

fn a_killed_host_takes_the_processes_along() {
    assert_eq!(Spawner::new().protection(), Protection::ParentDeathSignal);
    assert_eq!(Spawner::new().guard_pid(), None);
    let mut scene = Scene::set("orderly");
    assert_eq!(scene.guard, 0);
    scene.host.kill();
    until("the leaders' end", || !is_alive(scene.stubborn[0]) && !is_alive(scene.polite));
    // Descendants stay, which is why there is a guard.
    for descendant in &scene.stubborn[1..] {
        kill(*descendant, Signal::SIGKILL);
    }
}
