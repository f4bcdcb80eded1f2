//! What an idle plugin costs the host, in a process of its own: another measure's memory would be used again.

use anyhow::{Context, Result, ensure};
use lemon_host::{Class, Host, PluginSpec, SessionOptions};

use crate::contestant::own_program;
use crate::payload::{Payload, TOOL};

/// KiB of the host for each idle plugin.
pub(crate) fn per_plugin(plugins: usize) -> Result<f64> {
    let (one, many) = (ask(1)?, ask(1 + plugins)?);
    Ok((many - one) / plugins as f64)
}

/// Starts a process that [tells](tell).
#[expect(clippy::disallowed_methods, reason = "the program that is measured is a host and no plugin")]
fn ask(plugins: usize) -> Result<f64> {
    let mut command = std::process::Command::new(own_program()?);
    let output = command.args(["memory", &plugins.to_string()]).stderr(std::process::Stdio::inherit()).output()?;
    ensure!(output.status.success(), "the host with {plugins} plugins ended with {}", output.status);
    let text = String::from_utf8(output.stdout)?;
    text.trim().parse().with_context(|| format!("it said {text:?}"))
}

/// Starts plugins, calls a tool of one, and prints the KiB that are resident.
#[expect(clippy::print_stdout, reason = "it is a program that prints a figure")]
pub(crate) fn tell(plugins: usize) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let cpu = crate::cpu::allowed()?[0].to_string();
    runtime.block_on(async {
        let mut host = Host::builder();
        for n in 0..plugins {
            let command = [own_program()?, "serve-calls".to_owned(), cpu.clone()];
            host = host.plugin(PluginSpec::new(format!("p{n}").parse()?, Class::Extension, command));
        }
        let host = host.start();
        host.settled().await;
        let ready = host.status().plugins.iter().filter(|plugin| plugin.tools == 1).count();
        ensure!(ready == plugins, "{ready} of {plugins} plugins are ready");
        let session = host.session(SessionOptions::default());
        session.call(TOOL, Payload::small().arguments).await?;
        println!("{}", resident()?);
        host.shutdown().await;
        Ok(())
    })
}

/// This process's resident memory, in KiB.
fn resident() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("there is no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
