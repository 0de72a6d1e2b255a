//! An agent that has said its last word is woken by mail, where its program has a clean way for that.

use std::io::Write;
use std::process::Child;

use super::agent::Agent;
use super::identity::known;
use crate::bus::{Bus, Run};

/// Starts the one who waits in the background.
fn waits(agent: &Agent<'_>, variables: &[(&str, &str)]) -> Child {
    let mut command = agent.command(&["--idle"]);
    command.envs(variables.iter().copied());
    let mut child = command.spawn().unwrap();
    let event = agent.event("Stop", &serde_json::json!({"stop_hook_active": false}));
    child.stdin.take().unwrap().write_all(event.to_string().as_bytes()).unwrap();
    child
}

fn came_to(child: Child) -> Run {
    Run::new("relay hook --idle".to_owned(), &child.wait_with_output().unwrap())
}

fn idle(bus: &Bus) -> (Agent<'_>, String) {
    bus.relay("Writer", ["start"]).success();
    let agent = Agent::claude(bus, "one");
    agent.starts();
    let name = agent.name();
    bus.relay("Writer", ["link", "--target", &name]).success();
    agent.stops().silent();
    (agent, name)
}

#[test]
fn mail_wakes_an_idle_agent_and_is_shown_by_that() {
    let bus = known();
    let (agent, name) = idle(&bus);
    let waiter = waits(&agent, &[]);
    bus.send("Writer", &name, "bd-1", "Wake up");
    let run = came_to(waiter);
    assert_eq!((run.status, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.contains("Wake up"), "{}", run.stderr);
    agent.hears_the_user().silent();
}

#[test]
fn one_who_waits_for_an_agent_that_goes_on_by_itself_ends_without_a_word() {
    let bus = known();
    let (agent, name) = idle(&bus);
    let (first, second) = (waits(&agent, &[]), waits(&agent, &[]));
    agent.hears_the_user().silent();
    for waiter in [first, second] {
        let run = came_to(waiter);
        assert_eq!((run.status, run.stdout.as_str(), run.stderr.as_str()), (0, "", ""));
    }
    bus.send("Writer", &name, "bd-1", "Later");
    assert!(agent.hears_the_user().context().contains("Later"));
}

#[test]
fn where_nobody_sits_in_front_of_it_and_where_a_program_cannot_be_woken_nobody_waits() {
    let bus = known();
    let (agent, _) = idle(&bus);
    assert_eq!(came_to(waits(&agent, &[("CLAUDE_CODE_SESSION_ATTENDED", "0")])).status, 0);
}
