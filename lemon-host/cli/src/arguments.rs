//! The arguments of a call, as words of the command line: one JSON object, `-` for stdin, or `key=value`.
//!
//! A value is a string here, and the host fits it to the tool's schema as it does for everybody. JSON stays as it was
//! typed: nothing is parsed and written anew, so that no digit is lost.

use std::collections::HashSet;
use std::io::Read;

use lemon_host::PluginText;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::errors::Failure;
use crate::exit::Exit;

/// The most that is read from stdin; the host's own limit on a message decides below it.
const STDIN_BYTES: u64 = 64 * 1024 * 1024;

/// Reads the words, and stdin if they say so: the JSON object that the host is given.
///
/// # Errors
/// What is wrong with them, by word or key.
pub(crate) fn read(words: &[String]) -> Result<String, Failure> {
    match words {
        [word] if word == STDIN => from_stdin(),
        [word] if word.trim_start().starts_with(['{', '[']) => object(word.clone(), "the argument"),
        words => members(words),
    }
}

/// Stands for stdin.
pub(crate) const STDIN: &str = "-";

fn usage(what: impl Into<String>) -> Failure {
    Failure::new(Exit::Usage, what)
}

fn from_stdin() -> Result<String, Failure> {
    let mut text = String::new();
    let read = std::io::stdin().lock().take(STDIN_BYTES + 1).read_to_string(&mut text);
    read.map_err(|error| usage("can't read the arguments from stdin").why(error.to_string()))?;
    if text.len() as u64 > STDIN_BYTES {
        return Err(usage("the arguments on stdin are too large").why(format!("the limit is {STDIN_BYTES} bytes")));
    }
    object(text, "stdin")
}

fn object(text: String, place: &str) -> Result<String, Failure> {
    const HINT: &str = "give an object such as '{\"key\": \"value\"}', or words like key=value";
    match serde_json::from_str::<&RawValue>(&text) {
        // The host takes an object in a string as well, and null for no arguments.
        Ok(raw) if raw.get().starts_with(['{', '"', 'n']) => Ok(text),
        Err(_) if text.trim().is_empty() => Ok(text),
        Ok(_) => {
            Err(usage("the arguments are not a JSON object").why(format!("{place} is JSON of another sort")).hint(HINT))
        }
        Err(error) => Err(usage("the arguments are not a JSON object").why(format!("{place}: {error}")).hint(HINT)),
    }
}

fn members(words: &[String]) -> Result<String, Failure> {
    let members = pairs(words)?;
    let members: Vec<_> =
        members.into_iter().map(|Pair { key, value, .. }| format!("{}:{value}", Value::from(key))).collect();
    Ok(format!("{{{}}}", members.join(",")))
}

/// `key=value`, or `key:=JSON`.
pub(crate) struct Pair<'a> {
    pub(crate) key: &'a str,
    /// As JSON: a string, or what was written as JSON.
    pub(crate) value: String,
    pub(crate) is_json: bool,
}

/// The pairs in words, each key once.
///
/// # Errors
/// What is wrong with them, by word or key.
pub(crate) fn pairs(words: &[String]) -> Result<Vec<Pair<'_>>, Failure> {
    let mut keys = HashSet::new();
    let pair = |word| {
        let pair = member(word)?;
        if !keys.insert(pair.key) {
            let hint = "give several values as one array: key:='[1, 2]'";
            return Err(usage(format!("`{}` is given twice", shown_key(pair.key))).hint(hint));
        }
        Ok(pair)
    };
    words.iter().map(String::as_str).map(pair).collect()
}

/// The key and its value.
fn member(word: &str) -> Result<Pair<'_>, Failure> {
    let shown = PluginText::new(word);
    let Some((key, value)) = word.split_once('=') else {
        let why = if word.trim_start().starts_with('{') {
            "a JSON object has to be the only argument"
        } else {
            "it is neither key=value nor a JSON object"
        };
        return Err(usage(format!("`{}` is not an argument", shown.capped(80)))
            .why(why)
            .hint("write key=value, or key:=JSON, or one JSON object, or `-` to read it from stdin"));
    };
    let (key, is_json) = key.strip_suffix(':').map_or((key, false), |key| (key, true));
    if key.is_empty() {
        return Err(usage(format!("`{}` has no key before `=`", shown.capped(80))));
    }
    if !is_json {
        return Ok(Pair { key, value: Value::from(value).to_string(), is_json });
    }
    match serde_json::from_str::<&RawValue>(value) {
        Ok(_) => Ok(Pair { key, value: value.to_owned(), is_json }),
        Err(error) => Err(usage(format!("the value of `{}` is not JSON", shown_key(key)))
            .why(error.to_string())
            .hint(format!("write `{}=…` for a string", shown_key(key)))),
    }
}

fn shown_key(key: &str) -> String {
    PluginText::new(key).capped(80).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(words: &[&str]) -> Result<String, Failure> {
        read(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_word_is_a_string_that_the_host_fits_and_with_a_colon_it_is_json() {
        let words = ["s=5", "n:=0.10000000000000000555", "else=a b", "quoted=\"q\"", "x:y=", "a:=[1, 2]"];
        let json = r#"{"s":"5","n":0.10000000000000000555,"else":"a b","quoted":"\"q\"","x:y":"","a":[1, 2]}"#;
        assert_eq!(built(&words).unwrap(), json);
        assert_eq!(built(&[]).unwrap(), "{}");
        assert_eq!(built(&["{\"a\": 1}"]).unwrap(), "{\"a\": 1}");
    }

    #[test]
    fn what_is_no_argument_is_refused() {
        for words in [&["s:=x"][..], &["=1"], &[":=1"], &["word"], &["a=1", "a:=2"], &["[1]"]] {
            assert!(built(words).is_err(), "{words:?}");
        }
    }
}
