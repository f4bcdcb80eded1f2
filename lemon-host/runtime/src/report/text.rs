//! Text that came from a plugin, and how it is shown.
//!
//! A tool name, a description, an error or a line of stderr may hold terminal escapes,
//! bidirectional overrides or characters that nobody sees. [`PluginText`] keeps such text as it is
//! and shows it with all of these written out, so that what a user reads is what is there. A secret
//! is taken out first, by the [`Redactor`](super::Redactor): after the escaping its value
//! may no longer be found.

use std::fmt::{self, Display};

use serde::{Serialize, Serializer};

/// How many characters of a text are shown where the caller names no cap.
pub(crate) const DEFAULT_CAP: usize = 2_000;

/// A text from a plugin: raw inside, harmless when displayed.
///
/// `Display` and `Debug` show one line of at most 2,000 characters, in which every
/// control, bidirectional and invisible character is written like `\u{202e}`. Width and alignment
/// (`{:<20}`) count what is shown. Backslashes stay as they are, so that paths and patterns can be
/// read: a plugin can write text that looks escaped, but never text that acts.
///
/// `Serialize` gives the raw text: JSON has its own escapes, and a program wants the truth.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PluginText(String);

impl PluginText {
    /// Takes a text as the plugin sent it.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text as the plugin sent it: for JSON, and for nothing that a person reads.
    pub fn raw(&self) -> &str {
        &self.0
    }

    /// Shows the text in one line; a newline is written `\n`.
    pub fn line(&self) -> Shown<'_> {
        Shown { text: &self.0, keep_lines: false, cap: DEFAULT_CAP }
    }

    /// Shows the text with its newlines and tabs kept.
    pub fn block(&self) -> Shown<'_> {
        Shown { keep_lines: true, ..self.line() }
    }

    /// Shows the text in one line of at most `cap` characters, plus the note of how many were left
    /// out.
    pub fn capped(&self, cap: usize) -> Shown<'_> {
        self.line().capped(cap)
    }
}

impl Display for PluginText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.line().fmt(f)
    }
}

impl fmt::Debug for PluginText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.line())
    }
}

impl Serialize for PluginText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl From<String> for PluginText {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for PluginText {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

/// A [`PluginText`] on its way to a reader; made by [`PluginText::line`] and [`PluginText::block`].
#[derive(Clone, Copy)]
pub struct Shown<'a> {
    text: &'a str,
    keep_lines: bool,
    cap: usize,
}

impl Shown<'_> {
    /// Shows at most `cap` characters, then `… (+N more)`, where N counts the characters of the raw
    /// text that are left out.
    ///
    /// The cap counts what is shown, in which one raw character may take up to ten: a text made of
    /// escapes gets no more of the screen than any other. No escape is ever cut.
    pub fn capped(self, cap: usize) -> Self {
        Self { cap, ..self }
    }

    fn write(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        let mut room = self.cap;
        let mut previous = None;
        for (at, c) in self.text.char_indices() {
            let escaped = self.escapes(c, previous);
            let needed = if escaped { escape(c).count() } else { 1 };
            if needed > room {
                return write!(out, "… (+{} more)", self.text[at..].chars().count());
            }
            room -= needed;
            if escaped {
                escape(c).try_for_each(|e| out.write_char(e))?;
            } else {
                out.write_char(c)?;
            }
            previous = Some(c);
        }
        Ok(())
    }

    fn escapes(&self, c: char, previous: Option<char>) -> bool {
        match c {
            '\n' | '\t' => !self.keep_lines,
            // The text and emoji selectors belong to the symbol before them ("⚠️"). Anywhere else
            // they only make two texts differ that look the same.
            '\u{fe0e}' | '\u{fe0f}' => !previous.is_some_and(is_symbol),
            _ => c.is_control() || is_invisible(c),
        }
    }
}

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.width().is_none() && f.precision().is_none() {
            return self.write(f);
        }
        let mut shown = String::new();
        self.write(&mut shown)?;
        f.pad(&shown)
    }
}

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

/// The characters that stand for a hidden one: `\n`, `\r` and `\t` in their short form, all others
/// by number.
fn escape(c: char) -> impl Iterator<Item = char> {
    let short = match c {
        '\n' => "\\n",
        '\r' => "\\r",
        '\t' => "\\t",
        _ => "",
    };
    let long = short.is_empty().then(|| c.escape_unicode());
    short.chars().chain(long.into_iter().flatten())
}

/// Whether a character is one that a variation selector may follow without deceiving anyone.
fn is_symbol(c: char) -> bool {
    !c.is_ascii() && !c.is_alphanumeric() && !c.is_whitespace() && !c.is_control() && !is_invisible(c)
}

/// Whether a character changes the order of others, breaks a line unseen, or shows nothing at all.
///
/// Unicode's format characters and other default-ignorable ones, and the code points that are no
/// characters. The Arabic number signs are format characters too, but visible, and not among these.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}'                        // soft hyphen
        | '\u{34f}'                     // grapheme joiner
        | '\u{61c}'                     // Arabic letter mark
        | '\u{115f}' | '\u{1160}'       // Hangul fillers
        | '\u{17b4}' | '\u{17b5}'       // Khmer inherent vowels
        | '\u{180b}'..='\u{180f}'       // Mongolian selectors and vowel separator
        | '\u{200b}'..='\u{200f}'       // zero width, left-to-right and right-to-left marks
        | '\u{2028}'..='\u{202e}'       // line separators, bidi embeddings and overrides
        | '\u{2060}'..='\u{206f}'       // joiner, operators, bidi isolates
        | '\u{2800}'                    // Braille without dots
        | '\u{3164}' | '\u{ffa0}'       // Hangul fillers
        | '\u{fdd0}'..='\u{fdef}'       // no characters
        | '\u{fe00}'..='\u{fe0f}'       // variation selectors
        | '\u{feff}'                    // byte order mark
        | '\u{fff0}'..='\u{fffb}'       // reserved as ignorable, interlinear annotation
        | '\u{1bca0}'..='\u{1bca3}'     // shorthand controls
        | '\u{1d173}'..='\u{1d17a}'     // musical controls
        | '\u{e0000}'..='\u{e0fff}'     // tags, more variation selectors
    ) || (c as u32 & 0xfffe) == 0xfffe
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line(text: &str) -> String {
        PluginText::new(text).line().to_string()
    }

    #[test]
    fn plain_text_of_any_language_stays() {
        for text in ["echo", "naïve 日本語 emoji 🍋", "C:\\dir\\x", "a\u{301}", ""] {
            assert_eq!(line(text), text);
        }
    }

    #[test]
    fn terminal_escapes_are_written_out() {
        assert_eq!(line("\u{1b}[31mred\u{7}"), "\\u{1b}[31mred\\u{7}");
        assert_eq!(line("\u{9b}31m\u{7f}\0"), "\\u{9b}31m\\u{7f}\\u{0}");
    }

    #[test]
    fn bidi_and_invisible_characters_are_written_out() {
        assert_eq!(line("a\u{202e}b"), "a\\u{202e}b");
        let hidden = "\u{61c}\u{200b}\u{200d}\u{200e}\u{200f}\u{202a}\u{2028}\u{2029}\u{2060}\u{2064}\u{2066}\u{2069}\u{feff}\
            \u{ad}\u{e0000}\u{e0041}\u{e007f}\u{e0100}\u{fff9}\u{fffb}\u{180e}\u{3164}\u{ffff}\u{10ffff}";
        for c in hidden.chars() {
            assert_eq!(line(&c.to_string()), c.escape_unicode().to_string());
        }
    }

    #[test]
    fn newlines_and_tabs_stay_in_a_block_only() {
        let text = PluginText::from("a\n\tb\r\n");
        assert_eq!(text.block().to_string(), "a\n\tb\\r\n");
        assert_eq!(text.line().to_string(), "a\\n\\tb\\r\\n");
        assert_eq!(text.to_string(), text.line().to_string());
    }

    #[test]
    fn an_emoji_selector_is_shown_only_after_a_symbol() {
        assert_eq!(line("⚠\u{fe0f} hot"), "⚠\u{fe0f} hot");
        assert_eq!(line("re\u{fe0f}ad"), "re\\u{fe0f}ad");
        assert_eq!(line("\u{fe0f}"), "\\u{fe0f}");
        assert_eq!(line("⚠\u{fe0f}\u{fe0f}"), "⚠\u{fe0f}\\u{fe0f}");
    }

    #[test]
    fn a_long_text_is_cut_and_says_by_how_much() {
        let text = PluginText::from("x".repeat(DEFAULT_CAP + 5));
        let shown = text.to_string();
        assert!(shown.ends_with("x… (+5 more)"));
        assert_eq!(PluginText::from("abcd").capped(4).to_string(), "abcd");
        assert_eq!(PluginText::from("abcde").capped(4).to_string(), "abcd… (+1 more)");
        assert_eq!(PluginText::from("a\nb").block().capped(2).to_string(), "a\n… (+1 more)");
    }

    #[test]
    fn an_escape_is_never_cut() {
        let text = PluginText::from("a\u{1b}b");
        assert_eq!(text.capped(5).to_string(), "a… (+2 more)");
        assert_eq!(text.capped(7).to_string(), "a\\u{1b}… (+1 more)");
    }

    #[test]
    fn width_counts_what_is_shown() {
        assert_eq!(format!("{:<8}|", PluginText::from("a\u{1b}")), "a\\u{1b} |");
        assert_eq!(format!("{:>4}|", PluginText::from("ab").line()), "  ab|");
    }

    #[test]
    fn debug_is_escaped_and_json_is_raw() {
        let text = PluginText::from("a\u{1b}");
        assert_eq!(format!("{text:?}"), "\"a\\u{1b}\"");
        assert_eq!(serde_json::to_string(&text).unwrap(), "\"a\\u001b\"");
        assert_eq!(text.raw(), "a\u{1b}");
    }

    proptest! {
        #[test]
        fn nothing_that_acts_is_ever_shown(text in any::<String>(), cap in 0usize..40) {
            let text = PluginText::new(text);
            for shown in [text.line().capped(cap), text.block().capped(cap)] {
                let shown = shown.to_string();
                prop_assert!(shown.chars().all(|c| c == '\n' || c == '\t' || !c.is_control()));
                let deceives = shown.contains(['\u{202e}', '\u{200b}', '\u{2066}', '\u{feff}']);
                prop_assert!(!deceives);
                prop_assert!(shown.chars().count() <= cap + "… (+ more)".chars().count() + 20);
            }
            prop_assert!(!text.line().to_string().contains(['\n', '\t']));
        }
    }
}
