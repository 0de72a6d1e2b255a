//! The dialects of the coding agents' hooks: who calls, what it tells, and the one form of an answer that it honours.
//!
//! Translation without any I/O. What it rests on is `tests/fixtures/hooks`: for every event what comes in, what is read
//! of it and what goes out, each recorded from the real program or taken from its documentation.

mod caller;
mod claude;
mod codex;
mod copilot;
mod cursor;
mod gemini;
mod opencode;
mod said;
mod specific;
mod vscode;

use relay_core::verbs::hook::Moment;
use serde_json::Value;

use self::said::Tools;
use super::event::{Answer, Event, Reply, Verdict};

/// The longest text that reaches every model whole: what is longer than 10,000 characters, Claude Code puts into a file, and
/// Codex what is more than 2,500 tokens.
const LIMIT: usize = 8_000;
const CUT: &str = "\n(cut here: the text was too long)";

/// Said where a call is held back and nobody said why. Codex lets a call run that is denied without a reason.
const NO_REASON: &str = "relay holds this call back";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    Claude,
    Codex,
    Gemini,
    Cursor,
    OpenCode,
    Copilot,
    VsCode,
}

/// What there is to know of one dialect.
struct Grammar {
    name: &'static str,
    program: &'static str,
    /// Every event of the program.
    events: &'static [Known],
    tools: Tools,
    /// Whether a call can be put before the user.
    asks: bool,
    read: fn(&Value, &Grammar) -> Option<Event>,
    /// None where there is nothing to say.
    write: fn(&Event, &Words) -> Option<String>,
    /// On stdout where there is nothing to say.
    silence: &'static str,
    wakes: &'static str,
    /// The version of the program that was seen to do what answers say; none where only its documentation says so.
    seen: Option<&'static str>,
    /// What a hook that waited in the background ends with, to wake the agent.
    wake: Option<fn(&str) -> Answer>,
}

/// One event of a program.
struct Known {
    name: &'static str,
    /// None: of no interest.
    moment: Option<Moment>,
    /// Context in the answer reaches the model.
    hears: bool,
    /// It tells of a subagent, and means nothing without naming it.
    of_subagent: bool,
}

impl Known {
    const fn heard(name: &'static str, moment: Moment) -> Known {
        Known { name, moment: Some(moment), hears: true, of_subagent: false }
    }

    const fn deaf(name: &'static str, moment: Moment) -> Known {
        Known { name, moment: Some(moment), hears: false, of_subagent: false }
    }

    const fn ignored(name: &'static str) -> Known {
        Known { name, moment: None, hears: false, of_subagent: false }
    }

    const fn of_subagent(self) -> Known {
        Known { of_subagent: true, ..self }
    }
}

/// What a reply comes to at one event: only what the program takes there, and never too long or empty.
#[derive(Debug, Default)]
struct Words {
    context: Option<String>,
    decision: Option<(&'static str, String)>,
    go_on: Option<String>,
}

impl Grammar {
    fn known(&self, name: &str) -> Option<&'static Known> {
        self.events.iter().find(|known| known.name == name)
    }

    fn words(&self, event: &Event, reply: &Reply, hears: bool) -> Words {
        let decide = |verdict: &Verdict| match verdict {
            Verdict::Ask(reason) if self.asks => ("ask", reasoned(reason)),
            Verdict::Ask(reason) | Verdict::Deny(reason) => ("deny", reasoned(reason)),
        };
        let said = |text: &Option<String>| text.as_deref().and_then(fitted);
        Words {
            context: said(&reply.context).filter(|_| hears),
            decision: reply.verdict.as_ref().filter(|_| event.moment == Moment::Before).map(decide),
            go_on: said(&reply.go_on).filter(|_| event.moment == Moment::TurnEnd),
        }
    }
}

fn reasoned(reason: &str) -> String {
    fitted(reason).unwrap_or_else(|| NO_REASON.to_owned())
}

/// The text as long as every program takes it; none where it says nothing.
fn fitted(text: &str) -> Option<String> {
    if text.trim().is_empty() {
        return None;
    }
    if text.chars().nth(LIMIT).is_none() {
        return Some(text.to_owned());
    }
    let kept: String = text.chars().take(LIMIT - CUT.chars().count()).collect();
    Some(kept + CUT)
}

impl Dialect {
    #[cfg(test)]
    pub const ALL: [Dialect; 7] = [
        Dialect::Claude,
        Dialect::Codex,
        Dialect::Gemini,
        Dialect::Cursor,
        Dialect::OpenCode,
        Dialect::Copilot,
        Dialect::VsCode,
    ];

    /// Who calls, by what it tells. A command line does not say it: several programs run the hooks that stand in the
    /// settings of another.
    pub fn of(stdin: &Value) -> Option<Dialect> {
        caller::of(stdin)
    }

    fn grammar(self) -> &'static Grammar {
        match self {
            Dialect::Claude => &claude::GRAMMAR,
            Dialect::Codex => &codex::GRAMMAR,
            Dialect::Gemini => &gemini::GRAMMAR,
            Dialect::Cursor => &cursor::GRAMMAR,
            Dialect::OpenCode => &opencode::GRAMMAR,
            Dialect::Copilot => &copilot::GRAMMAR,
            Dialect::VsCode => &vscode::GRAMMAR,
        }
    }

    /// None: of no interest, or without something that is needed.
    pub fn read(self, stdin: &Value) -> Option<Event> {
        (self.grammar().read)(stdin, self.grammar())
    }

    /// Whether context in the answer to this event reaches the model.
    pub fn hears(self, event: &Event) -> bool {
        let is_lost = self == Dialect::Gemini && gemini::loses(event);
        !is_lost && self.grammar().known(&event.name).is_some_and(|known| known.hears)
    }

    pub fn write(self, event: &Event, reply: &Reply) -> Answer {
        let words = self.grammar().words(event, reply, self.hears(event));
        match (self.grammar().write)(event, &words) {
            Some(stdout) => Answer { stdout, ..Answer::default() },
            None => self.silence(),
        }
    }

    /// For everything that is not answered: every event of the dialect takes it without harm.
    pub fn silence(self) -> Answer {
        Answer { stdout: self.grammar().silence.to_owned(), ..Answer::default() }
    }

    /// The short word, as `init --only` takes it.
    pub fn name(self) -> &'static str {
        self.grammar().name
    }

    /// As an agent's program.
    pub fn program(self) -> &'static str {
        self.grammar().program
    }

    /// Whether one process of the program has many sessions, so that it says nothing about one of them.
    pub fn shares_process(self) -> bool {
        self.is_editor() || self == Dialect::OpenCode
    }

    pub fn is_editor(self) -> bool {
        matches!(self, Dialect::Cursor | Dialect::VsCode)
    }

    /// Whether the program also runs hooks that stand in the settings of another, so that one event may be told twice.
    pub fn runs_others_hooks(self) -> bool {
        matches!(self, Dialect::Cursor | Dialect::VsCode)
    }

    /// How an idle agent of this program is woken, or that it cannot be.
    pub fn wakes(self) -> &'static str {
        self.grammar().wakes
    }

    /// The version of the program that was seen to honour these answers.
    pub fn seen(self) -> Option<&'static str> {
        self.grammar().seen
    }

    /// What `relay hook --idle` ends with to wake the agent with these words. None where the program does not listen
    /// to a hook that waits in the background.
    pub fn wake(self, words: &str) -> Option<Answer> {
        let words = fitted(words)?;
        self.grammar().wake.map(|wake| wake(&words))
    }
}

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod tests;
