//! A place for one test: a home and a working folder of its own, and the plugins of `examples/`.
#![allow(dead_code, reason = "each test crate uses its part")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// A home and a working folder of their own.
pub(crate) struct Place {
    root: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("place")).unwrap();
        fs::create_dir_all(root.path().join("home/.lemon")).unwrap();
        Self { root }
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn user_config(&self, text: &str) {
        self.write("home/.lemon/config.toml", text);
    }

    /// A `--plugin` value that starts a plain MCP server with these tools, in JSON.
    pub(crate) fn server_with(&self, tools: &str) -> String {
        let tools: serde_json::Value = serde_json::from_str(tools).unwrap();
        let answer = r#"printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1""#;
        let script = format!(
            r#"tools='{tools}'
answer() {{ {answer}; }}
while read -r line; do
    id=$(printf %s "$line" | grep -oE '"id":[0-9]+' | grep -oE '[0-9]+')
    case $line in
    *'"initialize"'*) answer '{{"protocolVersion":"2025-06-18","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"s","version":"1"}}}}' ;;
    *'"tools/list"'*) answer "{{\"tools\":$tools}}" ;;
    esac
done
"#
        );
        self.write("server.sh", &script);
        format!("server={}", self.path("server.sh").to_str().unwrap())
    }

    #[expect(clippy::disallowed_methods, reason = "the program under test is started like any user does")]
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.path("home"))
            .current_dir(self.path("place"))
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn lemon(&self, args: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_lemon"));
        command.args(args);
        command
    }

    /// Exit code, stdout and stderr, with this place's own paths taken out.
    pub(crate) fn run(&self, args: &[&str]) -> String {
        self.shown(self.lemon(args))
    }

    pub(crate) fn run_with_stdin(&self, stdin: &str, args: &[&str]) -> String {
        self.write("stdin", stdin);
        let mut command = self.lemon(args);
        command.stdin(fs::File::open(self.path("stdin")).unwrap());
        self.shown(command)
    }

    pub(crate) fn shown(&self, mut command: Command) -> String {
        let output = command.output().unwrap();
        let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let mut text = format!("exit {}\n", output.status.code().unwrap());
        for (name, stream) in [("stdout", stdout), ("stderr", stderr)] {
            if !stream.is_empty() {
                text.push_str(&format!("--- {name}\n{stream}"));
            }
        }
        let root = self.root.path().canonicalize().unwrap();
        text.replace(root.to_str().unwrap(), "[ROOT]").replace(examples().to_str().unwrap(), "[EXAMPLES]")
    }

    /// Stdout of a run that must go well.
    pub(crate) fn json(&self, args: &[&str]) -> serde_json::Value {
        let output = self.lemon(args).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    }
}

pub(crate) fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").canonicalize().unwrap()
}

pub(crate) fn hello_python() -> String {
    let path = examples().join("hello-python/hello.py");
    path.to_str().unwrap().to_owned()
}

pub(crate) fn hello_shell() -> String {
    let path = examples().join("hello-shell/hello.sh");
    format!("shell={}", path.to_str().unwrap())
}

/// A `--plugin` value that starts the zoo with one fault.
pub(crate) fn zoo(fault: &str) -> String {
    let zoo = examples().join("../tests/misbehaving/misbehave.py").canonicalize().unwrap();
    format!("zoo=python3 {} {fault}", zoo.to_str().unwrap())
}
