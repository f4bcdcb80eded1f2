//! Writes the files of `schema/` from the crate's types; with `--check` only says whether they are fresh.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

const COMMAND: &str = "cargo run -p lemon-protocol --example generate";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_check = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        ["--check"] => true,
        _ => return told(Err(format!("usage: {COMMAND} [-- --check]"))),
    };
    let schemas = [
        ("lemon-protocol-1.0.schema.json", lemon_protocol::schema::document()),
        ("lemon-extension-1.schema.json", lemon_protocol::manifest::schema::document()),
    ];
    told(schemas.into_iter().try_for_each(|(name, document)| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema").join(name);
        let text = format!("{document:#}\n");
        if !is_check {
            return std::fs::write(&path, text).map_err(|error| format!("failed to write {}: {error}", path.display()));
        }
        match std::fs::read_to_string(&path) {
            Ok(found) if found == text => Ok(()),
            Ok(_) => Err(format!("{} is stale; run: {COMMAND}", path.display())),
            Err(error) => Err(format!("failed to read {}: {error}; run: {COMMAND}", path.display())),
        }
    }))
}

fn told(outcome: Result<(), String>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            // Nothing is left to be done when even this can't be written.
            let _ = writeln!(std::io::stderr(), "{message}");
            ExitCode::FAILURE
        }
    }
}
