//! The `lemon` program as its users have it: real plugins, published servers, real signals.

#![expect(clippy::unwrap_used, reason = "a test that can not go on has failed")]

mod processes;
mod published_servers;
mod rust_sdk;
mod support;
