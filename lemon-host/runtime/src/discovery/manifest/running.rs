//! How the extension is run: hosts, builds, versions of the protocol, platforms.

use std::path::Path;

use lemon_protocol::ProtocolVersion;
use lemon_protocol::manifest::{HostType, Placeholder, Platform, placeholders};

use super::checking::{Checking, Field, quoted};
use super::problem::ProblemKind;
use super::tree::Value;

/// A program with its arguments.
const ARGV: &str = "a list of texts, the program and its arguments";

pub(super) fn check(root: &Field<'_>, checking: &mut Checking<'_>) {
    if let Some(field) = root.get("host") {
        host(&field, checking);
    }
    for item in root.get("hosts").and_then(|field| checking.list(&field, "a list of hosts")).unwrap_or_default() {
        host(&item, checking);
    }
    for step in root.get("build").and_then(|field| builds(&field, checking)).unwrap_or_default() {
        command(&step, false, checking);
    }
    if let Some(field) = root.get("protocol") {
        protocol(&field, checking);
    }
    for item in root.get("platforms").and_then(|field| checking.list(&field, "a list of texts")).unwrap_or_default() {
        platform(&item, checking);
    }
}

fn host(field: &Field<'_>, checking: &mut Checking<'_>) {
    let (kind, argv) = match &field.node.value {
        Value::String(_) => (checking.word(field, "a type of hosts", &HostType::NAMES), None),
        Value::Object(_) => {
            checking.known(field, &["type", "command"]);
            let kind = checking.required(field, "type", "what runs the extension");
            (kind.and_then(|kind| checking.word(&kind, "a type of hosts", &HostType::NAMES)), field.get("command"))
        }
        _ => return checking.expected(field, "a type of hosts in quotes, or an object with `type` and `command`"),
    };
    match argv {
        Some(argv) => command(&argv, true, checking),
        None if matches!(kind, Some("external" | "mcp")) => {
            let message = "a host that is a process needs `command`: the program and its arguments";
            let hint = r#"write {"type": "external", "command": ["python3", "${extension_dir}/plugin.py"]}"#;
            checking.note(ProblemKind::NoCommand, field, message, hint);
        }
        None => {}
    }
}

/// The steps of a build. One step alone is a mistake that is easily made.
fn builds<'t>(field: &Field<'t>, checking: &mut Checking<'_>) -> Option<Vec<Field<'t>>> {
    let steps = checking.list(field, "a list of commands, each a list of texts")?;
    if steps.iter().any(|step| step.str().is_some()) {
        let message = "it must be a list of commands, each a list of texts; this is one command";
        let hint = format!("write [{}]", checking.raw(field.node).split_whitespace().collect::<Vec<_>>().join(" "));
        checking.note(ProblemKind::WrongType, field, message, hint);
        return None;
    }
    Some(steps)
}

/// Checks a command as far as its words tell.
fn command(field: &Field<'_>, at_start: bool, checking: &mut Checking<'_>) {
    if let Some(words) = field.str().and_then(shlex::split) {
        checking.note(ProblemKind::WrongType, field, format!("it must be {ARGV}"), format!("write {words:?}"));
        return;
    }
    let Some(words) = checking.list(field, ARGV) else { return };
    if words.is_empty() {
        checking.note(ProblemKind::Empty, field, format!("it must be {ARGV}, and is empty"), "");
    }
    for (number, word) in words.iter().enumerate() {
        let text = match number {
            0 => checking.filled(word, "the program's name or path"),
            _ => checking.text(word, "a text"),
        };
        if let Some(text) = text {
            self::word(text, word, number == 0, at_start, checking);
        }
    }
}

fn word(text: &str, field: &Field<'_>, is_program: bool, at_start: bool, checking: &mut Checking<'_>) {
    let named = match placeholders(text) {
        Ok(named) => named,
        Err(fault) => return checking.note(ProblemKind::Placeholder, field, fault.to_string(), ""),
    };
    let workspace = named.contains(&Placeholder::Workspace);
    if workspace && !at_start {
        let message = "a build belongs to no session, so there is no ${workspace}";
        checking.note(ProblemKind::Placeholder, field, message, "use ${extension_dir} or ${data_dir}");
    } else if workspace && is_program {
        let message = "the program must not come from the workspace: whoever writes there would decide what runs";
        checking.note(ProblemKind::PathOutside, field, message, "take it from ${extension_dir} or PATH");
    } else if let Some(path) = within(text, is_program)
        && leaves(path)
    {
        let message = format!("{} leads out of the extension's folder", quoted(text));
        checking.note(ProblemKind::PathOutside, field, message, "put what it names into the folder");
    } else if is_program && text.starts_with('/') {
        let message = "the program is at a fixed place, which may be another one on another machine";
        checking.note(ProblemKind::AbsolutePath, field, message, "give its name alone, which is looked for in PATH");
    }
}

/// The part of a word that is a path in the extension's folder, if it is one.
pub(super) fn within(word: &str, is_program: bool) -> Option<&str> {
    match word.strip_prefix("${extension_dir}") {
        Some("") => Some(""),
        Some(rest) => rest.strip_prefix('/'),
        None => (is_program && word.contains('/') && !word.starts_with(['/', '$'])).then_some(word),
    }
}

/// Whether a relative path is above its beginning at some point.
fn leaves(path: &str) -> bool {
    let mut depth = 0_usize;
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => match depth.checked_sub(1) {
                Some(above) => depth = above,
                None => return true,
            },
            _ => depth += 1,
        }
    }
    false
}

/// Checks the files that commands name.
pub(super) fn files(root: &Field<'_>, folder: &Path, checking: &mut Checking<'_>) {
    let is_built = root.get("build").is_some();
    let hosts = root.get("hosts").map(|hosts| hosts.items()).unwrap_or_default();
    for host in root.get("host").into_iter().chain(hosts) {
        for (number, word) in host.get("command").map(|argv| argv.items()).unwrap_or_default().iter().enumerate() {
            let Some(text) = word.str() else { continue };
            file(text, word, (number == 0, is_built), folder, checking);
        }
    }
}

fn file(
    text: &str,
    word: &Field<'_>,
    (is_program, is_built): (bool, bool),
    folder: &Path,
    checking: &mut Checking<'_>,
) {
    let Some(path) = within(text, is_program) else {
        // A bare name that is a file here, where the plugin will not look for it.
        if !is_program && !text.starts_with(['-', '/', '$']) && is_file_name(text) && folder.join(text).is_file() {
            let message = format!("{} is a file of the extension, but the plugin runs in the workspace", quoted(text));
            let hint = format!("write \"${{extension_dir}}/{text}\"");
            checking.note(ProblemKind::RelativeArgument, word, message, hint);
        }
        return;
    };
    if leaves(path) || path.contains(['\0', '$']) {
        // Told already, or not known before it runs.
        return;
    }
    let named = folder.join(path);
    match named.canonicalize() {
        Ok(real) if !real.starts_with(folder) => {
            let message = format!("{} is a link that leads out of the extension's folder", quoted(text));
            checking.note(ProblemKind::PathOutside, word, message, "put the file itself into the folder");
        }
        Ok(real) if is_program && !real.is_file() => {
            let message = format!("the program {} is not a file", quoted(text));
            checking.note(ProblemKind::ProgramMissing, word, message, "");
        }
        Ok(_) => {}
        // What is built, or what the plugin makes itself, is there later.
        Err(_) if is_built => {}
        Err(_) if is_program => {
            let message = format!("there is no program {} in the extension's folder", quoted(text));
            checking.note(
                ProblemKind::ProgramMissing,
                word,
                message,
                "correct the path, or say in `build` what makes it",
            );
        }
        Err(_) => {
            let message = format!("there is no file {} in the extension's folder", quoted(text));
            checking.note(ProblemKind::FileMissing, word, message, "correct the path, or say in `build` what makes it");
        }
    }
}

/// Whether a word may be the name of a file below the folder.
fn is_file_name(word: &str) -> bool {
    !word.is_empty() && word.len() < 4096 && !word.contains('\0') && !leaves(word)
}

fn protocol(field: &Field<'_>, checking: &mut Checking<'_>) {
    match &field.node.value {
        Value::String(_) => {
            version(field, checking);
        }
        Value::Object(_) => {
            checking.known(field, &["min", "max"]);
            let min = checking.required(field, "min", "the oldest version, such as \"1.0\"");
            let min = min.and_then(|min| version(&min, checking));
            let Some(max) = field.get("max") else { return };
            let last = version(&max, checking);
            if let (Some(min), Some(last)) = (min, last)
                && last < min
            {
                let message = format!("the newest version, {last}, is older than the oldest, {min}");
                checking.note(ProblemKind::Range, &max, message, "swap them");
            }
        }
        _ => checking.expected(field, "a version such as \"1.0\", or an object with `min` and `max`"),
    }
}

fn version(field: &Field<'_>, checking: &mut Checking<'_>) -> Option<ProtocolVersion> {
    let text = checking.text(field, "a version in quotes, such as \"1.0\"")?;
    match text.parse() {
        Ok(version) => Some(version),
        Err(rule) => {
            let message = format!("{} is not a version: {rule}", quoted(text));
            checking.note(ProblemKind::Unsupported, field, message, "");
            None
        }
    }
}

fn platform(field: &Field<'_>, checking: &mut Checking<'_>) {
    let Some(text) = checking.text(field, "a platform such as \"linux\" or \"linux-x86_64\"") else { return };
    if !Platform(text.to_owned()).is_known() {
        let systems = Platform::SYSTEMS.join(", ");
        let message = format!(
            "{} is not a platform: it is one of {systems}, alone or with `-` and one of {}",
            quoted(text),
            Platform::PROCESSORS.join(", ")
        );
        checking.note(ProblemKind::Unsupported, field, message, "");
    }
}
