//! The mark by which a process's descendants are found, wherever they went.

use std::fmt;

/// 128 random bits in hexadecimal, put into a process's environment as [`Cookie::ENV`].
///
/// Descendants inherit it, a stranger can't have it: who carries it belongs to the process.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Cookie(String);

impl Cookie {
    /// The environment variable that holds the cookie.
    pub const ENV: &'static str = "LEMON_COOKIE";

    /// Draws a new cookie.
    pub fn new() -> Self {
        let mut bytes = [0u8; 16];
        if getrandom::fill(&mut bytes).is_err() {
            // No kernel that this crate runs on refuses; were it so, unique is what matters
            // here, since the cookie is a mark and not a secret.
            bytes = unique_bytes();
        }
        Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Takes a cookie as it came over the guard's pipe.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (text.len() == 32 && text.bytes().all(hex)).then(|| Self(text.to_owned()))
    }

    /// The cookie as it stands in the environment: 32 hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Cookie {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cookie({})", self.0)
    }
}

/// Sixteen bytes from the process number, a counter and the clock.
fn unique_bytes() -> [u8; 16] {
    use std::sync::atomic::{AtomicU32, Ordering};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let now =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&std::process::id().to_be_bytes());
    bytes[4..8].copy_from_slice(&COUNT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    bytes[8..].copy_from_slice(&now.to_be_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_32_hex_digits_and_new_each_time() {
        let (one, two) = (Cookie::new(), Cookie::new());
        assert_ne!(one, two);
        assert_eq!(Cookie::parse(one.as_str()), Some(one));
        assert_ne!(unique_bytes(), unique_bytes());
    }

    #[test]
    fn only_a_cookie_parses_as_one() {
        for text in ["", "00", &"0".repeat(31), &"g".repeat(32), &"A".repeat(32)] {
            assert_eq!(Cookie::parse(text), None, "{text:?}");
        }
    }
}
