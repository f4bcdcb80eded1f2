//! What the other side sent, repeated to it in an error: never in full, as it may be as long as a message.

use std::borrow::Cow;

/// Characters of a name that are repeated.
pub(crate) const NAME: usize = 200;
/// Characters of what a parser says, which may repeat the value that it can't take.
pub(crate) const REASON: usize = 300;

/// The text, or its first characters and how many bytes are left out.
pub(crate) fn excerpt(text: &str, characters: usize) -> Cow<'_, str> {
    match text.char_indices().nth(characters) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}… ({} bytes more)", &text[..end], text.len() - end)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters_and_a_short_one_is_whole() {
        assert_eq!(excerpt("🍋🍋🍋", 3), "🍋🍋🍋");
        assert_eq!(excerpt("🍋🍋🍋", 2), "🍋🍋… (4 bytes more)");
    }
}
