//! An error with the way out of it: each step a button where this page can take it, otherwise a command to copy.

use askama::Template;
use askama::filters::HtmlSafe;
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

fn way(step: &Step, is_taken: bool) -> Way<'_> {
    let command = (!step.run.is_empty()).then(|| shell::line(&step.run));
    let call = step.tool.as_deref().zip(step.args.as_ref()).filter(|_| is_taken);
    let call = call.map(|(tool, args)| Call {
        tool,
        args: serde_json::to_string(args).unwrap_or_default(),
        label: command.clone().unwrap_or_else(|| tool.to_owned()),
    });
    Way { why: &step.why, call, command }
}
