//! Which coding agents there are: by their program, by what they keep for the user, or by what is in the project.

use super::agents::Agent;
use super::place::Place;
use crate::environment;

/// Why an agent is taken to be here, as the end of a sentence; nothing where it is not.
pub fn because(agent: Agent, place: &Place) -> Option<String> {
    let traces = agent.traces();
    let program = traces.programs.iter().find(|program| environment::on_the_path(program).is_some());
    let program = program.map(|program| format!("`{program}` is a program here"));
    let kept = traces.kept.into_iter().find(|folder| folder.exists());
    let kept = kept.map(|folder| format!("there is {}", folder.display()));
    let inside = traces.in_project.iter().find(|name| place.root.join(name).exists());
    program.or(kept).or_else(|| inside.map(|name| format!("the project has {name}")))
}
