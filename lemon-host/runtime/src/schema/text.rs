//! A JSON text in its canonical form: one line without insignificant white space, otherwise the bytes that were given.
//!
//! Key order, escapes and every digit of every number stay as they were written. What is written here is what gates,
//! tool and ledger get, so that all of them see the same arguments.

use serde::de::IgnoredAny;
use serde_json::value::RawValue;

/// The deepest nesting that is read: that of serde_json, which most readers of ours use.
pub(crate) const DEPTH: usize = 127;

/// A JSON text in canonical form, and how much is in it.
#[derive(Debug)]
pub(crate) struct Canonical {
    pub(crate) text: Box<RawValue>,
    /// How many values there are, the containers included.
    pub(crate) values: usize,
    /// How deep they nest.
    pub(crate) depth: usize,
}

/// Why a text is not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TextFault {
    /// It breaks the grammar.
    #[error("they are not JSON: {0}")]
    Syntax(String),
    /// It nests too deep.
    #[error("they nest deeper than {DEPTH} levels")]
    Depth,
    /// It has too many values.
    #[error("they have more than {0} values (limits.argument_values)")]
    Values(usize),
}

impl Canonical {
    /// Reads a text that has at most so many values.
    ///
    /// # Errors
    /// The text is not JSON, nests too deep or has too many values. The depth and the number are found out before
    /// anything is built from the text.
    pub(crate) fn read(text: &str, most_values: usize) -> Result<Self, TextFault> {
        let mut scan = Scan { out: String::with_capacity(text.len()), values: 1, depth: 0, deepest: 0 };
        scan.read(text);
        if scan.deepest > DEPTH {
            return Err(TextFault::Depth);
        }
        if scan.values > most_values {
            return Err(TextFault::Values(most_values));
        }
        let (values, depth) = (scan.values, scan.deepest);
        match RawValue::from_string(scan.out) {
            Ok(text) => Ok(Self { text, values, depth }),
            // The place of the fault is that in the text as it was given.
            Err(fault) => {
                let given = serde_json::from_str::<IgnoredAny>(text);
                Err(TextFault::Syntax(given.err().unwrap_or(fault).to_string()))
            }
        }
    }
}

impl Canonical {
    /// The text alone.
    pub(crate) fn into_text(self) -> String {
        Box::<str>::from(self.text).into()
    }
}

/// Goes through a text once. It may be anything: what is no JSON stays none.
struct Scan {
    out: String,
    values: usize,
    depth: usize,
    deepest: usize,
}

impl Scan {
    fn read(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let (mut at, mut kept, mut opened) = (0, 0, false);
        while let Some(&byte) = bytes.get(at) {
            // The first value of a container has no comma before it.
            if opened && !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                self.values += usize::from(!matches!(byte, b'}' | b']'));
                opened = false;
            }
            match byte {
                b'"' => at = string_end(bytes, at),
                b' ' | b'\t' | b'\n' | b'\r' => {
                    self.out.push_str(&text[kept..at]);
                    at += bytes[at..].iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
                    // `1 2` must not become a number.
                    if self.out.bytes().next_back().is_some_and(is_word) && bytes.get(at).copied().is_some_and(is_word)
                    {
                        self.out.push(' ');
                    }
                    kept = at;
                    continue;
                }
                b'{' | b'[' => {
                    self.depth += 1;
                    self.deepest = self.deepest.max(self.depth);
                    opened = true;
                    at += 1;
                }
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    at += 1;
                }
                b',' => {
                    self.values += 1;
                    at += 1;
                }
                _ => at += 1,
            }
        }
        self.out.push_str(&text[kept..]);
    }
}

/// Whether a byte may be next to white space that means something.
fn is_word(byte: u8) -> bool {
    !matches!(byte, b'{' | b'}' | b'[' | b']' | b',' | b':' | b'"')
}

/// The end of the string that begins at a quote, past its other quote or at the end of the text.
pub(crate) fn string_end(bytes: &[u8], start: usize) -> usize {
    /// A longer string is worth the start of a search that looks at many bytes at once.
    const SHORT: usize = 128;
    let mut at = start + 1;
    while at < bytes.len() {
        let near = bytes.len().min(at + SHORT);
        at = special(&bytes[..near], at);
        if at == near {
            at += memchr::memchr2(b'"', b'\\', &bytes[near..]).unwrap_or(bytes.len() - near);
        }
        match bytes.get(at) {
            Some(b'"') => return at + 1,
            Some(b'\\') => at += 2,
            // A control character, which is for others to refuse.
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The end of the string that begins at a quote, past its other quote, if it stands for what is written there: it has
/// neither escapes nor control characters.
pub(crate) fn plain_string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let end = special(bytes, start + 1);
    (bytes.get(end) == Some(&b'"')).then_some(end + 1)
}

/// The next byte that does not stand for itself in a string: a quote, a backslash or a control character. If there is
/// none, the end.
fn special(bytes: &[u8], mut at: usize) -> usize {
    /// Eight bytes are looked at together, in one number; each has its answer in its highest bit. Only the lowest of
    /// several answers is sure.
    const EACH: u64 = u64::MAX / 255;
    let is_zero = |eight: u64| eight.wrapping_sub(EACH) & !eight;
    while let Some(eight) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let eight = u64::from_le_bytes(*eight);
        let is_control = eight.wrapping_sub(EACH * u64::from(b' ')) & !eight;
        let found = is_control | is_zero(eight ^ (EACH * u64::from(b'"'))) | is_zero(eight ^ (EACH * u64::from(b'\\')));
        let found = found & (EACH << 7);
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | ..b' ')).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn a_plain_string_ends_where_a_byte_by_byte_look_finds_its_end(text in "[a-zäé\\x7f\u{80}-\u{ff}]{0,20}[\"\\\\\n\\x1fa]{0,2}.{0,20}") {
            let (text, bytes) = (format!("\"{text}"), format!("\"{text}").into_bytes());
            let end = bytes[1..].iter().position(|byte| matches!(byte, b'"' | b'\\' | ..b' ')).map(|at| at + 1);
            let expected = end.filter(|at| bytes[*at] == b'"').map(|at| at + 1);
            proptest::prop_assert_eq!(plain_string_end(&bytes, 0), expected, "{}", text);
            if let Some(expected) = expected {
                proptest::prop_assert_eq!(string_end(&bytes, 0), expected, "{}", text);
            }
        }
    }

    #[test]
    fn a_string_ends_at_its_quote_wherever_that_is_and_whatever_is_before_it() {
        for length in (0..40).chain(120..140) {
            for odd in ["", "\\\"", "\\\\", "\n", "\\u0022", "\u{1f}ä"] {
                let string = format!("\"{}{odd}{}\"", "x".repeat(length), "y".repeat(length % 7));
                assert_eq!(string_end(format!("{string},\"z\"").as_bytes(), 0), string.len(), "{string}");
                let open = &string[..string.len() - 1];
                assert_eq!(string_end(open.as_bytes(), 0), open.len(), "{open}");
            }
        }
        assert_eq!(string_end(b"\"\\", 0), 2);
    }

    #[test]
    fn values_are_counted_and_their_depth() {
        for (text, values, depth) in [
            ("1", 1, 0),
            ("[ ]", 1, 1),
            ("[1, {} , [\n]]", 4, 2),
            (r#"{"a":{"b":[1,2]},"c":"[,"}"#, 6, 3),
            ("{\"a\":\"\\\"[\"}", 2, 1),
        ] {
            let read = Canonical::read(text, values).unwrap();
            assert_eq!((read.values, read.depth), (values, depth), "{text}");
            assert_eq!(Canonical::read(text, values - 1).unwrap_err(), TextFault::Values(values - 1));
        }
    }
}
