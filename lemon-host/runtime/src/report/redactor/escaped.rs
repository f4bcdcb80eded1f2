//! The forms that a value takes inside JSON, as the writers of different languages make them.

use std::{collections::BTreeSet, fmt::Write as _};

/// The value itself and each different form that it takes inside a JSON string, without the quotes.
pub(super) fn forms(value: &str) -> BTreeSet<String> {
    let mut forms = BTreeSet::from([value.to_owned()]);
    for writer in WRITERS {
        let once = writer.escape(value);
        // JSON often travels as a string inside JSON: a tool's text result, say.
        forms.insert(WRITERS[0].escape(&once));
        forms.insert(once);
    }
    forms
}

/// What a JSON writer escapes beyond what it must.
struct Writer {
    /// `/` as `\/`.
    slash: bool,
    /// `<`, `>` and `&` by number, as text for a web page.
    html: bool,
    /// All that is not ASCII by number.
    non_ascii: bool,
    upper_hex: bool,
}

/// serde_json and JavaScript; PHP without and with its flag; Go; Python; .NET and Java's.
const WRITERS: &[Writer] = &[
    Writer::new(false, false, false, false),
    Writer::new(true, false, false, false),
    Writer::new(true, false, true, false),
    Writer::new(false, true, false, false),
    Writer::new(false, false, true, false),
    Writer::new(false, false, true, true),
    Writer::new(false, true, true, true),
];

impl Writer {
    const fn new(slash: bool, html: bool, non_ascii: bool, upper_hex: bool) -> Self {
        Self { slash, html, non_ascii, upper_hex }
    }

    fn escape(&self, value: &str) -> String {
        let mut out = String::with_capacity(value.len());
        for c in value.chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\u{8}' => out.push_str("\\b"),
                '\u{c}' => out.push_str("\\f"),
                '/' if self.slash => out.push_str("\\/"),
                c if self.by_number(c) => self.push_number(&mut out, c),
                c => out.push(c),
            }
        }
        out
    }

    fn by_number(&self, c: char) -> bool {
        c < ' '
            || (self.non_ascii && c > '~')
            || (self.html && matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}'))
            // .NET's default writer goes further than Go's.
            || (self.html && self.non_ascii && matches!(c, '\'' | '+' | '`'))
    }

    fn push_number(&self, out: &mut String, c: char) {
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing into a String cannot fail.
            let _ = if self.upper_hex { write!(out, "\\u{unit:04X}") } else { write!(out, "\\u{unit:04x}") };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinary_token_has_one_form() {
        assert_eq!(forms("sk-ab_12.X").len(), 1);
    }

    #[test]
    fn each_writer_gives_back_the_value() {
        let value = "a\"\\/\n\u{1}\u{7f}é𝄞<>&'+`\u{2028}";
        for writer in WRITERS {
            let json = format!("\"{}\"", writer.escape(value));
            assert_eq!(serde_json::from_str::<String>(&json).unwrap(), value, "{json}");
        }
        assert_eq!(format!("\"{}\"", WRITERS[0].escape(value)), serde_json::to_string(value).unwrap());
    }
}
