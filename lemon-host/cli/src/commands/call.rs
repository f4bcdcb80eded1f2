//! `lemon call`: one call, and its answer on stdout.

use std::future::IntoFuture;

use futures_util::FutureExt as _;
use lemon_host::{CallError, Listed, PluginStatus, PluginText, Progress, StateKind, ToolResult};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::told::{no_plugins, shadowed, tell_failed};
use super::{Work, awake};
use crate::args::Call;
use crate::errors::{self, Failure};
use crate::exit::Exit;
use crate::output::Output;

/// Where the progress of a call is shown; none ends it.
pub(crate) type ShowProgress<'a> = dyn Fn(Option<String>) + Send + Sync + 'a;

/// Makes the call and prints its answer.
///
/// # Errors
/// What came instead of an answer, or that the answer is an error.
pub(crate) async fn call(
    request: &Call,
    arguments: String,
    work: &Work,
    cancel: &CancellationToken,
    progress: &ShowProgress<'_>,
) -> Result<Exit, Failure> {
    let Work { host, output, .. } = work;
    let mut found = host.tool(&request.tool);
    if let Err(CallError::UnknownTool { .. }) = found
        && host.status().plugins.iter().any(is_asleep)
    {
        // What a plugin had when it last ran is no proof that it has no other tools now.
        awake(work, cancel).await?;
        found = host.tool(&request.tool);
    }
    let tool = match found {
        Ok(tool) => tool,
        Err(error @ CallError::Disabled { .. }) => return Err(errors::of_call(&error, &request.tool, &[])),
        Err(error) => return Err(not_found(&error, request, work)),
    };
    let _allowed = request.yes.then(|| work.consent.allow(&tool.name));
    let result =
        make(request, arguments, work, cancel, progress).await.map_err(|error| refused(&error, request, work))?;
    if request.json {
        output.raw_json(result.raw().get()).await?;
    } else {
        output.answer(text(&result, Output::is_terminal())).await?;
    }
    if result.is_error() {
        let what = format!("the tool `{}` of {} reported an error", tool.name, tool.source);
        return Err(Failure::new(Exit::ToolError, what).hint("what it says is on stdout"));
    }
    Ok(Exit::Done)
}

/// Tells of the tools that have the name of this one and are not called.
pub(super) fn tell_shadowed(request: &Call, Work { host, output, .. }: &Work) {
    let mut conflicts = host.conflicts();
    conflicts.conflicts.retain(|conflict| conflict.tool_name == request.tool.trim());
    shadowed(&conflicts).into_iter().for_each(|line| output.warning(line));
}

/// Shows progress in a line of the terminal that is rewritten; elsewhere a line for each note, for those who asked.
pub(crate) fn progress_on_stderr(Work { output, verbose, .. }: &Work) -> impl Fn(Option<String>) + Send + Sync {
    move |text| match text {
        Some(text) if *verbose && !output.shows_progress() => output.note(text),
        text => output.progress(text),
    }
}

async fn make(
    request: &Call,
    arguments: String,
    work: &Work,
    cancel: &CancellationToken,
    progress: &ShowProgress<'_>,
) -> Result<ToolResult, CallError> {
    let mut call = work.session.call(&request.tool, arguments).cancelled_by(cancel.clone());
    if let Some(timeout) = request.timeout {
        call = call.deadline(timeout);
    }
    let mut notes = Some(call.progress());
    let mut call = call.into_future();
    let result = loop {
        let note = async {
            match &mut notes {
                Some(notes) => notes.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            result = &mut call => break result,
            note = note => match note {
                Some(note) => progress(Some(progress_line(&request.tool, &note))),
                None => notes = None,
            },
        }
    };
    // What came together with the answer.
    while let Some(Some(note)) = notes.as_mut().and_then(|notes| notes.next().now_or_never()) {
        progress(Some(progress_line(&request.tool, &note)));
    }
    progress(None);
    result
}

fn progress_line(tool: &str, note: &Progress) -> String {
    let message = note.message.clone().or_else(|| last_line(note.partial.as_ref()?));
    let message = message.map(|message| format!(" {}", message.capped(200))).unwrap_or_default();
    let amount = match note.total {
        Some(total) if total > 0.0 => {
            let percent = (note.progress / total * 100.0).clamp(0.0, 100.0);
            format!(" {percent:3.0}% ({}/{total})", rounded(note.progress))
        }
        _ => format!(" {}", rounded(note.progress)),
    };
    format!("{}:{amount}{message}", errors::shown(tool))
}

/// Progress has to grow with each note, if by a trifle that nobody wants to read.
fn rounded(progress: f64) -> f64 {
    (progress * 1000.0).round() / 1000.0
}

/// The end of a partial result, which is what is new in it.
fn last_line(partial: &ToolResult) -> Option<PluginText> {
    let text = partial.texts().last()?;
    text.raw().lines().map(str::trim).rfind(|line| !line.is_empty()).map(PluginText::new)
}

/// Whether a plugin has not run yet, and its tools are known from elsewhere.
fn is_asleep(plugin: &PluginStatus) -> bool {
    plugin.state == StateKind::Dormant && plugin.listed.is_some_and(|listed| listed != Listed::Live)
}

/// What is told of a call that has no result.
fn refused(error: &CallError, request: &Call, Work { setup, host, .. }: &Work) -> Failure {
    let failure = errors::of_call(error, &request.tool, &host.status().plugins);
    match error {
        CallError::Denied { .. } if setup.stale_gate().is_some() => failure.exit(Exit::Untrusted),
        _ => failure,
    }
}

fn not_found(error: &CallError, request: &Call, work: &Work) -> Failure {
    let Work { setup, host, output, .. } = work;
    let failure = errors::of_call(error, &request.tool, &[]);
    if setup.waits_for_trust() {
        return failure
            .exit(Exit::Untrusted)
            .why("it may be one of a plugin that is not trusted")
            .hint("`lemon plugin list` shows all plugins, and `lemon plugin trust` what is to be trusted");
    }
    if host.status().plugins.is_empty() {
        let (why, hint) = no_plugins(setup);
        return failure.why(why).hint(hint);
    }
    let status = host.status();
    let refused = status.plugins.iter().flat_map(|plugin| plugin.quarantined.iter().map(move |tool| (plugin, tool)));
    if let Some((plugin, tool)) = refused.into_iter().find(|(_, tool)| tool.tool.raw() == request.tool) {
        let why = format!("plugin {} lists it, and it can't be offered: {}", plugin.name, tool.reason.line());
        return failure.why(why).hint("tell its author");
    }
    if status.plugins.iter().any(|plugin| !plugin.quarantined.is_empty()) {
        output.warning("some tools of the plugins are not offered; `lemon status` tells which, and why");
    }
    let is_stopped = |plugin: &&PluginStatus| plugin.state == StateKind::Dormant;
    if let Some(PluginStatus { name, .. }) = status.plugins.iter().find(is_stopped) {
        return failure
            .why(format!("it may be one of plugin {name}, which is stopped"))
            .hint(format!("`start {name}` starts it"));
    }
    if tell_failed(work) {
        // Nobody knows what a plugin that failed would have offered.
        return failure.exit(Exit::Plugin).why("plugins have failed, which may be why it is missing");
    }
    failure
}

/// The content blocks, each with a newline at its end.
fn text(result: &ToolResult, terminal: bool) -> String {
    let mut text = String::new();
    for block in result.content() {
        text.push_str(&shown(block, terminal));
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    if result.content().is_empty()
        && let Some(structured) = result.structured_content()
    {
        text.push_str(&in_terminal(structured.get(), terminal));
        text.push('\n');
    }
    text
}

/// Raw for programs, harmless in a terminal.
fn in_terminal(text: &str, terminal: bool) -> String {
    if terminal { PluginText::new(text).block().capped(usize::MAX).to_string() } else { text.to_owned() }
}

/// One content block: a text as it is, anything else as a line that says what it is.
fn shown(block: &RawValue, terminal: bool) -> String {
    let value: Value = serde_json::from_str(block.get()).unwrap_or_default();
    let of = |value: &Value, key: &str| value[key].as_str().map(|text| PluginText::new(text).capped(200).to_string());
    let kind = value["type"].as_str().unwrap_or_default();
    match (kind, value["text"].as_str()) {
        ("text", Some(text)) => in_terminal(text, terminal),
        ("image" | "audio", _) => {
            let bytes = value["data"].as_str().map_or(0, str::len);
            let media = of(&value, "mimeType").unwrap_or_else(|| "of unknown type".to_owned());
            format!("[{kind} {media}, {bytes} bytes of base64]")
        }
        ("resource_link", _) => {
            let name = of(&value, "name").map_or_else(String::new, |name| format!(" ({name})"));
            format!("[resource link {}{name}]", of(&value, "uri").unwrap_or_default())
        }
        ("resource", _) => {
            let resource = &value["resource"];
            let media = of(resource, "mimeType").map_or_else(String::new, |media| format!(", {media}"));
            let size = match (resource["text"].as_str(), resource["blob"].as_str()) {
                (Some(text), _) => format!(", {} bytes of text", text.len()),
                (None, Some(blob)) => format!(", {} bytes of base64", blob.len()),
                (None, None) => String::new(),
            };
            format!("[resource {}{media}{size}]", of(resource, "uri").unwrap_or_default())
        }
        (kind, _) => {
            // Such as a text with half a surrogate pair; `--json` has it as it is.
            let kind = PluginText::new(if kind.is_empty() { "unreadable" } else { kind });
            format!("[{} block, {} bytes of JSON]", kind.capped(80), block.get().len())
        }
    }
}
