//! A project that was moved. Its own history goes on; the projects that know its agents learn their new path, each in a
//! transaction of its own.

use super::Ctx;
use super::crossing::{self, Task};
use super::writing::{Who, write_as};
use crate::domain::event::Happened;
use crate::domain::name::{Party, ProjectKey};
use crate::domain::time::Timestamp;
use crate::store::{Crossing, Result, Tx};

/// Records the move, and who is yet to be told of it.
pub fn record(tx: &mut dyn Tx, at: Timestamp, pid: u32, from: &ProjectKey, to: &ProjectKey) -> Result<()> {
    let what = Happened::ProjectMoved { from: from.clone(), to: to.clone() };
    let number = tx.append(at, &Party::Relay, None, what, Vec::new())?;
    let task = Task::TellMove { from: from.clone() };
    let errand = serde_json::to_string(&task).map_err(super::writing::internal)?;
    let id = tx.tip()?.project;
    for project in tx.neighbours()? {
        // Of all projects that move, no other has this key.
        let (key, errand) = (format!("moved {id} {number} {project}"), errand.clone());
        tx.note_crossing(&Crossing { key, project, actor: Party::Relay, pid, errand })?;
    }
    Ok(())
}

/// Tells those who can be told now. The others are told by the next command here; they are returned.
pub fn tell(ctx: &Ctx<'_>) -> Result<Vec<ProjectKey>> {
    let mut untold = Vec::new();
    let noted = ctx.store.read()?.crossings()?;
    for crossing in noted {
        if let Ok(Task::TellMove { from }) = serde_json::from_str(&crossing.errand)
            && tell_one(ctx, &crossing, &from).is_err()
            && !untold.contains(&crossing.project)
        {
            untold.push(crossing.project);
        }
    }
    Ok(untold)
}

/// Wherever this project is by now: it may have moved again before the other one could be told.
pub(super) fn tell_one(ctx: &Ctx<'_>, crossing: &Crossing, from: &ProjectKey) -> Result<()> {
    let to = &ctx.project;
    crossing::as_guest(ctx, &crossing.project, &crossing.key, |guest| {
        if from == to || !guest.store.read()?.neighbours()?.contains(from) {
            return Ok(());
        }
        write_as(guest, "move", Who::Guest(Party::Relay), from, |writing| {
            writing.append(Happened::OtherProjectMoved { from: from.clone(), to: to.clone() }, Vec::new()).map(|_| ())
        })
        .map(|_| ())
    })?;
    crossing::drop_noted(ctx, &crossing.actor, &crossing.key)
}
