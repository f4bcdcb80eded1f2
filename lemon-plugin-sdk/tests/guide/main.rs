//! The guide's code, which can be pasted as it stands: each of its blocks is found word for word in one of these files,
//! which are compiled and run their tests.

mod handlers;
#[expect(dead_code, reason = "its main is a plugin's")]
mod hello;
#[expect(dead_code, reason = "its main is a plugin's")]
mod service;

#[test]
fn the_guide_shows_nothing_else() {
    let guide = include_str!("../../../docs/guide/rust.md");
    let compiled = [include_str!("hello.rs"), include_str!("service.rs"), include_str!("handlers.rs")];
    let blocks: Vec<&str> = guide.split("```rust\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(blocks.len() >= 6, "{} blocks", blocks.len());
    for block in blocks {
        assert!(compiled.iter().any(|file| file.contains(block)), "this is not compiled:\n{block}");
    }
}
