//! Takes values of the right type out of TOML, and notes each that is of another.

use std::{
    ops::Range,
    path::{Component, Path, PathBuf},
};

use serde_json::{Map, Number};
use toml::{
    Spanned,
    de::{DeArray, DeInteger, DeString, DeTable, DeValue},
};

use super::{ConfigProblem, ConfigWarning, Origin, Setting, folder_of, layer::Layer, source::Source};
use crate::{catalog::nearest, report::PluginText};

/// A key with its place.
pub(super) type Key<'a> = Spanned<DeString<'a>>;
/// A value with its place.
pub(super) type Value<'a> = Spanned<DeValue<'a>>;

/// One pass over a config file: what is known beforehand, and what was noted so far.
///
/// Each method that takes a value gives it in the type asked for, or notes what is wrong and gives
/// `None`.
pub(super) struct Reading<'a> {
    source: &'a Source<'a>,
    folder: PathBuf,
    home: Option<&'a Path>,
    layer: Layer,
    pub(super) settings: Vec<Setting>,
    problems: Vec<ConfigProblem>,
    warnings: Vec<ConfigWarning>,
}

/// What was noted in the end.
pub(super) struct Noted {
    pub(super) settings: Vec<Setting>,
    pub(super) problems: Vec<ConfigProblem>,
    pub(super) warnings: Vec<ConfigWarning>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(source: &'a Source<'a>, home: Option<&'a Path>, layer: Layer) -> Self {
        let folder = folder_of(source.path);
        Self { source, folder, home, layer, settings: Vec::new(), problems: Vec::new(), warnings: Vec::new() }
    }

    pub(super) fn layer(&self) -> Layer {
        self.layer
    }

    pub(super) fn finish(self) -> Noted {
        Noted { settings: self.settings, problems: self.problems, warnings: self.warnings }
    }

    pub(super) fn place(&self, key: &Key<'_>) -> (Origin, usize) {
        (self.origin(key), self.source.column(key.span().start))
    }

    pub(super) fn origin(&self, key: &Key<'_>) -> Origin {
        self.source.origin(key.span().start)
    }

    pub(super) fn problem(&mut self, span: Range<usize>, message: impl Into<String>) {
        self.problems.push(self.source.problem(span, message.into()));
    }

    pub(super) fn warn(&mut self, warning: ConfigWarning) {
        self.warnings.push(warning);
    }

    pub(super) fn unknown(&mut self, table: &str, key: &Key<'_>, known: &[&'static str]) {
        let (origin, column) = self.place(key);
        self.warn(ConfigWarning::UnknownKey {
            origin,
            column,
            table: table.to_owned(),
            key: key.get_ref().to_string(),
            nearest: nearest(key.get_ref(), known.iter().copied()),
        });
    }

    fn expected(&mut self, key: &str, what: &str, value: &Value<'_>) {
        let found = match value.get_ref() {
            DeValue::Array(_) | DeValue::Integer(_) => "an",
            _ => "a",
        };
        let kind = value.get_ref().type_str();
        self.problem(value.span(), format!("`{}` must be {what}, not {found} {kind}", shown(key)));
    }

    pub(super) fn table<'t, 'i>(&mut self, key: &str, value: &'t Value<'i>) -> Option<&'t DeTable<'i>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            self.expected(key, "a table", value);
        }
        table
    }

    pub(super) fn array<'t, 'i>(&mut self, key: &str, what: &str, value: &'t Value<'i>) -> Option<&'t DeArray<'i>> {
        let array = value.get_ref().as_array();
        if array.is_none() {
            self.expected(key, what, value);
        }
        array
    }

    /// A string without NUL, which neither an argument nor a path nor a variable can hold.
    pub(super) fn string<'t>(&mut self, key: &str, what: &str, value: &'t Value<'_>) -> Option<&'t str> {
        match value.get_ref().as_str() {
            Some(text) if text.contains('\0') => {
                self.problem(value.span(), format!("`{}` must not contain a NUL character", shown(key)));
                None
            }
            Some(text) => Some(text),
            None => {
                self.expected(key, what, value);
                None
            }
        }
    }

    pub(super) fn boolean(&mut self, key: &str, value: &Value<'_>) -> Option<bool> {
        let boolean = value.get_ref().as_bool();
        if boolean.is_none() {
            self.expected(key, "true or false", value);
        }
        boolean
    }

    /// A whole number from `least` up, to the largest that TOML has to offer.
    pub(super) fn number(&mut self, key: &str, what: &str, least: u64, value: &Value<'_>) -> Option<u64> {
        let Some(integer) = value.get_ref().as_integer() else {
            self.expected(key, what, value);
            return None;
        };
        let number = integer_of(integer).and_then(|number| u64::try_from(number).ok());
        if number.is_none_or(|number| number < least) {
            self.problem(value.span(), format!("`{}` must be {what} from {least} to {}", shown(key), i64::MAX));
            return None;
        }
        number
    }

    /// A folder, from the config file's folder or, with `~/`, from the home folder.
    pub(super) fn folder(&mut self, key: &str, value: &Value<'_>) -> Option<PathBuf> {
        let text = self.string(key, "a path in quotes", value)?;
        let tail = text.strip_prefix('~').filter(|tail| tail.is_empty() || tail.starts_with('/'));
        let path = match (tail, self.home) {
            (Some(tail), Some(home)) => home.join(tail.trim_start_matches('/')),
            (Some(_), None) => {
                self.problem(value.span(), "there is no home folder for `~`: HOME is not set");
                return None;
            }
            (None, _) if text.is_empty() => {
                self.problem(value.span(), format!("`{}` must not be empty", shown(key)));
                return None;
            }
            (None, _) if text.starts_with('~') => {
                self.problem(value.span(), "only `~/` is read as a home folder; write the whole path");
                return None;
            }
            (None, _) => self.folder.join(text),
        };
        // `..` stays: what it means depends on links.
        let path: PathBuf = path.components().filter(|part| *part != Component::CurDir).collect();
        if self.layer == Layer::Project && !self.is_in_project(&path) {
            self.problem(value.span(), format!("`{}` of a project must be a folder within the project", shown(key)));
            return None;
        }
        Some(path)
    }

    /// The project whose config file this is.
    pub(super) fn project(&self) -> Option<&Path> {
        self.folder.parent()
    }

    /// Whether a folder that exists lies in the project whose config file this is.
    fn is_in_project(&self, path: &Path) -> bool {
        let project = self.project().and_then(|project| project.canonicalize().ok());
        path.canonicalize().is_ok_and(|path| project.is_some_and(|project| path.starts_with(project)))
    }

    /// The program that a path with a `/` names from the home folder or, if `here`, from the config file's folder: it
    /// is the same one wherever the host works.
    pub(super) fn program(&self, program: &str, here: bool) -> Option<String> {
        let path = match (program.strip_prefix("~/"), self.home) {
            (Some(tail), Some(home)) => home.join(tail.trim_start_matches('/')),
            _ if here && program.contains('/') => self.folder.join(program),
            _ => return None,
        };
        // What is not UTF-8 can't be said in an array of strings.
        path.to_str().map(ToOwned::to_owned)
    }

    /// A table as a JSON object.
    pub(super) fn object(&mut self, table: &DeTable<'_>) -> Option<Map<String, serde_json::Value>> {
        let mut object = Some(Map::new());
        for (key, value) in table {
            // Goes on after a bad value, to tell of all.
            let value = self.json(value);
            object = object.zip(value).map(|(mut object, value)| {
                object.insert(key.get_ref().to_string(), value);
                object
            });
        }
        object
    }

    pub(super) fn json(&mut self, value: &Value<'_>) -> Option<serde_json::Value> {
        Some(match value.get_ref() {
            DeValue::String(text) => text.as_ref().into(),
            DeValue::Boolean(boolean) => (*boolean).into(),
            DeValue::Datetime(moment) => moment.to_string().into(),
            DeValue::Integer(integer) => match integer_of(integer) {
                Some(number) => number.into(),
                None => return self.out_of_range(value),
            },
            DeValue::Float(float) => match float.as_str().parse().ok().and_then(Number::from_f64) {
                Some(number) => number.into(),
                None => {
                    self.problem(value.span(), "JSON, which the plugin reads, has no such number");
                    return None;
                }
            },
            DeValue::Array(array) => {
                let items: Vec<_> = array.iter().map(|item| self.json(item)).collect();
                items.into_iter().collect::<Option<Vec<_>>>()?.into()
            }
            DeValue::Table(table) => self.object(table)?.into(),
        })
    }

    fn out_of_range<T>(&mut self, value: &Value<'_>) -> Option<T> {
        self.problem(value.span(), format!("a whole number must be from {} to {}", i64::MIN, i64::MAX));
        None
    }
}

/// The number, where TOML's range holds it.
fn integer_of(integer: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// A key ready to be shown.
pub(super) fn shown(key: &str) -> String {
    PluginText::from(key).capped(80).to_string()
}

/// Paths as a JSON array.
pub(super) fn shown_paths(paths: &[PathBuf]) -> serde_json::Value {
    paths.iter().map(|path| path.to_string_lossy()).collect()
}
