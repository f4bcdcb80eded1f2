//! `--plugin PATH-OR-COMMAND`: what to start, and what to call it.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use lemon_protocol::manifest::FILE_NAMES;

use super::manifest::{ManifestError, ManifestFile, NotLoadable};
use crate::{
    plugin::{PluginName, PluginNameError},
    report::PluginText,
};

/// What a Node that runs TypeScript by leaving the types out understands; an older one refuses it, and would otherwise
/// take the file for JavaScript.
pub(crate) const NODE_TYPES: &str = "--experimental-strip-types";

/// The extensions of scripts, with the program that runs each; `None` where several may.
const SCRIPTS: &[(&str, Option<&[&str]>)] = &[
    ("py", Some(&["python3"])),
    ("sh", Some(&["sh"])),
    ("js", Some(&["node"])),
    ("mjs", Some(&["node"])),
    ("cjs", Some(&["node"])),
    ("ts", Some(&["node", NODE_TYPES])),
    ("mts", Some(&["node", NODE_TYPES])),
    ("rb", None),
    ("pl", None),
    ("php", None),
    ("lua", None),
    ("jar", None),
];

/// Programs that run a script, whose name the plugin takes. Versions (`python3.11`) don't count.
const INTERPRETERS: &[&str] = &[
    "bash", "bun", "dash", "deno", "java", "lua", "node", "perl", "php", "pypy", "python", "ruby", "sh", "ts-node",
    "tsx", "zsh",
];

/// Programs that run a package, image or command, whose name the plugin takes.
const LAUNCHERS: &[&str] = &["bunx", "docker", "env", "npm", "npx", "pipx", "pnpm", "podman", "uv", "uvx", "yarn"];

/// Words between one of these and what it runs.
const SUBCOMMANDS: &[&str] = &["dlx", "exec", "run", "tool", "x"];

/// Options of theirs that take the next word as their value.
const VALUED: &[&str] = &[
    "-c",
    "-e",
    "-p",
    "-r",
    "-v",
    "--directory",
    "--env",
    "--eval",
    "--from",
    "--import",
    "--mount",
    "--name",
    "--network",
    "--package",
    "--project",
    "--python",
    "--require",
    "--volume",
    "--with",
];

/// What one `--plugin` names.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PluginCommand {
    /// What the plugin is called: given as `NAME=`, else made of the script's or program's name.
    pub name: PluginName,
    /// The program and its arguments, for no shell; never empty. A script that was given as a path
    /// is absolute; all other words are as they were given.
    pub argv: Vec<String>,
    /// The manifest that says so, where a folder with one or the manifest itself was given; `argv` has its placeholders.
    pub manifest: Option<Arc<ManifestFile>>,
}

/// Why a `--plugin` names nothing that can be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PluginFlagError {
    /// Neither a path nor a command: nothing but white space.
    #[error("it is empty: give a script, a program, or a command with its arguments")]
    Empty,
    /// A quote without its partner, or a backslash at the end.
    #[error("a quote is not closed, or a backslash stands at the end")]
    Unbalanced,
    /// A NUL character, which no argument can hold.
    #[error("it contains a NUL character")]
    Nul,
    /// What stands before `=` is no plugin name.
    #[error("what stands before `=` is the plugin's name, but {0}")]
    Name(#[from] PluginNameError),
    /// The folder has no manifest, or none that is valid.
    #[error(transparent)]
    Manifest(Box<ManifestError>),
    /// The manifest describes something that can't be run here.
    #[error("{}: {why}", path(file))]
    NotLoadable {
        /// The manifest.
        file: PathBuf,
        /// Why.
        why: NotLoadable,
    },
    /// The path is that of a device, socket or pipe.
    #[error("{} is neither a file nor a folder", path(.0))]
    NotAFile(PathBuf),
    /// A single word that looks like a file's path, and there is no such file.
    #[error("there is no file {}", path(.0))]
    Missing(PathBuf),
    /// The file is not executable, and its name does not say what runs it.
    #[error("{file} is not executable and its name does not say what runs it: make it executable with 'chmod +x {file}', or give the command that runs it, as in 'PROGRAM {file}'", file = path(.0))]
    NotRunnable(PathBuf),
    /// The file's absolute path is not UTF-8.
    #[error("the path {} is not UTF-8", path(.0))]
    NotUtf8(PathBuf),
    /// The path can't be looked at.
    #[error("can't look at {}", path(file))]
    Unreadable {
        /// The path.
        file: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Reads the value of one `--plugin`.
///
/// An existing path is that file or folder: an executable is started itself, a script of a known sort by
/// its program, and for a folder the command is that of its [manifest](ManifestFile). Otherwise a leading `NAME=` names the plugin, and the rest is again a path or else a
/// command, split into words as a POSIX shell does it, but with nothing expanded: no variables, no
/// patterns, no comments. Relative paths start from `cwd`, which should be absolute.
///
/// # Errors
///
/// [`PluginFlagError`], which says what to write instead where that is known.
pub fn parse_plugin_flag(text: &str, cwd: &Path) -> Result<PluginCommand, PluginFlagError> {
    if text.contains('\0') {
        return Err(PluginFlagError::Nul);
    }
    if text.trim().is_empty() {
        return Err(PluginFlagError::Empty);
    }
    if let Some(command) = at_path(text, cwd)? {
        return Ok(command);
    }
    let Some((name, rest)) = explicit_name(text) else {
        return in_words(text, cwd);
    };
    let name = name.parse()?;
    let command = match at_path(rest, cwd)? {
        Some(command) => command,
        None => in_words(rest, cwd)?,
    };
    Ok(PluginCommand { name, ..command })
}

/// Splits `NAME=` off. What stands before `=` is a name, good or bad, where it could be nothing
/// else: a path has a `/`, and a command's first word is followed by a space.
fn explicit_name(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.split_once('=')?;
    let is_name = !name.contains(|c: char| c.is_whitespace() || matches!(c, '/' | '\'' | '"' | '\\'));
    is_name.then_some((name, rest))
}

fn at_path(text: &str, cwd: &Path) -> Result<Option<PluginCommand>, PluginFlagError> {
    if text.trim().is_empty() {
        return Err(PluginFlagError::Empty);
    }
    let file: PathBuf = cwd.join(text).components().collect();
    let metadata = match fs::metadata(&file) {
        Ok(metadata) => metadata,
        // A command is no path: too long for one, or it goes through a file as if that were a
        // folder.
        Err(error) if error.kind() != io::ErrorKind::PermissionDenied => return Ok(None),
        Err(source) => return Err(PluginFlagError::Unreadable { file, source }),
    };
    let is_manifest = file.file_name().and_then(|name| name.to_str()).is_some_and(|name| FILE_NAMES.contains(&name));
    if metadata.is_dir() || is_manifest {
        return described(&file).map(Some);
    }
    file_command(&file, &metadata).map(Some)
}

/// What runs a file, and what the plugin is then called.
pub(super) fn file_command(file: &Path, metadata: &fs::Metadata) -> Result<PluginCommand, PluginFlagError> {
    if !metadata.is_file() {
        return Err(PluginFlagError::NotAFile(file.to_owned()));
    }
    let Some(path) = file.to_str() else {
        return Err(PluginFlagError::NotUtf8(file.to_owned()));
    };
    let script = script(path);
    let argv = match script {
        _ if is_executable(metadata) && (script.is_none() || has_shebang(file)) => vec![path.to_owned()],
        Some(Some(program)) => program.iter().copied().chain([path]).map(str::to_owned).collect(),
        _ => return Err(PluginFlagError::NotRunnable(file.to_owned())),
    };
    Ok(PluginCommand { name: PluginName::from_any(stem(path)), argv, manifest: None })
}

/// The extension that a folder's manifest describes.
fn described(path: &Path) -> Result<PluginCommand, PluginFlagError> {
    let manifest = ManifestFile::read(path).map_err(|error| PluginFlagError::Manifest(Box::new(error)))?;
    let argv = match manifest.host() {
        Ok(host) => host.command.clone(),
        Err(why) => return Err(PluginFlagError::NotLoadable { file: manifest.path, why }),
    };
    let name = PluginName::from_any(&manifest.manifest.name);
    Ok(PluginCommand { name, argv, manifest: Some(Arc::new(manifest)) })
}

fn in_words(text: &str, cwd: &Path) -> Result<PluginCommand, PluginFlagError> {
    // The splitter drops what it takes for a comment. No part of a command may vanish, so `#` is
    // replaced by a character that can't be in the text.
    let words = shlex::split(&text.replace('#', "\0")).ok_or(PluginFlagError::Unbalanced)?;
    let argv: Vec<String> = words.into_iter().map(|word| word.replace('\0', "#")).collect();
    match argv.as_slice() {
        [] => Err(PluginFlagError::Empty),
        [program, ..] if program.is_empty() => Err(PluginFlagError::Empty),
        // One word that looks like a path is one, and no program to be sought in PATH.
        [word] if word.contains('/') || script(word).is_some() => {
            at_path(word, cwd)?.ok_or_else(|| PluginFlagError::Missing(cwd.join(word)))
        }
        [program, arguments @ ..] => {
            let name = PluginName::from_any(spoken_name(program, arguments));
            Ok(PluginCommand { name, argv, manifest: None })
        }
    }
}

/// What a command is called: the script or package that it runs, else its program.
fn spoken_name<'a>(program: &'a str, arguments: &'a [String]) -> &'a str {
    let unversioned = last_part(program).trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let interprets = INTERPRETERS.contains(&unversioned);
    if !interprets && !LAUNCHERS.contains(&unversioned) {
        return without_version(stem(program));
    }
    let is_script = |word: &str| script(word).is_some() && !word.starts_with('-');
    let mut rest = arguments;
    while let Some((word, after)) = rest.split_first() {
        let word = word.as_str();
        rest = after;
        if word == "-m" {
            return after.first().map_or(program, |module| module);
        }
        if VALUED.contains(&word) {
            rest = after.get(1..).unwrap_or_default();
            continue;
        }
        let skipped = word.is_empty()
            || word.starts_with('-')
            || SUBCOMMANDS.contains(&word)
            || unversioned == "env" && word.contains('=')
            // Before a script, the value of an option that is not known here.
            || interprets && !is_script(word) && after.iter().any(|later| is_script(later));
        if !skipped {
            // It may run something in its turn: `uv run python3 hello.py`.
            return spoken_name(word, after);
        }
    }
    stem(program)
}

/// `name` of `name@1.2`, `name==1.2`, `name[extra]` and `name:tag`.
fn without_version(package: &str) -> &str {
    package.split(['@', '=', '[', '<', '>', '~', ':']).next().unwrap_or(package)
}

/// The program that runs a script with this name, if the name is a script's.
fn script(path: &str) -> Option<Option<&'static [&'static str]>> {
    let extension = Path::new(path).extension()?;
    let (_, program) = SCRIPTS.iter().find(|(known, _)| extension.eq_ignore_ascii_case(known))?;
    Some(*program)
}

fn last_part(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}

/// The file's name, without the extension of a script.
fn stem(path: &str) -> &str {
    let name = last_part(path);
    match Path::new(name).file_stem().and_then(|stem| stem.to_str()) {
        Some(stem) if script(name).is_some() => stem,
        _ => name,
    }
}

fn has_shebang(file: &Path) -> bool {
    let mut start = [0; 2];
    File::open(file).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == *b"#!"
}

#[cfg(unix)]
fn is_executable(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    metadata.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &fs::Metadata) -> bool {
    true
}

fn path(path: &Path) -> PluginText {
    path.to_string_lossy().into_owned().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> (String, Vec<String>) {
        let command = parse_plugin_flag(text, Path::new("/nowhere")).unwrap();
        (command.name.to_string(), command.argv)
    }

    fn error(text: &str, cwd: &Path) -> String {
        parse_plugin_flag(text, cwd).unwrap_err().to_string()
    }

    fn folder_with(file: &str, text: &str, executable: bool) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(file);
        fs::write(&path, text).unwrap();
        if executable {
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        folder
    }

    #[test]
    fn a_command_is_split_and_nothing_is_expanded() {
        let (_, argv) = words(r#"server 'a b' "c \"d\"" e\ f $HOME *.x ~ '' #tag x#y "\#""#);
        let expected = ["server", "a b", "c \"d\"", "e f", "$HOME", "*.x", "~", "", "#tag", "x#y", "\\#"];
        assert_eq!(argv, expected);
    }

    #[test]
    fn a_command_is_called_after_what_it_runs() {
        for (text, name) in [
            ("mcp-server-time --local-timezone UTC", "mcp-server-time"),
            ("/opt/My.Tool/Server.py x", "server"),
            ("python3 x/hello.py", "hello"),
            ("python3.11 -u x/hello.py --config other.py", "hello"),
            ("python3 -m mcp_server_git", "mcp_server_git"),
            ("node --max-old-space-size 100 dist/index.js", "index"),
            ("npx -y @scope/server-name", "server-name"),
            ("npx -y @scope/server-name@1.2.3 /srv/x.js", "server-name"),
            ("npx tsx src/server.ts", "server"),
            ("uvx --from git+https://x/y mcp-server-time==1.0", "mcp-server-time"),
            ("uv run --with mcp python3 hello.py", "hello"),
            ("env A=1 python3 hello.py", "hello"),
            ("docker run -i --rm -e TOKEN mcp/time:latest", "time"),
            ("deno run -A npm:@scope/x", "x"),
            ("sh -c 'echo hi'", "sh"),
            ("npx", "npx"),
        ] {
            assert_eq!(words(text).0, name, "{text}");
        }
    }

    #[test]
    fn a_name_may_be_given() {
        assert_eq!(words("hello=python3 a.py"), ("hello".into(), vec!["python3".into(), "a.py".into()]));
        assert_eq!(words("python3 -c a=b").0, "python3");
        let nowhere = Path::new("/nowhere");
        assert!(error("FOO=1 python3 a.py", nowhere).contains("`FOO` is not a plugin name"));
        assert!(matches!(parse_plugin_flag("hello= ", nowhere), Err(PluginFlagError::Empty)));
    }

    #[test]
    fn an_existing_script_is_run_by_its_program() {
        for (file, program) in [("My Hello.py", "python3"), ("a.sh", "sh"), ("a.js", "node"), ("a.mjs", "node")] {
            let folder = folder_with(file, "x", false);
            let command = parse_plugin_flag(file, folder.path()).unwrap();
            let path = folder.path().join(file).to_str().unwrap().to_owned();
            assert_eq!(command.argv, [program.to_owned(), path]);
        }
    }

    #[test]
    fn an_executable_is_run_itself() {
        let folder = folder_with("hello", "\x7fELF", true);
        let command = parse_plugin_flag("x=./hello", folder.path()).unwrap();
        assert_eq!(command.argv, [folder.path().join("hello").to_str().unwrap()]);
        assert_eq!(command.name.as_str(), "x");
        let folder = folder_with("hello.py", "#!/usr/bin/env python3\n", true);
        let command = parse_plugin_flag("'hello.py'", folder.path()).unwrap();
        assert_eq!(command.argv.len(), 1);
        assert_eq!(command.name.as_str(), "hello");
    }

    #[test]
    fn a_script_that_is_executable_by_accident_is_run_by_its_program() {
        let folder = folder_with("hello.py", "print()", true);
        assert_eq!(parse_plugin_flag("hello.py", folder.path()).unwrap().argv[0], "python3");
    }

    #[test]
    fn a_path_with_an_equals_sign_is_a_path() {
        let folder = folder_with("a=b.py", "x", false);
        let command = parse_plugin_flag("a=b.py", folder.path()).unwrap();
        assert_eq!((command.name.as_str(), command.argv[0].as_str()), ("a-b", "python3"));
    }

    #[test]
    fn a_folder_and_its_manifest_are_what_the_manifest_says() {
        let text = r#"{"schema_version": 1, "name": "good", "version": "1", "host": {"type": "mcp", "command": ["a", "${workspace}"]}}"#;
        let folder = folder_with("extension.json", text, false);
        for (given, name) in [(".", "good"), ("extension.json", "good"), ("own=.", "own")] {
            let command = parse_plugin_flag(given, folder.path()).unwrap();
            assert_eq!(
                (command.name.as_str(), command.argv.as_slice()),
                (name, &["a", "${workspace}"].map(String::from)[..])
            );
            assert!(command.manifest.unwrap().path.ends_with("extension.json"));
        }
        let folder = folder_with("extension.json", "{}", false);
        assert!(error(".", folder.path()).contains("`name` is missing"));
        let folder = folder_with("extension.json", &text.replace("mcp", "wasm"), false);
        assert!(error(".", folder.path()).contains("extension.json: it can't be loaded yet"));
    }

    #[test]
    fn what_cannot_be_started_says_why() {
        let folder = folder_with("notes.txt", "x", false);
        let cwd = folder.path();
        assert!(error("notes.txt", cwd).contains("is not executable"));
        assert!(error(".", cwd).contains("the folder has no manifest"));
        assert!(error("./nope", cwd).ends_with("/nope"), "{}", error("./nope", cwd));
        assert!(error("nope.py", cwd).starts_with("there is no file"));
        assert!(error("/dev/null", cwd).contains("neither a file nor a folder"));
        assert!(error("sh -c 'x", cwd).contains("quote is not closed"));
        assert!(error("x\\", cwd).contains("backslash"));
        for empty in ["", "  ", "''", "'' x"] {
            assert!(matches!(parse_plugin_flag(empty, cwd), Err(PluginFlagError::Empty)), "{empty}");
        }
        assert!(matches!(parse_plugin_flag("a\0b", cwd), Err(PluginFlagError::Nul)));
    }
}
