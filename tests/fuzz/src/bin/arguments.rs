//! Arguments for one of some schemas.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| lemon_host::fuzzing::arguments(input));
