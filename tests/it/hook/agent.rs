//! A coding agent without a model: it says what it is told to say, in the dialect of its program, and does what its hooks let it.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::bus::{Bus, Run};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Program {
    Claude,
    Codex,
}

/// One session of a coding agent.
pub struct Agent<'a> {
    pub bus: &'a Bus,
    pub program: Program,
    pub session: String,
    pub cwd: PathBuf,
    /// Its id and its kind, where it is a subagent.
    pub subagent: Option<(&'static str, &'static str)>,
    /// Where its hooks are run by a process that ends with them: then nothing of it lives.
    pub is_gone: bool,
    pub calls: std::cell::Cell<u32>,
}

/// What a hook said.
#[derive(Debug)]
pub struct Said {
    pub run: Run,
    pub json: Value,
}

impl Said {
    /// What the model reads.
    pub fn context(&self) -> &str {
        self.json["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default()
    }

    /// Why the call was refused, if it was.
    pub fn denied(&self) -> Option<&str> {
        let output = &self.json["hookSpecificOutput"];
        (output["permissionDecision"] == "deny").then(|| output["permissionDecisionReason"].as_str().unwrap())
    }

    pub fn asks(&self) -> Option<&str> {
        let output = &self.json["hookSpecificOutput"];
        (output["permissionDecision"] == "ask").then(|| output["permissionDecisionReason"].as_str().unwrap())
    }

    /// What keeps the agent from ending its turn.
    pub fn goes_on(&self) -> Option<&str> {
        self.json["reason"].as_str().or_else(|| self.json["hookSpecificOutput"]["additionalContext"].as_str())
    }

    #[track_caller]
    pub fn silent(&self) {
        assert_eq!((self.run.stdout.as_str(), self.run.stderr.as_str()), ("", ""));
    }
}

impl<'a> Agent<'a> {
    pub fn new(bus: &'a Bus, program: Program, session: &str) -> Self {
        let session = session.to_owned();
        let calls = std::cell::Cell::new(0);
        Agent { bus, program, session, cwd: bus.repo(), subagent: None, is_gone: false, calls }
    }

    pub fn claude(bus: &'a Bus, session: &str) -> Self {
        Agent::new(bus, Program::Claude, session)
    }

    pub fn codex(bus: &'a Bus, session: &str) -> Self {
        Agent::new(bus, Program::Codex, session)
    }

    /// One of its subagents.
    pub fn sub(&self, id: &'static str, kind: &'static str) -> Agent<'a> {
        let agent = Agent::new(self.bus, self.program, &self.session);
        Agent { cwd: self.cwd.clone(), subagent: Some((id, kind)), ..agent }
    }

    /// What the program tells of an event, beside what is the event's own.
    pub fn event(&self, name: &str, own: &Value) -> Value {
        let session = &self.session;
        let transcript = match self.program {
            Program::Claude => format!("/home/user/.claude/projects/-repo/{session}.jsonl"),
            Program::Codex => {
                format!("/home/user/.codex/sessions/2026/11/16/rollout-2026-11-16T06-15-44-{session}.jsonl")
            }
        };
        let mut event =
            json!({"session_id": session, "transcript_path": transcript, "cwd": self.cwd, "hook_event_name": name});
        if self.program == Program::Codex {
            event["model"] = "gpt-5.5".into();
            if name != "SessionStart" && name != "SessionEnd" {
                event["turn_id"] = "00000000-0000-7000-8000-000000000002".into();
            }
        }
        if let Some((id, kind)) = self.subagent {
            event["agent_id"] = id.into();
            event["agent_type"] = kind.into();
        }
        for (key, value) in own.as_object().unwrap() {
            event[key] = value.clone();
        }
        event
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.bus.command();
        if self.is_gone {
            command = Command::new("python3");
            self.bus.environment(&mut command);
            command.args(["-c", "import subprocess,sys; sys.exit(subprocess.call(sys.argv[1:]))", crate::bus::RELAY]);
        }
        // A harness runs its hooks where the session is; its own environment is not relay's business.
        command.current_dir(&self.cwd).arg("hook").args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    #[track_caller]
    pub fn tells(&self, name: &str, own: &Value) -> Said {
        self.tells_with(self.command(&[]), name, own)
    }

    #[track_caller]
    pub fn tells_with(&self, mut command: Command, name: &str, own: &Value) -> Said {
        let line = format!("{command:?} < {name}");
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(self.event(name, own).to_string().as_bytes()).unwrap();
        let run = Run::new(line, &child.wait_with_output().unwrap()).success();
        let json = if run.stdout.is_empty() { Value::Null } else { serde_json::from_str(&run.stdout).unwrap() };
        Said { run, json }
    }

    pub fn starts(&self) -> Said {
        self.tells("SessionStart", &json!({"source": "startup"}))
    }

    pub fn hears_the_user(&self) -> Said {
        self.tells("UserPromptSubmit", &json!({"prompt": "go on"}))
    }

    /// In which variable a program tells its shell the session.
    fn variable(&self) -> &'static str {
        match self.program {
            Program::Claude => "CLAUDE_CODE_SESSION_ID",
            Program::Codex => "CODEX_SESSION_ID",
        }
    }

    /// The agent's name on the bus, as its own shell finds it.
    pub fn name(&self) -> String {
        let mut command = self.bus.args("", ["start"]);
        command.env(self.variable(), &self.session);
        crate::bus::run(command).success().result()["agent"]["name"].as_str().unwrap().to_owned()
    }

    fn call(&self, tool: &str, input: &Value) -> Value {
        json!({"tool_name": tool, "tool_input": input, "tool_use_id": format!("call_{}", self.calls.get())})
    }

    fn edit_call(&self, path: &str) -> Value {
        match self.program {
            Program::Claude => {
                self.call("Edit", &json!({"file_path": self.cwd.join(path), "old_string": "a", "new_string": "b"}))
            }
            Program::Codex => {
                let patch = format!("*** Begin Patch\n*** Update File: {path}\n@@\n-a\n+b\n*** End Patch\n");
                self.call("apply_patch", &json!({"command": patch}))
            }
        }
    }

    pub fn before_edit(&self, path: &str) -> Said {
        self.calls.set(self.calls.get() + 1);
        self.tells("PreToolUse", &self.edit_call(path))
    }

    pub fn after_edit(&self, path: &str) -> Said {
        self.tells("PostToolUse", &self.edit_call(path))
    }

    /// Edits a file: it is written unless a hook refuses. What was said before and after.
    pub fn edits(&self, path: &str, text: &str) -> (Said, Option<Said>) {
        let before = self.before_edit(path);
        if before.denied().is_some() || before.asks().is_some() {
            return (before, None);
        }
        let file = self.cwd.join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
        let after = self.after_edit(path);
        (before, Some(after))
    }

    pub fn before_shell(&self, command: &str) -> Said {
        self.calls.set(self.calls.get() + 1);
        self.tells("PreToolUse", &self.call("Bash", &json!({"command": command})))
    }

    pub fn after_shell(&self, command: &str) -> Said {
        self.tells("PostToolUse", &self.call("Bash", &json!({"command": command})))
    }

    /// Runs a command: it runs unless a hook refuses. What was said before and after.
    pub fn runs(&self, command: &str) -> (Said, Option<Said>) {
        let before = self.before_shell(command);
        if before.denied().is_some() {
            return (before, None);
        }
        self.shell(command);
        let after = self.after_shell(command);
        (before, Some(after))
    }

    /// The command itself.
    pub fn shell(&self, command: &str) {
        let mut shell = Command::new("sh");
        self.bus.environment(&mut shell);
        let identity = [
            ("GIT_AUTHOR_NAME", "Test"),
            ("GIT_AUTHOR_EMAIL", "test@example.invalid"),
            ("GIT_COMMITTER_NAME", "Test"),
            ("GIT_COMMITTER_EMAIL", "test@example.invalid"),
        ];
        let output = shell
            .current_dir(&self.cwd)
            .env(self.variable(), &self.session)
            .envs(identity)
            .args(["-c", command])
            .output()
            .unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }

    pub fn stops(&self) -> Said {
        self.tells("Stop", &json!({"stop_hook_active": false, "last_assistant_message": "done"}))
    }

    pub fn stops_again(&self) -> Said {
        self.tells("Stop", &json!({"stop_hook_active": true, "last_assistant_message": "done"}))
    }

    pub fn ends(&self) -> Said {
        self.tells("SessionEnd", &json!({"reason": "other"}))
    }
}

/// The live claims, as `holder pattern`, in their order.
pub fn claims(bus: &Bus) -> Vec<String> {
    let found = bus.relay("", ["reservations"]).success().result();
    let row = |claim: &Value| format!("{} {}", claim["holder"].as_str().unwrap(), claim["pattern"].as_str().unwrap());
    found["reservations"].as_array().unwrap().iter().map(row).collect()
}
