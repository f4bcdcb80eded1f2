//! The exit codes, in one table that `lemon --help` shows and the README repeats.

use std::process::ExitCode;

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    Done = 0,
    /// The tool answered with an error.
    ToolError = 1,
    /// The command line, the arguments, the config or a manifest are wrong.
    Usage = 2,
    NoSuchTool = 3,
    /// A plugin did not start, crashed, was not ready or broke the protocol.
    Plugin = 4,
    TimedOut = 5,
    /// The program itself failed.
    Internal = 6,
    /// What is wanted is not trusted, and nobody could be asked.
    Untrusted = 7,
    Hangup = 128 + 1,
    Interrupt = 128 + 2,
    Terminate = 128 + 15,
}

/// What each code means.
const MEANINGS: &[(&str, &str)] = &[
    ("0", "it worked; `status` is a report, and ends so even if plugins have failed"),
    ("1", "the tool answered with an error"),
    ("2", "the command line, the arguments of a call, a config file or a manifest are wrong"),
    ("3", "there is no such tool"),
    ("4", "a plugin failed: it did not start, crashed or broke the protocol"),
    ("5", "a call ran out of time"),
    ("6", "`lemon` itself failed, such as on a full disk"),
    ("7", "something needed is not trusted, and nobody was asked; see `lemon plugin trust`"),
    ("129, 130, 143", "a SIGHUP, Ctrl-C or SIGTERM ended it; a second one kills all plugins at once"),
];

/// The table for `--help`.
pub(crate) fn meanings() -> String {
    let line = |(code, meaning): &(&str, &str)| match code.len() {
        1 => format!("  {code}  {meaning}\n"),
        _ => format!("  {code}\n     {meaning}\n"),
    };
    MEANINGS.iter().map(line).collect()
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_has_the_same_table() {
        let row = |(code, meaning): &(&str, &str)| format!("| {code} | {meaning} |\n");
        let table: String = MEANINGS.iter().map(row).collect();
        let readme = include_str!("../../../README.md");
        assert!(readme.contains(&format!("| exit code | means |\n|---|---|\n{table}\n")), "it should be\n{table}");
    }
}
