//! What the screens are made of: the looks of a visit, each with the one shape that it is answered in.

use relay_core::domain::event::Number;
use relay_core::error::Code;
use relay_core::verbs::look::{EventFilter, Events, Input, Outcome, Status};
use relay_core::wire::v1::{AgentShape, ClaimShape, Failure, MessageShape};

use super::screens::write::{Beside, Draft};
use super::visit::Visit;

pub type Seen<T> = Result<T, Box<Failure>>;

/// A page of claims.
pub struct Listed {
    pub claims: Vec<ClaimShape>,
    /// Which of them were contested.
    pub contested: Vec<Number>,
    /// How many there are on all pages.
    pub total: usize,
    /// Where the next page begins.
    pub after: Option<Number>,
}

/// A look at a noun and what it needs.
pub fn noun(words: &[&str]) -> Input {
    Input { what: words.iter().map(|word| (*word).to_owned()).collect(), ..Input::default() }
}

impl Visit {
    /// As many as a page of a list may have.
    pub fn most(&self, wanted: usize) -> usize {
        wanted.min(self.shared.desk.limits().page)
    }

    /// An answer of a shape that nobody asked for.
    pub fn strange<T>(&self) -> Seen<T> {
        Err(self.refused("look", &Code::Internal.refuse("a look was answered with something else")))
    }

    pub async fn status(&self) -> Seen<Box<Status>> {
        match self.look(Input { wide: true, ..noun(&["status"]) }).await? {
            Outcome::Status(status) => {
                if let Some(place) = &self.project {
                    self.shared.waiting.seen(place, &status, self.shared.desk.monotonic());
                }
                Ok(status)
            }
            _ => self.strange(),
        }
    }

    pub async fn agents(&self) -> Seen<Vec<AgentShape>> {
        match self.look(noun(&["agents"])).await? {
            Outcome::Agents { agents } => Ok(agents),
            _ => self.strange(),
        }
    }

    pub async fn message(&self, number: &str) -> Seen<MessageShape> {
        match self.look(noun(&["message", number])).await? {
            Outcome::Message { message } => Ok(message),
            _ => self.strange(),
        }
    }

    /// What is known of a letter. A thread in which nobody has written yet is as good as any.
    pub async fn beside(&self, draft: &Draft) -> Seen<Beside> {
        let answered = match draft.reply_to {
            Some(answered) => Some(self.message(&answered.to_string()).await?),
            None => None,
        };
        let thread = Some(draft.thread.trim()).filter(|thread| !thread.is_empty());
        let thread = thread.or(answered.as_ref().map(|message| message.thread.as_str()));
        let reopens = match thread {
            Some(thread) => {
                let input = Input { limit: Some(1), ..noun(&["thread", thread]) };
                matches!(self.look(input).await, Ok(Outcome::Thread(view)) if view.thread.done)
            }
            None => false,
        };
        Ok(Beside { agents: self.agents().await?, answered, reopens })
    }

    pub async fn events(&self, input: Input) -> Seen<Box<Events>> {
        match self.look(input).await? {
            Outcome::Events(events) => Ok(events),
            _ => self.strange(),
        }
    }

    pub async fn claims(&self, input: Input) -> Seen<Listed> {
        match self.look(input).await? {
            Outcome::Reservations { reservations, contested, total, after } => {
                Ok(Listed { claims: reservations, contested, total, after })
            }
            _ => self.strange(),
        }
    }

    /// The live claims of one agent.
    pub async fn claims_of(&self, name: &str) -> Seen<Listed> {
        let filter = EventFilter { by: Some(name.to_owned()), ..EventFilter::default() };
        self.claims(Input { filter, limit: Some(self.most(100)), ..noun(&["reservations"]) }).await
    }
}
