//! git is only read, and by nobody but relay itself: whatever a repository, a user or a machine configures to be run,
//! no relay command runs it.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::bus::{Bus, RELAY};
use crate::hook::agent::Agent;
use crate::listening::Server;
use crate::trace::trace;

/// Configuration whose value git runs as a program, or through which it comes to run one.
const KEYS: [&str; 58] = [
    "core.fsmonitor",
    "core.sshCommand",
    "core.pager",
    "core.editor",
    "core.askPass",
    "core.gitProxy",
    "core.alternateRefsCommand",
    "diff.external",
    "diff.canary.command",
    "diff.canary.textconv",
    "filter.canary.clean",
    "filter.canary.smudge",
    "filter.canary.process",
    "merge.canary.driver",
    "credential.helper",
    "credential.https://example.invalid.helper",
    "gpg.program",
    "gpg.openpgp.program",
    "gpg.x509.program",
    "gpg.ssh.program",
    "gpg.ssh.defaultKeyCommand",
    "uploadpack.packObjectsHook",
    "sequence.editor",
    "interactive.diffFilter",
    "pager.status",
    "pager.diff",
    "pager.log",
    "pager.config",
    "alias.status",
    "alias.ls-files",
    "alias.rev-parse",
    "alias.worktree",
    "trailer.canary.command",
    "trailer.canary.cmd",
    "browser.canary.cmd",
    "browser.canary.path",
    "man.canary.cmd",
    "man.canary.path",
    "difftool.canary.cmd",
    "difftool.canary.path",
    "mergetool.canary.cmd",
    "mergetool.canary.path",
    "guitool.canary.cmd",
    "submodule.canary.update",
    "remote.origin.vcs",
    "remote.origin.uploadpack",
    "remote.origin.receivepack",
    "remote.origin.proxy",
    "sendemail.smtpServer",
    "sendemail.toCmd",
    "sendemail.ccCmd",
    "sendemail.headerCmd",
    "imap.tunnel",
    "instaweb.httpd",
    "web.browser",
    "help.browser",
    "tar.canary.command",
    "hook.canary.command",
];

/// Every hook that git knows.
const HOOKS: [&str; 28] = [
    "applypatch-msg",
    "pre-applypatch",
    "post-applypatch",
    "pre-commit",
    "pre-merge-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "pre-rebase",
    "post-checkout",
    "post-merge",
    "pre-push",
    "pre-receive",
    "update",
    "proc-receive",
    "post-receive",
    "post-update",
    "reference-transaction",
    "push-to-checkout",
    "pre-auto-gc",
    "post-rewrite",
    "sendemail-validate",
    "fsmonitor-watchman",
    "p4-changelist",
    "p4-prepare-changelist",
    "p4-post-changelist",
    "p4-pre-submit",
    "post-index-change",
];

/// Variables whose value git or a pager, editor or browser wrapper runs.
const VARIABLES: [&str; 16] = [
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "GIT_PAGER",
    "GIT_ASKPASS",
    "GIT_EXTERNAL_DIFF",
    "GIT_PROXY_COMMAND",
    "GIT_MAN_VIEWER",
    "SSH_ASKPASS",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "BROWSER",
    "SHELL",
    "BASH_ENV",
];

/// Programs that a careless caller would find by name.
const PROGRAMS: [&str; 9] = ["git", "sh", "bash", "env", "less", "ssh", "vi", "man", "git-status"];

/// A repository full of canaries, with a linked worktree, staged and dirty files.
struct Cage {
    bus: Bus,
    letter: String,
    /// A message that nobody misses.
    note: String,
}

impl Cage {
    fn new() -> Self {
        let bus = Bus::with(&["BlueLake", "RedForest", "GreenHill"]);
        let attributes = "* filter=canary diff=canary merge=canary\n";
        std::fs::write(bus.repo().join(".gitattributes"), attributes).unwrap();
        bus.track(&["src/a.rs", "src/b.rs", "docs/c.md"]);
        // A line with a history, so that following it compares files.
        std::fs::write(bus.repo().join("src/a.rs"), "line\nand another\n").unwrap();
        bus.git(&["commit", "-q", "-a", "-m", "another line"]);
        bus.git(&["worktree", "add", "-q", bus.path("linked").to_str().unwrap()]);
        std::fs::write(bus.repo().join("src/staged.rs"), "staged\n").unwrap();
        bus.git(&["add", "src/staged.rs"]);
        for tree in [bus.repo(), bus.path("linked")] {
            std::fs::write(tree.join(".gitattributes"), attributes).unwrap();
            std::fs::write(tree.join("src/a.rs"), "dirty\n").unwrap();
            std::fs::write(tree.join(".gitmodules"), "[submodule \"canary\"]\n\tpath = sub\n\turl = ext::canary\n")
                .unwrap();
        }
        let letter = bus.send("RedForest", "BlueLake", "bd-1", "Login").to_string();
        let note = bus.send("RedForest", "BlueLake", "bd-2", "Note").to_string();
        let cage = Cage { bus, letter, note };
        cage.set_canaries();
        cage
    }

    fn set_canaries(&self) {
        for folder in ["bin", "fired", "hooks", "path"] {
            std::fs::create_dir(self.bus.path(folder)).unwrap();
        }
        let git = self.bus.repo().join(".git");
        let included = self.bus.path("included");
        std::fs::write(&included, self.config("included")).unwrap();
        let own = |place: &str| {
            let include = included.display();
            format!(
                "{}[include]\n\tpath = {include}\n[includeIf \"gitdir:/\"]\n\tpath = {include}\n",
                self.config(place)
            )
        };
        let base = std::fs::read_to_string(git.join("config")).unwrap();
        std::fs::write(git.join("config"), format!("{base}[extensions]\n\tworktreeConfig = true\n{}", own("local")))
            .unwrap();
        std::fs::write(git.join("config.worktree"), own("worktree")).unwrap();
        std::fs::write(git.join("worktrees/linked/config.worktree"), own("linked")).unwrap();
        for place in ["system", "global", ".gitconfig"] {
            std::fs::write(self.bus.path(place), own(place.trim_start_matches('.'))).unwrap();
        }
        for hook in HOOKS {
            self.script(&git.join("hooks").join(hook), &format!("hook-{hook}"));
            self.script(&self.bus.path("hooks").join(hook), &format!("hooksPath-{hook}"));
        }
        for program in PROGRAMS {
            self.script(&self.bus.path("path").join(program), &format!("path-{program}"));
        }
        for variable in VARIABLES {
            self.script(&self.bus.path("bin").join(variable), variable);
        }
    }

    /// A program that leaves a trace of having run.
    fn script(&self, path: &Path, name: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let fired = self.bus.path("fired").join(name.replace('/', "-"));
        std::fs::write(path, format!("#!/bin/sh\n: > '{}'\nexit 1\n", fired.display())).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A configuration file with a canary of its own in every key.
    fn config(&self, place: &str) -> String {
        let hooks = self.bus.path("hooks");
        let mut text = format!(
            "[core]\n\thooksPath = {}\n[init]\n\ttemplateDir = {}\n",
            hooks.display(),
            self.bus.path("").display()
        );
        text.push_str(
            "[protocol \"ext\"]\n\tallow = always\n[commit]\n\tgpgSign = true\n[log]\n\tshowSignature = true\n",
        );
        text.push_str("[hook \"canary\"]\n\tevent = pre-commit\n[core]\n\tuntrackedCache = true\n");
        for key in KEYS {
            let (section, rest) = key.split_once('.').unwrap();
            let program = self.bus.path("bin").join(format!("{place}-{}", key.replace([':', '/'], "_")));
            self.script(&program, &format!("{place}-{key}"));
            let header = match rest.rsplit_once('.') {
                Some((middle, name)) => format!("[{section} \"{middle}\"]\n\t{name}"),
                None => format!("[{section}]\n\t{rest}"),
            };
            let bang = if key.starts_with("alias.") || key.starts_with("submodule.") { "!" } else { "" };
            text.push_str(&format!("{header} = \"{bang}{}\"\n", program.display()));
        }
        text.push_str(&format!("[url \"ext::{}\"]\n\tinsteadOf = https://\n", self.bus.path("bin/GIT_SSH").display()));
        text
    }

    /// The surroundings in which everything that can be set points to a canary.
    fn surround(&self, command: &mut Command, folder: &Path) {
        command.current_dir(folder);
        for variable in VARIABLES {
            command.env(variable, self.bus.path("bin").join(variable));
        }
        command
            .env("PATH", format!("{}:{}", self.bus.path("path").display(), std::env::var("PATH").unwrap()))
            .env("GIT_CONFIG_GLOBAL", self.bus.path("global"))
            .env("GIT_CONFIG_SYSTEM", self.bus.path("system"))
            .env("GIT_EXEC_PATH", self.bus.path("path"))
            .env("GIT_TEMPLATE_DIR", self.bus.path(""))
            .env("GIT_CONFIG_COUNT", "1")
            .env("GIT_CONFIG_KEY_0", "core.fsmonitor")
            .env("GIT_CONFIG_VALUE_0", self.bus.path("bin").join("GIT_SSH"))
            // A repository that is none: whoever believes it finds another project, or nothing.
            .env("GIT_DIR", self.bus.path("bin"))
            .env("GIT_COMMON_DIR", self.bus.path("bin"))
            .env("GIT_WORK_TREE", self.bus.path("bin"))
            .env("GIT_INDEX_FILE", self.bus.path("bin/GIT_SSH"))
            .env("GIT_TRACE", self.bus.path("fired/GIT_TRACE"))
            .env("GIT_TRACE2_EVENT", self.bus.path("fired/GIT_TRACE2_EVENT"));
    }

    fn fired(&self) -> BTreeSet<String> {
        let names = std::fs::read_dir(self.bus.path("fired")).unwrap();
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// The program that this call started, by its name; git only where it was told to use a repository of relay's own.
    fn program<'a>(&self, call: &'a str) -> Option<&'a str> {
        let mut words = call.split('"').skip(1).step_by(2);
        let name = words.next()?.rsplit('/').next()?;
        let own = self.bus.home();
        let on_its_own = words.nth(2).is_some_and(|folder| Path::new(folder).starts_with(own));
        match name {
            // git's own helpers stand where git said they are.
            "git" if call.contains("\"--git-dir\"") => Some(if on_its_own { name } else { call }),
            "git" if call.contains("/git-core/") => None,
            _ => (!call.contains(" = -1 ENOENT")).then_some(name),
        }
    }

    /// One command: it succeeds, executes at most these programs beside itself, and wakes no canary.
    fn check(&self, folder: &Path, agent: &str, args: &[&str], programs: &[&str]) {
        let man = self.bus.path("man");
        let args: Vec<String> = args
            .iter()
            .map(|word| word.replace("LETTER", &self.letter).replace("NOTE", &self.note))
            .map(|word| word.replace("MAN_PAGES", man.to_str().unwrap()))
            .map(|word| word.replace("BACKUP", self.bus.path("backup.db").to_str().unwrap()))
            .map(|word| word.replace("EXPORT", self.bus.path("export.md").to_str().unwrap()))
            .collect();
        let mut command = self.bus.args(agent, &args);
        self.surround(&mut command, folder);
        if programs.contains(&"git") {
            // Which git is the right one is for the user's PATH to say; only here it is not the canary.
            command.env("PATH", std::env::var("PATH").unwrap());
        }
        let traced = trace(&self.bus, &command, Some("trace=execve,execveat"));
        let mut ran = traced.calls.iter().skip(1).filter_map(|call| self.program(call));
        assert!(ran.all(|program| programs.contains(&program)), "{args:?}: {:#?}", traced.calls);
        assert_eq!(self.fired(), BTreeSet::new(), "{args:?} in {}", folder.display());
        assert_eq!(
            traced.run.status,
            0,
            "{args:?} in {}: {} {}",
            folder.display(),
            traced.run.stdout,
            traced.run.stderr
        );
    }
}

/// The commands that run git on the archive before they answer.
const RUN_GIT: [&str; 4] = ["drain", "redact", "archive", "doctor"];

/// Every command with arguments that lead it through, in an order in which all succeed.
const COMMANDS: [(&str, &[&str]); 70] = [
    ("BlueLake", &["start", "--path", "docs/**", "--task", "canaries"]),
    ("BlueLake", &["prepare", "--thread", "bd-1"]),
    ("BlueLake", &["reserve", "src/**", "--reason", "bd-1"]),
    ("BlueLake", &["reserve", "**"]),
    ("RedForest", &["reserve", "src/a.rs"]),
    ("BlueLake", &["reserve", "res:database", "--if-free"]),
    ("BlueLake", &["poll", "--bodies"]),
    ("BlueLake", &["poll", "--wait", "1ms"]),
    ("BlueLake", &["ack", "LETTER"]),
    ("BlueLake", &["read", "LETTER"]),
    ("BlueLake", &["link", "--target", "RedForest"]),
    ("BlueLake", &["link", "--list"]),
    ("BlueLake", &["send", "--to", "RedForest", "--thread", "bd-1", "--subject", "Login", "--body", "text"]),
    ("BlueLake", &["send", "--to", "@all", "--thread", "bd-1", "--body", "text"]),
    ("BlueLake", &["look", "message", "LETTER"]),
    ("BlueLake", &["look", "thread", "bd-1"]),
    ("BlueLake", &["look", "agents"]),
    ("BlueLake", &["look", "reservations", "src/a.rs"]),
    ("BlueLake", &["look", "contacts"]),
    ("BlueLake", &["look", "outbox"]),
    ("BlueLake", &["look", "events"]),
    ("BlueLake", &["look", "search", "Login"]),
    ("BlueLake", &["look", "status"]),
    ("BlueLake", &["look", "debt"]),
    ("BlueLake", &["look", "playbook", "STORE_BUSY"]),
    ("BlueLake", &["recover", "CONTACT_REQUIRED", "--dry-run"]),
    ("", &["doctor"]),
    ("", &["doctor", "--agents"]),
    ("BlueLake", &["thread", "bd-1"]),
    ("BlueLake", &["message", "LETTER"]),
    ("BlueLake", &["agents"]),
    ("BlueLake", &["reservations", "src/a.rs"]),
    ("BlueLake", &["search", "Login"]),
    ("BlueLake", &["status"]),
    ("BlueLake", &["check"]),
    ("RedForest", &["check", "src", "docs/c.md"]),
    ("BlueLake", &["log"]),
    ("BlueLake", &["log", "--line", "src/a.rs:1"]),
    ("BlueLake", &["renew", "--ttl", "2h"]),
    ("BlueLake", &["release", "src/**", "--keep", "src/a.rs"]),
    ("BlueLake", &["release", "--all"]),
    ("BlueLake", &["register"]),
    ("BlueLake", &["whois", "RedForest"]),
    ("BlueLake", &["policy", "auto"]),
    ("BlueLake", &["suspend", "GreenHill"]),
    ("BlueLake", &["suspend", "GreenHill", "--lift"]),
    ("GreenHill", &["retire"]),
    ("GreenHill", &["start"]),
    ("BlueLake", &["leave", "bd-1"]),
    ("", &["health"]),
    ("", &["drain", "--wait"]),
    ("RedForest", &["redact", "NOTE"]),
    ("", &["backup", "BACKUP", "--force"]),
    ("BlueLake", &["export", "--output", "EXPORT", "--force"]),
    ("", &["verify"]),
    ("", &["rebuild", "archive"]),
    ("", &["rebuild", "store", "--from-archive"]),
    ("", &["rebuild", "store", "--from-backup", "BACKUP"]),
    ("", &["guard", "status"]),
    ("RedForest", &["guard", "pre-commit"]),
    ("RedForest", &["guard", "pre-push"]),
    ("", &["init", "--only", "claude,codex,gemini,cursor,opencode,copilot,vscode"]),
    ("", &["init", "--remove"]),
    ("", &["project", "list"]),
    ("", &["token", "human"]),
    ("", &["mcp"]),
    ("human", &["poll"]),
    ("", &["completions", "bash"]),
    ("", &["completions", "man", "--dir", "MAN_PAGES"]),
    ("", &["--version"]),
];

/// The commands that `relay --help` lists.
fn listed() -> BTreeSet<String> {
    let help = Command::new(RELAY).arg("--help").output().unwrap();
    let text = String::from_utf8(help.stdout).unwrap();
    let commands = text.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let first_words = commands.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    first_words.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
}

#[test]
fn every_command_is_put_to_the_test() {
    let mut tried: BTreeSet<String> = COMMANDS.iter().map(|(_, args)| args[0].to_owned()).collect();
    tried.remove("--version");
    // The demo runs git on a repository of its own; `help` is not relay's; a server and hooks have tests of their own; a live
    // screen looks as `status` does.
    tried.extend(["demo", "help", "hook", "serve", "watch"].map(str::to_owned));
    assert_eq!(tried, listed());
}

#[test]
fn a_server_wakes_none_of_them() {
    let cage = Cage::new();
    let mut command = cage.bus.args("", ["serve", "--listen", "127.0.0.1:0"]);
    cage.surround(&mut command, &cage.bus.repo());
    let server = Server::run(&cage.bus, command);
    for (tool, arguments) in [
        ("start", json!({"path": ["src/**"]})),
        ("prepare", json!({"thread": "bd-1"})),
        ("reserve", json!({"patterns": ["**"]})),
        ("look", json!({"what": ["reservations", "src/a.rs"]})),
        ("look", json!({"what": ["status"]})),
        ("poll", json!({"bodies": true})),
        ("release", json!({"all": true})),
    ] {
        server.does("BlueLake", tool, arguments);
    }
    assert_eq!(server.stop(), 0);
    assert_eq!(cage.fired(), BTreeSet::new());
}

#[test]
fn a_hook_wakes_none_of_them() {
    let cage = Cage::new();
    for folder in [cage.bus.repo(), cage.bus.path("linked")] {
        let agent = Agent { cwd: folder.clone(), ..Agent::claude(&cage.bus, "one") };
        let tells = |event: &str, own: Value| {
            let mut command = agent.command(&[]);
            cage.surround(&mut command, &folder);
            agent.tells_with(command, event, &own);
        };
        let bash = |id: &str| json!({"tool_name": "Bash", "tool_use_id": id, "tool_input": {"command": "git stash"}});
        let edit =
            json!({"tool_name": "Edit", "tool_use_id": "2", "tool_input": {"file_path": folder.join("src/a.rs")}});
        tells("SessionStart", json!({"source": "startup"}));
        tells("PreToolUse", bash("1"));
        std::fs::write(folder.join("src/a.rs"), "changed\n").unwrap();
        tells("PostToolUse", bash("1"));
        tells("PreToolUse", edit.clone());
        tells("PostToolUse", edit);
        tells("Stop", json!({"stop_hook_active": false}));
        tells("SessionEnd", json!({"reason": "other"}));
    }
    assert_eq!(cage.fired(), BTreeSet::new());
    assert!(!cage.bus.home().join("hooks/trace.jsonl").exists(), "and none of them failed");
}

#[test]
fn the_canaries_sing_when_git_itself_runs() {
    let cage = Cage::new();
    let git = |args: &[&str]| {
        let mut command = Command::new("git");
        cage.bus.environment(&mut command);
        command.args(["-c", "user.name=Test", "-c", "user.email=test@example.invalid"]).args(args);
        // They fail, as canaries do: what counts is that they ran.
        command.output().unwrap();
    };
    git(&["status"]);
    git(&["diff"]);
    // A filter that does not answer stops git; without it git comes further.
    let further = ["-c", "filter.canary.process="];
    git(&[&further[..], &["diff"]].concat());
    git(&[&further[..], &["diff", "--no-ext-diff"]].concat());
    git(&[&further[..], &["add", "src/a.rs"]].concat());
    git(&[&further[..], &["-c", "core.hooksPath=/dev/null", "commit", "-m", "canary"]].concat());
    git(&[&further[..], &["commit", "-m", "canary"]].concat());
    let fired = cage.fired();
    let expected = ["core.fsmonitor", "filter.canary.process", "diff.canary.command", "diff.canary.textconv"];
    for canary in expected.into_iter().chain(["gpg.openpgp.program", "hooksPath-pre-commit"]) {
        assert!(fired.iter().any(|name| name.ends_with(canary)), "{canary} is no canary: {fired:?}");
    }
}

#[test]
fn no_relay_command_runs_what_a_repository_configures() {
    let cage = Cage::new();
    let folders: [PathBuf; 3] = [cage.bus.repo(), cage.bus.repo().join("src"), cage.bus.path("linked/src")];
    for folder in &folders {
        for (agent, args) in COMMANDS {
            let runs_git = RUN_GIT.iter().any(|word| args.contains(word));
            cage.check(folder, agent, args, if runs_git { &["git"] } else { &[] });
        }
        cage.check(folder, "BlueLake", &["reserve", "src/a.rs", "--", "/bin/true"], &["true"]);
    }
}

#[test]
fn a_linked_worktree_and_lying_variables_mean_the_same_project() {
    let cage = Cage::new();
    for folder in [cage.bus.repo(), cage.bus.repo().join("src"), cage.bus.path("linked"), cage.bus.path("linked/src")] {
        let mut command = cage.bus.args("BlueLake", ["start"]);
        cage.surround(&mut command, &folder);
        let key = crate::bus::run(command).success().result()["project"]["key"].clone();
        assert_eq!(key, cage.bus.key(), "from {}", folder.display());
    }
}
