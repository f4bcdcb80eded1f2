//! Randomness for ids and jitter.

/// 128 random bits, as text.
pub(crate) fn id() -> String {
    let mut bytes = [0; 16];
    // Without randomness an id is still unique within the host's life by its session's key; nothing secret hangs on it.
    let _ = getrandom::fill(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A random number in 0..1.
pub(crate) fn fraction() -> f64 {
    let number = getrandom::u32().unwrap_or(u32::MAX / 2);
    f64::from(number) / (f64::from(u32::MAX) + 1.0)
}
