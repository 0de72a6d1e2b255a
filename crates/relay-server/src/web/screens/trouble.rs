//! An error with the way out of it: each step a button where this page can take it, otherwise a command to copy.

use askama::Template;
use askama::filters::HtmlSafe;
use relay_core::domain::name::HUMAN;
use relay_core::domain::shell;
use relay_core::error::Code;
use relay_core::playbook::{Step, Who};
use relay_core::wire::v1::Failed;
use serde_json::json;

use super::filters;
use crate::web::frame::Frame;

#[derive(Template)]
#[template(path = "trouble.html")]
pub struct Trouble<'a> {
    frame: &'a Frame<'a>,
    failed: &'a Failed,
    ways: Vec<Way>,
    /// What a step brings of the form that failed, so that it is shown again where the step fails too.
    kept: Vec<(String, String)>,
    /// What this page can do at once.
    offers: Vec<Offer>,
}

/// Another form that may be sent instead, or first.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    pub label: String,
    /// The action of this project that it goes to.
    pub action: &'static str,
    pub fields: Vec<(String, String)>,
}

impl HtmlSafe for Trouble<'_> {}

/// One step.
struct Way {
    why: Vec<Piece>,
    /// What the button says that takes it: a tool and its arguments, as JSON.
    call: Option<String>,
    command: Option<String>,
}

/// A piece of a sentence: a word of a command, which stands between backticks, or not.
#[derive(Debug, PartialEq)]
struct Piece {
    text: String,
    is_code: bool,
}

impl<'a> Trouble<'a> {
    /// `takes` says of a step whether the page can take it for the human.
    pub fn of(frame: &'a Frame<'a>, failed: &'a Failed, takes: impl Fn(&Step) -> bool) -> Self {
        let steps = failed.playbook.iter().filter(|step| !is_of_a_shell(step) && !is_in_vain(failed, step));
        let ways = steps.map(|step| way(step, takes(step))).collect();
        Trouble { frame, failed, ways, kept: Vec::new(), offers: Vec::new() }
    }

    /// There is a button that takes a step.
    fn has_buttons(&self) -> bool {
        self.ways.iter().any(|way| way.call.is_some())
    }

    fn message(&self) -> Vec<Piece> {
        pieces(&self.failed.message)
    }

    /// The same, of a form in which something was typed.
    pub fn of_form(self, kept: Vec<(String, String)>) -> Self {
        Trouble { kept, ..self }
    }

    pub fn offering(self, offers: Vec<Offer>) -> Self {
        Trouble { offers, ..self }
    }
}

/// What the human does not do: the human is on the bus without it, holds nothing, and sees all mail here.
pub fn is_of_agents(tool: &str) -> bool {
    ["start", "prepare", "reserve", "poll"].contains(&tool)
}

/// Advice to type another command: here one has the form itself, and what it is about on the other screens.
fn is_of_a_shell(step: &Step) -> bool {
    step.who == Some(Who::You) && step.run.is_empty() && step.why.contains("`relay ")
}

/// To ask again for somebody who is not registered: an agent registers itself, and until then nothing has changed.
fn is_in_vain(failed: &Failed, step: &Step) -> bool {
    failed.code == Code::AgentNotRegistered && step.is_retry
}

fn pieces(text: &str) -> Vec<Piece> {
    // A backtick without another one is a character like others.
    if text.matches('`').count() % 2 == 1 {
        return vec![Piece { text: text.to_owned(), is_code: false }];
    }
    let pieces = text.split('`').enumerate().filter(|(_, text)| !text.is_empty());
    pieces.map(|(index, text)| Piece { text: text.to_owned(), is_code: index % 2 == 1 }).collect()
}

/// A sentence begins with a capital.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn way(step: &Step, is_taken: bool) -> Way {
    let is_of_human = step.args.as_ref().is_some_and(|args| args.get("agent").is_some_and(|agent| agent == HUMAN));
    let is_of_nobody = is_of_human && step.tool.as_deref().is_some_and(is_of_agents);
    let command = (!step.run.is_empty() && !is_of_nobody).then(|| shell::line(&step.run));
    let call = step.tool.as_deref().zip(step.args.as_ref()).filter(|_| is_taken);
    let call = call.map(|(tool, args)| json!({ "step": step.step, "tool": tool, "args": args }).to_string());
    Way { why: pieces(&sentence(&step.why)), call, command }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_between_backticks_is_code() {
        let check = |text: &str, expected: &[(&str, bool)]| {
            let found: Vec<(String, bool)> =
                pieces(text).into_iter().map(|piece| (piece.text, piece.is_code)).collect();
            let expected: Vec<(String, bool)> = expected.iter().map(|(text, is)| ((*text).to_owned(), *is)).collect();
            assert_eq!(found, expected, "{text}");
        };
        check("see `relay agents` first", &[("see ", false), ("relay agents", true), (" first", false)]);
        check("`a``b`", &[("a", true), ("b", true)]);
        check("a ` b", &[("a ` b", false)]);
        check("", &[]);
        assert_eq!((sentence("ask `it`"), sentence("")), ("Ask `it`".to_owned(), String::new()));
    }

    #[test]
    fn what_nobody_here_can_do_is_neither_a_button_nor_a_command() {
        let step = |tool: &str, agent: &str| Step {
            run: vec!["relay".to_owned(), tool.to_owned()],
            tool: Some(tool.to_owned()),
            args: json!({"agent": agent}).as_object().cloned(),
            ..Step::default()
        };
        let check = |tool: &str, agent: &str, expected: (bool, bool)| {
            let step = step(tool, agent);
            let way = way(&step, !is_of_agents(tool) && agent == HUMAN);
            assert_eq!((way.call.is_some(), way.command.is_some()), expected, "{tool} of {agent}");
        };
        check("ack", HUMAN, (true, true));
        check("ack", "BlueLake", (false, true));
        for tool in ["start", "prepare", "reserve", "poll"] {
            check(tool, HUMAN, (false, false));
            check(tool, "BlueLake", (false, true));
        }
    }
}
