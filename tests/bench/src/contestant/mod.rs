//! What is compared. Each contestant makes calls of a process that it has started.

mod floor;
mod pipeline;
mod raw;

use std::time::Duration;

use anyhow::{Context, Result};
use clap::ValueEnum;
use serde::Serialize;

use crate::payload::Payload;

/// The contestants, in the order of what they do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Name {
    /// Bytes through two pipes, with blocking reads and no protocol
    Raw,
    /// The least that a JSON-RPC host on tokio does: the envelope is parsed and the call found by its id
    Floor,
    /// A tool call through the public interface of lemon-host
    Pipeline,
}

impl Name {
    pub(crate) const ALL: [Self; 3] = [Self::Raw, Self::Floor, Self::Pipeline];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Floor => "floor",
            Self::Pipeline => "pipeline",
        }
    }

    /// Starts the contestant with its other side on that processor.
    pub(crate) fn start(self, cpu: usize) -> Result<Box<dyn Contestant>> {
        Ok(match self {
            Self::Raw => Box::new(raw::Raw::start(cpu)?),
            Self::Floor => Box::new(floor::Floor::start(cpu)?),
            Self::Pipeline => Box::new(pipeline::Pipeline::start(cpu)?),
        })
    }
}

/// Something that makes calls. It fails when an answer is not the right one.
pub(crate) trait Contestant {
    /// Makes one call for each place in `times`, each after the one before, and notes how long each took.
    fn one_by_one(&mut self, payload: &Payload, times: &mut [Duration]) -> Result<()>;

    /// Makes `calls` calls, `width` of them at any time, and tells how long all took.
    fn side_by_side(&mut self, payload: &Payload, calls: usize, width: usize) -> Result<Duration>;
}

/// This program, in another role.
pub(crate) fn own_program() -> Result<String> {
    let path = std::env::current_exe().context("failed to find this program")?;
    path.into_os_string().into_string().map_err(|path| anyhow::anyhow!("{} is not UTF-8", path.display()))
}

/// A process with blocking pipes, which a host would not have.
#[expect(clippy::disallowed_methods, reason = "the contestants stand for what there is without lemon-process")]
fn start_server(words: &[&str]) -> Result<std::process::Child> {
    use std::process::{Command, Stdio};
    let program = own_program()?;
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().context("failed to start the other side")
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().context("failed to start tokio")
}
