//! Reads a typed value from JSON, for arguments and configuration, and says what does not fit without showing it.
//!
//! To JSON Schema `1.0`, `1e3` and `-0` are integers, and so they are to whoever checked the value before it came here;
//! to serde they are not. Where a value can't be read as it is written, it is read once more with such numbers written as
//! integers. A value that does not fit may be a secret: no message repeats one.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde_path_to_error::Path;

use crate::excerpt::{REASON, excerpt};

/// What does not fit.
pub(crate) struct Misfit {
    pub(crate) path: Path,
    pub(crate) reason: String,
}

pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, Misfit> {
    as_written(text).or_else(|misfit| match with_integers(text) {
        Some(text) => as_written(&text),
        None => Err(misfit),
    })
}

fn as_written<T: DeserializeOwned>(text: &str) -> Result<T, Misfit> {
    let mut json = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(&mut json)
        .map_err(|error| Misfit { path: error.path().clone(), reason: reason(error.inner()) })
}

/// What serde says is wrong, without the place in a text that nobody wrote by hand, and without the value. Only what a
/// type's own reader says is passed on as it is.
pub(crate) fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let end = text.rfind(" at line ").unwrap_or(text.len());
    excerpt(&without_value(&text[..end]), REASON).into_owned()
}

/// Takes the value out of serde's own messages: `invalid type: string "x", expected i64`.
fn without_value(text: &str) -> Cow<'_, str> {
    for fault in ["invalid type: ", "invalid value: "] {
        let Some(found) = text.strip_prefix(fault) else { continue };
        if let Some(quoted) = found.strip_prefix("string \"") {
            return format!("{fault}string{}", &quoted[end_of_quoted(quoted)..]).into();
        }
        for kind in ["integer", "floating point", "boolean", "character"] {
            let value = found.strip_prefix(kind).and_then(|rest| rest.strip_prefix(" `"));
            if let Some((_, rest)) = value.and_then(|value| value.split_once("`, expected ")) {
                return format!("{fault}{kind}, expected {rest}").into();
            }
        }
    }
    if let Some(variant) = text.strip_prefix("unknown variant `") {
        // From behind, as the value may have anything in it.
        for known in ["`, expected ", "`, there are no variants"] {
            if let Some(end) = variant.rfind(known) {
                return format!("unknown variant{}", &variant[end + 1..]).into();
            }
        }
    }
    Cow::Borrowed(text)
}

/// Where a text in Rust's notation ends, its quotation mark included; it begins behind one.
fn end_of_quoted(quoted: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in quoted.bytes().enumerate() {
        match byte {
            b'"' if !escaped => return at + 1,
            byte => escaped = byte == b'\\' && !escaped,
        }
    }
    quoted.len()
}

/// The JSON text with each number that is an integer written as one; none if all are.
fn with_integers(text: &str) -> Option<String> {
    let (bytes, mut copied, mut at) = (text.as_bytes(), 0, 0);
    let mut written = String::new();
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at += 1 + end_of_quoted(&text[at + 1..]),
            b'-' | b'0'..=b'9' => {
                let part = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
                let end = at + bytes[at..].iter().take_while(|byte| part(byte)).count();
                if let Some(integer) = as_integer(&text[at..end]) {
                    written += &text[copied..at];
                    written += &integer;
                    copied = end;
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    (copied > 0).then(|| written + &text[copied..])
}

/// A number with a fraction or an exponent, or `-0`, as an integer. None if it is none, has far more digits than any of
/// Rust's integers, or is written as one.
fn as_integer(number: &str) -> Option<String> {
    const DIGITS: usize = 40;
    if number == "-0" {
        return Some("0".to_owned());
    }
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None if number.contains('.') => (number, 0),
        None => return None,
    };
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(mantissa) => ("-", mantissa),
        None => ("", mantissa),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole, fraction].concat();
    if digits.bytes().all(|digit| digit == b'0') {
        return Some("0".to_owned());
    }
    // So many digits stand before the point.
    let point = usize::try_from(i64::try_from(whole.len()).ok()? + i64::from(exponent)).ok()?;
    let (whole, fraction) = digits.split_at_checked(point).unwrap_or((&digits, ""));
    let significant = whole.trim_start_matches('0');
    let zeros = point.saturating_sub(digits.len());
    if fraction.bytes().any(|digit| digit != b'0') || significant.len().checked_add(zeros)? > DIGITS {
        return None;
    }
    Some(format!("{sign}{significant}{}", "0".repeat(zeros)))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[test]
    fn what_json_schema_calls_an_integer_is_read_as_one() {
        let integers = [("1.0", 1), ("-3.00", -3), ("12e2", 1_200), ("1.5E+1", 15), ("-0", 0), ("0e9", 0)];
        for (text, number) in integers.into_iter().chain([("100e-2", 1), ("9223372036854775807.0", i64::MAX)]) {
            assert_eq!(read::<i64>(text).ok(), Some(number), "{text}");
        }
        for text in ["1.5", "1e400", "-1e99", "1e-1", "9223372036854775808.0", "1e99999999999", "\"1.0\""] {
            assert!(read::<i64>(text).is_err(), "{text}");
        }
        assert_eq!(read::<u8>("255.0").ok(), Some(255));
        assert!(read::<u8>("256.0").is_err());
    }

    #[test]
    fn the_tagged_and_flattened_types_that_serde_buffers_are_read_so_too() {
        #[derive(Debug, PartialEq, Deserialize)]
        #[serde(tag = "op")]
        enum Edit {
            Delete { line: u32, note: String, factor: f64 },
        }
        let edit = read::<Edit>(r#"{"line": 7.0, "op": "Delete", "note": "\" 2.0", "factor": 2.50}"#);
        assert_eq!(edit.ok(), Some(Edit::Delete { line: 7, note: "\" 2.0".to_owned(), factor: 2.5 }));
    }

    #[test]
    fn what_can_be_read_as_it_is_written_keeps_its_digits() {
        let value: Vec<Box<serde_json::value::RawValue>> = read("[1.0, 1e3]").ok().unwrap();
        assert_eq!((value[0].get(), value[1].get()), ("1.0", "1e3"));
    }

    #[test]
    fn no_message_shows_a_value() {
        #[derive(Deserialize)]
        enum Choice {
            #[serde(rename = "fast")]
            Fast,
        }
        fn said<T: DeserializeOwned>(text: &str) -> String {
            read::<T>(text).err().unwrap().reason
        }
        assert_eq!(said::<i64>(r#""a\" secret\\""#), "invalid type: string, expected i64");
        assert_eq!(said::<String>("5"), "invalid type: integer, expected a string");
        assert_eq!(said::<u8>("300"), "invalid value: integer, expected u8");
        assert_eq!(said::<u8>("1.5"), "invalid type: floating point, expected u8");
        assert_eq!(said::<u8>("true"), "invalid type: boolean, expected u8");
        assert_eq!(said::<u8>("null"), "invalid type: null, expected u8");
        assert_eq!(said::<Choice>(r#""sec`, ret""#), "unknown variant, expected `fast`");
    }
}
