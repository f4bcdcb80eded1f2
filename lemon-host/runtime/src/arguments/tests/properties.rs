//! What holds for arguments of any kind.

use proptest::prelude::*;

use super::*;

/// JSON text in any spelling: numbers of any length, escapes, white space.
fn json_text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?",
        any::<String>().prop_map(|text| Value::from(text).to_string()),
        "\"(\\\\u00[0-7][0-9a-f]|[a-z ]|\\\\n|\\\\\"){0,8}\"",
        "\"(-?[0-9]{1,3}|true|null|\\[1\\]|\\{\\})\"",
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        let space = "[ \\n\\t]{0,2}";
        prop_oneof![
            (space, prop::collection::vec(inner.clone(), 0..5))
                .prop_map(|(space, items)| format!("[{space}{}{space}]", items.join(&format!("{space},{space}")))),
            (space, prop::collection::btree_map("[a-eA-E]|\\PC{0,3}", inner, 0..5)).prop_map(|(space, members)| {
                let members: Vec<_> = members
                    .iter()
                    .map(|(key, value)| format!("{}{space}:{value}", Value::from(key.as_str())))
                    .collect();
                format!("{{{space}{}{space}}}", members.join(&format!("{space},{space}")))
            }),
        ]
    })
}

fn schema() -> impl Strategy<Value = Value> {
    let name = || prop::sample::select(vec!["null", "boolean", "integer", "number", "string", "array", "object"]);
    let leaf = prop_oneof![
        name().prop_map(|name| json!({ "type": name })),
        prop::collection::hash_set(name(), 1..4)
            .prop_map(|names| json!({ "type": names.into_iter().collect::<Vec<_>>() })),
        Just(json!({ "enum": ["a", 1, null] })),
        Just(json!({})),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(|items| json!({ "type": "array", "items": items })),
            prop::collection::vec(inner.clone(), 1..3).prop_map(|branches| json!({ "anyOf": branches })),
            prop::collection::btree_map("[a-eA-E]", inner.clone(), 0..4)
                .prop_map(|members| json!({ "type": "object", "properties": members })),
            inner.prop_map(|rest| json!({ "type": "object", "additionalProperties": rest })),
        ]
    })
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// Whether a value has a whole number that may have had a fraction, which doubles do not hold.
fn may_be_rounded(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64() && number.as_f64().is_some_and(|number| number.fract() == 0.0),
        Value::Array(items) => items.iter().any(may_be_rounded),
        Value::Object(members) => members.values().any(may_be_rounded),
        _ => false,
    }
}

/// The text's tokens: what is left when white space between them is gone.
fn tokens(text: &str) -> String {
    let (mut out, mut within, mut escaped) = (String::new(), false, false);
    for c in text.chars() {
        if within || !c.is_ascii_whitespace() {
            out.push(c);
        }
        within ^= c == '"' && !escaped;
        escaped = within && c == '\\' && !escaped;
    }
    out
}

/// Schemas whose parts hang together by alternatives and conditions, for objects with the members a to d.
fn mixed() -> impl Strategy<Value = Value> {
    let kind = || {
        prop::sample::subsequence(vec!["null", "boolean", "integer", "string", "array"], 1..3)
            .prop_map(|names| json!({ "type": names }))
    };
    let object = || {
        prop::collection::btree_map("[a-d]", kind(), 0..3)
            .prop_map(|members| json!({ "type": "object", "properties": members }))
    };
    let part = || {
        prop_oneof![
            prop::collection::vec(object(), 1..3).prop_map(|branches| json!({ "anyOf": branches })),
            prop::collection::vec(object(), 1..3).prop_map(|branches| json!({ "oneOf": branches })),
            (object(), object(), object())
                .prop_map(|(one, two, three)| json!({ "if": one, "then": two, "else": three })),
            object().prop_map(|schema| json!({ "dependentSchemas": { "a": schema } })),
            object(),
        ]
    };
    prop::collection::vec(part(), 1..4).prop_map(|parts| json!({ "type": "object", "allOf": parts }))
}

/// Schemas that ask no more than most do, for objects with the members a to d.
fn simple() -> impl Strategy<Value = Value> {
    let number = || {
        (-3_i64..3, 0_i64..4, any::<bool>()).prop_map(|(least, more, whole)| {
            json!({ "type": if whole { "integer" } else { "number" }, "minimum": least, "maximum": least + more })
        })
    };
    let text = || {
        (0..3, 0..4)
            .prop_map(|(least, more)| json!({ "type": "string", "minLength": least, "maxLength": least + more }))
    };
    let leaf = || {
        prop_oneof![
            prop::sample::subsequence(vec!["null", "boolean", "integer", "string"], 1..3)
                .prop_map(|t| json!({ "type": t })),
            prop::sample::subsequence(vec!["x", "yy", "ä"], 1..3).prop_map(|strings| json!({ "enum": strings })),
            number(),
            text(),
            (number(), text()).prop_map(|(number, text)| json!({ "anyOf": [number, text, { "type": "null" }] })),
        ]
    };
    let list = (leaf(), 0..3, 0..3).prop_map(|(items, least, more)| {
        json!({ "type": "array", "items": items, "minItems": least, "maxItems": least + more, "description": "A list." })
    });
    let members = prop::collection::btree_map("[a-d]", prop_oneof![3 => leaf(), 1 => list], 0..5);
    (members, prop::sample::subsequence(vec!["a", "b", "c"], 0..3)).prop_map(|(members, needed)| {
        let needed: Vec<_> = needed.into_iter().filter(|name| members.contains_key(*name)).collect();
        json!({ "type": "object", "properties": members, "required": needed, "additionalProperties": false })
    })
}

/// Values in canonical form that have nothing unusual.
fn plain_value() -> impl Strategy<Value = String> {
    let leaf = || "null|true|false|0|-?[1-4]|\"\"|\"(x|yy|ä)\"|\"[a-z ü]{1,5}\"";
    prop_oneof![3 => leaf(), 1 => prop::collection::vec(leaf(), 0..4).prop_map(|items| format!("[{}]", items.join(",")))]
}

/// Leaves a text as it is, puts something into it, or cuts it off.
fn changed(text: &mut String, at: prop::sample::Index, junk: &str, change: u8) {
    let mut place = at.index(text.len());
    while !text.is_char_boundary(place) {
        place -= 1;
    }
    match change {
        0 => {}
        1 => text.insert_str(place, junk),
        _ => text.truncate(place),
    }
}

/// The members of an object that no error is about.
fn untouched(schema: &Value, text: &str) -> Vec<(String, String)> {
    fn is_about(error: &jsonschema::ValidationError<'_>, pointer: &str) -> bool {
        use jsonschema::error::ValidationErrorKind as Kind;
        error.instance_path().as_str() == pointer
            || match error.kind() {
                Kind::AnyOf { context } | Kind::OneOfNotValid { context } | Kind::OneOfMultipleValid { context } => {
                    context.iter().flatten().any(|inner| is_about(inner, pointer))
                }
                _ => false,
            }
    }
    let value: Value = serde_json::from_str(text).unwrap();
    let members: std::collections::BTreeMap<String, Box<RawValue>> = serde_json::from_str(text).unwrap();
    let validator = jsonschema::options().build(schema).unwrap();
    let errors: Vec<_> = validator.iter_errors(&value).collect();
    let untouched =
        members.into_iter().filter(|(name, _)| !errors.iter().any(|error| is_about(error, &format!("/{name}"))));
    untouched.map(|(name, raw)| (name, raw.get().to_owned())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2048, ..ProptestConfig::default() })]

    #[test]
    fn what_no_fault_is_about_keeps_its_bytes(
        schema in mixed(),
        members in prop::collection::btree_map("[a-d]", r#""5"|"true"|"null"|"x"|5|true|null|\[1\]"#, 1..5),
    ) {
        let members: Vec<_> = members.into_iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        let text = format!("{{{}}}", members.join(","));
        if let Ok(sent) = block_on(read(schema.clone(), &text)) {
            let sent: std::collections::BTreeMap<String, Box<RawValue>> = serde_json::from_str(&sent).unwrap();
            for (name, raw) in untouched(&schema, &text) {
                prop_assert_eq!(sent[&name].get(), raw, "{} {}", schema, text);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2048, ..ProptestConfig::default() })]

    #[test]
    fn what_is_valid_for_a_simple_schema_is_plainly_valid(
        schema in simple(), members in prop::collection::vec(("[a-dA]", plain_value()), 0..4),
    ) {
        let members: Vec<_> = members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        let text = format!("{{{}}}", members.join(","));
        let compiled = block_on(compiled(schema.clone()));
        let compiled = compiled.schema().unwrap();
        let (plainly, otherwise) = (compiled.plainly_takes(&text, 10_000), is_plain_tree(&text, compiled, 10_000));
        prop_assert_eq!(plainly, otherwise, "{} {}", text, schema);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn what_is_read_in_one_go_is_read_the_same_way_as_all_else(
        text in json_text(), at in any::<prop::sample::Index>(), junk in "[ {}\\[\\],:\"\\\\a1e.+-]{0,2}", change in 0_u8..3,
    ) {
        let mut text = tokens(&format!("{{\"x\":{text}}}"));
        changed(&mut text, at, &junk, change);
        let compiled = block_on(compiled(json!({ "type": "object" })));
        let schema = compiled.schema().unwrap();
        let quickly = is_plain(&text, schema, 10_000).then(|| text.clone());
        let slowly = object(&text, 10_000).ok().filter(|given| {
            settle(Canonical::read(given.text.get(), 10_000).unwrap(), schema, 10_000, Effort::AT_ONCE).is_ok()
        });
        let slowly = slowly.map(|given| given.text.get().to_owned()).filter(|given| *given == text);
        prop_assert_eq!(quickly.clone(), slowly, "{}", text);
        type Object = std::collections::BTreeMap<String, Box<RawValue>>;
        prop_assert!(quickly.is_none_or(|given| serde_json::from_str::<Object>(&given).is_ok()));
    }

    #[test]
    fn what_is_plainly_valid_is_valid(
        schema in prop_oneof![simple(), schema().prop_map(one), mixed()],
        members in prop::collection::vec(("[a-dxA]", prop_oneof![plain_value(), json_text()]), 0..4),
        at in any::<prop::sample::Index>(), junk in "[ {}\\[\\],:\"\\\\a1e.+-]{0,2}", change in 0_u8..3,
    ) {
        let members: Vec<_> = members.iter().map(|(name, value)| format!("\"{name}\":{}", tokens(value))).collect();
        let mut text = format!("{{{}}}", members.join(","));
        changed(&mut text, at, &junk, change);
        let compiled = block_on(compiled(schema.clone()));
        if let Ok(schema) = compiled.schema() && schema.plainly_takes(&text, 10_000) {
            prop_assert!(is_plain_tree(&text, schema, 10_000), "{}", text);
        }
    }

    #[test]
    fn the_canonical_form_has_all_tokens_and_nothing_else(text in json_text()) {
        let text = format!("{{ \"x\" : {text} }}");
        let canonical = Canonical::read(&text, 10_000).unwrap();
        prop_assert_eq!(canonical.text.get(), tokens(&text));
        let again = Canonical::read(canonical.text.get(), 10_000).unwrap();
        prop_assert_eq!(again.text.get(), canonical.text.get());
    }

    #[test]
    fn anything_is_read_or_refused_and_what_is_sent_is_valid(schema in schema(), text in json_text(), junk in any::<String>()) {
        // That reading again changes nothing is asserted within.
        let _ = block_on(read(one(schema.clone()), &format!("{{\"x\":{text}}}")));
        let _ = block_on(read(one(schema.clone()), &text));
        let _ = block_on(read(one(schema), &junk));
    }

    #[test]
    fn what_is_valid_is_sent_as_it_was_given(schema in schema(), text in json_text()) {
        let schema = one(schema);
        let text = format!("{{\"x\":{text}}}");
        let value: Result<Value, _> = serde_json::from_str(&text);
        let valid = value.is_ok_and(|value| {
            !may_be_rounded(&value) && jsonschema::options().build(&schema).unwrap().is_valid(&value)
        });
        if let (true, Ok(sent)) = (valid, block_on(read(schema, &text))) {
            prop_assert_eq!(sent, tokens(&text));
        }
    }
}
