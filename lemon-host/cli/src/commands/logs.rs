//! `lemon plugin logs`: what a plugin wrote to stderr, in this run of lemon or another one.

mod file;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lemon_host::{PluginName, PluginText};
use tokio_util::sync::CancellationToken;

use self::file::Log;
use super::last_of;
use crate::args::{self, Global};
use crate::config;
use crate::errors::{self, Failure, shown};
use crate::exit::Exit;
use crate::output::{Output, Reader};

/// How soon a new line is seen. Watching the folder would not be sooner than anybody notices, and misses what another
/// machine writes.
const LOOK: Duration = Duration::from_millis(200);

/// The longest line is 8 KiB, of which each byte may be shown as an escape.
const CAP: usize = 128 * 1024;

/// How much is written at once.
const PIECE: usize = 256 * 1024;

/// The command without a host: a plugin is known by the config, or by its log alone.
pub(super) async fn alone(
    request: &args::Logs,
    global: &Global,
    output: &Output,
    cancel: &CancellationToken,
) -> Result<Exit, Failure> {
    let folder = config::lemon_home().map(|home| home.join("logs"));
    let is_kept = log_of(folder.as_deref(), &request.name).is_some_and(|log| file::exists(&log));
    let known = match config::gather(global) {
        Ok(setup) => setup.names(),
        // The log can be read whatever is wrong with the config.
        Err(_) if is_kept => Vec::new(),
        Err(refused) => return Err(last_of(refused, output)),
    };
    logs(request, folder.as_deref(), &known, output, cancel).await
}

/// Shows the end of the log, and follows it if that is asked for.
///
/// # Errors
/// There is no such plugin, or its log can't be read.
pub(crate) async fn logs(
    request: &args::Logs,
    folder: Option<&Path>,
    known: &[PluginName],
    output: &Output,
    cancel: &CancellationToken,
) -> Result<Exit, Failure> {
    let name = &request.name;
    let Some(path) = log_of(folder, name) else {
        let known: Vec<_> = known.iter().map(PluginName::as_str).collect();
        return Err(match folder {
            None => {
                Failure::new(Exit::Usage, "no logs are kept, as HOME is not set").hint("set LEMON_HOME to a folder")
            }
            Some(_) => errors::unknown_plugin(name, &known),
        });
    };
    let unreadable = |error: io::Error| {
        let what = format!("the log {} can't be read", shown(&path.to_string_lossy()));
        Failure::new(Exit::Internal, what).why(error.to_string())
    };
    if !file::exists(&path) {
        if !known.iter().any(|known| known.as_str() == name) {
            let known: Vec<_> = known.iter().map(PluginName::as_str).collect();
            return Err(errors::unknown_plugin(name, &known));
        }
        output.warning(format!("plugin {name} has written nothing to its log yet"));
        if !request.follow {
            return Ok(Exit::Done);
        }
    }
    let mut log = Log::new(path.clone());
    let (lines, left_out) = log.last(request.lines).map_err(unreadable)?;
    if left_out > 0 {
        output.note(format!("{left_out} more before these; `-n all` shows them all"));
    }
    let mut reader = write(&lines, output).await?;
    if !request.follow {
        return Ok(Exit::Done);
    }
    while let Reader::There = reader {
        super::unless(cancel, tokio::time::sleep(LOOK)).await?;
        let news = log.news().map_err(unreadable)?;
        if news.is_gap {
            output.warning(format!(
                "the log of plugin {name} was filled more than once in between: lines may be missing"
            ));
        }
        reader = if news.lines.is_empty() { Output::reader() } else { write(&news.lines, output).await? };
    }
    Ok(Exit::Done)
}

fn log_of(folder: Option<&Path>, name: &str) -> Option<PathBuf> {
    let name: PluginName = name.parse().ok()?;
    Some(folder?.join(format!("{name}.log")))
}

/// Writes lines so that no terminal obeys them.
async fn write(lines: &[String], output: &Output) -> Result<Reader, Failure> {
    let mut piece = String::new();
    for line in lines {
        piece.push_str(&format!("{}\n", PluginText::new(line.as_str()).capped(CAP)));
        if piece.len() > PIECE && output.lines(std::mem::take(&mut piece)).await? == Reader::Gone {
            return Ok(Reader::Gone);
        }
    }
    if piece.is_empty() { Ok(Reader::There) } else { output.lines(piece).await }
}
