//! Where an agent's own server is: in the project around it, or in one that was named.

use serde_json::json;

use crate::bus::{Bus, run};
use crate::mcp::{CURRENT, Client};

/// Whoever named a wrong project is told at once, and the agent, who sees no standard error, with each call.
#[test]
fn a_project_that_is_not_there_is_said_at_once_and_with_each_call() {
    let bus = Bus::with(&["BlueLake"]);
    let wrong = ["mcp", "--project", "/nope"];
    let ended = bus.text("", wrong).success();
    assert!(ended.stdout.is_empty() && ended.stderr.contains("/nope"), "{ended:?}");
    let mut client = Client::started(&bus, &wrong, CURRENT);
    let refused = client.call("poll", &json!({"agent": "BlueLake"}));
    assert_eq!(refused["error"]["code"], "PROJECT_KEY_INVALID", "{refused}");
    assert_eq!(client.call("poll", &json!({"agent": "BlueLake", "project": bus.key()}))["ok"], true);
    let mut outside = bus.command();
    let said = run({
        outside.arg("mcp").current_dir(bus.path(""));
        outside
    });
    assert_eq!((said.status, said.stderr.as_str()), (0, ""), "who named none is in no hurry");
}
