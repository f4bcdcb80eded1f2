//! Servers that nobody here wrote, from npm and PyPI, installed by `tests/run`.

use std::path::PathBuf;

use crate::support::{Lemon, run};
use serde_json::Value;

/// A program that `tests/run` installed.
pub(crate) fn installed(path: &str) -> String {
    let environment = std::env::var_os("LEMON_TEST_ENV")
        .map_or_else(|| PathBuf::from(crate::support::root("target/test-env")), PathBuf::from);
    let program = environment.join(path);
    assert!(program.exists(), "{} is not there; `tests/run` installs it", program.display());
    program.display().to_string()
}

/// A config with all four servers, and a repository and a folder for them to work on.
fn four_servers(lemon: &Lemon) -> PathBuf {
    let folder = lemon.home.path().join("folder with spaces é");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("note.txt"), "a note\n").unwrap();
    let git = |arguments: &[&str]| {
        let mut command = assert_cmd::Command::new("git");
        command.current_dir(&folder).args(["-c", "user.name=t", "-c", "user.email=t@example.org"]);
        command.args(arguments).assert().success();
    };
    git(&["init", "-q", "-b", "main"]);
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "the first commit"]);
    let folder = folder.display();
    lemon.config(&format!(
        r#"
[mcp.servers.everything]
command = ["{everything}"]

[mcp.servers.files]
command = ["{files}", "{folder}"]

[mcp.servers.time]
command = ["{time}", "--local-timezone", "UTC"]

[mcp.servers.git]
command = ["{git}", "--repository", "{folder}"]

[timeouts]
start_ms = 60000
"#,
        everything = installed("npm/node_modules/.bin/mcp-server-everything"),
        files = installed("npm/node_modules/.bin/mcp-server-filesystem"),
        time = installed("py/bin/mcp-server-time"),
        git = installed("py/bin/mcp-server-git"),
    ))
}

#[test]
fn four_published_servers_start_side_by_side_and_list_their_tools() {
    let lemon = Lemon::new();
    let config = four_servers(&lemon);
    let ran = run(lemon.command().arg("--config").arg(&config).args(["tools", "--json"]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let tools: Value = serde_json::from_str(&ran.stdout).unwrap();
    let count =
        |server: &str| tools["tools"].as_array().unwrap().iter().filter(|tool| tool["plugin"] == server).count();
    assert_eq!((count("time"), count("git"), count("files")), (2, 12, 14));
    assert_eq!(count("everything"), 12, "one of its thirteen can be called as a task only");

    let ran = run(lemon.command().arg("--config").arg(&config).args(["status", "--json"]));
    let status: Value = serde_json::from_str(&ran.stdout).unwrap();
    for plugin in status["status"]["plugins"].as_array().unwrap() {
        assert_eq!(plugin["state"], "ready", "{plugin}");
        assert_eq!(plugin["dialect"]["protocol"], "mcp");
        assert_eq!(plugin["dialect"]["version"], "2025-11-25");
        assert_eq!(plugin["process"]["noise"]["counts"], serde_json::json!({}), "{plugin}");
        let pid = plugin["process"]["pid"].as_u64().unwrap();
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "{plugin} is still there");
    }
}

#[test]
fn published_servers_answer_calls() {
    let lemon = Lemon::new();
    let config = four_servers(&lemon);
    let call = |arguments: &[&str]| {
        let ran = run(lemon.command().arg("--config").arg(&config).arg("call").args(arguments));
        (ran.code, ran.stdout, ran.stderr)
    };
    let (code, out, err) = call(&["mcp_time_get_current_time", "timezone=Asia/Tokyo"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("+09:00"), "{out}");

    let (code, out, err) = call(&["mcp_everything_echo", r#"{"message": "hé 🍋"}"#]);
    assert_eq!((code, out.as_str()), (Some(0), "Echo: hé 🍋\n"), "{err}");

    let (code, out, err) = call(&["mcp_everything_get-sum", "a=20", "b=22"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("42"), "{out}");

    let folder = lemon.home.path().join("folder with spaces é");
    let note = format!("path={}", folder.join("note.txt").display());
    let (code, out, err) = call(&["mcp_files_read_text_file", &note]);
    assert_eq!((code, out.as_str()), (Some(0), "a note\n"), "{err}");

    let (code, out, _) = call(&["mcp_files_read_text_file", "path=/etc/passwd"]);
    assert_eq!(code, Some(1), "outside of its folder the server refuses, as an error result");
    assert!(out.contains("Access denied"), "{out}");

    let (code, out, err) = call(&["mcp_git_git_log", &format!("repo_path={}", folder.display())]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("the first commit"), "{out}");
}

#[test]
fn a_long_running_tool_of_a_published_server_reports_progress_and_is_cancelled_by_its_deadline() {
    let lemon = Lemon::new();
    let config = four_servers(&lemon);
    let ran = run(lemon.command().arg("--config").arg(&config).args([
        "--trace",
        "call",
        "mcp_everything_trigger-long-running-operation",
        "duration=60",
        "steps=120",
        "--timeout",
        "2",
    ]));
    assert_eq!(ran.code, Some(5), "{}", ran.stderr);
    assert!(ran.stderr.contains("did not answer within 2 s"), "{}", ran.stderr);
    assert!(ran.stderr.contains("notifications/progress"), "{}", ran.stderr);
    assert!(ran.stderr.contains("notifications/cancelled"), "{}", ran.stderr);
}

#[test]
fn roots_are_told_only_where_the_config_names_them() {
    let lemon = Lemon::new();
    let (given, told) = (lemon.home.path().join("given"), lemon.home.path().join("told"));
    std::fs::create_dir(&given).unwrap();
    std::fs::create_dir(&told).unwrap();
    let files = installed("npm/node_modules/.bin/mcp-server-filesystem");
    let trace = |roots: &str| {
        let config = lemon.config(&format!(
            "[mcp.servers.files]\ncommand = [{files:?}, {given:?}]\nstart_timeout_ms = 60000\n{roots}\n"
        ));
        let arguments = ["--trace", "call", "mcp_files_list_allowed_directories"];
        let ran = run(lemon.command().arg("--config").arg(config).args(arguments));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.stderr
    };
    assert!(!trace("").contains("roots/list"), "a server that is not told of roots does not ask for them");
    let asked = trace(&format!("roots = [{told:?}]"));
    assert!(asked.contains(r#""method":"roots/list""#), "{asked}");
    assert!(asked.contains(&format!("file://{}", told.display())), "{asked}");
}
