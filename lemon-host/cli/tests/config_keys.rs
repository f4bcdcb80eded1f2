//! Each key of a config file, in each layer: who may set it shows in `lemon config show`, and docs/config.md says so.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod place;

use std::process::ExitCode;

use lemon_host::trust::{Grant, Sha, TrustStore};
use lemon_host::{Config, ConfigKey, ProjectMay, Surroundings, entry_subject};
use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;

use place::Place;

fn main() -> ExitCode {
    let mut trials = vec![Trial::test("the_docs_have_every_key_and_no_other", the_docs_have_every_key)];
    for key in ConfigKey::all() {
        let name = format!("{}.{}", key.table, key.key);
        trials.push(Trial::test(name, move || each_layer_counts_as_it_may(&key)));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// A value for a key, other than the default.
fn sample(key: &ConfigKey) -> &'static str {
    match (key.table, key.key) {
        ("limits" | "timeouts", _) => "77",
        (table, _) if table.ends_with(".rlimits") => "77",
        ("runtime.extensions", "enabled") => "false",
        (_, "enabled" | "auto_load_default_paths") => "true",
        (_, "extension_paths" | "roots") => "['.']",
        (_, "disabled" | "enabled_only") => "['a*']",
        (_, "command") => "['sh']",
        (_, "path" | "cwd") => "'.'",
        (_, "env") => "{ LEVEL = '1' }",
        (_, "config") => "{ a = 1 }",
        (_, "timeout_ms" | "start_timeout_ms") => "77",
        (_, "rlimits") => "{ open_files = 77 }",
        other => panic!("there is no sample for {other:?}: add one"),
    }
}

/// A file that sets the key, for the plugin `name` if it is one of plugins.
fn file(key: &ConfigKey, name: &str) -> String {
    let table = key.table.replace("NAME", name);
    let entry = table.trim_end_matches(".rlimits");
    let needs_command = key.table.contains("NAME") && !matches!(key.key, "command" | "path");
    let command = if needs_command { "command = ['sh']\n" } else { "" };
    let head = if key.table.contains("NAME") { format!("[{entry}]\n{command}") } else { String::new() };
    let inner = if entry == table && !head.is_empty() { String::new() } else { format!("[{table}]\n") };
    format!("{head}{inner}{} = {}\n", key.key, sample(key))
}

/// What is shown of the key: rows with their sources, those of the plugin `name` if it is one of plugins.
fn rows(place: &Place, key: &ConfigKey, name: &str, args: &[&str], variable: Option<(&str, &str)>) -> Vec<Value> {
    let mut command = place.lemon(&[&["config", "show", "--json"], args].concat());
    command.envs(variable);
    let output = command.output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    let (settings, wanted) = match key.table.split_once(".NAME") {
        None => (report["settings"].clone(), format!("{}.{}", key.table, key.key)),
        Some((_, inner)) => {
            let plugins = report["plugins"].as_array().unwrap();
            let plugin = plugins.iter().find(|plugin| plugin["name"] == name && plugin["state"] == "in_force");
            let settings = plugin.map_or_else(|| Value::Array(Vec::new()), |plugin| plugin["settings"].clone());
            (settings, format!("{inner}.{}", key.key).trim_start_matches('.').to_owned())
        }
    };
    let is_it = |row: &&Value| {
        let found = row["key"].as_str().unwrap();
        found == wanted || found.strip_prefix(&wanted).is_some_and(|rest| rest.starts_with('.'))
    };
    settings.as_array().unwrap().iter().filter(is_it).cloned().collect()
}

fn expect(holds: bool, what: &str, rows: &[Value]) -> Result<(), Failed> {
    if holds { Ok(()) } else { Err(format!("{what}: {rows:?}").into()) }
}

fn comes_from(row: &Value, file: &str) -> bool {
    row["source"]["file"].as_str().is_some_and(|found| found.ends_with(file))
}

fn each_layer_counts_as_it_may(key: &ConfigKey) -> Result<(), Failed> {
    let of_plugin = key.table.contains("NAME");
    let place = Place::new();
    let shown = rows(&place, key, "x", &[], None);
    let is_built_in = shown.iter().all(|row| row["source"]["kind"] == "built_in") && (of_plugin || shown.len() == 1);
    expect(is_built_in, "without a file it is built in", &shown)?;

    place.user_config(&file(key, "x"));
    let shown = rows(&place, key, "x", &[], None);
    let is_users = !shown.is_empty() && comes_from(&shown[0], "home/.lemon/config.toml");
    expect(is_users, "the user's file sets it", &shown)?;

    place.write("place/other.toml", &file(key, "x"));
    let shown = rows(&place, key, "x", &["--config", "other.toml"], None);
    expect(comes_from(&shown[0], "other.toml"), "the file of --config wins", &shown)?;
    if !of_plugin && key.project == ProjectMay::Nothing {
        let overruled = &shown[0]["overruled"][0];
        expect(comes_from(overruled, "home/.lemon/config.toml"), "the user's is told as overruled", &shown)?;
    }
    if key.project == ProjectMay::Tighten {
        expect(comes_from(&shown[1], "home/.lemon/config.toml"), "the user's counts as well", &shown)?;
    }

    if let Some(variable) = key.variable {
        let value = if key.key == "extension_paths" { "/srv" } else { "true" };
        let shown = rows(&place, key, "x", &["--config", "other.toml"], Some((variable, value)));
        expect(shown[0]["source"]["name"] == variable, "the variable wins", &shown)?;
        expect(shown[0]["overruled"].as_array().unwrap().len() == 2, "both files are told as overruled", &shown)?;
    }
    if let Some(flag) = key.flag {
        let value = if key.table == "tools" { "b" } else { "x=sh -c true" };
        let shown = rows(&place, key, "x", &[flag, value], None);
        let is_flags = shown.iter().any(|row| row["source"]["name"] == flag) || key.key == "path" && shown.is_empty();
        expect(is_flags, "the flag counts", &shown)?;
    }
    in_a_project(key)
}

fn in_a_project(key: &ConfigKey) -> Result<(), Failed> {
    let place = Place::new();
    let mut text = file(key, "x");
    if key.key == "path" {
        // Which counts for nothing there.
        text.push_str("command = ['sh']\n");
    }
    place.write("place/.lemon/config.toml", &text);
    let is_projects = |rows: &[Value]| rows.iter().any(|row| comes_from(row, "place/.lemon/config.toml"));
    let shown = rows(&place, key, "x", &[], None);
    expect(!is_projects(&shown), "a project that is not trusted sets nothing", &shown)?;
    trust(&place, &text);
    let shown = rows(&place, key, "x", &[], None);
    expect(is_projects(&shown) == (key.project != ProjectMay::Nothing), "a trusted project", &shown)?;
    if key.project == ProjectMay::Nothing {
        let ignored = &place.json(&["config", "show", "--json"])["ignored"];
        expect(
            ignored.to_string().contains("only the user's own config can set it"),
            "it is told",
            std::slice::from_ref(ignored),
        )?;
    }
    // The user's own is what counts, whatever the project says.
    place.user_config(&file(key, "x"));
    let shown = rows(&place, key, "x", &[], None);
    expect(comes_from(&shown[0], "home/.lemon/config.toml"), "the user's wins over the project's", &shown)
}

/// Trusts the project, and the plugin in its config.
fn trust(place: &Place, text: &str) {
    let (home, folder) = (place.path("home/.lemon"), place.path("place"));
    let project = Surroundings::of(&folder, None, Some(&home)).project.unwrap();
    let config = Config::parse_project(text, &project.config()).unwrap();
    TrustStore::edit(&home, |store| {
        store.trust_project(&project.folder, Some(Sha::of(text.as_bytes())));
        for (name, entry) in config.plugins.iter().chain(&config.servers) {
            let subject = entry_subject(&project, name, entry).unwrap();
            store.trust(name.clone(), subject, Grant::default());
        }
    })
    .unwrap();
}

fn the_docs_have_every_key() -> Result<(), Failed> {
    let built_in = |key: &ConfigKey| {
        let shown = rows(&Place::new(), key, "x", &[], None);
        match (key.table, key.key) {
            (table, "enabled") if table.contains("NAME") => "true".to_owned(),
            (table, _) if table.contains("NAME") => "–".to_owned(),
            _ if shown[0]["value"].is_null() => "–".to_owned(),
            _ => shown[0]["value"].to_string(),
        }
    };
    let row = |key: &ConfigKey| {
        let project = match key.project {
            ProjectMay::Add => "adds",
            ProjectMay::Tighten => "tightens",
            _ => "no",
        };
        let code = |name: Option<&str>| name.map_or_else(|| "–".to_owned(), |name| format!("`{name}`"));
        let name = format!("{}.{}", key.table, key.key);
        let (built_in, variable, flag) = (built_in(key), code(key.variable), code(key.flag));
        format!("| `{name}` | {built_in} | yes | yes | {project} | {variable} | {flag} |\n")
    };
    let head = "| key | built-in | user's file | `--config` | trusted project | variable | flag |\n|---|---|---|---|---|---|---|\n";
    let table: String = std::iter::once(head.to_owned()).chain(ConfigKey::all().iter().map(row)).collect();
    let docs = include_str!("../../../docs/config.md");
    if docs.contains(&format!("{table}\n")) { Ok(()) } else { Err(format!("the table should be\n{table}").into()) }
}
