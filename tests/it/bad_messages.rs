//! Messages that cannot be sent or acknowledged: bodies, recipients, replies, numbers and keys.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::process::Stdio;

use crate::bus::{Bus, Run, days, minutes};
use crate::unchanged::{assert_clear, refused, refused_by, snapshot};

const LIMIT: usize = 256 * 1024;

fn send<'a>(to: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
    [&["send", "--to", to, "--thread", "bd-1", "--subject", "Login"], rest].concat()
}

/// Sends with the body on standard input.
fn piped(bus: &Bus, body: &[u8]) -> Run {
    let mut command = bus.args("BlueLake", send("RedForest", &["--body", "-"]));
    let line = format!("{command:?}");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A body may be refused before its last byte is read.
    let _ = child.stdin.take().unwrap().write_all(body);
    Run::new(line, &child.wait_with_output().unwrap())
}

fn filed(bus: &Bus, body: &[u8]) -> Run {
    let file = bus.path("body");
    std::fs::write(&file, body).unwrap();
    bus.relay("BlueLake", send("RedForest", &["--body-file", file.to_str().unwrap()]))
}

#[test]
fn a_body_has_one_byte_to_256_kib() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.send("BlueLake", "RedForest", "bd-1", "Login");
    let before = snapshot(&bus.home());
    let full = vec![b'x'; LIMIT];
    let over = vec![b'x'; LIMIT + 1];
    for way in [piped, filed] {
        assert_clear(&way(&bus, b"").fails("INPUT_INVALID"), &["body", "empty"]);
        let refusal = way(&bus, &over).fails("BODY_TOO_LARGE");
        assert_clear(&refusal, &["262145", "262144"]);
        assert_eq!(refusal.error()["details"]["limit"], LIMIT);
        // The limit counts bytes: this is half as many characters and one more.
        assert_clear(&way(&bus, "é".repeat(LIMIT / 2 + 1).as_bytes()).fails("BODY_TOO_LARGE"), &["262146"]);
    }
    refused(&bus, "BlueLake", &send("RedForest", &["--body", ""]), "INPUT_INVALID", &["body", "empty"]);
    assert_eq!(snapshot(&bus.home()), before);
    for way in [piped, filed] {
        for body in [&full as &[u8], b"x"] {
            let id = way(&bus, body).success().result()["message"]["id"].to_string();
            let read = bus.relay("RedForest", ["message", &id]).success().result();
            assert_eq!(read["message"]["body"].as_str().unwrap().as_bytes(), body);
        }
    }
}

#[test]
fn text_that_is_not_utf8_is_refused_wherever_it_comes_in() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let before = snapshot(&bus.home());
    for way in [piped, filed] {
        assert_clear(&way(&bus, b"good \xff bad").fails("INPUT_INVALID"), &["body", "UTF-8", "byte 5"]);
        // A character that is cut off at the end.
        assert_clear(&way(&bus, b"caf\xc3").fails("INPUT_INVALID"), &["UTF-8", "byte 3"]);
        // UTF-16, as some editors write it.
        assert_clear(&way(&bus, b"\xff\xfeh\0i\0").fails("INPUT_INVALID"), &["UTF-8", "byte 0"]);
    }
    let bad = || OsString::from_vec(b"bad\xff".to_vec());
    let flags = ["--agent", "--project", "--idempotency-key", "--to", "--thread", "--subject", "--body"];
    for flag in flags {
        let command = || {
            let mut command = bus.args("", ["send"]);
            for (name, value) in flags.iter().zip(["BlueLake", &bus.key(), "k", "RedForest", "bd-1", "S", "b"]) {
                command.arg(name).arg(if *name == flag { bad() } else { value.into() });
            }
            command
        };
        refused_by(&bus, command, "INPUT_INVALID", &["UTF-8"]);
    }
    assert_eq!(snapshot(&bus.home()), before);
}

#[test]
fn a_body_that_cannot_be_read_is_refused() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let (missing, folder) = (bus.path("missing"), bus.repo());
    for path in [missing.to_str().unwrap(), folder.to_str().unwrap()] {
        refused(&bus, "BlueLake", &send("RedForest", &["--body-file", path]), "INPUT_INVALID", &[path]);
    }
}

#[test]
fn a_subject_is_one_line_of_at_most_200_characters() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let subject = |text: &str, names: &[&str]| {
        let args = ["send", "--to", "RedForest", "--body", "b", "--subject", text];
        refused(&bus, "BlueLake", &args, "INPUT_INVALID", names);
    };
    subject("", &["subject", "empty"]);
    subject("  ", &["subject", "empty"]);
    subject(&"é".repeat(201), &["201 characters", "200"]);
    subject("two\nlines", &["subject", "one line"]);
    subject("bell\u{7}", &["subject", "control"]);
    refused(&bus, "BlueLake", &["send", "--to", "RedForest", "--body", "b"], "INPUT_INVALID", &["needs a subject"]);
    let longest = "é".repeat(200);
    bus.relay("BlueLake", ["send", "--to", "RedForest", "--body", "b", "--subject", &longest]).success();
}

#[test]
fn at_most_50_recipients_are_named() {
    let bus = Bus::with(&["BlueLake"]);
    let names: Vec<String> = (0..51).map(|count| format!("Agent{count:02}")).collect();
    let refuse = |lists: &[&str], code: &str, shown: &[&str]| {
        let args = [&["send", "--subject", "S", "--body", "b"], lists].concat();
        refused(&bus, "BlueLake", &args, code, shown);
    };
    let (all, most) = (names.join(","), names[..50].join(","));
    refuse(&["--to", &all], "INPUT_INVALID", &["51 recipients", "50"]);
    // Wherever they stand.
    refuse(&["--to", &most, "--bcc", "Agent50"], "INPUT_INVALID", &["51 recipients", "50"]);
    // Fifty are not too many, only unknown.
    refuse(&["--to", &most], "RECIPIENT_NOT_FOUND", &["Agent00"]);
}

#[test]
fn nobody_is_named_twice() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let qualified = format!("RedForest@{}", bus.key());
    let human = format!("human@{}", bus.key());
    for lists in [
        &["--to", "RedForest,RedForest"] as &[&str],
        &["--to", "RedForest", "--to", "RedForest"],
        &["--to", "RedForest,redforest"],
        &["--to", "RedForest", "--cc", "REDFOREST"],
        &["--to", "RedForest", "--bcc", "RedForest"],
        &["--to", "RedForest", "--cc", &qualified],
        &["--to", "human,human"],
        &["--to", "human", "--cc", &human],
    ] {
        let args = [&["send", "--subject", "S", "--body", "b"], lists].concat();
        refused(&bus, "BlueLake", &args, "INPUT_INVALID", &["named twice"]);
    }
}

#[test]
fn nobody_writes_to_oneself() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let own = format!("BlueLake@{}", bus.key());
    for to in ["BlueLake", "bluelake", "RedForest,BlueLake", &own] {
        refused(&bus, "BlueLake", &send(to, &["--body", "b"]), "INPUT_INVALID", &["BlueLake", "oneself"]);
    }
    refused(&bus, "BlueLake", &["link", "--target", "BlueLake"], "INPUT_INVALID", &["BlueLake"]);
    let args = send("RedForest", &["--body", "b", "--bcc", "BlueLake"]);
    refused(&bus, "BlueLake", &args, "INPUT_INVALID", &["BlueLake", "oneself"]);
}

#[test]
fn a_recipient_whom_nobody_knows_is_named_with_the_nearest() {
    let bus = Bus::with(&["BlueLake", "RedForest", "GreenHill"]);
    let check =
        |to: &str, shown: &[&str]| refused(&bus, "BlueLake", &send(to, &["--body", "b"]), "RECIPIENT_NOT_FOUND", shown);
    let misspelt = check("RedForrest", &["\"RedForrest\"", "RedForest"]);
    assert_eq!(misspelt.error()["details"]["nearest"][0], "RedForest");
    check("Nobody", &["\"Nobody\""]);
    check("RedForest,GrenHill", &["\"GrenHill\"", "GreenHill"]);
    check("", &["\"\""]);
    check("RedForest,,GreenHill", &["\"\""]);
    check("two words", &["\"two words\""]);
    check("../RedForest", &["\"../RedForest\""]);
    check("😀", &["\"😀\""]);
    check("relay", &["\"relay\""]);
    check("@everyone", &["\"@everyone\""]);
    check("RedForest@/no/such/project", &["/no/such/project"]);
    check("RedForest@nowhere", &["nowhere"]);
    refused(&bus, "BlueLake", &["link", "--target", "RedForrest"], "RECIPIENT_NOT_FOUND", &["RedForrest"]);
    refused(&bus, "BlueLake", &["poll", "--from", "RedForrest"], "RECIPIENT_NOT_FOUND", &["RedForrest"]);
}

#[test]
fn a_recipient_who_left_is_not_reached() {
    let bus = Bus::with(&["BlueLake", "RedForest", "GreenHill", "OldOak"]);
    for name in ["RedForest", "GreenHill", "OldOak"] {
        // Not for want of consent.
        bus.relay(name, ["policy", "open"]).success();
        bus.relay("BlueLake", ["link", "--target", name]).success();
    }
    bus.relay("RedForest", ["retire"]).success();
    bus.relay("BlueLake", ["suspend", "GreenHill"]).success();
    let check = |to: &str, shown: &[&str]| {
        refused(&bus, "BlueLake", &send(to, &["--body", "b"]), "CONTACT_BLOCKED", shown);
    };
    check("RedForest", &["RedForest", "retired"]);
    check("redforest", &["RedForest", "retired"]);
    check("GreenHill", &["GreenHill", "suspended"]);
    check("OldOak,RedForest", &["RedForest", "retired"]);
    bus.advance(days(6));
    bus.relay("BlueLake", ["start"]).success();
    bus.advance(days(1) + 1);
    // By now silence has retired the third.
    check("OldOak", &["OldOak", "retired"]);
}

#[test]
fn those_who_left_do_not_act() {
    let bus = Bus::with(&["BlueLake", "RedForest", "GreenHill"]);
    bus.relay("RedForest", ["retire"]).success();
    bus.relay("BlueLake", ["suspend", "GreenHill"]).success();
    let args = send("BlueLake", &["--body", "b"]);
    for args in [&args as &[&str], &["poll"], &["reserve", "src"], &["ack", "1"]] {
        refused(&bus, "RedForest", args, "AGENT_RETIRED", &["RedForest"]);
        refused(&bus, "GreenHill", args, "AGENT_SUSPENDED", &["GreenHill"]);
        refused(&bus, "Nobody", args, "AGENT_NOT_REGISTERED", &["Nobody"]);
        refused(&bus, "", args, "AGENT_NOT_REGISTERED", &["--agent", "RELAY_AGENT"]);
    }
    refused(&bus, "GreenHill", &["start"], "AGENT_SUSPENDED", &["GreenHill"]);
}

/// A message from BlueLake of which RedForest got the only copy, a blind one.
fn blind(bus: &Bus) -> String {
    let args = ["send", "--bcc", "RedForest", "--thread", "bd-1", "--subject", "S", "--body", "b"];
    bus.relay("BlueLake", args).success().result()["message"]["id"].to_string()
}

#[test]
fn a_message_that_one_may_not_see_does_not_exist() {
    let bus = Bus::with(&["BlueLake", "RedForest", "GreenHill"]);
    let id = blind(&bus);
    let shown = format!("#{id}");
    for args in [
        &["send", "--reply-to", &id, "--body", "b"] as &[&str],
        &["send", "--reply-to", &id, "--to", "BlueLake", "--body", "b"],
        &["send", "--reply-to", &id, "--thread", "other", "--to", "BlueLake", "--body", "b"],
        &["ack", &id],
        &["ack", &id, "--read"],
        &["read", &id],
        &["look", "message", &id],
        &["message", &id],
    ] {
        let hidden = refused(&bus, "GreenHill", args, "MESSAGE_NOT_FOUND", &[&shown]);
        // It reads like a number that nobody ever gave out.
        let absent: Vec<&str> = args.iter().map(|arg| if *arg == id { "4711" } else { arg }).collect();
        let absent = refused(&bus, "GreenHill", &absent, "MESSAGE_NOT_FOUND", &["#4711"]);
        let message = |run: &Run| run.error()["message"].as_str().unwrap().to_owned();
        assert_eq!(message(&hidden).replace(&id, "N"), message(&absent).replace("4711", "N"));
    }
    bus.relay("RedForest", ["send", "--reply-to", &id, "--body", "seen"]).success();
}

#[test]
fn only_a_recipient_acknowledges() {
    let bus = Bus::with(&["BlueLake", "RedForest", "GreenHill"]);
    let id = bus.send("BlueLake", "RedForest", "bd-1", "Login").to_string();
    let mine = bus.send("RedForest", "GreenHill", "bd-2", "Build").to_string();
    let shown = format!("#{id}");
    for args in [&["ack", &id] as &[&str], &["ack", &id, "--read"], &["read", &id], &["ack", &mine, &id]] {
        refused(&bus, "GreenHill", args, "NOT_A_RECIPIENT", &[&shown, "GreenHill"]);
    }
    // Nor does the sender.
    refused(&bus, "BlueLake", &["ack", &id], "NOT_A_RECIPIENT", &[&shown, "BlueLake"]);
}

#[test]
fn numbers_that_nobody_gave_out_are_not_found() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.send("RedForest", "BlueLake", "bd-1", "Login");
    for number in ["0", "1", "4711", "9223372036854775807", "9223372036854775808", "18446744073709551615"] {
        let shown = format!("#{number}");
        for args in [
            &["ack", number] as &[&str],
            &["read", &shown],
            &["message", number],
            &["look", "message", &shown],
            &["send", "--reply-to", number, "--body", "b"],
            &["send", "--reply-to", number, "--to", "RedForest", "--body", "b"],
        ] {
            refused(&bus, "BlueLake", args, "MESSAGE_NOT_FOUND", &[&shown]);
        }
        refused(&bus, "BlueLake", &["release", "--id", number], "RESERVATION_NOT_HELD", &[&shown]);
        let args = ["release", "--id", number, "--force", "--why", "w"];
        refused(&bus, "BlueLake", &args, "RESERVATION_NOT_HELD", &[&shown]);
    }
}

#[test]
fn words_are_no_numbers() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    for word in ["one", "", "1.5", "0x10", "#", "##1", "1 2", "+", "18446744073709551616", "٣"] {
        let shown = format!("{word:?}");
        for args in [
            &["ack", word] as &[&str],
            &["message", word],
            &["send", "--reply-to", word, "--body", "b"],
            &["release", "--id", word],
            &["poll", "--after", word],
        ] {
            refused(&bus, "BlueLake", args, "INPUT_INVALID", &[&shown, "number"]);
        }
    }
    for args in [&["ack", "--", "-1"] as &[&str], &["release", "--id=-1"], &["send", "--reply-to=-1", "--body", "b"]] {
        refused(&bus, "BlueLake", args, "INPUT_INVALID", &["\"-1\"", "number"]);
    }
    refused(&bus, "BlueLake", &["poll", "--limit", "many"], "INPUT_INVALID", &["--limit", "\"many\""]);
}

#[test]
fn a_key_belongs_to_one_request() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("BlueLake", ["link", "--target", "RedForest"]).success();
    let keyed = |rest: &[&'static str]| [&["--idempotency-key", "k-1"], rest].concat();
    let first = ["send", "--to", "RedForest", "--thread", "bd-1", "--subject", "S", "--body", "one"];
    let answer = bus.relay("BlueLake", keyed(&first)).success().json();
    for other in [
        &["send", "--to", "RedForest", "--thread", "bd-1", "--subject", "S", "--body", "two"] as &[&str],
        &["send", "--to", "RedForest", "--thread", "bd-2", "--subject", "S", "--body", "one"],
        &["send", "--to", "RedForest", "--thread", "bd-1", "--subject", "S", "--body", "one", "--ack-required"],
        &["reserve", "src"],
        &["ack", "1"],
        &["policy", "open"],
    ] {
        refused(&bus, "BlueLake", &keyed(other), "IDEMPOTENCY_REUSED", &["\"k-1\"", "`send`"]);
    }
    assert_eq!(bus.relay("BlueLake", keyed(&first)).success().json(), answer);
    for key in ["", "a\nb", &"k".repeat(201)] {
        refused(&bus, "BlueLake", &["--idempotency-key", key, "policy", "open"], "INPUT_INVALID", &["idempotency key"]);
    }
}

/// An operator may allow a lot, and what is more than that is never cut to fit.
#[test]
fn a_body_is_sent_whole_or_not_at_all() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let most = 64 * 1024 * 1024;
    std::fs::write(bus.home().join("config.toml"), format!("[limits]\nbody_bytes = {most}\n")).unwrap();
    let before = snapshot(&bus.home());
    // A letter of two bytes lies across the place where reading stops.
    let mut body = vec![b'x'; most];
    body.extend("é and more".as_bytes());
    for way in [piped, filed] {
        assert_clear(&way(&bus, &body).fails("BODY_TOO_LARGE"), &["more than 67108864 bytes"]);
    }
    assert_eq!(snapshot(&bus.home()), before);
    std::fs::write(bus.home().join("config.toml"), "[limits]\nbody_bytes = 1000000\n").unwrap();
    let sent = filed(&bus, &body[..1_000_000]).success().result()["message"]["id"].to_string();
    let shown = bus.relay("RedForest", ["message", &sent]).success().result()["message"]["body"].clone();
    assert_eq!(shown.as_str().map(str::len), Some(1_000_000));
}

#[test]
fn a_reason_is_a_sentence_whoever_reads_it() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("RedForest", ["reserve", "src"]).success();
    bus.advance(minutes(11));
    let (longest, longer) = ("x".repeat(2_000), "x".repeat(2_001));
    for why in ["", "  ", &longer] {
        for args in
            [["link", "--target", "RedForest", "--why", why].as_slice(), &["release", "src", "--force", "--why", why]]
        {
            refused(&bus, "BlueLake", args, "INPUT_INVALID", &["a reason why", "2000"]);
        }
    }
    bus.relay("BlueLake", ["link", "--target", "RedForest", "--why", &longest]).success();
    bus.relay("BlueLake", ["release", "src", "--force", "--why", &longest]).success();
}
