//! The second act: two coding agents in one checkout, and nobody behind them but this script. It speaks to their hooks as Claude Code
//! and Codex do. What happens to their work without relay is shown first.

use std::path::PathBuf;

use relay_core::error::Code;
use relay_core::store::Result;
use serde_json::{Value, json};

use super::reply::Reply;
use super::stage::Stage;

const CLAUDE: &str = "Claude";
const CODEX: &str = "Codex";
const FILE: &str = "src/auth/login.rs";

/// A session of a coding agent.
struct Session {
    program: &'static str,
    id: &'static str,
    folder: PathBuf,
}

pub(super) fn play(stage: &mut Stage) -> Result<()> {
    let folder = stage.main_worktree();
    let claude = Session { program: CLAUDE, id: "a-session-of-claude", folder: folder.clone() };
    let codex = Session { program: CODEX, id: "a-session-of-codex", folder };
    without_relay(stage)?;
    stage.pause();
    let names = with_relay(stage, &claude, &codex)?;
    they_talk(stage, &claude, &codex, &names)?;
    stage.pause();
    nothing_is_lost(stage, &claude, &codex)
}

/// Both read the file, both write what they read and a line of their own: the last one wins.
fn without_relay(stage: &mut Stage) -> Result<()> {
    let read = stage.read_file(FILE)?;
    stage.write_file(FILE, &format!("{read}a line by {CLAUDE}\n"))?;
    stage.write_file(FILE, &format!("{read}a line by {CODEX}\n"))?;
    let shown = stage.show_file(CODEX, FILE)?.expect("/output", json!(["demo", "a line by Codex"]))?;
    let line = shown.fill("without relay Claude and Codex both edit it, and the file holds {/output}")?;
    stage.tell(&shown, &[line]);
    stage.write_file(FILE, &read)
}

fn with_relay(stage: &mut Stage, claude: &Session, codex: &Session) -> Result<(String, String)> {
    stage.configure("[hooks]\nedit = \"deny\"\n")?;
    let mut names = Vec::new();
    for session in [claude, codex] {
        let reply = session.tells(stage, "SessionStart", &json!({"source": "startup"}))?;
        names.push(name(&reply)?);
        tell(stage, &reply, &["{/said/0}"])?;
    }
    let read = stage.read_file(FILE)?;
    claude.tells(stage, "PreToolUse", &claude.edit())?.expect("/denied", false)?;
    stage.write_file(FILE, &format!("{read}a line by {CLAUDE}\n"))?;
    claude.tells(stage, "PostToolUse", &claude.edit())?;
    let held = stage.run(&names[0], &claude.folder, &["look", "reservations"])?.success()?;
    let held = held.expect("/result/reservations/0/pattern", FILE)?;
    let line =
        held.fill("its edit is claimed: {/result/reservations/0/pattern}, until {/result/reservations/0/expires_at}")?;
    stage.tell(&held, &[line]);
    let denied = codex.tells(stage, "PreToolUse", &codex.edit())?.expect("/denied", true)?;
    tell(stage, &denied, &["the same edit is stopped: {/said/0}", "{/said/1}", "{/said/2}", "{/said/3}"])?;
    let [claude, codex] = names.try_into().map_err(|_| Code::Internal.refuse("two sessions have two names"))?;
    Ok((claude, codex))
}

fn they_talk(stage: &mut Stage, claude: &Session, codex: &Session, names: &(String, String)) -> Result<()> {
    let send = [
        "send",
        "--to",
        &names.0,
        "--thread",
        "login-43",
        "--subject",
        "login.rs: may I?",
        "--body",
        "When are you done?",
    ];
    let sent = stage
        .run(&names.1, &codex.folder, &send)?
        .success()?
        .expect("/result/message/recipients/0/name", names.0.as_str())?;
    let line = sent.fill("asks: #{/result/message/id} to {/result/message/recipients/0/name}")?;
    stage.tell(&sent, &[line]);
    let heard = claude.tells(stage, "UserPromptSubmit", &json!({"prompt": "go on"}))?;
    tell(stage, &heard, &["{/said/1}", "{/said/3}"])?;
    Ok(())
}

/// The holder commits and leaves; then the other one goes on from what is there.
fn nothing_is_lost(stage: &mut Stage, claude: &Session, codex: &Session) -> Result<()> {
    stage.commit(FILE, "A line by Claude")?;
    claude.tells(stage, "SessionEnd", &json!({"reason": "other"}))?;
    let told = codex.tells(stage, "PreToolUse", &codex.edit())?.expect("/denied", false)?;
    tell(stage, &told, &["now it may, and it is told: {/said/0}"])?;
    let read = stage.read_file(FILE)?;
    stage.write_file(FILE, &format!("{read}a line by {CODEX}\n"))?;
    codex.tells(stage, "PostToolUse", &codex.edit())?;
    stage.commit(FILE, "A line by Codex")?;
    codex.tells(stage, "SessionEnd", &json!({"reason": "other"}))?;
    let both = json!(["demo", "a line by Claude", "a line by Codex"]);
    let shown = stage.show_file(CODEX, FILE)?.expect("/output", both)?;
    let line = shown.fill("with relay nothing is lost: the file holds {/output}")?;
    stage.tell(&shown, &[line]);
    Ok(())
}

impl Session {
    /// What the program tells its hook, and what the hook answers.
    fn tells(&self, stage: &Stage, event: &str, own: &Value) -> Result<Reply> {
        let transcript = match self.program {
            CLAUDE => format!("/home/user/.claude/projects/-shop/{}.jsonl", self.id),
            _ => format!("/home/user/.codex/sessions/2026/11/16/rollout-2026-11-16T06-15-44-{}.jsonl", self.id),
        };
        let mut told =
            json!({"session_id": self.id, "transcript_path": transcript, "cwd": self.folder, "hook_event_name": event});
        if self.program == CODEX {
            told["model"] = "gpt-5.5".into();
        }
        for (key, value) in own.as_object().into_iter().flatten() {
            told[key] = value.clone();
        }
        stage.hook(self.program, &self.folder, event, &told)
    }

    /// The call of its tool that edits the file.
    fn edit(&self) -> Value {
        match self.program {
            CLAUDE => json!({"tool_name": "Edit", "tool_use_id": "call_1",
                "tool_input": {"file_path": self.folder.join(FILE), "old_string": "demo", "new_string": "demo"}}),
            _ => json!({"tool_name": "apply_patch", "tool_use_id": "call_1",
                "tool_input": {"command": format!("*** Begin Patch\n*** Update File: {FILE}\n@@\n demo\n+line\n*** End Patch\n")}}),
        }
    }
}

fn tell(stage: &mut Stage, reply: &Reply, templates: &[&str]) -> Result<()> {
    let lines = templates.iter().map(|template| reply.fill(template)).collect::<Result<Vec<_>>>()?;
    stage.tell(reply, &lines);
    Ok(())
}

/// How the hook introduced the session.
fn name(reply: &Reply) -> Result<String> {
    let said = reply.value("/said/0")?.as_str().unwrap_or_default();
    let name = said.split("you are ").nth(1).and_then(|rest| rest.split(' ').next());
    name.map(str::to_owned).ok_or_else(|| Code::Internal.refuse(format!("{said:?} says nobody's name")))
}
