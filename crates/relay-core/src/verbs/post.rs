//! Posting one message into a project's store: the thread, the recipients, the event. `send` posts for its caller,
//! relay posts its own notices.

use serde::{Deserialize, Serialize};

use super::recipients::{self, LeftOut, Place, Roll, THREAD_GROUP};
use super::writing::Writing;
use super::{link, send};
use crate::domain::contact::{GivenUp, LinkState};
use crate::domain::delivery::{Line, State};
use crate::domain::event::{Happened, Number, Recipient};
use crate::domain::limits::{DUPLICATE_WITHIN, HELD_MAX};
use crate::domain::message::{Importance, Message};
use crate::domain::name::{Address, Party, ThreadId};
use crate::domain::routing::Verdict;
use crate::domain::secret;
use crate::domain::shell;
use crate::domain::thread::Thread;
use crate::domain::time::Span;
use crate::domain::topic;
use crate::domain::view::Viewer;
use crate::error::Code;
use crate::store::Result;
use crate::wire::v1::{RecipientShape, SignalCode};

/// A message before it has a number.
#[derive(Debug, Clone)]
pub(super) struct Draft<'a> {
    pub wanted: Vec<(Address, Line)>,
    pub thread: Option<ThreadId>,
    pub reply_to: Option<Number>,
    pub subject: Option<&'a str>,
    pub body: &'a str,
    pub importance: Importance,
    pub ack_within: Option<Span>,
    pub hold: bool,
    /// Groups ask for contact where that is accepted at once.
    pub recover: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Posted {
    pub id: Number,
    pub thread: String,
    pub recipients: Vec<RecipientShape>,
}

/// Where a message goes.
struct Position {
    parent: Option<Message>,
    thread: Option<Thread>,
    /// The wished id, when the thread does not exist yet.
    wished: Option<ThreadId>,
}

pub(super) fn post(writing: &mut Writing<'_>, draft: &Draft<'_>) -> Result<(Posted, Vec<LeftOut>)> {
    let position = position(writing, draft)?;
    let subject = subject(&position, draft)?;
    let place = Place { thread: position.thread.as_ref().map(|thread| &thread.id), parent: position.parent.as_ref() };
    let mut roll = recipients::call(writing, &draft.wanted, &place)?;
    if draft.hold {
        ask_for_contact(writing, &mut roll)?;
    }
    if let Some(refusal) = recipients::refusal(writing, &roll)? {
        return Err(refusal);
    }
    leave_out(writing, draft, &mut roll)?;
    if roll.found.is_empty() {
        return Err(nobody(&roll));
    }
    signals(writing, draft, &position, &subject, &roll)?;
    let posted = append(writing, draft, &position, &subject, &roll)?;
    Ok((posted, roll.left_out))
}

fn position(writing: &Writing<'_>, draft: &Draft<'_>) -> Result<Position> {
    if let Some(id) = draft.reply_to {
        let parent = visible(writing, id)?;
        if let Some(named) = &draft.thread
            && !named.same_as(&parent.thread)
        {
            return Err(send::mismatch(id, &parent.thread, named));
        }
        let thread = self::thread(writing, &parent.thread)?;
        return Ok(Position { parent: Some(parent), thread, wished: None });
    }
    let thread = match &draft.thread {
        Some(id) => self::thread(writing, id)?,
        None => None,
    };
    let wished = draft.thread.clone().filter(|_| thread.is_none());
    Ok(Position { parent: None, thread, wished })
}

/// A thread as the sender knows it: the subject of a message that it does not see is none for it.
pub(super) fn thread(writing: &Writing<'_>, id: &ThreadId) -> Result<Option<Thread>> {
    let Some(thread) = writing.tx.thread(id)? else {
        return Ok(None);
    };
    let first = thread.first_message.map(|first| seen(writing, first)).transpose()?.flatten();
    let subject = thread.subject.clone().filter(|_| first.is_some());
    Ok(Some(Thread { subject, ..thread }))
}

fn seen(writing: &Writing<'_>, id: Number) -> Result<Option<Message>> {
    let viewer = match writing.actor.party() {
        Party::Human | Party::Relay => Viewer::Human,
        party => Viewer::Agent(party),
    };
    Ok(writing.tx.envelope(id)?.filter(|message| viewer.sees(message)))
}

/// A message that the sender sees; what it does not see does not exist for it.
pub(super) fn visible(writing: &Writing<'_>, id: Number) -> Result<Message> {
    let found = seen(writing, id)?;
    found.ok_or_else(|| Code::MessageNotFound.refuse(format!("there is no message #{id} for you here")).with("id", id))
}

fn subject(position: &Position, draft: &Draft<'_>) -> Result<String> {
    if let Some(subject) = draft.subject {
        return Ok(subject.to_owned());
    }
    let inherited = position.thread.as_ref().and_then(|thread| thread.subject.clone());
    match (&position.parent, inherited) {
        (Some(parent), inherited) => {
            // Where the subject was erased, the number still says what is meant.
            let base = parent.subject.clone().or(inherited).unwrap_or_else(|| format!("#{}", parent.id));
            Ok(if topic::is_reply(&base) { base } else { format!("Re: {base}") })
        }
        (None, Some(inherited)) => Ok(inherited),
        (None, None) if position.thread.as_ref().is_some_and(|thread| thread.messages > 0) => {
            Err(Code::InputInvalid.refuse("the subject of this thread was erased, or is not for you; give one"))
        }
        (None, None) => Err(Code::InputInvalid.refuse("a message that opens a thread needs a subject")),
    }
}

/// `--hold`: whoever needs to be asked is asked; whoever consents at once is reached at once.
fn ask_for_contact(writing: &mut Writing<'_>, roll: &mut Roll) -> Result<()> {
    for found in &mut roll.found {
        if found.verdict == Verdict::Required {
            let link = link::request(writing, &found.party, None, None)?;
            found.verdict =
                if link.state(writing.ctx.now) == LinkState::Accepted { Verdict::Deliver } else { Verdict::Pending };
        }
        if found.verdict == Verdict::Pending {
            let waiting = writing.tx.held(&writing.actor.party(), &found.party)?.len();
            if waiting >= HELD_MAX {
                let name = recipients::qualified(writing, found.party.to_string());
                return Err(Code::InboxFull
                    .refuse(format!("{waiting} messages wait for the consent of {name} already"))
                    .with("name", name));
            }
            found.verdict = Verdict::Deliver;
            found.consents_when_asked = false;
        } else {
            found.consents_when_asked = true;
        }
    }
    Ok(())
}

/// Takes out of the roll whoever a group cannot reach, and says why.
fn leave_out(writing: &mut Writing<'_>, draft: &Draft<'_>, roll: &mut Roll) -> Result<()> {
    let mut kept = Vec::new();
    for mut found in std::mem::take(&mut roll.found) {
        if found.in_group && found.verdict == Verdict::Required && found.consents_when_asked && draft.recover {
            link::request(writing, &found.party, None, None)?;
            found.verdict = Verdict::Deliver;
        }
        let reason = match found.verdict {
            Verdict::Deliver if found.in_group && found.inbox_full => "inbox full",
            Verdict::Deliver => {
                kept.push(found);
                continue;
            }
            Verdict::Barred(barrier) => barrier.as_str(),
            Verdict::Pending => "asked for contact, not answered",
            Verdict::Required => "not linked",
        };
        roll.left_out.push(LeftOut { name: found.party.to_string(), reason: reason.to_owned() });
    }
    roll.found = kept;
    Ok(())
}

fn nobody(roll: &Roll) -> crate::error::Refusal {
    let left_out = serde_json::to_value(&roll.left_out).unwrap_or_default();
    Code::RecipientNotFound.refuse("the group has nobody whom this message can reach").with("left_out", left_out)
}

fn signals(
    writing: &mut Writing<'_>,
    draft: &Draft<'_>,
    position: &Position,
    subject: &str,
    roll: &Roll,
) -> Result<()> {
    let opens = position.parent.is_none() && draft.thread.is_none();
    let to = to_flags(writing, draft, roll);
    place_signals(writing, position.thread.as_ref(), draft.subject, opens, &to)?;
    text_signals(writing, subject, draft.body)
}

/// What is to be said about where a message stands; `to` has the flags that reach its recipients again.
pub(super) fn place_signals(
    writing: &mut Writing<'_>,
    thread: Option<&Thread>,
    given: Option<&str>,
    opens: bool,
    to: &str,
) -> Result<()> {
    if let (Some(thread), Some(given)) = (thread, given)
        && let Some(topic) = &thread.subject
        && topic::drifts(given, topic)
    {
        writing.signal(
            SignalCode::TopicDrift,
            format!(
                "the subject shares no word with that of {}; a new topic belongs in a thread of its own",
                thread.id
            ),
        );
        writing.next.push(format!("relay send {to} --thread NEW_THREAD --subject SUBJECT --body -"));
    }
    if opens { off_thread(writing, to) } else { Ok(()) }
}

/// What is to be said about a text, wherever it goes.
pub(super) fn text_signals(writing: &mut Writing<'_>, subject: &str, body: &str) -> Result<()> {
    let now = writing.ctx.now;
    let since = now.minus(DUPLICATE_WITHIN);
    if let Some(earlier) = writing.tx.same_text(&writing.actor.party(), subject, body, since, now)? {
        let text = format!("you sent the same text as #{earlier} within a minute");
        writing.signal_about(SignalCode::LikelyDuplicate, earlier, text);
    }
    if let Some(kind) = secret::suspected(body).or_else(|| secret::suspected(subject)) {
        writing.signal(
            SignalCode::SecretSuspected,
            format!("the text seems to hold a credential ({kind}); everyone in the project can read it"),
        );
    }
    Ok(())
}

/// A message outside every thread, from somebody who has one.
fn off_thread(writing: &mut Writing<'_>, to: &str) -> Result<()> {
    let Some(agent) = writing.actor.agent() else {
        return Ok(());
    };
    let now = writing.ctx.now;
    let prepared = agent.thread.clone();
    let claimed = writing
        .tx
        .claims_of(&agent.name)?
        .into_iter()
        .filter(|claim| claim.is_live(now))
        .find_map(|claim| claim.reason);
    if let Some(home) = prepared.or(claimed) {
        writing.signal(SignalCode::OffThread, format!("this opened a new thread; your work stands in {home}"));
        // A thread without a message, or whose first message the sender does not see, has no subject to inherit.
        let has_subject = thread(writing, &home)?.is_some_and(|thread| thread.subject.is_some());
        let subject = if has_subject { "" } else { " --subject SUBJECT" };
        let home = shell::quote(home.as_str());
        writing.next.push(format!("relay send {to} --thread {home}{subject} --body -"));
    }
    Ok(())
}

/// The recipients as they were named; those of a thread by their own names, since another thread has other members. A
/// subject is free text, which a remembered answer does not hold.
fn to_flags(writing: &Writing<'_>, draft: &Draft<'_>, roll: &Roll) -> String {
    let mut named: Vec<(String, Line)> = Vec::new();
    for line in [Line::To, Line::Cc, Line::Bcc] {
        let wanted = draft.wanted.iter().filter(|(_, wanted)| *wanted == line);
        let (groups, mut names): (Vec<String>, Vec<String>) =
            wanted.map(|(address, _)| address.to_string()).partition(|name| name.starts_with('@'));
        if groups.iter().any(|group| group == THREAD_GROUP) {
            let members = roll.found.iter().filter(|found| found.in_group && found.line == line);
            names.extend(members.map(|found| found.party.to_string()));
            if names.len() > writing.ctx.limits.recipients {
                names = vec!["NAMES".to_owned()];
            }
        } else {
            names.extend(groups);
        }
        named.extend(names.into_iter().map(|name| (name, line)));
    }
    flags(named.into_iter())
}

/// The flags of `send` that name these recipients.
pub(super) fn flags(named: impl Iterator<Item = (String, Line)>) -> String {
    let named: Vec<(String, Line)> = named.collect();
    let mut flags: Vec<String> = Vec::new();
    for (flag, line) in [("--to", Line::To), ("--cc", Line::Cc), ("--bcc", Line::Bcc)] {
        let names: Vec<&str> = named.iter().filter(|(_, on)| *on == line).map(|(name, _)| name.as_str()).collect();
        if !names.is_empty() {
            flags.extend([flag.to_owned(), names.join(",")]);
        }
    }
    shell::line(&flags)
}

fn append(
    writing: &mut Writing<'_>,
    draft: &Draft<'_>,
    position: &Position,
    subject: &str,
    roll: &Roll,
) -> Result<Posted> {
    let thread = match (&position.thread, &position.wished) {
        (Some(thread), _) => thread.id.clone(),
        (None, Some(wished)) => wished.clone(),
        (None, None) => fresh_thread(writing)?,
    };
    let recipients: Vec<Recipient> = roll
        .found
        .iter()
        .map(|found| Recipient {
            party: found.party.clone(),
            line: found.line,
            held: draft.hold && !found.consents_when_asked,
        })
        .collect();
    let texts = vec![writing.text("subject", subject), writing.text("body", draft.body)];
    let what = Happened::MessageSent {
        thread: thread.clone(),
        from: writing.actor.party(),
        recipients: recipients.clone(),
        subject: texts[0].hash(),
        body: texts[1].hash(),
        importance: draft.importance,
        ack_within_ms: draft.ack_within.map(Span::as_millis),
        reply_to: draft.reply_to,
        twin: None,
    };
    let id = writing.append(what, texts)?;
    Ok(Posted { id, thread: thread.to_string(), recipients: recipients.iter().map(shape).collect() })
}

pub(super) fn shape(recipient: &Recipient) -> RecipientShape {
    RecipientShape {
        name: recipient.party.to_string(),
        kind: recipient.line,
        state: if recipient.held { State::Held } else { State::Stored },
        surfaced_at: None,
        read_at: None,
        acked_at: None,
    }
}

/// `t-N`, after the number that the message is about to get.
pub(super) fn fresh_thread(writing: &Writing<'_>) -> Result<ThreadId> {
    let number = writing.tx.tip()?.number + 1;
    let mut id = format!("t-{number}");
    for attempt in 2.. {
        let thread = ThreadId::parse(&id)?;
        if writing.tx.thread(&thread)?.is_none() {
            return Ok(thread);
        }
        id = format!("t-{number}-{attempt}");
    }
    Err(Code::Internal.refuse("no free thread id"))
}

/// Tells the actor of its held mail whose consent was refused, withdrawn or never came.
pub(super) fn settle_held(writing: &mut Writing<'_>) -> Result<()> {
    let me = writing.actor.party();
    if matches!(me, Party::Relay) {
        return Ok(());
    }
    for (message, recipient) in writing.tx.held_of(&me)? {
        let link = writing.tx.link(&me, &recipient)?;
        if let Some(why) = GivenUp::found(link.as_ref(), &recipient, writing.ctx.now) {
            give_up(writing, message, &me, &recipient, why)?;
        }
    }
    Ok(())
}

/// Marks a held copy as never delivered and tells its sender.
pub(super) fn give_up(
    writing: &mut Writing<'_>,
    message: Number,
    sender: &Party,
    recipient: &Party,
    why: GivenUp,
) -> Result<()> {
    let blocked = why.is_decided();
    writing.append(Happened::HeldLapsed { message, recipient: recipient.clone(), blocked }, Vec::new())?;
    if matches!(sender, Party::Elsewhere(..)) {
        // Its own project has a copy of the link and tells it there.
        return Ok(());
    }
    let Some(held) = writing.tx.envelope(message)? else {
        return Ok(());
    };
    let body = format!("{}. Message #{message} was not delivered to {recipient}.", why.tell(recipient));
    // A notice about a blind copy is as blind as the copy.
    let line = held
        .delivery_to(recipient)
        .map_or(Line::To, |delivery| if delivery.line == Line::Bcc { Line::Bcc } else { Line::To });
    let subject = format!("Not delivered: #{message}");
    let (thread, reply_to) = (held.thread, Some(held.id));
    notice(writing, &Notice { thread, reply_to, to: sender, line, subject: &subject, body: &body })
}

/// A message from relay itself.
pub(super) struct Notice<'a> {
    pub thread: ThreadId,
    pub reply_to: Option<Number>,
    pub to: &'a Party,
    pub line: Line,
    pub subject: &'a str,
    pub body: &'a str,
}

pub(super) fn notice(writing: &mut Writing<'_>, notice: &Notice<'_>) -> Result<()> {
    let texts = vec![writing.text("subject", notice.subject), writing.text("body", notice.body)];
    let what = Happened::MessageSent {
        thread: notice.thread.clone(),
        from: Party::Relay,
        recipients: vec![Recipient { party: notice.to.clone(), line: notice.line, held: false }],
        subject: texts[0].hash(),
        body: texts[1].hash(),
        importance: Importance::High,
        ack_within_ms: None,
        reply_to: notice.reply_to,
        twin: None,
    };
    writing.append_as(&Party::Relay, what, texts)?;
    Ok(())
}
