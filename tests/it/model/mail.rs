//! Mail in the model: send, poll, ack.

use relay_core::domain::delivery::Line;
use relay_core::domain::message::Importance;
use relay_core::verbs::{ack, poll, send};
use serde_json::{Value, json};

use super::links::Reach;
use super::state::{Call, Copy, HOUR, HUMAN, Message, Model, Number, Outcome, RELAY, Refused, Who, at, known};

/// Somebody whom a message names, or a group brings in.
struct Recipient {
    to: Who,
    line: Line,
    reach: Reach,
    in_group: bool,
    held: bool,
}

/// What one message is made of, after its words were looked at.
pub struct Draft<'a> {
    pub named: Vec<(String, Line)>,
    pub thread: Option<&'a str>,
    pub reply_to: Option<Number>,
    pub has_subject: bool,
    pub urgent: bool,
    pub ack_required: bool,
    pub hold: bool,
    pub recover: bool,
}

impl Model {
    pub fn send(&mut self, call: &Call, input: &send::Input) -> Outcome<Value> {
        let lines = [(&input.to, Line::To), (&input.cc, Line::Cc), (&input.bcc, Line::Bcc)];
        let named: Vec<(String, Line)> = lines
            .into_iter()
            .flat_map(|(names, line)| names.iter().map(move |address| (address.name.clone(), line)))
            .collect();
        let twice = |index: usize| !is_group(&named[index].0) && named[..index].iter().any(|n| n.0 == named[index].0);
        if (named.is_empty() && input.reply_to.is_none()) || (0..named.len()).any(twice) {
            return Err("INPUT_INVALID".into());
        }
        let draft = || Draft {
            named: named.clone(),
            thread: input.thread.as_ref().map(relay_core::domain::name::ThreadId::as_str),
            reply_to: input.reply_to,
            has_subject: input.subject.is_some(),
            urgent: input.importance == Importance::Urgent,
            ack_required: input.ack_required || input.ack_within.is_some(),
            hold: input.hold,
            recover: !input.no_recover,
        };
        let attempt = |model: &mut Model| model.write(call, |model| model.compose(call.who, draft()));
        match attempt(self) {
            Err(refused) if refused.code == "CONTACT_REQUIRED" && !input.no_recover && !refused.must_wait => {
                for other in refused.ask {
                    self.write(&Call { key: None, ..call.clone() }, |model| {
                        model.ask_for_contact(call.who, other, None).map(|_| Value::Null)
                    })?;
                }
                attempt(self)
            }
            other => other,
        }
    }

    fn compose(&mut self, me: Who, mut draft: Draft<'_>) -> Outcome<Value> {
        if draft.named.iter().any(|(name, _)| name.eq_ignore_ascii_case(me)) {
            return Err("INPUT_INVALID".into());
        }
        if draft.named.is_empty() {
            let parent = self.visible(me, draft.reply_to.unwrap())?;
            draft.named = if parent.from == me {
                parent.copies.iter().map(|copy| (copy.to.to_owned(), copy.line)).collect()
            } else {
                vec![(parent.from.to_owned(), Line::To)]
            };
            // The order in which a message keeps its recipients.
            draft.named.sort_by(|one, other| (one.1, &one.0).cmp(&(other.1, &other.0)));
        }
        self.post(me, &draft)
    }

    fn visible(&self, me: Who, id: Number) -> Outcome<&Message> {
        self.message(id).filter(|message| self.sees(me, message)).ok_or_else(|| "MESSAGE_NOT_FOUND".into())
    }

    pub fn post(&mut self, me: Who, draft: &Draft<'_>) -> Outcome<Value> {
        let parent = draft.reply_to.map(|id| self.visible(me, id).cloned()).transpose()?;
        let wished = draft.thread.map(str::to_ascii_lowercase);
        if let (Some(parent), Some(wished)) = (&parent, &wished)
            && parent.thread != *wished
        {
            return Err("THREAD_MISMATCH".into());
        }
        let place = parent.as_ref().map(|parent| parent.thread.clone()).or(wished);
        let place = place.filter(|key| self.threads.contains_key(key));
        let first = place.as_ref().and_then(|key| self.message(self.threads[key].first?));
        let inherits = first.is_some_and(|first| self.sees(me, first));
        if !draft.has_subject && parent.is_none() && !inherits {
            return Err("INPUT_INVALID".into());
        }
        let mut roll = self.call_roll(me, draft, place.as_deref(), parent.as_ref())?;
        self.ask_where_needed(me, draft, &mut roll)?;
        if roll.is_empty() {
            return Err("RECIPIENT_NOT_FOUND".into());
        }
        let id = self.event("message_sent", me);
        let fresh = format!("t-{id}");
        let thread = place.as_deref().or(draft.thread).unwrap_or(&fresh).to_owned();
        let shown = self.open_thread(&thread).id.clone();
        let copies: Vec<Copy> = roll.iter().map(|recipient| copy(recipient, id)).collect();
        let shapes: Vec<Value> = roll
            .iter()
            .map(|recipient| {
                let state = if recipient.held { "held" } else { "stored" };
                json!({"name": recipient.to, "kind": recipient.line, "state": state})
            })
            .collect();
        self.add(Message {
            id,
            thread: thread.to_ascii_lowercase(),
            from: me,
            urgent: draft.urgent,
            ack_required: draft.ack_required,
            sent_at: self.now,
            copies,
        });
        Ok(json!({"message": {"id": id, "thread": shown, "recipients": shapes}}))
    }

    /// Everybody the message names, in order, then the groups; nobody twice. The sender is in no group.
    fn call_roll(
        &self,
        me: Who,
        draft: &Draft<'_>,
        thread: Option<&str>,
        parent: Option<&Message>,
    ) -> Outcome<Vec<Recipient>> {
        let mut roll: Vec<Recipient> = Vec::new();
        let mut unknown = false;
        let recipient = |to: Who, line: Line, in_group: bool| {
            let reach = if to == HUMAN { Reach::Yes } else { self.reach(me, to, thread, parent) };
            Recipient { to, line, reach, in_group, held: false }
        };
        for (name, line) in draft.named.iter().filter(|(name, _)| !is_group(name)) {
            match known(name).filter(|who| *who == HUMAN || self.agent(who).is_some()) {
                Some(who) => roll.push(recipient(who, *line, false)),
                None => unknown = true,
            }
        }
        for (name, line) in draft.named.iter().filter(|(name, _)| is_group(name)) {
            for who in self.group(name, thread)? {
                if who != me && !roll.iter().any(|known| known.to == who) {
                    roll.push(recipient(who, *line, true));
                }
            }
        }
        if unknown { Err("RECIPIENT_NOT_FOUND".into()) } else { Ok(roll) }
    }

    fn group(&self, name: &str, thread: Option<&str>) -> Outcome<Vec<Who>> {
        if name == "@all" {
            let seen = self.agents.iter().filter(|agent| self.now - agent.seen <= 24 * HOUR);
            return Ok(seen.map(|agent| agent.name).collect());
        }
        let thread = thread.ok_or("INPUT_INVALID")?;
        let members = self.threads[thread].members.iter().copied();
        // The agents, then the human.
        let (agents, others): (Vec<Who>, Vec<Who>) = members.partition(|who| self.agent(who).is_some());
        Ok(agents.into_iter().chain(others.into_iter().filter(|who| *who == HUMAN)).collect())
    }

    /// Named recipients who cannot be reached fail the message; those of a group are left out. `--hold` asks and holds.
    fn ask_where_needed(&mut self, me: Who, draft: &Draft<'_>, roll: &mut Vec<Recipient>) -> Outcome<()> {
        for recipient in roll.iter_mut().filter(|_| draft.hold) {
            if matches!(recipient.reach, Reach::Ask { .. }) {
                self.ask_for_contact(me, recipient.to, None)?;
                let accepted = self.link(me, recipient.to).map(|link| self.link_state(link));
                let accepted = accepted == Some(super::state::LinkState::Accepted);
                recipient.reach = if accepted { Reach::Yes } else { Reach::Asked };
            }
            if recipient.reach == Reach::Asked {
                recipient.reach = Reach::Yes;
                recipient.held = true;
            }
        }
        let named = || roll.iter().filter(|recipient| !recipient.in_group);
        if named().any(|recipient| recipient.reach == Reach::Never) {
            return Err("CONTACT_BLOCKED".into());
        }
        if named().any(|recipient| recipient.reach == Reach::Asked) {
            return Err("CONTACT_PENDING".into());
        }
        let ask: Vec<(Who, bool)> = named()
            .filter_map(|recipient| match recipient.reach {
                Reach::Ask { at_once } => Some((recipient.to, at_once)),
                _ => None,
            })
            .collect();
        if !ask.is_empty() {
            let must_wait = ask.iter().any(|(_, at_once)| !at_once);
            let ask = ask.into_iter().map(|(to, _)| to).collect();
            return Err(Refused { code: "CONTACT_REQUIRED", ask, must_wait });
        }
        for recipient in roll.iter_mut() {
            if recipient.reach == (Reach::Ask { at_once: true }) && draft.recover {
                self.ask_for_contact(me, recipient.to, None)?;
                recipient.reach = Reach::Yes;
            }
        }
        roll.retain(|recipient| recipient.reach == Reach::Yes);
        Ok(())
    }

    pub fn poll(&mut self, me: Who, input: &poll::Input) -> Outcome<Value> {
        if input.limit.is_some_and(|limit| !(1..=100).contains(&limit)) {
            return Err("INPUT_INVALID".into());
        }
        self.acting(me)?;
        if !self.lapsed_mail(me).is_empty() {
            self.settle_held(me);
            self.renew_by_activity(me);
        }
        let thread = input.thread.as_ref().map(relay_core::domain::name::ThreadId::key);
        let from = input.from.as_ref().map(|from| known(&from.name).unwrap_or(RELAY));
        let wanted = |message: &Message, copy: &Copy| {
            (input.all || copy.read.is_none())
                && thread.as_ref().is_none_or(|thread| message.thread == *thread)
                && from.is_none_or(|from| message.from == from)
                && (!input.urgent || message.urgent)
        };
        let inbox: Vec<(Number, Number)> = self
            .inbox(me)
            .iter()
            .filter(|(by, message, copy)| *by > input.after.unwrap_or(0) && wanted(message, copy))
            .map(|(by, message, _)| (*by, message.id))
            .collect();
        let page = page(&inbox, input.limit.unwrap_or(100));
        let cursor = page.iter().map(|(by, _)| *by).max().unwrap_or(input.after.unwrap_or(0));
        let ids: Vec<Number> = page.iter().map(|(_, id)| *id).collect();
        let unread = self.unread(me);
        self.touch(me);
        let contested = self.tell_contests(me, &ids);
        if input.read {
            self.mark_read(me, &ids);
        }
        let shapes: Vec<Value> = ids.iter().map(|id| self.shape(me, *id)).collect();
        Ok(json!({"messages": shapes, "contested": contested, "cursor": cursor, "unread": unread}))
    }

    fn shape(&self, me: Who, id: Number) -> Value {
        let message = self.message(id).unwrap();
        let copy = message.copies.iter().find(|copy| copy.to == me).unwrap();
        json!({
            "id": id,
            "thread": self.threads[&message.thread].id,
            "from": message.from,
            "ack_required": message.ack_required,
            "sent_at": at(message.sent_at),
            "read_at": copy.read.map(at),
            "acked_at": copy.acked.map(at),
        })
    }

    fn mark_read(&mut self, me: Who, ids: &[Number]) {
        let is_unread = |model: &Model, id: Number| model.copy_of(me, id).is_some_and(|copy| copy.read.is_none());
        let fresh: Vec<Number> = ids.iter().copied().filter(|id| is_unread(self, *id)).collect();
        if !fresh.is_empty() {
            self.event("mail_read", me);
            self.each_copy(me, &fresh, |copy, now| copy.read = copy.read.or(Some(now)));
        }
    }

    pub fn ack(&mut self, me: Who, input: &ack::Input) -> Outcome<Value> {
        let (mut rows, mut fresh) = (Vec::new(), Vec::new());
        let mut ids = input.ids.clone();
        ids.dedup();
        for id in ids {
            self.visible(me, id)?;
            let copy = self.copy_of(me, id).filter(|copy| copy.by.is_some()).ok_or("NOT_A_RECIPIENT")?;
            let before = if input.read { copy.read } else { copy.acked };
            let read = copy.read.unwrap_or(self.now);
            let acked = if input.read { copy.acked } else { copy.acked.or(Some(self.now)) };
            rows.push(json!({"id": id, "read_at": at(read), "acked_at": acked.map(at), "first": before.is_none()}));
            fresh.extend(before.is_none().then_some(id));
        }
        if !fresh.is_empty() {
            self.event(if input.read { "mail_read" } else { "mail_acked" }, me);
            self.each_copy(me, &fresh, |copy, now| {
                copy.read = copy.read.or(Some(now));
                if !input.read {
                    copy.acked = copy.acked.or(Some(now));
                }
            });
        }
        Ok(json!({"acks": rows}))
    }

    pub fn copy_of(&self, me: Who, id: Number) -> Option<&Copy> {
        self.message(id)?.copies.iter().find(|copy| copy.to == me)
    }

    /// Changes the copies of these messages; whatever happens to one, it has surfaced.
    pub fn each_copy(&mut self, me: Who, ids: &[Number], change: impl Fn(&mut Copy, i64)) {
        let now = self.now;
        for message in self.messages.iter_mut().filter(|message| ids.contains(&message.id)) {
            for copy in message.copies.iter_mut().filter(|copy| copy.to == me) {
                copy.surfaced = copy.surfaced.or(Some(now));
                change(copy, now);
            }
        }
    }
}

fn is_group(name: &str) -> bool {
    name.starts_with('@')
}

fn copy(recipient: &Recipient, id: Number) -> Copy {
    let by = (!recipient.held).then_some(id);
    Copy { to: recipient.to, line: recipient.line, by, lapsed: false, surfaced: None, read: None, acked: None }
}

/// As many whole deliveries as fit; the first one comes whole, however large it is.
fn page(inbox: &[(Number, Number)], limit: usize) -> Vec<(Number, Number)> {
    let mut page: Vec<(Number, Number)> = Vec::new();
    for group in inbox.chunk_by(|one, other| one.0 == other.0) {
        if !page.is_empty() && page.len() + group.len() > limit {
            break;
        }
        page.extend(group);
    }
    page
}
