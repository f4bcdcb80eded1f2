//! Writes `schema/lemon-protocol-1.0.schema.json` from the crate's types; with `--check` only says whether it is fresh.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

const COMMAND: &str = "cargo run -p lemon-protocol --example generate";

fn main() -> ExitCode {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/lemon-protocol-1.0.schema.json");
    let text = format!("{:#}\n", lemon_protocol::schema::document());
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => std::fs::write(&path, text).map_err(|error| format!("failed to write {}: {error}", path.display())),
        ["--check"] => match std::fs::read_to_string(&path) {
            Ok(found) if found == text => Ok(()),
            Ok(_) => Err(format!("{} is stale; run: {COMMAND}", path.display())),
            Err(error) => Err(format!("failed to read {}: {error}; run: {COMMAND}", path.display())),
        },
        _ => Err(format!("usage: {COMMAND} [-- --check]")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            // Nothing is left to be done when even this can't be written.
            let _ = writeln!(std::io::stderr(), "{message}");
            ExitCode::FAILURE
        }
    }
}
