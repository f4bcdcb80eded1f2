//! Takes the values of secrets out of what is told: trace, logs, stderr, errors, recordings.
//!
//! One [`Redactor`] holds every secret that was granted to a plugin or read from somewhere. Text
//! passes through [`Redactor::redact`] whole and before it is escaped or cut, since a value that
//! was cut in two is not found. A value that was encoded otherwise than for JSON (base64, percent
//! signs) is not found either.

mod escaped;

use std::{
    borrow::Cow,
    collections::BTreeSet,
    fmt,
    sync::{Arc, PoisonError, RwLock},
};

use aho_corasick::{AhoCorasick, AhoCorasickKind};

/// What stands where a secret stood.
pub(crate) const REDACTED: &str = "[redacted]";

/// Shorter values are not redacted: three bytes stand in too many places where they mean something
/// else, and a text full of holes tells less, and no more safely.
pub(crate) const MIN_SECRET_BYTES: usize = 4;

/// Shorter lines of a secret of many lines are not redacted by themselves.
pub(crate) const MIN_LINE_CHARS: usize = 16;

/// The values of all known secrets; clones share them.
///
/// All values are searched in one pass that is linear in the text, whatever a plugin puts into it.
/// Where several occurrences overlap or touch, all that any of them covers becomes one
/// `[redacted]`.
#[derive(Clone, Default)]
pub struct Redactor {
    known: Arc<RwLock<Known>>,
}

#[derive(Default)]
struct Known {
    secrets: BTreeSet<Box<str>>,
    patterns: BTreeSet<String>,
    search: Search,
}

#[derive(Clone, Default)]
enum Search {
    #[default]
    Nothing,
    For(AhoCorasick),
    /// The values could not be compiled, so nothing may be shown.
    Blind,
}

impl Redactor {
    /// A redactor that knows no secret yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Hides a value from now on, in all clones, and says whether it does.
    ///
    /// White space around the value is not part of it, since it comes from a file's last newline.
    /// What remains is ignored when it is shorter than 4 bytes. The forms that JSON
    /// writers give the value are hidden too, and each line of at least 16
    /// characters of a value of several lines, such as a PEM key, except its `-----BEGIN …` and
    /// `-----END …`, which are no secret.
    pub fn add(&self, value: &str) -> bool {
        let value = value.trim();
        if value.len() < MIN_SECRET_BYTES {
            return false;
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if !known.secrets.insert(value.into()) {
            return true;
        }
        let long_lines = value.lines().map(str::trim).filter(|line| {
            line.chars().count() >= MIN_LINE_CHARS && !line.starts_with("-----BEGIN ") && !line.starts_with("-----END ")
        });
        for secret in std::iter::once(value).chain(long_lines) {
            known.patterns.extend(escaped::forms(secret));
        }
        // A contiguous automaton takes a few bytes for each byte of a secret. The faster kinds take
        // hundreds, and a secret may be a file.
        known.search = AhoCorasick::builder()
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(&known.patterns)
            .map_or(Search::Blind, Search::For);
        true
    }

    /// The text with every occurrence of a secret replaced; the text itself when there is none.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        // The lock is not held during the search, which may take long; a search is cheap to clone.
        let search = self.known.read().unwrap_or_else(PoisonError::into_inner).search.clone();
        match search {
            Search::Nothing => Cow::Borrowed(text),
            Search::For(secrets) => replace(text, &secrets),
            Search::Blind => Cow::Borrowed(REDACTED),
        }
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        f.debug_struct("Redactor").field("secrets", &known.secrets.len()).finish()
    }
}

/// Whether the name of a variable or key says that its value is not to be shown.
pub(crate) fn names_a_secret(key: &str) -> bool {
    const WORDS: &[&str] = &["TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "APIKEY", "API_KEY", "PRIVATE_KEY"];
    let key = key.to_ascii_uppercase().replace('-', "_");
    key.ends_with("_KEY") || key.ends_with("_PAT") || WORDS.iter().any(|word| key.contains(word))
}

fn replace<'a>(text: &'a str, secrets: &AhoCorasick) -> Cow<'a, str> {
    // Occurrences come ordered by their end. One that begins before the last one's end grows it,
    // maybe to the left over ones that were separate until then, hence the stack.
    let mut holes: Vec<(usize, usize)> = Vec::new();
    for found in secrets.find_overlapping_iter(text) {
        let (mut start, end) = (found.start(), found.end());
        while let Some(&(other_start, other_end)) = holes.last() {
            if other_end < start {
                break;
            }
            start = start.min(other_start);
            holes.pop();
        }
        holes.push((start, end));
    }
    if holes.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut copied = 0;
    for (start, end) in holes {
        shown.push_str(&text[copied..start]);
        shown.push_str(REDACTED);
        copied = end;
    }
    shown.push_str(&text[copied..]);
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn knowing(secrets: &[&str]) -> Redactor {
        let redactor = Redactor::new();
        for secret in secrets {
            redactor.add(secret);
        }
        redactor
    }

    #[test]
    fn text_without_a_secret_is_borrowed() {
        assert!(matches!(Redactor::new().redact("hello"), Cow::Borrowed("hello")));
        assert!(matches!(knowing(&["s3cret"]).redact("hello"), Cow::Borrowed("hello")));
    }

    #[test]
    fn every_occurrence_is_replaced() {
        let redactor = knowing(&["s3cret", "token-é"]);
        assert_eq!(redactor.redact("a s3cret, token-é; s3cret"), "a [redacted], [redacted]; [redacted]");
        assert_eq!(redactor.redact("s3cret"), "[redacted]");
    }

    #[test]
    fn a_short_value_is_ignored() {
        let redactor = Redactor::new();
        assert!(!redactor.add("abc") && !redactor.add("") && !redactor.add("  \n  ab "));
        assert_eq!(redactor.redact("abc ab"), "abc ab");
        assert!(redactor.add("abcd") && redactor.add("abcd"));
    }

    #[test]
    fn the_longer_of_two_wins_and_overlaps_leave_nothing() {
        assert_eq!(knowing(&["abcd", "abcdefgh"]).redact("xabcdefghx"), "x[redacted]x");
        assert_eq!(knowing(&["abcd", "cdef"]).redact("xabcdefx"), "x[redacted]x");
        assert_eq!(knowing(&["abab"]).redact("xabababx"), "x[redacted]x");
        assert_eq!(knowing(&["aaaa", "bbbb", "a bbbb c aaaa"]).redact("aaaa bbbb c aaaa."), "[redacted].");
    }

    #[test]
    fn the_files_last_newline_is_not_part_of_a_secret() {
        assert_eq!(knowing(&["s3cret\n"]).redact("key=s3cret\nnext"), "key=[redacted]\nnext");
    }

    #[test]
    fn forms_that_json_writers_give_are_hidden() {
        let secret = "pä\"ss\\wo/rd\n<&>𝄞";
        let redactor = knowing(&[secret]);
        let json = serde_json::to_string(secret).unwrap();
        for form in [
            json.as_str(),
            &json.replace('/', "\\/"),
            r#""p\u00e4\"ss\\wo/rd\n<&>\ud834\udd1e""#,
            r#""p\u00e4\"ss\\wo\/rd\n<&>\ud834\udd1e""#,
            r#""p\u00E4\"ss\\wo/rd\n<&>\uD834\uDD1E""#,
            r#""pä\"ss\\wo/rd\n\u003c\u0026\u003e𝄞""#,
        ] {
            assert_eq!(redactor.redact(form), "\"[redacted]\"", "{form}");
        }
        let twice = serde_json::to_string(&json).unwrap();
        assert_eq!(redactor.redact(&twice), r#""\"[redacted]\"""#);
    }

    #[test]
    fn long_lines_of_a_key_are_hidden_one_by_one() {
        let key = "-----BEGIN PRIVATE KEY-----\r\nMIIEvQIBADANBgkqhkiG9w0B\r\n\
            AQEFAASCBKcw/ggSjAgEAAoIB\r\nshort==\r\n-----END PRIVATE KEY-----\r\n";
        let redactor = knowing(&[key]);
        assert_eq!(redactor.redact("at MIIEvQIBADANBgkqhkiG9w0B!"), "at [redacted]!");
        assert_eq!(redactor.redact(r"AQEFAASCBKcw\/ggSjAgEAAoIB"), "[redacted]");
        assert_eq!(redactor.redact("short=="), "short==");
        assert_eq!(redactor.redact("-----BEGIN PRIVATE KEY-----"), "-----BEGIN PRIVATE KEY-----");
        assert_eq!(redactor.redact(key), "[redacted]\r\n");
    }

    #[test]
    fn clones_share_and_debug_shows_no_value() {
        let redactor = Redactor::new();
        let clone = redactor.clone();
        redactor.add("s3cret");
        assert_eq!(clone.redact("s3cret"), "[redacted]");
        assert_eq!(format!("{clone:?}"), "Redactor { secrets: 1 }");
    }

    proptest! {
        #[test]
        fn no_byte_of_an_occurrence_survives(
            secrets in prop::collection::vec("[abé]{4,6}", 1..4),
            text in "[abé ]{0,40}",
        ) {
            let redactor = knowing(&secrets.iter().map(String::as_str).collect::<Vec<_>>());
            let mut secret_at = vec![false; text.len()];
            for secret in secrets.iter().filter(|secret| secret.len() >= MIN_SECRET_BYTES) {
                for at in 0..text.len() {
                    if text.as_bytes()[at..].starts_with(secret.as_bytes()) {
                        secret_at[at..at + secret.len()].fill(true);
                    }
                }
            }
            let mut expected = Vec::new();
            for (at, byte) in text.bytes().enumerate() {
                match (secret_at[at], at > 0 && secret_at[at - 1]) {
                    (false, _) => expected.push(byte),
                    (true, false) => expected.extend_from_slice(REDACTED.as_bytes()),
                    (true, true) => {}
                }
            }
            prop_assert_eq!(redactor.redact(&text).into_owned().into_bytes(), expected);
        }

        #[test]
        fn any_secret_is_found_in_json(secret in any::<String>(), around in "[x-z]{0,5}") {
            prop_assume!(secret.trim().len() >= MIN_SECRET_BYTES);
            let redactor = knowing(&[&secret]);
            let json = serde_json::to_string(&format!("{around}{secret}{around}")).unwrap();
            prop_assert!(redactor.redact(&json).contains(REDACTED));
        }
    }
}
