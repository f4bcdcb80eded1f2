//! Misbehaving plugins to start, and ways to look at what became of them.

use std::path::Path;
use std::time::Duration;

use lemon_host::{CallError, Class, PluginSpec, PluginStatus, Status, ToolResult};

/// A path of the repository.
pub(crate) fn root(path: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path).canonicalize().unwrap().display().to_string()
}

/// A plugin that is right in all but one thing.
pub(crate) fn zoo(name: &str, fault: &str) -> PluginSpec {
    let program = root("tests/misbehaving/misbehave.py");
    PluginSpec::new(name.parse().unwrap(), Class::Extension, ["python3", &program, fault])
}

/// The status of one plugin.
pub(crate) fn fault<'a>(status: &'a Status, name: &str) -> &'a PluginStatus {
    status.plugins.iter().find(|plugin| plugin.name.as_str() == name).unwrap()
}

/// The text of a result.
pub(crate) fn text(result: Result<ToolResult, CallError>) -> String {
    let result = result.unwrap();
    result.texts().map(|text| text.raw().to_owned()).collect()
}

/// Whether a process is there and is no zombie.
pub(crate) fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
}

/// Ends a process of a plugin's from outside.
pub(crate) fn kill(pid: u32) {
    let pid = nix::unistd::Pid::from_raw(i32::try_from(pid).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
}

/// How long a test waits for what ought to come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Waits for something that ought to end.
pub(crate) async fn within<T>(patience: Duration, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(patience, future).await.expect("it did not end")
}

/// Waits for something to become true.
pub(crate) async fn until(condition: impl Fn() -> bool) {
    within(PATIENCE, async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}
