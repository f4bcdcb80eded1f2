//! The example runs as it stands and says what its README says.
#![expect(clippy::disallowed_methods, reason = "a test that starts the example as anybody would")]

use std::process::Command;

#[test]
fn the_program_calls_its_own_tool_and_the_plugins_and_its_gate_blocks() {
    let ran = Command::new(env!("CARGO_BIN_EXE_embed")).output().unwrap();
    let stdout = String::from_utf8(ran.stdout).unwrap();
    assert_eq!(
        stdout.lines().collect::<Vec<_>>(),
        [
            "count of the program (built in)",
            "hello of plugin hello",
            "add of plugin hello",
            "5",
            "Hello, World!",
            "the call was refused: gate manners blocked it: be kind",
        ],
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    assert!(ran.status.success());
}
