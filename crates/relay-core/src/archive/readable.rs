//! The files for people: front matter, then the text. Strings in the front matter are quoted, so that nothing that somebody
//! wrote can pass for a line of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use sha2::{Digest, Sha256};

use super::{Entry, File, quoted};
use crate::domain::delivery::Line;
use crate::domain::event::{Happened, Number, Recipient, hex};
use crate::domain::name::{Party, ThreadId};
use crate::domain::plain::escape_line;
use crate::domain::telling::tell;

const OPENS: &str = "---\n";
const CLOSES: &str = "---\n\n";

pub(super) struct Readable<'a> {
    entry: &'a Entry,
    path: String,
}

impl<'a> Readable<'a> {
    pub fn of(entry: &'a Entry) -> Option<Self> {
        Self::path_of(entry).map(|path| Readable { entry, path })
    }

    pub fn path_of(entry: &Entry) -> Option<String> {
        let number = entry.number;
        let by_number = |folder: &str| Some(format!("{folder}/{}/{}/{number}.md", number / 10_000, number / 100));
        match &entry.payload.what {
            Happened::MessageSent { thread, .. } => Some(by_name("threads", thread.as_str(), number)),
            Happened::AgentRegistered { agent, .. }
            | Happened::AgentResumed { agent, .. }
            | Happened::AgentSuspended { agent }
            | Happened::AgentReinstated { agent }
            | Happened::AgentRetired { agent }
            | Happened::PolicySet { agent, .. }
            | Happened::ThreadPrepared { agent, .. }
            | Happened::ThreadLeft { agent, .. } => Some(by_name("agents", agent.as_str(), number)),
            Happened::ReservationGranted { .. }
            | Happened::ReservationRenewed { .. }
            | Happened::ReservationReleased { .. }
            | Happened::ReservationTaken { .. } => by_number("reservations"),
            Happened::LinkRequested { .. }
            | Happened::LinkAccepted { .. }
            | Happened::LinkBlocked { .. }
            | Happened::LinkRevoked { .. } => by_number("links"),
            Happened::ProjectOpened { .. }
            | Happened::ProjectMoved { .. }
            | Happened::OtherProjectMoved { .. }
            | Happened::ThreadClosed { .. }
            | Happened::MessageRedacted { .. }
            | Happened::HeldLapsed { .. }
            | Happened::MailSurfaced { .. }
            | Happened::MailRead { .. }
            | Happened::MailAcked { .. } => None,
        }
    }

    pub fn file(&self) -> File {
        let mut text = OPENS.to_owned();
        let payload = &self.entry.payload;
        line(&mut text, "number", &self.entry.number.to_string());
        line(&mut text, "time", &payload.at.to_string());
        match &payload.what {
            what @ Happened::MessageSent { .. } => self.message(&mut text, what),
            what => self.other(&mut text, what),
        }
        File { path: self.path.clone(), bytes: text.into_bytes() }
    }

    fn message(&self, text: &mut String, what: &Happened) {
        let Happened::MessageSent { thread, from, recipients, importance, ack_within_ms, reply_to, .. } = what else {
            return;
        };
        line(text, "thread", &quoted(thread.as_str()));
        line(text, "from", &name(from));
        line(text, "to", &names(recipients, Line::To));
        if recipients.iter().any(|recipient| recipient.line == Line::Cc) {
            line(text, "cc", &names(recipients, Line::Cc));
        }
        if let Some(subject) = self.kept("subject") {
            line(text, "subject", &quoted(subject));
        }
        line(text, "importance", importance.as_str());
        if let Some(within) = ack_within_ms {
            line(text, "ack", &quoted(&format!("within {}", crate::domain::time::Span::millis(*within))));
        }
        if let Some(parent) = reply_to {
            line(text, "reply_to", &parent.to_string());
        }
        if let Some(erased) = &self.entry.erased {
            let what = if erased.only_subject { "subject, " } else { "" };
            line(text, "erased", &quoted(&format!("{what}by {} with #{}", erased.by, erased.number)));
            if let Some(why) = &erased.why {
                line(text, "why", &quoted(why));
            }
        }
        text.push_str(CLOSES);
        if let Some(body) = self.kept("body") {
            text.push_str(body);
            text.push('\n');
        }
    }

    fn other(&self, text: &mut String, what: &Happened) {
        let actor = &self.entry.payload.actor;
        line(text, "kind", what.kind());
        line(text, "actor", &name(actor));
        let threads = threads(what);
        match threads.first() {
            Some(thread) if threads.len() == 1 => line(text, "thread", &quoted(thread)),
            Some(_) => line(text, "threads", &list(threads.into_iter().map(quoted))),
            None => {}
        }
        for (field, kept) in &self.entry.texts {
            line(text, field, &quoted(&kept.text));
        }
        text.push_str(CLOSES);
        let _ = writeln!(text, "{}", escape_line(&format!("{actor} {}", tell(what))));
    }

    fn kept(&self, field: &str) -> Option<&str> {
        self.entry.texts.get(field).map(|kept| kept.text.as_str())
    }
}

/// The texts of a message, read back from its file.
pub(super) fn texts(bytes: &[u8]) -> Result<BTreeMap<String, String>, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    let rest = text.strip_prefix(OPENS).ok_or("it has no front matter")?;
    // No line of the front matter is `---`, so the first one ends it, whatever the body says.
    let (matter, body) = rest.split_once(&format!("\n{CLOSES}")).ok_or("its front matter does not end")?;
    let mut texts = BTreeMap::new();
    if let Some(subject) = matter.lines().find_map(|line| line.strip_prefix("subject: ")) {
        let subject = serde_json::from_str(subject).map_err(|fault| format!("its subject: {fault}"))?;
        texts.insert("subject".to_owned(), subject);
    }
    if let Some(body) = body.strip_suffix('\n') {
        texts.insert("body".to_owned(), body.to_owned());
    }
    Ok(texts)
}

/// Names are spread over 256 folders, and a name's files over one folder for a hundred numbers.
fn by_name(folder: &str, name: &str, number: Number) -> String {
    let digest = hex(&Sha256::digest(name.as_bytes()));
    format!("{folder}/{}/{name}/{}/{number}.md", &digest[..2], number / 100)
}

fn line(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "{name}: {value}");
}

fn name(party: &Party) -> String {
    quoted(&party.to_string())
}

fn names(recipients: &[Recipient], on: Line) -> String {
    list(recipients.iter().filter(|recipient| recipient.line == on).map(|recipient| name(&recipient.party)))
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

/// The threads that an event names, each once.
fn threads(what: &Happened) -> BTreeSet<&str> {
    match what {
        Happened::ThreadPrepared { thread, .. } | Happened::ThreadLeft { thread, .. } => [thread.as_str()].into(),
        Happened::ReservationGranted { reason, .. } => reason.iter().map(ThreadId::as_str).collect(),
        Happened::ReservationRenewed { claims, .. } => {
            claims.iter().filter_map(|claim| claim.reason.as_ref()).map(ThreadId::as_str).collect()
        }
        _ => BTreeSet::new(),
    }
}
