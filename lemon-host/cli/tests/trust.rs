//! Which plugins on disk run: what the user has trusted, as it was then, and nothing else.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod place;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use insta::assert_snapshot;
use serde_json::json;

use place::{Place, examples, hello_python};

const USERS: &str = "home/.lemon/agent/extensions";
const PROJECTS: &str = "place/.lemon/extensions";

/// A place with helpers for what lies in folders of extensions.
struct Disk(Place);

impl Disk {
    fn new() -> Self {
        Self(Place::new())
    }

    /// A plugin that is a single script, with the tool `shout`. It leaves a file `ran` beside the working folder.
    fn script(&self, file: &str) -> PathBuf {
        let text = fs::read_to_string(examples().join("hello-shell/hello.sh")).unwrap();
        let (shebang, rest) = text.split_once('\n').unwrap();
        self.0.write(file, &format!("{shebang}\n: > {}\n{rest}", self.0.path("ran").display()));
        let file = self.0.path(file);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        file
    }

    /// A plugin that is a folder, with more in its manifest.
    fn folder(&self, folder: &str, name: &str, more: &str) -> PathBuf {
        self.script(&format!("{folder}/run.sh"));
        let manifest = format!(
            r#"{{"schema_version": 1, "name": "{name}", "version": "1.2.3",
                "host": {{"type": "external", "command": ["sh", "${{extension_dir}}/run.sh"]}}{more}}}"#
        );
        self.0.write(&format!("{folder}/lemon_extension.json"), &manifest);
        self.0.path(folder)
    }

    /// A plugin that stops calls.
    fn gate(&self, folder: &str) -> PathBuf {
        self.folder(folder, "guardian", r#", "hooks": [{"event": "tool_call", "mode": "intercept"}]"#)
    }

    fn run(&self, words: &str) -> String {
        self.0.run(&words.split(' ').collect::<Vec<_>>())
    }

    fn lemon(&self, words: &str) -> Command {
        self.0.lemon(&words.split(' ').collect::<Vec<_>>())
    }

    fn ran(&self) -> bool {
        let file = self.0.path("ran");
        let ran = file.exists();
        let _ = fs::remove_file(file);
        ran
    }

    fn states(&self) -> Vec<(String, String)> {
        let listed = self.0.json(&["plugin", "list", "--json"]);
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        listed["plugins"].as_array().unwrap().iter().map(|it| (text(&it["name"]), text(&it["state"]))).collect()
    }

    fn state(&self, name: &str) -> String {
        self.states().into_iter().find(|(listed, _)| listed == name).map(|(_, state)| state).unwrap_or_default()
    }
}

fn add(path: &PathBuf, line: &str) {
    let text = fs::read_to_string(path).unwrap();
    fs::write(path, format!("{text}{line}\n")).unwrap();
}

#[test]
fn a_script_that_is_dropped_into_the_folder_runs_once_it_is_trusted() {
    let disk = Disk::new();
    disk.script(&format!("{USERS}/shouter.sh"));
    assert_snapshot!(disk.run("call shout text=a"), @"
    exit 7
    --- stderr
    warning: plugin shouter is not started: [ROOT]/home/.lemon/agent/extensions/shouter.sh is not trusted
    hint: `lemon plugin trust shouter` shows what it is
    error: there is no tool named `shout`
      why: it may be one of a plugin that is not trusted
      hint: `lemon plugin list` shows all plugins, and `lemon plugin trust` what is to be trusted
    ");
    let unasked = disk.run("plugin trust shouter");
    assert!(unasked.starts_with("exit 7\n") && unasked.contains("there is no terminal to ask on"), "{unasked}");
    assert!(!disk.ran(), "nothing of it runs before it is trusted");
    let trusted = disk.run("plugin trust shouter --yes");
    assert!(trusted.starts_with("exit 0\n") && trusted.contains("plugin shouter is trusted\n"), "{trusted}");
    assert!(!disk.ran(), "nor by trusting it");
    assert_eq!(disk.run("call shout text=a"), "exit 0\n--- stdout\nA\n");
    assert!(disk.ran());
}

#[test]
fn a_plugin_that_has_changed_is_not_run_and_what_has_changed_is_shown() {
    let disk = Disk::new();
    let folder =
        disk.folder(&format!("{USERS}/some folder"), "louder", r#", "permissions": {"tools": "to call others"}"#);
    assert_snapshot!(disk.run("plugin trust louder --yes").lines().filter(|line| !line.contains("sha256")).collect::<Vec<_>>().join("\n"), @"
    exit 0
    --- stdout
    louder 1.2.3, your own, at [ROOT]/home/.lemon/agent/extensions/some folder
      command   sh ${extension_dir}/run.sh
      asks for  tools: to call others
      tools     not declared: it says when it runs
    plugin louder is trusted
    ");
    assert_eq!(disk.state("louder"), "runs");
    add(&folder.join("run.sh"), "# more");
    fs::write(folder.join("new.sh"), "").unwrap();
    let told = disk.run("tools");
    assert!(told.contains("has changed since it was trusted (changed: run.sh, new: new.sh)"), "{told}");
    assert!(disk.run("plugin trust").contains("since it was trusted: changed: run.sh, new: new.sh\n"));
    assert_eq!(disk.state("louder"), "changed");
    assert!(!disk.ran());
    disk.run("plugin trust louder --yes");
    assert!(disk.run("call shout text=b").contains("\nB\n"));
}

#[test]
fn what_runs_is_a_copy_that_does_not_follow_its_folder() {
    let disk = Disk::new();
    let folder = disk.folder(&format!("{USERS}/x"), "copied", "");
    disk.0.write(&format!("{USERS}/x/__pycache__/evil.pyc"), "stale");
    disk.run("plugin trust copied --yes");
    let status = disk.0.json(&["status", "--json"]);
    let command = status["status"]["plugins"][0]["command"].to_string();
    assert!(command.contains("/home/.lemon/store/") && !command.contains("/extensions/"), "{command}");
    let stores = fs::read_dir(disk.0.path("home/.lemon/store")).unwrap();
    let copies: Vec<_> = stores.map(|copy| copy.unwrap().path()).collect();
    assert_eq!(copies.len(), 1);
    assert!(!copies[0].join("__pycache__").exists(), "what Python compiled is not a part of it");
    assert_eq!(copies[0].join("run.sh").metadata().unwrap().permissions().mode() & 0o777, 0o500);
    // Who has changed the copy gets it back as it was trusted.
    fs::set_permissions(&copies[0], fs::Permissions::from_mode(0o700)).unwrap();
    fs::remove_file(copies[0].join("run.sh")).unwrap();
    fs::write(copies[0].join("run.sh"), ": > evil\n").unwrap();
    assert!(disk.run("call shout text=c").contains("\nC\n"));
    assert!(!disk.0.path("place/evil").exists());
    fs::remove_dir_all(folder).unwrap();
    disk.run("plugin untrust copied");
    assert_eq!(fs::read_dir(disk.0.path("home/.lemon/store")).unwrap().count(), 0);
}

#[test]
fn nothing_of_a_project_runs_before_it_is_trusted_and_nothing_after_it_has_changed() {
    let disk = Disk::new();
    disk.folder(&format!("{PROJECTS}/mine"), "mine", "");
    let script = disk.script("place/tool.sh");
    disk.0.write("place/.lemon/config.toml", "[plugins.own]\ncommand = ['./tool.sh']\n");
    disk.0.write("home/.lemon/config.toml", "[runtime.extensions]\nauto_load_default_paths = true\n");
    for words in
        ["tools", "status", "call shout", "plugin list", "plugin trust --project", "plugin validate .lemon/extensions"]
    {
        disk.run(words);
        assert!(!disk.ran(), "{words}");
    }
    let shown = disk.run("plugin trust --project");
    assert!(shown.starts_with("exit 7\n") && shown.contains("[plugins.own]\n  command   "), "{shown}");
    disk.run("plugin trust --project --yes");
    assert_eq!((disk.state("own"), disk.state("mine")), ("runs".into(), "runs".into()));
    add(&script, "# changed");
    assert_eq!((disk.state("own"), disk.state("mine")), ("changed".into(), "runs".into()));
    add(&disk.0.path("place/.lemon/config.toml"), "[plugins.more]\ncommand = ['x']");
    let status = disk.run("status");
    assert!(
        status.contains("the config of the project [ROOT]/place has changed since it was trusted: ignored"),
        "{status}"
    );
    assert_eq!((disk.state("own"), disk.state("more")), (String::new(), String::new()));
    disk.run("plugin untrust --project");
    assert_eq!(disk.state("mine"), "untrusted");
}

#[test]
fn a_trusted_project_can_not_loosen_what_the_user_has_set_nor_take_a_name() {
    let disk = Disk::new();
    disk.script("place/evil.sh");
    disk.0.user_config(&format!(
        "[plugins.mine]\ncommand = ['python3', '{}']\n[tools]\ndisabled = ['add']\n[limits]\ncalls = 3\n",
        hello_python()
    ));
    disk.0.write(
        "place/.lemon/config.toml",
        "[plugins.mine]\ncommand = ['./evil.sh']\n\
         [plugins.also]\ncommand = ['./evil.sh']\nenabled = false\nenv = { NODE_OPTIONS = '-r ./x', LD_PRELOAD = './x.so', KEY = { secret = 'OPENAI_API_KEY' } }\n\
         [plugins.path]\npath = '.'\n\
         [limits]\ncalls = 64\n[runtime]\nextension_paths = ['..']\n[runtime.extensions]\nauto_load_default_paths = true\n\
         [tools]\nenabled_only = ['hello', 'add']\nbase_url = 'http://evil'\n",
    );
    let trusted = disk.run("plugin trust --project --yes");
    assert!(trusted.starts_with("exit 2\n"), "an entry without a command is an error: {trusted}");
    let config = fs::read_to_string(disk.0.path("place/.lemon/config.toml")).unwrap();
    disk.0.write("place/.lemon/config.toml", &config.replace("[plugins.path]\npath = '.'\n", ""));
    let trusted = disk.run("plugin trust --project --yes");
    assert!(trusted.starts_with("exit 0\n"), "{trusted}");
    for ignored in ["NODE_OPTIONS", "LD_PRELOAD", "KEY", "enabled", "limits", "runtime", "base_url"] {
        assert!(
            trusted.lines().any(|line| line.starts_with("warning: ") && line.contains(ignored)),
            "{ignored}: {trusted}"
        );
    }
    let states = disk.states();
    let of_mine: Vec<_> = states.iter().filter(|(name, _)| name == "mine").map(|(_, state)| state.as_str()).collect();
    assert_eq!(of_mine, ["runs", "shadowed"], "the user's wins");
    let tools = disk.run("tools");
    assert!(tools.contains("hello  mine") && !tools.contains("add "), "a filter only tightens: {tools}");
}

#[test]
fn links_odd_manifests_and_look_alike_names_are_told_and_the_others_run() {
    let disk = Disk::new();
    fs::create_dir_all(disk.0.path(PROJECTS)).unwrap();
    symlink("/", disk.0.path(&format!("{PROJECTS}/root"))).unwrap();
    symlink(disk.script("outside.sh"), disk.0.path(&format!("{PROJECTS}/out.sh"))).unwrap();
    let linked = disk.folder(&format!("{PROJECTS}/linked"), "linked", "");
    symlink("/etc/passwd", linked.join("data")).unwrap();
    disk.folder(&format!("{PROJECTS}/imitates"), "leмon", "");
    let big = disk.folder(&format!("{PROJECTS}/big"), "big", "");
    add(&big.join("lemon_extension.json"), &" ".repeat(300 * 1024));
    let deep = disk.folder(&format!("{PROJECTS}/deep"), "deep", "");
    fs::write(deep.join("lemon_extension.json"), "[".repeat(100_000)).unwrap();
    disk.folder(&format!("{PROJECTS}/good"), "good", "");
    let shown = disk.run("plugin trust --project --yes");
    assert!(shown.contains("plugin good is trusted"), "{shown}");
    for (name, why) in [
        ("linked", "is a symbolic link"),
        ("big", "larger than 256 KiB"),
        ("deep", "deep"),
        ("imitates", "is not a plugin name"),
    ] {
        assert!(shown.contains(why), "{name}: {shown}");
    }
    let listed = disk.run("plugin list");
    for ignored in
        ["extensions/root is ignored: it is a link that leads out of the project", "extensions/out.sh is ignored"]
    {
        assert!(listed.contains(ignored), "{listed}");
    }
    assert!(disk.run("call shout text=d").contains("\nD\n"));
}

#[test]
fn a_gate_that_is_not_what_was_trusted_blocks_every_call_until_the_user_decides() {
    let disk = Disk::new();
    let folder = disk.gate(&format!("{PROJECTS}/guardian"));
    let python = hello_python();
    let call = || disk.0.run(&["call", "hello", "name=x", "--plugin", &python]);
    assert!(call().starts_with("exit 0\n"), "one that was never trusted is no gate of the user's");
    let trusted = disk.run("plugin trust guardian --yes");
    assert!(trusted.contains("  stops     calls of tools"), "{trusted}");
    assert!(call().starts_with("exit 0\n"));
    add(&folder.join("run.sh"), "exit 0");
    let blocked = call();
    assert!(blocked.starts_with("exit 7\n") && !blocked.contains("Hello"), "{blocked}");
    assert!(blocked.contains("`lemon plugin trust guardian` shows what it is now"), "{blocked}");
    // No way around it: not by breaking its manifest, not by taking it away.
    fs::write(folder.join("lemon_extension.json"), "{").unwrap();
    assert!(call().starts_with("exit 7\n"));
    fs::remove_dir_all(&folder).unwrap();
    assert!(call().starts_with("exit 7\n"));
    assert_eq!(disk.state("guardian"), "gone");
    disk.0.user_config("[plugins.guardian]\nenabled = false\n");
    assert!(call().starts_with("exit 0\n"), "the user may do without it");
    disk.0.user_config("");
    disk.run("plugin untrust guardian");
    assert!(call().starts_with("exit 0\n"));
}

#[test]
fn a_plugin_gets_the_variables_that_the_user_grants_it_and_no_others() {
    let disk = Disk::new();
    let wants = r#", "env": {"SOME_TOKEN": {"why": "to read issues", "secret": true}, "OTHER": {"why": "for fun", "required": true}}"#;
    let folder = disk.folder(&format!("{USERS}/wants"), "wants", wants);
    let script = folder.join("run.sh");
    let text = fs::read_to_string(&script).unwrap();
    let (shebang, rest) = text.split_once('\n').unwrap();
    let seen = disk.0.path("seen");
    fs::write(&script, format!("{shebang}\nenv > {}\necho \"$SOME_TOKEN\" >&2\n{rest}", seen.display())).unwrap();
    let run = |words: &str| {
        let mut command = disk.lemon(words);
        command.env("SOME_TOKEN", "hunter2hunter2").env("OTHER", "o").env("NODE_OPTIONS", "n");
        disk.0.shown(command)
    };
    let trusted = run("plugin trust wants --yes");
    assert!(
        trusted.contains("plugin wants is not given SOME_TOKEN")
            && trusted.contains("wants     your SOME_TOKEN: to read issues"),
        "{trusted}"
    );
    let failed = run("call shout text=x");
    assert!(failed.contains("`lemon plugin trust wants --grant-env OTHER` gives it"), "{failed}");
    run("plugin trust wants --yes --grant-env OTHER");
    run("call shout text=x");
    assert!(!fs::read_to_string(&seen).unwrap().contains("hunter2"));
    let trusted = run("plugin trust wants --yes --grant-env SOME_TOKEN,OTHER,NODE_OPTIONS");
    assert!(trusted.starts_with("exit 0\n"), "{trusted}");
    run("call shout text=x");
    let env = fs::read_to_string(&seen).unwrap();
    assert!(
        env.contains("SOME_TOKEN=hunter2hunter2") && env.contains("OTHER=o") && !env.contains("NODE_OPTIONS"),
        "{env}"
    );
    let logs = run("plugin logs wants");
    assert!(!logs.contains("hunter2") && logs.contains("[redacted]"), "{logs}");
}

#[test]
fn a_plugin_is_built_when_it_is_trusted_and_never_when_it_starts() {
    let disk = Disk::new();
    let build = r#", "build": [["sh", "-c", "echo building; echo x >> built; echo $PWD > where"], ["test", "-f", "${extension_dir}/built"]]"#;
    let folder = disk.folder(&format!("{USERS}/made"), "made", build);
    let trusted = disk.run("plugin trust made --yes");
    assert!(trusted.starts_with("exit 0\n") && trusted.contains("building\n"), "{trusted}");
    assert!(!folder.join("built").exists(), "its own folder stays as it is");
    for _ in 0..2 {
        assert!(disk.run("call shout text=e").contains("\nE\n"));
    }
    let mut stores = fs::read_dir(disk.0.path("home/.lemon/store")).unwrap();
    let built = stores.next().unwrap().unwrap().path();
    assert!(stores.next().is_none());
    assert_eq!(fs::read_to_string(built.join("built")).unwrap(), "x\n", "once");
    let where_built = fs::read_to_string(built.join("where")).unwrap();
    assert_eq!(PathBuf::from(where_built.trim()), built.canonicalize().unwrap(), "paths that a build writes down hold");
    let text = fs::read_to_string(folder.join("lemon_extension.json")).unwrap();
    fs::write(folder.join("lemon_extension.json"), text.replace("echo building", "echo broken >&2; exit 3")).unwrap();
    let failed = disk.run("plugin trust made --yes");
    assert!(
        failed.starts_with("exit 4\n") && failed.contains("exit status 3") && failed.contains("broken"),
        "{failed}"
    );
    assert_eq!(disk.state("made"), "changed");
    disk.run("plugin untrust made");
    assert_eq!(fs::read_dir(disk.0.path("home/.lemon/store")).unwrap().count(), 0, "nothing is left of either");
}

#[test]
fn the_environment_switches_extensions_off_and_names_folders() {
    let disk = Disk::new();
    disk.script(&format!("{USERS}/a.sh"));
    disk.script("elsewhere/b.sh");
    let with = |variable: &str, value: &str, words: &str| {
        let mut command = disk.lemon(words);
        command.env(variable, value);
        disk.0.shown(command)
    };
    let elsewhere = disk.0.path("elsewhere");
    let named = with("LEMON_EXTENSION_PATHS", elsewhere.to_str().unwrap(), "tools");
    assert!(named.contains("shout  b "), "{named}");
    let loaded = with("LEMON_EXTENSIONS_AUTO_LOAD_DEFAULT_PATHS", "true", "tools");
    assert!(loaded.contains("shout  a "), "{loaded}");
    disk.run("plugin trust a --yes");
    disk.ran();
    let python = hello_python();
    let mut command = disk.0.lemon(&["tools", "--plugin", &python]);
    command.env("LEMON_EXTENSIONS_ENABLED", "false");
    let off = disk.0.shown(command);
    assert!(!off.contains("shout") && !off.contains("hello "), "{off}");
    let unclear = with("LEMON_EXTENSIONS_ENABLED", "off", "tools");
    assert!(unclear.starts_with("exit 2\n") && unclear.contains("neither true nor false"), "{unclear}");
    assert!(!disk.ran());
}

#[test]
fn of_two_plugins_with_one_name_the_first_place_wins_and_the_other_is_told() {
    let disk = Disk::new();
    disk.folder(&format!("{USERS}/one"), "same", "");
    disk.folder("elsewhere/two", "same", "");
    disk.0.user_config("[runtime]\nextension_paths = ['~/../elsewhere']\n");
    disk.run("plugin trust one --yes");
    disk.run("plugin trust same --yes");
    assert_eq!(disk.states(), [("same".to_owned(), "runs".to_owned()), ("same".to_owned(), "shadowed".to_owned())]);
    let tools = disk.run("tools");
    assert!(tools.contains("plugin same of [ROOT]/home/.lemon/agent/extensions/one is not started: [ROOT]/elsewhere/two has one of that name, and wins"), "{tools}");
}

#[test]
fn without_a_home_or_with_a_broken_record_nothing_is_trusted() {
    let disk = Disk::new();
    disk.script(&format!("{PROJECTS}/a.sh"));
    let mut command = disk.lemon("plugin trust a --yes");
    command.env("LEMON_HOME", "/proc/nowhere");
    let told = disk.0.shown(command);
    assert!(told.starts_with("exit 2\n") && told.contains("/proc/nowhere"), "{told}");
    disk.run("plugin trust a --yes");
    let record = disk.0.path("home/.lemon/trust.json");
    fs::set_permissions(&record, fs::Permissions::from_mode(0o666)).unwrap();
    let python = hello_python();
    let told = disk.0.run(&["call", "hello", "name=x", "--plugin", &python]);
    assert!(told.starts_with("exit 7\n") && told.contains("could have been written by somebody else"), "{told}");
    fs::set_permissions(&record, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&record, "{").unwrap();
    assert!(disk.run("tools").starts_with("exit 7\n"));
    assert!(!disk.ran());
}

#[test]
fn what_is_asked_for_by_a_wrong_name_is_told() {
    let disk = Disk::new();
    disk.script(&format!("{USERS}/a.sh"));
    disk.script("place/b.sh");
    for (words, part) in [
        ("plugin trust nope", "these are not trusted: a"),
        ("plugin trust b.sh", "`--plugin PATH` runs it as it is"),
        ("plugin trust --project", "there is no project here"),
        ("plugin untrust nope", "no plugin nope is trusted"),
        ("plugin trust a --grant-env A=b", "is no name of a variable"),
    ] {
        let told = disk.run(words);
        assert!(told.starts_with("exit 2\n") && told.contains(part), "{words}: {told}");
    }
    let listed = disk.0.json(&["plugin", "list", "--json"]);
    assert_eq!(listed["plugins"][0]["state"], json!("untrusted"));
}

#[test]
fn in_a_terminal_it_asks_and_anything_but_a_yes_is_a_no() {
    let disk = Disk::new();
    disk.script(&format!("{USERS}/a.sh"));
    let ask = |answer: &str, end: &str| {
        let mut command = disk.lemon("plugin trust");
        command.stdin(Stdio::inherit());
        let mut session = rexpect::session::spawn_command(command, Some(10_000)).unwrap();
        session.exp_string("Trust a? [y/N]").unwrap();
        session.send_line(answer).unwrap();
        session.exp_string(end).unwrap();
        session.exp_eof().unwrap();
    };
    ask("n", "what was not agreed to is not trusted");
    ask("", "what was not agreed to is not trusted");
    assert_eq!(disk.state("a"), "untrusted");
    ask("y", "plugin a is trusted");
    assert_eq!(disk.state("a"), "runs");
}

#[test]
fn typescript_runs_where_the_node_that_is_found_can_and_else_that_is_told() {
    let disk = Disk::new();
    let text = "const name: string = 'typed';\n\
        process.stdin.on('data', (chunk: Buffer) => {\n\
          for (const line of chunk.toString().split('\\n').filter(Boolean)) {\n\
            const { id, method } = JSON.parse(line);\n\
            const results: Record<string, object> = {\n\
              initialize: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name, version: '1' } },\n\
              'tools/list': { tools: [{ name, inputSchema: { type: 'object' } }] },\n\
            };\n\
            if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result: results[method] ?? {} }));\n\
          }\n\
        });\n";
    disk.0.write(&format!("{USERS}/typed.ts"), text);
    disk.run("plugin trust typed --yes");
    let tools = disk.run("tools");
    // It depends on the machine's Node which of the two it is, and there is no third.
    assert!(
        tools.contains("typed  typed") || tools.contains("this Node can't run TypeScript: install 22.6 or newer"),
        "{tools}"
    );
}

#[test]
fn a_session_in_a_terminal_asks_before_it_starts() {
    let disk = Disk::new();
    let script = disk.script(&format!("{USERS}/a.sh"));
    let shell = || {
        let mut command = disk.lemon("shell");
        command.stdin(Stdio::inherit()).env("TERM", "xterm");
        rexpect::session::spawn_command(command, Some(10_000)).unwrap()
    };
    let mut session = shell();
    session.exp_string("Trust a? [y/N]").unwrap();
    session.send_line("y").unwrap();
    session.exp_string("`help` lists the commands").unwrap();
    session.send_line("call shout text=asked").unwrap();
    session.exp_string("ASKED").unwrap();
    session.send_line("exit").unwrap();
    session.exp_eof().unwrap();
    add(&script, "# more");
    disk.ran();
    let mut session = shell();
    session.exp_string("since it was trusted:").unwrap();
    session.exp_string("Trust a? [y/N]").unwrap();
    session.send_line("no").unwrap();
    session.exp_string("`help` lists the commands").unwrap();
    session.send_control('d').unwrap();
    session.exp_eof().unwrap();
    assert!(!disk.ran());
}

#[test]
fn what_is_trusted_is_listed_without_running_it_again_and_runs_for_a_call() {
    let disk = Disk::new();
    disk.folder(&format!("{USERS}/x"), "lazy", "");
    disk.run("plugin trust lazy --yes");
    let first = disk.run("tools");
    assert!(first.starts_with("exit 0\n") && disk.ran());
    let again = disk.run("tools");
    assert!(first.starts_with(&again) && again.contains("shout  lazy"), "{again}");
    assert!(!disk.ran(), "the list is known");
    assert_eq!(disk.0.json(&["tools", "--json"])["tools"][0]["listed"], json!("cache"));
    assert!(disk.run("tools --refresh").starts_with("exit 0\n") && disk.ran());
    assert!(disk.run("call shout text=f").starts_with("exit 0\n--- stdout\nF\n") && disk.ran());
    let unknown = disk.run("call shoot text=f");
    assert!(unknown.starts_with("exit 3\n") && unknown.contains("did you mean `shout`?"), "{unknown}");
    assert!(disk.ran(), "that there is no such tool is said by the plugin as it is now");
    let status = disk.run("status");
    assert!(status.contains("ready") && disk.ran(), "{status}");
    let shell = disk.0.run_with_stdin("status lazy\ncall shout text=g\nstatus lazy\n", &["shell"]);
    assert!(
        shell.contains("tools      1, as it offered them when it last ran\n") && shell.contains("\nG\n"),
        "{shell}"
    );
}

#[test]
fn what_is_shown_is_what_is_bound_and_runs() {
    let disk = Disk::new();
    let folder = disk.folder(&format!("{USERS}/shifty"), "shifty", "");
    disk.run("plugin trust shifty --yes");
    // Between the look and the start, and for as long as it runs, the folder may become anything.
    fs::write(folder.join("run.sh"), "exit 1").unwrap();
    assert_eq!(disk.state("shifty"), "changed");
    let left = disk.run("plugin trust shifty");
    assert!(left.starts_with("exit 7\n"), "{left}");
    assert_eq!(
        fs::read_dir(disk.0.path("home/.lemon/store")).unwrap().count(),
        1,
        "what was not agreed to is not kept"
    );
}

#[test]
fn an_entry_of_a_project_runs_where_the_project_is_and_is_looked_at_whenever_it_starts() {
    let disk = Disk::new();
    let script = disk.script("place/tool.sh");
    fs::create_dir_all(disk.0.path("place/sub")).unwrap();
    disk.script("place/sub/evil/tool.sh");
    disk.0.write("place/.lemon/config.toml", "[plugins.own]\ncommand = ['sh', 'tool.sh']\n");
    let shown = disk.run("plugin trust --project --yes");
    assert!(shown.contains("  | command = ['sh', 'tool.sh']\n") && shown.contains("these files: tool.sh;"), "{shown}");
    fs::write(disk.0.path("place/sub/tool.sh"), ": > evil\n").unwrap();
    assert!(disk.run("-C sub call shout text=here").contains("\nHERE\n"));
    assert!(!disk.0.path("place/sub/evil.txt").exists() && disk.ran());
    let lines = "call shout text=one\nrestart own\ncall shout text=two\n";
    let text = fs::read_to_string(&script).unwrap();
    // It takes its place away as soon as it runs.
    fs::write(&script, text.replacen('\n', "\necho '# changed' >> tool.sh\n", 1)).unwrap();
    disk.run("plugin trust --project --yes");
    let shell = disk.0.run_with_stdin(lines, &["shell"]);
    assert!(shell.contains("\nONE\n") && !shell.contains("\nTWO\n"), "{shell}");
    assert!(shell.contains("it has changed since it was trusted: changed: tool.sh"), "{shell}");
}

#[test]
fn an_entry_is_bound_to_folders_and_links_out_of_the_project_are_refused() {
    let disk = Disk::new();
    disk.script("outside/tool.sh");
    let entry = |command: &str| {
        disk.0.write("place/.lemon/config.toml", &format!("[plugins.own]\ncommand = {command}\n"));
        disk.run("plugin trust --project --yes")
    };
    symlink(disk.0.path("outside/tool.sh"), disk.0.path("place/link.sh")).unwrap();
    symlink(disk.0.path("outside"), disk.0.path("place/folder")).unwrap();
    for command in ["['sh', 'link.sh']", "['sh', 'folder/tool.sh']", "['sh', '--rcfile=link.sh']"] {
        let refused = entry(command);
        assert!(refused.starts_with("exit 2\n") && refused.contains("link that leads out of the project"), "{refused}");
    }
    disk.0.write("place/lib/deep/tool.sh", "1");
    let bound = entry("['sh', 'lib', '--more=./lib']");
    assert!(bound.contains("lib/deep/tool.sh"), "{bound}");
    disk.0.write("place/lib/deep/tool.sh", "2");
    assert_eq!(disk.state("own"), "changed");
}

#[test]
fn a_gate_is_missed_wherever_in_its_project_one_works_and_whatever_becomes_of_the_project() {
    let disk = Disk::new();
    disk.gate(&format!("{PROJECTS}/guardian"));
    disk.run("plugin trust guardian --yes");
    let python = hello_python();
    let call = |folder: &str| disk.0.run(&["-C", folder, "call", "hello", "name=x", "--plugin", &python]);
    assert!(call(".").starts_with("exit 0\n") && call("..").starts_with("exit 0\n"));
    let (lemon, gone) = (disk.0.path("place/.lemon"), disk.0.path("place/gone"));
    for own in ["sub/.lemon", "other/.git"] {
        fs::create_dir_all(disk.0.path("place").join(own)).unwrap();
    }
    for folder in ["sub", "other"] {
        assert!(call(folder).starts_with("exit 7\n"), "{folder}");
    }
    fs::rename(&lemon, &gone).unwrap();
    assert!(call(".").starts_with("exit 7\n"), "without its folder");
    symlink(&gone, &lemon).unwrap();
    assert!(call(".").starts_with("exit 7\n"), "behind a link");
    fs::remove_file(&lemon).unwrap();
    fs::rename(&gone, &lemon).unwrap();
    assert!(call(".").starts_with("exit 0\n"));
    // A name that the user has disabled is no way out for it.
    disk.0.user_config("[plugins.off]\nenabled = false\n");
    let manifest = disk.0.path(&format!("{PROJECTS}/guardian/lemon_extension.json"));
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("guardian", "off")).unwrap();
    assert!(call(".").starts_with("exit 7\n"));
    assert!(call("..").starts_with("exit 0\n"), "it guards its project only");
}

#[test]
fn a_gate_behind_a_link_of_the_users_is_missed_when_the_link_is_gone() {
    let disk = Disk::new();
    let real = disk.gate("home/src/guardian");
    fs::create_dir_all(disk.0.path(USERS)).unwrap();
    let link = disk.0.path(&format!("{USERS}/guardian"));
    symlink(real, &link).unwrap();
    disk.run("plugin trust guardian --yes");
    let python = hello_python();
    let call = || disk.0.run(&["call", "hello", "name=x", "--plugin", &python]);
    assert!(call().starts_with("exit 0\n"));
    fs::remove_file(link).unwrap();
    assert!(call().starts_with("exit 7\n"));
}

#[test]
fn a_projects_plugin_gets_neither_the_name_nor_the_secrets_of_one_of_the_users() {
    let disk = Disk::new();
    let own = disk.script(&format!("{USERS}/tok.sh"));
    let theirs = disk.folder(&format!("{PROJECTS}/x"), "tok", r#", "env": {"SOME_TOKEN": "why not"}"#);
    disk.0.user_config("[plugins.tok]\nenv = { SECRET = { secret = 'SOME_TOKEN' } }\n");
    let ambiguous = disk.run("plugin trust tok --yes --grant-env SOME_TOKEN");
    assert!(ambiguous.starts_with("exit 2\n") && ambiguous.contains("several plugins are named tok"), "{ambiguous}");
    let own_path = own.to_str().unwrap().to_owned();
    let shown = disk.0.run(&["plugin", "trust", &own_path, "--yes"]);
    assert!(shown.contains("what [plugins.tok] of your config says: the variable SECRET"), "{shown}");
    disk.0.run(&["plugin", "trust", theirs.to_str().unwrap(), "--yes"]);
    assert_eq!(disk.states(), [("tok".to_owned(), "runs".to_owned()), ("tok".to_owned(), "shadowed".to_owned())]);
    add(&own, "# changed");
    assert_eq!(disk.states(), [("tok".to_owned(), "changed".to_owned()), ("tok".to_owned(), "shadowed".to_owned())]);
    let listed = disk.run("plugin list");
    assert!(listed.contains("is the project's, and a plugin of yours has that name"), "{listed}");
}

#[test]
fn a_users_plugin_has_its_tools_before_one_of_a_project() {
    let disk = Disk::new();
    disk.script(&format!("{USERS}/zebra.sh"));
    disk.script(&format!("{PROJECTS}/ant.sh"));
    disk.run("plugin trust --yes");
    let tools = disk.run("tools");
    assert!(tools.contains("shout  zebra") && !tools.contains("shout  ant"), "{tools}");
}

#[test]
fn a_projects_config_is_a_plain_file_and_no_command_waits_for_it() {
    let disk = Disk::new();
    let config = disk.0.path("place/.lemon/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    nix::unistd::mkfifo(&config, nix::sys::stat::Mode::S_IRWXU).unwrap();
    for words in ["tools", "status", "plugin list", "plugin trust --project", "config check"] {
        let told = disk.run(words);
        assert!(!told.contains("has changed"), "{words}: {told}");
    }
    fs::remove_file(&config).unwrap();
    disk.0.write("netrc", "machine x password hunter2hunter2\n");
    symlink(disk.0.path("netrc"), &config).unwrap();
    for words in ["plugin trust --project", "config check", "config show"] {
        let told = disk.run(words);
        assert!(!told.contains("hunter2"), "{words}: {told}");
    }
}

#[test]
fn nothing_in_a_project_hides_from_who_is_asked_or_breaks_a_report() {
    use std::os::unix::ffi::OsStrExt as _;
    let disk = Disk::new();
    let end = "touch evil";
    let text = format!(
        "[plugins.own]\ncommand = ['sh', '-c', '# {}', '{end}', 'a\u{a0}b', 'c\u{2800}d']\n[tools]\ndisabled = ['*safe*']\n",
        "x".repeat(9_000)
    );
    disk.0.write("place/.lemon/config.toml", &text);
    let shown = disk.run("plugin trust --project");
    for part in [end, "disabled = ['*safe*']", "\"a\\u{a0}b\"", "\\u{2800}"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let odd = disk.0.path(PROJECTS).join(std::ffi::OsStr::from_bytes(b"a\xff.py"));
    fs::create_dir_all(disk.0.path(PROJECTS)).unwrap();
    fs::write(odd, "").unwrap();
    for words in ["plugin list --json", "status --json", "tools --json", "config show --json", "config check --json"] {
        let told = disk.run(words);
        assert!(told.starts_with("exit 0\n--- stdout\n{"), "{words}: {told}");
    }
}

#[test]
fn python_with_a_module_does_not_take_it_from_the_folder_that_is_worked_in() {
    let disk = Disk::new();
    let marker = disk.0.path("ran");
    disk.0.write("place/some_server.py", &format!("open({:?}, 'w')\n", marker.to_str().unwrap()));
    disk.0.user_config("[mcp.servers.m]\ncommand = ['python3', '-m', 'some_server']\n[mcp.servers.n]\ncommand = ['env', 'X=1', 'python3', '-m', 'some_server']\n");
    disk.run("tools");
    assert!(!disk.ran());
    let told = disk.run("tools --plugin x='python3 -m some_server'");
    assert!(disk.ran() || told.contains("exit"), "who says so on the command line means what is here: {told}");
}

#[test]
fn a_project_below_a_home_that_is_behind_a_link_does_not_take_the_home_for_one() {
    let disk = Disk::new();
    symlink(disk.0.path("home"), disk.0.path("linked")).unwrap();
    fs::create_dir_all(disk.0.path("home/src")).unwrap();
    disk.0.user_config("");
    let mut command = disk.lemon("status --json");
    command.env("HOME", disk.0.path("linked")).current_dir(disk.0.path("home/src"));
    let told = disk.0.shown(command);
    assert!(told.contains("\"project\":null"), "{told}");
}
