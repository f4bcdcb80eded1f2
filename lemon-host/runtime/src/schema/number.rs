//! A number as it was written, of any size.

use std::borrow::Cow;

use jsonschema::json::JsonNumber;

/// The text of a JSON number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Number<'a>(pub(crate) &'a str);

impl JsonNumber for Number<'_> {
    fn as_u64(&self) -> Option<u64> {
        self.0.parse().ok()
    }

    fn as_i64(&self) -> Option<i64> {
        self.0.parse().ok()
    }

    fn as_f64(&self) -> Option<f64> {
        self.0.parse().ok().filter(|number: &f64| number.is_finite())
    }

    fn as_str(&self) -> Cow<'_, str> {
        Cow::Borrowed(self.0)
    }

    fn to_number(&self) -> Cow<'_, serde_json::Number> {
        // For messages only, and ours do not show it.
        Cow::Owned(self.0.parse().unwrap_or_else(|_| 0.into()))
    }

    fn is_integer(&self) -> bool {
        !self.0.contains(['.', 'e', 'E']) || Decimal::of(self.0).is_integer()
    }
}

/// A number's value: `digits` times ten to the power of `exponent`, without zeros at either end of the digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    exponent: i64,
}

impl Decimal {
    /// The value of a JSON number.
    pub(crate) fn of(text: &str) -> Self {
        let (negative, text) = text.strip_prefix('-').map_or((false, text), |text| (true, text));
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        // Beyond 64 bits an exponent counts as the largest one.
        let power = exponent.parse().unwrap_or(if exponent.starts_with('-') { i64::MIN } else { i64::MAX });
        let mut digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).skip_while(|digit| *digit == b'0').collect();
        let mut exponent = i64::saturating_sub(power, fraction.len() as i64);
        while digits.last() == Some(&b'0') {
            digits.pop();
            exponent = exponent.saturating_add(1);
        }
        let negative = negative && !digits.is_empty();
        Self { negative, exponent: if digits.is_empty() { 0 } else { exponent }, digits }
    }

    fn is_integer(&self) -> bool {
        self.exponent >= 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
