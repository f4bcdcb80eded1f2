//! Changes one value of the user's config file, and nothing else in it.

use std::path::Path;

use serde_json::Value;

use super::{Config, ConfigError};
use crate::discovery::editing::{EditError, Editing, lock, private};
use crate::plugin::{Class, PluginName};

/// A config file that is being changed; nobody else changes it until this is dropped.
///
/// Comments, order and layout stay. A file that is a link is changed where it is, and the link stays.
pub struct ConfigEdit(Editing);

/// Why a config file can't be changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigEditError {
    /// It can't be read.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// It can't be changed.
    #[error(transparent)]
    Edit(#[from] EditError),
}

impl ConfigEdit {
    /// Begins to change a file, which need not exist yet.
    ///
    /// # Errors
    /// It can't be locked or read, or is no TOML.
    pub fn open(file: &Path) -> Result<Self, ConfigEditError> {
        let lock = lock(file)?;
        let text = match Config::text(file) {
            Err(ConfigError::Unreadable { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                String::new()
            }
            text => text?,
        };
        Ok(Self(Editing::new(file, &text, private(), lock)?))
    }

    /// Sets one of a plugin's own settings: `[plugins.NAME.config]` or `[mcp.servers.NAME.config]`.
    ///
    /// # Errors
    /// The file has something else than a table there, or TOML has no such value.
    pub fn set(&mut self, class: Class, name: &PluginName, key: &str, value: &Value) -> Result<(), ConfigEditError> {
        Ok(self.0.set(&tables(class, name), key, value)?)
    }

    /// Takes one of a plugin's own settings out; whether it was there.
    ///
    /// # Errors
    /// The file has something else than a table there.
    pub fn unset(&mut self, class: Class, name: &PluginName, key: &str) -> Result<bool, ConfigEditError> {
        Ok(self.0.unset(&tables(class, name), key)?)
    }

    /// Replaces the file, in one step.
    ///
    /// # Errors
    /// It can't be written; then it is as it was.
    pub fn save(self) -> Result<(), ConfigEditError> {
        Ok(self.0.save()?)
    }
}

fn tables(class: Class, name: &PluginName) -> Vec<&str> {
    match class {
        Class::Extension => vec!["plugins", name.as_str(), "config"],
        Class::Mcp => vec!["mcp", "servers", name.as_str(), "config"],
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::path::PathBuf;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    struct Home(tempfile::TempDir);

    impl Home {
        fn with(text: &str) -> Self {
            let home = Self(tempfile::tempdir().unwrap());
            fs::write(home.file(), text).unwrap();
            home
        }

        fn file(&self) -> PathBuf {
            self.0.path().join("config.toml")
        }

        fn text(&self) -> String {
            fs::read_to_string(self.file()).unwrap()
        }

        fn edit(&self, change: impl FnOnce(&mut ConfigEdit) -> Result<(), ConfigEditError>) -> Result<(), String> {
            let mut edit = ConfigEdit::open(&self.file()).map_err(|error| error.to_string())?;
            change(&mut edit).and_then(|()| edit.save()).map_err(|error| error.to_string())
        }

        fn set(&self, key: &str, value: Value) -> Result<(), String> {
            self.edit(|edit| edit.set(Class::Extension, &x(), key, &value))
        }
    }

    fn x() -> PluginName {
        "x".parse().unwrap()
    }

    /// A text after a value was set.
    fn after(text: &str, key: &str, value: Value) -> String {
        let home = Home::with(text);
        home.set(key, value).unwrap();
        home.text()
    }

    #[test]
    fn all_that_a_person_wrote_stays() {
        let text = "# mine\n\n[plugins.x]   # the x\ncommand = [ 'a',\n  'b' ] # two\n\n[plugins.x.config]\n\
                    # how it greets\ngreeting  =  'hi'   # or hello\n\n[mcp.servers.y]\ncommand = [\"y\"]\n# end\n";
        let changed = after(text, "greeting", json!("ho"));
        assert_eq!(changed, text.replace("'hi'", "\"ho\""));
        let added = after(text, "loud", json!(true));
        assert_eq!(added, text.replace("# or hello\n", "# or hello\nloud = true\n"));
        let home = Home::with(text);
        home.edit(|edit| edit.unset(Class::Extension, &x(), "greeting").map(|was| assert!(was))).unwrap();
        assert_eq!(home.text(), text.replace("# how it greets\ngreeting  =  'hi'   # or hello\n", ""));
        home.edit(|edit| edit.unset(Class::Mcp, &x(), "greeting").map(|was| assert!(!was))).unwrap();
    }

    #[test]
    fn tables_are_made_in_the_form_that_is_there() {
        for (text, expected) in [
            ("", "[plugins.x.config]\nk = 1\n"),
            (
                "[plugins.x]\ncommand = ['a']\n[limits]\n",
                "[plugins.x]\ncommand = ['a']\n\n[plugins.x.config]\nk = 1\n[limits]\n",
            ),
            ("[plugins.x]\ncommand = ['a']", "[plugins.x]\ncommand = ['a']\n\n[plugins.x.config]\nk = 1\n"),
            ("[plugins.x]\nconfig = { a = 2 }\n", "[plugins.x]\nconfig = { a = 2 , k = 1 }\n"),
            ("[plugins]\nx = { path = 'x' }\n", "[plugins]\nx = { path = 'x' , config = { k = 1 } }\n"),
            ("[plugins]\nx.path = 'x'\n", "[plugins]\nx.path = 'x'\nx.config.k = 1\n"),
            ("plugins.x.path = 'x'\n[limits]\n", "plugins.x.path = 'x'\nplugins.x.config.k = 1\n[limits]\n"),
        ] {
            assert_eq!(after(text, "k", json!(1)), expected, "{text}");
        }
        let home = Home::with("[mcp.servers.x]\ncommand = ['a']\n");
        home.edit(|edit| edit.set(Class::Mcp, &x(), "k", &json!(1))).unwrap();
        assert!(home.text().ends_with("[mcp.servers.x.config]\nk = 1\n"));
    }

    #[test]
    fn marks_and_line_ends_stay() {
        assert_eq!(
            after("\u{feff}[plugins.x.config]\r\na = 1\r\n", "k", json!(1)),
            "\u{feff}[plugins.x.config]\r\na = 1\r\nk = 1\r\n"
        );
    }

    #[test]
    fn what_can_not_be_done_changes_nothing() {
        for (text, told) in [
            ("[plugins.x\n", "1:11: unclosed table, expected `]`"),
            ("plugins = 1\n", "`plugins` in "),
            ("[[plugins.x]]\n", "`plugins.x` in "),
            ("[plugins.x]\nconfig = 'a'\n", "`plugins.x.config` in "),
        ] {
            let home = Home::with(text);
            let error = home.set("k", json!(1)).unwrap_err();
            assert!(error.contains(told), "{error}");
            assert_eq!(home.text(), text);
        }
        let home = Home::with("");
        for value in [json!(null), json!([{ "a": null }]), json!(u64::MAX)] {
            assert!(home.set("k", value).unwrap_err().starts_with("TOML has no "));
        }
        assert_eq!(home.text(), "");
    }

    #[test]
    fn a_link_and_the_permissions_stay() {
        let home = Home::with("");
        fs::create_dir(home.0.path().join("dotfiles")).unwrap();
        let target = home.0.path().join("dotfiles/lemon.toml");
        fs::rename(home.file(), &target).unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("dotfiles/lemon.toml", home.file()).unwrap();
        home.set("k", json!(1)).unwrap();
        assert!(home.file().is_symlink());
        assert_eq!(fs::read_to_string(&target).unwrap(), "[plugins.x.config]\nk = 1\n");
        assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o640);
        fs::remove_file(&target).unwrap();
        assert!(home.set("k", json!(1)).unwrap_err().starts_with("can't read "), "a link to nothing");
        fs::remove_file(home.file()).unwrap();
        home.set("k", json!(1)).unwrap();
        assert_eq!(fs::metadata(home.file()).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn edits_at_one_time_are_all_kept() {
        let home = Home::with("");
        std::thread::scope(|scope| {
            for n in 0..8 {
                let home = &home;
                scope.spawn(move || home.set(&format!("k{n}"), json!(n)).unwrap());
            }
        });
        assert_eq!(Config::read(&home.file()).unwrap().plugins["x"].config.len(), 8);
    }

    proptest! {
        #[test]
        fn what_is_set_is_read_and_the_rest_is_as_it_was(
            key in "\\PC{1,8}",
            text in any::<String>(),
            parts in prop::collection::vec(prop::sample::select(vec![
                "[plugins.x]\n", "[plugins.y]\n", "[plugins.x.config]\n", "plugins.x.timeout_ms = 1\n", "a = 1\n", "# c\n",
                "config = { a = 1 } # c\n", "[plugins]\n", "x = { config.b = 2 }\n", "x.config.c = 3\n", "\n", "\r\n",
                "[[z]]\n", "[plugins.x.config.deep]\n", "x.timeout_ms = 2\n", "s = \"\"\"\nx\"\"\"\n",
            ]), 0..8),
        ) {
            let before = parts.concat();
            let Ok(mut expected) = before.parse::<toml::Table>() else { return Ok(()) };
            let home = Home::with(&before);
            if home.set(&key, json!([text])).is_err() {
                prop_assert_eq!(home.text(), before);
                return Ok(());
            }
            let mut table = &mut expected;
            for name in ["plugins", "x", "config"] {
                let entry = table.entry(name).or_insert_with(|| toml::Table::new().into());
                table = entry.as_table_mut().unwrap();
            }
            table.insert(key, vec![text].into());
            prop_assert_eq!(home.text().parse::<toml::Table>().unwrap(), expected);
        }
    }
}
