//! What holds of every stream and every message, tried with generated ones.

use lemon_protocol::{LineSplitter, Message, RequestId, TopLevelId};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value};

mod stream;
use stream::{Whole, check, rewrite, split};

/// Text in which quotes, escapes, brackets and the word `id` are likely.
fn text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        "[ -~]{0,6}",
        Just("id".to_owned()),
        Just("\"id\":7,".to_owned()),
        Just("\\".to_owned()),
        Just("\"".to_owned()),
        Just("}{][".to_owned()),
        Just("\u{1f34b}\u{2028}\u{0}\n".to_owned()),
    ];
    vec(part, 0..4).prop_map(|parts| parts.concat())
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![Just("id".to_owned()), Just("i\\d".to_owned()), Just("i\td".to_owned()), text()]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            vec((key(), inner), 0..5).prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn id() -> impl Strategy<Value = RequestId<'static>> {
    prop_oneof![any::<i64>().prop_map(RequestId::Number), text().prop_map(|text| RequestId::Text(text.into()))]
}

/// A JSON string, with each character written as an escape or only those that must be.
fn written(text: &str, escape: bool) -> String {
    if !escape {
        return Value::from(text).to_string();
    }
    let escaped: String = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
    format!("\"{escaped}\"")
}

/// Which of the message's three forms is written, and with what.
fn message() -> impl Strategy<Value = (Vec<(&'static str, String)>, bool)> {
    let members = (id(), text(), prop::option::of(value()), value(), any::<bool>(), 0u8..4).prop_map(
        |(id, method, params, result, escape, form)| {
            let id = || match &id {
                RequestId::Number(number) => number.to_string(),
                RequestId::Text(text) => written(text, escape),
            };
            let mut members = vec![("jsonrpc", written("2.0", escape))];
            match form {
                0 | 1 => {
                    members.push(("method", written(&method, escape)));
                    members.extend(params.map(|params| ("params", params.to_string())));
                    members.extend((form == 0).then(|| ("id", id())));
                }
                2 => members.extend([("id", id()), ("result", result.to_string())]),
                _ => members.extend([("id", id()), ("error", result.to_string())]),
            }
            (members, escape)
        },
    );
    members.prop_flat_map(|(members, escape)| (Just(members).prop_shuffle(), Just(escape)))
}

fn line(members: &[(&str, String)], escape: bool, space: &str) -> String {
    let members = members.iter().map(|(name, value)| format!("{}{space}:{space}{value}", written(name, escape)));
    format!("{space}{{{}}}{space}", members.collect::<Vec<_>>().join(","))
}

fn top_level_id(text: &str) -> Option<i64> {
    serde_json::from_str::<Value>(text).ok()?.get("id")?.as_i64()
}

fn id_in_passing(text: &str) -> Option<i64> {
    let mut id = TopLevelId::default();
    id.feed(text.as_bytes());
    id.get()
}

/// What lines that look like messages are made of.
const PARTS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\\u",
    "\n",
    "\r",
    " ",
    "\u{feff}",
    "\0",
    "id",
    "\"id\":",
    "\"jsonrpc\":\"2.0\",",
    "\"method\":\"m\"",
    "\"result\":",
    "null",
    "1",
    "-",
    "1.5",
    "e9",
    "{\"id\":",
    "\"\\u0069d\":",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_do_harm(bytes in vec(any::<u8>(), 0..400), cuts in vec(1usize..50, 0..6), limit in 0usize..100) {
        check(&bytes, &cuts, limit);
    }

    #[test]
    fn no_text_that_looks_like_json_does_harm(
        parts in vec(prop::sample::select(PARTS), 0..60),
        cuts in vec(1usize..20, 0..6),
        limit in 0usize..100,
    ) {
        check(parts.concat().as_bytes(), &cuts, limit);
    }

    #[test]
    fn a_message_reads_as_it_was_written(
        (members, escape) in message(),
        space in prop::sample::select(vec!["", " ", "\t "]),
    ) {
        let line = line(&members, escape, space);
        let member = |name: &str| members.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str());
        let read = |text: Option<&str>| text.map(|text| serde_json::from_str::<Value>(text).unwrap());
        let id_of = |id: &RequestId<'_>| Some(serde_json::to_value(id).unwrap());
        match Message::parse(line.as_bytes()).unwrap() {
            Message::Request { id, method, params } => {
                prop_assert_eq!(id_of(&id), read(member("id")));
                prop_assert_eq!(Some(Value::from(&*method)), read(member("method")));
                prop_assert_eq!(params.map(|params| params.get()), member("params"));
            }
            Message::Notification { method, params } => {
                prop_assert!(member("id").is_none());
                prop_assert_eq!(Some(Value::from(&*method)), read(member("method")));
                prop_assert_eq!(params.map(|params| params.get()), member("params"));
            }
            Message::Response { id, outcome } => {
                prop_assert_eq!(id.as_ref().and_then(id_of), read(member("id")));
                prop_assert_eq!(outcome.ok().map(|raw| raw.get()), member("result"));
                prop_assert_eq!(outcome.err().map(|raw| raw.get()), member("error"));
            }
        }
    }

    #[test]
    fn a_member_of_the_envelope_that_stands_there_twice_is_never_missed(
        (mut members, escape) in message(),
        which in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
    ) {
        let twice = members[which.index(members.len())].clone();
        members.insert(at.index(members.len() + 1), twice);
        let fault = Message::parse(line(&members, escape, "").as_bytes()).unwrap_err();
        prop_assert_eq!(fault.kind.as_str(), "duplicate_member");
    }

    #[test]
    fn where_the_reads_end_does_not_change_the_messages(
        messages in vec(message(), 0..6), cuts in vec(1usize..64, 1..8), crlf in any::<bool>(),
    ) {
        let lines: Vec<String> = messages.iter().map(|(members, escape)| line(members, *escape, "")).collect();
        let end = if crlf { "\r\n" } else { "\n" };
        let stream: String = lines.iter().map(|line| format!("{line}{end}")).collect();
        let pieces = split(stream.as_bytes(), &cuts, usize::MAX);
        let expected: Vec<Whole> = lines.into_iter().map(|line| Whole::Line(line.into_bytes())).collect();
        prop_assert_eq!(pieces, expected);
        check(stream.as_bytes(), &cuts, 60);
    }

    #[test]
    fn the_id_of_an_oversized_line_is_the_one_that_a_parser_finds(
        members in vec((key(), value(), any::<bool>()), 0..8),
        cuts in vec(1usize..40, 1..6),
        space in prop::sample::select(vec!["", " "]),
    ) {
        let mut seen = Map::new();
        let members: Vec<String> = members.into_iter()
            .filter(|(key, ..)| seen.insert(key.clone(), Value::Null).is_none())
            .map(|(key, value, escape)| format!("{space}{}{space}:{space}{value}", written(&key, escape)))
            .collect();
        let line = format!("{{{}{space}}}", members.join(","));
        prop_assert_eq!(id_in_passing(&line), top_level_id(&line), "{}", line);

        let pieces = split(format!("{line}\n").as_bytes(), &cuts, 1);
        prop_assert_eq!(pieces, vec![Whole::Oversized(line.len(), top_level_id(&line))]);
    }

    #[test]
    fn a_message_that_is_written_anew_is_the_same((members, escape) in message()) {
        let line = line(&members, escape, " ");
        let message = Message::parse(line.as_bytes()).unwrap();
        let text = rewrite(&message);
        prop_assert_eq!(format!("{message:?}"), format!("{:?}", Message::parse(text.as_bytes()).unwrap()));
    }
}

/// Sixteen mebibytes in small reads: a splitter that scanned or moved what it holds at each read would take minutes.
#[test]
fn a_long_line_in_small_reads_is_scanned_once() {
    let mut splitter = LineSplitter::new(16 << 20);
    let read = [b'x'; 512];
    for _ in 0..(16 << 20) / read.len() {
        splitter.extend(&read);
        assert!(splitter.next_piece().is_none());
    }
    splitter.extend(b"\n");
    assert!(splitter.next_piece().is_some());
}
