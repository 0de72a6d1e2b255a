//! What can be looked at: each address asks the verbs for what its screen shows.

use std::sync::Arc;

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use relay_core::domain::name::HUMAN;
use relay_core::domain::time::Span;
use relay_core::verbs::look::{EventFilter, Input, Outcome};
use relay_core::wire::v1::{Failure, MessageShape};

use super::act::draft;
use super::frame::{Frame, Screen};
use super::screens::agent::About;
use super::screens::replay::Moment;
use super::screens::reservations::Claims;
use super::screens::trouble::Trouble;
use super::screens::write::Draft;
use super::screens::{
    agent, agents, contacts, history, message, now, projects, replay, reservations, search, talk, thread, threads,
    write,
};
use super::seen::{Listed, Seen, noun};
use super::visit::Visit;
use super::{refused, shown, waiting};
use crate::http::{Shared, answers};

/// How many stand on a page of a list.
const PAGE: usize = 50;
/// How many events the history shows at a time.
const EVENTS: usize = 100;
/// How many events an agent's page shows, and a moment of a day around it.
const FEW: usize = 20;
/// A page of a history in which few events are wanted ends after this time, and says where to go on.
const PATIENCE: Span = Span::millis(40);

pub fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/", get(all))
        .route("/p/{slug}", get(async |visit: Visit| shown::see(&format!("{}/", visit.base()))))
        .route("/p/{slug}/", get(at_once))
        .route("/p/{slug}/threads", get(list_of_threads))
        .route("/p/{slug}/threads/{id}", get(one_thread))
        .route("/p/{slug}/messages/{number}", get(one_message))
        .route("/p/{slug}/search", get(found))
        .route("/p/{slug}/agents", get(list_of_agents))
        .route("/p/{slug}/agents/{name}", get(one_agent))
        .route("/p/{slug}/contacts", get(list_of_contacts))
        .route("/p/{slug}/reservations", get(list_of_claims))
        .route("/p/{slug}/history", get(events))
        .route("/p/{slug}/replay", get(a_day))
        .route("/p/{slug}/talk", get(who_talks))
        .route("/p/{slug}/write", get(box_to_write))
}

/// A screen, or what was refused instead.
fn answer(visit: &Visit, here: Screen, seen: Seen<impl FnOnce(&Frame<'_>) -> String>) -> Response {
    match seen {
        Ok(page) => visit.page(StatusCode::OK, page(&visit.frame(here))),
        Err(failure) => refused::inside(visit, &failure.error, None),
    }
}

/// A screen whose form asked for what there cannot be: the form again, with what was typed and what is wrong with it.
fn mend(
    visit: &Visit,
    here: Screen,
    failure: &Failure,
    page: impl FnOnce(&Frame<'_>, Trouble<'_>) -> String,
) -> Response {
    let (frame, failed) = (visit.frame(here), &failure.error);
    let trouble = Trouble::of(&frame, failed, |step| visit.takes(step));
    visit.page(answers::status_of(failed.code), page(&frame, trouble))
}

async fn all(mut visit: Visit) -> Response {
    waiting::look_into_all(&visit.shared, &visit.projects).await;
    visit.recount();
    answer(&visit, Screen::Projects, Ok(projects::page))
}

async fn at_once(visit: Visit) -> Response {
    let seen = async {
        let (status, page) = (visit.status().await?, visit.page_number());
        let mut opened = Vec::new();
        for asked in now::asked(&status, page).0.iter().take(now::OPENED) {
            opened.extend(visit.message(&asked.id.to_string()).await.ok());
        }
        Ok(move |frame: &Frame<'_>| now::page(frame, &status, page, &opened))
    };
    answer(&visit, Screen::Now, seen.await)
}

async fn list_of_threads(visit: Visit) -> Response {
    let seen = async {
        let input = Input { before: visit.number("before")?, limit: Some(visit.most(PAGE)), ..noun(&["thread"]) };
        match visit.look(input).await? {
            Outcome::Threads { threads, before, .. } => {
                Ok(move |frame: &Frame<'_>| threads::page(frame, &threads, before))
            }
            _ => visit.strange(),
        }
    };
    answer(&visit, Screen::Threads, seen.await)
}

async fn one_thread(visit: Visit, Path((_, id)): Path<(String, String)>) -> Response {
    let seen = async {
        let limit = Some(visit.most(thread::LETTERS));
        let input = Input { before: visit.number("before")?, limit, ..noun(&["thread", &id]) };
        match visit.look(input).await? {
            Outcome::Thread(view) => {
                let agents = if view.reservations.is_empty() { Vec::new() } else { visit.agents().await? };
                Ok(move |frame: &Frame<'_>| thread::page(frame, &view, &agents))
            }
            _ => visit.strange(),
        }
    };
    answer(&visit, Screen::Threads, seen.await)
}

/// A message is shown in its thread, where the thread's first page has all of it; otherwise by itself.
async fn one_message(visit: Visit, Path((_, number)): Path<(String, String)>) -> Response {
    let message = match visit.message(&number).await {
        Ok(message) => message,
        Err(failure) => return refused::inside(&visit, &failure.error, None),
    };
    let input = Input { limit: Some(visit.most(thread::LETTERS)), ..noun(&["thread", &message.thread]) };
    if let Ok(Outcome::Thread(view)) = visit.look(input).await
        && thread::shows(&view, &message)
    {
        return shown::see(&format!(
            "{}#m{}",
            visit.frame(Screen::Threads).one("threads", &message.thread),
            message.id
        ));
    }
    answer(&visit, Screen::Threads, Ok(|frame: &Frame<'_>| message::page(frame, &message)))
}

async fn found(visit: Visit) -> Response {
    let words = visit.query.text("words").unwrap_or_default().to_owned();
    let seen = async {
        let wanted: Vec<&str> = words.split_whitespace().collect();
        if wanted.is_empty() {
            return Ok(Box::default());
        }
        let what = [&["search"], wanted.as_slice()].concat();
        let input = Input { before: visit.number("before")?, limit: Some(visit.most(PAGE)), ..noun(&what) };
        match visit.look(input).await? {
            Outcome::Search(search) => Ok(search),
            _ => visit.strange(),
        }
    };
    let (seen, words) = (seen.await, &words);
    answer(&visit, Screen::Search, seen.map(|found| move |frame: &Frame<'_>| search::page(frame, words, &found)))
}

async fn list_of_agents(visit: Visit) -> Response {
    let state = visit.query.text("state").unwrap_or_default().to_owned();
    let number = visit.page_number();
    let seen = visit.agents().await;
    answer(&visit, Screen::Agents, seen.map(|all| move |frame: &Frame<'_>| agents::page(frame, &all, &state, number)))
}

async fn one_agent(visit: Visit, Path((_, name)): Path<(String, String)>) -> Response {
    let seen = async {
        let Outcome::Agents { agents } = visit.look(noun(&["agent", &name])).await? else { return visit.strange() };
        let Some(agent) = agents.into_iter().next() else { return visit.strange() };
        let filter = EventFilter { by: Some(agent.name.clone()), ..EventFilter::default() };
        let newest =
            Input { newest: true, limit: Some(visit.most(FEW)), patience: Some(PATIENCE), filter, ..noun(&["events"]) };
        let (status, held) = (visit.status().await?, visit.claims_of(&agent.name).await?);
        let last = visit.events(newest).await?;
        Ok(move |frame: &Frame<'_>| {
            let Listed { claims, contested, total, .. } = &held;
            let total = *total;
            agent::page(frame, &About { agent: &agent, status: &status, claims, contested, total, last: &last })
        })
    };
    answer(&visit, Screen::Agents, seen.await)
}

async fn list_of_contacts(visit: Visit) -> Response {
    let seen = async {
        let input = Input { before: visit.number("before")?, limit: Some(visit.most(PAGE)), ..noun(&["contacts"]) };
        match visit.look(input).await? {
            Outcome::Contacts { links, before } => Ok(move |frame: &Frame<'_>| contacts::page(frame, &links, before)),
            _ => visit.strange(),
        }
    };
    answer(&visit, Screen::Contacts, seen.await)
}

async fn list_of_claims(visit: Visit) -> Response {
    let path = visit.query.text("path").unwrap_or_default().trim().to_owned();
    let seen = async {
        let what = if path.is_empty() { noun(&["reservations"]) } else { noun(&["reservations", &path]) };
        let input = Input { after: visit.number("after")?, limit: Some(visit.most(PAGE)), ..what };
        Seen::Ok((visit.claims(input).await?, visit.agents().await?))
    };
    let (held, agents) = match seen.await {
        Ok(seen) => seen,
        Err(failure) => {
            return mend(&visit, Screen::Reservations, &failure, |frame, trouble| {
                reservations::refused(frame, &path, trouble)
            });
        }
    };
    let Listed { claims, contested, total, after } = &held;
    let listed = Claims { path: &path, claims, contested, total: *total, after: *after, agents: &agents };
    answer(&visit, Screen::Reservations, Ok(|frame: &Frame<'_>| reservations::page(frame, &listed)))
}

async fn events(visit: Visit) -> Response {
    let text = |name: &str| visit.query.text(name).map(|text| text.trim().to_owned());
    let kinds = visit.query.texts("kind").flat_map(|kinds| kinds.split(','));
    let filter = EventFilter {
        kind: kinds.map(|kind| kind.trim().to_owned()).filter(|kind| !kind.is_empty()).collect(),
        by: text("by"),
        thread: text("thread"),
        path: text("path"),
        since: text("since"),
        until: text("until"),
    };
    let full = visit.most(EVENTS);
    let seen = async {
        let input = Input {
            newest: true,
            before: visit.number("before")?,
            limit: Some(full),
            patience: Some(PATIENCE),
            filter: filter.clone(),
            ..noun(&["events"])
        };
        visit.events(input).await
    };
    match seen.await {
        Ok(events) => {
            answer(&visit, Screen::History, Ok(|frame: &Frame<'_>| history::page(frame, &filter, &events, full)))
        }
        Err(failure) => {
            mend(&visit, Screen::History, &failure, |frame, trouble| history::refused(frame, &filter, trouble))
        }
    }
}

async fn a_day(visit: Visit) -> Response {
    let seen = async {
        let today = visit.shared.desk.now().to_string();
        let date = visit.query.text("day").unwrap_or(&today[..10]).to_owned();
        let Outcome::Day(day) = visit.look(noun(&["day", &date])).await? else { return visit.strange() };
        let wanted = visit.number("at")?;
        let moment = match day.first.zip(day.last) {
            None => None,
            Some((first, last)) => {
                let at = wanted.unwrap_or(last).clamp(first, last);
                let (few, after) = (visit.most(FEW), at.saturating_sub(FEW as u64 / 2));
                let events =
                    visit.events(Input { after: Some(after), limit: Some(few), ..noun(&["events"]) }).await?.events;
                let held = Input { at: Some(at), limit: Some(visit.most(EVENTS)), ..noun(&["reservations"]) };
                Some((at, events, visit.claims(held).await?))
            }
        };
        Ok(move |frame: &Frame<'_>| {
            let moment = moment.as_ref().map(|(at, events, held)| Moment {
                at: *at,
                events,
                claims: &held.claims,
                contested: &held.contested,
                total: held.total,
            });
            replay::page(frame, &day, moment.as_ref())
        })
    };
    answer(&visit, Screen::Replay, seen.await)
}

async fn who_talks(visit: Visit) -> Response {
    let seen = async {
        match visit.look(noun(&["traffic"])).await? {
            Outcome::Traffic(traffic) => Ok(move |frame: &Frame<'_>| talk::page(frame, &traffic)),
            _ => visit.strange(),
        }
    };
    answer(&visit, Screen::Talk, seen.await)
}

async fn box_to_write(visit: Visit) -> Response {
    let seen = async {
        // Whoever leads here may say to whom and where, and puts no words into the human's mouth.
        let Draft { to, thread, reply_to, .. } = draft(&visit.query);
        let mut draft = Draft { to, thread, reply_to, ..Draft::default() };
        let beside = visit.beside(&draft).await?;
        let waits = |message: &&MessageShape| message.ack_required && message.acked_at.is_none();
        let of_human = |message: &&MessageShape| message.recipients.iter().any(|copy| copy.name == HUMAN);
        // Whoever answers what the human was asked to acknowledge does both.
        draft.ack = beside.answered.as_ref().filter(waits).filter(of_human).map(|message| message.id);
        Ok(move |frame: &Frame<'_>| write::page(frame, &draft, &beside, None))
    };
    answer(&visit, Screen::Write, seen.await)
}
