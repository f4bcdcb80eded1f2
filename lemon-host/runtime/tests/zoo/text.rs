//! Text that is meant for the terminal, for other eyes, or is a secret.

use lemon_host::{EnvValue, SessionOptions};

use crate::case::{Case, fault};

const SECRET: &str = "s3cr3t-0123456789-value";

pub(crate) fn cases() -> Vec<Case> {
    vec![
        fault("hostile-text").then(async |cage| {
            for tool in ["fail", "fail_softly", "grow"] {
                let shown = match cage.call(tool, "{}").await {
                    Ok(result) => result.texts().map(|text| text.to_string()).collect(),
                    Err(error) => error.to_string(),
                };
                assert_shows_nothing_hostile(&shown);
            }
            let status = cage.status();
            assert_shows_nothing_hostile(&status.server_name.unwrap().to_string());
            assert_shows_nothing_hostile(&status.server_version.unwrap().to_string());
            assert_shows_nothing_hostile(&cage.process().stderr.to_string());
            assert_shows_nothing_hostile(&cage.notes.all());
            for tool in cage.host.tools() {
                assert_shows_nothing_hostile(&tool.name);
            }
            for refused in &status.quarantined {
                assert_shows_nothing_hostile(&format!("{}: {}", refused.tool, refused.reason));
            }
            assert!(status.quarantined.iter().any(|refused| refused.tool.raw() == "twin"));
            cage.works().await;
        }),
        fault("leak-secret").spec(|spec| drop(spec.env.insert("API_KEY".to_owned(), literal()))).then(async |cage| {
            let error = cage.call("leak", "{}").await.unwrap_err().to_string();
            assert!(error.contains("[redacted]") && !error.contains(SECRET), "{error}");
            let session = cage.host.session(SessionOptions::default());
            let tools: Vec<_> = session.tools().into_iter().filter_map(|tool| tool.description).collect();
            let told = format!("{:?} {} {tools:?} {}", cage.status(), cage.notes.all(), cage.log());
            assert!(told.contains("[redacted]") && !told.contains(SECRET), "{told}");
            cage.works().await;
        }),
    ]
}

fn literal() -> EnvValue {
    EnvValue::Literal(SECRET.to_owned())
}

/// Nothing that acts on a terminal, turns the direction of reading or has no width.
fn assert_shows_nothing_hostile(shown: &str) {
    let hostile = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    assert_eq!(shown.chars().find(|c| hostile(*c)), None, "{shown:?}");
}
