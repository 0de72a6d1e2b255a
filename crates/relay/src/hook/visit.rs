//! One call of a hook, from what the harness tells to what it is told.

use std::path::{Path, PathBuf};

use relay_core::error::{Code, Refusal};
use relay_core::store::{Clock, Harness, Result};
use relay_core::verbs::hook::{Input, Moment, Outcome, Shown};
use relay_core::wire::v1::{ConflictShape, Signal};

use super::dialect::Dialect;
use super::event::{Event, Reply, Verdict};
use super::ground::{Ground, Seen};
use super::memory::{Book, Made, Memory};
use super::place::Place;
use super::words::{self, Speaker};
use crate::app::App;
use crate::config::Stance;

pub struct Visit<'a> {
    pub app: &'a App,
    pub dialect: Dialect,
    pub event: &'a Event,
    pub place: &'a Place,
    pub stance: Stance,
    pub home: &'a Path,
    /// The session's first name, and its subagent.
    pub who: String,
    pub harness: Option<Harness>,
}

/// What a visit came to.
pub struct Told {
    pub reply: Reply,
    pub shown: Option<Shown>,
}

impl Visit<'_> {
    pub fn tell(&self) -> Result<Told> {
        let book = Book::of(self.home, &self.who);
        let mut memory = book.read();
        let ground = Ground::under(self);
        let seen = ground.see(self, &memory);
        let asked = self.place.ask(self.app, &self.input(seen.input.clone(), &memory));
        let (outcome, signals) = asked.inspect_err(|_| ground.put_off(self))?;
        // Only what the bus knows by now is looked at no more.
        ground.settle(self, &seen);
        let head = ground.head_news(self, &mut memory);
        let mut reply = Reply::default();
        if let Some(agent) = &outcome.agent {
            let speaker = Speaker { agent, now: self.app.clock.now() };
            let about_git: String =
                head.into_iter().chain(self.would_conflict(&speaker, &ground, &mut memory)).collect();
            reply = self.reply(&speaker, &outcome, &signals, &about_git, &mut memory);
        }
        if matches!(reply.verdict, Some(Verdict::Deny(_))) {
            ground.forget(self);
        }
        self.remember(&book, &seen, &outcome, &memory);
        // What the model does not come to read was not shown to it.
        let is_shown = reply.context.is_some() || reply.go_on.is_some();
        Ok(Told { reply, shown: outcome.shown.filter(|_| is_shown) })
    }

    /// Whether the model comes to read what the answer says. Every program takes a word at the end of a turn, and one is enough.
    pub fn is_heard(&self) -> bool {
        match self.event.moment {
            Moment::TurnEnd => !self.event.again,
            _ => self.dialect.hears(self.event),
        }
    }

    /// The session alone, whichever of its subagents this is about.
    pub fn session(&self) -> &str {
        self.app.session.as_deref().unwrap_or_default()
    }

    /// What the bus is told beside what was seen of the files.
    fn input(&self, seen: Input, memory: &Memory) -> Input {
        Input {
            moment: self.event.moment,
            program: Some(self.dialect.program().to_owned()),
            model: self.event.model.clone(),
            subagent: self.event.subagent.clone(),
            harness: self.harness.clone(),
            listens: self.is_heard(),
            denies: self.stance == Stance::Deny,
            made: memory.claims.keys().copied().collect(),
            introduces: !memory.introduced,
            ..seen
        }
    }

    /// When the user speaks, nobody counts milliseconds: what a merge would come to is told then, each state once.
    fn would_conflict(&self, speaker: &Speaker<'_>, ground: &Ground<'_>, memory: &mut Memory) -> Option<String> {
        if self.event.moment != Moment::Prompt || !self.is_heard() || self.event.subagent.is_some() {
            return None;
        }
        let mut met = ground.would_conflict();
        met.retain(|(tree, paths)| memory.is_news(format!("merge {tree} {}", paths.join(" "))));
        (!met.is_empty()).then(|| speaker.would_conflict(&met))
    }

    fn reply(
        &self,
        speaker: &Speaker<'_>,
        outcome: &Outcome,
        signals: &[Signal],
        about_git: &str,
        memory: &mut Memory,
    ) -> Reply {
        let event = self.event;
        if event.moment == Moment::Start {
            memory.forget_told();
        }
        let hears = self.is_heard();
        let mut text = String::new();
        if hears && event.subagent.is_none() && event.moment != Moment::TurnEnd && !memory.introduced {
            memory.introduced = true;
            text.push_str(&speaker.introduction(outcome));
        }
        text.push_str(about_git);
        let verdict = self.meets(speaker, outcome, memory, &mut text);
        if hears && !outcome.outside.is_empty() && memory.is_news(format!("outside {}", outcome.outside.join(" "))) {
            text.push_str(&speaker.outside(&outcome.outside));
        }
        if hears {
            text.push_str(&speaker.news(outcome));
            let is_news = |signal: &&Signal| memory.is_news(format!("{} {}", signal.code.as_str(), signal.text));
            signals.iter().filter(is_news).for_each(|signal| text.push_str(&words::signal(signal)));
        }
        if event.moment == Moment::TurnEnd {
            return Reply { go_on: self.last_word(speaker, outcome, memory, text), ..Reply::default() };
        }
        Reply { context: Some(text).filter(|text| hears && !text.is_empty()), verdict, go_on: None }
    }

    /// What others hold of what is about to be edited or was changed, and what lies open in a checkout that is about to move.
    fn meets(
        &self,
        speaker: &Speaker<'_>,
        outcome: &Outcome,
        memory: &mut Memory,
        text: &mut String,
    ) -> Option<Verdict> {
        let is_before = self.event.moment == Moment::Before;
        // What nobody reads is not told yet.
        if !self.is_heard() && (!is_before || self.stance == Stance::Warn) {
            return None;
        }
        let took = if is_before {
            "others move this checkout just now:"
        } else {
            "what you have just changed, others hold too:"
        };
        let told = [
            (!outcome.endangered.is_empty()).then(|| (speaker.endangered(&outcome.endangered), true)),
            held(speaker, "others hold what you are about to edit:", &outcome.met, memory),
            held(speaker, took, &outcome.conflicts, memory),
        ];
        let mut verdict = None;
        for (words, is_news) in told.into_iter().flatten() {
            match self.stance {
                Stance::Deny if is_before => verdict = verdict.or(Some(Verdict::Deny(words))),
                Stance::Ask if is_before => verdict = verdict.or(Some(Verdict::Ask(words))),
                _ if is_news => text.push_str(&words),
                _ => {}
            }
        }
        verdict
    }

    /// What keeps the agent for one more turn: mail, or what it owes and holds; each state once.
    fn last_word(
        &self,
        speaker: &Speaker<'_>,
        outcome: &Outcome,
        memory: &mut Memory,
        mut text: String,
    ) -> Option<String> {
        if self.event.again {
            return None;
        }
        let owed: Vec<String> = outcome.owed.iter().map(|message| message.id.to_string()).collect();
        let held: Vec<String> = outcome.held.iter().map(|claim| claim.id.to_string()).collect();
        let key = format!("owed {} held {}", owed.join(","), held.join(","));
        if !(owed.is_empty() && held.is_empty()) && memory.is_news(key) {
            text.push_str(&speaker.reminder(outcome));
        }
        Some(text).filter(|text| !text.is_empty())
    }

    fn remember(&self, book: &Book, seen: &Seen, outcome: &Outcome, memory: &Memory) {
        match self.event.moment {
            Moment::End => return book.burn(),
            Moment::SubagentEnd => {
                book.burn();
                // What the subagent left is the session's by now.
                return Book::of(self.home, self.session()).change(|kept| keep(kept, seen, outcome));
            }
            _ => {}
        }
        let step = u64::from(self.event.moment != Moment::TurnEnd);
        let call = self.event.call.as_ref().and_then(|call| call.id.clone()).unwrap_or_default();
        book.change(|kept| {
            kept.take_over(memory);
            kept.steps += step;
            if self.event.moment == Moment::Before {
                kept.checkouts.extend(outcome.claimed.first().map(|claim| (call.clone(), claim.id)));
                return;
            }
            kept.checkouts.remove(&call);
            if let Some(was_slow) = seen.was_slow {
                kept.slow = if was_slow { kept.slow + 1 } else { 0 };
            }
            keep(kept, seen, outcome);
        });
    }
}

/// Who holds what, and whether any of it is news: a claim is told once for each path.
fn held(speaker: &Speaker<'_>, what: &str, conflicts: &[ConflictShape], memory: &mut Memory) -> Option<(String, bool)> {
    let key = |conflict: &ConflictShape| format!("met {} {} {}", conflict.id, conflict.holder, conflict.example);
    let news: Vec<bool> = conflicts.iter().map(|conflict| memory.is_news(key(conflict))).collect();
    (!conflicts.is_empty()).then(|| (speaker.held(what, conflicts), news.contains(&true)))
}

/// Notes which claims hooks have made, and which are none of theirs any more.
fn keep(kept: &mut Memory, seen: &Seen, outcome: &Outcome) {
    for id in seen.input.done_with.iter().chain(&outcome.released) {
        kept.claims.remove(id);
    }
    for claim in outcome.claimed.iter().filter(|claim| !claim.pattern.starts_with("res:")) {
        kept.claims.insert(claim.id, Made { root: seen.root.clone(), pattern: claim.pattern.clone() });
    }
}

/// Of what is refused to an agent, what it should know: the rest is relay's own trouble.
pub fn concerns_the_agent(refusal: &Refusal) -> bool {
    matches!(refusal.code, Code::IdentityMismatch | Code::AgentSuspended | Code::AgentNameTaken)
}

/// The folder from which the project is found.
pub fn folders(event: &Event) -> Vec<PathBuf> {
    let edited = event.call.as_ref().map(|call| &call.deed);
    let edited = match edited {
        Some(super::event::Deed::Edit(paths)) => paths.first().map(|path| event.cwd.join(path)),
        _ => None,
    };
    let edited = edited.and_then(|path| Some(path.ancestors().skip(1).find(|folder| folder.is_dir())?.to_owned()));
    [Some(event.cwd.clone()), crate::environment::harness_folder(), edited].into_iter().flatten().collect()
}
