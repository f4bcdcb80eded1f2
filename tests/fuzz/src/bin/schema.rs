//! A schema, and arguments that are read by it.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| lemon_host::fuzzing::schema(input));
