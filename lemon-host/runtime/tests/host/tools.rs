//! The tools of everything together: names, precedence, filters, and the one way that every call goes.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::zoo::{PATIENCE, fault, text, until, within, zoo};
use lemon_host::{
    Approval, Approver, CallError, CallRequest, Caller, Class, Event, EventSink, Gate, Host, HostTool, Progress,
    SessionOptions, TextCap, ToolAnnotations, ToolCall, ToolFilter, ToolRegistry, ToolResult, Verdict,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// A tool that says who it is.
fn tool(name: &str, says: &'static str) -> HostTool {
    HostTool::new(name, says, json!({ "type": "object" }), move |_| async move { says }).unwrap()
}

fn session(host: &Host) -> lemon_host::Session {
    host.session(SessionOptions::default())
}

fn names(host: &Host) -> Vec<String> {
    host.tools().into_iter().map(|tool| tool.name).collect()
}

/// Notes what it is told, a line each.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    fn add(&self, note: impl Into<String>) {
        self.0.lock().unwrap().push(note.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl EventSink for Notes {
    fn event(&self, event: &Event) {
        if let Event::Shadowed { tool, source, winner } = event {
            self.add(format!("{tool}: {winner} before {source}"));
        }
    }
}

fn replace(text: &str) -> Verdict {
    Verdict::replace(RawValue::from_string(text.to_owned()).unwrap())
}

/// Notes each call that it sees, and says what it was told to say.
struct Noting {
    name: &'static str,
    notes: Notes,
    verdict: fn(&CallRequest<'_>) -> Verdict,
}

impl Gate for Noting {
    fn name(&self) -> &str {
        self.name
    }

    fn review<'a>(&'a self, request: CallRequest<'a>) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        let CallRequest { caller, tool, arguments, .. } = request;
        self.notes.add(format!("{}: {caller} calls {tool} with {arguments}", self.name));
        let verdict = (self.verdict)(&request);
        Box::pin(std::future::ready(verdict))
    }
}

/// Approves what is noted.
struct Approving(Notes);

impl Approver for Approving {
    fn approve<'a>(&'a self, request: CallRequest<'a>) -> Pin<Box<dyn Future<Output = Approval> + Send + 'a>> {
        let CallRequest { caller, tool, arguments, .. } = request;
        self.0.add(format!("approve: {caller} calls {tool} with {arguments}"));
        Box::pin(std::future::ready(Approval::Allow))
    }
}

#[tokio::test]
async fn of_one_name_built_in_wins_then_registered_then_extensions_on_every_path() {
    let notes = Notes::default();
    let registry = ToolRegistry::default();
    registry.register(tool("echo", "registered"));
    registry.register(tool("env", "registered"));
    let host = Host::builder()
        .plugin(zoo("b", "none"))
        .plugin(zoo("a", "none"))
        .builtin(tool("echo", "built in"))
        .registry(registry.clone())
        .events(notes.clone())
        .approver(Approving(Notes::default()))
        .start();
    host.settled().await;
    let all = host.tools();
    let source = |name: &str| all.iter().find(|tool| tool.name == name).unwrap().source.to_string();
    assert_eq!(source("echo"), "the program (built in)");
    assert_eq!(source("env"), "the program (registered)");
    assert_eq!(source("pids"), "plugin a");
    assert_eq!(all.iter().filter(|tool| tool.name == "echo").count(), 1);
    // What is listed is what runs, for the program and for plugins.
    let session = session(&host);
    assert_eq!(session.tools().len(), all.len());
    for (tool, says) in [("echo", "built in"), ("env", "registered")] {
        assert_eq!(text(session.call(tool, r#"{"text":"x"}"#).await), says);
        let relay = json!({ "tool": tool, "arguments": {} }).to_string();
        assert_eq!(text(session.call("relay", relay).await), says);
    }
    let report = host.conflicts();
    let echo = report.conflicts.iter().find(|conflict| conflict.tool_name == "echo").unwrap();
    let shadowed: Vec<_> = echo.shadowed.iter().map(ToString::to_string).collect();
    assert_eq!(echo.winner.to_string(), "the program (built in)");
    assert_eq!(shadowed, ["the program (registered)", "plugin a", "plugin b"]);
    assert_eq!((report.builtin_count, report.registered_count, report.extension_count), (1, 1, 8));
    // Ten tools of b; echo and env of a; the registered echo.
    assert_eq!((report.total_tools, report.shadowed_count, report.mcp_count), (10, 13, 0));
    // Each hidden tool is told of once, however often the catalogue is made anew.
    let told = notes.take();
    assert_eq!(told.len(), 13);
    assert!(told.contains(&"echo: the program (built in) before the program (registered)".to_owned()), "{told:?}");
    registry.unregister("env");
    assert_eq!(text(session.call("relay", r#"{"tool":"echo"}"#).await), "built in");
    assert_eq!(host.tool("env").unwrap().source.to_string(), "plugin a");
    registry.register(tool("env", "again"));
    assert_eq!(text(session.call("env", "{}").await), "again");
    assert_eq!(
        notes.take(),
        ["env: the program (registered) before plugin a"],
        "it was the one that is called, for a while"
    );
    host.shutdown().await;
}

#[tokio::test]
async fn a_registered_tool_comes_and_goes_while_the_host_runs() {
    let host = Host::builder().start();
    let session = session(&host);
    assert!(matches!(session.call("late", "{}").await, Err(CallError::UnknownTool { .. })));
    assert!(host.registry().register(tool("late", "one")).is_none());
    assert_eq!(text(session.call("late", "{}").await), "one");
    assert_eq!(host.registry().register(tool("late", "two")).unwrap().name(), "late");
    assert_eq!(text(session.call(" late\n", "{}").await), "two", "white space around a name is none of it");
    host.registry().unregister("late");
    assert!(matches!(session.call("late", "{}").await, Err(CallError::UnknownTool { .. })));
}

#[tokio::test]
async fn odd_names_get_names_that_models_take_and_each_is_called_by_its_own() {
    let notes = Notes::default();
    let builder = Host::builder().plugin(zoo("odd", "odd-names")).builtin(tool("read_file", "built in"));
    let host = builder.events(notes.clone()).start();
    host.settled().await;
    let all = host.tools();
    let public: BTreeSet<_> = all.iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(public.len(), all.len());
    assert!(public.iter().all(|name| (1..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))));
    assert!(public.contains("echo") && public.contains("Echo"));
    let named = |raw: &str| all.iter().find(|tool| tool.raw_name.raw() == raw).unwrap().name.clone();
    for raw in ["Echo", "read.file", "read file", "é", &"x".repeat(100)] {
        assert_eq!(text(session(&host).call(named(raw), "{}").await), format!("this is {raw}"));
    }
    assert_eq!(text(session(&host).call("read_file", "{}").await), "built in");
    let refused: Vec<_> =
        fault(&host.status(), "odd").quarantined.iter().map(|refused| refused.tool.raw().to_owned()).collect();
    assert_eq!(refused.len(), 4, "two without a name, a number, and one that is reserved: {refused:?}");
    assert!(refused.contains(&"mcp_x".to_owned()));
    assert_eq!(notes.take(), ["read_file: the program (built in) before plugin odd"]);
    host.shutdown().await;
}

#[tokio::test]
async fn the_order_of_tools_is_the_same_whatever_the_order_of_plugins() {
    let listed = async |order: [&'static str; 2]| {
        let [first, second] = order.map(|name| zoo(name, "paged"));
        let host = Host::builder().plugin(first).plugin(second).builtin(tool("z", "")).builtin(tool("y", "")).start();
        host.registry().register(tool("x", ""));
        host.registry().register(tool("w", ""));
        host.settled().await;
        let names = names(&host);
        host.shutdown().await;
        names
    };
    let once = listed(["a", "b"]).await;
    assert_eq!(once[..4], ["z", "y", "w", "x"]);
    assert_eq!(once, listed(["b", "a"]).await);
}

#[tokio::test]
async fn a_disabled_tool_is_neither_listed_nor_run_and_brings_no_other_one_up() {
    let mut server = zoo("time", "plain-mcp");
    server.class = Class::Mcp;
    let host = Host::builder()
        .plugin(zoo("a", "none"))
        .plugin(server)
        .builtin(tool("echo", "built in"))
        .filter(ToolFilter::default().disable(["echo", "mcp_time_s*", "nothing"]))
        .approver(Approving(Notes::default()))
        .start();
    host.settled().await;
    let listed = names(&host);
    assert!(!listed.iter().any(|name| name == "echo" || name.starts_with("mcp_time_s")), "{listed:?}");
    assert!(listed.contains(&"mcp_time_echo".to_owned()));
    let session = session(&host);
    let error = session.call("echo", r#"{"text":"x"}"#).await.unwrap_err();
    assert_eq!(error.to_string(), r#"the tool "echo" is not enabled: "echo" is among the disabled tools"#);
    let relayed = text(session.call("relay", r#"{"tool":"echo","arguments":{"text":"x"}}"#).await);
    assert!(relayed.starts_with("denied: "), "{relayed}");
    let status = host.status();
    assert_eq!(status.idle_filters, ["nothing"]);
    assert!(status.hidden.iter().any(|hidden| hidden.tool == "echo"));
    // A session may hide more, for itself.
    let narrow = host.session(SessionOptions::default().filter(ToolFilter::default().enable_only(["pids", "relay"])));
    assert_eq!(narrow.tools().iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["pids", "relay"]);
    assert!(matches!(narrow.call("env", "{}").await, Err(CallError::Disabled { .. })));
    let relayed = text(narrow.call("relay", r#"{"tool":"env"}"#).await);
    assert!(relayed.starts_with("denied: "), "{relayed}");
    assert!(session.call("env", "{}").await.is_ok());
    host.shutdown().await;
}

#[tokio::test]
async fn gates_see_every_call_as_it_was_made_and_approval_what_will_run() {
    let notes = Notes::default();
    let gate =
        |name: &'static str, verdict: fn(&CallRequest<'_>) -> Verdict| Noting { name, notes: notes.clone(), verdict };
    let mut server = zoo("mcp", "plain-mcp");
    server.class = Class::Mcp;
    let host = Host::builder()
        .plugin(zoo("a", "none"))
        .plugin(server)
        .builtin(
            HostTool::new("own", "", json!({ "type": "object" }), async |call: ToolCall| {
                call.raw_arguments().get().to_owned()
            })
            .unwrap(),
        )
        .gate(gate("one", |_| replace(r#"{"text": "first"}"#)))
        .gate(gate("two", |request| match request.tool {
            "relay" => replace(r#"{"tool":"own","arguments":{"n":1.50}}"#),
            _ => replace(r#"{"text": "second"}"#),
        }))
        .gate(gate("three", |_| Verdict::Allow))
        .approver(Approving(notes.clone()))
        .start();
    host.settled().await;
    let session = session(&host);
    assert_eq!(text(session.call("echo", "{ \"text\":\n \"asked\" }").made_by(Caller::Model).await), "second");
    assert_eq!(
        notes.take(),
        [
            r#"one: the model calls echo with {"text":"asked"}"#,
            r#"two: the model calls echo with {"text":"asked"}"#,
            r#"three: the model calls echo with {"text":"asked"}"#,
            r#"approve: the model calls echo with {"text":"second"}"#,
        ]
    );
    // Built-in tools, servers, and calls that a plugin makes; the program's own calls need no approval.
    assert_eq!(text(session.call("own", "{}").await), r#"{"text":"second"}"#);
    assert_eq!(text(session.call("mcp_mcp_echo", r#"{"text":"asked"}"#).await), "second");
    assert_eq!(notes.take().len(), 6);
    assert_eq!(text(session.call("relay", r#"{"tool":"x"}"#).await), r#"{"text":"second"}"#);
    assert_eq!(
        notes.take()[3..],
        [
            r#"one: plugin a calls own with {"n":1.5}"#,
            r#"two: plugin a calls own with {"n":1.5}"#,
            r#"three: plugin a calls own with {"n":1.5}"#,
            r#"approve: plugin a calls own with {"text":"second"}"#,
        ]
    );
    // What can't be called reaches no gate.
    assert!(matches!(session.call("nothing", "{}").await, Err(CallError::UnknownTool { .. })));
    assert!(matches!(session.call("echo", "[]").await, Err(CallError::Arguments { .. })));
    assert!(matches!(session.call("echo", r#"{"text":{}}"#).await, Err(CallError::Arguments { .. })));
    assert_eq!(notes.take(), Vec::<String>::new());
    host.shutdown().await;
}

#[tokio::test]
async fn the_first_gate_that_blocks_ends_the_call_and_one_that_fails_blocks() {
    let notes = Notes::default();
    let gate =
        |name: &'static str, verdict: fn(&CallRequest<'_>) -> Verdict| Noting { name, notes: notes.clone(), verdict };
    let host = Host::builder()
        .builtin(tool("own", "ran"))
        .builtin(tool("bad", "ran"))
        .builtin(tool("odd", "ran"))
        .builtin(tool("twice", "ran"))
        .gate(gate("guard", |request| match request.tool {
            "own" => Verdict::block("not today"),
            "odd" => replace("[]"),
            "twice" => replace(r#"{"path":"/safe","path":"/etc"}"#),
            _ => panic!("a gate that fails"),
        }))
        .gate(gate("never", |_| Verdict::Allow))
        .start();
    let session = session(&host);
    let told = async |tool: &str| session.call(tool, "{}").await.unwrap_err().to_string();
    assert_eq!(told("own").await, "the call was refused: gate guard blocked it: not today");
    assert!(told("bad").await.contains("a gate that fails blocks"));
    for tool in ["odd", "twice"] {
        assert!(told(tool).await.contains("the arguments that gate guard put in place are not acceptable"));
    }
    assert!(notes.take().iter().all(|note| note.starts_with("guard: ")));
}

#[tokio::test]
async fn a_model_calls_nothing_unless_somebody_approves() {
    let host = Host::builder().builtin(tool("own", "ran")).start();
    let error = session(&host).call("own", "{}").made_by(Caller::Model).await.unwrap_err();
    assert_eq!(error.to_string(), "the call was refused: this host does not let the model call tools");
    assert_eq!(text(session(&host).call("own", "{}").await), "ran");
}

/// Panics.
struct Broken;

impl Approver for Broken {
    fn approve<'a>(&'a self, _: CallRequest<'a>) -> Pin<Box<dyn Future<Output = Approval> + Send + 'a>> {
        panic!("an approver that fails")
    }
}

#[tokio::test]
async fn an_approver_that_panics_denies() {
    let host = Host::builder().builtin(tool("own", "ran")).approver(Broken).start();
    let error = session(&host).call("own", "{}").made_by(Caller::Model).await.unwrap_err();
    assert_eq!(error.to_string(), "the call was refused: whoever approves calls failed");
}

/// Allows what only reads, and notes what a tool says of itself.
struct OnlyReaders(Notes);

impl Approver for OnlyReaders {
    fn approve<'a>(&'a self, request: CallRequest<'a>) -> Pin<Box<dyn Future<Output = Approval> + Send + 'a>> {
        let description = request.description.map(|text| text.raw().to_owned());
        self.0.add(format!("{}: {description:?} {:?}", request.tool, request.annotations.read_only_hint));
        let reads = request.annotations.read_only_hint == Some(true);
        Box::pin(std::future::ready(if reads { Approval::Allow } else { Approval::deny("it writes") }))
    }
}

#[tokio::test]
async fn an_approver_sees_what_a_tool_says_of_itself() {
    let notes = Notes::default();
    let reader = tool("look", "seen").annotations(ToolAnnotations::default().read_only(true));
    let host = Host::builder()
        .plugin(zoo("good", "none"))
        .builtin(reader)
        .builtin(tool("own", "ran"))
        .approver(OnlyReaders(notes.clone()))
        .start();
    host.settled().await;
    let called = async |tool: &str, arguments: &str| {
        session(&host).call(tool, arguments).made_by(Caller::Model).await.map(|result| result.is_error())
    };
    assert!(!called("look", "{}").await.unwrap());
    assert!(called("own", "{}").await.is_err());
    assert!(called("echo", r#"{"text": "x"}"#).await.is_err());
    assert_eq!(
        notes.take(),
        [r#"look: Some("seen") Some(true)"#, r#"own: Some("ran") None"#, r#"echo: Some("Returns the text.") None"#]
    );
    let listed = serde_json::to_value(host.tools()).unwrap();
    assert_eq!(listed[0]["annotations"], json!({ "readOnlyHint": true }));
    assert!(listed[1].get("annotations").is_none());
    host.shutdown().await;
}

/// Waits for ever, and tells when it began to.
struct Undecided(Arc<tokio::sync::Notify>);

impl Approver for Undecided {
    fn approve<'a>(&'a self, _: CallRequest<'a>) -> Pin<Box<dyn Future<Output = Approval> + Send + 'a>> {
        self.0.notify_one();
        Box::pin(std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn a_decision_takes_its_time_and_ends_with_the_call_or_the_one_before_it() {
    let asked = Arc::new(tokio::sync::Notify::new());
    let passes_on = HostTool::new("batch", "", json!({ "type": "object" }), |call: ToolCall| async move {
        let own = CancellationToken::new();
        call.call("own", "{}").cancelled_by(own).await.map_err(|error| error.to_string())
    });
    let approver = Undecided(asked.clone());
    let host = Host::builder().builtin(tool("own", "ran")).builtin(passes_on.unwrap()).approver(approver).start();
    let cancel = CancellationToken::new();
    let call = session(&host).call("own", "{}").made_by(Caller::Model).cancelled_by(cancel.clone());
    let call = tokio::spawn(call.deadline(Duration::from_millis(1)).into_future());
    asked.notified().await;
    // The deadline is that of the call itself, which has not begun.
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(!call.is_finished());
    cancel.cancel();
    assert!(matches!(call.await.unwrap(), Err(CallError::Cancelled { .. })));
}

/// Approves `batch` and notes all that it is asked about.
struct OnlyBatch(Notes);

impl Approver for OnlyBatch {
    fn approve<'a>(&'a self, request: CallRequest<'a>) -> Pin<Box<dyn Future<Output = Approval> + Send + 'a>> {
        self.0.add(format!("{} calls {} from {:?}", request.caller, request.tool, request.chain));
        let approval = if request.tool == "batch" { Approval::Allow } else { Approval::deny("not that") };
        Box::pin(std::future::ready(approval))
    }
}

#[tokio::test]
async fn what_a_model_asks_for_is_approved_wherever_it_runs() {
    let batch = |name: &str, vouches: bool| {
        HostTool::new(name, "", json!({ "type": "object" }), move |call: ToolCall| async move {
            let inner = call.call("own", "{}");
            let inner = if vouches { inner.made_by(Caller::Program) } else { inner };
            inner.await.map_err(|error| error.to_string())
        })
        .unwrap()
    };
    let notes = Notes::default();
    let host = Host::builder()
        .builtin(tool("own", "ran"))
        .builtin(batch("batch", false))
        .builtin(batch("vouching", true))
        .approver(OnlyBatch(notes.clone()))
        .start();
    let session = session(&host);
    let refused = text(session.call("batch", "{}").made_by(Caller::Model).await);
    assert_eq!(refused, "the call was refused: not that");
    assert_eq!(notes.take(), ["the model calls batch from []", r#"the model calls own from ["batch"]"#]);
    assert_eq!(text(session.call("vouching", "{}").await), "ran");
    assert_eq!(text(session.call("batch", "{}").await), "ran");
    assert_eq!(notes.take(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_call_from_within_ends_with_its_parent_even_if_it_has_a_token_of_its_own() {
    let notes = Notes::default();
    let waits = HostTool::new("waits", "", json!({ "type": "object" }), |call: ToolCall| async move {
        let inner = call.call("endless", "{}").cancelled_by(CancellationToken::new());
        tokio::spawn(inner.into_future());
        call.cancelled().await;
        ""
    });
    let host = Host::builder().builtin(endless(&notes)).builtin(waits.unwrap()).start();
    let error = session(&host).call("waits", "{}").deadline(Duration::from_secs(1)).await.unwrap_err();
    assert!(matches!(error, CallError::Timeout { .. }));
    until(|| notes.0.lock().unwrap().contains(&"told".to_owned())).await;
}

#[tokio::test(start_paused = true)]
async fn a_tool_of_the_program_has_an_idle_limit_and_its_notes_end_with_the_call() {
    let mut timeouts = lemon_host::Timeouts::default();
    timeouts.call_idle_ms = lemon_host::Millis::new(100);
    let steps = HostTool::new("steps", "", json!({ "type": "object" }), |call: ToolCall| async move {
        for step in 0..5_u8 {
            tokio::time::sleep(Duration::from_millis(90)).await;
            call.progress(Progress::new(step.into()));
        }
        call.cancelled().await;
        // Keeps the call for longer than anybody waits.
        tokio::time::sleep(Duration::from_secs(5)).await;
        drop(call);
        ""
    });
    let host = Host::builder().builtin(steps.unwrap()).timeouts(timeouts).start();
    let mut call = session(&host).call("steps", "{}");
    let mut notes = call.progress();
    let error = call.await.unwrap_err();
    assert!(matches!(error, CallError::Timeout { idle: true, .. }), "{error}");
    for _ in 0..5 {
        assert!(notes.next().await.is_some());
    }
    assert!(tokio::time::timeout(Duration::from_millis(1), notes.next()).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn tools_of_the_program_end_with_the_host_and_none_begins_afterwards() {
    let notes = Notes::default();
    let host = Host::builder().builtin(endless(&notes)).start();
    let session = session(&host);
    let mut call = session.call("endless", "{}");
    let mut progress = call.progress();
    let call = tokio::spawn(call.into_future());
    progress.next().await.unwrap();
    host.shutdown().await;
    assert!(matches!(call.await.unwrap(), Err(CallError::SessionOver { .. })));
    until(|| notes.0.lock().unwrap().len() == 2).await;
    assert!(matches!(session.call("endless", "{}").await, Err(CallError::SessionOver { .. })));
}

#[tokio::test]
async fn a_tool_of_the_program_that_panics_or_fails_is_a_result() {
    let schema = json!({ "type": "object" });
    let panics = HostTool::new("panics", "", schema.clone(), |_| async { panic!("boo") as &str }).unwrap();
    let fails = HostTool::new("fails", "", schema, |_| async { Err::<&str, _>("no such thing") }).unwrap();
    let host = Host::builder().builtin(panics).builtin(fails).start();
    for (tool, says) in [("panics", "the tool panics panicked"), ("fails", "no such thing")] {
        let result = session(&host).call(tool, "{}").await.unwrap();
        assert!(result.is_error());
        assert_eq!(text(Ok(result)), says);
    }
}

/// A tool that never ends by itself, and tells when it was told to end and when it was dropped.
fn endless(notes: &Notes) -> HostTool {
    struct Dropped(Notes);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.add("dropped");
        }
    }
    let notes = notes.clone();
    HostTool::new("endless", "", json!({ "type": "object" }), move |call: ToolCall| {
        let notes = notes.clone();
        async move {
            let _dropped = Dropped(notes.clone());
            call.progress(Progress::new(1.0).of(2.0).message("half").partial(ToolResult::text("so far")));
            call.cancelled().await;
            notes.add("told");
            std::future::pending::<ToolResult>().await
        }
    })
    .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_tool_of_the_program_is_told_of_its_end_and_dropped_if_it_goes_on() {
    let notes = Notes::default();
    let host = Host::builder().builtin(endless(&notes)).start();
    let session = session(&host);
    let error = session.call("endless", "{}").deadline(Duration::from_secs(5)).await.unwrap_err();
    assert_eq!(error.to_string(), "the tool endless did not answer tools/call within 5 s");
    until(|| notes.0.lock().unwrap().len() == 2).await;
    assert_eq!(notes.take(), ["told", "dropped"]);

    let cancel = CancellationToken::new();
    let mut call = session.call("endless", "{}").cancelled_by(cancel.clone());
    let mut progress = call.progress();
    let call = tokio::spawn(call.into_future());
    let note = progress.next().await.unwrap();
    assert_eq!((note.progress, note.total, note.message.unwrap().raw()), (1.0, Some(2.0), "half"));
    assert_eq!(text(Ok(note.partial.unwrap())), "so far");
    cancel.cancel();
    assert!(matches!(call.await.unwrap(), Err(CallError::Cancelled { .. })));
    until(|| notes.0.lock().unwrap().len() == 2).await;
    assert_eq!(notes.take(), ["told", "dropped"]);

    // So it is when the caller merely goes away.
    drop(tokio::time::timeout(Duration::from_millis(1), session.call("endless", "{}").into_future()).await);
    until(|| notes.0.lock().unwrap().len() == 2).await;
}

#[tokio::test]
async fn a_tool_of_the_program_calls_others_within_its_own_deadline_and_never_itself() {
    let nested = |name: &'static str, other: &'static str| {
        HostTool::new(name, "", json!({ "type": "object" }), move |call: ToolCall| async move {
            match call.call(other, "{}").await {
                Ok(result) => result,
                Err(error) => ToolResult::error(format!("{:?}: {error}", error.kind())),
            }
        })
        .unwrap()
    };
    let notes = Notes::default();
    let host = Host::builder()
        .builtin(nested("a", "b"))
        .builtin(nested("b", "a"))
        .builtin(nested("waits", "endless"))
        .builtin(endless(&notes))
        .start();
    let round = text(session(&host).call("a", "{}").await);
    assert!(round.contains("a → b → a"), "{round}");
    let call = session(&host).call("waits", "{}").deadline(Duration::from_millis(50));
    assert!(matches!(within(PATIENCE, call.into_future()).await, Err(CallError::Timeout { .. })));
    until(|| notes.0.lock().unwrap().contains(&"told".to_owned())).await;
}

#[tokio::test]
async fn a_result_is_capped_last_and_passes_untouched_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::builder().plugin(zoo("a", "odd-numbers")).builtin(tool("own", "0123456789")).start();
    host.settled().await;
    let session = session(&host);
    let capped = session.call("own", "{}").cap(TextCap::new(4).spill_to(folder.path())).await.unwrap();
    assert_eq!(std::fs::read_to_string(capped.spilled().unwrap()).unwrap(), "0123456789\n");
    assert!(text(Ok(capped)).starts_with("0123["));
    let numbers = session.call("echo", r#"{"text":"x"}"#).cap(TextCap::new(1 << 20)).await.unwrap();
    for number in ["1e999", "-0.0", "18446744073709551616"] {
        assert!(numbers.raw().get().contains(number), "{numbers:?}");
    }
    host.shutdown().await;
}

#[tokio::test]
async fn five_thousand_tools_are_listed_up_to_the_limit_and_found() {
    let host = Host::builder().plugin(zoo("many", "many-tools")).start();
    host.settled().await;
    assert_eq!(host.tools().len(), 4096);
    assert_eq!(host.tool("tool_4095").unwrap().name, "tool_4095");
    let Err(CallError::UnknownTool { nearest, .. }) = host.tool("tol_4095") else { panic!("there is such a tool") };
    assert_eq!(nearest.as_deref(), Some("tool_4095"));
    let status = host.status();
    assert!(fault(&status, "many").quarantined.iter().any(|refused| refused.reason.raw().contains("limits.tools")));
    let status: Value = serde_json::to_value(status).unwrap();
    assert_eq!(status["conflicts"]["extensionCount"], 4096);
    host.shutdown().await;
}

#[tokio::test]
async fn a_filter_holds_when_another_tool_makes_the_name_longer() {
    let filter = ToolFilter::default().disable(["read_file", "x*"]);
    let host = Host::builder().plugin(zoo("odd", "odd-names")).filter(filter).start();
    host.settled().await;
    let listed = names(&host);
    assert!(!listed.iter().any(|name| name.starts_with("read_file") || name.starts_with('x')), "{listed:?}");
    assert!(host.status().idle_filters.is_empty());
    host.shutdown().await;
}
