//! Manifests as files: what is opened, which one counts, and what lies beside it.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::sync::Arc;

use tempfile::TempDir;

use super::super::{ManifestFile, ManifestReport, manifests_in};
use super::with;
use crate::plugin::{Class, PluginSpec, Provenance};

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), text).unwrap();
    }

    fn manifest(&self, text: impl AsRef<[u8]>) {
        self.write("lemon_extension.json", text);
    }

    fn kinds(&self) -> Vec<&'static str> {
        self.kinds_of(".")
    }

    fn kinds_of(&self, path: &str) -> Vec<&'static str> {
        ManifestReport::of(&self.at(path)).problems.iter().map(|problem| problem.kind.as_str()).collect()
    }

    /// The problems of a host's command.
    fn command(&self, command: &str) -> Vec<String> {
        self.manifest(with(&format!(r#""host": {{"type": "external", "command": {command}}}"#)));
        let report = ManifestReport::of(self.0.path());
        report.problems.iter().map(|one| format!("{} {}", one.kind, one.pointer.as_deref().unwrap_or("-"))).collect()
    }
}

#[test]
fn only_a_regular_file_of_text_is_read() {
    let folder = Folder::new();
    assert_eq!(folder.kinds(), ["no_manifest"]);
    assert_eq!(folder.kinds_of("none.json"), ["not_found"]);
    assert_eq!(folder.kinds_of("a\0b"), ["unreadable"]);
    let name = "lemon_extension.json";
    folder.write("real", with(""));
    symlink(folder.at("real"), folder.at(name)).unwrap();
    assert_eq!(folder.kinds(), ["symlink"]);
    fs::remove_file(folder.at(name)).unwrap();
    symlink("/dev/zero", folder.at(name)).unwrap();
    assert_eq!(folder.kinds(), ["symlink"]);
    fs::remove_file(folder.at(name)).unwrap();
    nix::unistd::mkfifo(&folder.at(name), nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert_eq!(folder.kinds(), ["not_a_file"]);
    fs::remove_file(folder.at(name)).unwrap();
    fs::create_dir(folder.at(name)).unwrap();
    assert_eq!(folder.kinds(), ["not_a_file"]);
    fs::remove_dir(folder.at(name)).unwrap();
    folder.manifest(with(&format!("\"description\": \"{}\"", "x".repeat(300 * 1024))));
    assert_eq!(folder.kinds(), ["too_large"]);
    folder.manifest(b"{\n\"name\": \"\xff\"}");
    assert_eq!(folder.kinds(), ["not_utf8"]);
    let problem = ManifestReport::of(folder.0.path()).problems.remove(0);
    assert_eq!((problem.line, problem.column), (Some(2), Some(10)));
    folder.manifest("\u{feff}".to_owned() + &with(""));
    assert_eq!(folder.kinds(), ["byte_order_mark"]);
    assert!(ManifestFile::read(folder.0.path()).unwrap().text.starts_with('{'));
    assert_eq!(ManifestReport::of("/dev/zero".as_ref()).problems[0].kind.as_str(), "not_a_file");
}

#[test]
fn a_file_without_permission_is_told() {
    let folder = Folder::new();
    folder.manifest(with(""));
    fs::set_permissions(folder.at("lemon_extension.json"), fs::Permissions::from_mode(0o0)).unwrap();
    // Nothing is unreadable for root.
    if fs::File::open(folder.at("lemon_extension.json")).is_err() {
        assert_eq!(folder.kinds(), ["unreadable"]);
    }
}

#[test]
fn of_several_manifests_the_first_name_counts_and_the_others_are_told() {
    let folder = Folder::new();
    folder.write(".lemon-extension.json", with(r#""name": "third""#));
    assert_eq!(ManifestFile::read(folder.0.path()).unwrap().manifest.name, "third");
    folder.write("extension.json", with(r#""name": "second""#));
    let file = ManifestFile::read(folder.0.path()).unwrap();
    assert_eq!((file.manifest.name.as_str(), file.path.ends_with("extension.json")), ("second", true));
    assert!(file.warnings[0].message.contains(".lemon-extension.json, which does not count: extension.json does"));
    folder.manifest("broken");
    assert_eq!(folder.kinds(), ["second_manifest", "second_manifest", "not_json"]);
}

#[test]
fn a_folder_of_extensions_has_those_one_level_below() {
    let folder = Folder::new();
    for path in ["b/extension.json", "a/lemon_extension.json", "a/extension.json", "c/d/extension.json", "c/x.json"] {
        folder.write(path, with(""));
    }
    let found = manifests_in(folder.0.path()).unwrap();
    assert_eq!(found, [folder.at("a/lemon_extension.json"), folder.at("b/extension.json")]);
    symlink(folder.at("a"), folder.at("linked")).unwrap();
    assert_eq!(manifests_in(folder.0.path()).unwrap()[2], folder.at("linked/lemon_extension.json"));
    folder.manifest(with(""));
    assert_eq!(manifests_in(folder.0.path()).unwrap()[0], folder.at("lemon_extension.json"));
    assert!(manifests_in(&folder.at("nowhere")).is_err());
}

#[test]
fn the_files_of_a_command_are_in_the_folder() {
    let (folder, outside) = (Folder::new(), Folder::new());
    outside.write("evil", "x");
    folder.write("run.sh", "x");
    symlink(outside.at("evil"), folder.at("link")).unwrap();
    symlink(outside.0.path(), folder.at("out")).unwrap();
    symlink(folder.at("run.sh"), folder.at("inner")).unwrap();
    assert_eq!(folder.command(r#"["./run.sh"]"#), [""; 0]);
    assert_eq!(folder.command(r#"["${extension_dir}/run.sh", "-x", "/tmp", "sub"]"#), [""; 0]);
    assert_eq!(folder.command(r#"["./inner"]"#), [""; 0]);
    assert_eq!(folder.command(r#"["./link"]"#), ["path_outside /host/command/0"]);
    assert_eq!(folder.command(r#"["sh", "${extension_dir}/link"]"#), ["path_outside /host/command/1"]);
    assert_eq!(folder.command(r#"["sh", "${extension_dir}/out/evil"]"#), ["path_outside /host/command/1"]);
    assert_eq!(folder.command(r#"["./none"]"#), ["program_missing /host/command/0"]);
    assert_eq!(folder.command(r#"["${extension_dir}"]"#), ["program_missing /host/command/0"]);
    assert_eq!(folder.command(r#"["sh", "${extension_dir}/none"]"#), ["file_missing /host/command/1"]);
    assert_eq!(folder.command(r#"["sh", "run.sh"]"#), ["relative_argument /host/command/1"]);
    folder.manifest(with(r#""build": [["make"]], "hosts": [{"type": "external", "command": ["./none"]}]"#));
    assert_eq!(folder.kinds(), [""; 0], "what is built is there later");
}

#[test]
fn a_spec_has_what_the_manifest_says_and_its_class_is_only_ever_lowered() {
    let folder = Folder::new();
    let spec = |members: &str| {
        folder.manifest(with(members));
        let file = Arc::new(ManifestFile::read(folder.0.path()).unwrap());
        PluginSpec::from_manifest(file, None, Provenance::Program)
    };
    let external = spec("").unwrap();
    assert_eq!((external.name.as_str(), external.class), ("x", Class::Extension));
    assert_eq!(external.command, ["python3"]);
    assert_eq!(spec(r#""host": {"type": "mcp", "command": ["a"]}"#).unwrap().class, Class::Mcp);
    let fault = |members: &str| spec(members).unwrap_err().to_string();
    assert!(fault(r#""host": "wasm""#).contains("can't be loaded yet"));
    assert!(fault(r#""host": "beam""#).contains("can't be loaded yet"));
    let other = fault(r#""platforms": ["windows-x86_64", "macos"]"#);
    assert!(other.contains("it runs on windows-x86_64, macos, this is linux-"), "{other}");
    let newer = fault(r#""protocol": {"min": "8.1", "max": "8.3"}"#);
    assert_eq!(newer, "it speaks Lemon 8.1 to 8.3, this lemon 1.0; upgrade the host");
    assert!(fault(r#""protocol": "0.9""#).ends_with("upgrade the extension"));
    folder.manifest(r#"{"schema_version": 1, "name": "x", "version": "1"}"#);
    assert!(ManifestFile::read(folder.0.path()).unwrap().host().unwrap_err().to_string().contains("metadata only"));
}

#[test]
fn placeholders_are_filled_once_and_only_in_what_a_manifest_says() {
    let folder = Folder::new();
    folder.manifest(with(
        r#""host": {"type": "external", "command": ["sh", "${extension_dir}/$${workspace}", "-w=${workspace}"]}"#,
    ));
    let file = Arc::new(ManifestFile::read(folder.0.path()).unwrap());
    let spec = PluginSpec::from_manifest(file, None, Provenance::Program).unwrap();
    let argv = spec.argv(|placeholder, _| Ok::<_, ()>(format!("<{}${{data_dir}}>", placeholder.as_str())));
    let expected = ["sh", "<extension_dir${data_dir}>/${workspace}", "-w=<workspace${data_dir}>"];
    assert_eq!(argv.unwrap(), expected);
    let own = PluginSpec::new("x".parse().unwrap(), Class::Extension, ["${workspace}"]);
    assert_eq!(own.argv(|_, _| Err(())), Ok(vec!["${workspace}".to_owned()]));
}
