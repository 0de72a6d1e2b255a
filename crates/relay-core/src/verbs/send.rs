//! `send`: into a thread or as a reply; all recipients or none.

use serde::{Deserialize, Serialize};

use super::actor;
use super::crossing::{self, Task};
use super::link;
use super::post::{self, Draft, Posted};
use super::recipients::{self, LeftOut};
use super::writing::{self, Told, Who, Writing, write, write_as};
use super::{Ctx, Done, Outcome as Any, Request, recover};
use crate::domain::agent::Agent;
use crate::domain::delivery::Line;
use crate::domain::event::{Happened, Number, Recipient, Twin};
use crate::domain::limits::{ACK_WITHIN_DEFAULT, Limits};
use crate::domain::message::Importance;
use crate::domain::name::{Address, AgentName, HUMAN, Party, ProjectKey, ThreadId};
use crate::domain::time::Span;
use crate::error::{Code, Refusal};
use crate::store::{Crossing, Result};
use crate::wire::v1::Signal;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Input {
    pub to: Vec<Address>,
    pub cc: Vec<Address>,
    pub bcc: Vec<Address>,
    pub subject: Option<String>,
    pub body: String,
    pub thread: Option<ThreadId>,
    pub reply_to: Option<Number>,
    pub importance: Importance,
    pub ack_required: bool,
    pub ack_within: Option<Span>,
    pub hold: bool,
    pub no_recover: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    pub message: Posted,
    /// Members of a group whom the message did not reach, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

/// A message on its way into another project, with what this project decided about it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Outgoing {
    input: Input,
    thread: ThreadId,
    subject: String,
    /// By the names that they have there.
    wanted: Vec<(Address, Line)>,
}

pub fn run(ctx: &Ctx<'_>, input: &Input) -> Result<Done> {
    check(input, ctx.limits)?;
    let request = Request::Send(input.clone());
    let told = recover::healing(ctx, &request, !input.no_recover, |ctx, recovered| attempt(ctx, input, recovered))?;
    Ok(Done::new("send", told, Any::Send))
}

fn attempt(ctx: &Ctx<'_>, input: &Input, recovered: Option<Signal>) -> Result<Told<Outcome>> {
    let destination = destination(ctx, input)?;
    check_once(input)?;
    match destination {
        Some(project) => send_across(ctx, input, &project, recovered),
        None => write(ctx, "send", input, |writing| {
            writing.signals.extend(recovered);
            let wanted = wanted(writing, input)?;
            not_oneself(writing, &wanted)?;
            let draft = draft(input, wanted);
            let (message, left_out) = post::post(writing, &draft)?;
            Ok(Outcome { message, left_out })
        }),
    }
}

/// What can be said without looking at the store.
fn check(input: &Input, limits: &Limits) -> Result<()> {
    let invalid = |why: String| Err(Code::InputInvalid.refuse(why));
    if input.body.is_empty() {
        return invalid("the body is empty".to_owned());
    }
    if input.body.len() > limits.body_bytes {
        return Err(Code::BodyTooLarge
            .refuse(format!("the body has {} bytes; at most {} are taken", input.body.len(), limits.body_bytes))
            .with("bytes", input.body.len())
            .with("limit", limits.body_bytes));
    }
    if let Some(subject) = &input.subject {
        check_subject(subject, limits)?;
    }
    if input.ack_within.is_some_and(|within| within <= Span::millis(0)) {
        return invalid("the time within which an ack is asked for must be longer than nothing".to_owned());
    }
    if named(input).next().is_none() && input.reply_to.is_none() {
        return invalid("nobody is named; it can go to a NAME, to @thread or to @all".to_owned());
    }
    check_names(input, limits)
}

fn check_subject(subject: &str, limits: &Limits) -> Result<()> {
    let count = subject.chars().count();
    let why = if subject.trim().is_empty() {
        "the subject is empty".to_owned()
    } else if count > limits.subject_chars {
        format!("the subject has {count} characters; at most {} are taken", limits.subject_chars)
    } else if subject.chars().any(char::is_control) {
        "the subject has a control character; it is one line of text".to_owned()
    } else {
        return Ok(());
    };
    Err(Code::InputInvalid.refuse(why))
}

fn check_names(input: &Input, limits: &Limits) -> Result<()> {
    let count = named(input).filter(|(address, _)| !recipients::is_group(address)).count();
    if count > limits.recipients {
        return Err(Code::InputInvalid.refuse(format!(
            "{count} recipients are named; at most {} are taken, and @thread or @all reach more",
            limits.recipients
        )));
    }
    Ok(())
}

/// Everybody is named once. All are of one project by now, however each one's project was written.
fn check_once(input: &Input) -> Result<()> {
    let names: Vec<&str> = named(input)
        .filter(|(address, _)| !recipients::is_group(address))
        .map(|(address, _)| address.name.as_str())
        .collect();
    for (index, name) in names.iter().enumerate() {
        if names[..index].iter().any(|earlier| earlier.eq_ignore_ascii_case(name)) {
            return Err(Code::InputInvalid.refuse(format!("{name} is named twice")).with("name", *name));
        }
    }
    Ok(())
}

fn named(input: &Input) -> impl Iterator<Item = (&Address, Line)> {
    let line = |line| move |address| (address, line);
    input
        .to
        .iter()
        .map(line(Line::To))
        .chain(input.cc.iter().map(line(Line::Cc)))
        .chain(input.bcc.iter().map(line(Line::Bcc)))
}

/// The other project that a send goes to; one send names recipients of one project.
fn destination(ctx: &Ctx<'_>, input: &Input) -> Result<Option<ProjectKey>> {
    let mut projects: Vec<Option<ProjectKey>> = Vec::new();
    for (address, _) in named(input) {
        let project = crossing::other_project(ctx, address)?;
        if !projects.contains(&project) {
            projects.push(project);
        }
    }
    if projects.is_empty() {
        return reply_destination(ctx, input);
    }
    if projects.len() > 1 {
        return Err(Code::InputInvalid.refuse("one send names recipients of one project; send once for each project"));
    }
    Ok(projects.remove(0))
}

/// A bare reply to somebody of another project goes there.
fn reply_destination(ctx: &Ctx<'_>, input: &Input) -> Result<Option<ProjectKey>> {
    let Some(id) = input.reply_to else {
        return Ok(None);
    };
    let facts = ctx.store.read()?;
    let Some(parent) = facts.envelope(id)? else {
        return Ok(None);
    };
    let me = actor::meant(ctx, &*facts)?;
    Ok(match parent.from {
        Party::Elsewhere(_, project) => Some(project),
        // One's own message goes on to where it went.
        Party::Agent(sender) if me.is_some_and(|me| me.same_as(&sender)) => parent.twin.map(|twin| twin.project),
        _ => None,
    })
}

fn draft(input: &Input, wanted: Vec<(Address, Line)>) -> Draft<'_> {
    Draft {
        wanted,
        thread: input.thread.clone(),
        reply_to: input.reply_to,
        subject: input.subject.as_deref(),
        body: &input.body,
        importance: input.importance,
        ack_within: ack_within(input),
        hold: input.hold,
        recover: !input.no_recover,
    }
}

fn not_oneself(writing: &Writing<'_>, wanted: &[(Address, Line)]) -> Result<()> {
    let me = writing.actor.party();
    if wanted.iter().any(|(address, _)| {
        me.agent().is_some_and(|name| name.as_str().eq_ignore_ascii_case(&address.name))
            || (me == Party::Human && address.is_human())
    }) {
        return Err(Code::InputInvalid.refuse(format!("{me} is the sender; a message to oneself reaches nobody")));
    }
    Ok(())
}

/// Whom a message is for, by the names that they have in their own project.
fn wanted(writing: &Writing<'_>, input: &Input) -> Result<Vec<(Address, Line)>> {
    let there = |(address, line): (&Address, Line)| (Address { project: None, ..address.clone() }, line);
    let wanted: Vec<(Address, Line)> = named(input).map(there).collect();
    if wanted.is_empty() { answered(writing, input.reply_to) } else { Ok(wanted) }
}

fn ack_within(input: &Input) -> Option<Span> {
    input.ack_within.or(input.ack_required.then_some(ACK_WITHIN_DEFAULT))
}

/// A reply that names nobody answers the parent's sender or, for one's own message, its recipients.
fn answered(writing: &Writing<'_>, reply_to: Option<Number>) -> Result<Vec<(Address, Line)>> {
    let Some(id) = reply_to else {
        return Ok(Vec::new());
    };
    let parent = post::visible(writing, id)?;
    let address = |party: &Party| Address { project: None, ..Address::parse(&party.to_string()) };
    if parent.from != writing.actor.party() {
        return Ok(vec![(address(&parent.from), Line::To)]);
    }
    Ok(parent.deliveries.iter().map(|delivery| (address(&delivery.recipient), delivery.line)).collect())
}

/// The recipient's project decides and commits first; then the sender's project keeps its copy.
fn send_across(ctx: &Ctx<'_>, input: &Input, project: &ProjectKey, recovered: Option<Signal>) -> Result<Told<Outcome>> {
    if named(input).any(|(address, _)| recipients::is_group(address)) {
        return Err(
            Code::InputInvalid.refuse("@thread and @all stay inside the project; name the agents of the other one")
        );
    }
    no_human(input, project)?;
    let Some((agent, outgoing)) = note_leaving(ctx, input, project)? else {
        return writing::again(ctx, "send", input);
    };
    let name = agent.name.clone();
    let posted = crossing::as_guest(ctx, project, &ctx.key.text, |guest| {
        post_as_guest((ctx, &name), (guest, project), &outgoing)
    });
    let posted = posted.map_err(|refusal| crossing::refused_there(ctx, &name, refusal))?;
    keep_copy(ctx, Who::LetThrough(agent), (&name, project), &outgoing, &posted, recovered)
        .map_err(|refusal| crossing::half_done(ctx, project, &refusal))
}

/// The human is one for all projects and is written to in one's own.
fn no_human(input: &Input, project: &ProjectKey) -> Result<()> {
    let Some((address, _)) = named(input).find(|(address, _)| address.name.eq_ignore_ascii_case(HUMAN)) else {
        return Ok(());
    };
    let row =
        serde_json::json!({"name": address.to_string(), "code": Code::RecipientNotFound.as_str(), "nearest": [HUMAN]});
    Err(Code::RecipientNotFound
        .refuse(format!(
            "the human is no agent of {project}, so {address} cannot be reached; write to {HUMAN}, without a project"
        ))
        .with("recipients", serde_json::json!([row]))
        .with("nearest", serde_json::json!([HUMAN])))
}

/// Checks what this project knows of the message and notes that it is on its way; none when it was answered before.
fn note_leaving(ctx: &Ctx<'_>, input: &Input, project: &ProjectKey) -> Result<Option<(Box<Agent>, Outgoing)>> {
    let mut writing = writing::open(ctx, "send", Who::Registered)?;
    let agent = Box::new(writing.actor.must_be_agent("send into other projects")?.clone());
    if writing.tx.remembered(&writing.actor.scope(), &ctx.key.text)?.is_some() {
        return Ok(None);
    }
    let is_this = |crossing: &Crossing| crossing.actor.is(&agent.name) && crossing.key == ctx.key.text;
    let noted = writing.tx.crossings()?.into_iter().find(is_this);
    let outgoing = match noted.and_then(|crossing| serde_json::from_str(&crossing.errand).ok()) {
        // The same request, interrupted: it goes on under the thread that it had.
        Some(Task::Send(outgoing)) if outgoing.input == *input => *outgoing,
        _ => outgoing(&writing, input)?,
    };
    let task = Task::Send(Box::new(outgoing.clone()));
    writing.tx.note_crossing(&crossing::note(
        ctx,
        &ctx.key.text,
        project,
        &Party::Agent(agent.name.clone()),
        &task,
    )?)?;
    writing.tx.commit()?;
    Ok(Some((agent, outgoing)))
}

fn outgoing(writing: &Writing<'_>, input: &Input) -> Result<Outgoing> {
    let parent = input.reply_to.map(|id| post::visible(writing, id)).transpose()?;
    let thread = match (&parent, &input.thread) {
        (Some(parent), Some(named)) if !named.same_as(&parent.thread) => {
            return Err(mismatch(parent.id, &parent.thread, named));
        }
        (Some(parent), _) => parent.thread.clone(),
        (None, Some(named)) => writing.tx.thread(named)?.map_or_else(|| named.clone(), |thread| thread.id),
        // Not numbered: the copy's number is not known before the other project has answered.
        (None, None) => {
            ThreadId::parse(&format!("x-{}", &crate::domain::event::hex(&writing.ctx.random.bytes())[..8]))?
        }
    };
    let inherited = post::thread(writing, &thread)?.and_then(|thread| thread.subject);
    let subject = input.subject.clone().or_else(|| parent.and_then(|parent| parent.subject)).or(inherited);
    let subject = subject.ok_or_else(|| Code::InputInvalid.refuse("a message that opens a thread needs a subject"))?;
    Ok(Outgoing { input: input.clone(), thread, subject, wanted: wanted(writing, input)? })
}

pub(super) fn mismatch(id: Number, thread: &ThreadId, named: &ThreadId) -> Refusal {
    Code::ThreadMismatch
        .refuse(format!("#{id} stands in {thread}, not in {named}; a reply lives in its parent's thread"))
        .with("id", id)
        .with("thread", thread.as_str())
        .with("named", named.as_str())
}

/// `project` is the other one as this one knows it; it may have moved since.
fn post_as_guest(
    (home, name): (&Ctx<'_>, &AgentName),
    (guest, project): (&Ctx<'_>, &ProjectKey),
    outgoing: &Outgoing,
) -> Result<Posted> {
    let party = crossing::guest_party(home, name);
    let told = write_as(guest, "send", Who::Guest(party), &outgoing.input, |writing| {
        // Only now: taking the turn may have completed the copy that is answered.
        let parent = outgoing.input.reply_to.map(|id| twin_in(home, (writing, project), id)).transpose()?.flatten();
        let parent = parent.map(|id| writing.tx.envelope(id)).transpose()?.flatten();
        let mut draft = draft(&outgoing.input, outgoing.wanted.clone());
        // A colleague's message is not there for the guest; what answers it still belongs in its thread.
        draft.reply_to = parent.as_ref().map(|parent| parent.id).filter(|id| post::visible(writing, *id).is_ok());
        draft.thread = match parent {
            Some(_) if draft.reply_to.is_some() => None,
            Some(parent) => Some(parent.thread),
            None => Some(ThreadId::of_other_project(&home.project, &outgoing.thread)),
        };
        draft.subject = Some(&outgoing.subject);
        post::post(writing, &draft)
    })?;
    Ok(told.outcome.0)
}

/// The number under which the other project knows one of this project's messages.
fn twin_in(home: &Ctx<'_>, (there, project): (&Writing<'_>, &ProjectKey), id: Number) -> Result<Option<Number>> {
    let own = home.store.read()?.envelope(id)?;
    if let Some(twin) = own.and_then(|message| message.twin)
        && twin.project == *project
    {
        return Ok(Some(twin.number));
    }
    let found = there.tx.message_of_twin(&Twin { project: home.project.clone(), number: id })?;
    Ok(found.map(|message| message.id))
}

/// The sender's copy, keyed by the number that the other project gave.
pub(super) fn keep_copy(
    ctx: &Ctx<'_>,
    who: Who<'_>,
    (name, project): (&AgentName, &ProjectKey),
    outgoing: &Outgoing,
    posted: &Posted,
    recovered: Option<Signal>,
) -> Result<Told<Outcome>> {
    write_as(&ctx.step_with_own_key(), "send", who, &outgoing.input, |writing| {
        writing.signals.extend(recovered);
        let input = &outgoing.input;
        let thread = post::thread(writing, &outgoing.thread)?;
        let opens = input.reply_to.is_none() && input.thread.is_none();
        let to = post::flags(named(input).map(|(address, line)| (address.to_string(), line)));
        post::place_signals(writing, thread.as_ref(), input.subject.as_deref(), opens, &to)?;
        post::text_signals(writing, &outgoing.subject, &input.body)?;
        let recipients: Vec<Recipient> = posted
            .recipients
            .iter()
            .map(|shape| {
                let there = AgentName::parse(&shape.name)?;
                let held = shape.state == crate::domain::delivery::State::Held;
                Ok(Recipient { party: Party::Elsewhere(there, project.clone()), line: shape.kind, held })
            })
            .collect::<Result<_>>()?;
        for recipient in recipients.iter().filter(|recipient| recipient.held) {
            link::copy_request(writing, &recipient.party)?;
        }
        let texts = vec![writing.text("subject", &outgoing.subject), writing.text("body", &outgoing.input.body)];
        let what = Happened::MessageSent {
            thread: outgoing.thread.clone(),
            from: Party::Agent(name.clone()),
            recipients: recipients.clone(),
            subject: texts[0].hash(),
            body: texts[1].hash(),
            importance: outgoing.input.importance,
            ack_within_ms: ack_within(&outgoing.input).map(Span::as_millis),
            reply_to: outgoing.input.reply_to,
            twin: Some(Twin { project: project.clone(), number: posted.id }),
        };
        let id = writing.append(what, texts)?;
        writing.drop_crossing(&Party::Agent(name.clone()), &ctx.key.text)?;
        let message = Posted {
            id,
            thread: outgoing.thread.to_string(),
            recipients: recipients.iter().map(post::shape).collect(),
        };
        Ok(Outcome { message, left_out: Vec::new() })
    })
}
