//! A bus of its own for every test: temporary home and repository, a clock that the test holds, hermetic git.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// The instant at which every test begins.
pub const EPOCH: i64 = 1_794_700_800_000;

pub const RELAY: &str = env!("CARGO_BIN_EXE_relay");

pub struct Bus {
    root: TempDir,
}

/// The arguments of a message with the usual flags.
pub fn letter(to: &str) -> [&str; 9] {
    ["send", "--to", to, "--thread", "bd-1", "--subject", "Login", "--body", "text"]
}

pub fn minutes(count: i64) -> i64 {
    count * 60_000
}

pub fn hours(count: i64) -> i64 {
    minutes(count * 60)
}

pub fn days(count: i64) -> i64 {
    hours(count * 24)
}

impl Bus {
    /// A project in a fresh git repository, and nobody in it.
    pub fn new() -> Self {
        Bus::in_folder(tempfile::tempdir().unwrap())
    }

    /// The same beside the build: sandboxes have a `/tmp` and a `/dev` of their own.
    pub fn beside_the_build() -> Self {
        Bus::in_folder(tempfile::tempdir_in(Path::new(RELAY).parent().unwrap()).unwrap())
    }

    fn in_folder(root: TempDir) -> Self {
        let bus = Bus { root };
        std::fs::create_dir(bus.path("repo")).unwrap();
        bus.set_clock(EPOCH);
        bus.git(&["init", "-q", "-b", "main"]);
        bus
    }

    /// The same with these agents started.
    pub fn with(agents: &[&str]) -> Self {
        let bus = Bus::new();
        for agent in agents {
            bus.relay(agent, ["start"]).success();
        }
        bus
    }

    /// BlueLake and RedForest with a message between them, and all of it in the archive.
    pub fn drained() -> Self {
        let bus = Bus::with(&["BlueLake", "RedForest"]);
        bus.send("BlueLake", "RedForest", "bd-1", "Login");
        bus.relay("", ["drain", "--wait"]).success();
        bus
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub fn repo(&self) -> PathBuf {
        self.path("repo")
    }

    pub fn home(&self) -> PathBuf {
        self.path("home")
    }

    /// The project key of the repository, as relay prints it.
    pub fn key(&self) -> String {
        std::fs::canonicalize(self.repo()).unwrap().to_str().unwrap().to_owned()
    }

    /// The folder of the repository's store.
    pub fn store(&self) -> PathBuf {
        let listed = self.relay("", ["project", "list"]).success().result();
        let key = self.key();
        let project = listed["projects"].as_array().unwrap().iter().find(|project| project["key"] == key).unwrap();
        PathBuf::from(project["store"].as_str().unwrap())
    }

    pub fn set_clock(&self, millis: i64) {
        std::fs::write(self.path("clock.new"), millis.to_string()).unwrap();
        std::fs::rename(self.path("clock.new"), self.path("clock")).unwrap();
    }

    pub fn now(&self) -> i64 {
        std::fs::read_to_string(self.path("clock")).unwrap().parse().unwrap()
    }

    pub fn advance(&self, millis: i64) {
        self.set_clock(self.now() + millis);
    }

    /// The binary in this environment: nothing of the machine's own reaches it.
    pub fn command(&self) -> Command {
        let mut command = Command::new(RELAY);
        self.environment(&mut command);
        command
    }

    pub fn environment(&self, command: &mut Command) {
        command
            .env_clear()
            .env("PATH", std::env::var("PATH").unwrap())
            .env("HOME", self.root.path())
            .env("RELAY_HOME", self.home())
            .env("RELAY_TEST_CLOCK", self.path("clock"))
            // What a hook sees does not depend on how busy the machine is.
            .env("RELAY_TEST_PATIENCE", "60000")
            // Hundreds of tests do not each leave a process behind; those about the archive drain, or take this away.
            .env("RELAY_DRAIN", "later")
            .current_dir(self.repo())
            .stdin(Stdio::null());
    }

    /// Arguments as an agent would type them; `""` for a call without an agent. Answers in JSON.
    pub fn args<I, S>(&self, agent: &str, args: I) -> Command
    where
        I: IntoIterator<Item = S>,
        S: AsRef<std::ffi::OsStr>,
    {
        let mut command = self.command();
        command.arg("--json");
        if !agent.is_empty() {
            command.args(["--agent", agent]);
        }
        command.args(args);
        command
    }

    /// Runs a command as an agent.
    pub fn relay<I, S>(&self, agent: &str, args: I) -> Run
    where
        I: IntoIterator<Item = S>,
        S: AsRef<std::ffi::OsStr>,
    {
        run(self.args(agent, args))
    }

    /// The same without `--json`: what a person sees.
    pub fn text<I, S>(&self, agent: &str, args: I) -> Run
    where
        I: IntoIterator<Item = S>,
        S: AsRef<std::ffi::OsStr>,
    {
        let mut command = self.command();
        if !agent.is_empty() {
            command.args(["--agent", agent]);
        }
        command.args(args);
        run(command)
    }

    /// Sends a message with the usual flags and returns its number.
    pub fn send(&self, from: &str, to: &str, thread: &str, subject: &str) -> u64 {
        let args = ["send", "--to", to, "--thread", thread, "--subject", subject, "--body", "text"];
        self.relay(from, args).success().result()["message"]["id"].as_u64().unwrap()
    }

    pub fn git(&self, args: &[&str]) -> Output {
        self.git_in(&self.repo(), args)
    }

    pub fn git_in(&self, folder: &Path, args: &[&str]) -> Output {
        let mut command = Command::new("git");
        self.environment(&mut command);
        let output = command
            .current_dir(folder)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            // A commit is made when the test's clock says so.
            .env("GIT_COMMITTER_DATE", format!("@{} +0000", self.now() / 1_000))
            .args(["-c", "user.name=Test", "-c", "user.email=test@example.invalid"])
            .args(args)
            .output()
            .unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        output
    }

    /// Tracks these files, each with a line in it.
    pub fn track(&self, files: &[&str]) {
        for file in files {
            let path = self.repo().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "line\n").unwrap();
        }
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", "files"]);
    }

    /// Every store of this bus is whole, and so is its archive.
    pub fn check_whole(&self) {
        let Ok(projects) = std::fs::read_dir(self.home()) else { return };
        for project in projects.map(|entry| entry.unwrap().path()).filter(|path| path.join("relay.db").exists()) {
            let findings = findings(&project);
            assert!(findings.is_empty(), "{}: {findings:#?}", project.display());
        }
    }

    /// For a test that damages its store on purpose: nothing is compared at the end.
    pub fn forget(self) {
        let root = self.root.path().to_owned();
        std::mem::forget(self);
        let _ = std::fs::remove_dir_all(root);
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        // Every test that writes also tests that the projections are nothing but the history.
        if !std::thread::panicking() {
            self.check_whole();
        }
    }
}

/// What `relay verify` finds in the store of a folder.
pub fn findings(folder: &Path) -> Vec<relay_store::verify::Finding> {
    match relay_store::verify::verify(folder, |_, _, _| {}) {
        Ok(report) => report.findings.told().cloned().collect(),
        Err(refusal) => panic!("{} cannot be verified: {refusal}", folder.display()),
    }
}

/// What one command came to.
#[derive(Debug, Clone)]
pub struct Run {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
    line: String,
}

pub fn run(mut command: Command) -> Run {
    let line = format!("{command:?}");
    let output = command.output().unwrap();
    Run::new(line, &output)
}

impl Run {
    pub fn new(line: String, output: &Output) -> Self {
        Run {
            status: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            line,
        }
    }

    #[track_caller]
    pub fn success(self) -> Self {
        assert_eq!(self.status, 0, "{}\n{}\n{}", self.line, self.stdout, self.stderr);
        self
    }

    /// Failed with this class and its exit status.
    #[track_caller]
    pub fn fails(self, code: &str) -> Self {
        let json = self.json();
        assert_eq!(json["error"]["code"], code, "{}\n{}\n{}", self.line, self.stdout, self.stderr);
        let expected = relay_core::error::Code::parse(code).unwrap().kind().exit_status();
        assert_eq!(self.status, i32::from(expected), "{}", self.line);
        self
    }

    /// Exactly one line of JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        assert_eq!(
            self.stdout.matches('\n').count(),
            1,
            "{}\nstdout: {}\nstderr: {}",
            self.line,
            self.stdout,
            self.stderr
        );
        serde_json::from_str(&self.stdout).unwrap_or_else(|fault| panic!("{}: {fault}: {}", self.line, self.stdout))
    }

    #[track_caller]
    pub fn result(&self) -> Value {
        self.json()["result"].clone()
    }

    #[track_caller]
    pub fn error(&self) -> Value {
        self.json()["error"].clone()
    }

    /// The codes of the signals.
    #[track_caller]
    pub fn signals(&self) -> Vec<String> {
        self.json()["signals"]
            .as_array()
            .unwrap()
            .iter()
            .map(|signal| signal["code"].as_str().unwrap().to_owned())
            .collect()
    }
}
