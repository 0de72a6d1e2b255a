//! Texts that want to be markup: relay keeps them as texts or refuses them, and the page shows them as what they are.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::bus::{Bus, Run, run};
use crate::effort::summary;
use crate::page::stage::Stage;

/// How many of them talk in one thread.
const TOGETHER: usize = 25;

/// What a text is refused as, where relay does not take it.
const REFUSALS: [&str; 5] =
    ["INPUT_INVALID", "PATTERN_INVALID", "PATTERN_OUTSIDE_PROJECT", "AGENT_NAME_INVALID", "THREAD_ID_INVALID"];

fn corpus() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/page/injections.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Whether it was taken; if not, it was refused as what it is.
#[track_caller]
fn taken(run: &Run) -> bool {
    let answer = run.json();
    let code = &answer["error"]["code"];
    assert!(answer["ok"] == true || REFUSALS.iter().any(|refusal| code == refusal), "{answer}");
    answer["ok"] == true
}

/// The `index`th text says itself wherever an agent can say something. Returns where it was taken.
fn said(bus: &Bus, index: usize, text: &str) -> Vec<&'static str> {
    let agent = format!("Writer{index}");
    let mut places = Vec::new();
    // No argument holds this one; a body can also come through the standard input.
    let is_argument = !text.contains('\0');
    let flags = ["program", "model", "session", "task"].map(|flag| format!("--{flag}={text}"));
    let start = [["start"].as_slice(), &flags.each_ref().map(String::as_str)].concat();
    if is_argument && taken(&bus.relay(&agent, start)) {
        places.push("agent");
    } else {
        bus.relay(&agent, ["start"]).success();
    }
    if is_argument {
        let why = format!("--why={text}");
        places.extend(taken(&bus.relay(&agent, ["link", "--target", "Keeper", &why])).then_some("why"));
        let path = if text.starts_with('-') { format!("src/{text}") } else { text.to_owned() };
        places.extend(taken(&bus.relay(&agent, ["reserve", &path, "--shared"])).then_some("path"));
        let subject = format!("--subject={text}");
        places.extend(taken(&letter(bus, &agent, index, &subject, text)).then_some("subject"));
    }
    if !places.contains(&"subject") {
        letter(bus, &agent, index, "--subject=Plain", text).success();
    }
    places
}

fn letter(bus: &Bus, agent: &str, index: usize, subject: &str, body: &str) -> Run {
    let thread = format!("hostile-{}", index / TOGETHER);
    let mut command = bus.args(agent, ["send", "--to", "Reader", "--thread", &thread, subject, "--body", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(body.as_bytes());
    Run::new(format!("{command:?}"), &child.wait_with_output().unwrap())
}

#[test]
fn names_and_threads_that_want_to_be_markup_are_refused() {
    let bus = Bus::with(&["BlueLake"]);
    let plain = |text: &str| text.chars().all(|each| each.is_ascii_alphanumeric());
    for text in corpus().iter().filter(|text| !text.contains('\0')) {
        let name = run(bus.args("", ["start", &format!("--agent={text}")]));
        assert_eq!(taken(&name), plain(text) && text.len() <= 64 && text != "all", "{text:?} as a name");
        let thread = bus.relay("BlueLake", ["prepare", &format!("--thread={text}")]);
        assert_eq!(taken(&thread), plain(text) && text.len() <= 128, "{text:?} as a thread");
    }
}

#[test]
fn what_wants_to_be_markup_is_text_on_every_screen() {
    let bus = Bus::with(&["Keeper", "Reader"]);
    bus.relay("Keeper", ["policy", "contacts_only"]).success();
    bus.relay("Reader", ["policy", "open"]).success();
    let corpus = corpus();
    let places: Vec<_> = corpus.iter().enumerate().map(|(index, text)| said(&bus, index, text)).collect();
    let count = |place: &str| places.iter().filter(|taken| taken.contains(&place)).count();
    // Most of them get through to each place; else this would prove nothing.
    for place in ["agent", "why", "path", "subject"] {
        assert!(count(place) >= 120, "{place}: {}", count(place));
    }
    let subjects: Vec<Value> = corpus
        .iter()
        .zip(&places)
        .filter(|(_, taken)| taken.contains(&"subject"))
        .map(|(text, _)| json!(text))
        .collect();
    let found = Stage::open(&bus).plays(&["injections"], &json!({"corpus": corpus, "subjects": subjects}));
    summary(&format!("{} hostile texts looked at in {} documents", corpus.len(), found["injections"]["documents"]));
}
