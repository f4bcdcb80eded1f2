//! Writes the seeds of each target into `FOLDER/TARGET`: those that are kept in `seeds/`, and what the protocol's vectors
//! have for it.
//!
//!     lemon-fuzz-seeds FOLDER

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

/// What comes before a vector that is no answer to the first request, so that the handshake gets as far as that.
const HELLO: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"experimental":{"dev.lemon/plugin":{"version":"1.0"}}},"serverInfo":{"name":"p","version":"1"}}}"#;

/// What comes after one that is.
const LIST: &str = r#"{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}}"#;

fn main() -> Result<()> {
    let folder = PathBuf::from(std::env::args_os().nth(1).context("usage: lemon-fuzz-seeds FOLDER")?);
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    for target in ["lines", "start", "list", "schema", "arguments", "manifest"] {
        fs::create_dir_all(folder.join(target))?;
        for seed in files(&own.join("seeds").join(target))? {
            let name = seed.file_name().context("a seed without a name")?;
            fs::copy(&seed, folder.join(target).join(name))?;
        }
    }
    for path in files(&own.join("../../protocol/vectors"))? {
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let group: Value = serde_json::from_str(&fs::read_to_string(path)?)?;
        for vector in group["vectors"].as_array().into_iter().flatten() {
            let id = vector["id"].as_str().context("a vector without an id")?;
            if let Some(manifest) = vector["manifest"].as_str() {
                fs::write(folder.join("manifest").join(id), manifest)?;
                continue;
            }
            let line = match (vector["line"].as_str(), vector["bytes_hex"].as_str()) {
                (Some(line), _) => line.as_bytes().to_vec(),
                (None, hex) => bytes(hex.context("a vector without a line")?)?,
            };
            plant(&folder, id, &line)?;
        }
    }
    Ok(())
}

/// Writes what one vector's line is for each target.
fn plant(folder: &Path, id: &str, line: &[u8]) -> Result<()> {
    let write = |target: &str, name: String, seed: Vec<u8>| fs::write(folder.join(target).join(name), seed);
    for (name, limit) in [("", 255), ("-oversized", 1)] {
        write("lines", format!("{id}{name}"), [&[limit, 15], line, b"\n"].concat())?;
    }
    let message: Value = serde_json::from_slice(line).unwrap_or_default();
    let is_first = message["id"] == 1 && message.get("method").is_none();
    let stream: [&[u8]; 2] = if is_first { [line, LIST.as_bytes()] } else { [HELLO.as_bytes(), line] };
    write("start", id.to_owned(), [stream.join(&b'\n').as_slice(), b"\n"].concat())?;
    for (n, tool) in message["result"]["tools"].as_array().into_iter().flatten().enumerate() {
        write("list", format!("{id}-{n}"), format!("{{\"tools\":[{tool}]}}").into_bytes())?;
        write("schema", format!("{id}-{n}"), format!("{}\n{{}}", tool["inputSchema"]).into_bytes())?;
    }
    if let Some(arguments) = message["params"].get("arguments") {
        write("arguments", id.to_owned(), format!("\0{arguments}").into_bytes())?;
    }
    Ok(())
}

/// The files in a folder; none if it is not there.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect()
}

fn bytes(hex: &str) -> Result<Vec<u8>> {
    hex.as_bytes().chunks(2).map(|pair| Ok(u8::from_str_radix(std::str::from_utf8(pair)?, 16)?)).collect()
}
