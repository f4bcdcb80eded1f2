use serde_json::{Value, json};

use super::*;
use crate::catalog::ToolSource;
use crate::schema::SchemaCache;

mod hostile;
mod properties;

/// What comes of a text under a schema: what is sent, or what is wrong.
async fn read(schema: Value, text: &str) -> Result<String, String> {
    let (given, sent) = both(schema, text).await?;
    assert!(serde_json::from_str::<serde::de::IgnoredAny>(&given).is_ok() && !given.contains('\n'));
    Ok(sent)
}

async fn compiled(schema: Value) -> Arc<Compiled> {
    let tool = json!({ "name": "tool", "inputSchema": schema });
    let tool = Arc::new(serde_json::from_value(tool).unwrap());
    SchemaCache::default().of(&tool, &ToolSource::Builtin, &Limits::default()).await
}

async fn both(schema: Value, text: &str) -> Result<(String, String), String> {
    let (limits, compiled) = (Limits::default(), compiled(schema).await);
    let arguments = Arguments::read(text, &compiled, &limits).await.map_err(|fault| fault.to_string())?;
    let again = Arguments::read(arguments.sent(), &compiled, &limits).await.unwrap();
    assert_eq!((again.given(), again.is_coerced()), (arguments.sent(), false), "reading is idempotent");
    Ok((arguments.given().to_owned(), arguments.sent().to_owned()))
}

fn one(schema: Value) -> Value {
    json!({ "type": "object", "properties": { "x": schema } })
}

async fn sent(schema: Value, x: &str) -> String {
    let sent = read(one(schema), &format!(r#"{{"x":{x}}}"#)).await.unwrap();
    sent.strip_prefix(r#"{"x":"#).unwrap().strip_suffix('}').unwrap().to_owned()
}

async fn refused(schema: Value, x: &str) -> String {
    read(one(schema), &format!(r#"{{"x":{x}}}"#)).await.unwrap_err()
}

#[tokio::test]
async fn white_space_goes_and_everything_else_keeps_its_bytes() {
    let any = json!({ "type": "object" });
    let text = " { \"b\" : [ 1 , 2.50 ,\t{ } ],\r\n \"a\" : \"x \\u00e9 \\n\" , \"c\":1E+2}\n";
    assert_eq!(read(any.clone(), text).await.unwrap(), "{\"b\":[1,2.50,{}],\"a\":\"x \\u00e9 \\n\",\"c\":1E+2}");
    let numbers = r#"{"n":[123456789012345678901234567890,0.1000000000000000055511151231257827,1e400,-0,1.0,-0.0e-5]}"#;
    assert_eq!(read(any, numbers).await.unwrap(), numbers);
}

#[tokio::test]
async fn nothing_means_no_arguments_and_an_object_may_be_in_a_string() {
    let any = one(json!({ "type": "integer" }));
    for text in ["", "  \n", "null", "{}", " { } ", "\"{}\""] {
        assert_eq!(read(any.clone(), text).await.unwrap(), "{}", "{text:?}");
    }
    let (given, sent) = both(any, r#""{\"x\": \"5\"}""#).await.unwrap();
    assert_eq!((given.as_str(), sent.as_str()), (r#"{"x":"5"}"#, r#"{"x":5}"#));
}

#[tokio::test]
async fn what_is_no_object_is_refused_with_the_reason() {
    let any = json!({ "type": "object" });
    for (text, reason) in [
        ("{", "they are not JSON: EOF while parsing an object at line 1 column 1"),
        ("{\n\"a\": 1 2}", "they are not JSON: expected `,` or `}` at line 2 column 8"),
        ("{} x", "they are not JSON: trailing characters at line 1 column 4"),
        ("{\"a\":tr ue}", "they are not JSON: expected ident at line 1 column 8"),
        ("{\"a\":1 . 5}", "they are not JSON: expected `,` or `}` at line 1 column 8"),
        ("{'a':1}", "they are not JSON: key must be a string at line 1 column 2"),
        ("[]", "expected a JSON object, got array"),
        ("\"text\"", "expected a JSON object, got string"),
        ("\"[1]\"", "expected a JSON object, got string"),
        ("1.5", "expected a JSON object, got number"),
        ("{\"a\":\"\\ud800\"}", "a: a string has half of a surrogate pair (\\ud800 to \\udfff), which is no character"),
        ("{\"\\udc00\":1}", "a string has half of a surrogate pair (\\ud800 to \\udfff), which is no character"),
    ] {
        assert_eq!(read(any.clone(), text).await.unwrap_err(), reason, "{text:?}");
    }
    let deep = |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
    assert!(read(any.clone(), &deep(126)).await.is_ok());
    assert_eq!(read(any, &deep(127)).await.unwrap_err(), "they nest deeper than 127 levels");
}

#[tokio::test]
async fn a_key_that_stands_twice_is_named_with_its_place() {
    let any = json!({ "type": "object" });
    for (text, reason) in [
        (r#"{"a":1,"a":1}"#, r#"a: the key "a" is given twice"#),
        (r#"{"a":{"b":[{"c":1,"\u0063":2}]}}"#, r#"a.b[0].c: the key "c" is given twice"#),
        (r#"{"":1,"":2}"#, r#"[""]: the key "" is given twice"#),
        (r#"{"a\u0000":1,"a\u0000":2}"#, r#"["a\u{0}"]: the key "a\u{0}" is given twice"#),
    ] {
        assert_eq!(read(any.clone(), text).await.unwrap_err(), reason);
    }
    let many = |last: &str| {
        let members: Vec<_> = (0..100).map(|at| format!("\"k{at}\":{at}")).collect();
        format!("{{{},{last}}}", members.join(","))
    };
    assert_eq!(read(any.clone(), &many("\"k7\":0")).await.unwrap_err(), r#"k7: the key "k7" is given twice"#);
    assert_eq!(read(any.clone(), &many("\"k99\":0")).await.unwrap_err(), r#"k99: the key "k99" is given twice"#);
    assert!(read(any, &many("\"K7\":0")).await.is_ok());
}

#[tokio::test]
async fn a_key_that_is_a_declared_one_but_for_its_case_is_refused() {
    let schema = json!({ "type": "object", "properties": {
        "path": { "type": "string" }, "is_ok": {}, "Both": {}, "both": {},
        "inner": { "$ref": "#/$defs/inner" }, "list": { "items": { "anyOf": [{ "$ref": "#/$defs/inner" }, true] } },
    }, "$defs": { "inner": { "allOf": [{ "properties": { "maskKey": {} } }] } } });
    for (text, reason) in [
        (r#"{"Path":"x"}"#, r#"Path: the key "Path" differs from "path" in case only"#),
        (r#"{"path":"x","PATH":"y"}"#, r#"PATH: the key "PATH" differs from "path" in case only"#),
        (r#"{"iſ_oK":1}"#, r#"["iſ_oK"]: the key "iſ_oK" differs from "is_ok" in case only"#),
        (r#"{"inner":{"MASKKEY":1}}"#, r#"inner.MASKKEY: the key "MASKKEY" differs from "maskKey" in case only"#),
        (r#"{"list":[1,{"maskkey":1}]}"#, r#"list[1].maskkey: the key "maskkey" differs from "maskKey" in case only"#),
    ] {
        assert_eq!(read(schema.clone(), text).await.unwrap_err(), reason);
    }
    for text in [r#"{"Both":1,"both":2}"#, r#"{"other":1,"OTHER":2}"#, r#"{"inner":{"maskKey":1}}"#] {
        assert_eq!(read(schema.clone(), text).await.unwrap(), text);
    }
}

#[tokio::test]
async fn what_is_valid_is_never_changed() {
    let schemas = [
        json!({}),
        json!({ "type": "string" }),
        json!({ "type": ["integer", "string"] }),
        json!({ "anyOf": [{ "type": "integer" }, { "type": "string" }] }),
        json!({ "type": ["null", "string"] }),
        json!({ "enum": ["5", "true", "null", "[1]", "{}"] }),
    ];
    for schema in schemas {
        for x in [r#""5""#, r#""true""#, r#""null""#, r#""[1]""#, r#""{}""#] {
            assert_eq!(sent(schema.clone(), x).await, x, "{schema}");
        }
    }
}

#[tokio::test]
async fn values_are_fitted_to_their_types_where_the_meaning_is_plain() {
    let integers = json!({ "type": "array", "items": { "type": "integer" } });
    let object = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    let cases = [
        (json!({ "type": "boolean" }), r#"" TRUE ""#, "true"),
        (json!({ "type": "boolean" }), r#""false""#, "false"),
        (json!({ "type": "integer" }), r#""-12""#, "-12"),
        (json!({ "type": "integer" }), r#""123456789012345678901234567890""#, "123456789012345678901234567890"),
        (json!({ "type": "number" }), r#""0.10""#, "0.10"),
        (json!({ "type": "number" }), r#""1e400""#, "1e400"),
        (json!({ "type": ["number", "null"] }), r#""null""#, "null"),
        (json!({ "type": "integer", "nullable": true }), r#""null""#, "null"),
        (json!({ "type": "integer", "nullable": true }), "null", "null"),
        (json!({ "enum": ["a", null], "type": "string", "nullable": true }), "null", "null"),
        (json!({ "type": ["boolean", "integer"] }), r#""1""#, "1"),
        (json!({ "type": ["null", "boolean", "integer"] }), r#""true""#, "true"),
        (json!({ "anyOf": [{ "type": "integer" }, { "type": "null" }] }), r#""7""#, "7"),
        (json!({ "oneOf": [{ "type": "boolean" }, { "type": "integer" }] }), r#""7""#, "7"),
        (json!({ "allOf": [{ "type": ["string", "integer"] }, { "type": "number" }] }), r#""7""#, "7"),
        (json!({ "enum": [1, 2] }), r#""2""#, "2"),
        (json!({ "const": true }), r#""true""#, "true"),
        (integers.clone(), r#""[1, \"2\"]""#, "[1,2]"),
        (integers.clone(), "5", "[5]"),
        (integers.clone(), r#""5""#, "[5]"),
        (integers.clone(), r#"["1",2,"3"]"#, "[1,2,3]"),
        (json!({ "type": "array", "items": { "type": "string" } }), r#""a, b""#, r#"["a, b"]"#),
        (json!({ "type": "array", "items": { "type": "string" } }), r#""[not json""#, r#"["[not json"]"#),
        (json!({ "type": "array" }), "true", "[true]"),
        (json!({ "type": "array", "items": object }), r#""{\"n\": \"1\"}""#, r#"[{"n":1}]"#),
        (
            json!({ "type": "array", "prefixItems": [{ "type": "integer" }, { "type": "boolean" }] }),
            r#"["1","true","2"]"#,
            r#"[1,true,"2"]"#,
        ),
        (object.clone(), r#""{ \"n\" : \"1\", \"m\": 1.0 }""#, r#"{"n":1,"m":1.0}"#),
        (
            json!({ "type": "object", "additionalProperties": { "type": "number" } }),
            r#"{"a":"1","b":2}"#,
            r#"{"a":1,"b":2}"#,
        ),
        (json!({ "$ref": "#/properties/y", "description": "by reference" }), r#""5""#, "5"),
    ];
    for (schema, x, expected) in cases {
        let whole = json!({ "type": "object", "properties": { "x": schema, "y": { "type": "integer" } } });
        let text = format!(r#"{{"keep":1.50,"x":{x},"more":"\u00e9"}}"#);
        let (given, sent) = both(whole.clone(), &text).await.unwrap_or_else(|fault| panic!("{whole} {x}: {fault}"));
        assert_eq!(given, text, "what the caller wrote stays");
        assert_eq!(sent, format!(r#"{{"keep":1.50,"x":{expected},"more":"\u00e9"}}"#), "{whole}");
    }
}

#[tokio::test]
async fn what_could_mean_something_else_is_refused() {
    let integer = json!({ "type": "integer" });
    for x in [r#""""#, r#""5 ""#, r#"" 5""#, r#""+5""#, r#""007""#, r#""5.0""#, r#""0x5""#, r#""1e2""#, r#""five""#] {
        assert_eq!(refused(integer.clone(), x).await, "x: expected integer, got string", "{x}");
    }
    for (x, got) in [("true", "boolean"), ("null", "null"), ("[5]", "array"), ("{}", "object"), ("1.5", "number")] {
        assert_eq!(refused(integer.clone(), x).await, format!("x: expected integer, got {got}"));
    }
    for x in ["5", "true", "null", "[]", "{}"] {
        assert!(refused(json!({ "type": "string" }), x).await.starts_with("x: expected string, got "));
    }
    for x in [r#""yes""#, r#""1""#, "1", "0"] {
        assert!(refused(json!({ "type": "boolean" }), x).await.starts_with("x: expected boolean, got "));
    }
    assert_eq!(refused(json!({ "type": "object" }), r#""[1]""#).await, "x: expected object, got string");
    assert_eq!(refused(json!({ "type": "object" }), r#""{\"a\":1,\"a\":2}""#).await, "x: expected object, got string");
    assert_eq!(refused(json!({ "type": "array" }), "null").await, "x: expected array, got null");
    assert_eq!(refused(json!({ "type": "null" }), r#""""#).await, "x: expected null, got string");
}

#[tokio::test]
async fn numbers_are_judged_as_they_are_written() {
    let integer = json!({ "type": "integer" });
    for x in ["1.0", "-0", "1e2", "1e400", "123456789012345678901234567890", "1.5e1"] {
        assert_eq!(sent(integer.clone(), x).await, x);
    }
    for x in ["1.5", "1e-1", "123456789012345678901234567890.5"] {
        assert_eq!(refused(integer.clone(), x).await, "x: expected integer, got number");
    }
    let draft_4 = json!({ "$schema": "http://json-schema.org/draft-04/schema#", "type": "object", "properties": { "x": integer } });
    assert_eq!(read(draft_4, r#"{"x":1.0}"#).await.unwrap_err(), "x: expected integer, got number");
    let bounded = json!({ "minimum": -5, "maximum": 18446744073709551615_u64 });
    assert_eq!(sent(bounded.clone(), "18446744073709551615").await, "18446744073709551615");
    for x in ["18446744073709551616", "1e400"] {
        assert_eq!(refused(bounded.clone(), x).await, "x: must be at most 18446744073709551615");
    }
    for x in ["-6", "-123456789012345678901234567890", "-1e400"] {
        assert_eq!(refused(bounded.clone(), x).await, "x: must be at least -5");
    }
    let even = json!({ "multipleOf": 2 });
    for x in ["123456789012345678901234567890", "18446744073709551616", "-4", "2.0", "0"] {
        assert_eq!(sent(even.clone(), x).await, x);
    }
    for x in ["18446744073709551615", "1.5", "-3"] {
        assert_eq!(refused(even.clone(), x).await, "x: must be a multiple of 2");
    }
    assert_eq!(sent(json!({ "enum": [1, 2.5] }), "1.0").await, "1.0");
    assert_eq!(sent(json!({ "const": 2.5 }), "25e-1").await, "25e-1");
    assert_eq!(
        refused(json!({ "const": 9007199254740992_u64 }), "9007199254740993").await,
        "x: expected 9007199254740992"
    );
    assert_eq!(refused(json!({ "uniqueItems": true }), "[1,1.0]").await, "x: has the same item twice");
    let near = "[9007199254740993,9007199254740992,{\"a\":1,\"b\":2},{\"b\":3,\"a\":1}]";
    assert_eq!(sent(json!({ "uniqueItems": true }), near).await, near);
    assert_eq!(
        refused(json!({ "uniqueItems": true }), r#"[{"a":1,"b":[2]},{"b":[2.0],"a":1}]"#).await,
        "x: has the same item twice"
    );
}

#[tokio::test]
async fn all_that_is_wrong_is_told_with_its_place() {
    let schema = json!({ "type": "object", "required": ["path", "filter"], "additionalProperties": false, "properties": {
        "path": { "type": "string" }, "limit": { "type": "integer", "minimum": 1, "maximum": 10 },
        "mode": { "enum": ["read", "write"] },
        "filter": { "type": "object", "required": ["tags"], "properties": {
            "tags": { "type": "array", "items": { "type": "string", "minLength": 2 }, "maxItems": 3 },
        } },
    } });
    let text = r#"{"pth":"x","limit":11,"mode":"raed","filter":{"tags":["ab",1,null,"c"]}}"#;
    let told = read(schema.clone(), text).await.unwrap_err();
    let parts = [
        "missing required argument \"path\"",
        "unknown argument \"pth\", is it \"path\"?",
        "limit: must be at most 10",
        "mode: expected one of \"read\", \"write\"",
        "filter.tags: must have at most 3 items",
        "filter.tags[1]: expected string, got integer",
        "filter.tags[2]: expected string, got null",
        "filter.tags[3]: must have at least 2 characters",
    ];
    let (mut told, mut expected) = (told.split("; ").collect::<Vec<_>>(), parts.to_vec());
    told.sort_unstable();
    expected.sort_unstable();
    assert_eq!(told, expected);
    let inner = read(schema, r#"{"path":"x","filter":{}}"#).await.unwrap_err();
    assert_eq!(inner, r#"filter: missing required argument "tags""#);
}

#[tokio::test]
async fn every_keyword_is_checked_and_told_in_plain_words() {
    let cases = [
        (json!({ "exclusiveMinimum": 0 }), "0", "must be greater than 0"),
        (json!({ "exclusiveMaximum": 1 }), "1.0", "must be less than 1"),
        (json!({ "multipleOf": 0.5 }), "0.7", "must be a multiple of 0.5"),
        (json!({ "maxLength": 1 }), r#""\u00e9é""#, "must have at most 1 character"),
        (json!({ "minItems": 2 }), "[1]", "must have at least 2 items"),
        (json!({ "minProperties": 1 }), "{}", "must have at least 1 member"),
        (json!({ "maxProperties": 0 }), r#"{"a":1}"#, "must have at most 0 members"),
        (json!({ "pattern": "^[a-z]+$" }), "\"A\"", "does not match the pattern ^[a-z]+$"),
        (json!({ "const": "a" }), "\"b\"", "expected \"a\""),
        (json!({ "contains": { "type": "string" } }), "[1]", "does not have the items that it must have"),
        (json!({ "not": { "type": "integer" } }), "1", "is just what it must not be"),
        (json!(false), "1", "is not allowed"),
        (
            json!({ "propertyNames": { "maxLength": 1 } }),
            r#"{"ab":1}"#,
            "has a key that is not allowed: must have at most 1 character",
        ),
        (json!({ "unevaluatedProperties": false }), r#"{"ab":1}"#, "unknown argument \"ab\""),
        (json!({ "dependentRequired": { "a": ["b"] } }), r#"{"a":1}"#, "missing required argument \"b\""),
        (json!({ "if": { "type": "string" }, "then": { "minLength": 1 } }), "\"\"", "must have at least 1 character"),
        (
            json!({ "oneOf": [{ "minimum": 1 }, { "minimum": 2 }] }),
            "3",
            "fits more than one of the alternatives, and must fit one",
        ),
        (
            json!({ "anyOf": [{ "type": "boolean" }, { "type": "integer" }] }),
            "\"x\"",
            "expected boolean or integer, got string",
        ),
    ];
    for (schema, x, expected) in cases {
        assert_eq!(refused(schema.clone(), x).await, format!("x: {expected}"), "{schema}");
    }
    assert_eq!(refused(json!({ "prefixItems": [true], "items": false }), "[1,2]").await, "x[1]: is not allowed");
    assert_eq!(sent(json!({ "format": "email" }), "\"x\"").await, "\"x\"", "formats are annotations");
}

#[tokio::test]
async fn of_several_alternatives_the_nearest_is_told() {
    let schema = json!({ "oneOf": [
        { "type": "object", "required": ["kind", "path"], "properties": { "kind": { "const": "file" }, "path": { "type": "string" } } },
        { "type": "object", "required": ["kind", "url"], "properties": { "kind": { "const": "web" }, "url": { "type": "string" } } },
        { "type": "string" },
    ] });
    assert_eq!(
        refused(schema.clone(), r#"{"kind":"web","url":5}"#).await,
        "x: fits none of the 3 alternatives; the nearest is number 2: x.url: expected string, got integer"
    );
    assert_eq!(
        refused(schema.clone(), r#"{"kind":"file"}"#).await,
        "x: fits none of the 3 alternatives; the nearest is number 1: missing required argument \"path\""
    );
    let nested = (0..10).fold(schema, |inner, _| json!({ "anyOf": [inner, { "type": "boolean" }] }));
    let told = refused(nested, r#"{"kind":"file"}"#).await;
    assert!(told.len() < 400 && told.starts_with("x: fits none of the 2 alternatives"), "{told}");
}

#[tokio::test]
async fn a_mistake_in_one_place_changes_nothing_in_another() {
    let schema = json!({ "type": "object",
        "properties": { "limit": { "type": "integer" }, "kind": { "type": "string" }, "v": { "type": ["string", "integer"] } },
        "if": { "properties": { "kind": { "const": "n" } } }, "then": { "properties": { "v": { "type": "integer" } } },
        "oneOf": [{ "properties": { "v": { "type": "string" } } }, { "properties": { "v": { "type": "integer" } } }] });
    let sent = read(schema, r#"{"limit":"5","kind":"s","v":"7"}"#).await.unwrap();
    assert_eq!(sent, r#"{"limit":5,"kind":"s","v":"7"}"#);
}

#[tokio::test]
async fn nullable_allows_null_whatever_stands_beside_it() {
    let schemas = [
        json!({ "enum": ["a"] }),
        json!({ "const": "a" }),
        json!({ "$ref": "#/properties/y" }),
        json!({ "allOf": [{ "$ref": "#/properties/y" }] }),
        json!({ "anyOf": [{ "type": "string" }], "description": "x" }),
        json!({ "type": "string", "oneOf": [{ "type": "string" }], "not": { "type": "null" } }),
    ];
    for mut schema in schemas {
        let whole = |x: &Value| json!({ "type": "object", "properties": { "x": x, "y": { "type": "string" } } });
        assert!(read(whole(&schema), r#"{"x":null}"#).await.is_err(), "{schema}");
        schema["nullable"] = json!(true);
        assert_eq!(read(whole(&schema), r#"{"x":null}"#).await.unwrap(), r#"{"x":null}"#, "{schema}");
        assert!(read(whole(&schema), r#"{"x":"a"}"#).await.is_ok(), "{schema}");
        assert!(read(whole(&schema), r#"{"x":[]}"#).await.is_err(), "{schema}");
    }
    let referred = json!({ "type": "object", "properties": {
        "x": { "nullable": true, "allOf": [{ "type": "string" }] }, "y": { "$ref": "#/properties/x/allOf/0" } } });
    assert!(read(referred, r#"{"x":"a","y":"b"}"#).await.is_ok(), "what is referred to stays where it is");
}

#[tokio::test]
async fn what_is_told_is_about_what_was_given() {
    let schema = json!({ "type": "object", "properties": {
        "z": { "type": "array", "items": { "type": "integer" } }, "n": { "type": "integer" }, "s": { "type": "string" } } });
    assert_eq!(read(schema.clone(), r#"{"z":"abc"}"#).await.unwrap_err(), "z: expected array, got string");
    assert_eq!(
        read(schema, r#"{"z":["1",[]],"n":"5","s":1}"#).await.unwrap_err(),
        "z[1]: expected integer, got array; s: expected string, got integer",
        "without what was mended"
    );
}

#[test]
fn what_a_gate_puts_in_place_is_an_object_and_nothing_else() {
    let limits = Limits::default();
    assert_eq!(canonical(" { \"a\" : [ 1 ] } ", &limits).unwrap().get(), r#"{"a":[1]}"#);
    for (text, reason) in [
        ("", "they are not JSON: EOF while parsing a value at line 1 column 0"),
        ("null", "expected a JSON object, got null"),
        (r#""{}""#, "expected a JSON object, got string"),
        ("[]", "expected a JSON object, got array"),
        (r#"{"a":[{"b":1,"\u0062":2}]}"#, r#"a[0].b: the key "b" is given twice"#),
        (
            r#"{"a":["\ud800"]}"#,
            "a[0]: a string has half of a surrogate pair (\\ud800 to \\udfff), which is no character",
        ),
    ] {
        assert_eq!(canonical(text, &limits).unwrap_err().to_string(), reason, "{text}");
    }
}

#[tokio::test]
async fn a_pointer_is_short_and_safe_to_show() {
    let schema = compiled(json!({ "type": "object", "additionalProperties": { "type": "string" } })).await;
    let text = format!(r#"{{"\u001b[31m/{}":1}}"#, "k".repeat(5000));
    let fault = Arguments::read(&text, &schema, &Limits::default()).await.unwrap_err();
    let pointer = &fault.violations()[0].pointer;
    assert!(pointer.starts_with("/\\u{1b}[31m~1kkk") && pointer.len() < 1100, "{pointer}");
}
