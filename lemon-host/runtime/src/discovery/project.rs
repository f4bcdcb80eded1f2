//! The project and the repository that somebody works in. Nothing of either runs before the user said so.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// The name of a project's folder, and of the user's own in the home folder.
pub(super) const LEMON: &str = ".lemon";

/// What the working folder lies in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Surroundings {
    /// The nearest folder upwards with a `.lemon` folder.
    pub project: Option<Project>,
    /// The repository, else the project: a folder from which no program is run by its bare name.
    pub folder: Option<PathBuf>,
}

/// A folder with a `.lemon` folder, which may hold a config and extensions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Project {
    /// The project's folder, without symbolic links on the way.
    #[serde(serialize_with = "crate::report::lossy::path")]
    pub folder: PathBuf,
    /// Why nothing of it is even looked at, if so.
    pub ignored: Option<&'static str>,
}

impl Project {
    /// Its config file, whether there is one or not.
    pub fn config(&self) -> PathBuf {
        self.folder.join(LEMON).join("config.toml")
    }

    /// The folder of its extensions, whether there is one or not.
    pub fn extensions(&self) -> PathBuf {
        self.folder.join(LEMON).join("extensions")
    }

    fn at(folder: &Path) -> Option<Self> {
        let own = folder.join(LEMON);
        let metadata = own.symlink_metadata().ok()?;
        let is_mine = |path: &Path| path.metadata().is_ok_and(|metadata| metadata.uid() == me());
        let ignored = if metadata.is_symlink() {
            Some("its `.lemon` is a symbolic link")
        } else if !metadata.is_dir() {
            return None;
        } else if !is_mine(&own) || !is_mine(folder) {
            Some("it belongs to another user")
        } else {
            None
        };
        Some(Self { folder: folder.canonicalize().unwrap_or_else(|_| folder.to_owned()), ignored })
    }
}

fn me() -> u32 {
    rustix::process::geteuid().as_raw()
}

impl Surroundings {
    /// Looks from the working folder up to the repository's root, but not as far as the user's home: what stands there
    /// is the user's own, as well as the programs below it that PATH names. `lemon_home` is no project, wherever it is.
    pub fn of(cwd: &Path, user_home: Option<&Path>, lemon_home: Option<&Path>) -> Self {
        let mut found = Self::default();
        // The working folder is known without links, so these have to be, too.
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let (user_home, lemon_home) = (user_home.map(real), lemon_home.map(real));
        for folder in cwd.ancestors() {
            if folder.parent().is_none() || user_home.as_ref().is_some_and(|home| home.starts_with(folder)) {
                break;
            }
            if found.project.is_none() && Some(folder.join(LEMON)) != lemon_home {
                found.project = Project::at(folder);
                found.folder = found.project.as_ref().map(|_| folder.to_owned());
            }
            if folder.join(".git").symlink_metadata().is_ok() {
                found.folder = Some(folder.to_owned());
                break;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn project(folder: &Path) -> Project {
        Project { folder: folder.to_owned(), ignored: None }
    }

    #[test]
    fn the_project_is_sought_up_to_the_repository_and_below_the_home() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let (home, repo) = (root.join("home"), root.join("home/repo"));
        let cwd = repo.join("a/b");
        for folder in [home.join(".lemon"), repo.join(".git"), cwd.clone()] {
            fs::create_dir_all(folder).unwrap();
        }
        let look = |from: &Path| Surroundings::of(from, Some(&home), Some(&home.join(".lemon")));
        assert_eq!(look(&cwd), Surroundings { project: None, folder: Some(repo.clone()) });
        fs::create_dir_all(repo.join("a/.lemon")).unwrap();
        assert_eq!(look(&cwd), Surroundings { project: Some(project(&repo.join("a"))), folder: Some(repo.clone()) });
        assert_eq!(look(&home), Surroundings::default());
        fs::remove_dir(repo.join(".git")).unwrap();
        assert_eq!(look(&cwd).folder, Some(repo.join("a")));
        fs::create_dir_all(cwd.join(".lemon")).unwrap();
        assert_eq!(look(&cwd).project, Some(project(&cwd)), "the nearest one counts");
    }

    #[test]
    fn a_project_that_is_a_link_is_named_and_ignored() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("a")).unwrap();
        fs::create_dir_all(root.join("elsewhere")).unwrap();
        symlink(root.join("elsewhere"), root.join("a/.lemon")).unwrap();
        let found = Surroundings::of(&root.join("a"), None, None);
        assert!(found.project.unwrap().ignored.unwrap().contains("symbolic link"));
        fs::remove_file(root.join("a/.lemon")).unwrap();
        fs::write(root.join("a/.lemon"), "").unwrap();
        assert_eq!(Surroundings::of(&root.join("a"), None, None), Surroundings::default(), "a file is no project");
    }

    #[test]
    fn a_project_of_another_user_is_named_and_ignored() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("a/.lemon")).unwrap();
        if std::os::unix::fs::chown(root.join("a/.lemon"), Some(65534), None).is_err() {
            return; // only root may give something away
        }
        let found = Surroundings::of(&root.join("a"), None, None);
        assert!(found.project.unwrap().ignored.unwrap().contains("another user"));
    }
}
