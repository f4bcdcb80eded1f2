//! What a plugin does, seen by the client in memory that plugins' own tests use.

mod ends;
mod progress;

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lemon_plugin_sdk::testing::{Client, Error};
use lemon_plugin_sdk::{
    ConfigError, Content, Context, ErrorObject, HostError, Json, JsonSchema, Kind, Level, NoArgs, Plugin, ServeError,
    Session, Tool, ToolError, ToolOutput,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

#[derive(Deserialize, JsonSchema)]
struct Numbers {
    /// What to add up.
    items: Vec<Item>,
}

#[derive(Deserialize, JsonSchema)]
struct Item {
    value: i64,
}

/// A sum.
#[derive(Serialize, Deserialize, JsonSchema, PartialEq, Debug)]
struct Sum {
    total: i64,
}

fn plugin() -> Plugin {
    Plugin::new("test", "1.0.0")
}

/// A tool of the name `tool` with no arguments.
fn with<Out, Fut>(handler: impl Fn(Context) -> Fut + Send + Sync + 'static) -> Plugin
where
    Out: lemon_plugin_sdk::IntoToolOutput,
    Fut: Future<Output = Out> + Send + 'static,
{
    plugin().tool("tool", "", move |_: NoArgs, ctx: Context| handler(ctx))
}

async fn sum(args: Numbers, _: Context) -> Json<Sum> {
    Json(Sum { total: args.items.iter().map(|item| item.value).sum() })
}

#[tokio::test]
async fn a_typed_tool_lists_both_schemas_and_gives_its_result_as_value_and_text() {
    let client = plugin().tool("sum", "Adds up.", sum).test_client().await.unwrap();
    let tools = client.tools().await.unwrap();
    assert_eq!(tools[0].input_schema["properties"]["items"]["description"], "What to add up.");
    assert_eq!(tools[0].output_schema.as_ref().unwrap()["properties"]["total"]["type"], "integer");
    let result = client.call("sum", json!({"items": [{"value": 40}, {"value": 2}]})).await.unwrap();
    assert_eq!(result.structured(), Some(Sum { total: 42 }));
    assert_eq!(result.text(), r#"{"total":42}"#);
    assert!(!result.is_error());
}

#[tokio::test]
async fn the_model_is_told_which_argument_does_not_fit() {
    let client = plugin().tool("sum", "", sum).test_client().await.unwrap();
    let told = async |arguments: Value| {
        let result = client.call("sum", arguments).await.unwrap();
        assert!(result.is_error());
        result.text()
    };
    assert_eq!(
        told(json!({"items": [{"value": 1}, {"value": "2"}]})).await,
        "argument items[1].value: invalid type: string, expected i64",
        "and not what it is: it may be a secret"
    );
    assert_eq!(told(json!({})).await, "the arguments do not fit: missing field `items`");
}

#[tokio::test]
async fn an_integer_may_be_written_with_a_fraction_of_zero() {
    let client = plugin().tool("sum", "", sum).test_client().await.unwrap();
    let items: Value = serde_json::from_str(r#"{"items": [{"value": 40.0}, {"value": 2e0}]}"#).unwrap();
    assert_eq!(client.call("sum", items).await.unwrap().structured(), Some(Sum { total: 42 }));
    let half = client.call("sum", json!({"items": [{"value": 0.5}]})).await.unwrap();
    assert_eq!(half.text(), "argument items[0].value: invalid type: floating point, expected i64");
}

#[tokio::test]
async fn what_does_not_fit_is_told_in_few_words_however_it_is_named() {
    #[derive(Deserialize, JsonSchema)]
    struct Map {
        #[expect(dead_code, reason = "it is never read")]
        map: std::collections::BTreeMap<String, u8>,
    }
    let client = plugin().tool("map", "", async |_: Map, _| ()).test_client().await.unwrap();
    let result = client.call("map", json!({"map": {"x".repeat(1 << 20): "y"}})).await.unwrap();
    assert!(result.is_error() && result.text().starts_with("argument map.xxx"));
    assert!(result.text().len() < 1_000, "{} bytes", result.text().len());
}

#[tokio::test]
async fn an_unknown_tool_and_arguments_that_are_no_object_are_errors_of_the_protocol() {
    let client = plugin().tool("sum", "", sum).test_client().await.unwrap();
    let Err(Error::Refused(error)) = client.call("gone", json!({})).await else { panic!() };
    assert_eq!((error.code, error.kind()), (-32602, Some(Kind::UnknownTool)));
    for arguments in [json!([]), json!("x"), json!(null)] {
        let Err(Error::Refused(error)) = client.call("sum", arguments).await else { panic!() };
        assert_eq!(error.code, -32602);
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_plugin_is_told_before_it_serves() {
    async fn text(_: String, _: Context) {}
    async fn list(_: NoArgs, _: Context) -> Json<Vec<u8>> {
        Json(Vec::new())
    }
    async fn none(_: NoArgs, _: Context) {}
    let problem = async |plugin: Plugin| match plugin.test_client().await {
        Err(Error::Plugin(error)) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let argument = problem(plugin().tool("text", "", text)).await;
    assert!(argument.starts_with("tool text: the type of its arguments: string is no object in JSON"), "{argument}");
    assert!(problem(plugin().tool("list", "", list)).await.contains("the type of its result"));
    assert!(problem(plugin().tool("a", "", none).tool("a", "", none)).await.contains("it is there twice"));
    assert!(problem(plugin().tool("a tool", "", none)).await.contains("a tool's name has"));
    assert!(matches!(plugin().tool("text", "", text).serve().await, Err(ServeError::Tool { .. })));
}

#[tokio::test]
async fn errors_and_panics_are_results_that_the_model_reads() {
    let plugin = plugin()
        .tool("error", "", async |_: NoArgs, _: Context| {
            anyhow::Context::context(std::fs::read_to_string("/nowhere"), "failed to read notes")
        })
        .tool("panic", "", async |_: NoArgs, _: Context| -> String { panic!("lost my marbles") })
        .add_tool(Tool::blocking("blocking", "", |_: NoArgs, _| -> String { panic!("lost them again") }));
    let client = plugin.test_client().await.unwrap();
    for (tool, text) in [
        ("error", "failed to read notes: No such file or directory (os error 2)"),
        ("panic", "the tool panicked: lost my marbles"),
        ("blocking", "the tool panicked: lost them again"),
    ] {
        let result = client.call(tool, json!({})).await.unwrap();
        assert!(result.is_error());
        assert_eq!(result.text(), text);
    }
}

#[tokio::test]
async fn calls_run_side_by_side_and_answer_in_any_order() {
    let gate = Arc::new(Notify::new());
    let client = plugin()
        .tool("wait", "", {
            let gate = gate.clone();
            move |_: NoArgs, _: Context| {
                let gate = gate.clone();
                async move { gate.notified().await }
            }
        })
        .tool("open", "", move |_: NoArgs, _: Context| {
            gate.notify_one();
            std::future::ready(())
        })
        .test_client()
        .await
        .unwrap();
    let waiting = client.start("wait", json!({}));
    client.call("open", json!({})).await.unwrap();
    client.request("ping", json!({})).await.unwrap();
    waiting.result().await.unwrap();
}

#[tokio::test]
async fn thousands_of_calls_may_be_started_without_waiting() {
    let client = plugin().tool("sum", "", sum).test_client().await.unwrap();
    let calls: Vec<_> = (0..2_000).map(|n| client.start("sum", json!({"items": [{"value": n}]}))).collect();
    for (n, call) in calls.into_iter().enumerate() {
        assert_eq!(call.result().await.unwrap().structured::<Sum>().unwrap().total, n as i64);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runtime_with_threads_does_as_well() {
    let plugin = plugin().tool("sum", "", sum).add_tool(Tool::blocking("block", "", |_: NoArgs, ctx: Context| {
        ctx.progress(1, (), "");
        std::thread::current().name().map(str::to_owned).unwrap_or_default()
    }));
    let client = plugin.test_client().await.unwrap();
    let calls: Vec<_> = (0..500).map(|n| client.start("sum", json!({"items": [{"value": n}]}))).collect();
    for (n, call) in calls.into_iter().enumerate() {
        assert_eq!(call.result().await.unwrap().structured::<Sum>().unwrap().total, n as i64);
    }
    for call in (0..20).map(|_| client.start("block", json!({}))).collect::<Vec<_>>() {
        assert_eq!(call.finished().await.progress.len(), 1, "progress comes before the answer");
    }
}

#[tokio::test]
async fn the_state_of_a_session_is_read_without_asking() {
    let client = Client::builder().cwd("/srv/shop").state("model", "small").state("draft", "x").connect(with(
        async |ctx: Context| {
            let session = ctx.session().unwrap();
            let model: Option<String> = session.get("model");
            let draft: Option<String> = session.get("draft");
            format!("{} {} {model:?} {draft:?}", ctx.cwd().display(), session.scope())
        },
    ));
    let client = client.await.unwrap();
    let text = async || client.call("tool", json!({})).await.unwrap().text();
    assert_eq!(text().await, r#"/srv/shop main Some("small") Some("x")"#);
    client.set_state("model", "large");
    client.set_state("draft", Value::Null);
    assert_eq!(text().await, r#"/srv/shop main Some("large") None"#);
    client.close_session();
    assert_eq!(client.call("tool", json!({})).await.unwrap_err().kind(), Some(Kind::Stale));
}

#[tokio::test]
async fn a_plain_client_has_no_session_and_offers_nothing() {
    let plugin = with(async |ctx: Context| {
        let refused = ctx.host().call_tool("read_file", json!({})).await.unwrap_err();
        format!("{} {} {:?} {refused}", ctx.session().is_none(), ctx.cwd().is_absolute(), ctx.call_id())
    });
    let client = Client::builder().plain_mcp().connect(plugin).await.unwrap();
    let text = client.call("tool", json!({})).await.unwrap().text();
    assert_eq!(text, "true true None the host does not offer host/tools/call");
}

#[tokio::test]
async fn a_tool_calls_tools_of_others_through_the_host() {
    let plugin = with(async |ctx: Context| {
        let host = ctx.host();
        let names: Vec<String> = host.tools().await?.into_iter().map(|tool| tool.name).collect();
        let file = host.call_tool("read_file", json!({"path": "a.txt"})).await?;
        let denied = host.call_tool("rm", json!({})).await.unwrap_err();
        Ok::<_, ToolError>(format!("{names:?} {} {:?} {:?}", file.text(), denied.kind(), ctx.call_id()))
    });
    let host = |method: &str, params: Value| {
        assert!(params["_meta"]["dev.lemon/parent"].is_i64(), "{params}");
        match (method, params["name"].as_str()) {
            ("host/tools/list", _) => Ok(json!({"tools": [{"name": "read_file", "inputSchema": {"type": "object"}}]})),
            ("host/tools/call", Some("read_file")) => {
                Ok(json!({"content": [{"type": "text", "text": params["arguments"]["path"]}]}))
            }
            _ => Err(ErrorObject::of(Kind::Denied, "the user said no")),
        }
    };
    let client = Client::builder().host(host).connect(plugin).await.unwrap();
    let result = client.call("tool", json!({})).await.unwrap();
    assert_eq!(result.text(), r#"["read_file"] a.txt Some(Denied) Some("test-2")"#);
}

#[tokio::test]
async fn work_in_the_background_belongs_to_a_session_and_ends_with_it() {
    let (sender, mut sessions) = mpsc::channel::<Session>(1);
    let plugin = with(move |ctx| {
        let sender = sender.clone();
        async move { sender.send(ctx.session().unwrap().clone()).await.unwrap() }
    });
    let host = |method: &str, params: Value| {
        assert_eq!((method, &params["_meta"]["dev.lemon/session"]["handle"]), ("host/session/get", &json!(1)));
        Ok(json!({"id": "test", "cwd": "/", "scope": "main", "state": {"n": 1}, "version": 7}))
    };
    let client = Client::builder().host(host).connect(plugin).await.unwrap();
    client.call("tool", json!({})).await.unwrap();
    let session = sessions.recv().await.unwrap();
    assert_eq!(session.host().session().await.unwrap().version, 7);
    client.close_session();
    session.closed().await;
    assert_eq!(session.host().session().await, Err(HostError::Over));
}

#[derive(Deserialize, JsonSchema)]
struct Config {
    #[schemars(extend("secret" = true))]
    #[serde(default)]
    key: String,
    #[serde(default = "three")]
    retries: u32,
}

fn three() -> u32 {
    3
}

fn configured() -> Plugin {
    with(async |ctx: Context| {
        let config = ctx.config::<Config>()?;
        Ok::<_, ToolError>(format!("{} {}", config.key, config.retries))
    })
    .check_config(
        |config: &Config| {
            if config.retries > 9 { Err(ConfigError::at("/retries", "nine are enough")) } else { Ok(()) }
        },
    )
}

#[tokio::test]
async fn a_configuration_that_is_refused_leaves_the_one_before_in_force() {
    let client = Client::builder().config(json!({"key": "k"})).connect(configured()).await.unwrap();
    let text = async || client.call("tool", json!({})).await.unwrap().text();
    assert_eq!(text().await, "k 3");
    for (values, pointer) in [(json!({"retries": 10}), "/retries"), (json!({"key": 5}), "/key")] {
        let Err(Error::Refused(error)) = client.configure(values).await else { panic!() };
        assert_eq!((error.kind(), &error.data.unwrap()["pointer"]), (Some(Kind::Config), &json!(pointer)));
    }
    assert_eq!(text().await, "k 3");
    client.configure(json!({"retries": 1})).await.unwrap();
    assert_eq!(text().await, " 1");
    let again = json!({"values": {"retries": 2}, "generation": 4});
    let Err(Error::Refused(error)) = client.request("lemon/configure", again).await else { panic!() };
    assert!(error.code == -32602 && error.message.contains("generation 4 came before"), "{error}");
    assert_eq!(text().await, " 1");
}

#[tokio::test]
async fn a_test_whose_configuration_can_not_be_taken_is_told_so() {
    for (plugin, code) in [(with(async |_: Context| ()), -32601), (configured(), -32602)] {
        let refused = Client::builder().config(json!(["k"])).connect(plugin).await;
        assert!(matches!(refused, Err(Error::Refused(error)) if error.code == code));
    }
}

#[tokio::test]
async fn without_a_configuration_the_defaults_hold_and_what_has_none_is_told() {
    #[derive(Deserialize, JsonSchema)]
    struct Needy {
        key: String,
    }
    let client = Client::builder().plain_mcp().connect(configured()).await.unwrap();
    assert_eq!(client.call("tool", json!({})).await.unwrap().text(), " 3");
    let needy = with(async |ctx: Context| Ok::<_, ToolError>(ctx.config::<Needy>()?.key.clone())).config::<Needy>();
    let client = Client::builder().plain_mcp().connect(needy).await.unwrap();
    let result = client.call("tool", json!({})).await.unwrap();
    assert_eq!(result.text(), "the client sent no configuration: missing field `key`");
}

#[tokio::test]
async fn a_result_that_is_too_large_says_so_and_the_connection_goes_on() {
    #[derive(Deserialize, JsonSchema)]
    struct Large {
        bytes: usize,
    }
    let plugin = plugin().tool("large", "", async |args: Large, _: Context| "x".repeat(args.bytes));
    let client = Client::builder().max_message_bytes(10_000).connect(plugin).await.unwrap();
    let result = client.call("large", json!({"bytes": 20_000})).await.unwrap();
    assert!(result.is_error() && result.text().contains("more than the 10000"), "{}", result.text());
    assert_eq!(client.call("large", json!({"bytes": 9_000})).await.unwrap().text().len(), 9_000);
}

#[tokio::test]
async fn logs_reach_the_client_from_the_level_that_it_asked_for() {
    let plugin = with(async |ctx: Context| {
        ctx.log(Level::Info, "a detail");
        ctx.log(Level::Warning, "a warning");
    });
    let client = Client::builder().plain_mcp().connect(plugin).await.unwrap();
    client.request("logging/setLevel", json!({"level": "notice"})).await.unwrap();
    client.call("tool", json!({})).await.unwrap();
    let logs: Vec<_> = client.logs().into_iter().map(|log| (log.level, log.data)).collect();
    assert_eq!(logs, [("warning".to_owned(), json!("a warning"))]);
}

#[tokio::test]
async fn what_is_said_of_a_tool_is_listed() {
    let tool = Tool::new("look", "Looks.", async |_: NoArgs, _: Context| ())
        .title("Look around")
        .read_only(true)
        .timeout(Duration::from_secs(5));
    let client = plugin().add_tool(tool).test_client().await.unwrap();
    let listed = &client.tools().await.unwrap()[0];
    assert_eq!(listed.input_schema, json!({"type": "object", "properties": {}}));
    assert_eq!((listed.title.as_deref(), listed.description.as_deref()), (Some("Look around"), Some("Looks.")));
    assert_eq!(listed.annotations, Some(json!({"readOnlyHint": true})));
    assert_eq!(listed.meta["dev.lemon/tool"], json!({"timeoutMs": 5000}));
}

#[tokio::test]
async fn a_short_time_is_not_the_zero_that_means_for_ever() {
    for (timeout, listed) in [(Duration::ZERO, 0), (Duration::from_nanos(1), 1), (Duration::from_micros(1_001), 2)] {
        let tool = Tool::new("look", "", async |_: NoArgs, _: Context| ()).timeout(timeout);
        let client = plugin().add_tool(tool).test_client().await.unwrap();
        assert_eq!(client.tools().await.unwrap()[0].meta["dev.lemon/tool"], json!({"timeoutMs": listed}));
    }
}

#[tokio::test]
async fn what_another_tool_embeds_is_not_lost() {
    let plugin = with(async |ctx: Context| {
        let read = ctx.host().call_tool("read", json!({})).await?;
        match &read.content()[..] {
            [Content::Resource { resource, .. }] => Ok(ToolOutput::new().and(resource.clone())),
            other => Err(ToolError::msg(format!("no resource, but {other:?}"))),
        }
    });
    let blob = json!([{"type": "resource", "resource": {"uri": "file:///a", "mimeType": "a/b", "blob": "AAE="}}]);
    let answer = json!({"content": blob});
    let client = Client::builder().host(move |_, _| Ok(answer.clone())).connect(plugin).await.unwrap();
    let result = serde_json::to_value(client.call("tool", json!({})).await.unwrap()).unwrap();
    assert_eq!(result["content"], blob);
}

#[test]
fn what_a_plugin_is_made_of_may_cross_threads() {
    fn shared<T: Send + Sync + 'static>() {}
    fn sent<T: Send>(_: T) {}
    shared::<Plugin>();
    shared::<Tool>();
    shared::<Context>();
    shared::<Session>();
    shared::<Client>();
    shared::<ToolError>();
    sent(plugin().serve());
    sent(plugin().test_client());
}
