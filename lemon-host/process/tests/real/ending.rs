//! How a process and its descendants end.

use std::process::Command;
use std::time::{Duration, Instant};

use lemon_process::{Ending, ExitStatus, Grace, Signal, Spawner, Step};

use super::Test;
use super::support::*;

pub(crate) const TESTS: &[Test] = &[
    ("a_status_is_told_to_all_who_wait", a_status_is_told_to_all_who_wait),
    ("a_signal_is_told", a_signal_is_told),
    ("it_goes_at_the_end_of_its_input", it_goes_at_the_end_of_its_input),
    ("it_goes_at_sigterm", it_goes_at_sigterm),
    ("it_is_killed_if_it_ignores_all_else", it_is_killed_if_it_ignores_all_else),
    ("a_stopped_process_gets_its_sigterm", a_stopped_process_gets_its_sigterm),
    ("descendants_are_swept_wherever_they_went", descendants_are_swept_wherever_they_went),
    ("a_descendant_in_the_middle_of_an_exec_is_swept", a_descendant_in_the_middle_of_an_exec_is_swept),
    ("descendants_of_a_killed_process_are_counted", descendants_of_a_killed_process_are_counted),
    ("descendants_that_go_on_forking_are_swept", descendants_that_go_on_forking_are_swept),
    ("who_lacks_the_cookie_is_spared", who_lacks_the_cookie_is_spared),
    ("all_callers_get_the_same_ending", all_callers_get_the_same_ending),
    ("kill_does_not_wait_for_an_ending_in_its_grace", kill_does_not_wait_for_an_ending_in_its_grace),
    ("an_ending_outlives_its_callers", an_ending_outlives_its_callers),
    ("the_last_control_ends_what_nobody_did", the_last_control_ends_what_nobody_did),
    ("a_signal_reaches_the_whole_group", a_signal_reaches_the_whole_group),
];

const DAEMON: &str = "
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        os.close(1)
        time.sleep(1000)
    os._exit(0)
os.wait()
sys.stdin.read()
";

/// Ignores the end of its input and SIGTERM, and says when it does so.
const STUBBORN: &str = "trap '' TERM; echo ready; exec sleep 1000";

const SHORT: Grace = Grace { eof: Duration::from_millis(50), term: Duration::from_millis(50) };

fn a_status_is_told_to_all_who_wait() {
    run(async {
        let process = spawn(&sh("read line; exit 3"));
        let control = process.control();
        assert_eq!(control.try_exited(), None);
        let waiting: Vec<_> = (0..5)
            .map(|_| {
                let control = process.control();
                tokio::spawn(async move { control.exited().await })
            })
            .collect();
        drop(process);
        for status in waiting {
            assert_eq!(status.await.unwrap(), ExitStatus::Code(3));
        }
        assert_eq!(control.try_exited(), Some(ExitStatus::Code(3)));
        let ending = control.end(PATIENT).await;
        let expected = Ending { status: ExitStatus::Code(3), step: Step::AlreadyExited, swept: 0 };
        assert_eq!(ending, expected);
        assert_eq!(control.exited().await, ExitStatus::Code(3));
    });
}

fn a_signal_is_told() {
    run(async {
        for (script, number) in [("kill -9 $$", 9), ("kill -SEGV $$", 11), ("kill -40 $$", 40)] {
            let status = spawn(&sh(script)).control().exited().await;
            assert_eq!(status, ExitStatus::Signal(number, false));
        }
    });
}

fn it_goes_at_the_end_of_its_input() {
    run(async {
        let mut process = spawn(&spec("/bin/cat", &[]));
        close_stdin(&mut process);
        let ending = process.control().end(PATIENT).await;
        assert_eq!((ending.step, ending.status), (Step::Eof, ExitStatus::Code(0)));
        assert_eq!(lemon_process::process_start_time(process.pid()), None, "reaped");
    });
}

fn it_goes_at_sigterm() {
    run(async {
        let script = "trap 'exit 7' TERM; echo ready; while :; do sleep 0.02; done";
        let mut process = spawn(&sh(script));
        next_line(&mut lines(&mut process)).await;
        let grace = Grace { eof: Duration::from_millis(20), ..PATIENT };
        let ending = process.control().end(grace).await;
        assert_eq!((ending.step, ending.status), (Step::Term, ExitStatus::Code(7)));
    });
}

fn it_is_killed_if_it_ignores_all_else() {
    run(async {
        let mut process = spawn(&sh(STUBBORN));
        next_line(&mut lines(&mut process)).await;
        let start = Instant::now();
        let ending = process.control().end(SHORT).await;
        let expected = Ending { status: ExitStatus::Signal(9, false), step: Step::Kill, swept: 0 };
        assert_eq!(ending, expected);
        assert!(start.elapsed() >= SHORT.eof + SHORT.term);
    });
}

fn a_stopped_process_gets_its_sigterm() {
    run(async {
        let process = spawn(&sh("kill -STOP $$"));
        let stat = format!("/proc/{}/stat", process.pid());
        until("the stop", || std::fs::read_to_string(&stat).unwrap().contains(" T "));
        let grace = Grace { eof: Duration::ZERO, ..PATIENT };
        let ending = process.control().end(grace).await;
        assert_eq!((ending.step, ending.status), (Step::Term, ExitStatus::Signal(15, false)));
    });
}

fn descendants_are_swept_wherever_they_went() {
    let cases = [
        sh("sleep 1000 & echo $!; read line"),
        sh("setsid sh -c 'echo $$; exec sleep 1000' & read line"),
        sh("trap '' TERM HUP; setsid sh -c 'echo $$; exec sleep 1000' & read line"),
        spec("/usr/bin/env", &["python3", "-c", DAEMON]),
    ];
    run(async {
        for spec in cases {
            let mut process = spawn(&spec);
            let descendant = next_pid(&mut lines(&mut process)).await;
            assert!(is_alive(descendant));
            close_stdin(&mut process);
            let ending = process.control().end(PATIENT).await;
            assert_eq!((ending.step, ending.swept), (Step::Eof, 1), "{spec:?}");
            assert!(!is_alive(descendant), "{spec:?}");
        }
    });
}

fn descendants_of_a_killed_process_are_counted() {
    run(async {
        let script = "trap '' TERM; sleep 1000 & setsid sh -c 'echo $$; exec sleep 1000' & sleep 1000";
        let mut process = spawn(&sh(script));
        let outside = next_pid(&mut lines(&mut process)).await;
        let ending = process.control().end(SHORT).await;
        assert_eq!((ending.step, ending.swept), (Step::Kill, 3));
        assert!(!is_alive(outside));
    });
}

fn descendants_that_go_on_forking_are_swept() {
    // Outside the group, and each of its children in a session of its own.
    let breeder = "
import os, sys, time
if os.fork() == 0:
    os.setsid()
    os.close(0)
    for count in range(300):
        if count == 10:
            print('ready', flush=True)
        if os.fork() == 0:
            os.setsid()
            os.close(1)
            break
        time.sleep(0.002)
    time.sleep(1000)
sys.stdin.read()
";
    run(async {
        let mut process = spawn(&spec("/usr/bin/env", &["python3", "-c", breeder]));
        next_line(&mut lines(&mut process)).await;
        let cookie = cookie_of(process.pid());
        close_stdin(&mut process);
        let ending = process.control().end(PATIENT).await;
        assert!(ending.swept > 10, "{ending:?}");
        assert_eq!(carriers(&cookie), [0u32; 0]);
    });
}

/// A process that executes another program has no readable environment for a moment. A sweep at
/// that moment took it for a stranger.
fn a_descendant_in_the_middle_of_an_exec_is_swept() {
    // Outside the group, and in the middle of it most of the time.
    let script = "setsid sh -c 'exec sh -c \"$AGAIN\"' & echo $!; read line";
    let mut spec = sh(script);
    spec.env.push(("AGAIN".into(), "exec sh -c \"$AGAIN\"".into()));
    run(async {
        for _ in 0..30 {
            let mut process = spawn(&spec);
            let descendant = next_pid(&mut lines(&mut process)).await;
            close_stdin(&mut process);
            let ending = process.control().end(PATIENT).await;
            assert_eq!(ending.swept, 1);
            assert!(!is_alive(descendant));
        }
    });
}

fn cookie_of(pid: u32) -> Vec<u8> {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
    let mut entries = environment.split(|byte| *byte == 0);
    let cookie = entries.find(|entry| entry.starts_with(b"LEMON_COOKIE="));
    cookie.unwrap().to_owned()
}

fn carriers(cookie: &[u8]) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| {
        std::fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|all| all.split(|byte| *byte == 0).any(|entry| entry == cookie))
    })
    .collect()
}

fn who_lacks_the_cookie_is_spared() {
    run(async {
        let spawner = Spawner::new();
        let other = spawner.spawn(&spec("/bin/cat", &[])).unwrap();
        let mut stranger = Command::new("/bin/sleep").arg("1000").spawn().unwrap();
        let script = "env -i setsid sh -c 'echo $$; exec sleep 1000' & sleep 1000";
        let mut process = spawner.spawn(&sh(script)).unwrap();
        let cleaned = next_pid(&mut lines(&mut process)).await;

        process.control().kill().await;
        assert_eq!(other.control().try_exited(), None);
        assert!(is_alive(stranger.id()));
        assert!(is_alive(cleaned));

        kill(cleaned, nix::sys::signal::Signal::SIGKILL);
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    });
}

fn all_callers_get_the_same_ending() {
    run(async {
        let process = spawn(&sh("sleep 1000 & exec sleep 1000"));
        let (one, two) = (process.control(), process.control());
        let (one, two) = tokio::join!(one.end(SHORT), two.end(PATIENT));
        assert_eq!(one, two);
        assert_eq!(one.step, Step::Term);
        assert_eq!(process.control().kill().await, one);
    });
}

fn kill_does_not_wait_for_an_ending_in_its_grace() {
    run(async {
        let mut process = spawn(&sh(STUBBORN));
        next_line(&mut lines(&mut process)).await;
        let control = process.control();
        let ending = tokio::spawn(async move { control.end(PATIENT).await });
        tokio::task::yield_now().await;
        let start = Instant::now();
        assert_eq!(process.control().kill().await.step, Step::Kill);
        assert_eq!(ending.await.unwrap().step, Step::Kill);
        assert!(start.elapsed() < DEADLINE);
    });
}

fn an_ending_outlives_its_callers() {
    run(async {
        let process = spawn(&sh("exec sleep 1000"));
        let control = process.control();
        let at_once = tokio::time::timeout(Duration::ZERO, control.end(SHORT));
        assert!(at_once.await.is_err());
        assert_eq!(control.exited().await, ExitStatus::Signal(15, false));
    });
}

fn the_last_control_ends_what_nobody_did() {
    let pids = run(async {
        let script = "setsid sh -c 'echo $$; exec sleep 1000' & sleep 1000 & echo $!; read line";
        let mut process = spawn(&sh(script));
        let mut lines = lines(&mut process);
        let pids = [process.pid(), next_pid(&mut lines).await, next_pid(&mut lines).await];
        assert!(pids.into_iter().all(is_alive));
        pids
        // Here the process goes, and then the runtime.
    });
    assert!(!pids.into_iter().any(is_alive));
    assert_eq!(lemon_process::process_start_time(pids[0]), None, "reaped");
}

fn a_signal_reaches_the_whole_group() {
    run(async {
        let mut process = spawn(&sh("sleep 1000 & echo $!; wait"));
        let member = next_pid(&mut lines(&mut process)).await;
        process.control().signal_group(Signal::Term);
        assert_eq!(process.control().exited().await, ExitStatus::Signal(15, false));
        until("the member's end", || !is_alive(member));
        process.control().end(PATIENT).await;
        process.control().signal_group(Signal::Kill);
    });
}
