//! Questions to someone who sits at a terminal.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::commands::unless;
use crate::errors::{Failure, safe};
use crate::output::Output;

/// Whether somebody can be asked: what they are shown, what is asked and what is answered all go through a terminal.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal() && io::stderr().is_terminal()
}

/// Asks; anything but a yes is a no.
///
/// # Errors
/// When it is called off.
pub(crate) async fn confirm(question: &str, output: &Output, cancel: &CancellationToken) -> Result<bool, Failure> {
    let answer = ask(&format!("{question} [y/N] "), output, cancel).await?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// One line; an empty one at the end of the input.
async fn ask(question: &str, output: &Output, cancel: &CancellationToken) -> Result<String, Failure> {
    // What was told before stands above the question.
    output.flush().await;
    // Without a terminal's new line at the end, which lines of stderr get.
    let mut stderr = io::stderr();
    let _ = stderr.write_all(safe(question).as_bytes()).and_then(|()| stderr.flush());
    let (answered, answer) = oneshot::channel();
    // A thread of its own, which an end of the program does not wait for.
    let _ = std::thread::Builder::new().name("answer".to_owned()).spawn(move || {
        let mut line = String::new();
        let _ = io::stdin().lock().read_line(&mut line);
        let _ = answered.send(line);
    });
    Ok(unless(cancel, answer).await?.unwrap_or_default())
}
