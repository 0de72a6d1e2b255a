//! Erasing through a server: when the answer says that a text is gone, it is.

use serde_json::Value;

use crate::bus::{Bus, run};
use crate::listening::Server;
use crate::redact::{archived, holding};

const WORD: &str = "quagmirenought";

#[test]
fn nothing_of_a_text_is_left_when_a_server_says_so() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let server = Server::start(&bus);
    let letter = ["send", "--to", "RedForest", "--thread", "bd-1", "--subject", "Login", "--body", WORD];
    let sent: Value = run(server.args("BlueLake", &letter)).success().result();
    bus.relay("", ["drain", "--wait"]).success();
    assert!(!holding(&bus, WORD).is_empty() && archived(&bus).contains(WORD));
    let id = sent["message"]["id"].to_string();
    let erased = run(server.args("BlueLake", &["redact", &id, "--why", "it said too much"])).success().result();
    assert_eq!(erased["pending"], serde_json::json!([]), "{erased}");
    assert_eq!(holding(&bus, WORD), [""; 0].map(std::path::PathBuf::from));
    assert!(!archived(&bus).contains(WORD));
}
