//! The result of `tools/list`: what is offered, and what is in quarantine.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| lemon_host::fuzzing::list(input));
