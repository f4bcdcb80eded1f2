//! Writes each vector as a seed into `corpus/lines/`, once within the line limit and once above it.

use std::path::Path;

use serde_json::Value;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let corpus = folder.join("corpus/lines");
    std::fs::create_dir_all(&corpus)?;
    for entry in std::fs::read_dir(folder.join("../vectors"))? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let group: Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
        for vector in group["vectors"].as_array().into_iter().flatten() {
            let id = vector["id"].as_str().ok_or("a vector without an id")?;
            let line = match (vector["line"].as_str(), vector["bytes_hex"].as_str()) {
                (Some(line), _) => line.as_bytes().to_vec(),
                (None, hex) => bytes(hex.ok_or("a vector without a line")?)?,
            };
            for (name, limit) in [("", 255), ("-oversized", 1)] {
                let seed = [&[limit, 15], line.as_slice(), b"\n"].concat();
                std::fs::write(corpus.join(format!("{id}{name}")), seed)?;
            }
        }
    }
    Ok(())
}

fn bytes(hex: &str) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    hex.as_bytes()
        .chunks(2)
        .map(|pair| Ok(u8::from_str_radix(std::str::from_utf8(pair)?, 16)?))
        .collect()
}
