//! Across projects: links and sends between agents of two repositories on one bus.

use serde_json::Value;

use crate::bus::{Bus, Run, days, hours};

/// Two repositories: BlueLake and GreenHill work in `repo`, RedForest and GoldPeak in `other`.
pub struct Two {
    pub bus: Bus,
}

impl Two {
    pub fn new() -> Self {
        let two = Two { bus: Bus::with(&["BlueLake", "GreenHill"]) };
        two.add("other", &["RedForest", "GoldPeak"]);
        two
    }

    /// One more repository with these agents in it.
    pub fn add(&self, folder: &str, agents: &[&str]) {
        std::fs::create_dir_all(self.bus.path(folder)).unwrap();
        self.bus.git_in(&self.bus.path(folder), &["init", "-q", "-b", "main"]);
        for agent in agents {
            self.at(folder, agent, &["start"]).success();
        }
    }

    /// The same with RedForest's consent to mail from BlueLake.
    pub fn linked() -> Self {
        let two = Two::new();
        two.here("BlueLake", &["link", "--target", "RedForest@other"]).success();
        two.there("RedForest", &["link", "--target", "BlueLake@repo", "--accept"]).success();
        two
    }

    pub fn here(&self, agent: &str, args: &[&str]) -> Run {
        self.bus.relay(agent, args)
    }

    pub fn there(&self, agent: &str, args: &[&str]) -> Run {
        self.at("other", agent, args)
    }

    pub fn at(&self, folder: &str, agent: &str, args: &[&str]) -> Run {
        let key = self.key(folder);
        self.bus.relay(agent, [&["--project", &key], args].concat())
    }

    pub fn key(&self, folder: &str) -> String {
        std::fs::canonicalize(self.bus.path(folder)).unwrap().to_str().unwrap().to_owned()
    }

    /// How an agent of `repo` writes one of `other`.
    pub fn abroad(&self, name: &str) -> String {
        format!("{name}@{}", self.key("other"))
    }

    /// How an agent of `other` writes one of `repo`.
    pub fn home(&self, name: &str) -> String {
        format!("{name}@{}", self.key("repo"))
    }

    /// The states of the links that an agent sees.
    fn links(&self, folder: &str, agent: &str) -> Vec<String> {
        let result = self.at(folder, agent, &["link", "--list"]).success().result();
        result["links"].as_array().unwrap().iter().map(|link| text(&link["state"])).collect()
    }

    #[track_caller]
    fn check_links(&self, state: &str) {
        assert_eq!(self.links("repo", "BlueLake"), [state], "in BlueLake's project");
        assert_eq!(self.links("other", "RedForest"), [state], "in RedForest's project");
    }

    pub fn send(&self, to: &str, extra: &[&str]) -> Run {
        let args = ["send", "--to", to, "--thread", "bd-1", "--subject", "Login", "--body", "text"];
        self.here("BlueLake", &[&args, extra].concat())
    }

    pub fn inbox(&self, folder: &str, agent: &str) -> Vec<Value> {
        let result = self.at(folder, agent, &["poll", "--bodies"]).success().result();
        result["messages"].as_array().unwrap().clone()
    }

    /// BlueLake's copies, newest first.
    pub fn outbox(&self) -> Vec<Value> {
        self.here("BlueLake", &["look", "outbox"]).success().result()["outbox"].as_array().unwrap().clone()
    }

    /// The history of a project without what polling itself notes.
    fn history(&self, folder: &str) -> u64 {
        self.at(folder, "", &["look", "events"]).success().result()["cursor"].as_u64().unwrap()
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

#[test]
fn a_request_waits_for_the_recipient_and_its_acceptance_holds_in_both_projects() {
    let two = Two::new();
    let asked = two.here("BlueLake", &["link", "--target", "RedForest@other", "--why", "the API"]).success().result();
    assert_eq!(asked["link"]["state"], "requested");
    two.check_links("requested");
    let seen = two.there("RedForest", &["start"]).success().result();
    assert!(seen.to_string().contains(&two.home("BlueLake")), "{seen}");
    let accepted = two.there("RedForest", &["link", "--target", "BlueLake@repo", "--accept"]).success().result();
    assert_eq!(accepted["link"]["state"], "accepted");
    two.check_links("accepted");
    // Mutual: the one who was asked may write as well.
    let home = two.home("BlueLake");
    two.there("RedForest", &["send", "--to", &home, "--subject", "Hello", "--body", "text"]).success();
    assert_eq!(two.inbox("repo", "BlueLake")[0]["from"], two.abroad("RedForest"));
}

#[test]
fn no_policy_consents_for_somebody_of_another_project() {
    for policy in ["open", "auto", "contacts_only"] {
        let two = Two::new();
        two.there("RedForest", &["policy", policy]).success();
        let error = two.send("RedForest@other", &[]).fails("CONTACT_REQUIRED").error();
        assert_eq!(error["details"]["must_answer"][0], two.abroad("RedForest"), "{policy}");
        two.here("BlueLake", &["link", "--target", "RedForest@other"]).success();
        two.check_links("requested");
        two.send("RedForest@other", &[]).fails("CONTACT_PENDING");
        assert_eq!(two.inbox("other", "RedForest"), Vec::<Value>::new(), "{policy}");
        two.there("RedForest", &["link", "--target", "BlueLake@repo", "--accept"]).success();
        two.send("RedForest@other", &[]).success();
        // The link is one agent's, not the project's.
        two.send("GoldPeak@other", &[]).fails("CONTACT_REQUIRED");
    }
    let two = Two::new();
    two.there("RedForest", &["policy", "block_all"]).success();
    two.here("BlueLake", &["link", "--target", "RedForest@other"]).fails("CONTACT_BLOCKED");
    two.send("RedForest@other", &[]).fails("CONTACT_BLOCKED");
}

#[test]
fn nobody_but_the_recipient_or_the_human_accepts() {
    let two = Two::new();
    two.here("BlueLake", &["link", "--target", "RedForest@other"]).success();
    two.there("GoldPeak", &["link", "--target", "BlueLake@repo", "--accept"]).fails("LINK_NOT_FOUND");
    two.here("BlueLake", &["link", "--target", "RedForest@other", "--accept"]).fails("LINK_NOT_FOUND");
    two.check_links("requested");
    two.there("", &["token", "human"]).success();
    two.there("human", &["link", "--target", "RedForest", "--accept"]).success();
    two.check_links("accepted");
    two.send("RedForest@other", &[]).success();
}

#[test]
fn asking_back_is_consent() {
    let two = Two::new();
    two.here("BlueLake", &["link", "--target", "RedForest@other"]).success();
    let back = two.there("RedForest", &["link", "--target", "BlueLake@repo"]).success().result();
    assert_eq!(back["link"]["state"], "accepted");
    two.check_links("accepted");
}

#[test]
fn an_address_is_a_path_or_a_last_part_that_is_unambiguous() {
    let two = Two::linked();
    two.add("deep/other", &["RedForest"]);
    let path = two.abroad("RedForest");
    two.send(&path, &[]).success();
    two.send(&path.to_uppercase().replacen(&two.key("other").to_uppercase(), &two.key("other"), 1), &[]).success();
    let error = two.send("RedForest@other", &[]).fails("RECIPIENT_NOT_FOUND").error();
    let nearest: Vec<String> = error["details"]["nearest"].as_array().unwrap().iter().map(text).collect();
    assert!(nearest.contains(&path), "{nearest:?}");
    assert_eq!(nearest.len(), 2, "{nearest:?}");
    two.send("RedForest@nowhere", &[]).fails("RECIPIENT_NOT_FOUND");
    two.send("RedForest@/nowhere/at/all", &[]).fails("RECIPIENT_NOT_FOUND");
    let misspelt = two.send(&two.abroad("RedForrest"), &[]).fails("RECIPIENT_NOT_FOUND").error();
    assert_eq!(misspelt["details"]["recipients"][0]["nearest"][0], path);
    // One's own project, spelt out, is just one's own project.
    two.here("BlueLake", &["send", "--to", "GreenHill@repo", "--subject", "Hello", "--body", "text"]).success();
    assert_eq!(two.inbox("repo", "GreenHill")[0]["from"], "BlueLake");
}

#[test]
fn two_agents_of_one_name_in_two_projects_are_two() {
    let two = Two::new();
    two.there("BlueLake", &["start"]).success();
    two.here("BlueLake", &["link", "--target", "BlueLake@other"]).success();
    two.there("BlueLake", &["link", "--target", "BlueLake@repo", "--accept"]).success();
    two.send("BlueLake@other", &[]).success();
    let got = two.inbox("other", "BlueLake");
    assert_eq!((got.len(), &got[0]["from"]), (1, &two.home("BlueLake").into()));
    two.there("BlueLake", &["send", "--reply-to", &got[0]["id"].to_string(), "--body", "done"]).success();
    assert_eq!(two.inbox("repo", "BlueLake")[0]["from"], two.abroad("BlueLake"));
}

#[test]
fn one_send_names_recipients_of_one_project() {
    let two = Two::linked();
    for to in ["GreenHill,RedForest@other", "RedForest@other,GreenHill@repo", "@all,RedForest@other"] {
        let (here, there) = (two.history("repo"), two.history("other"));
        two.send(to, &[]).fails("INPUT_INVALID");
        assert_eq!((two.history("repo"), two.history("other")), (here, there), "{to} left something behind");
    }
    // All or none holds across projects as well.
    two.send("RedForest@other,GoldPeak@other", &[]).fails("CONTACT_REQUIRED");
    two.send("RedForest@other,Nobody@other", &[]).fails("RECIPIENT_NOT_FOUND");
    assert_eq!(two.inbox("other", "RedForest"), Vec::<Value>::new());
    assert_eq!(two.outbox(), Vec::<Value>::new());
}

#[test]
fn a_message_has_a_thread_and_a_number_of_its_own_in_each_project() {
    let two = Two::linked();
    for path in ["one", "two", "three"] {
        two.here("GreenHill", &["reserve", path]).success();
    }
    let sent = two.send("RedForest@other", &["--ack-required"]).success().result();
    assert_eq!(sent["message"]["thread"], "bd-1");
    assert_eq!(sent["message"]["recipients"][0]["name"], two.abroad("RedForest"));
    let got = two.inbox("other", "RedForest").remove(0);
    assert_eq!((&got["thread"], &got["subject"]), (&"repo.bd-1".into(), &"Login".into()));
    assert_eq!((&got["from"], &got["body"]), (&two.home("BlueLake").into(), &"text".into()));
    assert_ne!(got["id"], sent["message"]["id"]);
    // The copy in the sender's project is a message of its own there.
    let id = sent["message"]["id"].to_string();
    let copy = two.here("BlueLake", &["look", "message", &id]).success().result();
    assert_eq!((&copy["message"]["thread"], &copy["message"]["body"]), (&"bd-1".into(), &"text".into()));
}

#[test]
fn replies_go_back_to_the_original_thread_and_receipts_to_the_sender() {
    let two = Two::linked();
    let sent = two.send("RedForest@other", &["--ack-required"]).success().result()["message"]["id"].to_string();
    let got = two.inbox("other", "RedForest")[0]["id"].to_string();
    let state = |two: &Two| text(&two.outbox()[0]["recipients"][0]["state"]);
    assert_eq!(state(&two), "stored");
    two.there("RedForest", &["ack", &got]).success();
    assert_eq!(state(&two), "acked");
    two.there("RedForest", &["send", "--reply-to", &got, "--body", "done"]).success();
    let answer = two.inbox("repo", "BlueLake").remove(0);
    assert_eq!((&answer["thread"], answer["reply_to"].to_string()), (&"bd-1".into(), sent));
    // And once more to and fro, each in its own project's thread.
    let id = answer["id"].to_string();
    two.here("BlueLake", &["send", "--reply-to", &id, "--body", "thanks"]).success();
    let thanks = two.inbox("other", "RedForest").pop().unwrap();
    assert_eq!((&thanks["thread"], &thanks["body"]), (&"repo.bd-1".into(), &"thanks".into()));
    // A follow-up to one's own message goes to whom that went.
    let own = two.outbox()[0]["id"].to_string();
    two.here("BlueLake", &["send", "--reply-to", &own, "--body", "and good night"]).success();
    assert_eq!(two.inbox("other", "RedForest").pop().unwrap()["body"], "and good night");
    assert_eq!(two.inbox("other", "GoldPeak"), Vec::<Value>::new());
    two.here("BlueLake", &["send", "--reply-to", &id, "--thread", "bd-2", "--body", "x"]).fails("THREAD_MISMATCH");
}

#[test]
fn a_block_or_a_revoke_holds_in_both_projects_whoever_decides() {
    for (folder, agent, other) in [("other", "RedForest", "BlueLake@repo"), ("repo", "BlueLake", "RedForest@other")] {
        let two = Two::linked();
        two.at(folder, agent, &["link", "--target", other, "--block"]).success();
        two.check_links("blocked");
        // A block is directed, and also stops the blocker's own sends.
        two.send("RedForest@other", &[]).fails("CONTACT_BLOCKED");
        let back = ["send", "--to", "BlueLake@repo", "--subject", "Hello", "--body", "text"];
        two.there("RedForest", &back).fails("CONTACT_BLOCKED");
        two.at(folder, agent, &["link", "--target", other, "--revoke"]).success();
        two.check_links("revoked");
        two.send("RedForest@other", &[]).fails("CONTACT_REQUIRED");
        two.here("BlueLake", &["link", "--target", "RedForest@other"]).success();
        two.send("RedForest@other", &[]).fails("CONTACT_PENDING");
    }
}

#[test]
fn no_reply_and_no_thread_opens_what_is_not_linked() {
    let two = Two::linked();
    two.send("RedForest@other", &[]).success();
    let got = two.inbox("other", "RedForest")[0]["id"].to_string();
    two.here("BlueLake", &["link", "--target", "RedForest@other", "--revoke"]).success();
    two.there("RedForest", &["send", "--reply-to", &got, "--body", "done"]).fails("CONTACT_REQUIRED");
    assert_eq!(two.inbox("repo", "BlueLake"), Vec::<Value>::new());
}

#[test]
fn held_mail_arrives_at_acceptance_and_its_sender_sees_both() {
    let two = Two::new();
    let state = |two: &Two| text(&two.outbox()[0]["recipients"][0]["state"]);
    let sent = two.send("RedForest@other", &["--hold"]).success().result();
    assert_eq!(sent["message"]["recipients"][0]["state"], "held");
    assert_eq!(two.inbox("other", "RedForest"), Vec::<Value>::new());
    two.check_links("requested");
    assert_eq!(two.inbox("repo", "BlueLake"), Vec::<Value>::new(), "nothing has lapsed yet");
    assert_eq!(state(&two), "held");
    two.there("RedForest", &["link", "--target", "BlueLake@repo", "--accept"]).success();
    assert_eq!(two.inbox("other", "RedForest")[0]["subject"], "Login");
    two.check_links("accepted");
    assert_eq!(state(&two), "stored");
}

#[test]
fn held_mail_that_is_refused_or_forgotten_is_told_to_its_sender() {
    let lapse = |two: &Two, blocked: bool| {
        two.send("RedForest@other", &["--hold"]).success();
        if blocked {
            two.there("RedForest", &["link", "--target", "BlueLake@repo", "--block"]).success();
        } else {
            // Both stay awake: it is the request that lapses, not an agent.
            for _ in 0..2 {
                two.bus.advance(days(4));
                two.there("RedForest", &["poll"]).success();
                two.there("GoldPeak", &["poll"]).success();
                two.here("BlueLake", &["look", "status"]).success();
            }
        }
        two.bus.advance(hours(1));
    };
    for blocked in [true, false] {
        let two = Two::new();
        lapse(&two, blocked);
        let told = two.inbox("repo", "BlueLake");
        assert_eq!(told.len(), 1, "blocked: {blocked}");
        assert_eq!((&told[0]["from"], &told[0]["thread"]), (&"relay".into(), &"bd-1".into()));
        assert_eq!(two.inbox("repo", "BlueLake").len(), 1, "told once");
        assert_eq!(two.outbox()[0]["recipients"][0]["state"], "lapsed");
        assert_eq!(two.inbox("other", "RedForest"), Vec::<Value>::new());
    }
}

#[test]
fn a_colleague_answers_in_the_thread_that_it_sees() {
    let two = Two::linked();
    two.here("GreenHill", &["link", "--target", &two.abroad("RedForest")]).success();
    two.there("RedForest", &["link", "--target", &two.home("GreenHill"), "--accept"]).success();
    let to = two.abroad("RedForest");
    let sent = two.here("BlueLake", &["send", "--to", &to, "--thread", "bd-1", "--subject", "Login", "--body", "b"]);
    let id = sent.success().result()["message"]["id"].to_string();
    // GreenHill reads the thread at home; in the other project BlueLake's message is not there for it.
    two.here("GreenHill", &["send", "--to", &to, "--reply-to", &id, "--body", "and so do I"]).success();
    let mail = two.there("RedForest", &["poll"]).success().result();
    let threads: Vec<String> = mail["messages"].as_array().unwrap().iter().map(|mail| text(&mail["thread"])).collect();
    assert_eq!(threads, ["repo.bd-1", "repo.bd-1"]);
}

#[test]
fn a_send_into_another_project_is_signalled_like_any_other() {
    let two = Two::linked();
    let to = two.abroad("RedForest");
    let send = |rest: &[&str]| {
        let run = two.here("BlueLake", &[&["send", "--to", &to, "--body", "b"], rest].concat()).success();
        (run.signals(), run.json()["next"].to_string())
    };
    assert_eq!(send(&["--thread", "bd-1", "--subject", "Login"]).0, [""; 0]);
    let (signals, next) = send(&["--thread", "bd-1", "--subject", "Holiday plans"]);
    assert_eq!(signals, ["TOPIC_DRIFT"]);
    assert!(next.contains(&format!("relay send --to {to} --thread NEW_THREAD")), "{next}");
    two.here("BlueLake", &["prepare", "--thread", "bd-1"]).success();
    let (signals, next) = send(&["--subject", "Another"]);
    assert_eq!(signals, ["OFF_THREAD"]);
    assert!(next.contains("--thread bd-1"), "{next}");
}
