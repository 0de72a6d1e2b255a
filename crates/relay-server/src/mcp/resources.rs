//! What a client can look at without a tool: an inbox, a thread, a message, the claims, the agents, a playbook. Looking there
//! is reading and nothing else: no mail counts as handed over.

use percent_encoding::percent_decode_str;
use relay_core::domain::event::Number;
use relay_core::error::{Code, Kind};
use relay_core::store::Result;
use relay_core::verbs::{Request, look, poll};
use relay_core::wire::v1::Failure;
use rmcp::ErrorData;
use rmcp::model::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceResponse, ReadResourceResult, Resource,
    ResourceContents, ResourceTemplate,
};
use serde_json::json;

use super::{Handler, tools};
use crate::ask::{Answer, Ask, Body, Origin, Said};
use crate::front::Speech;

const SCHEME: &str = "relay://";
const TEXT: &str = "text/plain";

/// Each with what stands in its place, and what it is. The project and the agent are said where relay does not know them.
const TEMPLATES: [(&str, &str, &str); 6] = [
    ("inbox/{agent}{?project}", "inbox", "The unread mail of an agent of yours, oldest first"),
    ("thread/{id}{?project,agent}", "thread", "A thread: its subject, its members, its last messages"),
    ("message/{id}{?project,agent}", "message", "One message by its number"),
    ("playbook/{code}", "playbook", "The way out of an error class"),
    ("reservations{?project,agent}", "reservations", FIXED[0].1),
    ("agents{?project,agent}", "agents", FIXED[1].1),
];

/// Those that are there without a name.
const FIXED: [(&str, &str); 2] =
    [("reservations", "Who holds which paths"), ("agents", "Who is on this project's bus, and who is alive")];

pub fn list(origin: &Origin) -> ListResourcesResult {
    let fixed = FIXED.iter().map(|(name, about)| resource(name, name, about));
    let own = origin.agent.as_ref().map(|agent| resource(&format!("inbox/{agent}"), "inbox", TEMPLATES[0].2));
    ListResourcesResult::with_all_items(fixed.chain(own).collect())
}

fn resource(path: &str, name: &str, about: &str) -> Resource {
    Resource::new(format!("{SCHEME}{path}"), name).with_description(about).with_mime_type(TEXT)
}

pub fn templates() -> ListResourceTemplatesResult {
    let template = |(path, name, about): (&str, &str, &str)| {
        ResourceTemplate::new(format!("{SCHEME}{path}"), name).with_description(about).with_mime_type(TEXT)
    };
    ListResourceTemplatesResult::with_all_items(TEMPLATES.into_iter().map(template).collect())
}

pub async fn read(
    handler: &Handler,
    uri: &str,
    origin: &Origin,
) -> std::result::Result<ReadResourceResponse, ErrorData> {
    let answer = handler.answer(origin, ask(handler, uri, origin)?).await;
    if let Body::Failed(failure) = &answer.body {
        return Err(unreadable(uri, failure, &answer));
    }
    let text = tools::plain(&handler.desk.front().text(&answer, Speech::Tools, &tools::boundary()));
    Ok(ReadResourceResult::new(vec![ResourceContents::text(text, uri)]).into())
}

/// Relay's answer, and which resource it is about. What cannot be read now may be there all the same.
fn unreadable(uri: &str, failure: &Failure, answer: &Answer) -> ErrorData {
    let code = failure.error.code;
    let is_not_there =
        code.as_str().ends_with("_NOT_FOUND") || code == Code::AgentNotRegistered || code.kind() == Kind::Input;
    let mut data = answer.json();
    data["uri"] = json!(uri);
    let message = failure.error.message.clone();
    match is_not_there {
        true => ErrorData::resource_not_found(message, Some(data)),
        false => ErrorData::internal_error(message, Some(data)),
    }
}

/// What an address or a template is about, if relay has such a resource.
pub fn noun(uri: &str) -> Option<&'static str> {
    let noun = uri.strip_prefix(SCHEME)?.split(['/', '?', '{']).next()?;
    TEMPLATES.iter().find(|(_, known, _)| *known == noun).map(|(_, known, _)| *known)
}

/// Whether an address names a resource, there or not.
pub fn is_address(uri: &str) -> bool {
    Address::parse(uri).is_some()
}

/// The request that reads a resource.
pub fn ask(
    handler: &Handler,
    uri: &str,
    origin: &Origin,
) -> std::result::Result<std::result::Result<Ask, Box<Answer>>, ErrorData> {
    let Some(address) = Address::parse(uri) else {
        return Err(ErrorData::resource_not_found(format!("there is no resource {uri}"), Some(json!({"uri": uri}))));
    };
    let said = Said { project: address.project.clone(), agent: address.agent.clone(), ..Said::default() };
    let asked = handler.ask(origin, address.command(), said, address.request());
    Ok(asked.map(|ask| Ask { is_glance: true, ..ask }))
}

/// What a resource's address names.
struct Address {
    noun: String,
    name: Option<String>,
    project: Option<String>,
    agent: Option<String>,
}

impl Address {
    /// `relay://noun/name`, and after a `?` the project and the agent where those are not known otherwise.
    fn parse(uri: &str) -> Option<Self> {
        let (path, query) = uri.strip_prefix(SCHEME)?.split_once('?').unwrap_or((uri.strip_prefix(SCHEME)?, ""));
        let (noun, name) = path.split_once('/').map_or((path, None), |(noun, name)| (noun, Some(name)));
        let is_fixed = FIXED.iter().any(|(fixed, _)| *fixed == noun);
        let is_template = !is_fixed && TEMPLATES.iter().any(|(_, template, _)| *template == noun);
        let name = name.map(decoded).filter(|name| !name.is_empty());
        if !(is_fixed && name.is_none() || is_template && name.is_some()) {
            return None;
        }
        let value = |wanted: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(name, _)| *name == wanted).map(|(_, value)| decoded(value))
        };
        let agent = if noun == "inbox" { name.clone() } else { value("agent") };
        Some(Address { noun: noun.to_owned(), name, project: value("project"), agent })
    }

    fn command(&self) -> &'static str {
        if self.noun == "inbox" { "poll" } else { "look" }
    }

    fn request(&self) -> Result<Request> {
        Ok(match (self.noun.as_str(), &self.name) {
            ("inbox", _) => Request::Poll(poll::Input { bodies: true, ..poll::Input::default() }),
            ("message", Some(number)) => {
                let is_number = number.parse::<Number>().is_ok();
                if !is_number {
                    return Err(Code::MessageNotFound.refuse(format!("there is no message {number:?}")));
                }
                look(&["message", number])
            }
            (noun, Some(name)) => look(&[noun, name]),
            (noun, None) => look(&[noun]),
        })
    }
}

fn look(words: &[&str]) -> Request {
    let what = words.iter().map(|word| (*word).to_owned()).collect();
    Request::Look(look::Input { what, ..look::Input::default() })
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}
