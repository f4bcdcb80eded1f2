//! What stands in the places where plugins are looked for. Reads names and manifests; runs nothing.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use lemon_protocol::manifest::FILE_NAMES;
use serde::Serialize;

use super::command::{PluginFlagError, file_command};
use super::places::{Place, PlaceKind};
use super::project::LEMON;
use crate::plugin::PluginName;
use crate::report::PluginText;

/// The most entries of one place that are looked at.
const MAX_ENTRIES: usize = 1_000;
/// The most names of one place that are read, from which those are the first.
const MAX_LISTED: usize = 20_000;

/// A plugin on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Found {
    /// What it is called as long as no manifest says otherwise.
    pub name: PluginName,
    /// Its folder or file, without symbolic links.
    pub path: PathBuf,
    /// Where it was found.
    pub place: Place,
    /// What it is.
    pub form: Form,
}

/// What a plugin on disk is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Form {
    /// A folder with a manifest.
    Folder,
    /// A single file, with the program and arguments that run it.
    File(Vec<String>),
}

/// Something in such a place that is no plugin, or can't be looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Ignored {
    /// Where it is.
    #[serde(serialize_with = "crate::report::lossy::path")]
    pub path: PathBuf,
    /// Why it is ignored.
    pub reason: String,
    /// Whether it looks as if somebody wanted it to be a plugin.
    pub is_odd: bool,
}

/// All that was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Scan {
    /// The plugins, in the order of their places and then of their names on disk. Each path stands here once.
    pub found: Vec<Found>,
    /// What else is there; hidden files are left out.
    pub ignored: Vec<Ignored>,
}

/// Looks into all places.
pub fn scan(places: &[Place]) -> Scan {
    let mut scan = Scan::default();
    for place in places {
        scan.place(place);
    }
    scan
}

impl Scan {
    fn place(&mut self, place: &Place) {
        let path = &place.path;
        let metadata = match fs::metadata(path) {
            Ok(metadata) => metadata,
            // The default folders need not be there.
            Err(error) if error.kind() == io::ErrorKind::NotFound && place.kind != PlaceKind::Named => return,
            Err(error) => return self.odd(path, error),
        };
        if !metadata.is_dir() || manifest_in(path).is_some() {
            // The user named a plugin, and no folder of plugins.
            return self.entry(path, place);
        }
        let entries = match fs::read_dir(path).and_then(|all| all.take(MAX_LISTED).collect::<io::Result<Vec<_>>>()) {
            Ok(entries) => entries,
            Err(error) => return self.odd(path, error),
        };
        let mut entries: Vec<_> = entries.into_iter().map(|entry| entry.path()).collect();
        entries.sort();
        for entry in entries.iter().take(MAX_ENTRIES) {
            let is_hidden = entry.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
            if !is_hidden {
                self.entry(entry, place);
            }
        }
        if entries.len() > MAX_ENTRIES {
            self.odd(path, format!("only the first {MAX_ENTRIES} of its {} entries were looked at", entries.len()));
        }
    }

    fn entry(&mut self, entry: &Path, place: &Place) {
        let path = match entry.canonicalize() {
            Ok(path) => path,
            Err(error) => return self.odd(entry, error),
        };
        if place.kind == PlaceKind::Project && !path.starts_with(project_of(&place.path)) {
            return self.odd(entry, "it is a link that leads out of the project");
        }
        if self.found.iter().any(|found| found.path == path) {
            return self.ignore(entry, "it was found on another path already");
        }
        let found = |name, form| Found { name, path: path.clone(), place: place.clone(), form };
        let metadata = match fs::metadata(&path) {
            Ok(metadata) => metadata,
            Err(error) => return self.odd(entry, error),
        };
        if metadata.is_dir() {
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
                return self.odd(entry, "its name is not UTF-8");
            };
            match manifest_in(&path) {
                Some(_) => self.found.push(found(PluginName::from_any(name), Form::Folder)),
                None => self.ignore(entry, format!("a folder without a manifest ({})", FILE_NAMES[0])),
            }
            return;
        }
        match file_command(&path, &metadata) {
            Ok(command) => self.found.push(found(command.name, Form::File(command.argv))),
            Err(PluginFlagError::NotRunnable(_)) => {
                self.ignore(entry, "neither a script of a known kind nor executable");
            }
            Err(error) => self.odd(entry, error),
        }
    }

    fn ignore(&mut self, path: &Path, reason: impl Into<String>) {
        self.ignored.push(Ignored { path: path.to_owned(), reason: reason.into(), is_odd: false });
    }

    fn odd(&mut self, path: &Path, reason: impl ToString) {
        // What the system says may hold a name.
        let reason = PluginText::new(reason.to_string()).to_string();
        self.ignored.push(Ignored { path: path.to_owned(), reason, is_odd: true });
    }
}

/// The project to which its folder of extensions belongs.
pub(super) fn project_of(extensions: &Path) -> PathBuf {
    let project = extensions.ancestors().find(|folder| folder.ends_with(LEMON)).and_then(Path::parent);
    let project = project.unwrap_or(extensions);
    project.canonicalize().unwrap_or_else(|_| project.to_owned())
}

/// The manifest of a folder; it is not read.
pub(super) fn manifest_in(folder: &Path) -> Option<PathBuf> {
    FILE_NAMES.iter().map(|name| folder.join(name)).find(|file| file.symlink_metadata().is_ok())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    struct Folders {
        root: tempfile::TempDir,
    }

    impl Folders {
        fn new() -> Self {
            Self { root: tempfile::tempdir().unwrap() }
        }

        fn path(&self, path: &str) -> PathBuf {
            self.root.path().canonicalize().unwrap().join(path)
        }

        fn file(&self, path: &str) -> PathBuf {
            let file = self.path(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, "x").unwrap();
            file
        }

        fn place(&self, path: &str, kind: PlaceKind) -> Place {
            Place { path: self.path(path), kind, as_it_is: false }
        }

        fn scan(&self, path: &str, kind: PlaceKind) -> Scan {
            scan(&[self.place(path, kind)])
        }
    }

    fn names(scan: &Scan) -> Vec<&str> {
        scan.found.iter().map(|found| found.name.as_str()).collect()
    }

    fn reasons(scan: &Scan) -> Vec<(&str, &str)> {
        scan.ignored.iter().map(|it| (it.path.file_name().unwrap().to_str().unwrap(), it.reason.as_str())).collect()
    }

    #[test]
    fn folders_with_manifests_and_scripts_are_plugins_in_the_order_of_their_names() {
        let folders = Folders::new();
        for file in ["x/b/lemon_extension.json", "x/My Tool.py", "x/c.mjs", "x/d.ts", "x/a/.lemon-extension.json"] {
            folders.file(file);
        }
        for file in ["x/.hidden.py", "x/notes.md", "x/lib/util.py"] {
            folders.file(file);
        }
        fs::set_permissions(folders.file("x/prog"), fs::Permissions::from_mode(0o755)).unwrap();
        let scan = folders.scan("x", PlaceKind::User);
        assert_eq!(names(&scan), ["my-tool", "a", "b", "c", "d", "prog"]);
        assert_eq!(
            scan.found[0].form,
            Form::File(vec!["python3".into(), folders.path("x/My Tool.py").to_str().unwrap().into()])
        );
        assert_eq!(scan.found[1].form, Form::Folder);
        let Form::File(typescript) = &scan.found[4].form else { panic!("a file") };
        assert_eq!(typescript[..2], ["node", "--experimental-strip-types"]);
        let reasons = reasons(&scan);
        assert_eq!(reasons[0], ("lib", "a folder without a manifest (lemon_extension.json)"));
        assert_eq!(reasons[1], ("notes.md", "neither a script of a known kind nor executable"));
        assert!(!scan.ignored.iter().any(|ignored| ignored.is_odd));
    }

    #[test]
    fn a_named_path_may_be_a_plugin_itself_and_must_exist() {
        let folders = Folders::new();
        folders.file("x/extension.json");
        folders.file("y.py");
        assert_eq!(names(&folders.scan("x", PlaceKind::Named)), ["x"]);
        assert_eq!(names(&folders.scan("y.py", PlaceKind::Named)), ["y"]);
        assert!(folders.scan("z", PlaceKind::Named).ignored[0].is_odd);
        assert_eq!(folders.scan("z", PlaceKind::User), Scan::default());
        assert!(scan(&[Place { path: "".into(), kind: PlaceKind::Named, as_it_is: true }]).ignored[0].is_odd);
    }

    #[test]
    fn one_plugin_on_two_paths_is_found_once() {
        let folders = Folders::new();
        folders.file("x/a.py");
        symlink(folders.path("x/a.py"), folders.path("x/b.py")).unwrap();
        symlink(folders.path("x"), folders.path("y")).unwrap();
        let scan = scan(&[folders.place("x", PlaceKind::Named), folders.place("y", PlaceKind::Named)]);
        assert_eq!(names(&scan), ["a"]);
        assert!(scan.ignored.iter().all(|ignored| ignored.reason.contains("another path")), "{:?}", scan.ignored);
    }

    #[test]
    fn links_of_the_user_are_followed_and_those_out_of_a_project_are_not() {
        let folders = Folders::new();
        folders.file("elsewhere/a.py");
        folders.file("p/src/b.py");
        fs::create_dir_all(folders.path("p/.lemon/extensions")).unwrap();
        fs::create_dir_all(folders.path("mine")).unwrap();
        symlink(folders.path("elsewhere/a.py"), folders.path("p/.lemon/extensions/a.py")).unwrap();
        symlink(folders.path("p/src/b.py"), folders.path("p/.lemon/extensions/b.py")).unwrap();
        symlink(folders.path("elsewhere/a.py"), folders.path("mine/a.py")).unwrap();
        let of_project = folders.scan("p/.lemon/extensions", PlaceKind::Project);
        assert_eq!(names(&of_project), ["b"]);
        assert_eq!(reasons(&of_project), [("a.py", "it is a link that leads out of the project")]);
        let mine = folders.scan("mine", PlaceKind::User);
        assert_eq!(mine.found[0].path, folders.path("elsewhere/a.py"));
    }

    #[test]
    fn cycles_broken_links_pipes_and_odd_names_are_told() {
        let folders = Folders::new();
        fs::create_dir_all(folders.path("x")).unwrap();
        symlink(folders.path("x/self"), folders.path("x/self")).unwrap();
        symlink(folders.path("nowhere"), folders.path("x/broken")).unwrap();
        symlink(folders.path("x"), folders.path("x/up")).unwrap();
        nix::unistd::mkfifo(&folders.path("x/pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let scan = folders.scan("x", PlaceKind::User);
        assert!(scan.found.is_empty());
        let odd: Vec<_> = scan.ignored.iter().filter(|it| it.is_odd).map(|it| it.path.file_name().unwrap()).collect();
        assert_eq!(odd, ["broken", "pipe", "self"]);
    }

    #[test]
    fn more_entries_than_are_looked_at_are_told() {
        let folders = Folders::new();
        for n in 0..=MAX_ENTRIES {
            folders.file(&format!("x/{n:04}.py"));
        }
        let scan = folders.scan("x", PlaceKind::User);
        assert_eq!(scan.found.len(), MAX_ENTRIES);
        assert!(scan.ignored[0].reason.contains("only the first 1000 of its 1001"));
    }
}
