//! The host against real processes: the examples and the zoo of `tests/misbehaving`.
#![expect(clippy::unwrap_used, reason = "a test that can not go on has failed")]

mod bounds;
mod lazy;
mod manifests;
mod plugins;
mod tools;
mod zoo;
