//! From a [`PluginSpec`] to a running process with its peer.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lemon_process::lookup::{LookupError, Search, resolve};
use lemon_process::stderr::{LogFile, StderrSink, StderrTail, drain};
use lemon_process::{Control, ProcessSpec, ResourceLimits, environment_base, process_start_time};
use lemon_protocol::manifest::Placeholder;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::generation::Generation;
use super::spec::{PluginSpec, Provenance};
use crate::discovery::{EnvValue, ManifestFile};
use crate::error::StartError;
use crate::event::Event;
use crate::host::Core;
use crate::report::{PluginText, names_a_secret};
use crate::wire::{Peer, PeerOptions};

pub(super) struct Started {
    pub(super) control: Control,
    pub(super) peer: Peer,
    pub(super) stderr: StderrTail,
    pub(super) stderr_task: JoinHandle<()>,
    /// Comes when stderr is at its end.
    pub(super) stderr_done: oneshot::Receiver<()>,
}

/// Starts the process. Its handshake has not begun.
///
/// # Errors
/// A secret that is not set, a program that is not found, or the system's refusal.
pub(super) fn start(
    spec: &PluginSpec,
    generation: Generation,
    base: &Path,
    core: &Arc<Core>,
) -> Result<Started, StartError> {
    if let Some(fault) = &spec.fault {
        return Err(fault.clone());
    }
    let command = spec.argv(|placeholder, manifest| value(placeholder, manifest, spec, base, core))?;
    let cwd = spec.cwd.clone().unwrap_or_else(|| default_cwd(spec, base, core));
    let env = environment(spec, core)?;
    // The host's own PATH as it is, so that a failed look-up can say which entries were ignored.
    let given = || env.iter().find(|(key, _)| key == "PATH").map(|(_, value)| value.clone());
    let path = if spec.env.contains_key("PATH") { given() } else { std::env::var_os("PATH") };
    let (program, args) = command.split_first().map_or(("", &[][..]), |(program, args)| (program, args));
    let program = find(spec, program, path, &core.cwd, &core.untrusted).map_err(Arc::new)?;
    tracing::debug!(plugin = %spec.name, %generation, program = %program.display(), cwd = %cwd.display(), "spawn");
    let mut process = core
        .spawner
        .spawn(&ProcessSpec {
            name: spec.name.to_string(),
            program,
            args: args.iter().map(OsString::from).collect(),
            cwd,
            env,
            limits: ResourceLimits {
                address_space: spec.rlimits.address_space_bytes,
                open_files: spec.rlimits.open_files,
                processes: spec.rlimits.processes,
                cpu_seconds: spec.rlimits.cpu_seconds,
            },
        })
        .map_err(Arc::new)?;
    let control = process.control();
    let options = PeerOptions {
        plugin: spec.name.clone(),
        generation,
        limits: core.limits.clone(),
        timeouts: core.timeouts.clone(),
        inbound: core.inbound(spec),
        tracer: core.tracer.clone(),
        redactor: core.redactor.clone(),
        control: Some(control.clone()),
    };
    let (Some(stdin), Some(stdout), Some(pipe)) = (process.stdin.take(), process.stdout.take(), process.stderr.take())
    else {
        return Err(StartError::Stopped);
    };
    let peer = Peer::start(options, stdin, stdout);
    let stderr = StderrTail::new(core.limits.stderr_tail_bytes);
    let log = core.log_dir.as_ref().map(|dir| log_file(dir, spec, core));
    let redactor = core.redactor.clone();
    let sink =
        StderrSink { tail: stderr.clone(), log: log.clone(), filter: Arc::new(move |line| redactor.redact(line)) };
    let (done, stderr_done) = oneshot::channel();
    let (events, plugin) = (core.events.clone(), spec.name.clone());
    let stderr_task = tokio::spawn(async move {
        drain(pipe, sink).await;
        if let Some(failure) = log.and_then(|log| log.failed()) {
            events.event(&Event::LogFile { plugin, reason: failure.to_string() });
        }
        let _ = done.send(());
    });
    Ok(Started { control, peer, stderr, stderr_task, stderr_done })
}

/// Finds the program that a plugin's command begins with.
pub(super) fn find(
    spec: &PluginSpec,
    program: &str,
    path: Option<OsString>,
    cwd: &Path,
    untrusted: &[PathBuf],
) -> Result<PathBuf, LookupError> {
    // A relative program is the same one for every session; that of an extension is in its folder.
    let of_extension = spec.manifest.as_ref().map(|manifest| &manifest.folder);
    let base = of_extension.or(spec.cwd.as_ref()).map_or(cwd, PathBuf::as_path);
    resolve(program.as_ref(), &Search { path, cwd: base.to_owned(), untrusted: untrusted.to_vec() })
}

/// What a placeholder in a command stands for.
fn value(
    placeholder: Placeholder,
    manifest: &ManifestFile,
    spec: &PluginSpec,
    workspace: &Path,
    core: &Core,
) -> Result<String, StartError> {
    let fault = |reason: String| StartError::Placeholder { placeholder, reason };
    let path = match placeholder {
        Placeholder::ExtensionDir => manifest.folder.clone(),
        Placeholder::Workspace => workspace.to_owned(),
        Placeholder::DataDir => {
            let data = core.data_dir.as_ref().ok_or_else(|| fault("the host keeps no data of plugins".to_owned()))?;
            let own = data.join(spec.name.as_str());
            std::fs::create_dir_all(&own).map_err(|error| fault(format!("{}: {error}", own.display())))?;
            own
        }
    };
    // An argument that means another path must not be made up.
    path.into_os_string().into_string().map_err(|path| fault(format!("{} is not UTF-8", path.to_string_lossy())))
}

/// Where a plugin runs whose entry names no folder: where the host works, but for a command that runs what it finds there,
/// as nobody asked for that: a launcher (`npx x` takes `./node_modules/.bin/x`), or Python with a module.
fn default_cwd(spec: &PluginSpec, base: &Path, core: &Core) -> PathBuf {
    let untrusted = core.untrusted.iter().any(|folder| base.starts_with(folder));
    // An entry of a config file is meant for every folder, so none of them is to decide what it runs.
    let is_of_config = matches!(spec.provenance, Provenance::Config { .. });
    let elsewhere = match spec.is_launcher() {
        true => untrusted || is_of_config,
        false => is_of_config && spec.runs_a_module(),
    };
    match &core.cache_dir {
        Some(dir) if elsewhere && std::fs::create_dir_all(dir).is_ok() => dir.clone(),
        _ if elsewhere => PathBuf::from("/"),
        _ => base.to_owned(),
    }
}

fn log_file(dir: &Path, spec: &PluginSpec, core: &Core) -> LogFile {
    LogFile::new(dir.join(format!("{}.log", spec.name)), core.limits.log_file_bytes)
}

/// The whole environment of a plugin: a small known set of the host's own, what the user gave, and what the host tells
/// of itself, which nothing overrides.
fn environment(spec: &PluginSpec, core: &Core) -> Result<Vec<(OsString, OsString)>, StartError> {
    let mut env = environment_base(std::env::vars_os());
    // A program that looks for others itself, such as env, finds none that the host would not. An empty PATH means
    // the current folder to some.
    let search = Search { path: std::env::var_os("PATH"), cwd: core.cwd.clone(), untrusted: core.untrusted.clone() };
    env.retain(|(key, _)| key != "PATH");
    env.extend(Some(search.trusted_path()).filter(|path| !path.is_empty()).map(|path| ("PATH".into(), path)));
    let mut set = |key: &str, value: OsString| {
        env.retain(|(existing, _)| existing != key);
        env.push((key.into(), value));
    };
    if let Some(dir) = &core.cache_dir {
        // A stale .pyc beside the source would be run in place of the source that was reviewed.
        set("PYTHONPYCACHEPREFIX", dir.join("pycache").into());
    }
    for key in &spec.granted_env {
        let Some(value) = std::env::var_os(key) else { continue };
        // The user was asked about it, so it may be anything.
        if let Some(value) = value.to_str() {
            core.redactor.add(value);
        }
        set(key, value);
    }
    for (key, value) in &spec.env {
        let value = match value {
            EnvValue::Literal(value) => {
                if names_a_secret(key) {
                    core.redactor.add(value);
                }
                value.clone()
            }
            EnvValue::Secret(name) => {
                let wanted_by = format!("env.{key}");
                let secret =
                    core.secrets.get(name).ok_or_else(|| StartError::Secret { name: name.clone(), wanted_by })?;
                core.redactor.add(&secret);
                secret
            }
        };
        set(key, value.into());
    }
    for (name, request) in spec.manifest.iter().filter_map(|manifest| manifest.manifest.env.as_ref()).flatten() {
        match env.iter().find(|(key, _)| key.to_str() == Some(name)) {
            Some((_, value)) if request.secret => {
                value.to_str().map(|value| core.redactor.add(value));
            }
            None if request.required => {
                let why = PluginText::new(request.why.as_str());
                return Err(StartError::Variable { name: name.clone(), why });
            }
            _ => {}
        }
    }
    let mut set = |key: &str, value: OsString| {
        env.retain(|(existing, _)| existing != key);
        env.push((key.into(), value));
    };
    let pid = std::process::id();
    set("LEMON_PLUGIN", spec.name.as_str().into());
    set("LEMON_HOST_PID", pid.to_string().into());
    if let Some(start) = process_start_time(pid) {
        set("LEMON_HOST_START_TIME", start.to_string().into());
    }
    Ok(env)
}
