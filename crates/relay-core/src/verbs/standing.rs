//! `retire` and `suspend`: taking an agent off the bus, and letting a suspended one back on.

use serde::{Deserialize, Serialize};

use super::actor;
use super::writing::write;
use super::{Ctx, Done, Outcome as Any};
use crate::domain::agent::{Agent, Standing};
use crate::domain::event::Happened;
use crate::domain::name::AgentName;
use crate::error::Code;
use crate::store::Result;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    Retire,
    Suspend,
    Reinstate,
}

impl Action {
    pub fn verb(self) -> &'static str {
        match self {
            Action::Retire => "retire",
            Action::Suspend | Action::Reinstate => "suspend",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Input {
    pub action: Action,
    /// The agent concerned; the caller itself when absent.
    pub name: Option<AgentName>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    pub agent: String,
    pub state: Standing,
    /// Claims that went with it.
    pub released: Vec<u64>,
}

pub fn run(ctx: &Ctx<'_>, input: &Input) -> Result<Done> {
    let verb = input.action.verb();
    let told = write(ctx, verb, input, |writing| {
        let name = match (&input.name, writing.actor.agent()) {
            (Some(name), _) => name.clone(),
            (None, Some(agent)) => agent.name.clone(),
            (None, None) => return Err(Code::InputInvalid.refuse("name the agent")),
        };
        let Some(agent) = writing.tx.agent(&name)? else {
            return Err(actor::unknown(&*writing.tx, Code::AgentNotRegistered, name.as_str())?);
        };
        let standing = match input.action {
            Action::Retire => Standing::Retired,
            Action::Suspend => actor::state(ctx, &agent).suspended().ok_or_else(|| {
                Code::AgentRetired
                    .refuse(format!("{} has retired; there is nobody to suspend", agent.name))
                    .with("name", agent.name.as_str())
            })?,
            Action::Reinstate => agent.standing.reinstated(),
        };
        let state = actor::state(ctx, &Agent { standing, ..agent.clone() });
        let mut released = Vec::new();
        if agent.standing != standing {
            if input.action == Action::Retire {
                released = writing
                    .tx
                    .claims_of(&agent.name)?
                    .iter()
                    .filter(|claim| claim.is_live(ctx.now))
                    .map(|claim| claim.id)
                    .collect();
                if !released.is_empty() {
                    writing.append(
                        Happened::ReservationReleased { agent: agent.name.clone(), claims: released.clone() },
                        Vec::new(),
                    )?;
                }
            }
            let agent = agent.name.clone();
            writing.append(
                match input.action {
                    Action::Retire => Happened::AgentRetired { agent },
                    Action::Suspend => Happened::AgentSuspended { agent },
                    Action::Reinstate => Happened::AgentReinstated { agent },
                },
                Vec::new(),
            )?;
        }
        Ok(Outcome { agent: agent.name.to_string(), state, released })
    })?;
    Ok(Done::new(verb, told, Any::Standing))
}
