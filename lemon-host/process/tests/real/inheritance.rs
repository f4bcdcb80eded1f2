//! What a process gets from the host: what its spec says and nothing else.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::AsRawFd;

use lemon_process::{ProcessSpec, ResourceLimits};
use nix::fcntl::{FcntlArg, fcntl};
use tokio::io::AsyncWriteExt;

use super::Test;
use super::support::*;

pub(crate) const TESTS: &[Test] = &[
    ("it_has_three_files", it_has_three_files),
    ("it_leads_a_session_without_a_terminal", it_leads_a_session_without_a_terminal),
    ("its_signals_are_at_their_defaults", its_signals_are_at_their_defaults),
    ("its_environment_is_what_was_given", its_environment_is_what_was_given),
    ("its_arguments_and_folder_are_what_was_given", its_arguments_and_folder_are_what_was_given),
    ("its_limits_are_set", its_limits_are_set),
];

fn it_has_three_files() {
    run(async {
        // A file that a careless library left open for every child.
        let null = fs::File::open("/dev/null").unwrap();
        let leaked = fcntl(&null, FcntlArg::F_DUPFD(50)).unwrap();
        let mut process = spawn(&spec("/bin/cat", &[]));
        // Once it answers, its loader has closed what it had opened itself.
        let mut stdin = process.stdin.take().unwrap();
        stdin.write_all(b"ready\n").await.unwrap();
        next_line(&mut lines(&mut process)).await;
        let open = fs::read_dir(format!("/proc/{}/fd", process.pid())).unwrap();
        let open: BTreeSet<String> = open.map(|fd| fd.unwrap().file_name().into_string().unwrap()).collect();
        assert!(null.as_raw_fd() > 2 && leaked >= 50);
        assert_eq!(open, ["0", "1", "2"].map(String::from).into());
        nix::unistd::close(leaked).unwrap();
    });
}

fn it_leads_a_session_without_a_terminal() {
    run(async {
        let process = spawn(&spec("/bin/cat", &["/proc/self/stat"]));
        let pid = process.pid().to_string();
        let stat = output(process).await;
        let fields: Vec<&str> = stat.split(' ').collect();
        let [group, session, terminal] = [fields[4], fields[5], fields[6]];
        assert_eq!([group, session, terminal], [&pid, &pid, "0"]);
    });
}

fn its_signals_are_at_their_defaults() {
    run(async {
        // Rust itself ignores SIGPIPE, so there is something to reset.
        let status = output(spawn(&spec("/bin/cat", &["/proc/self/status"]))).await;
        for mask in ["SigBlk", "SigIgn", "SigCgt"] {
            assert_eq!(signal_mask(&status, mask), 0, "{mask}");
        }
    });
}

fn its_environment_is_what_was_given() {
    run(async {
        let spec = ProcessSpec {
            env: [("B", "2"), ("A", "1"), ("EMPTY", ""), ("A", "again"), ("LEMON_COOKIE", "forged")]
                .map(|(name, value)| (name.into(), value.into()))
                .to_vec(),
            ..spec("/usr/bin/env", &[])
        };
        let printed = output(spawn(&spec)).await;
        let mut lines: Vec<&str> = printed.lines().collect();
        lines.sort_unstable();
        let [a, b, empty, cookie] = lines[..] else { panic!("{printed}") };
        assert_eq!([a, b, empty], ["A=again", "B=2", "EMPTY="]);
        let cookie = cookie.strip_prefix("LEMON_COOKIE=").unwrap();
        assert!(cookie.len() == 32 && cookie.bytes().all(|byte| byte.is_ascii_hexdigit()));
    });
}

fn its_arguments_and_folder_are_what_was_given() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let mut spec = sh("pwd; echo \"$0|$1|$2\"");
        spec.args.extend(["name", "$HOME *", ""].map(Into::into));
        spec.cwd = dir.clone();
        let expected = format!("{}\nname|$HOME *|\n", dir.display());
        assert_eq!(output(spawn(&spec)).await, expected);
    });
}

fn its_limits_are_set() {
    run(async {
        let mut spec = sh("read line; ulimit -c; ulimit -n; ulimit -v; ulimit -t");
        spec.limits = ResourceLimits {
            address_space: Some(1 << 30),
            open_files: Some(77),
            processes: Some(u64::MAX),
            cpu_seconds: Some(9),
        };
        assert_eq!(output(spawn(&spec)).await, "0\n77\n1048576\n9\n");
    });
}
