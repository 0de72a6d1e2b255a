//! A conversation: what is said in it, how far each copy has come, and how it is answered.

use relay_core::domain::delivery::State;
use relay_core::verbs::prepare::{OwedAck, ThreadView};
use relay_core::wire::v1::MessageShape;

use super::super::samples::{self, PLAIN, framed};
use super::super::{message, thread, write};
use super::screens;
use crate::web::frame::Screen;

#[test]
fn a_conversation_weighs_little_whatever_is_said_in_it_and_to_how_many() {
    let names: Vec<String> = (0..50).map(|n| format!("Agent{n}OfALongName")).collect();
    let to: Vec<(&str, State)> = names.iter().map(|name| (name.as_str(), State::Read)).collect();
    let letter = |id| MessageShape { body: Some("*a* ".repeat(900)), ..samples::message(id, "RedForest", &to, &PLAIN) };
    let claim = |id| samples::claim(id, "src/a/long/path/to/a/file.rs", "RedForest", true, &PLAIN);
    let view = ThreadView {
        messages: (1..=thread::LETTERS as u64).map(letter).collect(),
        participants: names.clone(),
        reservations: (100..300).map(claim).collect(),
        ..samples::thread(&PLAIN)
    };
    let page = framed(Screen::Threads, "/t/1", None, |frame| thread::page(frame, &view, &[]));
    assert!(page.len() < 160_000, "{}", page.len());
    let texts = page.matches("data-body").count();
    assert!((1..thread::LETTERS).contains(&texts) && page.contains("Read its text"), "{texts}");
    // What is left out is read on a page of its own, and what is there is not.
    let (first, last) = (&view.messages[0], &view.messages[thread::LETTERS - 1]);
    let few = |message: &MessageShape| MessageShape { recipients: Vec::new(), ..message.clone() };
    assert!(thread::shows(&view, &few(last)) && !thread::shows(&view, &few(first)) && !thread::shows(&view, last));
}

#[test]
fn a_reply_goes_to_whoever_asked_and_acknowledges_it() {
    let view = samples::thread(&PLAIN);
    let page = framed(Screen::Threads, "/t/1", None, |frame| thread::page(frame, &view, &[]));
    assert!(page.contains("name=\"reply_to\" value=\"45\"") && page.contains("name=\"ack\" value=\"45\""));
    assert!(page.contains("<option value=\"RedForest\">RedForest, who asked in #45"));
    let mut settled = view;
    settled.messages.pop();
    let page = framed(Screen::Threads, "/t/1", None, |frame| thread::page(frame, &settled, &[]));
    assert!(page.contains("name=\"reply_to\" value=\"44\"") && !page.contains("name=\"ack\""));
}

#[test]
fn a_question_of_an_older_page_is_answered_and_found() {
    let mut view = samples::thread(&PLAIN);
    view.messages.pop();
    view.acks_owed.push(OwedAck { message: 9, by: "human".to_owned(), to: "GreenHill".to_owned(), overdue: false });
    let page = framed(Screen::Threads, "/t/1", None, |frame| thread::page(frame, &view, &[]));
    assert!(page.contains("Answer #9") && page.contains("name=\"reply_to\" value=\"9\""), "{page}");
    assert!(page.contains("name=\"ack\" value=\"9\"") && page.contains("<option value=\"GreenHill\">GreenHill, who"));
    // What this page has is found on it, and the rest on a page of its own.
    assert!(page.contains("href=\"#m41\"") && page.contains("href=\"/p/repo-1a2b3c4d/messages/9\""));
}

#[test]
fn what_changes_in_a_conversation_is_live() {
    let page = framed(Screen::Threads, "/t/1", None, |frame| thread::page(frame, &samples::thread(&PLAIN), &[]));
    for id in ["standing", "letters", "reply", "with", "held", "owed"] {
        assert!(page.contains(&format!(" id=\"{id}\" data-live")), "{id}");
    }
}

#[test]
fn what_is_typed_for_one_letter_is_not_kept_for_another() {
    let key = |draft: write::Draft| {
        let page =
            framed(Screen::Write, "/w", None, |frame| write::page(frame, &draft, &write::Beside::default(), None));
        page.split("rows=\"8\" required data-draft=\"")
            .nth(1)
            .and_then(|rest| rest.split('"').next())
            .map(str::to_owned)
    };
    let to = |name: &str| write::Draft { to: vec![name.to_owned()], ..write::Draft::default() };
    let thread = write::Draft { thread: "bd-1".to_owned(), ..write::Draft::default() };
    let answer = write::Draft { reply_to: Some(7), ..write::Draft::default() };
    let keys = [to("BlueLake"), to("RedForest"), thread, answer, write::Draft::default()].map(key);
    let distinct: std::collections::HashSet<_> = keys.iter().flatten().collect();
    assert_eq!(distinct.len(), keys.len(), "{keys:?}");
}

#[test]
fn every_message_can_be_answered_and_no_answer_goes_to_another_unsaid() {
    let mut view = samples::thread(&PLAIN);
    view.messages.pop();
    let page = |path: &str| framed(Screen::Threads, path, None, |frame| thread::page(frame, &view, &[]));
    for id in [41, 42, 43, 44] {
        assert!(page("/t/1").contains(&format!("/write?reply_to={id}&amp;thread=bd-101\"")), "{id}");
    }
    assert!(page("/t/1").contains("answers #44, the newest") && !page("/t/1").contains("name=\"subject\""));
    let old = page("/t/1?before=50");
    assert!(!old.contains("name=\"reply_to\"") && !old.contains("the newest</span>"));
    assert!(old.contains("name=\"subject\" required maxlength=\"200\" value=\"Sessions expire too early\""));
}

#[test]
fn a_long_conversation_leads_to_its_end() {
    let mut view = samples::thread(&PLAIN);
    let page = |view: &ThreadView| framed(Screen::Threads, "/t/1", None, |frame| thread::page(frame, view, &[]));
    assert!(page(&view).contains("<a href=\"#m45\">To the newest</a>") && page(&view).contains("id=\"m45\""));
    view.messages.truncate(2);
    assert!(!page(&view).contains("To the newest"));
}

#[test]
fn a_contested_claim_is_marked_beside_its_conversation() {
    let mut view = samples::thread(&PLAIN);
    let held = |view: &ThreadView| {
        let page = framed(Screen::Threads, "/t/1", None, |frame| thread::page(frame, view, &[]));
        page.split("id=\"held\"").nth(1).and_then(|rest| rest.split("</section>").next()).unwrap_or_default().to_owned()
    };
    assert!(held(&view).contains(">contested<"));
    view.contested.clear();
    assert!(held(&view).contains(PLAIN.path) && !held(&view).contains(">contested<"));
}

#[test]
fn what_is_owed_leads_to_the_message_wherever_it_stands() {
    for (name, page) in screens(&PLAIN).into_iter().filter(|(name, _)| ["now", "agent", "search"].contains(name)) {
        assert!(!page.contains("#m4"), "{name} leads to a page of the thread, which may not have it");
    }
}

#[test]
fn a_copy_says_how_far_it_has_come() {
    let check = |state, ack_required, expected: &[(&str, &str)]| {
        let message = samples::message(1, "A", &[("B", state)], &PLAIN);
        let way = thread::way(&message.recipients[0], ack_required);
        let steps: Vec<_> = way.iter().map(|step| (step.word, step.class)).collect();
        assert_eq!(steps, expected);
    };
    let (stored, surfaced, read) = (("stored", "done"), ("surfaced", "done"), ("read", "done"));
    check(State::Held, true, &[("held", "warn")]);
    check(State::Lapsed, true, &[("lapsed", "bad")]);
    check(State::Stored, true, &[stored, ("not surfaced yet", "ahead")]);
    check(State::Surfaced, true, &[stored, surfaced, ("not read yet", "ahead")]);
    check(State::Read, true, &[stored, surfaced, read, ("not acked yet", "ahead")]);
    check(State::Read, false, &[stored, surfaced, read]);
    check(State::Acked, true, &[stored, surfaced, read, ("acked", "done")]);
}

#[test]
fn of_many_receipts_a_conversation_shows_those_that_are_waited_for_and_the_message_all() {
    let names: Vec<String> = (0..300).map(|n| format!("Agent{n}")).collect();
    let copies =
        names.iter().map(|name| (name.as_str(), if name == "Agent299" { State::Stored } else { State::Acked }));
    let mut view = samples::thread(&PLAIN);
    view.messages = vec![samples::message(44, "BlueLake", &copies.collect::<Vec<_>>(), &PLAIN)];
    let page = framed(Screen::Threads, "/t/1", None, |frame| thread::page(frame, &view, &[]));
    assert!(page.contains("and 295 more") && page.contains("not surfaced yet"), "{page}");
    let whole = framed(Screen::Threads, "/m/44", None, |frame| message::page(frame, &view.messages[0]));
    assert!(!whole.contains("295 more") && names.iter().all(|name| whole.contains(&format!("/{name}\""))));
}

#[test]
fn whoever_writes_in_a_thread_that_is_done_is_told_that_it_opens_again() {
    const SAID: &str = "This thread is done; writing reopens it.";
    let mut view = samples::thread(&PLAIN);
    let page = |view: &ThreadView| framed(Screen::Threads, "/t/1", None, |frame| thread::page(frame, view, &[]));
    assert!(!page(&view).contains(SAID));
    view.thread.done = true;
    assert!(page(&view).contains(SAID));
    let written = |reopens| {
        let beside = write::Beside { reopens, ..write::Beside::default() };
        framed(Screen::Write, "/w", None, |frame| write::page(frame, &write::Draft::default(), &beside, None))
    };
    assert!(written(true).contains(SAID) && !written(false).contains(SAID));
}
