//! What a failed start says.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use lemon_process::{ProcessSpec, SpawnError, Spawner};

use super::Test;
use super::support::*;

pub(crate) const TESTS: &[Test] = &[
    ("each_failure_has_its_own_error", each_failure_has_its_own_error),
    ("arguments_may_be_too_long", arguments_may_be_too_long),
    ("zero_bytes_are_refused", zero_bytes_are_refused),
    ("outside_of_a_runtime_nothing_is_started", outside_of_a_runtime_nothing_is_started),
];

struct Folder(tempfile::TempDir);

impl Folder {
    fn file(&self, name: &str, content: &[u8], mode: u32) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }
}

fn failure(spec: &ProcessSpec) -> SpawnError {
    run(async { Spawner::new().spawn(spec).unwrap_err() })
}

fn each_failure_has_its_own_error() {
    let folder = Folder(tempfile::tempdir().unwrap());
    let other_machine = {
        let mut binary = fs::read("/bin/sh").unwrap();
        let machine: u16 = if cfg!(target_arch = "aarch64") { 62 } else { 183 };
        binary[18..20].copy_from_slice(&machine.to_le_bytes());
        binary
    };
    let program = |path: &Path| spec(path.to_str().unwrap(), &[]);
    let text = folder.file("text", b"echo", 0o644);
    let no_line = folder.file("no-line", b"echo hello\n", 0o755);
    let empty = folder.file("empty", b"", 0o755);
    let script = folder.file("script", b"#!/nonexistent/python -u\n", 0o755);
    let windows = folder.file("windows", b"#!/bin/sh\r\necho\r\n", 0o755);
    let badly_run = folder.file("badly-run", format!("#!{}\n", text.display()).as_bytes(), 0o755);
    let foreign = folder.file("foreign", &other_machine, 0o755);
    let exe = folder.file("tool.exe", b"MZ\x90\0", 0o755);
    let in_folder = |cwd: &Path| ProcessSpec { cwd: cwd.to_owned(), ..spec("/bin/cat", &[]) };

    let cases = [
        (program(Path::new("/nonexistent")), "no such program: /nonexistent".to_owned()),
        (program(&text.join("below-a-file")), format!("no such program: {}/below-a-file", text.display())),
        (program(&text), format!("not executable: {} (chmod +x makes it so)", text.display())),
        (program(folder.0.path()), format!("is a directory: {}", folder.0.path().display())),
        (
            program(&script),
            format!("the interpreter \"/nonexistent/python\" that {} names does not exist", script.display()),
        ),
        (
            program(&windows),
            format!(
                "the interpreter \"/bin/sh\\r\" that {} names does not exist (its lines end in carriage returns)",
                windows.display()
            ),
        ),
        (program(&badly_run), format!("the interpreter {text:?} that {} names is not executable", badly_run.display())),
        (
            program(&no_line),
            format!("{} is no binary and its first line names no interpreter (such as #!/bin/sh)", no_line.display()),
        ),
        (
            program(&empty),
            format!("{} is no binary and its first line names no interpreter (such as #!/bin/sh)", empty.display()),
        ),
        (
            program(&foreign),
            format!(
                "{} is built for {}, this machine is {}",
                foreign.display(),
                if cfg!(target_arch = "aarch64") { "x86_64" } else { "aarch64" },
                std::env::consts::ARCH
            ),
        ),
        (program(&exe), format!("{} is built for Windows, this machine is {}", exe.display(), std::env::consts::ARCH)),
        (in_folder(Path::new("/nonexistent")), "the working directory /nonexistent does not exist".to_owned()),
        (in_folder(&text), format!("the working directory {} is not a directory", text.display())),
    ];
    for (spec, expected) in cases {
        assert_eq!(failure(&spec).to_string(), expected);
    }
}

fn arguments_may_be_too_long() {
    let argument = "x".repeat(1024 * 1024);
    let error = failure(&spec("/bin/true", &[&argument]));
    assert!(matches!(error, SpawnError::ArgumentListTooLong { bytes } if bytes > 1024 * 1024), "{error}");
}

fn zero_bytes_are_refused() {
    let error = failure(&spec("/bin/true", &["a\0b"]));
    assert_eq!(error.to_string(), "an argument contains a zero byte");
}

fn outside_of_a_runtime_nothing_is_started() {
    let dir = tempfile::tempdir().unwrap();
    let spec = sh(&format!("touch {}/started", dir.path().display()));
    let spawner = Spawner::new();
    let thread = std::thread::Builder::new().name(crate::PANICS.to_owned());
    let outcome = thread.spawn(move || spawner.spawn(&spec).map(drop)).unwrap().join();
    assert!(outcome.is_err(), "it panics: {outcome:?}");
    assert!(!dir.path().join("started").exists());
}
