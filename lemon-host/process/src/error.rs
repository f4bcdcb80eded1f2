//! Why a program could not be started.

use std::io;
use std::path::PathBuf;

/// Why a program could not be started. Nothing is left of the attempt.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// There is no such file.
    #[error("no such program: {}", program.display())]
    NotFound {
        /// The program asked for.
        program: PathBuf,
    },
    /// It is a file without the permission to execute it.
    #[error("not executable: {} (chmod +x makes it so)", program.display())]
    NotExecutable {
        /// The program asked for.
        program: PathBuf,
    },
    /// It is a folder.
    #[error("is a directory: {}", program.display())]
    IsDirectory {
        /// The program asked for.
        program: PathBuf,
    },
    /// The script's first line, or the header of the binary, names a program that is not there.
    #[error("the interpreter {interpreter:?} that {} names does not exist{}", program.display(), carriage_return(interpreter))]
    MissingInterpreter {
        /// The program asked for, which is there.
        program: PathBuf,
        /// What it names, as it stands in the file.
        interpreter: String,
    },
    /// The script's first line names a file that may not be executed.
    #[error("the interpreter {interpreter:?} that {} names is not executable", program.display())]
    InterpreterNotExecutable {
        /// The program asked for, which is executable.
        program: PathBuf,
        /// What it names, as it stands in the file.
        interpreter: String,
    },
    /// An executable text file that does not say what runs it.
    #[error("{} is no binary and its first line names no interpreter (such as #!/bin/sh)", program.display())]
    NoInterpreterLine {
        /// The program asked for.
        program: PathBuf,
    },
    /// A binary for another machine or another operating system.
    #[error("{} is built for {found}, this machine is {}", program.display(), std::env::consts::ARCH)]
    WrongArchitecture {
        /// The program asked for.
        program: PathBuf,
        /// What it is built for.
        found: String,
    },
    /// The folder to start in is not there.
    #[error("the working directory {} does not exist", cwd.display())]
    CwdMissing {
        /// The folder asked for.
        cwd: PathBuf,
    },
    /// The folder to start in is a file.
    #[error("the working directory {} is not a directory", cwd.display())]
    CwdNotDirectory {
        /// The folder asked for.
        cwd: PathBuf,
    },
    /// Arguments and environment together are more than the system takes.
    #[error("arguments and environment are too long ({bytes} bytes together)")]
    ArgumentListTooLong {
        /// Their size.
        bytes: usize,
    },
    /// A zero byte can't be passed in an argument, an environment variable or a path.
    #[error("{place} contains a zero byte")]
    ZeroByte {
        /// Where it stands.
        place: &'static str,
    },
    /// Anything else that the system refused.
    #[error("{call} failed for {}: {source}", program.display())]
    Os {
        /// The program asked for.
        program: PathBuf,
        /// The system call.
        call: &'static str,
        /// Its error.
        source: io::Error,
    },
}

/// The one cause of a missing interpreter that can't be seen.
fn carriage_return(interpreter: &str) -> &'static str {
    if interpreter.ends_with('\r') { " (its lines end in carriage returns)" } else { "" }
}
