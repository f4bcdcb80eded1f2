//! The arguments of a call, as words of the command line: one JSON object, `-` for stdin, or `key=value`.
//!
//! Numbers and other JSON stay as they were typed: nothing is parsed and written anew, so that no digit is lost.

use std::io::Read;

use lemon_host::PluginText;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::errors::Failure;
use crate::exit::Exit;
use crate::schema::{self, Type};

/// The most that is read from stdin; the host's own limit on a message decides below it.
const STDIN_BYTES: u64 = 64 * 1024 * 1024;

/// Arguments that wait for the schema of their tool.
#[derive(Debug)]
pub(crate) enum Arguments {
    Object(String),
    Pairs(Vec<Pair>),
}

/// One `key=value` or `key:=JSON`.
#[derive(Debug)]
pub(crate) struct Pair {
    key: String,
    value: String,
    /// Whether the value is JSON whatever the schema says.
    json: bool,
}

impl Arguments {
    /// Reads the words, and stdin if they say so.
    ///
    /// # Errors
    /// What is wrong with them, by word or key.
    pub(crate) fn read(words: &[String]) -> Result<Self, Failure> {
        match words {
            [word] if word == "-" => from_stdin(),
            [word] if word.trim_start().starts_with(['{', '[']) => object(word.clone(), "the argument"),
            words => pairs(words),
        }
    }

    /// The JSON object that the host is given. Whether it fits the schema is for the host to say.
    pub(crate) fn for_tool(&self, schema: &Value) -> String {
        match self {
            Self::Object(object) => object.clone(),
            Self::Pairs(pairs) => {
                let members: Vec<String> = pairs.iter().map(|pair| pair.member(schema)).collect();
                format!("{{{}}}", members.join(","))
            }
        }
    }
}

fn usage(what: impl Into<String>) -> Failure {
    Failure::new(Exit::Usage, what)
}

fn from_stdin() -> Result<Arguments, Failure> {
    let mut text = String::new();
    let read = std::io::stdin().lock().take(STDIN_BYTES + 1).read_to_string(&mut text);
    read.map_err(|error| usage("can't read the arguments from stdin").why(error.to_string()))?;
    if text.len() as u64 > STDIN_BYTES {
        return Err(usage("the arguments on stdin are too large").why(format!("the limit is {STDIN_BYTES} bytes")));
    }
    object(text, "stdin")
}

fn object(text: String, place: &str) -> Result<Arguments, Failure> {
    const HINT: &str = "give an object such as '{\"key\": \"value\"}', or words like key=value";
    match serde_json::from_str::<&RawValue>(&text) {
        // The host takes an object in a string as well, and null for no arguments.
        Ok(raw) if raw.get().starts_with(['{', '"', 'n']) => Ok(Arguments::Object(text)),
        Err(_) if text.trim().is_empty() => Ok(Arguments::Object(text)),
        Ok(_) => {
            Err(usage("the arguments are not a JSON object").why(format!("{place} is JSON of another sort")).hint(HINT))
        }
        Err(error) => Err(usage("the arguments are not a JSON object").why(format!("{place}: {error}")).hint(HINT)),
    }
}

fn pairs(words: &[String]) -> Result<Arguments, Failure> {
    let mut pairs: Vec<Pair> = Vec::new();
    for word in words {
        let pair = pair(word)?;
        if pairs.iter().any(|other| other.key == pair.key) {
            let hint = "give several values as one array: key:='[1, 2]'";
            return Err(usage(format!("the argument `{}` is given twice", shown_key(&pair.key))).hint(hint));
        }
        pairs.push(pair);
    }
    Ok(Arguments::Pairs(pairs))
}

fn pair(word: &str) -> Result<Pair, Failure> {
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
    let (key, json) = key.strip_suffix(':').map_or((key, false), |key| (key, true));
    if key.is_empty() {
        return Err(usage(format!("`{}` has no key before `=`", shown.capped(80))));
    }
    if json && let Err(error) = parsed(value) {
        return Err(usage(format!("the argument `{}` is not JSON", shown_key(key)))
            .why(error.to_string())
            .hint(format!("write `{}=…` for a string", shown_key(key))));
    }
    Ok(Pair { key: key.to_owned(), value: value.to_owned(), json })
}

impl Pair {
    /// The member of the object.
    fn member(&self, schema: &Value) -> String {
        let value = if self.json || self.is_meant_as_json(schema) {
            self.value.clone()
        } else {
            Value::from(self.value.as_str()).to_string()
        };
        format!("{}:{value}", Value::from(self.key.as_str()))
    }

    /// Whether the schema wants something else than a string here, and the value is that.
    fn is_meant_as_json(&self, schema: &Value) -> bool {
        let Ok(value) = parsed(&self.value) else { return false };
        let types = schema::types(&schema["properties"][&self.key], schema);
        // A string is given as it is, without the quotes that JSON has.
        let mut others = types.iter().filter(|kind| **kind != Type::String);
        if types.is_empty() { !value.is_string() } else { others.any(|kind| kind.takes(&value)) }
    }
}

fn parsed(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text)
}

fn shown_key(key: &str) -> String {
    PluginText::new(key).capped(80).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn built(words: &[&str]) -> Result<String, Failure> {
        let schema = json!({"properties": {
            "s": {"type": "string"}, "i": {"type": "integer"}, "n": {"type": "number"}, "b": {"type": "boolean"},
            "o": {"type": "object"}, "a": {"type": "array"}, "maybe": {"type": ["string", "null"]},
        }});
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Ok(Arguments::read(&words)?.for_tool(&schema))
    }

    #[test]
    fn a_value_takes_the_type_of_the_schema() {
        let words = ["s=5", "i=5", "n=1e3", "b=true", "o={\"x\": [1]}", "a=[]", "maybe=null"];
        let json = r#"{"s":"5","i":5,"n":1e3,"b":true,"o":{"x": [1]},"a":[],"maybe":null}"#;
        assert_eq!(built(&words).unwrap(), json);
        assert_eq!(built(&["s=\"q\"", "maybe=5"]).unwrap(), r#"{"s":"\"q\"","maybe":"5"}"#);
        assert_eq!(
            built(&["other=5", "else=a b", "third=\"q\"", "x:y=", "s:=1"]).unwrap(),
            r#"{"other":5,"else":"a b","third":"\"q\"","x:y":"","s":1}"#
        );
        assert_eq!(built(&[]).unwrap(), "{}");
    }

    #[test]
    fn no_digit_is_lost() {
        let words = ["i=123456789012345678901234567890", "n=0.1000000000000000055511151231257827"];
        assert_eq!(
            built(&words).unwrap(),
            r#"{"i":123456789012345678901234567890,"n":0.1000000000000000055511151231257827}"#
        );
    }

    #[test]
    fn what_fits_no_type_is_a_string_for_the_host_to_judge() {
        let words = ["i=1.5", "n=true", "b=1", "o=[]", "a={}"];
        assert_eq!(built(&words).unwrap(), r#"{"i":"1.5","n":"true","b":"1","o":"[]","a":"{}"}"#);
    }

    #[test]
    fn what_is_no_argument_is_refused() {
        for word in ["s:=x", "=1", ":=1", "word"] {
            assert!(built(&[word]).is_err(), "{word}");
        }
    }
}
