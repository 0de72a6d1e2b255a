//! One call of a hook, from what the harness tells to what it is told.

use std::collections::HashSet;
use std::path::PathBuf;

use relay_core::domain::pattern::Pattern;
use relay_core::domain::time::Span;
use relay_core::domain::worktree::{Changed, Head};
use relay_core::error::{Code, Refusal};
use relay_core::store::{Clock, Repository, Result};
use relay_core::verbs::hook::{Input, Moment, Outcome};
use relay_core::verbs::{Afterwards, Ctx, Outcome as Any, Request};
use relay_core::wire::v1::{ConflictShape, Signal};
use relay_store::repository::Files;

use super::calls::{Calls, Doings};
use super::dialect::Dialect;
use super::event::{Call, Deed, Event, Reply, Verdict};
use super::memory::{Book, Memory};
use super::place::Place;
use super::words::{self, Speaker};
use super::{checkout, tree};
use crate::app::App;
use crate::config::Stance;

/// What asks git after a tool has run may take this long; then it is left to the next time.
const PATIENCE: Span = Span::millis(150);
/// At the end of a turn nobody waits for the next word: what was left until then is looked at.
const AT_REST: Span = Span::seconds(2);

pub struct Visit<'a> {
    pub app: &'a App,
    pub dialect: Dialect,
    pub event: &'a Event,
    pub place: &'a Place,
    pub stance: Stance,
    pub home: PathBuf,
    /// The session's first name, and its subagent.
    pub who: String,
}

/// What a visit came to.
pub struct Told {
    pub reply: Reply,
    pub afterwards: Option<Afterwards>,
}

/// What is seen of the work tree that the session works in.
struct Ground {
    root: String,
    calls: Calls,
    head: Option<Head>,
}

impl Visit<'_> {
    pub fn tell(&self) -> Result<Told> {
        let files = self.place.files();
        let ground = tree::around(files, &self.event.cwd).map(|root| Ground {
            calls: Calls::of(&self.home, &root, &self.who),
            head: files.head(&root),
            root,
        });
        let book = Book::of(&self.home, &self.who);
        let mut memory = book.read();
        let input = self.input(files, ground.as_ref(), &memory);
        let (outcome, signals, afterwards) = self.place.ask(self.app, &input)?;
        let mut reply = Reply::default();
        let head = self.head_news(ground.as_ref(), &mut memory);
        if let Some(agent) = &outcome.agent {
            let speaker = Speaker { agent, now: self.app.clock.now() };
            reply = self.reply(&speaker, &outcome, &signals, head, &mut memory);
        }
        if let (Some(_), Some(ground), Some(call)) = (&reply.verdict, &ground, &self.event.call) {
            ground.calls.forget(call.id.as_deref());
        }
        self.remember(&book, &outcome, &memory, ground.as_ref());
        // What the model does not come to read was not shown to it.
        let is_shown = reply.context.is_some() || reply.go_on.is_some();
        Ok(Told { reply, afterwards: afterwards.filter(|_| is_shown) })
    }

    /// Whether the model comes to read what the answer says. Every program takes a word at the end of a turn, and one is enough.
    fn is_heard(&self) -> bool {
        match self.event.moment {
            Moment::TurnEnd => !self.event.again,
            _ => self.dialect.hears(self.event),
        }
    }

    /// What the bus is told, with what was seen here.
    fn input(&self, files: &Files, ground: Option<&Ground>, memory: &Memory) -> Input {
        let event = self.event;
        let mut input = Input {
            moment: event.moment,
            program: Some(self.dialect.program().to_owned()),
            model: event.model.clone(),
            subagent: event.subagent.clone(),
            harness: super::harness(self.dialect, event),
            listens: self.is_heard(),
            denies: self.stance == Stance::Deny,
            ..Input::default()
        };
        match (event.moment, event.call.as_ref().map(|call| (call, &call.deed))) {
            (Moment::Before, Some((call, Deed::Edit(paths)))) => {
                input.edits = tree::resolved(paths, &event.cwd);
                if let Some(ground) = ground {
                    ground.calls.begin_edit(call.id.as_deref(), &tree::inside(&input.edits, &ground.root));
                }
            }
            (Moment::Before, Some((call, Deed::Shell(command)))) => {
                self.moves(files, command, &mut input);
                if let Some(ground) = ground {
                    ground.calls.begin_shell(call.id.as_deref(), command);
                }
            }
            (Moment::After, Some((call, Deed::Edit(paths)))) => self.edited(ground, call, paths, &mut input),
            (Moment::After, Some((_, Deed::Shell(command)))) => {
                self.changed(files, ground, &mut input);
                input.checkout = tree::checkout(files, ground_of(command, event, files).as_deref());
            }
            _ => {}
        }
        if let (Moment::TurnEnd, Some(ground)) = (event.moment, ground) {
            self.settle(files, ground, memory, &mut input);
        }
        input
    }

    /// Whether the command is about to move a checkout, and what lies open in it.
    fn moves(&self, files: &Files, command: &str, input: &mut Input) {
        let Some(root) = ground_of(command, self.event, files) else { return };
        input.checkout = tree::checkout(files, Some(&root));
        let dirty = files.changes(&root, PATIENCE).unwrap_or_default();
        input.dirty = dirty.into_iter().map(|change| change.path).collect();
    }

    /// What an edit changed; nothing, if it failed.
    fn edited(&self, ground: Option<&Ground>, call: &Call, paths: &[String], input: &mut Input) {
        let id = call.id.as_deref();
        let edited = tree::resolved(paths, &self.event.cwd);
        match ground {
            Some(ground) if call.failed => ground.calls.forget(id),
            Some(ground) => ground.calls.end_edit(id, &tree::inside(&edited, &ground.root)),
            None => {}
        }
        if !call.failed {
            input.changed = edited;
        }
    }

    /// What this call changed. Where git is too slow for that, the next call looks.
    fn changed(&self, files: &Files, ground: Option<&Ground>, input: &mut Input) {
        let Some((ground, since)) = ground.and_then(|ground| Some((ground, ground.calls.open_since()?))) else {
            return;
        };
        let Ok(changed) = files.changes(&ground.root, PATIENCE) else { return };
        let Doings { own, stray } = ground.calls.doings(since, &changed);
        ground.calls.end_all(&changed);
        (input.changed, input.stray) = (own, stray);
    }

    /// At the end of a turn: calls whose end nobody told, and files in which nothing is changed any more.
    fn settle(&self, files: &Files, ground: &Ground, memory: &Memory, input: &mut Input) {
        if memory.claims.is_empty() && !ground.calls.are_open() {
            return;
        }
        let Ok(changed) = files.changes(&ground.root, AT_REST) else { return };
        input.changed = ground.calls.open_edits(&changed);
        if let Some(since) = ground.calls.open_since() {
            input.changed.extend(ground.calls.doings(since, &changed).own);
        }
        ground.calls.end_all(&changed);
        let pattern =
            |change: &Changed| Pattern::of_path(&change.path, &[]).ok().map(|pattern| pattern.as_str().to_owned());
        let dirty: HashSet<String> = changed.iter().filter_map(pattern).collect();
        input.done_with = memory.claims.iter().filter(|(_, path)| !dirty.contains(*path)).map(|(id, _)| *id).collect();
    }

    /// Whether somebody else moved HEAD since the session last looked. What a command of its own moved is no news.
    fn head_news(&self, ground: Option<&Ground>, memory: &mut Memory) -> Option<String> {
        let ground = ground?;
        let now = ground.head.clone()?;
        let before = memory.heads.insert(ground.root.clone(), now.clone())?;
        let is_own = self.event.moment == Moment::After
            && self.event.call.as_ref().is_some_and(|call| matches!(call.deed, Deed::Shell(_)));
        let moved = before.commit != now.commit || before.branch != now.branch;
        (moved && !is_own && self.is_heard()).then(|| words::head_moved(&before, &now))
    }

    fn reply(
        &self,
        speaker: &Speaker<'_>,
        outcome: &Outcome,
        signals: &[Signal],
        head: Option<String>,
        memory: &mut Memory,
    ) -> Reply {
        let event = self.event;
        let hears = self.is_heard();
        if event.moment == Moment::Start {
            memory.forget_told();
        }
        let mut text = String::new();
        if (event.moment == Moment::Start || outcome.new) && hears && event.subagent.is_none() {
            text.push_str(&speaker.introduction(outcome));
        }
        text.extend(head);
        let verdict = self.meets(speaker, outcome, memory, &mut text);
        if hears && !outcome.outside.is_empty() && memory.is_news(format!("outside {}", outcome.outside.join(" "))) {
            text.push_str(&speaker.outside(&outcome.outside));
        }
        if hears {
            text.push_str(&speaker.news(outcome));
            for signal in
                signals.iter().filter(|signal| memory.is_news(format!("{} {}", signal.code.as_str(), signal.text)))
            {
                text.push_str(&words::signal(signal));
            }
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
            self.held(speaker, "others hold what you are about to edit:", &outcome.met, memory),
            self.held(speaker, took, &outcome.conflicts, memory),
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

    /// Who holds what, and whether any of it is news: a claim is told once for each path.
    fn held(
        &self,
        speaker: &Speaker<'_>,
        what: &str,
        conflicts: &[ConflictShape],
        memory: &mut Memory,
    ) -> Option<(String, bool)> {
        let key = |conflict: &ConflictShape| format!("met {} {} {}", conflict.id, conflict.holder, conflict.example);
        let news: Vec<bool> = conflicts.iter().map(|conflict| memory.is_news(key(conflict))).collect();
        (!conflicts.is_empty()).then(|| (speaker.held(what, conflicts), news.contains(&true)))
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
        let asked_for = |id| !memory.claims.contains_key(id);
        let held: Vec<_> = outcome.held.iter().filter(|claim| asked_for(&claim.id)).cloned().collect();
        let outcome = Outcome { held_total: held.len(), held, ..outcome.clone() };
        let owed: Vec<String> = outcome.owed.iter().map(|message| message.id.to_string()).collect();
        let held: Vec<String> = outcome.held.iter().map(|claim| claim.id.to_string()).collect();
        let key = format!("owed {} held {}", owed.join(","), held.join(","));
        if !(owed.is_empty() && held.is_empty()) && memory.is_news(key) {
            text.push_str(&speaker.reminder(&outcome));
        }
        Some(text).filter(|text| !text.is_empty())
    }

    fn remember(&self, book: &Book, outcome: &Outcome, memory: &Memory, ground: Option<&Ground>) {
        if self.event.moment == Moment::End {
            book.burn();
            return;
        }
        let step = u64::from(!matches!(self.event.moment, Moment::TurnEnd | Moment::SubagentEnd));
        let is_edit = matches!(self.event.moment, Moment::After | Moment::TurnEnd) && ground.is_some();
        book.change(|kept| {
            kept.take_over(memory);
            kept.steps += step;
            if is_edit {
                let claimed =
                    outcome.claimed.iter().filter(|claim| !claim.renewed && !claim.pattern.starts_with("res:"));
                kept.claims.extend(claimed.map(|claim| (claim.id, claim.pattern.clone())));
            }
            outcome.released.iter().for_each(|id| drop(kept.claims.remove(id)));
        });
    }
}

/// The work tree that a command moves.
fn ground_of(command: &str, event: &Event, files: &Files) -> Option<String> {
    tree::around(files, &checkout::moved(command, &event.cwd)?)
}

/// Of what is refused to an agent, what it should know: the rest is relay's own trouble.
pub fn concerns_the_agent(refusal: &Refusal) -> bool {
    matches!(refusal.code, Code::IdentityMismatch | Code::AgentSuspended | Code::AgentNameTaken)
}

/// The answer of the verb, wherever it ran.
pub fn heard(ctx: &Ctx<'_>, input: &Input) -> Result<(Outcome, Vec<Signal>, Option<Afterwards>)> {
    let done = relay_core::verbs::run(ctx, &Request::Hook(input.clone()))?;
    match done.outcome {
        Any::Hook(outcome) => Ok((outcome, done.signals, done.afterwards)),
        _ => Err(Code::Internal.refuse("a hook was answered with something else")),
    }
}
