//! What each field of a manifest must be. How it is run is checked in `running`, what it offers in `offers`.

use lemon_protocol::manifest::{AuditStatus, DistributionSource, MAX_NAME, Permission, ProviderType, SCHEMA_VERSION};

use super::checking::{Checking, Field, quoted};
use super::problem::ProblemKind;
use super::tree::Value;
use super::{offers, running};
use crate::plugin::PluginName;

const KEYS: &[&str] = &[
    "$schema",
    "schema_version",
    "name",
    "version",
    "description",
    "host",
    "hosts",
    "build",
    "protocol",
    "platforms",
    "multiSession",
    "exclusive",
    "toolsDependOnCwd",
    "idempotent",
    "env",
    "permissions",
    "tools",
    "commands",
    "hooks",
    "config_schema",
    "capabilities",
    "providers",
    "distribution",
    "audit",
];

/// Names that no extension has: those of the host and of its own tools' sources, so that no report can be misread.
const RESERVED: &[&str] = &["lemon", "host", "builtin", "core", "system", "mcp", "extension", "plugin"];

/// Checks the whole.
pub(super) fn manifest(root: &Field<'_>, checking: &mut Checking<'_>) {
    checking.duplicates(root);
    checking.known(root, KEYS);
    if let Some(field) = checking.required(root, "schema_version", "the version of the manifest's form, 1") {
        schema_version(&field, checking);
    }
    if let Some(field) = checking.required(root, "name", "the extension's name") {
        name(&field, checking);
    }
    if let Some(field) = checking.required(root, "version", "the extension's version") {
        checking.filled(&field, "a text such as \"1.0.0\"");
    }
    for key in ["$schema", "description"] {
        if let Some(field) = root.get(key) {
            checking.text(&field, "a text");
        }
    }
    for key in ["multiSession", "exclusive", "toolsDependOnCwd"] {
        if let Some(field) = root.get(key) {
            checking.boolean(&field);
        }
    }
    running::check(root, checking);
    offers::check(root, checking);
    if let Some(field) = root.get("env") {
        env(&field, checking);
    }
    if let Some(field) = root.get("permissions") {
        permissions(&field, checking);
    }
    for item in root.get("capabilities").and_then(|field| checking.list(&field, "a list of texts")).unwrap_or_default()
    {
        checking.filled(&item, "a text such as \"tools\"");
    }
    for item in root.get("providers").and_then(|field| checking.list(&field, "a list of objects")).unwrap_or_default() {
        provider(&item, checking);
    }
    if let Some(field) = root.get("distribution") {
        let what = "a source of distributions";
        one_or_object(&field, "source", what, &DistributionSource::NAMES, &["source", "url", "ref", "path"], checking);
        if let Some(url) = field.get("url") {
            checking.text(&url, "a text");
        }
    }
    if let Some(field) = root.get("audit") {
        let keys = ["status", "date", "by", "url", "notes"];
        one_or_object(&field, "status", "a status of audits", &AuditStatus::NAMES, &keys, checking);
    }
}

fn schema_version(field: &Field<'_>, checking: &mut Checking<'_>) {
    let version = match &field.node.value {
        Value::Number(text) | Value::String(text) => text,
        _ => return checking.expected(field, "the number 1"),
    };
    if *version != SCHEMA_VERSION.to_string() {
        let message = format!("{} is not a version of manifests that this lemon reads: it reads 1", quoted(version));
        checking.note(ProblemKind::SchemaVersion, field, message, "write 1, or use a newer lemon");
    }
}

fn name(field: &Field<'_>, checking: &mut Checking<'_>) {
    let Some(name) = checking.filled(field, "a text such as \"my-extension\"") else { return };
    if let Err(error) = name.parse::<PluginName>() {
        let odd = name.chars().find(|c| !c.is_ascii());
        let (message, hint) = match odd {
            Some(odd) => (
                format!("{error}; U+{:04X} is none of these, even where it looks like one", u32::from(odd)),
                "type the name anew on a Latin keyboard".to_owned(),
            ),
            None if name.len() > MAX_NAME => (error.to_string(), "shorten it".to_owned()),
            None => (error.to_string(), format!("write {:?}", PluginName::from_any(name).as_str())),
        };
        return checking.note(ProblemKind::Name, field, message, hint);
    }
    if let Some(reserved) = imitated(name) {
        let message = match reserved == name {
            true => format!("{name:?} is a name of the host's own"),
            false => format!("{name:?} reads like {reserved:?}, a name of the host's own"),
        };
        checking.note(ProblemKind::NameReserved, field, message, "choose a name that says what the extension does");
    }
}

/// The reserved name that a name is, or that it is made to look like: `1em0n`, `built-in`.
fn imitated(name: &str) -> Option<&'static str> {
    let bare: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    // `rn` looks like `m`, and `vv` like `w`.
    let skeleton = |text: &str| {
        let alike = |c| match c {
            '0' => 'o',
            '1' | 'i' => 'l',
            '3' => 'e',
            '5' => 's',
            '8' => 'b',
            c => c,
        };
        text.replace("rn", "m").replace("vv", "w").chars().map(alike).collect::<String>()
    };
    RESERVED.iter().copied().find(|reserved| skeleton(&bare) == skeleton(reserved))
}

/// A word, or an object with that word and some other members.
fn one_or_object(field: &Field<'_>, key: &str, what: &str, known: &[&str], keys: &[&str], checking: &mut Checking<'_>) {
    match &field.node.value {
        Value::String(_) => {
            checking.word(field, what, known);
        }
        Value::Object(_) => {
            checking.known(field, keys);
            if let Some(inner) = checking.required(field, key, what) {
                checking.word(&inner, what, known);
            }
        }
        _ => checking.expected(field, &format!("{what} in quotes, or an object with `{key}`")),
    }
}

fn provider(item: &Field<'_>, checking: &mut Checking<'_>) {
    if !checking.object(item, "an object with `type` and `name`") {
        return;
    }
    if let Some(kind) = checking.required(item, "type", "what is provided") {
        checking.word(&kind, "a type of providers", &ProviderType::NAMES);
    }
    if let Some(name) = checking.required(item, "name", "the provider's name") {
        checking.filled(&name, "a text");
    }
}

fn env(field: &Field<'_>, checking: &mut Checking<'_>) {
    if !checking.object(field, "an object of variables, each with the reason why it is wanted") {
        return;
    }
    for (member, request) in field.members() {
        let name = member.key.as_str();
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(plain) || name.starts_with(|c: char| c.is_ascii_digit()) {
            let message = format!("{} is not a variable's name: letters, digits and `_`, no digit first", quoted(name));
            let at = member.key_span.start;
            checking.note_at(ProblemKind::Name, Some(&request.pointer), at, &message, "");
        } else if name.starts_with("LEMON_") {
            let message = format!("{name:?} is set by the host, and can't be asked for");
            let at = member.key_span.start;
            checking.note_at(ProblemKind::NameReserved, Some(&request.pointer), at, &message, "take it out");
        }
        reason(&request, &["why", "required", "secret"], checking);
        for key in ["required", "secret"] {
            if let Some(flag) = request.get(key) {
                checking.boolean(&flag);
            }
        }
    }
}

fn permissions(field: &Field<'_>, checking: &mut Checking<'_>) {
    if !checking.object(field, "an object of permissions, each with the reason why it is asked for") {
        return;
    }
    let known = Permission::ALL.map(Permission::as_str);
    for (member, request) in field.members() {
        if !known.contains(&member.key.as_str()) {
            let message = format!("{} is not a permission: it is one of {}", quoted(&member.key), known.join(", "));
            let hint = crate::catalog::nearest(&member.key, known).map(|near| format!("did you mean {near:?}?"));
            let (at, hint) = (member.key_span.start, hint.unwrap_or_default());
            checking.note_at(ProblemKind::Unsupported, Some(&request.pointer), at, &message, &hint);
        }
        reason(&request, &["why"], checking);
    }
}

/// Why something is asked for, as a text or in an object.
fn reason(field: &Field<'_>, keys: &[&str], checking: &mut Checking<'_>) {
    let what = "the reason in words, which the user is shown";
    match &field.node.value {
        Value::Object(_) => {
            checking.known(field, keys);
            if let Some(why) = checking.required(field, "why", what) {
                checking.filled(&why, what);
            }
        }
        _ => {
            checking.filled(field, what);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_looks_like_one_of_the_hosts_is_found_out() {
        for (name, like) in
            [("lemon", "lemon"), ("1em0n", "lemon"), ("lernon", "lemon"), ("built-in", "builtin"), ("m.c.p", "mcp")]
        {
            assert_eq!(imitated(name), Some(like), "{name}");
        }
        for name in ["lemonade", "hello", "my-plugin", "host-tools", "mcp-time"] {
            assert_eq!(imitated(name), None, "{name}");
        }
    }
}
