//! A thread as a conversation: what was written, how far each copy has come, who takes part, and what is held for it.

use askama::Template;
use relay_core::domain::delivery::State;
use relay_core::domain::event::Number;
use relay_core::domain::name::HUMAN;
use relay_core::domain::time::Timestamp;
use relay_core::verbs::prepare::{OwedAck, ThreadView};
use relay_core::wire::v1::{AgentShape, MessageShape, RecipientShape};

use super::held::{Held, held};
use super::{filters, first, text};
use crate::web::frame::Frame;
use crate::web::markdown::{self, Markup};

#[derive(Template)]
#[template(path = "thread.html")]
struct Screen<'a> {
    frame: &'a Frame<'a>,
    view: &'a ThreadView,
    letters: Vec<Letter<'a>>,
    /// What the human was asked here and has not answered.
    waiting: Option<Question<'a>>,
    /// The message that an answer goes to.
    answered: Option<Number>,
    participants: &'a [String],
    /// Those of them who are not the human.
    others: Vec<&'a str>,
    claims: Vec<Held<'a>>,
    owed: &'a [OwedAck],
    /// The newest messages are on another page.
    is_old: bool,
}

/// As many participants and claims as stand beside a conversation.
const BESIDE: usize = 20;
/// As many messages as are seen without scrolling.
const SEEN_AT_ONCE: usize = 3;
/// As many receipts as stand under a message of a conversation; a message to everybody may have hundreds.
const RECEIPTS: usize = 5;
/// As many messages as a page of a conversation has.
pub const LETTERS: usize = 25;
/// How much of a page their texts may be, in bytes of markup, which a text can be much shorter than.
const TEXTS: usize = 56 * 1024;

/// A message that waits for the human.
struct Question<'a> {
    id: Number,
    from: &'a str,
}

/// A message as it is shown.
pub struct Letter<'a> {
    pub message: &'a MessageShape,
    pub body: Option<Markup>,
    /// Its subject is that of what stands above it.
    pub repeats: bool,
    /// The copies whose receipts are shown, those that have come least far first where not all are.
    pub copies: Vec<&'a RecipientShape>,
}

/// The agents tell who of those that hold something for it is alive.
pub fn page(frame: &Frame<'_>, view: &ThreadView, agents: &[AgentShape]) -> String {
    let letters = letters(view);
    let waiting = waiting(view, &letters);
    let participants = first(&view.participants, BESIDE);
    let others = participants.iter().map(String::as_str).filter(|name| *name != HUMAN).collect();
    let is_old = frame.is_further();
    // The newest message is not known on a page of older ones: what is written there answers none in particular.
    let newest = view.messages.last().filter(|_| !is_old).map(|newest| newest.id);
    let answered = waiting.as_ref().map(|question| question.id).or(newest);
    text(&Screen {
        frame,
        view,
        answered,
        waiting,
        letters,
        participants,
        others,
        claims: held(first(&view.reservations, BESIDE), &view.contested, agents),
        owed: first(&view.acks_owed, BESIDE),
        is_old,
    })
}

/// The messages of a page, the newest with their texts, as far as there is room.
fn letters(view: &ThreadView) -> Vec<Letter<'_>> {
    let subject = view.thread.subject.as_deref();
    let letter = |message| Letter { repeats: repeats(message, subject), ..Letter::of(message).in_short() };
    let mut letters: Vec<Letter<'_>> = view.messages.iter().map(letter).collect();
    let mut left = TEXTS;
    for letter in letters.iter_mut().rev() {
        let size = letter.body.as_ref().map_or(0, Markup::len);
        // What does not fit leaves no room for what is older.
        left = left.saturating_sub(size);
        if left == 0 {
            letter.body = None;
        }
    }
    letters
}

/// Whether a page shows all of a message.
pub fn shows(view: &ThreadView, message: &MessageShape) -> bool {
    let is_whole =
        |letter: &Letter<'_>| letter.message.id == message.id && letter.body.is_some() == message.body.is_some();
    !has_many_receipts(message) && letters(view).iter().any(is_whole)
}

/// The newest question that waits for the human: of the messages shown, and of older ones that are owed an ack.
fn waiting<'a>(view: &'a ThreadView, letters: &[Letter<'a>]) -> Option<Question<'a>> {
    let shown = letters.iter().filter(|letter| letter.waits_for_the_human());
    let shown = shown.map(|letter| Question { id: letter.message.id, from: &letter.message.from });
    let owed = view.acks_owed.iter().filter(|owed| owed.by == HUMAN);
    let owed = owed.map(|owed| Question { id: owed.message, from: &owed.to });
    shown.chain(owed).max_by_key(|question| question.id)
}

impl Screen<'_> {
    /// Whether somebody is named as the one who asked.
    fn asks(&self, name: &str) -> bool {
        self.waiting.as_ref().is_some_and(|waiting| waiting.from == name)
    }

    /// The newest message, where it stands further down than is seen at once.
    fn far(&self) -> Option<Number> {
        let newest = self.letters.last().filter(|_| self.letters.len() > SEEN_AT_ONCE);
        newest.map(|letter| letter.message.id)
    }

    /// Where a message of this thread is read: here, or on a page of its own where this one does not have it.
    fn place(&self, id: &Number) -> String {
        let is_here = self.letters.iter().any(|letter| letter.message.id == *id);
        if is_here { format!("#m{id}") } else { self.frame.one("messages", id) }
    }
}

impl<'a> Letter<'a> {
    pub fn of(message: &'a MessageShape) -> Self {
        let body = message.body.as_deref().map(markdown::render);
        Letter { message, body, repeats: false, copies: message.recipients.iter().collect() }
    }

    /// With as many receipts as a conversation has room for.
    fn in_short(mut self) -> Self {
        if has_many_receipts(self.message) {
            self.copies.sort_by_key(|copy| copy.state);
            self.copies.truncate(RECEIPTS);
        }
        self
    }

    /// How many receipts are not shown.
    pub fn more(&self) -> usize {
        self.message.recipients.len() - self.copies.len()
    }

    pub fn is_human(&self) -> bool {
        self.message.from == HUMAN
    }

    /// Whether the human owes it an acknowledgement.
    pub fn waits_for_the_human(&self) -> bool {
        let to_human = self.message.recipients.iter().any(|copy| copy.name == HUMAN);
        to_human && self.message.ack_required && self.message.acked_at.is_none()
    }
}

/// Whether a conversation leaves some of its receipts out.
fn has_many_receipts(message: &MessageShape) -> bool {
    message.recipients.len() > RECEIPTS
}

/// Whether a message is about what its thread is about.
fn repeats(message: &MessageShape, subject: Option<&str>) -> bool {
    let bare = |text: &'_ str| text.trim_start_matches("Re: ").to_owned();
    message.subject.as_deref().map(bare).is_some_and(|own| subject.map(bare) == Some(own))
}

const HELD: &str = "It waits until the recipient accepts contact";
const LAPSED: &str = "Contact was not accepted in time";

/// A step on the way of a copy.
pub struct Step {
    pub word: &'static str,
    pub class: &'static str,
    /// What the word says, for whoever points at it.
    pub means: &'static str,
    pub at: Option<Timestamp>,
}

/// How far a copy has come: the steps that it took, and the next that is waited for.
pub fn way(copy: &RecipientShape, ack_required: bool) -> Vec<Step> {
    match copy.state {
        State::Held => return vec![Step { word: "held", class: "warn", means: HELD, at: None }],
        State::Lapsed => return vec![Step { word: "lapsed", class: "bad", means: LAPSED, at: None }],
        _ => {}
    }
    let all = [
        (State::Stored, "stored", "", "It is on the bus for the recipient", None),
        (State::Surfaced, "surfaced", "not surfaced yet", "It is handed to the recipient", copy.surfaced_at),
        (State::Read, "read", "not read yet", "The recipient opens it", copy.read_at),
        (State::Acked, "acked", "not acked yet", "The recipient says that it has understood", copy.acked_at),
    ];
    let taken = all.iter().filter(|(state, ..)| copy.state >= *state);
    let mut way: Vec<Step> =
        taken.map(|(_, word, _, means, at)| Step { word, class: "done", means, at: *at }).collect();
    let ahead = all.iter().find(|(state, ..)| copy.state < *state && (*state != State::Acked || ack_required));
    way.extend(ahead.map(|(_, _, word, means, _)| Step { word, class: "ahead", means, at: None }));
    way
}
