//! What concerns two projects, cut off between its two commits: the next command completes it, exactly once.

use std::process::{Child, Stdio};

use crate::bus::days;
use crate::crossing::Two;

const SEND: [&str; 11] = [
    "send",
    "--to",
    "RedForest@other",
    "--thread",
    "bd-1",
    "--subject",
    "Login",
    "--body",
    "text",
    "--idempotency-key",
    "K1",
];

/// Starts a command that stops for ever at a failpoint.
fn stuck(two: &Two, folder: &str, agent: &str, args: &[&str], failpoint: &str) -> Child {
    let key = two.key(folder);
    let mut command = two.bus.args(agent, [&["--project", &key], args].concat());
    command.env("FAILPOINTS", failpoint).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Waits until that process holds the gate of a project's store, which it does at both failpoints.
fn holds_gate(two: &Two, folder: &str, child: &mut Child) {
    let listed = two.here("", &["project", "list"]).success().result();
    let key = two.key(folder);
    let project = listed["projects"].as_array().unwrap().iter().find(|project| project["key"] == key).unwrap();
    let gate = std::path::Path::new(project["store"].as_str().unwrap()).join("gate");
    let note = format!("pid {} ", child.id());
    while !std::fs::read_to_string(&gate).unwrap().starts_with(&note) {
        assert_eq!(child.try_wait().unwrap(), None, "the command ended before it came to its failpoint");
        std::thread::yield_now();
    }
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Kills BlueLake's send after the other project has committed it and before its own has.
pub fn cut_between(two: &Two) {
    let mut child = stuck(two, "repo", "BlueLake", &SEND, "store-after-commit=1*off->pause");
    holds_gate(two, "other", &mut child);
    // Reading waits for no gate: the mail is there as soon as it is committed.
    while two.inbox_of("other", "RedForest") == 0 {
        assert_eq!(child.try_wait().unwrap(), None);
    }
    kill(child);
}

impl Two {
    fn inbox_of(&self, folder: &str, agent: &str) -> usize {
        let thread = self.at(folder, agent, &["look", "search", "Login"]).success().result();
        thread["found"].as_array().unwrap().len()
    }

    #[track_caller]
    fn check_one_of_each(&self) {
        assert_eq!(self.outbox().len(), 1, "the sender's copies");
        assert_eq!(self.inbox("other", "RedForest").len(), 1, "the recipient's copies");
        assert_eq!(self.outbox()[0]["thread"], "bd-1");
    }
}

#[test]
fn the_next_command_in_the_senders_project_completes_the_copy() {
    let next: [(&str, &[&str]); 5] = [
        ("BlueLake", &["poll"]),
        ("GreenHill", &["poll"]),
        ("GreenHill", &["reserve", "src"]),
        ("BlueLake", &["send", "--to", "GreenHill", "--thread", "bd-2", "--subject", "Other", "--body", "text"]),
        ("GreenHill", &["start"]),
    ];
    for (agent, args) in next {
        let two = Two::linked();
        cut_between(&two);
        two.here(agent, args).success();
        let copies = two.outbox().iter().filter(|copy| copy["thread"] == "bd-1").count();
        assert_eq!(copies, 1, "after {agent} {args:?}");
        two.here(agent, args).success();
        let copies = two.outbox().iter().filter(|copy| copy["thread"] == "bd-1").count();
        assert_eq!(copies, 1, "still one");
    }
}

#[test]
fn the_same_key_settles_an_interrupted_send() {
    let two = Two::linked();
    cut_between(&two);
    let first = two.here("BlueLake", &SEND).success().result();
    two.check_one_of_each();
    assert_eq!(two.here("BlueLake", &SEND).success().result(), first);
    two.check_one_of_each();
    let mut other = SEND;
    other[8] = "another text";
    two.here("BlueLake", &other).fails("IDEMPOTENCY_REUSED");
}

#[test]
fn another_request_under_the_key_of_an_interrupted_send_is_refused() {
    let two = Two::linked();
    cut_between(&two);
    let mut other = SEND;
    other[8] = "another text";
    two.here("BlueLake", &other).fails("IDEMPOTENCY_REUSED");
    two.here("BlueLake", &SEND).success();
    two.check_one_of_each();
}

#[test]
fn an_answer_that_is_faster_than_the_copy_still_finds_the_original_thread() {
    let two = Two::linked();
    cut_between(&two);
    let got = two.inbox("other", "RedForest")[0]["id"].to_string();
    two.there("RedForest", &["send", "--reply-to", &got, "--body", "done"]).success();
    let answer = two.inbox("repo", "BlueLake").remove(0);
    assert_eq!((&answer["thread"], &answer["body"]), (&"bd-1".into(), &"done".into()));
    assert_eq!(answer["reply_to"], two.outbox()[0]["id"]);
}

#[test]
fn a_receipt_that_is_faster_than_the_copy_is_not_lost() {
    let two = Two::linked();
    cut_between(&two);
    let got = two.inbox("other", "RedForest")[0]["id"].to_string();
    two.there("RedForest", &["ack", &got]).success();
    two.here("BlueLake", &["poll"]).success();
    assert_eq!(two.outbox()[0]["recipients"][0]["state"], "acked");
}

#[test]
fn a_copy_is_completed_also_when_its_sender_has_gone_meanwhile() {
    let two = Two::linked();
    cut_between(&two);
    two.bus.advance(days(8));
    two.here("GreenHill", &["start"]).success();
    let sender = two.here("GreenHill", &["whois", "BlueLake"]).success().result();
    assert_eq!(sender["agents"][0]["state"], "retired", "what relay completes is no sign of life");
    two.here("BlueLake", &["start"]).success();
    two.there("RedForest", &["start"]).success();
    two.check_one_of_each();
}

#[test]
fn a_send_cut_off_before_the_other_project_committed_has_not_happened() {
    let two = Two::linked();
    let mut child = stuck(&two, "repo", "BlueLake", &SEND, "store-before-commit=1*off->pause");
    holds_gate(&two, "other", &mut child);
    kill(child);
    two.here("GreenHill", &["poll"]).success();
    assert_eq!((two.outbox().len(), two.inbox("other", "RedForest").len()), (0, 0));
    two.here("BlueLake", &SEND).success();
    two.check_one_of_each();
}

#[test]
fn a_living_process_completes_its_own_send_and_nobody_else_does() {
    let two = Two::linked();
    let mut child = stuck(&two, "repo", "BlueLake", &SEND, "store-after-commit=1*off->pause");
    holds_gate(&two, "other", &mut child);
    two.here("GreenHill", &["poll"]).success();
    two.here("GreenHill", &["reserve", "src"]).success();
    assert_eq!(two.outbox().len(), 0, "its process still lives");
    kill(child);
    two.here("GreenHill", &["poll"]).success();
    assert_eq!(two.outbox().len(), two.inbox("other", "RedForest").len(), "both or neither");
}

#[test]
fn an_acceptance_cut_off_between_the_projects_reaches_the_asker() {
    let two = Two::new();
    two.here("BlueLake", &["link", "--target", "RedForest@other"]).success();
    let accept = ["link", "--target", "BlueLake@repo", "--accept"];
    let mut child = stuck(&two, "other", "RedForest", &accept, "store-before-commit=1*off->pause");
    holds_gate(&two, "repo", &mut child);
    kill(child);
    two.send("RedForest@other", &[]).success();
    two.there("GoldPeak", &["poll"]).success();
    let links = two.here("BlueLake", &["link", "--list"]).success().result();
    assert_eq!(links["links"][0]["state"], "accepted");
}

#[test]
fn a_request_cut_off_between_the_projects_waits_in_both() {
    let two = Two::new();
    let ask = ["link", "--target", "RedForest@other"];
    let mut child = stuck(&two, "repo", "BlueLake", &ask, "store-after-commit=1*off->pause");
    holds_gate(&two, "other", &mut child);
    while two.there("RedForest", &["link", "--list"]).success().result()["links"].as_array().unwrap().is_empty() {
        assert_eq!(child.try_wait().unwrap(), None);
    }
    kill(child);
    two.here("GreenHill", &["poll"]).success();
    for (folder, agent) in [("repo", "BlueLake"), ("other", "RedForest")] {
        let links = two.at(folder, agent, &["link", "--list"]).success().result();
        assert_eq!(links["links"].as_array().unwrap().len(), 1, "in {folder}");
        assert_eq!(links["links"][0]["state"], "requested", "in {folder}");
    }
}

#[test]
fn a_receipt_cut_off_between_the_projects_reaches_the_sender() {
    let two = Two::linked();
    two.send("RedForest@other", &["--ack-required"]).success();
    let got = two.inbox("other", "RedForest")[0]["id"].to_string();
    let mut child = stuck(&two, "other", "RedForest", &["ack", &got], "store-before-commit=1*off->pause");
    holds_gate(&two, "repo", &mut child);
    kill(child);
    two.there("GoldPeak", &["poll"]).success();
    assert_eq!(two.outbox()[0]["recipients"][0]["state"], "acked");
}
