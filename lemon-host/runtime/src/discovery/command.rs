//! `--plugin PATH-OR-COMMAND`: what to start, and what to call it.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use crate::{
    plugin::{PluginName, PluginNameError},
    report::PluginText,
};

/// The extensions of scripts, with the program that runs each; `None` where several may.
const SCRIPTS: &[(&str, Option<&str>)] = &[
    ("py", Some("python3")),
    ("sh", Some("sh")),
    ("js", Some("node")),
    ("mjs", Some("node")),
    ("cjs", Some("node")),
    ("ts", None),
    ("mts", None),
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
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PluginCommand {
    /// What the plugin is called: given as `NAME=`, else made of the script's or program's name.
    pub name: PluginName,
    /// The program and its arguments, for no shell; never empty. A script that was given as a path
    /// is absolute; all other words are as they were given.
    pub argv: Vec<String>,
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
    /// A folder was given.
    #[error("{} is a folder; a folder needs a manifest, which this version does not read yet: give the command instead, such as 'python3 {}'", path(.0), path(&.0.join("plugin.py")))]
    Folder(PathBuf),
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
/// An existing path is that file: an executable is started itself, a script of a known sort by its
/// program. Otherwise a leading `NAME=` names the plugin, and the rest is again a path or else a
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
    if metadata.is_dir() {
        return Err(PluginFlagError::Folder(file));
    }
    if !metadata.is_file() {
        return Err(PluginFlagError::NotAFile(file));
    }
    let Some(shown) = file.to_str().map(str::to_owned) else {
        return Err(PluginFlagError::NotUtf8(file));
    };
    let script = script(text);
    let argv = match script {
        _ if is_executable(&metadata) && (script.is_none() || has_shebang(&file)) => vec![shown],
        Some(Some(program)) => vec![program.to_owned(), shown],
        _ => return Err(PluginFlagError::NotRunnable(file)),
    };
    let name = PluginName::from_any(stem(text));
    Ok(Some(PluginCommand { name, argv }))
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
            Ok(PluginCommand { name, argv })
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
fn script(path: &str) -> Option<Option<&'static str>> {
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
    fn what_cannot_be_started_says_why() {
        let folder = folder_with("notes.txt", "x", false);
        let cwd = folder.path();
        assert!(error("notes.txt", cwd).contains("is not executable"));
        assert!(error(".", cwd).contains("is a folder; a folder needs a manifest"));
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
