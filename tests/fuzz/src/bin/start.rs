//! A plugin's stdout, from its spawn to its first list of tools.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| lemon_host::fuzzing::start(input));
