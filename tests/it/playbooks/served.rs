//! What only a server brings: it is away, it knows the credential no longer, it is asked too fast.

use std::cell::RefCell;
use std::fs;
use std::process::Command;

use serde_json::Value;

use super::Way;
use crate::bus::{Bus, Run, run};
use crate::listening::{Server, token};
use crate::terminal::text;

/// A command line that looks for its server there, with this token.
fn towards<'a>(url: &'a str, token: &'a RefCell<String>) -> impl Fn(Command) -> Command + 'a {
    move |mut command| {
        command.env("RELAY_URL", url).env("RELAY_TOKEN", &*token.borrow());
        command
    }
}

fn error(run: &Run, code: &str) -> Value {
    assert_eq!(run.json()["error"]["code"], code, "{}", run.stdout);
    run.json()["error"].clone()
}

pub fn unreachable(code: &str) {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    let (url, secret) = (server.url.clone(), RefCell::new(server.token.clone()));
    assert_eq!(server.stop(), 0);
    let around = towards(&url, &secret);
    let way = Way { bus: &bus, agent: "BlueLake", around: &around };
    let failed = error(&way.relay(&["poll"]), code);
    let mut anew = None;
    way.follow(&failed, |step| {
        if text(&step["why"]).contains("relay serve") {
            let address = url.trim_start_matches("http://");
            anew = Some(Server::run(&bus, bus.args("", ["serve", "--listen", address])));
        }
    });
    way.relay(&["poll"]).success();
    drop(anew);
}

pub fn too_fast(code: &str) {
    let bus = Bus::with(&["BlueLake"]);
    fs::write(bus.home().join("config.toml"), "[serve]\nrequests_per_second = 1\n").unwrap();
    let server = Server::start(&bus);
    let refused = (0..20).map(|_| run(server.args("BlueLake", &["poll"]))).find(|poll| poll.status != 0);
    let refused = error(&refused.expect("twenty at once are more than one a second"), code);
    assert!(text(&refused["message"]).contains(" ms"), "it says when: {refused}");
    let steps = refused["playbook"].as_array().unwrap();
    assert!(steps.len() == 1 && text(&steps[0]["why"]).contains("again"), "{refused}");
    // Whoever waits as long as it was told is served.
    let patience = text(&refused["message"]);
    let millis: u64 = patience.split(" ms").next().unwrap().rsplit(' ').next().unwrap().parse().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(millis));
    run(server.args("BlueLake", &["poll"])).success();
}

/// The other half of `UNAUTHORIZED`: a token that is unknown where the server runs.
#[test]
fn a_token_that_was_revoked_is_replaced_by_a_person() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    let secret = RefCell::new(token(&bus, "laptop", &[]));
    bus.relay("", ["token", "revoke", "laptop"]).success();
    let around = towards(&server.url, &secret);
    let way = Way { bus: &bus, agent: "BlueLake", around: &around };
    let failed = error(&way.relay(&["poll"]), "UNAUTHORIZED");
    let steps = failed["playbook"].as_array().unwrap();
    let person = steps.iter().find(|step| step["who"] == "person").expect("a person makes a token");
    assert!(text(&person["why"]).contains("relay token add"), "{failed}");
    secret.replace(token(&bus, "laptop", &[]));
    way.relay(&["poll"]).success();
}

/// The other half of `IDENTITY_MISMATCH`: an agent that another credential has registered.
#[test]
fn whoever_speaks_as_anothers_agent_becomes_one_of_its_own() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    let secret = RefCell::new(token(&bus, "guest", &["--separate"]));
    let around = towards(&server.url, &secret);
    let failed = error(&Way { bus: &bus, agent: "BlueLake", around: &around }.relay(&["poll"]), "IDENTITY_MISMATCH");
    assert!(text(&failed["message"]).contains("BlueLake belongs to"), "{failed}");
    let steps = failed["playbook"].as_array().unwrap();
    assert!(steps.len() == 1 && text(&steps[0]["why"]).contains("`relay start --agent NAME`"), "{failed}");
    let own = Way { bus: &bus, agent: "GreenField", around: &around };
    own.relay(&["start"]).success();
    own.relay(&["poll"]).success();
}
