//! The stage: a throwaway repository with a linked worktree, a home of its own, and the processes that play there.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use owo_colors::OwoColorize;
use relay_core::domain::limits::Limits;
use relay_core::domain::shell;
use relay_core::error::Code;
use relay_core::store::{Result, Store};
use relay_store::{Home, repository};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::reply::Reply;
use crate::output::Output;
use crate::{environment, process};

/// The folder of the clone that the play ends in.
const CLONE: &str = "history";
/// Who reads it there: it needs no relay.
const ANYBODY: &str = "anybody";

pub(super) struct Stage {
    /// Removed with everything in it when the stage is dropped, however the play ended.
    root: TempDir,
    output: Output,
    steps: Vec<Value>,
    interrupted: Arc<AtomicBool>,
}

/// A process that waits; it does not outlive the play.
pub(super) struct Waiting {
    child: Option<Child>,
    agent: String,
    run: Vec<String>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Stage {
    pub fn set(output: Output) -> Result<Self> {
        let root = tempfile::Builder::new().prefix("relay-demo-").tempdir();
        let root = root.map_err(|fault| Code::StoreIo.refuse(format!("no temporary folder can be made: {fault}")))?;
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
            let _ = signal_hook::flag::register(signal, Arc::clone(&interrupted));
        }
        let stage = Stage { root, output, steps: Vec::new(), interrupted };
        stage.build()?;
        Ok(stage)
    }

    /// The main worktree; what stands in it is tracked.
    pub fn main_worktree(&self) -> PathBuf {
        self.root.path().join("shop")
    }

    pub fn linked_worktree(&self) -> PathBuf {
        self.root.path().join("shop-login")
    }

    fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    /// Takes everything down and hands out what was played.
    pub fn strike(self) -> Result<Vec<Value>> {
        let folder = self.root.path().to_owned();
        let removed = self.root.close();
        removed.map_err(|fault| Code::StoreIo.refuse(format!("{} cannot be removed: {fault}", folder.display())))?;
        Ok(self.steps)
    }

    /// An empty line between what belongs together.
    pub fn pause(&self) {
        if !self.output.json {
            self.output.text("\n");
        }
    }

    pub fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    fn build(&self) -> Result<()> {
        let main = self.main_worktree();
        for file in ["src/auth/login.rs", "src/auth/session.rs", "docs/api.md"] {
            let path = main.join(file);
            let folder = path.parent().unwrap_or(&main);
            let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, "demo\n"));
            written.map_err(|fault| Code::StoreIo.refuse(format!("{}: {fault}", path.display())))?;
        }
        self.git(&["init", "--quiet"])?;
        self.git(&["add", "--all"])?;
        self.git(&["commit", "--quiet", "--message", "A shop"])?;
        let linked = self.linked_worktree();
        self.git(&["worktree", "add", "--quiet", "-b", "login", &linked.to_string_lossy()])
    }

    fn git(&self, arguments: &[&str]) -> Result<()> {
        self.git_in(&self.main_worktree(), arguments).map(|_| ())
    }

    /// git with an identity of its own, and nothing of the caller's: no configuration, no hooks, no variables.
    fn git_in(&self, folder: &Path, arguments: &[&str]) -> Result<String> {
        let mut command = process::new("git");
        command
            .env_clear()
            .envs(environment::search_path().map(|path| ("PATH", path)))
            .env("HOME", self.root.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "init.templateDir="])
            .args(["-c", "init.defaultBranch=main", "-c", "user.name=relay demo"])
            .args(["-c", "user.email=demo@relay.invalid"])
            .args(arguments)
            .current_dir(folder)
            .stdin(Stdio::null());
        let output = command.output().map_err(|fault| {
            Code::ArchiveUnavailable.refuse(format!("the demo needs git, and `git` cannot be run: {fault}"))
        })?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(Code::ArchiveUnavailable.refuse(format!("`git {}`: {}", arguments.join(" "), said.trim())))
    }

    /// A plain clone of the archive, as anybody would make one.
    pub fn clone_archive(&self, archive: &str) -> Result<()> {
        self.git_in(self.root.path(), &["clone", "--quiet", "--end-of-options", archive, CLONE]).map(|_| ())
    }

    /// What git says in the clone.
    pub fn run_git(&self, arguments: &[&str]) -> Result<Reply> {
        let output = self.git_in(&self.root.path().join(CLONE), arguments)?;
        let run = std::iter::once("git").chain(arguments.iter().copied()).map(str::to_owned).collect();
        let lines: Vec<&str> = output.lines().collect();
        Ok(Reply { agent: ANYBODY.to_owned(), run, status: 0, answer: json!({"output": lines}) })
    }

    /// This same binary in the temporary home. Nothing of the caller's environment reaches it.
    fn relay(&self, folder: &Path, arguments: &[String]) -> Result<Command> {
        let program = environment::own_program()
            .map_err(|fault| Code::Internal.refuse(format!("relay cannot find its own program: {fault}")))?;
        let mut command = process::new(program);
        command
            .env_clear()
            .envs(environment::search_path().map(|path| ("PATH", path)))
            .env("HOME", self.root.path())
            .env("RELAY_HOME", self.home())
            // The play drains when it has come to its end, so no process stays behind.
            .env("RELAY_DRAIN", "later")
            .arg("--json")
            .args(arguments)
            .current_dir(folder)
            .stdin(Stdio::null());
        #[cfg(feature = "test-doors")]
        command.envs(environment::test_break().map(|verb| ("RELAY_TEST_BREAK", verb)));
        Ok(command)
    }

    /// Runs one command to its end.
    pub fn run(&self, agent: &str, folder: &Path, arguments: &[&str]) -> Result<Reply> {
        let run = typed(arguments);
        let output = self.relay(folder, &named(agent, arguments))?.output().map_err(|fault| cannot_start(&fault))?;
        self.read(agent, run, &output)
    }

    /// Runs a command of an answer exactly as it was printed, from a folder that has nothing to do with the project.
    pub fn run_printed(&self, agent: &str, printed: Vec<String>) -> Result<Reply> {
        let output = self
            .relay(self.root.path(), printed.get(1..).unwrap_or_default())?
            .output()
            .map_err(|fault| cannot_start(&fault))?;
        self.read(agent, printed, &output)
    }

    fn read(&self, agent: &str, run: Vec<String>, output: &std::process::Output) -> Result<Reply> {
        if self.is_interrupted() {
            return Err(Code::Internal.refuse("the demo was interrupted"));
        }
        Reply::read(agent, run, output)
    }

    /// Tells a hook what a coding agent tells it, and reads the answer: what it says, and whether it stops the call.
    pub fn hook(&self, agent: &str, folder: &Path, event: &str, told: &Value) -> Result<Reply> {
        use std::io::Write;
        let mut command = self.relay(folder, &["hook".to_owned()])?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|fault| cannot_start(&fault))?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(told.to_string().as_bytes()).map_err(|fault| cannot_start(&fault))?;
        }
        let output = child.wait_with_output().map_err(|fault| cannot_start(&fault))?;
        if self.is_interrupted() {
            return Err(Code::Internal.refuse("the demo was interrupted"));
        }
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let answer = &answer["hookSpecificOutput"];
        let reason = answer["permissionDecisionReason"].as_str();
        let said = reason.or(answer["additionalContext"].as_str()).unwrap_or_default();
        let said: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let answer = json!({"event": event, "denied": answer["permissionDecision"] == "deny", "said": said});
        let run = ["relay", "hook"].map(str::to_owned).into();
        Ok(Reply { agent: agent.to_owned(), run, status: output.status.code().unwrap_or(-1), answer })
    }

    /// What the home says of how relay behaves.
    pub fn configure(&self, text: &str) -> Result<()> {
        let path = self.home().join("config.toml");
        std::fs::write(&path, text).map_err(|fault| Code::StoreIo.refuse(format!("{}: {fault}", path.display())))
    }

    pub fn read_file(&self, file: &str) -> Result<String> {
        let path = self.main_worktree().join(file);
        std::fs::read_to_string(&path).map_err(|fault| Code::StoreIo.refuse(format!("{}: {fault}", path.display())))
    }

    pub fn write_file(&self, file: &str, text: &str) -> Result<()> {
        let path = self.main_worktree().join(file);
        std::fs::write(&path, text).map_err(|fault| Code::StoreIo.refuse(format!("{}: {fault}", path.display())))
    }

    /// What a file holds, line by line.
    pub fn show_file(&self, agent: &str, file: &str) -> Result<Reply> {
        let text = self.read_file(file)?;
        let run = ["cat", file].map(str::to_owned).into();
        let lines: Vec<&str> = text.lines().collect();
        Ok(Reply { agent: agent.to_owned(), run, status: 0, answer: json!({"output": lines}) })
    }

    pub fn commit(&self, file: &str, message: &str) -> Result<()> {
        self.git(&["commit", "--quiet", "--message", message, "--", file])
    }

    /// Starts a command that waits, and returns when relay itself says that it does.
    pub fn start_waiting(&self, agent: &str, folder: &Path, arguments: &[&str]) -> Result<Waiting> {
        let mut command = self.relay(folder, &named(agent, arguments))?;
        let child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(|fault| cannot_start(&fault))?;
        let mut waiting = Waiting { child: Some(child), agent: agent.to_owned(), run: typed(arguments) };
        let project = repository::resolve(&self.main_worktree())?;
        let home = Home::new(self.home(), Limits::default(), 0);
        let Some(store) = home.open_existing(&project)? else {
            return Err(Code::Internal.refuse("the demo's store is not there"));
        };
        if let Some(child) = &mut waiting.child {
            let pid = child.id();
            process::until(child, || {
                self.is_interrupted() || store.presence().waits().iter().any(|wait| wait.pid == pid)
            })?;
        }
        Ok(waiting)
    }

    /// The answer of a process that waited until now.
    pub fn woken(&self, mut waiting: Waiting) -> Result<Reply> {
        let Some(child) = waiting.child.take() else {
            return Err(Code::Internal.refuse("the waiting process is gone"));
        };
        let output = child.wait_with_output().map_err(|fault| cannot_start(&fault))?;
        self.read(&waiting.agent, std::mem::take(&mut waiting.run), &output)
    }

    /// Narrates a step: who ran what, and what the answer says.
    pub fn tell(&mut self, reply: &Reply, lines: &[String]) {
        if !self.output.json {
            let mut text = format!("{:<9} {}\n", reply.agent.bold(), shell::line(&reply.run).cyan());
            for line in lines {
                text.push_str(&format!("          {line}\n"));
            }
            self.output.text(&text);
        }
        self.steps.push(json!({
            "agent": reply.agent,
            "run": reply.run,
            "exit_status": reply.status,
            "said": lines,
            "answer": reply.answer,
        }));
    }
}

fn typed(arguments: &[&str]) -> Vec<String> {
    std::iter::once("relay").chain(arguments.iter().copied()).map(str::to_owned).collect()
}

fn named(agent: &str, arguments: &[&str]) -> Vec<String> {
    ["--agent", agent].into_iter().chain(arguments.iter().copied()).map(str::to_owned).collect()
}

fn cannot_start(fault: &std::io::Error) -> relay_core::error::Refusal {
    Code::Internal.refuse(format!("a process of the demo cannot be run: {fault}"))
}
