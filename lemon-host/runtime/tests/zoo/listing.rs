//! What goes wrong with the list of tools.

use lemon_host::{CallError, StateKind};

use crate::cage::Cage;
use crate::case::NotStarted::{Backoff, Failed};
use crate::case::{Case, fault};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        fault("paged").then(async |cage| {
            assert_eq!(cage.status().tools, 5);
            cage.says("echo", r#"{"text":"x"}"#).await;
        }),
        fault("page-loop").works_with_noise(&[("page_loop", 1)]),
        fault("page-endless").limits(|limits| limits.tools = 100).then(async |cage| {
            assert_eq!(cage.status().tools, 100);
            assert!(refused(cage, "…").contains("limits.tools"));
        }),
        fault("list-error")
            .never_starts(Failed, &["the first list of tools", "the list of tools is lost (code -32603)"]),
        fault("list-silent")
            .start_within(1500)
            .never_starts(Backoff, &["it did not finish the first list of tools (tools/list) within 1.5 s"]),
        fault("many-tools").then(async |cage| {
            assert_eq!(cage.status().tools, 4096);
            assert!(refused(cage, "…").contains("limits.tools"));
            assert_eq!(cage.host.tool("tool_4095").unwrap().name, "tool_4095");
        }),
        fault("bad-tools").then(async |cage| {
            assert_eq!((cage.status().tools, cage.status().quarantined.len()), (10, 7));
            for tool in ["no_schema", "schema_is_a_text", "schema_of_a_list", "schema_of_no_type"] {
                assert!(!refused(cage, tool).is_empty());
            }
            cage.works().await;
        }),
        fault("duplicate-tool").then(async |cage| {
            assert!(refused(cage, "echo").contains("another tool of the same name"));
            assert_eq!(cage.says("echo", r#"{"text":"the first"}"#).await, "the first");
            cage.works().await;
        }),
        fault("odd-names").then(async |cage| {
            let tools = cage.host.tools();
            let fits = |name: &str| {
                (1..=64).contains(&name.len())
                    && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
            };
            for raw in ["Echo", "read.file", "read file", "read_file", "é", &"x".repeat(100)] {
                let tool = tools.iter().find(|tool| tool.raw_name.raw() == raw).unwrap();
                assert!(fits(&tool.name), "{}", tool.name);
                assert_eq!(cage.says(&tool.name, "{}").await, format!("this is {raw}"));
            }
            assert_eq!((cage.status().tools, cage.status().quarantined.len()), (16, 4));
            cage.works().await;
        }),
        fault("taken-names").then(async |cage| {
            assert!(refused(cage, "mcp_witness_echo").contains("reserved"));
            for tool in ["told", "mcp_witness_echo"] {
                let listed: Vec<_> = cage.session.tools().into_iter().filter(|listed| listed.name == tool).collect();
                assert_eq!(listed.len(), 1, "{listed:?}");
                let relayed =
                    cage.says("relay", &format!(r#"{{"tool":"{tool}","arguments":{{"text":"told"}}}}"#)).await;
                assert_eq!((cage.says(tool, r#"{"text":"told"}"#).await, relayed), ("told".into(), "told".into()));
            }
            let conflicts = cage.host.conflicts().conflicts;
            let shadowed = |name: &str| conflicts.iter().any(|conflict| conflict.tool_name == name);
            assert!(shadowed("told"), "{conflicts:?}");
            cage.works().await;
        }),
        fault("hostile-schemas").then(async |cage| {
            for tool in ["too_deep", "too_large", "doubles", "remote"] {
                assert!(!refused(cage, tool).is_empty());
            }
            cage.works().await;
        }),
        fault("list-changes").then(async |cage| {
            assert!(!lists(cage, "extra"));
            cage.echo().await.unwrap();
            cage.until("the tool", |cage| lists(cage, "extra")).await;
            assert_eq!(cage.notes.count("tools changed"), 1);
            cage.works().await;
        }),
        fault("undeclared-change").then(async |cage| {
            cage.echo().await.unwrap();
            cage.until("the tool", |cage| lists(cage, "extra")).await;
            cage.works().await;
        }),
        fault("tool-removed").then(async |cage| {
            cage.says("env", "{}").await;
            cage.echo().await.unwrap();
            cage.until("the end of the tool", |cage| !lists(cage, "env")).await;
            let error = cage.call("env", "{}").await.unwrap_err();
            assert!(matches!(error, CallError::UnknownTool { .. }), "{error}");
            cage.works().await;
        }),
        fault("tool-changed").then(async |cage| {
            cage.says("env", "{}").await;
            cage.echo().await.unwrap();
            cage.until("the change", |cage| cage.notes.has("tools changed")).await;
            let error = cage.call("env", "{}").await.unwrap_err().to_string();
            assert!(error.contains(r#"missing required argument "key""#), "{error}");
            cage.works().await;
        }),
        fault("list-breaks").then(async |cage| {
            cage.echo().await.unwrap();
            cage.until("the failure", |cage| cage.noise("list_failed") == 1).await;
            assert!(lists(cage, "env"));
            cage.works().await;
        }),
        fault("list-flood").traced().then(async |cage| {
            cage.until("more lists", |cage| cage.notes.count("tools changed") > 3).await;
            cage.works().await;
        }),
        fault("change-flood").traced().then(async |cage| {
            assert_eq!(cage.says("echo", r#"{"text":"x"}"#).await, "x");
            cage.until("another list", |cage| cage.notes.has("tools changed")).await;
            let lists = cage.notes.count(r#""method":"tools/list""#);
            assert!(lists < 1000, "{lists} lists for 20,000 changes");
            cage.works().await;
        }),
    ]
}

/// Why a tool is not offered.
fn refused(cage: &Cage, tool: &str) -> String {
    assert_eq!(cage.status().state, StateKind::Ready);
    let quarantined = cage.status().quarantined;
    let found = quarantined.iter().find(|quarantined| quarantined.tool.raw() == tool);
    found.unwrap_or_else(|| panic!("{tool} is not refused: {quarantined:?}")).reason.raw().to_owned()
}

fn lists(cage: &Cage, tool: &str) -> bool {
    cage.session.tools().iter().any(|listed| listed.name == tool)
}
