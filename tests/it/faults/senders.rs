//! Agents that work as fast as they can, each command a process of its own, while somebody pulls the ground from under them.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::process::{Pid, PidfdFlags, Signal};
use serde_json::Value;

use super::oracle::{Done, Ledger};
use crate::bus::{Bus, run};

pub const SENDERS: usize = 8;

/// Numbers that nobody foresees.
pub struct Dice(u64);

impl Dice {
    pub fn new() -> Self {
        use std::hash::{BuildHasher, Hasher};
        Dice(std::hash::RandomState::new().build_hasher().finish() | 1)
    }

    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % sides
    }
}

/// A request that nobody knows the outcome of.
#[derive(Clone, Debug)]
struct Request {
    agent: String,
    key: String,
    what: String,
    args: Vec<String>,
}

/// How a command is run: as it is, or inside a namespace.
type Enter<'a> = &'a (dyn Fn(Command) -> Command + Sync);

pub struct Senders<'a> {
    bus: &'a Bus,
    enter: Enter<'a>,
    pub ledger: Ledger,
    stop: AtomicBool,
    dark: AtomicBool,
    next: AtomicUsize,
    unsettled: Mutex<Vec<Request>>,
    pub unanswered: AtomicUsize,
    /// Errors of another class than what happens to them explains.
    surprises: Mutex<Vec<String>>,
    expected: &'static [&'static str],
}

impl<'a> Senders<'a> {
    pub fn new(bus: &'a Bus, ledger: Ledger, enter: Enter<'a>, expected: &'static [&'static str]) -> Self {
        Senders {
            bus,
            enter,
            ledger,
            stop: AtomicBool::new(false),
            dark: AtomicBool::new(false),
            next: AtomicUsize::new(0),
            unsettled: Mutex::default(),
            unanswered: AtomicUsize::new(0),
            surprises: Mutex::default(),
            expected,
        }
    }

    /// Everybody registers, and takes mail from everybody.
    pub fn start(&self) {
        for number in 0..SENDERS {
            run(self.command(&format!("Agent{number}"), &["start".into()])).success();
            run(self.command(&format!("Agent{number}"), &["policy".into(), "open".into()])).success();
        }
    }

    pub fn command(&self, agent: &str, args: &[String]) -> Command {
        let mut command = self.bus.args(agent, ["--project".into(), self.bus.key()].iter().chain(args));
        // As outside of tests: whoever has answered leaves a drainer behind.
        command.env_remove("RELAY_DRAIN").stdout(Stdio::piped()).stderr(Stdio::null());
        (self.enter)(command)
    }

    /// All of them work until `meanwhile` returns.
    pub fn work_while(&self, meanwhile: impl FnOnce()) {
        self.stop.store(false, Ordering::SeqCst);
        self.dark.store(false, Ordering::SeqCst);
        std::thread::scope(|scope| {
            for number in 0..SENDERS {
                scope.spawn(move || self.work(number));
            }
            meanwhile();
            self.stop.store(true, Ordering::SeqCst);
        });
        let surprises = self.surprises.lock().unwrap();
        assert!(surprises.is_empty(), "{}", surprises.join("\n"));
    }

    fn work(&self, number: usize) {
        let mut dice = Dice::new();
        let mut sent = Vec::new();
        while !self.stop.load(Ordering::SeqCst) {
            let request = self.request(number, &mut dice, &sent);
            // Half of those who hear nothing ask again; the others leave it, and it may be there or not, but once.
            while !self.ask(&request, &mut sent) && dice.roll(2) == 0 && !self.stop.load(Ordering::SeqCst) {}
        }
    }

    fn request(&self, number: usize, dice: &mut Dice, sent: &[(u64, String)]) -> Request {
        let ordinal = self.next.fetch_add(1, Ordering::SeqCst);
        let key = format!("K{ordinal}");
        let words = |args: &[&str]| args.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        let (agent, what, mut args) = match (dice.roll(10), sent.last()) {
            (0, _) => {
                let pattern = format!("src/{ordinal}.rs");
                (format!("Agent{number}"), pattern.clone(), words(&["reserve", &pattern]))
            }
            (1 | 2, Some((id, recipient))) => (recipient.clone(), String::new(), words(&["ack", &id.to_string()])),
            _ => {
                let to = format!("Agent{}", (number + 1 + dice.roll(SENDERS - 1)) % SENDERS);
                let body = format!("body {ordinal} {}", "x".repeat(dice.roll(6000)));
                let args = words(&["send", "--to", &to, "--thread", "bd-1", "--subject", "Login", "--body", &body]);
                (format!("Agent{number}"), body, args)
            }
        };
        args.extend(["--idempotency-key".into(), key.clone()]);
        Request { agent, key, what, args }
    }

    /// From now on nobody hears an answer. When the power goes, everything goes at once; in the simulation processes live
    /// a moment longer, and a sync that was under way when the disk was shut down may claim success.
    pub fn darken(&self) {
        self.dark.store(true, Ordering::SeqCst);
    }

    /// Drains again and again until nobody hears an answer.
    pub fn drain_on(&self) {
        while !self.dark.load(Ordering::SeqCst) {
            let output = self.command("", &["drain".into(), "--wait".into()]).output().unwrap();
            if !output.status.success() && !self.dark.load(Ordering::SeqCst) {
                self.surprises.lock().unwrap().push(format!("drain: {}", String::from_utf8_lossy(&output.stdout)));
            }
        }
    }

    /// Whether an answer came. What was done is noted before anything else happens.
    fn ask(&self, request: &Request, sent: &mut Vec<(u64, String)>) -> bool {
        let output = self.command(&request.agent, &request.args).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let answer = text.strip_suffix('\n').filter(|_| !self.dark.load(Ordering::SeqCst));
        let Some(answer) = answer.and_then(|line| serde_json::from_str::<Value>(line).ok()) else {
            self.unanswered.fetch_add(1, Ordering::SeqCst);
            self.unsettled.lock().unwrap().push(request.clone());
            if output.status.signal() != Some(9) && output.status.code() != Some(137) && self.expected.is_empty() {
                self.surprises.lock().unwrap().push(format!("{request:?}: {output:?}"));
            }
            return false;
        };
        if answer["ok"] == true {
            let done = Done::new(&request.agent, &request.key, &request.what, &answer);
            self.ledger.note(&done);
            if done.verb == "send" {
                let recipient = answer["result"]["message"]["recipients"][0]["name"].as_str().unwrap();
                sent.push((done.id, recipient.to_owned()));
            } else if done.verb == "ack" {
                sent.pop();
            }
            return true;
        }
        let code = answer["error"]["code"].as_str().unwrap_or_default();
        if !self.expected.contains(&code) {
            self.surprises.lock().unwrap().push(format!("{request:?}: {answer}"));
        }
        self.unsettled.lock().unwrap().push(request.clone());
        code != "STORE_IO"
    }

    /// Asks once more, with the same keys, for all that nobody knows the outcome of. Now each succeeds.
    pub fn settle(&self) -> usize {
        let unsettled = std::mem::take(&mut *self.unsettled.lock().unwrap());
        let mut seen = BTreeSet::new();
        let once: Vec<Request> = unsettled.into_iter().filter(|request| seen.insert(request.key.clone())).collect();
        for request in &once {
            let answer = run(self.command(&request.agent, &request.args)).success().json();
            self.ledger.note(&Done::new(&request.agent, &request.key, &request.what, &answer));
        }
        once.len()
    }

    /// Waits until no process of this bus is left.
    pub fn quiet(&self) {
        while !self.processes().is_empty() {
            std::thread::yield_now();
        }
    }

    /// Kills all of them and waits until they are gone.
    pub fn kill_all(&self) {
        loop {
            let processes = self.processes();
            if processes.is_empty() {
                return;
            }
            for process in processes {
                process.kill();
            }
            std::thread::yield_now();
        }
    }

    /// Every process that works for this bus: commands, detached drainers, and their gits.
    pub fn processes(&self) -> Vec<Process> {
        let mark = self.bus.path("").to_str().unwrap().to_owned();
        let entries = std::fs::read_dir("/proc").unwrap().filter_map(|entry| Some(entry.ok()?.path()));
        entries.filter_map(|path| Process::at(path, &mark)).collect()
    }
}

pub struct Process {
    path: PathBuf,
    line: String,
    mark: String,
}

impl Process {
    fn at(path: PathBuf, mark: &str) -> Option<Process> {
        path.file_name()?.to_str()?.parse::<i32>().ok()?;
        let line = String::from_utf8_lossy(&std::fs::read(path.join("cmdline")).ok()?).replace('\0', " ");
        line.contains(mark).then(|| Process { path, line, mark: mark.to_owned() })
    }

    /// What kind of process it is.
    pub fn kind(&self) -> &'static str {
        if self.line.contains("--background") {
            "drainer"
        } else if self.line.contains("--git-dir") {
            "git"
        } else {
            "sender"
        }
    }

    /// False when it had ended already. Looked at again through a handle, since numbers are used again.
    pub fn kill(&self) -> bool {
        let number = self.path.file_name().unwrap().to_str().unwrap().parse().unwrap();
        let Ok(handle) = rustix::process::pidfd_open(Pid::from_raw(number).unwrap(), PidfdFlags::empty()) else {
            return false;
        };
        let is_same = Process::at(self.path.clone(), &self.mark).is_some();
        is_same && rustix::process::pidfd_send_signal(handle, Signal::KILL).is_ok()
    }
}
