//! An error with the way out of it: each step a button where this page can take it, otherwise a command to copy.

use askama::Template;
use askama::filters::HtmlSafe;
use relay_core::domain::name::HUMAN;
use relay_core::domain::shell;
use relay_core::playbook::Step;
use relay_core::wire::v1::Failed;

use super::filters;
use crate::web::frame::Frame;

#[derive(Template)]
#[template(path = "trouble.html")]
pub struct Trouble<'a> {
    frame: &'a Frame<'a>,
    failed: &'a Failed,
    ways: Vec<Way<'a>>,
    /// What a step brings of the form that failed, so that it is shown again where the step fails too.
    kept: Vec<(String, String)>,
}

impl HtmlSafe for Trouble<'_> {}

/// One step.
struct Way<'a> {
    why: &'a str,
    call: Option<Call<'a>>,
    command: Option<String>,
}

struct Call<'a> {
    tool: &'a str,
    args: String,
    /// What the button does, as the command that does the same.
    label: String,
}

impl<'a> Trouble<'a> {
    /// `takes` says of a step whether the page can take it for the human.
    pub fn of(frame: &'a Frame<'a>, failed: &'a Failed, takes: impl Fn(&Step) -> bool) -> Self {
        let ways = failed.playbook.iter().map(|step| way(step, takes(step))).collect();
        Trouble { frame, failed, ways, kept: Vec::new() }
    }

    /// The same, of a form in which something was typed.
    pub fn of_form(self, kept: Vec<(String, String)>) -> Self {
        Trouble { kept, ..self }
    }
}

/// What the human does not do: the human is on the bus without it, holds nothing, and sees all mail here.
pub fn is_of_agents(tool: &str) -> bool {
    ["start", "prepare", "reserve", "poll"].contains(&tool)
}

fn way(step: &Step, is_taken: bool) -> Way<'_> {
    let is_of_human = step.args.as_ref().is_some_and(|args| args.get("agent").is_some_and(|agent| agent == HUMAN));
    let is_of_nobody = is_of_human && step.tool.as_deref().is_some_and(is_of_agents);
    let command = (!step.run.is_empty() && !is_of_nobody).then(|| shell::line(&step.run));
    let call = step.tool.as_deref().zip(step.args.as_ref()).filter(|_| is_taken);
    let call = call.map(|(tool, args)| Call {
        tool,
        args: serde_json::to_string(args).unwrap_or_default(),
        label: command.clone().unwrap_or_else(|| tool.to_owned()),
    });
    Way { why: &step.why, call, command }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
