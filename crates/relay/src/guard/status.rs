//! Whether the guard stands, hook by hook.

use relay_core::store::Result;
use relay_store::hooks::Hooks;

use super::owner::owner;
use super::place::{Found, Place};
use super::{Row, State};

pub fn status(hooks: &Hooks) -> Result<Vec<Row>> {
    let places = Place::both(&hooks.folder)?;
    let owner = owner(hooks, &places);
    let mut rows = Vec::new();
    for place in &places {
        let called = owner.as_ref().and_then(|owner| owner.calls(hooks, place.hook));
        rows.push(match called {
            Some(file) => row(place, State::Called, Some(file.to_string_lossy().into_owned()), None),
            None => of(hooks, place)?,
        });
    }
    Ok(rows)
}

fn of(hooks: &Hooks, place: &Place) -> Result<Row> {
    let before = place.before.display();
    let shadowed = || -> Result<Option<Row>> {
        if hooks.folder == hooks.own_folder() {
            return Ok(None);
        }
        let own = Place::of(&hooks.own_folder(), place.hook)?;
        let file = hooks.configured_in.as_ref().map(|file| file.display().to_string()).unwrap_or_default();
        let note = format!("git looks in {} (core.hooksPath in {file})", hooks.folder.display());
        let is_there = matches!(own.found, Found::Relays { .. });
        Ok(is_there.then(|| row(&own, State::Shadowed, None, Some(note))))
    };
    Ok(match &place.found {
        Found::Relays { .. } if !place.is_run => {
            row(place, State::NotExecutable, None, Some("git ignores it".to_owned()))
        }
        Found::Relays { .. } if rustix::fs::access(&place.before, rustix::fs::Access::EXEC_OK).is_ok() => {
            row(place, State::Chained, None, Some(format!("{before} runs first")))
        }
        Found::Relays { .. } => row(place, State::Installed, None, None),
        Found::Calls if place.is_run => row(place, State::Called, None, None),
        Found::Changed => row(place, State::Changed, None, Some("it has lines of somebody else's".to_owned())),
        Found::Nothing => match shadowed()? {
            Some(row) => row,
            None => row(place, State::Missing, None, None),
        },
        Found::Foreign(_) | Found::Calls | Found::Strange => match shadowed()? {
            Some(row) => row,
            None if !place.is_run => {
                row(place, State::NotExecutable, None, Some("it is somebody else's, and git ignores it".to_owned()))
            }
            None => row(place, State::Foreign, None, None),
        },
    })
}

fn row(place: &Place, state: State, path: Option<String>, note: Option<String>) -> Row {
    let path = path.unwrap_or_else(|| place.path.to_string_lossy().into_owned());
    Row { hook: place.hook, state, path, note }
}
