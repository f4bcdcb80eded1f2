//! Plugins that a manifest describes: what they are started from, and that they get no more than it declares.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use lemon_host::{
    Class, Drift, DriftKind, EnvValue, Event, EventSink, Host, ManifestFile, PluginSpec, Provenance, SessionOptions,
    StateKind,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::zoo::{root, text};

/// An extension in a folder of its own: the zoo with a fault, under a manifest with these members.
struct Extension(TempDir);

impl Extension {
    fn new(fault: &str, members: Value) -> Self {
        let program = root("tests/misbehaving/misbehave.py");
        let host = json!({ "type": "external", "command": ["python3", program, fault] });
        let mut manifest = json!({ "schema_version": 1, "name": "misbehave", "version": "1.0.0", "host": host });
        manifest.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("lemon_extension.json"), manifest.to_string()).unwrap();
        Self(folder)
    }

    fn spec(&self) -> PluginSpec {
        let file = Arc::new(ManifestFile::read(self.0.path()).unwrap());
        PluginSpec::from_manifest(file, None, Provenance::Program).unwrap()
    }
}

/// Keeps in what plugins were told to differ from their manifests.
#[derive(Clone, Default)]
struct Drifts(Arc<Mutex<Vec<Drift>>>);

impl EventSink for Drifts {
    fn event(&self, event: &Event) {
        if let Event::Drift { drift, .. } = event {
            self.0.lock().unwrap().push(drift.clone());
        }
    }
}

impl Drifts {
    fn kinds(&self) -> Vec<DriftKind> {
        self.0.lock().unwrap().iter().map(|drift| drift.kind).collect()
    }
}

/// The tool as the zoo lists it.
async fn listed(name: &str) -> Value {
    let host = Host::builder().plugin(crate::zoo::zoo("zoo", "none")).start();
    host.settled().await;
    let tool = host.tool(name).unwrap();
    let description = tool.description.map(|text| text.raw().to_owned());
    let listed = json!({ "name": name, "description": description, "inputSchema": tool.input_schema });
    host.shutdown().await;
    listed
}

#[tokio::test]
async fn a_tool_that_the_manifest_does_not_declare_is_not_offered_and_told_of() {
    let mut changed = listed("env").await;
    changed["description"] = json!("something else");
    let gone = json!({ "name": "gone", "inputSchema": { "type": "object" } });
    let extension = Extension::new("list-changes", json!({ "tools": [listed("echo").await, changed, gone] }));
    let drifts = Drifts::default();
    let host = Host::builder().plugin(extension.spec()).events(drifts.clone()).start();
    host.settled().await;
    let offered = || host.tools().into_iter().map(|tool| tool.name.to_string()).collect::<Vec<_>>();
    assert_eq!(offered(), ["echo", "env"]);
    let status = host.status().plugins.remove(0);
    assert!(status.manifest.unwrap().ends_with("lemon_extension.json"));
    let told =
        |kind| status.drift.iter().filter(|drift| drift.kind == kind).map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(told(DriftKind::ToolMissing), [r#"the tool "gone" is declared in its manifest and not there"#]);
    assert_eq!(told(DriftKind::ToolChanged).len(), 1);
    let undeclared = told(DriftKind::ToolUndeclared);
    assert!(
        undeclared.contains(&r#"the tool "sleep" is not declared in its manifest, so it is not offered"#.to_owned())
    );
    assert!(status.drift.iter().all(|drift| drift.is_refused() == (drift.kind == DriftKind::ToolUndeclared)));
    assert!(status.quarantined.iter().any(|refused| refused.tool.raw() == "sleep"));
    assert_eq!(drifts.kinds().len(), status.drift.len());
    // What comes later is no more declared.
    let session = host.session(SessionOptions::default());
    assert_eq!(text(session.call("echo", r#"{"text":"x"}"#).await), "x");
    crate::zoo::until(|| drifts.0.lock().unwrap().iter().any(|drift| drift.to_string().contains("\"extra\""))).await;
    assert_eq!(offered(), ["echo", "env"]);
    assert!(session.call("sleep", "{}").await.is_err());
    host.shutdown().await;
}

#[tokio::test]
async fn what_the_plugin_says_of_itself_is_compared() {
    let members = json!({
        "name": "another", "version": "2", "multiSession": false, "exclusive": true,
        "config_schema": { "type": "object" },
    });
    let (extension, drifts) = (Extension::new("none", members), Drifts::default());
    let host = Host::builder().plugin(extension.spec()).events(drifts.clone()).start();
    host.settled().await;
    let kinds = drifts.kinds();
    let expected =
        [DriftKind::Name, DriftKind::Version, DriftKind::ConfigSchema, DriftKind::Sharing, DriftKind::Sharing];
    assert_eq!(kinds, expected);
    // The stricter of both holds.
    let (one, two) = (host.session(SessionOptions::default()), host.session(SessionOptions::default()));
    assert_eq!(text(one.call("echo", r#"{"text":"x"}"#).await), "x");
    let refused = two.call("echo", r#"{"text":"x"}"#).await.unwrap_err().to_string();
    assert!(refused.contains("exclusive"), "{refused}");
    // It is told once, however often the plugin is started.
    host.restart(&"another".parse().unwrap()).await.unwrap();
    assert_eq!(drifts.kinds(), expected);
    host.shutdown().await;
    let alike = Extension::new("none", json!({}));
    let host = Host::builder().plugin(alike.spec()).start();
    host.settled().await;
    assert!(host.status().plugins[0].drift.is_empty(), "{:?}", host.status().plugins[0].drift);
    host.shutdown().await;
}

#[tokio::test]
async fn a_request_without_a_permission_is_denied_and_counted() {
    for (permissions, is_denied) in [
        (json!({}), false),
        (json!({ "permissions": {} }), true),
        (json!({ "permissions": { "session": "to know" } }), false),
    ] {
        let extension = Extension::new("none", permissions);
        let host = Host::builder().plugin(extension.spec()).start();
        host.settled().await;
        let session = host.session(SessionOptions::default());
        let answer = session.call("whose", "{}").await.map(|_| ()).map_err(|error| error.to_string());
        match is_denied {
            true => assert!(answer.as_ref().unwrap_err().contains(r#"host/session/get needs "session""#), "{answer:?}"),
            false => answer.unwrap(),
        }
        let noise = host.status().plugins[0].process.as_ref().unwrap().noise.counts.clone();
        assert_eq!(noise.get("beyond_manifest").copied(), is_denied.then_some(1));
        host.shutdown().await;
    }
}

#[tokio::test]
async fn a_variable_that_is_required_and_not_given_is_named_with_its_reason() {
    let env = json!({ "env": { "TOKEN_OF_MINE": { "why": "to log in", "required": true, "secret": true } } });
    let extension = Extension::new("none", env);
    let host = Host::builder().plugin(extension.spec()).start();
    host.settled().await;
    let status = host.status().plugins.remove(0);
    let error = "it requires the variable TOKEN_OF_MINE, which it is not given: to log in";
    assert_eq!((status.state, status.error.as_deref()), (StateKind::Failed, Some(error)));
    host.shutdown().await;
    let mut spec = extension.spec();
    spec.env.insert("TOKEN_OF_MINE".to_owned(), EnvValue::Literal("s3cret-value".to_owned()));
    let host = Host::builder().plugin(spec).start();
    host.settled().await;
    assert_eq!(host.status().plugins[0].state, StateKind::Ready);
    assert!(!host.redactor().redact("s3cret-value").contains("s3cret"));
    host.shutdown().await;
}

#[tokio::test]
async fn the_command_knows_its_folders() {
    let script = "import sys; print(sys.argv[1:], file=sys.stderr); sys.exit(3)";
    let command = ["python3", "-c", script, "${extension_dir}/x", "${workspace}", "${data_dir}", "$${data_dir}"];
    let extension = Extension::new("none", json!({ "host": { "type": "external", "command": command } }));
    let (data, work) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let host = Host::builder().plugin(extension.spec()).cwd(work.path()).data_dir(data.path().join("d")).start();
    host.settled().await;
    let status = host.status().plugins.remove(0);
    let folder = extension.0.path().canonicalize().unwrap();
    let paths: [PathBuf; 3] = [folder.join("x"), work.path().into(), data.path().join("d/misbehave")];
    let [x, w, d] = paths.map(|path| path.display().to_string());
    let error = status.last_failure.unwrap().error;
    assert!(error.contains(&format!("['{x}', '{w}', '{d}', '${{data_dir}}']")), "{error}");
    assert!(Path::new(&d).is_dir());
    assert_eq!(status.command[3..5], [x, "${workspace}".to_owned()]);
    host.shutdown().await;
    // Without a place for it nothing is made up.
    let host = Host::builder().plugin(extension.spec()).start();
    host.settled().await;
    let error = host.status().plugins.remove(0).error.unwrap();
    assert_eq!(error, "${data_dir} in its command has no value: the host keeps no data of plugins");
    host.shutdown().await;
}

#[tokio::test]
async fn a_relative_program_is_the_extensions_own() {
    let extension = Extension::new("none", json!({ "host": { "type": "mcp", "command": ["bin/run"] } }));
    let run = extension.0.path().join("bin/run");
    fs::create_dir(run.parent().unwrap()).unwrap();
    fs::write(&run, format!("#!/bin/sh\nexec python3 {} none\n", root("tests/misbehaving/misbehave.py"))).unwrap();
    std::os::unix::fs::symlink("/bin/sh", extension.0.path().join("outside")).unwrap();
    fs::set_permissions(&run, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let spec = extension.spec();
    assert_eq!(spec.class, Class::Mcp);
    let host = Host::builder().plugin(spec).cwd("/").start();
    host.settled().await;
    assert!(host.tool("mcp_misbehave_echo").is_ok(), "{:?}", host.status().plugins[0].error);
    host.shutdown().await;
}

#[tokio::test]
async fn a_manifest_that_is_not_valid_is_a_plugin_that_failed_and_the_others_go_on() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("extension.json"), r#"{"schema_version": 1, "name": "UP"}"#).unwrap();
    let error = ManifestFile::read(folder.path()).unwrap_err();
    let broken = PluginSpec::broken("up".parse().unwrap(), Class::Extension, Provenance::Program, error.into());
    let host = Host::builder().plugin(broken).plugin(crate::zoo::zoo("good", "none")).start();
    host.settled().await;
    assert!(host.tool("echo").is_ok());
    let status = host.status();
    let failed = crate::zoo::fault(&status, "up");
    let error = failed.error.as_ref().unwrap();
    assert_eq!(failed.state, StateKind::Failed);
    assert!(error.contains("`version` is missing") && error.contains("`UP` is not a plugin name"), "{error}");
    host.shutdown().await;
}
