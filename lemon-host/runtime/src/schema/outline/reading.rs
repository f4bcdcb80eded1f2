//! Reads a text along an outline. It stops at the first thing that it does not take.

use super::{ITEM, Part, Types};
use crate::schema::number::number_length;
use crate::schema::text::plain_string_end;

/// A text, and how far it has been read.
pub(super) struct Reading<'a> {
    text: &'a [u8],
    at: usize,
    /// How many more values there may be.
    left: usize,
}

impl<'a> Reading<'a> {
    pub(super) fn of(text: &'a str, most_values: usize) -> Self {
        Self { text: text.as_bytes(), at: 0, left: most_values }
    }

    /// Reads all of the text as one value.
    pub(super) fn whole(mut self, part: &Part) -> Option<()> {
        self.value(part)?;
        (self.at == self.text.len()).then_some(())
    }

    fn next(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Goes past a byte if it is the next one.
    fn skip(&mut self, byte: u8) -> bool {
        let is_next = self.next() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn value(&mut self, part: &Part) -> Option<()> {
        self.left = self.left.checked_sub(1)?;
        let (types, taken) = match self.next()? {
            b'"' => (Types::STRING, part.takes_string(self.string()?)),
            b'{' => return part.types.has(Types::OBJECT).then(|| self.object(part))?,
            b'[' => return part.types.has(Types::ARRAY).then(|| self.array(part))?,
            b't' => (Types::BOOLEAN, self.word("true")?),
            b'f' => (Types::BOOLEAN, self.word("false")?),
            b'n' => (Types::NULL, self.word("null")?),
            _ => {
                let number = self.number()?;
                let is_whole = number.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-');
                let types = if is_whole { Types::INTEGER } else { Types::NUMBER };
                (types, part.takes_number(number, is_whole))
            }
        };
        (taken && part.types.has(types)).then_some(())
    }

    fn word(&mut self, word: &str) -> Option<bool> {
        self.text[self.at..].starts_with(word.as_bytes()).then_some(())?;
        self.at += word.len();
        Some(true)
    }

    fn number(&mut self) -> Option<&'a [u8]> {
        let rest = &self.text[self.at..];
        let number = &rest[..number_length(rest)?];
        self.at += number.len();
        Some(number)
    }

    /// What stands between quotes, if it has no escapes.
    fn string(&mut self) -> Option<&'a [u8]> {
        let start = self.at + 1;
        self.at = plain_string_end(self.text, self.at)?;
        Some(&self.text[start..self.at - 1])
    }

    fn array(&mut self, part: &Part) -> Option<()> {
        let items = part.items.as_deref().unwrap_or(&ITEM);
        let mut count = 0;
        self.at += 1;
        if !self.skip(b']') {
            loop {
                self.value(items)?;
                count += 1;
                if !self.skip(b',') {
                    break;
                }
            }
            self.skip(b']').then_some(())?;
        }
        (part.count.0 <= count && count <= part.count.1).then_some(())
    }

    fn object(&mut self, part: &Part) -> Option<()> {
        let mut seen = 0_u64;
        self.at += 1;
        if !self.skip(b'}') {
            loop {
                let name = (self.next()? == b'"').then(|| self.string())??;
                let number = part.members.iter().position(|(own, _)| own.as_bytes() == name)?;
                let bit = 1 << number;
                // A name that stands there twice is none of ours.
                (seen & bit == 0 && self.skip(b':')).then_some(())?;
                seen |= bit;
                self.value(&part.members[number].1)?;
                if !self.skip(b',') {
                    break;
                }
            }
            self.skip(b'}').then_some(())?;
        }
        (seen & part.required == part.required).then_some(())
    }
}

impl Part {
    fn takes_string(&self, text: &[u8]) -> bool {
        let (fewest, most) = self.characters;
        // A character has one to four bytes, which decides for most.
        let fits = (fewest <= text.len().div_ceil(4) && text.len() <= most)
            || std::str::from_utf8(text).is_ok_and(|text| (fewest..=most).contains(&text.chars().count()));
        fits && self.strings.as_ref().is_none_or(|strings| strings.iter().any(|own| own.as_bytes() == text))
    }

    fn takes_number(&self, text: &[u8], is_whole: bool) -> bool {
        /// So many characters are never more than 64 bits.
        const SHORT: usize = 18;
        let Some((least, most)) = self.numbers else { return true };
        let text = std::str::from_utf8(text).ok().filter(|text| is_whole && text.len() <= SHORT);
        let value: Option<i64> = text.and_then(|text| text.parse().ok());
        value.is_some_and(|value| (least..=most).contains(&value))
    }
}
