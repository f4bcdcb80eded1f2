//! Plugins that need not run before they are called: what is listed without them, and what a call then meets.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lemon_host::{
    CallError, EnvValue, Host, HostBuilder, Listed, ManifestFile, PluginSpec, PluginStatus, Provenance, SessionOptions,
    StateKind,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::zoo::text;

/// A plain plugin that takes its tools from a file beside its folder, and says when it has started.
const PROGRAM: &str = r#"
import json, os, pathlib, sys
place = pathlib.Path(os.environ["PLACE"])
with open(place / "starts", "a") as starts:
    starts.write("x")
for line in sys.stdin:
    message = json.loads(line)
    answers = {
        "initialize": lambda: {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                               "serverInfo": {"name": "p", "version": "1.0.0"}},
        "tools/list": lambda: {"tools": json.loads((place / "tools").read_text())},
        "tools/call": lambda: {"content": [{"type": "text", "text": json.dumps(message["params"]["arguments"])}]},
    }
    if "id" in message:
        result = answers.get(message["method"], lambda: {})()
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

/// A folder with an extension, its tools, and a cache.
struct Place {
    root: TempDir,
    members: Value,
}

impl Place {
    /// The extension says more of itself in its manifest.
    fn new(members: Value) -> Self {
        let place = Self { root: tempfile::tempdir().unwrap(), members };
        fs::create_dir(place.path("extension")).unwrap();
        fs::write(place.path("extension/p.py"), PROGRAM).unwrap();
        place.write_manifest(&place.members);
        place.tools(&json!([tool("one", "integer")]));
        place
    }

    fn write_manifest(&self, members: &Value) {
        let host = json!({ "type": "mcp", "command": ["python3", "${extension_dir}/p.py"] });
        let mut manifest = json!({ "schema_version": 1, "name": "p", "version": "1.0.0", "host": host });
        manifest.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        fs::write(self.path("extension/lemon_extension.json"), manifest.to_string()).unwrap();
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    fn tools(&self, tools: &Value) {
        fs::write(self.path("tools"), tools.to_string()).unwrap();
    }

    fn spec(&self) -> PluginSpec {
        let file = Arc::new(ManifestFile::read(&self.path("extension")).unwrap());
        let mut spec = PluginSpec::from_manifest(file, None, Provenance::Program).unwrap();
        let place = self.root.path().to_str().unwrap().to_owned();
        spec.env.insert("PLACE".into(), EnvValue::Literal(place));
        spec
    }

    fn builder(&self) -> HostBuilder {
        Host::builder().cache_dir(self.path("cache")).lazy_start(true)
    }

    async fn host(&self) -> Host {
        self.host_of(self.spec()).await
    }

    async fn host_of(&self, spec: PluginSpec) -> Host {
        let host = self.builder().plugin(spec).start();
        host.settled().await;
        host
    }

    /// Has the plugin run once, so that its offer is remembered.
    async fn ran_once(&self) {
        let host = self.host().await;
        host.wake().await;
        host.shutdown().await;
        assert_eq!((self.offers().len(), self.starts()), (1, 1));
    }

    fn offers(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path("cache/offers")).into_iter().flatten();
        let files = entries.map(|entry| entry.unwrap().path());
        files.filter(|file| file.extension().is_some_and(|extension| extension == "json")).collect()
    }

    /// How often the plugin was started since this was last asked.
    fn starts(&self) -> usize {
        let starts = fs::read_to_string(self.path("starts")).unwrap_or_default().len();
        let _ = fs::remove_file(self.path("starts"));
        starts
    }
}

fn tool(name: &str, kind: &str) -> Value {
    let properties = json!({ "a": { "type": kind } });
    let schema = json!({ "type": "object", "properties": properties, "required": ["a"] });
    json!({ "name": name, "description": "does", "inputSchema": schema })
}

fn status(host: &Host) -> PluginStatus {
    host.status().plugins.remove(0)
}

fn names(host: &Host) -> Vec<String> {
    host.tools().into_iter().map(|tool| tool.raw_name.raw().to_owned()).collect()
}

#[tokio::test]
async fn what_a_plugin_offered_is_listed_without_it_and_it_is_started_for_the_first_call() {
    let place = Place::new(json!({}));
    place.ran_once().await;
    let host = place.host().await;
    assert_eq!(names(&host), ["one"]);
    assert_eq!((status(&host).state, status(&host).listed), (StateKind::Dormant, Some(Listed::Cache)));
    let session = host.session(SessionOptions::default());
    assert_eq!(place.starts(), 0);
    assert_eq!(text(session.call("mcp_p_one", r#"{"a": 1}"#).await), r#"{"a": 1}"#);
    assert_eq!((status(&host).state, status(&host).listed), (StateKind::Ready, Some(Listed::Live)));
    host.shutdown().await;
    assert_eq!(place.starts(), 1);
    let eager = Host::builder().cache_dir(place.path("cache")).plugin(place.spec()).start();
    eager.settled().await;
    assert_eq!(status(&eager).state, StateKind::Ready, "nobody asked for laziness");
    eager.shutdown().await;
}

#[tokio::test]
async fn a_plugin_that_is_another_one_in_what_counts_is_asked_again() {
    let place = Place::new(json!({}));
    place.ran_once().await;
    let untouched = |_: &mut PluginSpec| {};
    type Change<'a> = (&'a str, Box<dyn Fn(&Place)>, Box<dyn Fn(&mut PluginSpec)>);
    let changes: [Change<'_>; 5] = [
        ("its code", Box::new(|place| fs::write(place.path("extension/lib.py"), "x").unwrap()), Box::new(untouched)),
        ("its command", Box::new(|_| {}), Box::new(|spec| spec.command.push("--more".into()))),
        (
            "its environment",
            Box::new(|_| {}),
            Box::new(|spec| {
                spec.env.insert("X".into(), EnvValue::Literal("1".into()));
            }),
        ),
        (
            "its configuration",
            Box::new(|_| {}),
            Box::new(|spec| {
                spec.config.insert("x".into(), json!(1));
            }),
        ),
        ("its folder", Box::new(|_| {}), Box::new(|spec| spec.cwd = Some("/".into()))),
    ];
    for (what, on_disk, in_spec) in changes {
        on_disk(&place);
        let mut spec = place.spec();
        in_spec(&mut spec);
        let host = place.host_of(spec.clone()).await;
        assert_eq!(status(&host).state, StateKind::Ready, "{what}");
        host.shutdown().await;
        let again = place.host_of(spec).await;
        assert_eq!(status(&again).state, StateKind::Dormant, "{what} is as it was");
        again.shutdown().await;
        assert_eq!(place.starts(), 1, "{what}");
    }
}

#[tokio::test]
async fn where_the_tools_depend_on_the_folder_the_one_that_is_worked_in_counts() {
    for (depends, state) in [(true, StateKind::Ready), (false, StateKind::Dormant)] {
        let place = Place::new(json!({ "tools_depend_on_cwd": depends }));
        place.ran_once().await;
        let host = place.builder().cwd("/").plugin(place.spec()).start();
        host.settled().await;
        assert_eq!(status(&host).state, state, "{depends}");
        host.shutdown().await;
    }
}

#[tokio::test]
async fn a_cache_that_can_not_be_read_or_written_costs_a_start_and_nothing_else() {
    let place = Place::new(json!({}));
    place.ran_once().await;
    let file = place.offers().remove(0);
    for spoiled in ["", "{", r#"{"key":"x","tools":[],"refused":[]}"#, "[1,2"] {
        fs::write(&file, spoiled).unwrap();
        let host = place.host().await;
        assert_eq!((names(&host), status(&host).state), (vec!["one".into()], StateKind::Ready), "{spoiled}");
        host.shutdown().await;
    }
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    let host = place.host().await;
    assert_eq!(status(&host).state, StateKind::Ready);
    host.shutdown().await;
    for folder in [Path::new("/proc/nowhere"), &place.path("tools")] {
        let host = Host::builder().cache_dir(folder).lazy_start(true).plugin(place.spec()).start();
        host.settled().await;
        assert_eq!((names(&host), status(&host).state), (vec!["one".into()], StateKind::Ready));
        host.shutdown().await;
    }
}

#[tokio::test]
async fn a_remembered_list_is_no_more_trusted_than_a_fresh_one() {
    let place = Place::new(json!({}));
    place.ran_once().await;
    let file = place.offers().remove(0);
    let mut record: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let endless = json!({ "name": "bad", "inputSchema": { "type": "object", "$ref": "http://example.com" } });
    record["tools"].as_array_mut().unwrap().push(endless);
    fs::write(&file, record.to_string()).unwrap();
    let host = place.host().await;
    assert_eq!(names(&host), ["one"]);
    assert_eq!(status(&host).quarantined[0].tool.raw(), "bad");
    host.shutdown().await;
}

#[tokio::test]
async fn a_manifest_that_lists_the_tools_needs_no_cache() {
    let place = Place::new(json!({ "tools": [tool("one", "integer")] }));
    let host = Host::builder().lazy_start(true).plugin(place.spec()).start();
    host.settled().await;
    assert_eq!((names(&host), status(&host).listed), (vec!["one".into()], Some(Listed::Manifest)));
    let session = host.session(SessionOptions::default());
    let error = session.call("mcp_p_one", "{}").await.unwrap_err();
    assert!(matches!(error, CallError::Arguments { .. }), "{error}");
    assert_eq!(text(session.call("mcp_p_one", r#"{"a": 1}"#).await), r#"{"a": 1}"#);
    host.shutdown().await;
    assert_eq!(place.starts(), 1);
}

#[tokio::test]
async fn a_plugin_that_may_stop_calls_or_begins_sessions_is_never_asleep() {
    let external = |members: Value| {
        let place = Place::new(json!({}));
        let host = json!({ "type": "external", "command": ["python3", "${extension_dir}/p.py"] });
        let mut all = json!({ "host": host, "tools": [tool("one", "integer")] });
        all.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        place.write_manifest(&all);
        place
    };
    let hook = |event: &str, mode: &str| json!({ "hooks": [{ "event": event, "mode": mode }] });
    for (members, state) in [
        (json!({}), StateKind::Ready),
        (hook("tool_call", "intercept"), StateKind::Ready),
        (hook("session_start", "observe"), StateKind::Ready),
        (hook("tool_call", "observe"), StateKind::Dormant),
        (json!({ "hooks": [] }), StateKind::Dormant),
    ] {
        let place = external(members.clone());
        let host = place.host().await;
        assert_eq!(status(&host).state, state, "{members}");
        host.shutdown().await;
    }
    // It was seen to have none.
    let place = external(json!({}));
    place.ran_once().await;
    let host = place.host().await;
    assert_eq!(status(&host).state, StateKind::Dormant);
    host.shutdown().await;
}

#[tokio::test]
async fn a_call_meets_the_tool_as_it_is_now_and_one_that_expects_another_one_is_not_made() {
    let place = Place::new(json!({}));
    place.ran_once().await;
    place.tools(&json!([tool("one", "string"), tool("two", "integer")]));
    let host = place.host().await;
    let shown = host.tool("mcp_p_one").unwrap();
    let session = host.session(SessionOptions::default());
    let error = session.call("mcp_p_one", r#"{"a": 1}"#).expecting(shown.fingerprint.clone()).await.unwrap_err();
    assert!(matches!(&error, CallError::Changed { tool } if tool == "mcp_p_one"), "{error}");
    assert_eq!(names(&host), ["one", "two"], "what is listed from now on is what it says");
    let now = host.tool("mcp_p_one").unwrap();
    assert_ne!(now.fingerprint, shown.fingerprint);
    let called = session.call("mcp_p_one", r#"{"a": "x"}"#).expecting(now.fingerprint).await;
    assert_eq!(text(called), r#"{"a": "x"}"#);
    assert!(matches!(
        session.call("mcp_p_two", r#"{"a": 2}"#).expecting(shown.fingerprint).await,
        Err(CallError::Changed { .. })
    ));
    host.shutdown().await;
    // The same without an expectation: the arguments are held against what is there now.
    place.tools(&json!([tool("three", "integer")]));
    let host = place.host().await;
    let session = host.session(SessionOptions::default());
    let error = session.call("mcp_p_one", r#"{"a": 1}"#).await.unwrap_err();
    assert!(matches!(error, CallError::UnknownTool { .. }), "{error}");
    host.shutdown().await;
}

#[tokio::test]
async fn a_start_that_fails_is_told_by_the_call_and_a_stop_takes_the_tools_away() {
    let place = Place::new(json!({ "tools": [tool("one", "integer")] }));
    let mut spec = place.spec();
    spec.command = vec!["sh".into(), "-c".into(), "echo no key >&2; exit 3".into()];
    let host = place.host_of(spec).await;
    let error = host.session(SessionOptions::default()).call("mcp_p_one", r#"{"a": 1}"#).await.unwrap_err();
    assert!(matches!(&error, CallError::NotReady { reason: Some(reason), .. } if reason.contains("no key")), "{error}");
    host.shutdown().await;
    let host = place.host().await;
    let plugin = status(&host).name;
    host.stop(&plugin).await.unwrap();
    assert!(host.tools().is_empty() && status(&host).listed.is_none());
    host.wake().await;
    assert_eq!(status(&host).state, StateKind::Dormant, "a stop holds");
    host.start(&plugin).await.unwrap();
    assert_eq!(names(&host), ["one"]);
    host.shutdown().await;
}

#[tokio::test]
async fn a_host_can_be_ended_before_it_is_known_who_has_to_run() {
    let place = Place::new(json!({}));
    place.ran_once().await;
    let host = place.builder().plugin(place.spec()).start();
    host.shutdown().await;
    host.settled().await;
    assert_eq!(status(&host).state, StateKind::Dormant);
    assert_eq!(place.starts(), 0);
}

#[tokio::test]
async fn plugins_whose_code_can_not_be_seen_are_started() {
    let place = Place::new(json!({}));
    let file = place.path("extension/p.py");
    let mut spec = PluginSpec::new("p".parse().unwrap(), lemon_host::Class::Mcp, ["python3", file.to_str().unwrap()]);
    spec.env = place.spec().env;
    for _ in 0..2 {
        let host = place.host_of(spec.clone()).await;
        assert_eq!(status(&host).state, StateKind::Ready);
        host.shutdown().await;
    }
    assert!(place.offers().is_empty());
}

#[tokio::test]
async fn no_secret_is_in_the_cache() {
    let place = Place::new(json!({}));
    let mut spec = place.spec();
    spec.env.insert("TOKEN".into(), EnvValue::Literal("hunter2hunter2".into()));
    let host = place.host_of(spec).await;
    host.shutdown().await;
    assert_eq!(place.offers().len(), 1);
    for file in place.offers() {
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!fs::read_to_string(&file).unwrap().contains("hunter2"));
    }
}
