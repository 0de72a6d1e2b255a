//! The shortest way through the whole bus.

use crate::bus::Bus;

#[test]
fn two_agents_meet_talk_and_part() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let claim = bus.relay("BlueLake", ["reserve", "src/**", "--reason", "bd-1"]).success().result();
    assert_eq!(claim["granted"][0]["pattern"], "src/**");
    let other = bus.relay("RedForest", ["reserve", "src/a.rs"]).success().result();
    assert_eq!(other["conflicts"][0]["holder"], "BlueLake");
    assert_eq!(other["conflicts"][0]["example"], "src/a.rs");
    let id = bus.send("RedForest", "BlueLake", "bd-1", "Login");
    let inbox = bus.relay("BlueLake", ["poll", "--bodies"]).success().result();
    assert_eq!(inbox["messages"][0]["id"], id);
    assert_eq!(inbox["messages"][0]["body"], "text");
    let ack = bus.relay("BlueLake", ["ack", &id.to_string()]).success().result();
    assert_eq!(ack["acks"][0]["first"], true);
    bus.relay("BlueLake", ["release", "--all"]).success();
    bus.relay("BlueLake", ["log"]).success();
}
