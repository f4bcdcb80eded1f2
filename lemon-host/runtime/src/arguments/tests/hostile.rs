//! Schemas and arguments that are made to hurt.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::*;
use crate::schema::SchemaFault;

const LIMIT: Duration = Duration::from_secs(60);

/// Fails when it takes so long that somebody would call it a hang.
async fn bounded<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, work).await.unwrap()
}

#[tokio::test]
async fn thirty_levels_of_doubled_references_are_refused() {
    let mut definitions = serde_json::Map::new();
    for at in 0..30 {
        let next = json!({ "$ref": format!("#/$defs/d{}", at + 1) });
        definitions.insert(format!("d{at}"), json!({ "allOf": [next, next] }));
    }
    definitions.insert("d30".to_owned(), json!({ "type": "string" }));
    let schema = json!({ "type": "object", "$defs": definitions, "properties": { "x": { "$ref": "#/$defs/d0" } } });
    assert!(matches!(compiled(schema.clone()).await.schema(), Err(SchemaFault::Nodes)));
    let told = bounded(read(schema, r#"{"x":1}"#)).await.unwrap_err();
    assert!(told.starts_with("the tool's input schema can't be used: it has more than 65536 nodes"), "{told}");
}

#[tokio::test]
async fn nothing_outside_of_a_schema_is_read() {
    for reference in ["https://example.com/s.json", "file:///etc/passwd", "other.json#/x", "//host/x"] {
        let told = read(one(json!({ "$ref": reference })), "{}").await.unwrap_err();
        assert_eq!(
            told,
            format!("the tool's input schema can't be used: {reference:?} refers to something outside of the schema")
        );
    }
}

#[test]
fn deep_values_under_a_recursive_schema_need_no_stack_of_the_caller() {
    // Half of what a runtime's thread has, so that it is enough for one without optimisation.
    let small = std::thread::Builder::new().stack_size(1024 * 1024).spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let back = json!({ "properties": { "x": { "$ref": "#" }, "n": { "type": "integer" } } });
        let mut schema = (0..28).fold(back, |inner, _| json!({ "oneOf": [inner] }));
        schema["type"] = json!("object");
        let deep = |leaf: &str| (0..120).fold(leaf.to_owned(), |inner, _| format!("{{\"x\":{inner}}}"));
        assert!(runtime.block_on(read(schema.clone(), &deep("{\"n\":1}"))).is_ok());
        assert!(runtime.block_on(read(schema.clone(), &deep("{\"n\":[]}"))).unwrap_err().contains("alternatives"));
        // The same in a string, which is deep only once it is fitted.
        let text = |deep: String| format!("{{\"x\":{}}}", Value::from(deep));
        let inner = |leaf: &str| (0..124).fold(leaf.to_owned(), |inner, _| format!("{{\"x\":{inner}}}"));
        assert!(runtime.block_on(read(schema.clone(), &text(inner("{\"n\":1}")))).is_ok());
        let told = runtime.block_on(read(schema, &text(inner("{\"n\":[]}")))).unwrap_err();
        assert!(told.contains("alternatives"), "{told}");
        let tree = json!({ "type": "object", "properties": {
            "children": { "type": "array", "items": { "$ref": "#" } }, "size": { "type": "integer" },
        } });
        let deep = (0..60).fold(r#"{"size":"3"}"#.to_owned(), |inner, _| format!("{{\"children\":[{inner}]}}"));
        assert_eq!(runtime.block_on(read(tree, &deep)).unwrap(), deep.replace("\"3\"", "3"));
    });
    small.unwrap().join().unwrap();
}

#[tokio::test]
async fn strings_within_strings_end() {
    let schema = json!({ "type": "object", "properties": { "x": { "$ref": "#" } } });
    let mut text = "{}".to_owned();
    for _ in 0..12 {
        text = format!("{{\"x\":{}}}", Value::from(text.as_str()));
    }
    assert_eq!(bounded(read(schema, &text)).await.unwrap().matches("\"x\"").count(), 12);
    let lists = json!({ "type": "object", "properties": { "x": { "$ref": "#/$defs/l" } },
        "$defs": { "l": { "type": "array", "items": { "$ref": "#/$defs/l" } } } });
    assert!(bounded(read(lists, r#"{"x":"a"}"#)).await.is_err());
}

#[tokio::test]
async fn a_pattern_takes_linear_time_or_is_left_out_and_told() {
    let text = format!("{{\"x\":\"{}!\"}}", "a".repeat(50_000));
    let linear = bounded(read(one(json!({ "pattern": "^(a+)+$" })), &text)).await;
    assert_eq!(linear.unwrap_err(), "x: does not match the pattern ^(a+)+$");
    for pattern in ["^(?=a)(a+)+$", "^(a+)\\1$", "(", "((a{1000}){1000}){1000}"] {
        let schema = one(json!({ "type": "string", "pattern": pattern, "maxLength": 60_000 }));
        let compiled = compiled(schema.clone()).await;
        let told = compiled.untold_note().unwrap();
        assert!(told.starts_with("1 pattern is not checked, as it is malformed, too large or not to be"), "{told}");
        assert!(told.ends_with(&format!("\"{pattern}\"")), "{told}");
        assert_eq!(compiled.untold_note(), None, "once");
        assert_eq!(bounded(read(schema.clone(), &text)).await.unwrap(), text);
        assert_eq!(read(schema, r#"{"x":5}"#).await.unwrap_err(), "x: expected string, got integer");
    }
    let named = json!({ "type": "object", "additionalProperties": false, "properties": { "n": { "type": "integer" } },
        "patternProperties": { "^(?!y)": { "type": "string" }, "^z": { "type": "integer" } } });
    assert_eq!(read(named.clone(), r#"{"x":1,"z":1}"#).await.unwrap(), r#"{"x":1,"z":1}"#);
    assert_eq!(
        read(named, r#"{"n":[],"z":"x"}"#).await.unwrap_err(),
        "n: expected integer, got array; z: expected integer, got string"
    );
}

#[tokio::test]
async fn a_pattern_that_is_too_slow_for_a_text_does_not_run_for_ever() {
    let schema = one(json!({ "type": "array", "items": { "pattern": "^(.{1,300})(,.{1,300})*$" } }));
    let item = format!("\"{}\"", "é,".repeat(1000));
    let text = format!("{{\"x\":[{}]}}", vec![item; 4000].join(","));
    let told = bounded(read(schema, &text)).await.unwrap_err();
    assert!(told.starts_with("there are too many values, or too much text"), "{told}");
}

#[tokio::test]
async fn large_arguments_are_read_or_refused_in_bounded_work() {
    let any = one(json!({ "type": "string" }));
    let text = format!("{{\"x\":\"{}\"}}", "é".repeat(8 * 1024 * 1024));
    assert_eq!(bounded(read(any.clone(), &text)).await.unwrap().len(), text.len());
    let values = format!("{{\"y\":[{}0]}}", "0,".repeat(8 * 1024 * 1024));
    let told = bounded(read(any.clone(), &values)).await.unwrap_err();
    assert_eq!(told, "they have more than 262144 values (limits.argument_values)");
    let keys: Vec<_> = (0..100_000).map(|at| format!("\"key{at}\":{at}")).collect();
    let text = format!("{{{}}}", keys.join(","));
    assert!(bounded(read(any.clone(), &text)).await.is_ok());
    let twice = format!("{{{},\"key5\":1}}", keys.join(","));
    assert_eq!(bounded(read(any, &twice)).await.unwrap_err(), r#"key5: the key "key5" is given twice"#);
    let open = "[".repeat(16 * 1024 * 1024);
    assert_eq!(
        bounded(read(json!({ "type": "object" }), &open)).await.unwrap_err(),
        "they nest deeper than 127 levels"
    );
}

#[tokio::test]
async fn many_faults_are_counted_and_few_told() {
    let schema = json!({ "type": "object", "additionalProperties": { "type": "integer" } });
    let text = |count: usize| {
        let keys: Vec<_> = (0..count).map(|at| format!("\"k{at}\":\"x\"")).collect();
        format!("{{{}}}", keys.join(","))
    };
    let told = read(schema.clone(), &text(50)).await.unwrap_err();
    assert_eq!((told.matches("expected integer").count(), told.ends_with("; and 30 more")), (20, true), "{told}");
    let told = bounded(read(schema, &text(100_000))).await.unwrap_err();
    assert_eq!(told, "k0: expected integer, got string");
    let twice: Vec<_> = (0..50).map(|_| "\"a\":1").collect();
    let told = read(json!({ "type": "object" }), &format!("{{{}}}", twice.join(","))).await.unwrap_err();
    assert!(told.ends_with("; and 29 more"), "{told}");
    let any = compiled(json!({ "type": "object" })).await;
    let fault = Arguments::read(r#"{"a":[{"/":1,"/":2}]}"#, &any, &Limits::default()).await.unwrap_err();
    let [violation] = fault.violations() else { panic!("{fault}") };
    assert_eq!((violation.pointer.as_str(), violation.path.as_str(), fault.more()), ("/a/0/~1", "a[0][\"/\"]", 0));
    assert_eq!(violation.what, "the key \"/\" is given twice");
}

#[tokio::test]
async fn odd_keys_are_keys_like_any_other_and_safe_to_show() {
    let closed =
        json!({ "type": "object", "additionalProperties": false, "properties": { "__proto__": { "type": "string" } } });
    let any = json!({ "type": "object" });
    let text = r#"{"__proto__":{"x":1},"constructor":2,"a\u0000b":3,"":4,"\u001b[31m":5}"#;
    assert_eq!(read(any, text).await.unwrap(), text);
    assert_eq!(
        read(closed.clone(), r#"{"__proto__":5}"#).await.unwrap_err(),
        "__proto__: expected string, got integer"
    );
    assert_eq!(
        read(closed.clone(), r#"{"\u001b[31m":5,"a\u0000b":1,"\u202e":1}"#).await.unwrap_err(),
        r#"unknown argument "\u{1b}[31m"; unknown argument "a\u{0}b"; unknown argument "\u{202e}""#
    );
    let long = format!("{{\"{}\":1}}", "k".repeat(100_000));
    assert!(read(closed, &long).await.unwrap_err().len() < 120);
    let control = json!({ "type": "object", "properties": { "x": { "enum": ["\u{1b}[2J"], "pattern": "\u{9b}" } } });
    let told = read(control, r#"{"x":"y"}"#).await.unwrap_err();
    assert!(told.chars().all(|c| !c.is_control()), "{told:?}");
    let kelvin = json!({ "type": "object", "properties": { "key": {}, "straße": {} } });
    assert!(
        read(kelvin.clone(), "{\"\u{212a}ey\":1}").await.unwrap_err().contains("differs from \"key\" in case only")
    );
    assert!(read(kelvin, "{\"STRASSE\":1}").await.unwrap_err().contains("in case only"));
}

#[tokio::test]
async fn a_caller_that_goes_away_stops_the_work() {
    let stopped = Arc::new(AtomicBool::new(true));
    let array = |schema: Value| one(json!({ "type": "array", "items": schema }));
    let long = "1".repeat(1000);
    for (schema, item) in [
        (json!({ "type": "object", "uniqueItems": true }), "{}"),
        (json!({ "allOf": vec![json!({ "type": "integer" }); 100] }), "1"),
        (json!({ "enum": vec![json!(1.5); 100] }), "1"),
        (json!({ "minimum": 1, "maximum": 1e300, "multipleOf": 1 }), long.as_str()),
        (json!({ "propertyNames": { "minLength": 1, "pattern": "a" } }), r#"{"a":1,"ab":2,"b":3}"#),
    ] {
        let schema = compiled(array(schema)).await;
        let text = format!("{{\"x\":[{}]}}", vec![item; 10_000].join(","));
        let node = Node::read(&text).unwrap();
        let verdict = |stopped: &Arc<_>| schema.schema().unwrap().is_valid(&node, 30_000, Effort::until(stopped));
        let (waited_for, given_up) = (verdict(&Arc::default()), verdict(&stopped));
        assert!(waited_for.is_ok(), "{item}");
        assert_eq!(given_up, Err(TooMuch), "{item}");
    }
}

/// Whether a check that is made where it is asked for ends early under a schema for `x`.
async fn is_too_much_at_once(schema: Value, x: &str) -> bool {
    let schema = compiled(one(schema)).await;
    let text = format!("{{\"x\":{x}}}");
    let node = Node::read(&text).unwrap();
    schema.schema().unwrap().is_valid(&node, 2, Effort::AT_ONCE) == Err(TooMuch)
}

#[tokio::test]
async fn text_and_digits_are_paid_for_by_every_keyword_that_reads_them() {
    let (number, text) = ("9".repeat(60_000), format!("\"{}\"", "é".repeat(30_000)));
    let each =
        |schema: &dyn Fn(usize) -> Value, count: usize| json!({ "allOf": (0..count).map(schema).collect::<Vec<_>>() });
    assert!(is_too_much_at_once(each(&|at| json!({ "minimum": at }), 1000), &number).await);
    assert!(is_too_much_at_once(each(&|_| json!({ "type": "integer" }), 1000), &number).await);
    assert!(is_too_much_at_once(each(&|at| json!({ "minLength": 20_000 + at }), 1000), &text).await);
    let names = each(&|at| json!({ "propertyNames": { "pattern": format!("x{at}$") } }), 100);
    assert!(is_too_much_at_once(names, &format!("{{{text}:1}}")).await);
    let named: serde_json::Map<_, _> = (0..100).map(|at| (format!("x{at}$"), json!(true))).collect();
    let patterns = json!({ "patternProperties": named, "additionalProperties": true });
    assert!(is_too_much_at_once(patterns, &format!("{{{text}:1}}")).await);
}

#[tokio::test]
async fn a_long_number_is_read_once_however_often_it_is_compared() {
    use crate::schema::number::DIGITS;
    let number = "9".repeat(60_000);
    let schema = compiled(one(json!({ "not": { "enum": (0..4000).collect::<Vec<_>>() } }))).await;
    let text = format!("{{\"x\":{number}}}");
    DIGITS.set(0);
    let node = Node::read(&text).unwrap();
    assert_eq!(schema.schema().unwrap().is_valid(&node, 2, Effort::AT_ONCE), Ok(true));
    assert!(DIGITS.get() < 100_000, "{}", DIGITS.get());
}

#[tokio::test]
async fn what_is_found_wrong_takes_bounded_memory() {
    use crate::schema::meter::ERRORS;
    let branches: Vec<_> = (0..10).map(|_| json!({ "type": "integer" })).collect();
    let schema = compiled(one(json!({ "type": "array", "items": { "anyOf": branches } }))).await;
    let faults = |text: &str, values: usize| {
        ERRORS.set(0);
        let node = Node::read(text).unwrap();
        schema.schema().unwrap().faults(&node, values, Effort::until(&Arc::default())).unwrap().to_string()
    };
    let few = faults(r#"{"x":[null]}"#, 3);
    assert_eq!(few, "x[0]: expected integer, got null");
    let nulls = format!("{{\"x\":[{}]}}", vec!["null"; 100_000].join(","));
    assert_eq!(faults(&nulls, 100_002), "x[0]: expected integer, got null");
    assert!(ERRORS.get() < 80_000, "{}", ERRORS.get());
    // Each error has its place.
    let deep = format!("{{\"x\":[{}]}}", vec!["null"; 1000].join(","));
    faults(&deep, 1002);
    let plain = ERRORS.get();
    let any = compiled(json!({ "type": "object", "additionalProperties": { "items": { "type": "integer" } } })).await;
    let text = format!("{{\"{}\":[{}]}}", "k".repeat(1 << 20), vec!["null"; 10_000].join(","));
    ERRORS.set(0);
    let node = Node::read(&text).unwrap();
    let told = any.schema().unwrap().faults(&node, 10_002, Effort::until(&Arc::default())).unwrap();
    assert!(plain >= 1000 && ERRORS.get() < 100, "{plain} {}", ERRORS.get());
    assert_eq!(told.list()[0].what, "expected integer, got null");
}

#[tokio::test]
async fn places_of_faults_that_are_only_counted_are_not_written_out() {
    use crate::schema::violation::POINTERS;
    let schema = compiled(one(json!({ "items": { "properties": { "path": {} } } }))).await;
    for item in [r#"{"a":1,"a":2}"#, r#""\ud800""#, r#"{"Path":1}"#] {
        let text = format!("{{\"x\":[{}]}}", vec![item; 1000].join(","));
        POINTERS.set(0);
        let fault = match Node::read(&text) {
            Ok(node) => spelling::check(&node, schema.schema().unwrap().guide()).unwrap_err(),
            Err(fault) => fault,
        };
        assert_eq!((fault.list().len(), fault.more(), POINTERS.get()), (20, 980, 20), "{item}");
    }
}

#[tokio::test]
async fn unknown_names_are_compared_with_known_ones_for_few_faults() {
    let properties: serde_json::Map<_, _> = (0..2000).map(|at| (format!("name{at}"), json!({}))).collect();
    let schema = json!({ "type": "object", "additionalProperties": false, "properties": properties });
    let names: Vec<_> = (0..2000).map(|at| format!("\"nmae{at}\":1")).collect();
    let told = bounded(read(schema, &format!("{{{}}}", names.join(",")))).await.unwrap_err();
    assert_eq!((told.matches("unknown argument").count(), told.matches(", is it").count()), (20, 5), "{told}");
    assert!(told.ends_with("; and 1980 more"), "{told}");
}

#[tokio::test]
async fn dialects_are_honoured_and_unknown_ones_read_as_the_newest() {
    let tuple = |dialect: &str| json!({ "$schema": dialect, "type": "object", "properties": { "x": { "items": [{ "type": "integer" }] } } });
    for dialect in [
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-06/schema#",
        "http://json-schema.org/draft-07/schema",
        "https://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft/2019-09/schema",
    ] {
        assert_eq!(
            read(tuple(dialect), r#"{"x":["y"]}"#).await.unwrap_err(),
            "x[0]: expected integer, got string",
            "{dialect}"
        );
    }
    let newest = |dialect: &str| json!({ "$schema": dialect, "type": "object", "properties": { "x": { "prefixItems": [{ "type": "integer" }] } } });
    for dialect in ["https://json-schema.org/draft/2020-12/schema", "https://example.com/mine", "", "urn:x"] {
        assert_eq!(
            read(newest(dialect), r#"{"x":["y"]}"#).await.unwrap_err(),
            "x[0]: expected integer, got string",
            "{dialect}"
        );
    }
    for invalid in
        [json!({ "type": 5 }), json!({ "required": true }), json!({ "minimum": "1" }), json!({ "properties": [] })]
    {
        let fault = crate::schema::check(&one(invalid.clone()), &Limits::default()).unwrap_err();
        assert!(matches!(fault, SchemaFault::Invalid { .. }), "{invalid} {fault}");
    }
}
