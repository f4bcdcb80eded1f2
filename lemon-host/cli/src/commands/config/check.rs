//! `lemon config check`: whether the config files, and all that they name, can be used.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anstyle::AnsiColor;
use lemon_host::{
    Class, Config, ConfigError, EnvValue, LookupError, PluginName, PluginSpec, Provenance, Setting, StartError,
    StoredSecrets, Surroundings,
};
use serde::Serialize;
use serde_json::Value;

use super::plugins::schema_of;
use crate::args::{CheckConfig, Global};
use crate::config::{self, Refused, Setup, of_config, of_secrets};
use crate::errors::{Failure, missing_secret, safe, shown};
use crate::exit::Exit;
use crate::output::Output;
use crate::table::indent;

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    /// Whether there are no errors.
    valid: bool,
    files: Vec<String>,
    findings: &'a [Finding],
}

/// One thing that is wrong or odd.
#[derive(Debug, Serialize)]
struct Finding {
    severity: Severity,
    /// None for what stands in no file, such as a flag.
    file: Option<PathBuf>,
    line: Option<usize>,
    column: Option<usize>,
    what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// The line of the file with a mark under the place.
    #[serde(skip)]
    source: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Severity {
    Error,
    Warning,
}

impl Finding {
    fn error(at: Option<&Setting>, what: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            file: at.map(|setting| setting.origin.file.clone()),
            line: at.map(|setting| setting.origin.line),
            column: at.map(|setting| setting.column),
            what: what.into(),
            hint: None,
            source: None,
        }
    }

    fn warning(what: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(None, what) }
    }

    fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

/// Checks it.
///
/// # Errors
/// When there is no working folder, or the answer can't be written.
pub(super) async fn check(request: &CheckConfig, global: &Global, output: &Output) -> Result<Exit, Failure> {
    let mut checking = Checking::default();
    if request.files.is_empty() {
        checking.all(global).await;
    } else {
        let cwd = config::working_folder(global)?;
        checking.these(&request.files, cwd).await;
    }
    let Checking { files, mut findings } = checking;
    findings.sort_by(|a, b| (&a.file, a.line, a.column).cmp(&(&b.file, b.line, b.column)));
    let valid = findings.iter().all(|finding| finding.severity != Severity::Error);
    if request.json {
        let files = files.iter().map(|file| file.to_string_lossy().into_owned()).collect();
        output.json(&Report { valid, files, findings: &findings }).await?;
    } else {
        output.report(&text(&files, &findings)).await?;
    }
    Ok(if valid { Exit::Done } else { Exit::Usage })
}

#[derive(Default)]
struct Checking {
    files: Vec<PathBuf>,
    findings: Vec<Finding>,
}

impl Checking {
    /// All that is read, with what comes of it.
    async fn all(&mut self, global: &Global) {
        let (setup, failures) = match config::gather(global) {
            Ok(setup) => (setup, Vec::new()),
            Err(Refused { setup, failures }) => (*setup, failures),
        };
        let found = setup.sources.files.iter().filter(|file| file.found);
        self.files = found.map(|file| file.path.clone()).collect();
        setup.layers.iter().for_each(|layer| self.warnings(&layer.config));
        let settings: Vec<_> = setup.layers.iter().flat_map(|layer| layer.config.settings.clone()).collect();
        let mut names = BTreeSet::new();
        // One that is overruled is not started.
        for spec in setup.specs.iter().filter(|spec| names.insert(&spec.name)) {
            self.plugin(spec, &settings, &setup).await;
        }
        for (line, hint) in setup.held_lines() {
            self.findings.push(Finding { hint, ..Finding::warning(line) });
        }
        let of_files: BTreeSet<_> =
            setup.layers.iter().flat_map(|layer| &layer.config.warnings).map(ToString::to_string).collect();
        let others = setup.warnings.iter().filter(|warning| !of_files.contains(*warning));
        self.findings.extend(others.map(Finding::warning));
        failures.into_iter().for_each(|failure| self.failure(failure));
    }

    /// Files that may not be read otherwise, each by itself.
    async fn these(&mut self, files: &[PathBuf], cwd: PathBuf) {
        let home = config::lemon_home();
        let surroundings = Surroundings::of(&cwd, config::user_home().as_deref(), home.as_deref());
        let mut setup = Setup { cwd, untrusted: surroundings.folder, ..Setup::default() };
        match home.as_deref().map(StoredSecrets::read).transpose() {
            Ok(secrets) => setup.secrets = secrets.unwrap_or_default(),
            Err(error) => self.failure(of_secrets(&error)),
        }
        let of_project = surroundings.project.and_then(|project| project.config().canonicalize().ok());
        for file in files {
            self.files.push(file.clone());
            let is_project = file.canonicalize().is_ok_and(|file| Some(file) == of_project);
            let read = Config::text(file).and_then(|text| match is_project {
                true => Config::parse_project(&text, file),
                false => Config::parse(&text, file),
            });
            let config = match read {
                Ok(config) => config,
                Err(error) => {
                    self.failure(of_config(&error));
                    match error {
                        ConfigError::Invalid { partial, .. } => *partial,
                        _ => continue,
                    }
                }
            };
            self.warnings(&config);
            let plugins = config.plugins.into_iter().map(|(name, entry)| (Class::Extension, name, entry));
            let servers = config.servers.into_iter().map(|(name, entry)| (Class::Mcp, name, entry));
            for (class, name, entry) in plugins.chain(servers) {
                let is_whole = !entry.command.is_empty() || entry.path.is_some();
                if is_whole && entry.enabled {
                    self.plugin(&PluginSpec::from_config(name, class, entry), &config.settings, &setup).await;
                }
            }
        }
    }

    fn failure(&mut self, failure: Failure) {
        if failure.problems.is_empty() {
            let why = failure.why.map(|why| format!(": {why}")).unwrap_or_default();
            let finding = Finding::error(None, format!("{}{why}", failure.what));
            return self.findings.push(Finding { hint: failure.hint, ..finding });
        }
        self.findings.extend(failure.problems.iter().map(|problem| Finding {
            severity: Severity::Error,
            file: Some(problem.origin.file.clone()),
            line: Some(problem.origin.line),
            column: Some(problem.column),
            what: problem.message.clone(),
            hint: None,
            // Without its first line, which says the same.
            source: problem.to_string().split_once('\n').map(|(_, source)| source.to_owned()),
        }));
    }

    fn warnings(&mut self, config: &Config) {
        self.findings.extend(config.warnings.iter().map(|warning| Finding {
            severity: Severity::Warning,
            file: Some(warning.origin().file.clone()),
            line: Some(warning.origin().line),
            column: Some(warning.column()),
            what: warning.message(),
            hint: warning.nearest().map(|nearest| format!("did you mean `{nearest}`?")),
            source: None,
        }));
    }

    /// A plugin that would be started.
    async fn plugin(&mut self, spec: &PluginSpec, settings: &[Setting], setup: &Setup) {
        let place = Places { spec, settings };
        let name = &spec.name;
        let error = |at, what: String| Finding::error(at, format!("plugin {name}: {what}"));
        if let Some(fault) = spec.fault() {
            let finding = error(place.of(&["path"]), fault.to_string());
            return self.findings.push(finding.hint("`lemon plugin validate` says more"));
        }
        let untrusted: Vec<_> = setup.untrusted.iter().cloned().collect();
        if let Err(fault) = spec.find_program(&setup.cwd, &untrusted) {
            self.findings.push(error(place.of(&["command"]), fault.to_string()).hint(of_program(&fault, spec)));
        }
        for (variable, value) in &spec.env {
            if let EnvValue::Secret(secret) = value
                && setup.secrets.place(secret).is_none()
            {
                self.missing(name, place.of(&["env", variable]), secret);
            }
        }
        let mut is_complete = true;
        for (key, value) in &spec.config {
            for secret in secrets(value).filter(|secret| setup.secrets.place(secret).is_none()) {
                is_complete = false;
                self.missing(name, place.of(&["config", key]), secret);
            }
        }
        let Some(schema) = schema_of(spec, setup).filter(|_| is_complete) else { return };
        for fault in schema.faults(&spec.config, &setup.secrets).await {
            let key = fault.pointer.split('/').nth(1).map(|key| key.replace("~1", "/").replace("~0", "~"));
            let at = place.of(&key.as_ref().map_or(vec!["config"], |key| vec!["config", key]));
            let hint = format!("`lemon plugin config {name}` shows and sets its settings");
            self.findings.push(error(at, format!("config does not fit its manifest: {fault}")).hint(hint));
        }
    }

    fn missing(&mut self, plugin: &PluginName, at: Option<&Setting>, secret: &str) {
        let what = format!("plugin {plugin}: the secret `{}` is not set", shown(secret));
        self.findings.push(Finding::error(at, what).hint(missing_secret(secret)));
    }
}

/// Where the keys of a plugin stand.
struct Places<'a> {
    spec: &'a PluginSpec,
    settings: &'a [Setting],
}

impl<'a> Places<'a> {
    /// The place of a key, else of the first of the entry.
    fn of(&self, key: &[&str]) -> Option<&'a Setting> {
        let name = self.spec.name.as_str();
        let inner = |setting: &'a Setting| match setting.path.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["plugins", plugin, ..] if plugin == name => Some((setting, &setting.path[2..])),
            ["mcp", "servers", plugin, ..] if plugin == name => Some((setting, &setting.path[3..])),
            _ => None,
        };
        // An entry has its keys behind its name; what another file says of one of that name is no part of it.
        let entry = match &self.spec.provenance {
            Provenance::Config { file, line } => Some((file, *line)),
            _ => None,
        };
        let is_in = |setting: &Setting| {
            entry.is_none_or(|(file, line)| setting.origin.file == *file && setting.origin.line >= line)
        };
        let of_entry: Vec<_> = self.settings.iter().filter(|setting| is_in(setting)).filter_map(inner).collect();
        let begins =
            |(_, path): &(&Setting, &[String])| path.len() >= key.len() && path.iter().zip(key).all(|(a, b)| a == b);
        of_entry.iter().find(|it| begins(it)).or(of_entry.first()).map(|(setting, _)| *setting)
    }
}

/// The names in all `{ secret = "NAME" }` of a value.
fn secrets(value: &Value) -> Box<dyn Iterator<Item = &str> + '_> {
    match value {
        Value::Object(members) => match members.get("secret").filter(|_| members.len() == 1).and_then(Value::as_str) {
            Some(secret) => Box::new(std::iter::once(secret)),
            None => Box::new(members.values().flat_map(secrets)),
        },
        Value::Array(items) => Box::new(items.iter().flat_map(secrets)),
        _ => Box::new(std::iter::empty()),
    }
}

fn of_program(fault: &StartError, spec: &PluginSpec) -> &'static str {
    match fault {
        StartError::Lookup(error) => match &**error {
            LookupError::NotExecutable { .. } => "run `chmod +x` on it",
            LookupError::NotFound { .. } if spec.manifest.is_some() => {
                "if its manifest has `build`, run that by hand first: no session runs it"
            }
            _ => "install the program, or give its whole path",
        },
        _ => "correct the command",
    }
}

fn text(files: &[PathBuf], findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let (style, word) = match finding.severity {
            Severity::Error => (AnsiColor::Red.on_default(), "error"),
            Severity::Warning => (AnsiColor::Yellow.on_default(), "warning"),
        };
        let path = finding.file.as_ref().map(|file| shown(&file.to_string_lossy()));
        let place = match (&path, finding.line, finding.column) {
            // As editors and terminals make a link of it.
            (Some(file), Some(line), Some(column)) => format!("{file}:{line}:{column}: "),
            (Some(file), ..) => format!("{file}: "),
            _ => String::new(),
        };
        text.push_str(&format!("{place}{style}{word}{style:#}: {}\n", indent(&safe(&finding.what), 2)));
        let more =
            finding.source.iter().cloned().chain(finding.hint.iter().map(|hint| format!("hint: {}", shown(hint))));
        more.for_each(|more| text.push_str(&format!("  {}\n", indent(&more, 2))));
    }
    let of = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let (errors, warnings) = (of(Severity::Error), of(Severity::Warning));
    text.push_str(&format!(
        "{}: {}, {}\n",
        counted(files.len(), "file"),
        counted(errors, "error"),
        counted(warnings, "warning")
    ));
    text
}

fn counted(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}
