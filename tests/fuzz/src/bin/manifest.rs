//! The manifest of an extension's folder.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| lemon_host::fuzzing::manifest(input));
