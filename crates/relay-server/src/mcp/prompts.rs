//! Prompts for the three moments at which coordination is forgotten: at the beginning, at a handover, at a conflict. They are
//! made of ids and checked names, never of what somebody wrote.

use relay_core::domain::name::{AgentName, ThreadId};
use relay_core::domain::pattern::MAX_BYTES;
use relay_core::domain::plain::escape_line;
use rmcp::ErrorData;
use rmcp::model::{
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, ListPromptsResult, Prompt, PromptArgument,
    PromptMessage, Role,
};
use serde_json::Value;

struct Template {
    name: &'static str,
    about: &'static str,
    arguments: &'static [(&'static str, &'static str)],
    text: &'static str,
}

const TEMPLATES: [Template; 3] = [
    Template {
        name: "start_work",
        about: "Begin a task so that the other agents know of it",
        arguments: &[("thread", "The ticket's id, which names the thread")],
        text: "Begin work on {thread} with relay. Call `prepare` with thread {thread}; where you are not registered yet it registers you, and \
               the name that it returns is your `agent` in every later call. Read the digest, then `reserve` exactly the paths that you are about to edit, with reason {thread}. If \
               `conflicts` is not empty, `send` to each holder in thread {thread} what you need and wait for the answer with `poll`. Tell the \
               thread your plan in one message. When you are done, `release` with reason {thread} and done.",
    },
    Template {
        name: "hand_over",
        about: "Hand a thread over to another agent, with nothing left in your head only",
        arguments: &[("thread", "The thread"), ("to", "The agent who takes it over")],
        text: "Hand {thread} over to `{to}` with relay. Call `look` with what [\"thread\",\"{thread}\"] and check what is still open. `send` to `{to}` \
               in thread {thread} with ack_required: what is done, what is left, which files matter, what you would do next, \
               what not to do, and that you wait for a reply. `release` your claims with reason {thread}, but not done. Wait for the reply with `poll`, \
               from `{to}` and wait 10m; `look` with what [\"outbox\"] shows who has acknowledged. Only when `{to}` has taken it over say \
               that you are finished.",
    },
    Template {
        name: "resolve_conflict",
        about: "Two agents want the same path",
        arguments: &[("path", "The path or pattern that is contested")],
        text: "Somebody else holds a part of `{path}`. Call `look` with what [\"reservations\",{path as JSON}] to see who and why. If the holder is \
               silent, take the claim over with `release`, its id, force and why. Otherwise `send` to the holder, in the thread that the claim names \
               as its reason: what you want to change there and when you need it, and agree on an order. Narrow your own claim with `release` \
               and keep. Do not edit the path before you have agreed; if you cannot agree, `send` to human.",
    },
];

pub fn list() -> ListPromptsResult {
    let prompt = |template: &Template| {
        let argument =
            |(name, about): &(&str, &str)| PromptArgument::new(*name).with_description(*about).with_required(true);
        Prompt::new(template.name, Some(template.about), Some(template.arguments.iter().map(argument).collect()))
    };
    ListPromptsResult::with_all_items(TEMPLATES.iter().map(prompt).collect())
}

/// Whether there is such a prompt.
pub fn is_known(name: &str) -> bool {
    TEMPLATES.iter().any(|template| template.name == name)
}

pub fn get(request: &GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData> {
    let invalid = |text: String| ErrorData::invalid_params(text, None);
    let Some(template) = TEMPLATES.iter().find(|template| template.name == request.name) else {
        return Err(invalid(format!("there is no prompt {:?}", request.name)));
    };
    let mut text = template.text.split_whitespace().collect::<Vec<_>>().join(" ");
    for (name, _) in template.arguments {
        let value = request.arguments.as_ref().and_then(|given| given.get(*name)).and_then(|value| value.as_str());
        let value = value.ok_or_else(|| invalid(format!("{} needs {name:?}", template.name)))?;
        let checked = checked(name, value).ok_or_else(|| invalid(format!("{value:?} is no {name}")))?;
        text = text.replace(&format!("{{{name} as JSON}}"), &Value::from(checked).to_string());
        text = text.replace(&format!("{{{name}}}"), checked);
    }
    let message = PromptMessage::new_text(Role::User, text);
    Ok(GetPromptResult::new(vec![message]).with_description(template.about).into())
}

/// A value that can be nothing else than what it is called.
fn checked<'a>(name: &str, value: &'a str) -> Option<&'a str> {
    let is_it = match name {
        "thread" => ThreadId::parse(value).is_ok(),
        "to" => {
            let (name, project) = value.split_once('@').unzip();
            AgentName::parse(name.unwrap_or(value)).is_ok() && project.is_none_or(is_path)
        }
        _ => is_path(value),
    };
    is_it.then_some(value)
}

/// One line that shows all of itself, and cannot end the backticks around it.
fn is_path(value: &str) -> bool {
    !value.is_empty() && value.len() <= MAX_BYTES && !value.contains('`') && escape_line(value) == value
}
