//! A number as it was written, of any size.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};

use jsonschema::json::JsonNumber;

/// Longer numbers are read once, when their text is.
const SHORT: usize = 40;

/// A JSON number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Number<'a> {
    pub(crate) text: &'a str,
    /// What is known of it if it is long.
    pub(crate) long: Option<&'a Long<'a>>,
}

/// A long number, read once, as a schema may ask for it a thousand times.
#[derive(Debug)]
pub(crate) struct Long<'a> {
    decimal: Decimal<'a>,
    float: Option<f64>,
    is_whole: bool,
}

impl<'a> Long<'a> {
    /// What is known of a number if it is long.
    pub(crate) fn of(text: &'a str) -> Option<Self> {
        (text.len() > SHORT).then(|| Self { decimal: Decimal::of(text), float: float(text), is_whole: is_whole(text) })
    }
}

impl<'a> Number<'a> {
    /// Its value.
    pub(crate) fn decimal(&self) -> Decimal<'a> {
        self.long.map_or_else(|| Decimal::of(self.text), |long| long.decimal)
    }
}

impl JsonNumber for Number<'_> {
    // A long number is none of 64 bits: JSON has no zeros in front.
    fn as_u64(&self) -> Option<u64> {
        if self.long.is_some() { None } else { self.text.parse().ok() }
    }

    fn as_i64(&self) -> Option<i64> {
        if self.long.is_some() { None } else { self.text.parse().ok() }
    }

    fn as_f64(&self) -> Option<f64> {
        self.long.map_or_else(|| float(self.text), |long| long.float)
    }

    fn as_str(&self) -> Cow<'_, str> {
        Cow::Borrowed(self.text)
    }

    fn to_number(&self) -> Cow<'_, serde_json::Number> {
        // For messages only, and ours do not show it.
        Cow::Owned(0.into())
    }

    fn is_integer(&self) -> bool {
        self.is_written_as_integer() || self.decimal().is_integer()
    }

    fn is_written_as_integer(&self) -> bool {
        self.long.map_or_else(|| is_whole(self.text), |long| long.is_whole)
    }
}

/// How long the JSON number is that bytes begin with; none if they begin with none.
pub(crate) fn number_length(bytes: &[u8]) -> Option<usize> {
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let some_digits = |from: usize| Some(digits(from)).filter(|count| *count > 0);
    let mut at = usize::from(bytes.first() == Some(&b'-'));
    at += if bytes.get(at) == Some(&b'0') { 1 } else { some_digits(at)? };
    if bytes.get(at) == Some(&b'.') {
        at += 1 + some_digits(at + 1)?;
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        at += 1 + usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        at += some_digits(at)?;
    }
    Some(at)
}

fn float(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

fn is_whole(text: &str) -> bool {
    !text.contains(['.', 'e', 'E'])
}

/// A number's value: the digits of its two halves in a row, times ten to the power of `exponent`, without zeros at
/// either end. It is read without a copy, and of a number of any length no more than the zeros at its ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Decimal<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    exponent: i64,
}

impl<'a> Decimal<'a> {
    /// The value of a JSON number.
    pub(crate) fn of(text: &'a str) -> Self {
        #[cfg(test)]
        DIGITS.set(DIGITS.get() + text.len());
        let (negative, text) = text.strip_prefix('-').map_or((false, text), |text| (true, text));
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        // Beyond 64 bits an exponent counts as the largest one.
        let power = exponent.parse().unwrap_or(if exponent.starts_with('-') { i64::MIN } else { i64::MAX });
        let mut fraction = fraction.trim_end_matches('0');
        let mut exponent = i64::saturating_sub(power, fraction.len() as i64);
        let mut whole = whole.trim_start_matches('0');
        if fraction.is_empty() {
            let zeros = whole.len();
            whole = whole.trim_end_matches('0');
            exponent = exponent.saturating_add((zeros - whole.len()) as i64);
        }
        if whole.is_empty() {
            fraction = fraction.trim_start_matches('0');
        }
        if whole.is_empty() && fraction.is_empty() {
            return Self { negative: false, whole, fraction, exponent: 0 };
        }
        Self { negative, whole, fraction, exponent }
    }

    fn is_integer(&self) -> bool {
        self.exponent >= 0
    }

    fn digits(&self) -> impl Iterator<Item = u8> {
        self.whole.bytes().chain(self.fraction.bytes())
    }

    fn length(&self) -> usize {
        self.whole.len() + self.fraction.len()
    }
}

impl PartialEq for Decimal<'_> {
    fn eq(&self, other: &Self) -> bool {
        (self.negative, self.exponent, self.length()) == (other.negative, other.exponent, other.length())
            && self.digits().eq(other.digits())
    }
}

impl Eq for Decimal<'_> {}

impl Hash for Decimal<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.negative, self.exponent, self.length()).hash(state);
        self.digits().for_each(|digit| state.write_u8(digit));
    }
}

#[cfg(test)]
thread_local! {
    /// How many bytes of numbers were read for their values on this thread.
    pub(crate) static DIGITS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(non_snake_case, reason = "a number as a node has it")]
    fn Number(text: &str) -> super::Number<'_> {
        super::Number { text, long: Long::of(text).map(|long| &*Box::leak(Box::new(long))) }
    }

    #[test]
    fn integers_are_known_by_their_value_at_any_size() {
        for text in ["0", "-0", "1", "1.0", "-0.0", "1e2", "1.50e1", "10e-1", "1e400", "123456789012345678901234567890"]
        {
            assert!(Number(text).is_integer(), "{text}");
        }
        for text in ["0.5", "1e-1", "1.05e1", "123456789012345678901234567890.1", "1e-400", "1e-99999999999999999999"] {
            assert!(!Number(text).is_integer(), "{text}");
        }
    }

    #[test]
    fn one_value_has_one_decimal() {
        for (one, other) in [("1", "1.0"), ("100", "1e2"), ("0", "-0.0e5"), ("0.10", "1E-1"), ("-2.50", "-25e-1")] {
            assert_eq!(Decimal::of(one), Decimal::of(other));
        }
        for (one, other) in
            [("1", "-1"), ("1", "10"), ("9007199254740993", "9007199254740992"), ("0.1", "0.10000000000000001")]
        {
            assert_ne!(Decimal::of(one), Decimal::of(other));
        }
    }

    #[test]
    fn what_is_no_number_of_64_bits_is_one_of_none() {
        assert_eq!((Number("1e400").as_f64(), Number("18446744073709551616").as_u64()), (None, None));
        assert_eq!((Number("-5").as_i64(), Number("-5").as_u64(), Number("1.0").as_u64()), (Some(-5), None, None));
    }
}
