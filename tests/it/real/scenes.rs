//! What every program is put through.

use std::fs;

use serde_json::{Value, json};

use super::{Play, Program, after, relay};
use crate::bus::Bus;
use crate::privilege::binary_for_all;

/// A message to the session's agent, whatever its name is.
fn mail() -> String {
    let names = format!("{} | grep -o '\"name\":\"[A-Za-z]*\"' | cut -d'\"' -f4", relay("agents"));
    let send = relay("--agent RedForest send --thread bd-1 --subject Login --body 'who takes the login?'");
    format!("{send} --to $({names} | grep -v RedForest)")
}

fn claims(answer: &Value) -> Vec<String> {
    let row = |claim: &Value| format!("{} {}", claim["holder"].as_str().unwrap(), claim["pattern"].as_str().unwrap());
    answer["result"]["reservations"].as_array().unwrap().iter().map(row).collect()
}

/// What it edits, and what its commands write, is claimed for it until it ends.
pub fn claims_what_it_changes(program: &'static Program) {
    let play = Play::of(program);
    let seen = play.bus.path("claims");
    let look = format!("{} > {}", relay("reservations"), seen.display());
    let done = json!({"text": "done", "meanwhile": look});
    play.runs(&[play.edit("src/a.rs"), play.shell("echo new > src/new.rs"), vec![done]].concat());
    assert_eq!((play.holds("src/a.rs"), play.holds("src/new.rs")), ("mine\n".to_owned(), "new\n".to_owned()));
    let agent = play.agent();
    let seen = claims(&serde_json::from_str(&fs::read_to_string(seen).unwrap()).unwrap());
    assert_eq!(seen, [format!("{agent} src/a.rs"), format!("{agent} src/new.rs")]);
    assert_eq!(claims(&play.bus.relay("RedForest", ["reservations"]).json()), [""; 0], "the session has ended");
}

/// It is told who it is, whose file it edits and what was written to it, each once, and speaks as the agent that its hooks know.
pub fn is_told_and_speaks(program: &'static Program) {
    let play = Play::of(program);
    play.bus.relay("RedForest", ["reserve", "src/a.rs", "--reason", "bd-1"]).success();
    let letter = json!({"to": ["RedForest"], "thread": "bd-2", "subject": "Login", "body": "I do"});
    let shell = format!("{} > /dev/null", relay("send --to RedForest --thread bd-3 --subject Shell --body text"));
    let done = play.runs(
        &[
            play.edit("src/a.rs"),
            after(&mail(), play.shell("true")),
            play.tool("prepare", json!({"thread": "bd-2"})),
            play.tool("send", letter),
            play.shell(&shell),
        ]
        .concat(),
    );
    let agent = play.agent();
    let told = done.told();
    for once in [&format!("you are {agent} on the bus"), "RedForest holds src/a.rs for bd-1", "who takes the login?"] {
        assert_eq!(told.matches(once).count(), 1, "{once}: {told}");
    }
    assert_eq!(play.holds("src/a.rs"), "mine\n", "it is warned, not stopped");
    let mail = play.bus.relay("RedForest", ["poll"]).success().result();
    let from =
        |message: &Value| format!("{} {}", message["from"].as_str().unwrap(), message["thread"].as_str().unwrap());
    let mail: Vec<String> = mail["messages"].as_array().unwrap().iter().map(from).collect();
    assert_eq!(mail, [format!("{agent} bd-2"), format!("{agent} bd-3")]);
}

/// Where edits of what others hold are denied, the file stays as it is, and the model knows why.
pub fn is_denied(program: &'static Program) {
    let play = Play::of(program);
    play.bus.relay("RedForest", ["reserve", "src/a.rs", "--reason", "bd-1"]).success();
    fs::write(play.bus.home().join("config.toml"), "[hooks]\nedit = \"deny\"\n").unwrap();
    let done = play.runs(&[play.edit("src/a.rs"), play.edit("src/b.rs")].concat());
    assert_eq!((play.holds("src/a.rs"), play.holds("src/b.rs")), ("line\n".to_owned(), "mine\n".to_owned()));
    let why = "RedForest holds src/a.rs for bd-1";
    assert!(done.told().contains(why), "{}", done.told());
}

/// A session that goes on later is the agent that it was.
pub fn resumes(program: &'static Program) {
    let play = Play::of(program);
    play.runs(&play.edit("src/a.rs"));
    let agent = play.agent();
    let done = play.resumes(&play.edit("src/b.rs"));
    assert_eq!((play.agent(), play.holds("src/b.rs")), (agent.clone(), "mine\n".to_owned()));
    assert!(done.told().contains(&format!("you are {agent} on the bus")), "{}", done.told());
}

/// Once relay is gone, the program does what it does without it.
pub fn works_without_relay(program: &'static Program) {
    let elsewhere = Bus::new();
    let relay = binary_for_all(&elsewhere.path(""));
    let play = Play::set_up_by(program, &relay);
    fs::remove_file(relay).unwrap();
    play.runs(&[play.edit("src/a.rs"), play.shell("echo new > src/new.rs")].concat());
    assert_eq!((play.holds("src/a.rs"), play.holds("src/new.rs")), ("mine\n".to_owned(), "new\n".to_owned()));
}

/// A subagent that edits is a child of the session's agent. `spawn` has it begin with a task that holds this text.
pub fn has_children(program: &'static Program, spawn: fn(&str) -> Value) {
    const SUBTASK: &str = "look after the second file";
    let play = Play::of(program);
    let turns = [play.edit("src/a.rs"), vec![spawn(SUBTASK)]].concat();
    play.runs_with(&turns, SUBTASK, &play.edit("src/b.rs"));
    let agent = play.agent();
    let agents = play.bus.relay("RedForest", ["agents"]).success().result();
    let child = agents["agents"].as_array().unwrap().iter().find(|found| found["parent"] == agent.as_str());
    let child = child.unwrap_or_else(|| panic!("{agents}"))["name"].as_str().unwrap().to_owned();
    let log = play.bus.relay("RedForest", ["log"]).success().result();
    for (who, path) in [(&agent, "src/a.rs"), (&child, "src/b.rs")] {
        let is_it = |event: &Value| event["actor"] == who.as_str() && event["data"]["pattern"] == path;
        assert!(log["events"].as_array().unwrap().iter().any(is_it), "{who} {path}: {log}");
    }
}
