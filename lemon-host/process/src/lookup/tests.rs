use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

fn program(path: &Path, mode: u32) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "#!/bin/sh\n").unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn search(path: &[&Path], cwd: &Path) -> Search {
    Search { path: Some(std::env::join_paths(path).unwrap()), cwd: cwd.to_owned(), untrusted: Vec::new() }
}

#[test]
fn a_bare_name_comes_from_the_first_entry_that_has_it() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (dir.path().join("one"), dir.path().join("two"));
    program(&one.join("tool"), 0o644);
    program(&two.join("tool"), 0o755);
    let found = resolve("tool".as_ref(), &search(&[&one, &two], dir.path()));
    assert_eq!(found, Ok(two.join("tool")), "what can't run is passed over");
}

#[test]
fn a_name_with_a_slash_is_taken_from_cwd_even_where_it_is_untrusted() {
    let dir = tempfile::tempdir().unwrap();
    program(&dir.path().join("bin/tool"), 0o755);
    let mut search = search(&[], dir.path());
    search.untrusted = vec![dir.path().to_owned()];
    let found = resolve("./bin/tool".as_ref(), &search);
    assert_eq!(found, Ok(dir.path().join("bin/tool")));
}

#[test]
fn links_are_not_resolved() {
    let dir = tempfile::tempdir().unwrap();
    symlink("/bin/sh", dir.path().join("python")).unwrap();
    let link = dir.path().join("python");
    for name in ["python".as_ref(), link.as_os_str(), "./python".as_ref()] {
        let found = resolve(name, &search(&[dir.path()], dir.path()));
        assert_eq!(found.as_ref(), Ok(&link), "{name:?}");
    }
}

#[test]
fn relative_and_untrusted_entries_are_ignored_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let (workspace, link) = (dir.path().join("ws"), dir.path().join("link"));
    program(&workspace.join("bin/tool"), 0o755);
    symlink(workspace.join("bin"), &link).unwrap();
    let entries: [&Path; 5] =
        [Path::new(""), Path::new("bin"), &workspace.join("bin"), &link, Path::new("/nonexistent")];
    let mut search = search(&entries, &workspace);
    search.untrusted = vec![workspace.clone()];

    let error = resolve("tool".as_ref(), &search).unwrap_err();
    let text = error.to_string();
    let LookupError::NotInPath { searched, ignored, .. } = error else {
        panic!("{text}");
    };
    assert_eq!(searched, [Path::new("/nonexistent")]);
    let reasons: Vec<_> = ignored.iter().map(|(_, reason)| *reason).collect();
    use Ignored::{Relative, Untrusted};
    assert_eq!(reasons, [Relative, Relative, Untrusted, Untrusted]);
    let expected =
        "tool was not found; PATH searched: /nonexistent; ignored: an empty entry (relative), bin (relative), ";
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn the_error_says_what_is_there_instead() {
    let dir = tempfile::tempdir().unwrap();
    let here = search(&[dir.path()], dir.path());
    program(&dir.path().join("text"), 0o644);
    fs::create_dir(dir.path().join("folder")).unwrap();
    let path = |name: &str| dir.path().join(name);

    let error = |name: &str| resolve(name.as_ref(), &here).unwrap_err();
    assert_eq!(error(""), LookupError::Empty);
    assert_eq!(error("text"), LookupError::NotExecutable { path: path("text") });
    assert_eq!(error("./text"), LookupError::NotExecutable { path: path("text") });
    assert_eq!(error("./folder"), LookupError::IsDirectory { path: path("folder") });
    assert_eq!(error("./none"), LookupError::NotFound { path: path("none") });
    assert!(matches!(error("none"), LookupError::NotInPath { .. }));

    let unset = Search { cwd: dir.path().to_owned(), ..Search::default() };
    let error = resolve("sh".as_ref(), &unset).unwrap_err();
    assert_eq!(error.to_string(), "sh was not found; PATH is not set or empty");
}
