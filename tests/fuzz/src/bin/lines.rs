//! Splits any bytes into lines, reads each line as a message, and checks what holds of every stream.
//!
//! The first byte of the input is the line limit, the second the length of the reads; the rest is the stream.
#![no_main]

#[path = "../../../../protocol/tests/stream/mod.rs"]
mod stream;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    if let [limit, read, bytes @ ..] = input {
        stream::check(bytes, &[usize::from(*read) + 1], usize::from(*limit) * 8);
    }
});
