//! Every write, sync, rename, link and truncate that a command asks of the kernel, failing one at a time.
//!
//! strace counts the calls of a clean run and then makes one of them fail in each of the runs that follow: the process is
//! killed there, or the call answers EIO, or ENOSPC. It reaches inside SQLite, and inside git through a `git` of the test's own
//! that runs the real one under strace. After each fault: what was acknowledged is there once, an error other than
//! `STORE_IO` means that nothing happened, the same key settles the rest, and one drain makes the archive whole.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use super::oracle::{Archive, Done, assert_nowhere, assert_whole, events_of};
use crate::bus::{Bus, Run, run};
use crate::effort::{summary, times};

/// The calls that change what a disk holds, or make it last.
const CALLS: &str = "write,writev,pwrite64,pwritev,pwritev2,fsync,fdatasync,sync_file_range,msync,rename,renameat,renameat2,\
    link,linkat,symlink,symlinkat,unlink,unlinkat,rmdir,ftruncate,truncate,fallocate,mkdir,mkdirat,copy_file_range,\
    sendfile,openat";

/// What a call comes to.
const FAULTS: [&str; 3] = ["signal=KILL", "error=EIO", "error=ENOSPC"];

/// Whose calls they are: relay's own, or those of one command of git.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    Relay,
    Git(String),
}

/// One call of a clean run.
#[derive(Clone, Debug)]
pub(super) struct Site {
    pub whose: Whose,
    name: String,
    /// How many calls of this name the same thread had made when this one was done; 1 for the first.
    nth: usize,
    /// Where the count alone would also mean another thread's call, or another one each time: the file, and the count of
    /// calls on it.
    only: Option<(PathBuf, usize)>,
    /// The file, where it is one of relay's.
    file: Option<PathBuf>,
    pub line: String,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, call {} of {}: {}", self.whose, self.nth, self.name, self.line)
    }
}

/// A command in a store of its own that is the same each time.
pub(super) struct Scene {
    pub bus: Bus,
    agent: &'static str,
    pub args: Vec<String>,
    /// The body or the pattern that it is about.
    what: &'static str,
    pub acknowledged: Vec<Done>,
    /// What is nowhere any more when all is done.
    pub erased: &'static [&'static str],
}

pub(super) const KEY: &str = "the-one-under-test";

impl Scene {
    pub fn new(agent: &'static str, what: &'static str, prepare: impl FnOnce(&mut Scene), args: &[&str]) -> Self {
        let bus = Bus::with(&["BlueLake", "RedForest"]);
        let args = args.iter().map(|&arg| arg.to_owned()).collect();
        let mut scene = Scene { bus, agent, args, what, acknowledged: Vec::new(), erased: &[] };
        for (key, body) in [("K1", "first"), ("K2", "second")] {
            scene.sends(key, body);
        }
        prepare(&mut scene);
        scene
    }

    fn sends(&mut self, key: &str, body: &str) {
        let args = ["send", "--to", "RedForest", "--thread", "bd-1", "--subject", "Login", "--body", body];
        let answer = self.bus.relay("BlueLake", [&args[..], &["--ack-required", "--idempotency-key", key]].concat());
        self.acknowledged.push(Done::new("BlueLake", key, body, &answer.success().json()));
    }

    /// Another home that holds the same.
    fn home(&self, name: &str) -> PathBuf {
        let home = self.bus.path(name);
        let copied = Command::new("cp").arg("-a").arg(self.bus.home()).arg(&home).status().unwrap();
        assert!(copied.success());
        home
    }

    fn relay(&self, home: &Path) -> Command {
        let mut command = self.bus.args(self.agent, &self.args);
        command.env("RELAY_HOME", home);
        command
    }

    fn drain(&self, home: &Path) -> Run {
        let mut command = self.bus.args("", ["drain", "--wait"]);
        command.env("RELAY_HOME", home);
        run(command)
    }

    fn is_drain(&self) -> bool {
        self.args[0] == "drain"
    }

    fn runs_git(&self) -> bool {
        self.is_drain() || self.args[0] == "redact"
    }

    /// Every call of a clean run.
    fn sites(&self) -> Vec<Site> {
        let home = self.home("clean");
        let traces = self.traced(&home, &Whose::Relay, &["-y", "-e", &format!("trace={CALLS}")]);
        assert!(traces.output.status.success(), "{:?}", traces.output);
        let mut sites = Vec::new();
        let mut of_git = Vec::new();
        for whose in [Whose::Relay].into_iter().chain(traces.commands.iter().cloned().map(Whose::Git)) {
            // Each command of git is traced in a run of its own, as it will be when its calls fail.
            let home = self.home(&format!("clean-{whose:?}").replace(['(', ')', '"'], ""));
            let traces = self.traced(&home, &whose, &["-y", "-e", &format!("trace={CALLS}")]);
            let found = calls(&whose, &traces.text, &home);
            assert!(!found.is_empty(), "strace saw nothing of {whose:?}; can it run here? {:?}", traces.output);
            if whose == Whose::Relay { sites.extend(found) } else { of_git.extend(found) }
        }
        sites.extend(of_git);
        sites
    }

    /// Runs the command in a home, with strace on one of its processes.
    fn traced(&self, home: &Path, whose: &Whose, options: &[&str]) -> Traces {
        let out = home.join("trace");
        let commands = home.join("commands");
        let bin = home.join("bin");
        let strace = |more: &[&str]| {
            let out = out.to_str().unwrap();
            [&["strace", "-f", "-qq", "-A", "-o", out], more, options, &["--"]].concat().join("' '")
        };
        std::fs::create_dir(&bin).unwrap();
        let traced = match whose {
            Whose::Git(command) => format!("{command}) exec '{}' \"$git\" \"$@\";;", strace(&[])),
            Whose::Relay => String::new(),
        };
        let path = std::env::var("PATH").unwrap();
        let script = format!(
            "#!/bin/sh\nPATH='{path}' git=$(PATH='{path}' command -v git) skip=\n\
             for word; do\n if [ $skip ]; then skip=; continue; fi\n\
             case $word in --git-dir|-c) skip=yes;; *) break;; esac\ndone\n\
             echo $word >> '{}'\ncase $word in\n{traced}\n*) exec \"$git\" \"$@\";;\nesac\n",
            commands.display()
        );
        let git = bin.join("git");
        std::fs::write(&git, script).unwrap();
        std::fs::set_permissions(&git, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let relay = self.relay(home);
        let mut command = Command::new("sh");
        command.env_clear().envs(relay.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("PATH", format!("{}:{path}", bin.display())).current_dir(self.bus.repo());
        let before = match whose {
            Whose::Git(_) => String::new(),
            // relay's threads and not its children: those are traced one command at a time.
            Whose::Relay if self.runs_git() => format!("'{}' ", strace(&["-b", "execve"])),
            Whose::Relay => format!("'{}' ", strace(&[])),
        };
        command.args(["-c", &format!("exec {before}\"$0\" \"$@\"")]).arg(relay.get_program()).args(relay.get_args());
        let output = command.output().unwrap();
        let mut commands: Vec<String> =
            std::fs::read_to_string(&commands).unwrap_or_default().lines().map(str::to_owned).collect();
        commands.sort();
        commands.dedup();
        let text = String::from_utf8_lossy(&std::fs::read(&out).unwrap_or_default()).into_owned();
        Traces { output, commands, text }
    }

    /// Makes one call fail and looks at everything afterwards. False when the run never came to that call.
    fn fails(&self, home: &Path, site: &Site, fault: &str) -> bool {
        let (name, nth) = (&site.name, site.only.as_ref().map_or(site.nth, |(_, nth)| *nth));
        let inject = format!("inject={name}:{fault}:when={nth}");
        let trace = format!("trace={name}");
        let mut options = vec!["-e", &trace, "-e", &inject];
        let only = site.only.as_ref().map(|(path, _)| home.join(path).to_str().unwrap().to_owned());
        options.extend(only.iter().flat_map(|path| ["-P", path]));
        // Faster, where strace can: not with a signal, and not without a command's children.
        if fault != "signal=KILL" && !(self.runs_git() && site.whose == Whose::Relay) {
            options.push("--seccomp-bpf");
        }
        let traces = self.traced(home, &site.whose, &options);
        let reached = if fault == "signal=KILL" { "+++ killed by SIGKILL +++" } else { "(INJECTED)" };
        if !traces.text.contains(reached) {
            return false;
        }
        let after = format!("{fault} at {site}\n{:?}", traces.output);
        if self.is_drain() {
            self.drain_heals(home, &traces.output, &after);
        } else {
            self.settles(home, &traces.output, &after);
        }
        assert_nowhere(&store(home), self.erased, &after);
        true
    }

    /// The same request with the same key succeeds, once, with the answer that was given before if one was.
    fn settles(&self, home: &Path, output: &Output, after: &str) {
        let store = store(home);
        let mut acknowledged = self.acknowledged.clone();
        let first = answer(output, after);
        let done = |answer: &Value| Done::new(self.agent, KEY, self.what, answer);
        match first.as_ref().map(|answer| (answer, answer["error"]["code"].as_str())) {
            None => {}
            Some((answer, None)) => acknowledged.push(done(answer)),
            Some((_, Some("STORE_IO"))) => {}
            Some((answer, Some("STORE_FULL" | "STORE_BUSY" | "STORE_READONLY"))) => {
                assert_eq!(events_of(&store, KEY), 0, "an error, and yet it happened: {answer}\nafter {after}");
            }
            Some((answer, _)) => panic!("not the class for it: {answer}\nafter {after}"),
        }
        let again = run(self.relay(home));
        assert_eq!(again.status, 0, "the same request does not settle it: {again:?}\nafter {after}");
        if let Some(first) = first.filter(|answer| answer["ok"] == true) {
            let same = |answer: &Value| {
                let mut result = answer["result"].clone();
                // What is left to clean up is told as it is now.
                result.as_object_mut().and_then(|result| result.remove("pending"));
                result
            };
            assert_eq!(same(&again.json()), same(&first), "another answer to the same request\nafter {after}");
        }
        acknowledged.push(done(&again.json()));
        let drained = self.drain(home);
        assert_eq!(drained.status, 0, "the archive is stuck: {drained:?}\nafter {after}");
        assert_whole(&store, &acknowledged, Archive::Complete, after);
    }

    /// Nothing leads while it is broken, and the next drain makes it whole.
    fn drain_heals(&self, home: &Path, output: &Output, after: &str) {
        if let Some(answer) = answer(output, after) {
            let code = answer["error"]["code"].as_str().unwrap_or_default();
            let expected = ["", "STORE_IO", "STORE_FULL", "STORE_READONLY", "STORE_BUSY", "ARCHIVE_UNAVAILABLE"];
            assert!(expected.contains(&code), "not the class for it: {answer}\nafter {after}");
        }
        let store = store(home);
        assert_whole(&store, &self.acknowledged, Archive::MayLag, after);
        let drained = self.drain(home);
        assert_eq!(drained.status, 0, "the archive is stuck: {drained:?}\nafter {after}");
        assert_whole(&store, &self.acknowledged, Archive::Complete, after);
    }

    /// Each call of the command with each fault. Of many calls in a row that do the same to the same file, `scripts/test`
    /// takes the first, the last two and every eighth, and leaves out what another scene has; `scripts/long` takes all.
    pub fn run(self, name: &str, elsewhere: impl Fn(&Site) -> bool) -> Vec<Site> {
        let all = self.sites();
        let mut sites: Vec<&Site> = all.iter().collect();
        if times(1) == 1 {
            sites = thinned(&all);
            sites.retain(|site| !elsewhere(site));
        }
        let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
        let mut runs = 0;
        for (index, site) in sites.iter().enumerate() {
            *kinds.entry(&site.name).or_default() += 1;
            for fault in FAULTS {
                // Now and then a run takes another way, for a thread that came late: then it is tried again.
                let reached = (0..5).any(|attempt| {
                    let home = self.home(&format!("fault-{index}-{attempt}"));
                    let reached = self.fails(&home, site, fault);
                    std::fs::remove_dir_all(&home).unwrap();
                    reached
                });
                assert!(reached, "no run came to {site}");
                runs += 1;
            }
        }
        let kinds: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        summary(&format!(
            "{name}: {} of {} calls ({}), {runs} faults, 0 lost",
            sites.len(),
            all.len(),
            kinds.join(", ")
        ));
        all
    }
}

/// Calls without most of those that repeat the one before and the one after.
fn thinned(sites: &[Site]) -> Vec<&Site> {
    let same = |one: &Site, other: &Site| {
        // Packs are many files, and each is treated alike.
        let file = |site: &Site| site.file.clone().filter(|path| !path.to_string_lossy().contains("/objects/pack/"));
        one.whose == other.whose && one.name == other.name && file(one) == file(other)
    };
    let rows = sites.chunk_by(same);
    let kept = |(index, _): &(usize, &Site), length: usize| index % 8 == 0 || index + 2 >= length;
    rows.flat_map(|row| row.iter().enumerate().filter(|site| kept(site, row.len())).map(|(_, site)| site)).collect()
}

struct Traces {
    output: Output,
    /// The commands of git that were run.
    commands: Vec<String>,
    text: String,
}

fn store(home: &Path) -> PathBuf {
    let mut folders = std::fs::read_dir(home).unwrap().map(|entry| entry.unwrap().path());
    folders.find(|folder| folder.join("relay.db").exists()).unwrap()
}

/// The answer, when the command lived to give one.
fn answer(output: &Output, after: &str) -> Option<Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.strip_suffix('\n')?;
    Some(serde_json::from_str(line).unwrap_or_else(|fault| panic!("{fault}: {line}\nafter {after}")))
}

/// The calls in a trace that `-y` has put paths into.
fn calls(whose: &Whose, text: &str, home: &Path) -> Vec<Site> {
    let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut on_file: BTreeMap<(String, String, PathBuf), usize> = BTreeMap::new();
    let mut found = Vec::new();
    for line in text.lines() {
        let Some((thread, call)) = line.split_once(' ') else { continue };
        let call = call.trim_start();
        let Some((name, arguments)) =
            call.split_once('(').filter(|(name, _)| CALLS.split(',').any(|known| known == *name))
        else {
            continue;
        };
        let key = (thread.to_owned(), name.to_owned());
        let nth = counts.entry(key.clone()).and_modify(|count| *count += 1).or_insert(1);
        let path = path_in(arguments, home);
        let on_file = path.map(|path| {
            let nth = on_file.entry((key.0, key.1, path.clone())).and_modify(|count| *count += 1).or_insert(1);
            (path, *nth)
        });
        // Opening a file that is there changes nothing.
        if name == "openat" && !arguments.contains("O_CREAT") && !arguments.contains("O_TRUNC") {
            continue;
        }
        let line = call.replace(home.to_str().unwrap(), "~");
        let file = on_file.as_ref().map(|(path, _)| path.clone());
        let site = Site { whose: whose.clone(), name: name.to_owned(), nth: *nth, only: on_file, file, line };
        found.push((thread.to_owned(), site));
    }
    let is_shared = |thread: &str, site: &Site| {
        counts.iter().any(|((other, name), count)| other != thread && *name == site.name && *count >= site.nth)
    };
    // How many files git opens only to read them depends on which pack it looks into first. Its locks have their names.
    let varies = |site: &Site| site.name == "openat" && site.line.contains(".lock\"");
    let narrowed = found.into_iter().map(|(thread, site)| {
        let only = site.only.clone().filter(|_| is_shared(&thread, &site) || varies(&site));
        Site { only, ..site }
    });
    narrowed.collect()
}

/// The file below a home that a call is about.
fn path_in(arguments: &str, home: &Path) -> Option<PathBuf> {
    let from = &arguments[arguments.find(home.to_str()?)?..];
    let path = &from[..from.find(['"', '>'])?];
    Path::new(path).strip_prefix(home).ok().map(Path::to_owned)
}

/// A call on the store itself, whatever becomes of the archive.
pub(super) fn is_of_the_store(site: &Site) -> bool {
    site.whose == Whose::Relay && !site.line.contains("archive.")
}

#[test]
fn send_survives_a_fault_at_every_call() {
    let args = ["send", "--to", "RedForest", "--thread", "bd-1", "--subject", "Login", "--body", "under test"];
    let args = [&args[..], &["--idempotency-key", KEY]].concat();
    Scene::new("BlueLake", "under test", |_| {}, &args).run("send", |_| false);
}

#[test]
fn ack_survives_a_fault_at_every_call() {
    let first = Bus::with(&["BlueLake", "RedForest"]).send("BlueLake", "RedForest", "bd-1", "Login").to_string();
    Scene::new("RedForest", "", |_| {}, &["ack", &first, "--idempotency-key", KEY]).run("ack", |_| false);
}

#[test]
fn reserve_survives_a_fault_at_every_call() {
    let args = ["reserve", "src/a.rs", "--idempotency-key", KEY];
    Scene::new("BlueLake", "src/a.rs", |_| {}, &args).run("reserve", |_| false);
}

#[test]
fn the_first_drain_survives_a_fault_at_every_call() {
    Scene::new("", "", |_| {}, &["drain", "--wait"]).run("the first drain", is_of_the_store);
}

#[test]
fn a_later_drain_survives_a_fault_at_every_call() {
    let prepare = |scene: &mut Scene| {
        scene.bus.relay("", ["drain", "--wait"]).success();
        scene.sends("K3", "third");
    };
    Scene::new("", "", prepare, &["drain", "--wait"]).run("a later drain", |_| false);
}

#[test]
fn rolling_packs_up_survives_a_fault_at_every_call() {
    let prepare = |scene: &mut Scene| {
        for round in 0..50 {
            scene.sends(&format!("P{round}"), &format!("body {round}"));
            scene.bus.relay("", ["drain", "--wait"]).success();
        }
        scene.sends("K3", "third");
    };
    // The rest is as in every later drain.
    let is_of_packs =
        |site: &Site| site.file.as_ref().is_some_and(|file| file.to_string_lossy().contains("objects/pack"));
    let elsewhere = |site: &Site| {
        !is_of_packs(site) && !site.line.contains("pack-") && site.whose == Whose::Relay
            || matches!(&site.whose, Whose::Git(command) if command != "pack-objects")
    };
    let sites = Scene::new("", "", prepare, &["drain", "--wait"]).run("rolling packs up", elsewhere);
    let is_rolled_up = |site: &Site| site.whose == Whose::Git("pack-objects".into());
    assert!(sites.iter().any(is_rolled_up), "nothing was rolled up");
}
