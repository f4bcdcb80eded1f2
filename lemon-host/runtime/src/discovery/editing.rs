//! TOML files of the user's that are changed by a command: what a person wrote around the change stays as it is.
//!
//! A file is read, changed and replaced under a lock, so that of two commands at one time neither undoes the other. The
//! replacement is a whole new file under the old name: a crash, or a full disk, leaves the old one or the new one.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use serde_json::Value;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike};

use super::config::ConfigProblem;
use super::config::problem_of;
use crate::report::PluginText;

/// Why a file was not changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// The file, or its folder, can't be read or written.
    #[error("can't {what} {}", shown(path))]
    Io {
        /// What was to be done: `read`, `write` or `lock`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is no TOML, so nobody knows where a value would have to stand.
    #[error("{0}")]
    Syntax(Box<ConfigProblem>),
    /// Something else stands where a table is needed.
    #[error("`{table}` in {} is not a table", shown(path))]
    NotATable {
        /// The file.
        path: PathBuf,
        /// The table.
        table: String,
    },
    /// TOML has no such value: `null`, or a whole number beyond its range.
    #[error("TOML has no {0}")]
    NoSuchValue(&'static str),
}

fn shown(path: &Path) -> PluginText {
    path.to_string_lossy().into_owned().into()
}

/// A file under its lock.
pub(super) struct Editing {
    /// Where the file is; not that of a link to it.
    file: PathBuf,
    document: DocumentMut,
    /// What others may do with it.
    permissions: Permissions,
    /// Whether it begins with a byte order mark, and how its lines end, if all end so.
    marked: bool,
    crlf: bool,
    /// What a new file begins with.
    head: &'static str,
    _lock: File,
}

/// Takes the lock that goes with a file, whose folder is made if need be.
pub(super) fn lock(path: &Path) -> Result<File, EditError> {
    let lock = path.with_extension("lock");
    let failed = |source| EditError::Io { what: "lock", path: path.to_owned(), source };
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    }
    let file = OpenOptions::new().create(true).write(true).truncate(false).mode(0o600).open(lock).map_err(failed)?;
    file.lock().map_err(failed)?;
    Ok(file)
}

impl Editing {
    /// A file whose text was read under the lock; `permissions` are those of a new one.
    pub(super) fn new(path: &Path, text: &str, permissions: Permissions, lock: File) -> Result<Self, EditError> {
        let document = text.parse::<DocumentMut>().map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            EditError::Syntax(Box::new(problem_of(path, text, span, error.message())))
        })?;
        let failed = |source| EditError::Io { what: "read", path: path.to_owned(), source };
        let (file, permissions) = match fs::metadata(path) {
            Ok(found) => (path.canonicalize().map_err(failed)?, found.permissions()),
            // A link to nothing is no place to write to.
            Err(error) if path.is_symlink() => return Err(failed(error)),
            Err(_) => (path.to_owned(), permissions),
        };
        let crlf = text.contains("\r\n") && !text.replace("\r\n", "").contains('\n');
        let marked = text.starts_with('\u{feff}');
        Ok(Self { file, document, permissions, marked, crlf, head: "", _lock: lock })
    }

    /// Gives a new file a first line, which must be a comment.
    pub(super) fn headed(self, head: &'static str) -> Self {
        Self { head, ..self }
    }

    /// Sets a value; the tables around it are made where they are missing.
    pub(super) fn set(&mut self, tables: &[&str], key: &str, value: &Value) -> Result<(), EditError> {
        let mut value = toml_value(value)?;
        let table = self.table(tables, true)?;
        let Some(table) = table else { return Ok(()) };
        match table.get_mut(key) {
            Some(Item::Value(old)) => {
                // The comment behind it is about the key.
                *value.decor_mut() = old.decor().clone();
                *old = value;
            }
            _ => {
                table.insert(key, Item::Value(value));
            }
        }
        Ok(())
    }

    /// Takes a value out; whether it was there.
    pub(super) fn unset(&mut self, tables: &[&str], key: &str) -> Result<bool, EditError> {
        Ok(self.table(tables, false)?.is_some_and(|table| table.remove(key).is_some()))
    }

    fn table(&mut self, tables: &[&str], make: bool) -> Result<Option<&mut dyn TableLike>, EditError> {
        let path = &self.file;
        let mut table: &mut dyn TableLike = self.document.as_table_mut();
        let mut form = Form::Header;
        for (depth, name) in tables.iter().enumerate() {
            if !table.contains_key(name) {
                if !make {
                    return Ok(None);
                }
                table.insert(name, form.table(depth + 1 == tables.len()));
            }
            let item = table.get_mut(name).filter(|item| item.is_table_like());
            let Some(item) = item else {
                return Err(EditError::NotATable { path: path.clone(), table: tables[..=depth].join(".") });
            };
            form = Form::of(item);
            let Some(inner) = item.as_table_like_mut() else { return Ok(None) };
            table = inner;
        }
        Ok(Some(table))
    }

    /// Replaces the file.
    pub(super) fn save(self) -> Result<(), EditError> {
        let mark = if self.marked { "\u{feff}" } else { "" };
        let text = format!("{mark}{}{}", self.head, self.document);
        let text = if self.crlf { text.replace("\r\n", "\n").replace('\n', "\r\n") } else { text };
        let failed = |source| EditError::Io { what: "write", path: self.file.clone(), source };
        let folder = self.file.parent().unwrap_or(Path::new("."));
        // Only its owner can read it, from the first moment on.
        let mut new = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
        new.write_all(text.as_bytes())
            .and_then(|()| new.as_file().set_permissions(self.permissions.clone()))
            .and_then(|()| new.as_file().sync_all())
            .map_err(failed)?;
        new.persist(&self.file).map_err(|error| failed(error.error))?;
        Ok(())
    }
}

/// How a table is written, and so those that are made in it.
#[derive(Clone, Copy)]
enum Form {
    /// `[a.b]`
    Header,
    /// `a.b = …`
    Dotted,
    /// `a = { b = … }`
    Inline,
}

impl Form {
    fn of(item: &Item) -> Self {
        match item {
            Item::Table(table) if table.is_dotted() => Self::Dotted,
            Item::Table(_) => Self::Header,
            _ => Self::Inline,
        }
    }

    fn table(self, is_last: bool) -> Item {
        let mut table = Table::new();
        match self {
            Self::Inline => return Item::Value(InlineTable::new().into()),
            Self::Dotted => table.set_dotted(true),
            Self::Header => table.set_implicit(!is_last),
        }
        Item::Table(table)
    }
}

/// A JSON value as TOML.
///
/// # Errors
/// [`EditError::NoSuchValue`].
pub(super) fn toml_value(value: &Value) -> Result<toml_edit::Value, EditError> {
    Ok(match value {
        Value::Null => return Err(EditError::NoSuchValue("null")),
        Value::Bool(flag) => (*flag).into(),
        Value::String(text) => text.as_str().into(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => whole.into(),
            (None, Some(float)) if !number.is_u64() => float.into(),
            _ => return Err(EditError::NoSuchValue("whole number of that size")),
        },
        Value::Array(items) => items.iter().map(toml_value).collect::<Result<Array, _>>()?.into(),
        Value::Object(members) => {
            let members = members.iter().map(|(key, value)| Ok((key.as_str(), toml_value(value)?)));
            members.collect::<Result<InlineTable, EditError>>()?.into()
        }
    })
}

/// The permissions of a file that only its owner can read.
pub(super) fn private() -> Permissions {
    Permissions::from_mode(0o600)
}
