use std::fs;

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse_layer(text, Path::new("/etc/lemon/config.toml"), Some(Path::new("/home/me")), Layer::User)
}

fn plugin(body: &str) -> PluginConfig {
    let config = parse(&format!("[plugins.x]\n{body}")).unwrap();
    assert_eq!(config.warnings, []);
    config.plugins["x"].clone()
}

fn problems(text: &str) -> Vec<String> {
    let error = parse(text).unwrap_err();
    error.problems().iter().map(|p| format!("{}:{}: {}", p.origin.line, p.column, p.message)).collect()
}

/// What is wrong with an entry whose first line this is.
fn problem(line: &str) -> String {
    let mut problems = problems(&format!("[plugins.x]\n{line}\ncommand = [\"a\"]"));
    assert_eq!(problems.len(), 1, "{problems:?}");
    problems.remove(0)
}

#[test]
fn a_whole_entry_is_read() {
    let config = parse(
        r#"
        [plugins.hello]
        command = ["python3", "hello.py"]
        cwd = "sub/./dir"
        env = { LEVEL = "1", TOKEN = { secret = "HELLO_TOKEN" } }
        config = { greeting = "hi", key = { secret = "K" }, n = [1, 2.5, true], at = 2024-01-02 }
        timeout_ms = 60_000
        start_timeout_ms = 5
        rlimits = { address_space_bytes = 0x1000, open_files = 64, processes = 8, cpu_seconds = 9 }

        [mcp.servers.files]
        command = ["npx"]
        enabled = false
        timeout_ms = 0
        roots = ["~/work", "here"]
        "#,
    )
    .unwrap();
    assert_eq!(config.warnings, []);
    let hello = &config.plugins["hello"];
    assert_eq!(hello.command, ["python3", "hello.py"]);
    assert_eq!(hello.cwd.as_deref(), Some(Path::new("/etc/lemon/sub/dir")));
    assert_eq!(hello.env["LEVEL"], EnvValue::Literal("1".into()));
    assert_eq!(hello.env["TOKEN"], EnvValue::Secret("HELLO_TOKEN".into()));
    let values = json!({"greeting": "hi", "key": {"secret": "K"}, "n": [1, 2.5, true], "at": "2024-01-02"});
    assert_eq!(serde_json::Value::Object(hello.config.clone()), values);
    assert_eq!(secret_name(&hello.config["key"]), Some("K"));
    assert_eq!(secret_name(&values), None);
    assert!(hello.enabled);
    assert_eq!(hello.timeout, CallTimeout::After(std::time::Duration::from_secs(60)));
    assert_eq!(hello.start_timeout, Some(std::time::Duration::from_millis(5)));
    assert_eq!(hello.rlimits.address_space_bytes, Some(4096));
    assert_eq!(hello.rlimits.cpu_seconds, Some(9));
    assert_eq!(hello.origin.to_string(), "/etc/lemon/config.toml:2");
    let files = &config.servers["files"];
    assert!(!files.enabled);
    assert_eq!(files.timeout, CallTimeout::Never);
    assert_eq!(files.roots, [Path::new("/home/me/work"), Path::new("/etc/lemon/here")]);
    assert_eq!(files.origin.line, 11);
}

#[test]
fn only_the_command_is_needed() {
    let x = plugin("command = ['a']");
    assert!(x.enabled && x.env.is_empty() && x.config.is_empty() && x.roots.is_empty());
    assert_eq!((x.cwd, x.timeout, x.start_timeout), (None, CallTimeout::Unset, None));
    assert!(parse("").unwrap().plugins.is_empty());
}

#[test]
fn folders_start_from_the_file_and_from_home() {
    for (written, read) in [
        (".", "/etc/lemon"),
        ("..", "/etc/lemon/.."),
        ("/srv", "/srv"),
        ("~", "/home/me"),
        ("~/a", "/home/me/a"),
        ("~//a", "/home/me/a"),
    ] {
        let x = plugin(&format!("command = ['a']\ncwd = '{written}'"));
        assert_eq!(x.cwd.as_deref(), Some(Path::new(read)), "{written}");
    }
    for (written, read) in [
        ("['a']", "a"),
        ("['./a', './b']", "/etc/lemon/./a"),
        ("['bin/a']", "/etc/lemon/bin/a"),
        ("['~/a']", "/home/me/a"),
        ("['/a/b']", "/a/b"),
    ] {
        let x = plugin(&format!("command = {written}"));
        assert_eq!(x.command[0], read, "without a folder of its own a program is from the file's");
    }
    let x = plugin("command = ['./a', './b']\ncwd = 'd'");
    assert_eq!(x.command, ["./a", "./b"], "with one it is from that");
    assert_eq!(problem("cwd = '~you/a'"), "2:7: only `~/` is read as a home folder; write the whole path");
    assert_eq!(problem("cwd = ''"), "2:7: `cwd` must not be empty");
    let no_home = Config::parse_layer("plugins.x = {command = ['a'], cwd = '~'}", Path::new("/c"), None, Layer::User);
    assert!(no_home.unwrap_err().to_string().contains("HOME is not set"));
}

#[test]
fn a_syntax_error_shows_the_place() {
    let error = parse("[plugins.x]\ncommand = [\"a\"\ncwd = \"b\"\n").unwrap_err();
    let shown = error.to_string();
    assert!(shown.starts_with("/etc/lemon/config.toml:"), "{shown}");
    assert!(shown.contains("expected"), "{shown}");
    let twice = parse("[plugins.x]\ncommand = ['a']\ncommand = ['b']").unwrap_err();
    assert_eq!(twice.to_string(), "/etc/lemon/config.toml:3:1: duplicate key\n  |\n3 | command = ['b']\n  | ^^^^^^^");
}

#[test]
fn a_wrong_type_says_what_was_expected_and_where() {
    let error = parse("[plugins.x]\ncommand = ['a']\n\tenabled = \"yes\"\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "/etc/lemon/config.toml:3:12: `enabled` must be true or false, not a string\n  |\n\
         3 |  enabled = \"yes\"\n  |            ^^^^^"
    );
    assert_eq!(problem("env = 1"), "2:7: `env` must be a table, not an integer");
    assert_eq!(problem("cwd = []"), "2:7: `cwd` must be a path in quotes, not an array");
    assert_eq!(problem("timeout_ms = 1.5"), "2:14: `timeout_ms` must be a whole number of milliseconds, not a float");
    assert!(
        problem("timeout_ms = -1").ends_with("must be a whole number of milliseconds from 0 to 9223372036854775807")
    );
    assert!(problem("start_timeout_ms = 0").contains("from 1 to"));
    assert!(
        problem("rlimits.open_files = 99999999999999999999")
            .contains("`rlimits.open_files` must be a whole number from 1")
    );
    assert!(problem("config = { a = [nan] }").contains("no such number"));
    assert!(problem("config = [1]").contains("`config` must be a table"));
    assert_eq!(problems("plugins = 1"), ["1:11: `plugins` must be a table, not an integer"]);
    assert_eq!(problems("[[plugins.x]]"), ["1:1: `plugins.x` must be a table, not an array"]);
    assert_eq!(problems("mcp.servers = 1"), ["1:15: `mcp.servers` must be a table, not an integer"]);
}

#[test]
fn a_command_that_is_no_array_says_how_to_write_it() {
    let problems = problems("[plugins.x]\ncommand = \"python3 'a b.py'\"");
    assert_eq!(problems, [r#"2:11: `command` must be an array: write ["python3", "a b.py"]"#]);
}

#[test]
fn a_command_needs_a_program() {
    for command in ["[]", "['']", "['', 'a']"] {
        let text = format!("[plugins.x]\ncommand = {command}");
        assert_eq!(problems(&text), ["2:11: `command` must begin with a program"]);
    }
    let missing = problems("[plugins.x]\ncwd = '/'");
    let either = "1:10: [plugins.x] has no `command`: an array with the program and its arguments; nor a `path`: an \
                  extension's folder";
    assert_eq!(missing, [either]);
    assert!(problems("[plugins.x]\npath = '/'\ncommand = ['a']")[0].contains("has both `command` and `path`"));
    assert!(problems("[plugins.x]\npath = 1")[0].contains("`path` must be a path in quotes"));
    assert!(
        problems("[plugins.x]\ncommand = ['a', 1]")[0]
            .contains("`command` must be an array of strings, not an integer")
    );
    assert!(problems("[plugins.x]\ncommand = ['a', \"\\u0000\"]")[0].contains("NUL"));
}

#[test]
fn variables_are_checked() {
    for bad in ["'' = 'a'", "'a=b' = 'a'", "\"a\\u0000\" = 'a'"] {
        assert!(problem(&format!("env = {{ {bad} }}")).contains("a variable's name must not be empty"), "{bad}");
    }
    assert!(
        problem("env = { A = 5 }")
            .contains("`env.A` must be a string in quotes or { secret = \"NAME\" }, not an integer")
    );
    assert!(problem("env = { A = { secret = 'a', b = 1 } }").contains("`env.A` must be"));
    assert!(problem("env = { A = { secret = '' } }").contains("a secret's name must not be empty"));
    assert!(problem("env = { A = { secret = 1 } }").contains("`env.A.secret` must be a secret's name in quotes"));
}

#[test]
fn all_problems_are_told_and_the_rest_is_kept() {
    let text = "[plugins.good]\ncommand = ['a']\n[plugins.Bad]\ncommand = 1\n\
        [mcp.servers.b]\nenv = { A = 1, B = 2 }\n[limits]\ntools = 1";
    let Err(ConfigError::Invalid { problems, partial }) = parse(text) else {
        panic!("must be invalid");
    };
    let places: Vec<_> = problems.iter().map(|p| (p.origin.line, p.column)).collect();
    assert_eq!(places, [(3, 10), (4, 11), (5, 14), (6, 13), (6, 20)]);
    assert!(problems[0].message.contains("`Bad` is not a plugin name"));
    assert_eq!(partial.plugins.keys().map(PluginName::as_str).collect::<Vec<_>>(), ["good"]);
    assert!(partial.servers.is_empty());
    assert_eq!(partial.limits["tools"].as_integer(), Some(1));
}

#[test]
fn unknown_keys_are_warned_of_and_harm_nothing() {
    let text = "plugin = 1\n[plugins.x]\ncomand = 1\ncommand = ['a']\nroots = ['a']\n\
        [plugins.x.rlimits]\nopenfiles = 2\n[mcp]\nfoo = 1\n\
        [mcp.servers.y]\ncommand = ['a']\nrot = 1";
    let config = parse(text).unwrap();
    let warnings: Vec<_> = config.warnings.iter().map(ToString::to_string).collect();
    let at = "/etc/lemon/config.toml";
    assert_eq!(
        warnings,
        [
            format!("{at}:1: unknown key `plugin` is ignored; did you mean `plugins`?"),
            format!("{at}:3: unknown key `comand` in [plugins.x] is ignored; did you mean `command`?"),
            format!("{at}:5: `roots` in [plugins.x] is ignored: only [mcp.servers.NAME] has that key"),
            format!("{at}:7: unknown key `openfiles` in [plugins.x.rlimits] is ignored; did you mean `open_files`?"),
            format!("{at}:9: unknown key `foo` in [mcp] is ignored"),
            format!("{at}:12: unknown key `rot` in [mcp.servers.y] is ignored"),
        ]
    );
    assert_eq!(config.plugins.len() + config.servers.len(), 2);
}

#[test]
fn bounds_of_two_files_are_laid_over_each_other() {
    let user = parse("[limits]\ncalls = 3\ntools = 7\n[timeouts]\nstart_ms = 5\ncall_ms = 0").unwrap();
    let flag = parse("[limits]\ncalls = 4").unwrap();
    assert_eq!(user.warnings, []);
    let mut limits = user.limits;
    limits.extend(flag.limits);
    let limits: Limits = limits.try_into().unwrap();
    assert_eq!((limits.calls, limits.tools), (4, 7));
    assert_eq!(limits.noise_lines, Limits::default().noise_lines);
    let timeouts: Timeouts = user.timeouts.try_into().unwrap();
    assert_eq!(timeouts.start_ms.get().as_millis(), 5);
    assert_eq!(timeouts.call_ms.limit(), None);
}

#[test]
fn a_bound_that_can_not_be_one_is_told_with_its_place() {
    let text = "[limits]\ncalls = 0\nabandoned_calls = 5_000_000_000\n[timeouts]\nstart_ms = 0\n\
        term_ms = 0\ncall_ms = '1'";
    let most = i64::MAX;
    assert_eq!(
        problems(text),
        [
            format!("2:9: `limits.calls` must be a whole number from 1 to {most}"),
            "3:19: `limits.abandoned_calls` is too large".to_owned(),
            format!("5:12: `timeouts.start_ms` must be a whole number from 1 to {most}"),
            "7:11: `timeouts.call_ms` must be a whole number, not a string".to_owned(),
        ]
    );
    let warnings = parse("[limits]\ncall = 1\n[timeouts]\nstart = 1").unwrap().warnings;
    let at = "/etc/lemon/config.toml";
    assert_eq!(
        warnings[0].to_string(),
        format!("{at}:2: unknown key `call` in [limits] is ignored; did you mean `calls`?")
    );
    assert!(warnings[1].to_string().starts_with(&format!("{at}:4: unknown key `start` in [timeouts]")));
}

#[test]
fn hostile_text_in_the_file_is_shown_harmlessly() {
    let error = parse("[plugins.x]\ncommand = ['a']\n'k\u{202e}' = 1\ncwd = 1 # \u{202e}\n").unwrap_err();
    assert!(!error.to_string().contains('\u{202e}'));
    let config = parse("'k\u{202e}' = 1").unwrap();
    assert!(config.warnings[0].to_string().contains("`k\\u{202e}`"));
}

#[test]
fn a_long_line_is_cut_around_the_place() {
    let text = format!(
        "[plugins.x]\ncommand = ['a']\nenv = {{ A = '{}', B = 1, C = '{}' }}",
        "é".repeat(500),
        "c".repeat(500)
    );
    let error = parse(&text).unwrap_err();
    let problem = &error.problems()[0];
    assert_eq!(problem.column, 521);
    let mark: String = problem.source_line.chars().skip(problem.mark_at).take(problem.mark_width).collect();
    assert_eq!(mark, "1");
    assert!(problem.source_line.chars().count() <= 120);
}

#[test]
fn no_secret_is_shown_by_debug() {
    let x = plugin("command = ['a']\nenv = { A = 's3cret' }\nconfig = { key = 's3cret' }");
    let shown = format!("{x:?}");
    assert!(!shown.contains("s3cret") && shown.contains("key") && shown.contains('A'), "{shown}");
}

#[test]
fn a_file_that_holds_no_text_is_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    assert!(matches!(Config::read(&path), Err(ConfigError::Unreadable { .. })));
    assert!(matches!(Config::read(folder.path()), Err(ConfigError::Folder { .. })));
    fs::write(&path, b"a = 1\nb = '\xff'").unwrap();
    assert!(matches!(Config::read(&path), Err(ConfigError::NotUtf8 { line: 2, .. })));
    fs::write(&path, vec![b'\n'; MAX_BYTES as usize + 1]).unwrap();
    let error = Config::read(&path).unwrap_err();
    assert!(error.to_string().ends_with("config.toml is larger than 1024 KiB"), "{error}");
    fs::write(&path, "\u{feff}[plugins.x]\r\ncommand = ['a']\r\ncwd = 'd'\r\n").unwrap();
    let config = Config::read(&path).unwrap();
    assert_eq!(config.plugins["x"].cwd, Some(folder.path().join("d")));
    assert_eq!(config.plugins["x"].origin.line, 1);
}

#[test]
fn deep_nesting_is_refused_and_not_followed() {
    for text in [
        format!("a = {}", "[".repeat(100_000)),
        format!("{}b = 1", "a.".repeat(100_000)),
        format!("[{}b]", "a.".repeat(100_000)),
        format!("a = {}1", "{ b = ".repeat(100_000)),
        format!("a = [{}1", "{ b.b.b.b.b.b.b.b.b.b.b = [".repeat(10_000)),
    ] {
        assert!(matches!(parse(&text), Err(ConfigError::Syntax { .. })));
    }
}

proptest! {
    #[test]
    fn no_text_does_harm(text in any::<String>()) {
        let _ = parse(&text).map_err(|error| error.to_string());
    }

    #[test]
    fn no_near_config_does_harm(parts in prop::collection::vec(
        prop::sample::select(vec![
            "[plugins.x]", "[mcp.servers.é]", "[[plugins.y]]", "\n", "command", "env", "config", ".", " = ", "[", "]",
            "{", "}", "'a'", "\"", "'''", ",", "1", "-0x1", "1e9", "nan", "true", "secret", "roots", "é\u{202e}", "#",
            "\r\n", "\t", "2024-01-02",
        ]), 0..30)) {
        let _ = parse(&parts.concat()).map_err(|error| error.to_string());
    }
}

#[test]
fn a_literal_secret_is_not_shown_with_the_place() {
    let text = "[plugins.x]\ncommand = ['a']\nenv = { TOKEN = \"ghp_LiteralSecret123, X = \"1\" }";
    let error = parse(text).unwrap_err().to_string();
    assert!(!error.contains("LiteralSecret") && error.contains("TOKEN = \"***"), "{error}");
}

#[test]
fn the_runtime_table_says_where_extensions_are() {
    let config = parse(
        "[runtime]\nextension_paths = ['~/a', 'b', '/c']\nextensions = { enabled = false, auto_load_default_paths = true }",
    )
    .unwrap();
    let paths = ["/home/me/a", "/etc/lemon/b", "/c"].map(PathBuf::from).to_vec();
    let runtime =
        RuntimeConfig { extension_paths: Some(paths), enabled: Some(false), auto_load_default_paths: Some(true) };
    assert_eq!(config.runtime, runtime);
    assert_eq!(parse("").unwrap().runtime, RuntimeConfig::default());
    let problems = problems("[runtime]\nextension_paths = ['', 1]\n[runtime.extensions]\nenabled = 'no'");
    assert_eq!(problems.len(), 3, "{problems:?}");
    let odd = parse("[runtime]\nextension_path = []\n[runtime.extensions]\nenable = true").unwrap().warnings;
    assert_eq!(
        odd[0].to_string(),
        "/etc/lemon/config.toml:2: unknown key `extension_path` in [runtime] is ignored; did you mean `extension_paths`?"
    );
    assert!(odd[1].to_string().ends_with("did you mean `enabled`?"));
}

#[test]
fn each_key_that_counts_is_known_with_its_place_and_no_secret_is_shown() {
    let text = "colour = 1\n[plugins.'a.b']\ncommand = ['x']\nenv = { A = 's3cret', B = { secret = 'N' } }\n\
                roots = []\nconfig = { 'k y' = 1, token = 's3cret', deep = { api_key = ['s3cret'] }, max_tokens = 5 }\n\
                rlimits.open_files = 9\n[limits]\ncalls = 3\n";
    let settings = parse(text).unwrap().settings;
    let told: Vec<_> =
        settings.iter().map(|it| format!("{}:{} {} = {}", it.origin.line, it.column, it.key(), it.value)).collect();
    assert_eq!(
        told,
        [
            "3:1 plugins.\"a.b\".command = [\"x\"]",
            "4:9 plugins.\"a.b\".env.A = \"[set]\"",
            "4:23 plugins.\"a.b\".env.B = { secret = \"N\" }",
            "6:12 plugins.\"a.b\".config.\"k y\" = 1",
            "6:23 plugins.\"a.b\".config.token = \"[set]\"",
            "6:41 plugins.\"a.b\".config.deep = \"[set]\"",
            "6:74 plugins.\"a.b\".config.max_tokens = 5",
            "7:9 plugins.\"a.b\".rlimits.open_files = 9",
            "9:1 limits.calls = 3",
        ]
    );
    assert!(!format!("{settings:?}").contains("s3cret"));
    assert!(parse("[plugins.x]\ncommand = 1\ntimeout_ms = 5").is_err());
}

#[test]
fn an_extension_without_a_command_sets_up_one_that_is_found_elsewhere() {
    assert!(plugin("timeout_ms = 5").command.is_empty());
    assert!(problems("[mcp.servers.x]\ncwd = '/'")[0].contains("has no `command`"));
}

mod project {
    use super::*;

    struct Project {
        root: tempfile::TempDir,
    }

    impl Project {
        fn new() -> Self {
            let root = tempfile::tempdir().unwrap();
            fs::create_dir_all(root.path().join("p/.lemon")).unwrap();
            fs::create_dir_all(root.path().join("p/src")).unwrap();
            std::os::unix::fs::symlink("/", root.path().join("p/out")).unwrap();
            Self { root }
        }

        fn parse(&self, text: &str) -> Result<Config, ConfigError> {
            Config::parse_project(text, &self.root.path().join("p/.lemon/config.toml"))
        }

        /// What is told of a text that a project may not write.
        fn refused(&self, text: &str) -> Vec<String> {
            let told: Vec<_> = match self.parse(text) {
                Ok(config) => config.warnings.iter().map(ToString::to_string).collect(),
                Err(error) => error.problems().iter().map(|problem| problem.message.clone()).collect(),
            };
            let short = |line: &String| line.rsplit("config.toml:").next().unwrap().to_owned();
            told.iter().map(short).collect()
        }
    }

    #[test]
    fn it_adds_plugins_and_hides_tools() {
        let project = Project::new();
        let config = project
            .parse(
                "[plugins.x]\ncommand = ['python3', 'x.py']\ncwd = '../src'\nenv = { LEVEL = '1' }\n\
                 config = { a = 1 }\ntimeout_ms = 5\nstart_timeout_ms = 5\n\
                 [plugins.x.rlimits]\nopen_files = 9\n\
                 [mcp.servers.y]\ncommand = ['./y']\nroots = ['..']\n[tools]\ndisabled = ['z']\nenabled_only = ['*']",
            )
            .unwrap();
        assert_eq!(config.warnings, []);
        assert_eq!(config.plugins["x"].env["LEVEL"], EnvValue::Literal("1".to_owned()));
        assert_eq!(config.plugins["x"].rlimits.open_files, Some(9));
        assert_eq!(config.servers["y"].roots.len(), 1);
    }

    #[test]
    fn what_is_the_users_is_ignored_and_told_with_its_line() {
        let project = Project::new();
        for (text, told) in [
            ("[limits]\ncalls = 1", "1: `limits` is ignored: only the user's own config can set it"),
            ("[timeouts]\ncall_ms = 0", "1: `timeouts` is ignored: only the user's own config can set it"),
            (
                "[plugins.x]\ncommand = ['a']\nenabled = false",
                "3: `enabled` in [plugins.x] is ignored: only the user's own config can set it",
            ),
            (
                "[plugins.x]\ncommand = ['a']\npath = '..'",
                "3: `path` in [plugins.x] is ignored: only the user's own config can set it",
            ),
            ("[runtime]\nextension_paths = ['/']", "1: `runtime` is ignored: only the user's own config can set it"),
        ] {
            assert_eq!(project.refused(text), [told]);
        }
        assert_eq!(project.parse("[limits]\ncalls = 1").unwrap().limits, toml::Table::new());
    }

    #[test]
    fn it_gives_its_plugins_neither_secrets_nor_variables_that_load_code() {
        let project = Project::new();
        for variable in
            ["NODE_OPTIONS", "LD_PRELOAD", "ld_library_path", "PYTHONSTARTUP", "PATH", "LEMON_HOME", "BASH_ENV"]
        {
            let text = format!("[plugins.x]\ncommand = ['a']\nenv = {{ {variable} = 'x', OK = '1' }}");
            let config = project.parse(&text).unwrap();
            assert_eq!(config.plugins["x"].env.keys().collect::<Vec<_>>(), ["OK"], "{variable}");
            assert_eq!(config.warnings.len(), 1);
        }
        let text = "[plugins.x]\ncommand = ['a']\nenv = { T = { secret = 'AWS_KEY' } }\n\
                    config = { t = { secret = 'AWS_KEY' }, deep = [{ a = { secret = 'K' } }], ok = 1 }";
        let config = project.parse(text).unwrap();
        assert!(config.plugins["x"].env.is_empty());
        assert_eq!(config.plugins["x"].config.keys().collect::<Vec<_>>(), ["ok"]);
        assert_eq!(config.warnings.len(), 3);
    }

    #[test]
    fn its_plugins_work_within_it() {
        let project = Project::new();
        for folder in ["/", "../..", "../out", "../nowhere", "~/"] {
            for text in [
                format!("[plugins.x]\ncommand = ['a']\ncwd = '{folder}'"),
                format!("[mcp.servers.x]\ncommand = ['a']\nroots = ['{folder}']"),
            ] {
                let refused = project.refused(&text);
                assert!(refused[0].contains("must be a folder within the project"), "{text}: {refused:?}");
            }
        }
        assert!(project.refused("[plugins.x]\nconfig = { a = 1 }")[0].contains("has no `command`"));
    }
}
