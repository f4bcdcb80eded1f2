//! Keeps a snapshot of what the library crates offer in public, `public-api.txt` beside each `Cargo.toml`.
//!
//! `cargo run -p lemon-api` writes the snapshots; with `--check` it compares them and fails on a difference, so that no
//! change of a public name, type or implemented trait goes unseen, auto traits (`Send`, `Sync`) aside.
//!
//! The list is made of rustdoc's JSON, which stable toolchains write only when they are told that they may. This program
//! therefore stands in for rustdoc, too: cargo starts it in rustdoc's place, and it starts the real one.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use similar::TextDiff;

/// The crates and their folders.
const CRATES: [(&str, &str); 3] =
    [("lemon-protocol", "protocol"), ("lemon-host", "lemon-host/runtime"), ("lemon-plugin-sdk", "lemon-plugin-sdk")];

/// Set where this program stands in for rustdoc.
const AS_RUSTDOC: &str = "LEMON_API_AS_RUSTDOC";

#[expect(clippy::print_stderr, reason = "a tool for the terminal")]
fn main() -> Result<ExitCode> {
    if env::var_os(AS_RUSTDOC).is_some() {
        return as_rustdoc();
    }
    let check = match env::args().skip(1).collect::<Vec<_>>().as_slice() {
        [] => false,
        [flag] if flag == "--check" => true,
        _ => {
            eprintln!("usage: lemon-api [--check]");
            return Ok(ExitCode::from(2));
        }
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut stale = Vec::new();
    for (name, folder) in CRATES {
        let file = root.join(folder).join("public-api.txt");
        let (now, before) = (public_api(&root, name)?, std::fs::read_to_string(&file).unwrap_or_default());
        if now == before {
            continue;
        }
        if check {
            let diff = TextDiff::from_lines(&before, &now);
            eprintln!("{}", diff.unified_diff().context_radius(0).header("snapshot", "now"));
            stale.push(name);
        } else {
            std::fs::write(&file, now).with_context(|| format!("{} can't be written", file.display()))?;
        }
    }
    if stale.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("the public API of {} has changed; if that is meant, run `cargo run -p lemon-api`", stale.join(", "));
    Ok(ExitCode::FAILURE)
}

/// A line for each public item of a crate.
#[expect(clippy::disallowed_methods, reason = "cargo is no plugin")]
fn public_api(root: &Path, name: &str) -> Result<String> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let made = Command::new(cargo)
        .args(["doc", "--quiet", "--no-deps", "--lib", "--package", name])
        .current_dir(root)
        .env("RUSTDOC", env::current_exe().context("this program has no path")?)
        .env("RUSTDOCFLAGS", "-Zunstable-options --output-format json")
        .env(AS_RUSTDOC, "1")
        .status()
        .context("cargo can't be started")?;
    ensure!(made.success(), "cargo doc of {name} failed: {made}");
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let json = target.join("doc").join(format!("{}.json", name.replace('-', "_")));
    let api =
        public_api::Builder::from_rustdoc_json(json).omit_blanket_impls(true).omit_auto_trait_impls(true).build()?;
    Ok(api.items().map(|item| format!("{item}\n")).collect())
}

#[expect(clippy::disallowed_methods, reason = "rustdoc is no plugin")]
fn as_rustdoc() -> Result<ExitCode> {
    let status = Command::new("rustdoc")
        .args(env::args_os().skip(1))
        .env("RUSTC_BOOTSTRAP", "1")
        .status()
        .context("rustdoc can't be started")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
