//! What flags and config files say, as it shows on the command line.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod place;

use std::fs;

use insta::assert_snapshot;

use place::{Place, hello_python, hello_shell};

#[test]
fn a_filter_that_hides_nothing_is_told_with_care_when_plugins_have_failed() {
    let args = ["tools", "--plugin", "gone=no-such-program", "--disable", "x", "--plugin", &hello_shell()];
    let shown = Place::new().run(&args);
    let warning = "warning: no tool of the plugins that are ready is named `x`, which is to be disabled or enabled\n";
    assert!(shown.contains(warning), "{shown}");
}

#[test]
fn a_wrong_config_has_its_warnings_too() {
    let place = Place::new();
    place.user_config("colour = 1\n[plugins.x]\ncommand = 1\n");
    let shown = place.run(&["tools"]);
    assert!(shown.contains("warning: [ROOT]/home/.lemon/config.toml:1: unknown key `colour` is ignored\n"), "{shown}");
    assert!(shown.contains("error: the config file [ROOT]/home/.lemon/config.toml is wrong\n"), "{shown}");
}

#[test]
fn a_program_in_a_config_is_found_from_the_config_wherever_lemon_works() {
    let place = Place::new();
    fs::create_dir_all(place.path("home/.lemon/bin")).unwrap();
    fs::copy(hello_shell().trim_start_matches("shell="), place.path("home/.lemon/bin/hello")).unwrap();
    for entry in ["command = ['./bin/hello']", "command = ['./hello']\ncwd = 'bin'", "command = ['~/.lemon/bin/hello']"]
    {
        place.user_config(&format!("[plugins.x]\n{entry}\n"));
        assert_eq!(place.run(&["call", "shout", "text=a"]), "exit 0\n--- stdout\nA\n", "{entry}");
    }
}

#[test]
fn of_two_flags_with_one_tool_the_lesser_name_wins_whatever_their_order() {
    let place = Place::new();
    let (a, b) = (hello_shell().replace("shell=", "a="), hello_shell().replace("shell=", "b="));
    for args in [["tools", "--plugin", &a, "--plugin", &b], ["tools", "--plugin", &b, "--plugin", &a]] {
        let shown = place.run(&args);
        assert!(shown.starts_with("exit 0\n--- stdout\nshout  a  "), "{shown}");
    }
}

#[test]
fn all_problems_of_all_files_are_told_and_nothing_starts() {
    let place = Place::new();
    place.user_config("[plugins.x]\ncommand = \"python3 x.py\"\nenabled = 3\n[timeouts]\nstart_ms = 0\n");
    place.write("place/other.toml", "[plugins");
    let marker = place.path("marker");
    let plugin = format!("touch {}", marker.to_str().unwrap());
    assert_snapshot!(place.run(&["tools", "--config", "other.toml", "--plugin", &plugin]), @r#"
    exit 2
    --- stderr
    error: the config file other.toml is wrong
      why: other.toml:1:9: unclosed table, expected `]`
          |
        1 | [plugins
          |         ^
      hint: correct it; nothing was started
    error: the config file [ROOT]/home/.lemon/config.toml is wrong
      why: [ROOT]/home/.lemon/config.toml:2:11: `command` must be an array: write ["python3", "x.py"]
          |
        2 | command = "python3 x.py"
          |           ^^^^^^^^^^^^^^
        [ROOT]/home/.lemon/config.toml:3:11: `enabled` must be true or false, not an integer
          |
        3 | enabled = 3
          |           ^
        [ROOT]/home/.lemon/config.toml:5:12: `timeouts.start_ms` must be a whole number from 1 to 9223372036854775807
          |
        5 | start_ms = 0
          |            ^
      hint: correct them; nothing was started
    "#);
    assert!(!marker.exists());
    assert_snapshot!(place.run(&["tools", "--config", "none.toml", "-C", ".."]).lines().take(4).collect::<Vec<_>>().join("\n"), @"
    exit 2
    --- stderr
    error: can't read the config file none.toml
      why: No such file or directory (os error 2)
    ");
}

#[test]
fn a_flag_wins_over_a_file_and_a_file_over_the_users_own() {
    let place = Place::new();
    let entry = |name: &str, rest: &str| {
        format!("[plugins.{name}]\ncommand = ['sh', '{}']\n{rest}", hello_shell().trim_start_matches("shell="))
    };
    place.user_config(
        &[entry("a", ""), entry("b", ""), entry("c", "colour = 1\n"), "[limits]\ncall = 1\n".into()].concat(),
    );
    place.write("place/other.toml", &[entry("b", ""), entry("c", "enabled = false\n")].concat());
    let flag = hello_shell().replace("shell=", "a=");
    let args = ["--config", "other.toml", "--plugin", &flag];
    assert_snapshot!(place.run(&[&["tools"], &args[..]].concat()), @"
    exit 0
    --- stdout
    shout  a  Says a text in upper case.
    --- stderr
    warning: [ROOT]/home/.lemon/config.toml:7: unknown key `colour` in [plugins.c] is ignored
    warning: [ROOT]/home/.lemon/config.toml:9: unknown key `call` in [limits] is ignored; did you mean `calls`?
    warning: plugin a of [ROOT]/home/.lemon/config.toml:1 is not started: --plugin has one of that name, and wins
    warning: plugin b of [ROOT]/home/.lemon/config.toml:3 is not started: other.toml:1 has one of that name, and wins
    warning: the tool `shout` of plugin b is hidden by the one of plugin a
    ");
    let status = place.run(&[&["status"], &args[..]].concat());
    assert!(status.contains("disabled     c of other.toml:3 (enabled = false)\n"), "{status}");
    assert!(status.contains("disabled     c of [ROOT]/home/.lemon/config.toml:5 (by other.toml:3)\n"), "{status}");
    assert!(
        status.contains("unknown key `colour`")
            && status.contains("shadowed     the tool `shout` of plugin b is hidden by the one of plugin a"),
        "{status}"
    );
}

#[test]
fn tools_are_disabled_by_flags_and_files_together() {
    let place = Place::new();
    let python = hello_python();
    place.user_config("[tools]\nenabled_only = ['hello', 'ad*']\ndisable = []\n");
    assert_snapshot!(place.run(&["tools", "--plugin", &python, "--disable", "hello,helo"]), @"
    exit 0
    --- stdout
    add  hello  Adds two numbers.
    --- stderr
    warning: [ROOT]/home/.lemon/config.toml:3: unknown key `disable` in [tools] is ignored; did you mean `disabled`?
    warning: no tool is named `helo`, which is to be disabled or enabled
    ");
    assert_snapshot!(place.run(&["call", "hello", "name=x", "--plugin", &python, "--disable", "h*"]), @r#"
    exit 3
    --- stderr
    warning: [ROOT]/home/.lemon/config.toml:3: unknown key `disable` in [tools] is ignored; did you mean `disabled`?
    error: the tool `hello` is disabled
      why: "h*" is among the disabled tools
      hint: `lemon status` shows what is hidden; the rule is in `--disable`, `--enable-only` or [tools] of a config file
    "#);
    let both = place.run(&["tools", "--plugin", &python, "--plugin", &hello_shell()]);
    assert!(both.contains("\nhello  ") && both.contains("\nadd  ") && !both.contains("shout"), "{both}");
    place.user_config("[tools]\ndisabled = 'hello'\n");
    let refused = place.run(&["tools", "--plugin", &python]);
    assert!(refused.contains("`tools.disabled` must be an array of tools' names, not a string"), "{refused}");
    place.user_config("");
    let status = place.run(&["status", "--plugin", &python, "--enable-only", "add"]);
    assert!(status.contains("hidden       the tool `hello`: it is not among the only enabled tools\n"), "{status}");
}

#[test]
fn a_project_is_named_and_nothing_of_it_is_started() {
    let place = Place::new();
    let marker = place.path("marker");
    place.write(
        "place/.lemon/config.toml",
        &format!("[plugins.x]\ncommand = ['touch', '{}']", marker.to_str().unwrap()),
    );
    fs::create_dir_all(place.path("place/deep/er")).unwrap();
    let status = place.run(&["-C", "deep/er", "status"]);
    let line = "not run      the project [ROOT]/place is not trusted: its config is ignored";
    assert!(status.contains(line), "{status}");
    assert!(!marker.exists());
    let json = place.json(&["status", "--json", "-C", "deep"]);
    let project = &json["config"]["project"];
    assert_eq!(project["trust"], "untrusted");
    assert!(project["config"].as_str().unwrap().ends_with("place/.lemon/config.toml"), "{project}");
}

#[test]
fn a_program_in_the_working_repository_is_not_found_by_its_bare_name() {
    let place = Place::new();
    fs::create_dir_all(place.path("place/.git")).unwrap();
    fs::copy(hello_shell().trim_start_matches("shell="), place.path("place/shadow")).unwrap();
    let mut command = place.lemon(&["tools", "--plugin", "shadow --x"]);
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", place.path("place").canonicalize().unwrap().to_str().unwrap()));
    let shown = place.shown(command);
    assert!(
        shown.starts_with("exit 4\n") && shown.contains("a folder of PATH inside the project is not searched"),
        "{shown}"
    );
}

#[test]
fn a_secret_is_shown_nowhere() {
    let place = Place::new();
    let leaks = "[plugins.leaks]\ncommand = ['sh', '-c', 'echo \"key: $API_KEY\" >&2; exit 1']\nenv = { API_KEY = 'hunter2hunter2' }\n";
    place.user_config(leaks);
    for line in [&["tools", "-vv", "--trace"][..], &["tools", "--json"], &["status"], &["status", "--json"]] {
        let shown = place.run(line);
        assert!(shown.contains("key: [redacted]") && !shown.contains("hunter2"), "{shown}");
    }
}
