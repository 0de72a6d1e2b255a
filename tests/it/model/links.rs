//! Consent in the model: links, and the mail that waits for them.

use relay_core::domain::agent::Policy;
use relay_core::domain::delivery::Line;
use relay_core::verbs::link::Input;

use super::state::{
    Agent, Copy, DAY, Decided, HOUR, Link, LinkState, Message, Model, Number, Outcome, RELAY, Standing, Who,
};

/// What asking somebody for contact comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asking {
    Refused,
    Stands,
    AcceptsTheirs,
    Waits,
    AcceptedByPolicy,
    IsNew,
}

/// Whether a message reaches somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    Yes,
    Never,
    Asked,
    /// Contact is needed first; asking may be enough.
    Ask {
        at_once: bool,
    },
}

impl Model {
    pub fn decide(&mut self, me: Who, other: Who, input: &Input) -> Outcome<Number> {
        if input.accept {
            self.accept(me, other)
        } else if input.block {
            Ok(self.block(me, other))
        } else if input.revoke {
            self.revoke(me, other)
        } else {
            self.ask_for_contact(me, other, input.ttl.map(relay_core::domain::time::Span::as_millis))
        }
    }

    pub fn asking(&self, me: Who, other: Who) -> Asking {
        let agent = self.agent(other).unwrap();
        let (policy, is_closed) = (agent.policy, self.is_closed(agent));
        let link = self.link(me, other);
        match link.map(|link| (self.link_state(link), link.from == me)) {
            Some((LinkState::Blocked, _)) => Asking::Refused,
            Some((LinkState::Accepted, _)) => Asking::Stands,
            _ if is_closed => Asking::Refused,
            Some((LinkState::Requested, true)) => Asking::Waits,
            Some((LinkState::Requested, false)) => Asking::AcceptsTheirs,
            Some(_) if self.revoked_last(me, other) => Asking::IsNew,
            _ if policy == Policy::ContactsOnly => Asking::IsNew,
            _ => Asking::AcceptedByPolicy,
        }
    }

    /// Whether the last decision between the two, before every request that nobody answered, is a revoke.
    fn revoked_last(&self, me: Who, other: Who) -> bool {
        let joins = |link: &&Link| [(me, other), (other, me)].contains(&(link.from, link.to));
        let decided = self.links.iter().filter(joins).filter(|link| link.decided != Decided::Requested);
        decided.max_by_key(|link| link.id).is_some_and(|link| link.decided == Decided::Revoked)
    }

    pub fn ask_for_contact(&mut self, me: Who, other: Who, ttl: Option<i64>) -> Outcome<Number> {
        let existing = self.link(me, other).map(|link| link.id);
        match (self.asking(me, other), existing) {
            (Asking::Refused, _) => Err("CONTACT_BLOCKED".into()),
            (Asking::Stands | Asking::Waits, Some(id)) => Ok(id),
            (Asking::AcceptsTheirs, Some(id)) => Ok(self.complete(me, id)),
            (Asking::AcceptedByPolicy, _) => {
                let id = self.new_link(me, other, ttl);
                Ok(self.complete(me, id))
            }
            _ => Ok(self.new_link(me, other, ttl)),
        }
    }

    fn new_link(&mut self, me: Who, other: Who, ttl: Option<i64>) -> Number {
        let id = self.event("link_requested", me);
        let expires = self.now + ttl.unwrap_or(7 * DAY);
        let (decided, blockers) = (Decided::Requested, std::collections::BTreeSet::new());
        self.links.push(Link { id, from: me, to: other, decided, blockers, asked_at: self.now, expires });
        id
    }

    /// No link opens this one.
    fn is_closed(&self, agent: &Agent) -> bool {
        self.standing(agent) != Standing::Active || agent.policy == Policy::BlockAll
    }

    /// Accepted is mutual: what either side holds for the other is delivered by this event, or given up where no link
    /// opens the recipient.
    fn complete(&mut self, me: Who, id: Number) -> Number {
        let by = self.event("link_accepted", me);
        let now = self.now;
        let link = self.links.iter_mut().find(|link| link.id == id).unwrap();
        link.decided = Decided::Accepted;
        link.expires = now + (link.expires - link.asked_at);
        let (from, to) = (link.from, link.to);
        for (sender, recipient) in [(from, to), (to, from)] {
            let is_closed = self.is_closed(self.agent(recipient).unwrap());
            for (message, to) in self.held_of(sender) {
                match (to == recipient, is_closed) {
                    (false, _) => {}
                    (true, true) => self.give_up(me, message, sender, recipient),
                    (true, false) => self.deliver_held(message, recipient, by),
                }
            }
        }
        id
    }

    fn deliver_held(&mut self, message: Number, recipient: Who, by: Number) {
        let message = self.messages.iter_mut().find(|known| known.id == message).unwrap();
        let copy = message.copies.iter_mut().find(|copy| copy.to == recipient).unwrap();
        copy.by = Some(by);
        if copy.line != Line::Bcc {
            self.threads.get_mut(&message.thread).unwrap().members.insert(recipient);
        }
    }

    fn accept(&mut self, me: Who, other: Who) -> Outcome<Number> {
        let link = self.link(me, other).ok_or("LINK_NOT_FOUND")?;
        match self.link_state(link) {
            LinkState::Accepted => Ok(link.id),
            LinkState::Requested if link.to == me => Ok(self.complete(me, link.id)),
            LinkState::Blocked if !link.blockers.contains(me) => Err("CONTACT_BLOCKED".into()),
            _ => Err("LINK_NOT_FOUND".into()),
        }
    }

    fn block(&mut self, me: Who, other: Who) -> Number {
        let existing = self.link(me, other).cloned();
        if let Some(link) = existing.as_ref().filter(|link| link.blockers.contains(me)) {
            return link.id;
        }
        let number = self.event("link_blocked", me);
        let id = existing.map_or(number, |link| link.id);
        if id == number {
            let (decided, blockers) = (Decided::Requested, std::collections::BTreeSet::new());
            let (asked_at, expires) = (self.now, self.now);
            self.links.push(Link { id, from: me, to: other, decided, blockers, asked_at, expires });
        }
        self.links.iter_mut().find(|link| link.id == id).unwrap().blockers.insert(me);
        self.give_up_between(me, other);
        id
    }

    /// A block and a revoke end the waiting of all held mail between the two.
    fn give_up_between(&mut self, me: Who, other: Who) {
        for (sender, recipient) in [(other, me), (me, other)] {
            for (message, to) in self.held_of(sender) {
                if to == recipient {
                    self.give_up(me, message, sender, recipient);
                }
            }
        }
    }

    fn revoke(&mut self, me: Who, other: Who) -> Outcome<Number> {
        let link = self.link(me, other).ok_or("LINK_NOT_FOUND")?.clone();
        if link.blockers.contains(me) || link.decided != Decided::Revoked {
            self.event("link_revoked", me);
            let revoked = self.links.iter_mut().find(|known| known.id == link.id).unwrap();
            revoked.decided = Decided::Revoked;
            revoked.blockers.remove(me);
            self.give_up_between(me, other);
        }
        Ok(link.id)
    }

    /// Mail of mine whose consent never came.
    pub fn lapsed_mail(&self, me: Who) -> Vec<(Number, Who)> {
        let waits = |recipient: Who| {
            let state = self.link(me, recipient).map(|link| self.link_state(link));
            matches!(state, Some(LinkState::Requested | LinkState::Accepted))
        };
        self.held_of(me).into_iter().filter(|(_, recipient)| !waits(recipient)).collect()
    }

    pub fn settle_held(&mut self, me: Who) {
        for (message, recipient) in self.lapsed_mail(me) {
            self.give_up(me, message, me, recipient);
        }
    }

    /// A held copy is never delivered, and its sender is told in the thread.
    fn give_up(&mut self, actor: Who, message: Number, sender: Who, recipient: Who) {
        self.event("held_lapsed", actor);
        let held = self.messages.iter_mut().find(|known| known.id == message).unwrap();
        let copy = held.copies.iter_mut().find(|copy| copy.to == recipient).unwrap();
        copy.lapsed = true;
        let (line, thread) = (if copy.line == Line::Bcc { Line::Bcc } else { Line::To }, held.thread.clone());
        self.notice(sender, line, Some(thread));
    }

    /// A message from relay itself, in a thread of its own unless another is named.
    pub fn notice(&mut self, to: Who, line: Line, thread: Option<String>) {
        let id = self.event("message_sent", RELAY);
        let thread = thread.unwrap_or_else(|| format!("t-{id}"));
        self.open_thread(&thread);
        let notice = Copy { to, line, by: Some(id), lapsed: false, surfaced: None, read: None, acked: None };
        self.add(Message {
            id,
            thread,
            from: RELAY,
            urgent: false,
            ack_required: false,
            sent_at: self.now,
            copies: vec![notice],
        });
    }

    /// A message takes its place in its thread. An open recipient who gets it is a member from then on and, unless all
    /// are blind, so is its sender.
    pub fn add(&mut self, message: Message) {
        let thread = self.threads.get_mut(&message.thread).unwrap();
        thread.messages += 1;
        thread.done = false;
        thread.first = thread.first.or(Some(message.id));
        let open = || message.copies.iter().filter(|copy| copy.line != Line::Bcc);
        if message.from != RELAY && open().next().is_some() {
            thread.members.insert(message.from);
            thread.members.extend(open().filter(|copy| copy.by.is_some()).map(|copy| copy.to));
        }
        self.messages.push(message);
    }

    /// Whether a message by `me` reaches `other`, in this thread and as an answer to this message.
    pub fn reach(&self, me: Who, other: Who, thread: Option<&str>, parent: Option<&Message>) -> Reach {
        let agent = self.agent(other).unwrap();
        let link = self.link(me, other);
        let state = link.map(|link| self.link_state(link));
        if state == Some(LinkState::Blocked) || self.is_closed(agent) {
            return Reach::Never;
        }
        let consents = match agent.policy {
            Policy::Open => true,
            Policy::Auto => self.share_context(me, other, thread, parent),
            _ => false,
        };
        if consents || state == Some(LinkState::Accepted) {
            return Reach::Yes;
        }
        match link {
            Some(link) if state == Some(LinkState::Requested) && link.from == me => Reach::Asked,
            _ => Reach::Ask {
                at_once: matches!(
                    self.asking(me, other),
                    Asking::AcceptedByPolicy | Asking::AcceptsTheirs | Asking::Stands
                ),
            },
        }
    }

    fn share_context(&self, me: Who, other: Who, thread: Option<&str>, parent: Option<&Message>) -> bool {
        let answers = parent.is_some_and(|parent| parent.from == other);
        let thread = thread.and_then(|thread| self.threads.get(thread));
        let both_in = thread.is_some_and(|thread| thread.members.contains(me) && thread.members.contains(other));
        let wrote = self
            .inbox(me)
            .iter()
            .any(|(_, message, _)| message.from == other && self.now - message.sent_at <= 24 * HOUR);
        let claims = self.pairs(me).iter().any(|(_, theirs)| theirs.holder == other);
        answers || both_in || wrote || claims
    }
}
