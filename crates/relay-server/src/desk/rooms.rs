//! The projects that are served. One that nobody has asked for in a while is closed again: each costs a thread and open files.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use relay_core::domain::name::{AgentName, ProjectKey};
use relay_core::domain::time::Span;
use relay_core::store::Result;
use relay_core::verbs::Request;

use super::Desk;
use super::room::Room;

/// How long one may stand empty.
const EMPTY: Span = Span::seconds(60);
/// How many stand open at a time. Beyond that the one that was left first is closed at once.
const MOST: usize = 64;

#[derive(Default)]
pub struct Rooms(Mutex<HashMap<ProjectKey, Arc<Room>>>);

impl Rooms {
    /// The room of a project in which somebody has started; whoever begins a project makes it.
    pub fn enter(
        &self,
        desk: &Arc<Desk>,
        project: &ProjectKey,
        request: Option<&Request>,
        named: Option<&AgentName>,
    ) -> Result<Arc<Room>> {
        let home = desk.home();
        if home.known(project)?.is_none() {
            if !request.is_some_and(Request::begins_a_project) {
                return Err(home.nobody_in(project, named.map(AgentName::as_str)));
            }
            drop(home.open_or_create(project)?);
        }
        let now = desk.clock.monotonic();
        let mut rooms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = rooms.entry(project.clone()).or_insert_with(|| Room::new(desk, project)).clone();
        room.entered(now);
        close_some(&mut rooms, now);
        Ok(room)
    }

    /// Those that were written to and not left to a drainer's care for good.
    pub fn written(&self) -> Vec<ProjectKey> {
        let rooms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rooms.values().filter(|room| room.has_written()).map(|room| room.project().clone()).collect()
    }
}

/// Closes what has stood empty for long enough, or is one too many. Whoever is in a room holds it.
fn close_some(rooms: &mut HashMap<ProjectKey, Arc<Room>>, now: Span) {
    let since = |room: &Arc<Room>| now.as_millis() - room.last_entered().as_millis();
    rooms.retain(|_, room| !room.is_empty() || since(room) < EMPTY.as_millis());
    while rooms.len() > MOST {
        let empty = rooms.iter().filter(|(_, room)| room.is_empty());
        let Some(first) = empty.max_by_key(|(_, room)| since(room)).map(|(project, _)| project.clone()) else { return };
        rooms.remove(&first);
    }
}
