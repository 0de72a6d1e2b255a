//! One request of somebody who is inside: which session, which project, and the way to the desk. Whatever it reads or does is a
//! verb, asked as the human.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{StatusCode, Uri, header};
use axum::response::Response;
use percent_encoding::percent_decode_str;
use relay_core::domain::event::Number;
use relay_core::domain::name::{HUMAN, ProjectKey};
use relay_core::error::{Code, Refusal};
use relay_core::playbook::Step;
use relay_core::store::Result;
use relay_core::verbs::{Caller, Outcome, Request, look};
use relay_core::wire::v1::Failure;
use serde_json::{Map, Value};

use super::form::{Form, REPEATED};
use super::frame::{Flash, Frame, Place, Screen};
use super::screens::trouble::is_of_agents;
use super::seen::Seen;
use super::session::Session;
use super::{refused, shown, waiting};
use crate::ask::{Answer, Ask, Body, Said};
use crate::http::Shared;
use crate::mcp::Slot;

/// What the page's own script says of itself: not every browser says it of scripts.
const SCRIPT: &str = "x-relay-script";

pub struct Visit {
    pub shared: Arc<Shared>,
    pub session: Arc<Session>,
    pub projects: Vec<Place>,
    pub project: Option<Place>,
    pub query: Form,
    nonce: String,
    /// Path and query; of an action, those of the page that it goes back to.
    path: String,
    /// Somebody only wanted to look.
    is_look: bool,
    pub flash: Option<Flash>,
    slot: Slot,
}

impl FromRequestParts<Arc<Shared>> for Visit {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Shared>) -> std::result::Result<Self, Response> {
        let refuse = |status, refusal: &Refusal| refused::outside(shared, status, refusal);
        let Some(session) = parts.extensions.get::<Arc<Session>>().cloned() else {
            return Err(refused::closed(shared, None));
        };
        let known = shared.desk.projects().await;
        let known = known.map_err(|refusal| refuse(StatusCode::INTERNAL_SERVER_ERROR, &refusal))?;
        let place = |(key, slug): (ProjectKey, String)| Place { slug, key: key.to_string(), waiting: 0 };
        let projects: Vec<Place> = known.into_iter().map(place).collect();
        let project = match slug(parts.uri.path()) {
            None => None,
            Some(slug) => match projects.iter().find(|place| place.slug == slug) {
                Some(place) => Some(place.clone()),
                None => {
                    let text = format!("there is no project {slug:?} on this machine; / lists those that there are");
                    return Err(refuse(StatusCode::NOT_FOUND, &Code::ProjectKeyInvalid.refuse(text)));
                }
            },
        };
        let path = match parts.extensions.get::<Arc<Form>>() {
            None => address(&parts.uri),
            Some(form) => form.back().map_or_else(|| format!("{}/", base(project.as_ref())), str::to_owned),
        };
        let visit = Visit {
            shared: shared.clone(),
            projects,
            project,
            query: Form::of_query(parts.uri.query()),
            nonce: shown::nonce(),
            path,
            is_look: parts.extensions.get::<Arc<Form>>().is_none(),
            // What a script asks for is compared with what is there, and shown to nobody as it is.
            flash: if is_of_a_script(parts) { None } else { session.said() },
            slot: parts.extensions.get::<Slot>().cloned().unwrap_or_default(),
            session,
        };
        Ok(visit.counted().await)
    }
}

/// Path and query, as every form of the page repeats it; of one that is too long to be repeated the path alone.
fn address(uri: &Uri) -> String {
    let whole = uri.path_and_query().map(ToString::to_string).unwrap_or_default();
    if whole.len() > REPEATED { uri.path().chars().take(REPEATED).collect() } else { whole }
}

/// The name of the folder that an address is about.
fn slug(path: &str) -> Option<String> {
    let slug = path.strip_prefix("/p/")?.split('/').next()?;
    Some(percent_decode_str(slug).decode_utf8_lossy().into_owned())
}

fn base(project: Option<&Place>) -> String {
    project.map(|place| place.address().trim_end_matches('/').to_owned()).unwrap_or_default()
}

/// The page above one that cannot be shown: the same without its query, the list that it is in, or Now.
fn above(path: &str, base: &str) -> String {
    if let Some((screen, _)) = path.split_once('?') {
        return screen.to_owned();
    }
    match path.strip_prefix(base).and_then(|rest| rest.trim_start_matches('/').split_once('/')) {
        Some(("messages", _)) => format!("{base}/threads"),
        Some((list, _)) => format!("{base}/{list}"),
        None => format!("{base}/"),
    }
}

fn is_of_a_script(parts: &Parts) -> bool {
    parts.method != axum::http::Method::GET
        || parts.headers.contains_key(SCRIPT)
        || parts.headers.get(header::ACCEPT).is_some_and(|accept| accept == "text/event-stream")
}

impl Visit {
    /// With what waits in each project. Now sees for itself what waits in its own, and the list of projects what does in all.
    async fn counted(mut self) -> Self {
        let is_now = self.path == format!("{}/", self.base());
        if let Some(shown) = self.project.as_ref().filter(|_| self.is_look) {
            if !is_now {
                waiting::look_at(&self.shared, shown).await;
            }
            waiting::look_around(&self.shared, &self.projects, shown);
        }
        self.recount();
        self
    }

    /// What is known by now of what waits in each project.
    pub fn recount(&mut self) {
        for place in &mut self.projects {
            place.waiting = self.shared.waiting.of(place);
        }
    }

    pub fn frame(&self, here: Screen) -> Frame<'_> {
        Frame {
            // What waits in the one that is shown may have been seen since.
            project: self.project.clone().map(|place| Place { waiting: self.shared.waiting.of(&place), ..place }),
            projects: &self.projects,
            here,
            nonce: &self.nonce,
            csrf: self.session.csrf(),
            key: &shown::key,
            flash: self.flash.as_ref(),
            now: self.shared.desk.now(),
            path: &self.path,
        }
    }

    pub fn page(&self, status: StatusCode, text: String) -> Response {
        shown::page(status, &self.nonce, text)
    }

    /// Where the pages of its project are, without a slash at the end.
    pub fn base(&self) -> String {
        base(self.project.as_ref())
    }

    /// The page that an action goes back to.
    pub fn back(&self) -> &str {
        &self.path
    }

    pub fn is_look(&self) -> bool {
        self.is_look
    }

    /// Where whoever was refused goes on: to the page on which they acted, or away from the one that cannot be shown.
    pub fn way_out(&self) -> String {
        if self.is_look { above(&self.path, &self.base()) } else { self.path.clone() }
    }

    pub fn key(&self) -> Option<ProjectKey> {
        self.project.as_ref().map(|place| ProjectKey::resolved(place.key.clone()))
    }

    /// Asks for what a screen shows. Nothing of it is kept, not even that it failed.
    pub async fn look(&self, input: look::Input) -> std::result::Result<look::Outcome, Box<Failure>> {
        let answer = self.ask(Request::Look(input), "look", self.said(None), true).await;
        let refusal = match answer.body {
            Body::Done(done) => match done.outcome {
                Outcome::Look(outcome) => return Ok(outcome),
                _ => Code::Internal.refuse("a look was answered with something else"),
            },
            Body::Failed(failure) => return Err(failure),
        };
        Err(self.refused("look", &refusal))
    }

    /// Does something. The same key does it once, however often the form is sent.
    pub async fn act(&self, request: Request, command: &str, key: Option<&str>) -> Answer {
        let mut answer = self.ask(request, command, self.said(key), false).await;
        if let Some(place) = &self.project {
            self.shared.waiting.changed(place);
        }
        if let Some(late) = answer.late.take() {
            self.slot.put(late);
        }
        answer
    }

    async fn ask(&self, request: Request, command: &str, said: Said, is_glance: bool) -> Answer {
        let desk = &self.shared.desk;
        let key = match said.key() {
            Ok(key) => key,
            Err(refusal) => return Answer::refused(command, &said, None, &refusal, desk.now()),
        };
        let caller = Caller::human(self.shared.config.owner.clone());
        desk.ask(Ask { request, command: command.to_owned(), said, caller, key, is_glance }).await
    }

    fn said(&self, key: Option<&str>) -> Said {
        let place = self.key();
        let project = place.as_ref().map(ToString::to_string);
        Said { project, place, project_is_known: true, key: key.map(str::to_owned), ..Said::default() }
    }

    /// A number in the address.
    pub fn number(&self, name: &str) -> Seen<Option<Number>> {
        self.query.number(name).map_err(|refusal| self.refused("look", &refusal))
    }

    /// Which page of a list is wanted, counted from one; whatever is no number is the first.
    pub fn page_number(&self) -> usize {
        self.query.text("page").and_then(|page| page.parse().ok()).unwrap_or(1)
    }

    /// Whether this page can take a step of a playbook.
    pub fn takes(&self, step: &Step) -> bool {
        let call = step.tool.as_ref().zip(step.args.clone());
        call.is_some_and(|(tool, args)| !is_of_agents(tool) && self.request(tool, args).is_ok())
    }

    /// What never reached the desk, in the one shape that every refusal has.
    pub fn refused(&self, command: &str, refusal: &Refusal) -> Box<Failure> {
        let said = Said { agent: Some(HUMAN.to_owned()), ..self.said(None) };
        match Answer::refused(command, &said, None, refusal, self.shared.desk.now()).body {
            Body::Failed(failure) => failure,
            Body::Done(_) => unreachable!("a refusal is no success"),
        }
    }

    /// The request that a playbook's step means here: of this project, as the human, with the key that the step has.
    pub fn request(&self, tool: &str, mut args: Map<String, Value>) -> Result<(Request, Option<String>)> {
        let invalid = |text: String| Err(Code::InputInvalid.refuse(text));
        let mut word = |name: &str| args.remove(name).and_then(|value| value.as_str().map(str::to_owned));
        let (project, agent, key) = (word("project"), word("agent"), word("idempotency_key"));
        if project.is_some_and(|project| self.project.as_ref().is_none_or(|here| here.key != project)) {
            return invalid("this step is for another project; open that one's page".to_owned());
        }
        if let Some(agent) = agent.filter(|agent| agent != HUMAN) {
            return invalid(format!("this step is for {agent} to take, and here you act as the human"));
        }
        let mut request = self.shared.desk.front().request(tool, args)?;
        if let Request::Recover(input) = &mut request {
            // A person's step is taken where its command runs, by somebody who reads what it asks.
            input.yes = false;
        }
        Ok((request, key))
    }
}

#[cfg(test)]
mod tests {
    use super::above;

    #[test]
    fn a_page_that_cannot_be_shown_leads_to_the_one_above_it() {
        for (path, expected) in [
            ("/p/a-1/history?since=yesterday", "/p/a-1/history"),
            ("/p/a-1/threads/bd-1?before=x", "/p/a-1/threads/bd-1"),
            ("/p/a-1/threads/bd-1", "/p/a-1/threads"),
            ("/p/a-1/agents/Nobody", "/p/a-1/agents"),
            ("/p/a-1/messages/4711", "/p/a-1/threads"),
            ("/p/a-1/history", "/p/a-1/"),
            ("/p/a-1/", "/p/a-1/"),
        ] {
            assert_eq!(above(path, "/p/a-1"), expected, "{path}");
        }
        assert_eq!(above("/", ""), "/");
    }
}
