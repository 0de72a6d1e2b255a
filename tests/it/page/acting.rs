//! What a person does on the page is what everybody else sees on the bus.

use serde_json::{Value, json};

use super::{Person, field, unescaped};
use crate::bus::Bus;
use crate::listening::{Reply, Server};
use crate::terminal::text;

fn message(bus: &Bus, agent: &str, id: u64) -> Value {
    bus.relay(agent, ["look", "message", &id.to_string()]).success().result()["message"].clone()
}

/// The newest message in somebody's inbox.
fn newest(bus: &Bus, agent: &str) -> Value {
    let inbox = bus.relay(agent, ["poll", "--bodies"]).success().result();
    inbox["messages"].as_array().unwrap().last().unwrap().clone()
}

#[test]
fn a_message_to_one_to_several_and_to_all_is_the_humans() {
    let bus = Bus::with(&["BlueLake", "RedForest", "GreenField"]);
    let server = Server::start(&bus);
    let person = Person::at(&server);
    let body = "First line\r\n<b>second</b> & \"third\"";
    let fields = [
        ("to", "BlueLake, RedForest"),
        ("subject", "Login"),
        ("body", body),
        ("thread", "bd-1"),
        ("importance", "high"),
    ];
    let said = person.does("send", &[&fields[..], &[("ack_required", "on"), ("ack_within", "30m")]].concat());
    let got = newest(&bus, "RedForest");
    let id = got["id"].as_u64().unwrap();
    assert!(said.contains(&format!("Sent #{id} to BlueLake and RedForest in bd-1.")), "{said}");
    assert!(said.contains(&format!("<a href=\"{}/threads/bd-1#m{id}\">Show it</a>", person.place())), "{said}");
    assert!(!person.get(&format!("{}/", person.place())).text.contains("Sent #"), "it is said once");
    assert_eq!((&got["from"], &got["subject"], &got["importance"]), (&json!("human"), &json!("Login"), &json!("high")));
    assert_eq!(got["body"], "First line\n<b>second</b> & \"third\"");
    assert_eq!(newest(&bus, "BlueLake")["id"], id);
    assert_eq!(message(&bus, "BlueLake", id)["ack_required"], true);
    person.does("send", &[("to", "@all"), ("subject", "Stop"), ("body", "all"), ("thread", "bd-2")]);
    for agent in ["BlueLake", "RedForest", "GreenField"] {
        assert_eq!(newest(&bus, agent)["body"], "all", "{agent}");
    }
}

/// Browsers that say nothing of who asks are told apart by what the page's own script says.
#[test]
fn what_was_done_is_said_to_a_person_and_not_to_the_pages_script() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    let person = Person::at(&server);
    let fields = [("to", "BlueLake"), ("subject", "Stop"), ("body", "b"), ("thread", "bd-2")];
    assert_eq!(person.post("send", &fields).status, 303);
    let place = format!("{}/", person.place());
    let script = [("cookie", person.cookie.as_str()), ("x-relay-script", "1")];
    assert!(!server.request("GET", &place, &script, "").text.contains("Sent #"));
    assert!(person.get(&place).text.contains("Sent #"));
}

#[test]
fn an_answer_may_acknowledge_what_it_answers() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    let person = Person::at(&server);
    let asks = ["send", "--to", "human", "--subject", "Decide", "--body", "b", "--thread", "bd-1", "--ack-required"];
    let id = bus.relay("BlueLake", asks).success().result()["message"]["id"].as_u64().unwrap();
    let number = id.to_string();
    let said = person.does("send", &[("reply_to", &number), ("body", "Yes"), ("ack", &number)]);
    let answer = newest(&bus, "BlueLake");
    assert_eq!((&answer["body"], &answer["reply_to"], &answer["thread"]), (&json!("Yes"), &json!(id), &json!("bd-1")));
    let sent = format!("Sent #{} to BlueLake in bd-1. Acknowledged: #{id}.", answer["id"]);
    assert!(said.contains(&sent), "{said}");
    assert!(message(&bus, "BlueLake", id)["recipients"][0]["acked_at"].is_string());
    // The answer stands also where the receipt is refused; it is not sent again.
    let own = answer["id"].to_string();
    let tip = bus.tip();
    let half = person.post("send", &[("reply_to", &number), ("body", "And"), ("ack", &own)]);
    assert_eq!(half.status, 403, "{half:?}");
    assert!(half.text.contains("NOT_A_RECIPIENT") && half.text.contains("Sent #"), "{}", half.text);
    assert!(!half.text.contains("<textarea"), "{}", half.text);
    assert_eq!(bus.tip(), tip + 1, "the answer, once");
    assert_eq!(newest(&bus, "BlueLake")["body"], "And");
}

#[test]
fn receipts_contacts_claims_and_agents() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let server = Server::start(&bus);
    let person = Person::at(&server);
    let ids = [bus.send("BlueLake", "human", "bd-1", "One"), bus.send("BlueLake", "human", "bd-1", "Two")];
    let numbers = ids.map(|id| id.to_string());
    let said = person.does("ack", &[("id", &numbers[0]), ("read", "on")]);
    assert!(said.contains(&format!("Marked as read: #{}.", ids[0])), "{said}");
    let said = person.does("ack", &[("id", &numbers[0]), ("id", &numbers[1])]);
    assert!(said.contains(&format!("Acknowledged: #{} and #{}.", ids[0], ids[1])), "{said}");
    assert!(message(&bus, "BlueLake", ids[1])["recipients"][0]["acked_at"].is_string());

    bus.relay("RedForest", ["policy", "contacts_only"]).success();
    let asked = bus.relay("BlueLake", ["link", "--target", "RedForest"]).success().result();
    assert_eq!(asked["link"]["state"], "requested");
    let link = asked["link"]["id"].to_string();
    let said = person.does("link", &[("target", "RedForest"), ("id", &link), ("answer", "accept")]);
    assert!(said.contains("Accepted: BlueLake and RedForest may write to each other."), "{said}");
    let links = bus.relay("RedForest", ["link", "--list"]).success().result();
    assert_eq!(links["links"][0]["state"], "accepted");

    let claim = bus.relay("RedForest", ["reserve", "src/**"]).success().result();
    let claim = claim["granted"][0]["id"].to_string();
    let said = person.does("release", &[("id", &claim), ("why", "I need <it>")]);
    assert!(said.contains(&format!("Released #{claim} src/**; whoever held it is told why.")), "{said}");
    assert_eq!(bus.relay("", ["look", "reservations"]).success().result()["total"], 0);
    assert!(text(&newest(&bus, "RedForest")["body"]).contains("> I need <it>"));

    let state = |agent: &str| bus.relay("", ["look", "agent", agent]).success().result()["agents"][0]["state"].clone();
    let said = person.does("suspend", &[("name", "RedForest")]);
    assert!(said.contains("RedForest is suspended") && state("RedForest") == "suspended", "{said}");
    let said = person.does("suspend", &[("name", "RedForest"), ("lift", "1")]);
    assert!(said.contains("RedForest may act again.") && state("RedForest") == "active", "{said}");
    bus.relay("BlueLake", ["reserve", "docs/**"]).success();
    let said = person.does("retire", &[("name", "BlueLake")]);
    assert!(
        said.contains("BlueLake has retired, and what it held is free: #") && state("BlueLake") == "retired",
        "{said}"
    );
}

#[test]
fn a_request_for_contact_can_be_blocked() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let server = Server::start(&bus);
    let person = Person::at(&server);
    bus.relay("RedForest", ["policy", "contacts_only"]).success();
    bus.relay("BlueLake", ["link", "--target", "RedForest"]).success();
    let said = person.does("link", &[("target", "RedForest"), ("answer", "block")]);
    assert!(said.contains("Blocked: RedForest takes no contact from BlueLake."), "{said}");
    bus.relay("BlueLake", ["link", "--target", "RedForest"]).fails("CONTACT_BLOCKED");
    // The human answers what waits, and nothing waits any more; the command that lifts it is said.
    let late = person.post("link", &[("target", "RedForest"), ("answer", "accept")]);
    assert!(late.text.contains("LINK_NOT_FOUND"), "{}", late.text);
    let (_, command) = said.split_once("This lifts it: relay ").unwrap_or_else(|| panic!("{said}"));
    let command: Vec<&str> = command.split('<').next().unwrap().split_whitespace().collect();
    assert_eq!(bus.relay("", command).success().result()["link"]["state"], "revoked");
    bus.relay("BlueLake", ["link", "--target", "RedForest"]).success();
    // Other forms come back as they were sent, too.
    let maybe = person.post("link", &[("target", "<b>RedForest</b>"), ("answer", "maybe")]);
    assert_eq!((maybe.status, maybe.text.contains("INPUT_INVALID")), (400, true));
    assert_eq!(
        (field(&maybe.text, "target"), field(&maybe.text, "answer")),
        ("<b>RedForest</b>".to_owned(), "maybe".to_owned())
    );
    let why = "line\r\n</textarea><img src=x>";
    let refused = person.post("release", &[("id", "7"), ("id", "seven"), ("why", why)]);
    assert!(refused.text.contains("INPUT_INVALID") && !refused.text.contains("<img"), "{}", refused.text);
    assert!(refused.text.contains("<label>Why<") && refused.text.contains("Claim #7<"), "{}", refused.text);
    assert!(
        refused.text.contains("<textarea name=\"why\"") && unescaped(&refused.text).contains(why),
        "{}",
        refused.text
    );
}

/// Whoever looks at a page types no commands, and is not asked to try what cannot work.
#[test]
fn an_error_speaks_of_the_page_and_not_of_a_shell() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    let person = Person::at(&server);
    for (action, fields, code) in [
        ("release", vec![("id", "4711"), ("why", "w")], "RESERVATION_NOT_HELD"),
        ("ack", vec![("id", "4711")], "MESSAGE_NOT_FOUND"),
        ("link", vec![("target", "BlueLake"), ("answer", "accept")], "LINK_NOT_FOUND"),
    ] {
        let page = person.post(action, &fields).text;
        assert!(page.contains(code) && page.contains(">Back</a>"), "{page}");
        assert!(!page.contains("Try again") && !page.contains("What you typed") && !page.contains("`"), "{page}");
    }
    let page = person.post("send", &[("subject", "S"), ("body", "b"), ("thread", "bd-1")]).text;
    assert!(page.contains("nobody is chosen") && !page.contains("--to") && !page.contains("--help"), "{page}");
    let letter = [("to", "BlueLake"), ("subject", "S"), ("body", "b"), ("thread", "bd-1")];
    let with = |field: (&'static str, &'static str)| {
        letter.map(|(name, value)| if name == field.0 { field } else { (name, value) }).to_vec()
    };
    for (action, fields, said) in [
        ("send", [&letter[..], &[("ack_within", "0s")]].concat(), "within which an ack is asked for"),
        ("send", with(("subject", "")), "needs a subject"),
        ("send", [&with(("to", "@thread"))[..3], &[]].concat(), "@thread needs a thread"),
        ("release", vec![("id", "7"), ("why", " ")], "a reason why is a sentence"),
        ("release", vec![("why", "w")], "say what to release"),
        ("link", vec![("answer", "accept")], "name somebody as the target"),
    ] {
        let page = unescaped(&person.post(action, &fields).text);
        let alarm = page.split("role=\"alert\"").nth(1).unwrap_or_else(|| panic!("{action} went well: {page}"));
        let alarm = alarm.split("</section>").next().unwrap();
        assert!(alarm.contains(said) && !alarm.contains("--"), "{action} {fields:?}: {alarm}");
    }
    let path = format!("{}/history?path=src&kind=message_sent", person.place());
    let page = unescaped(&person.get(&path).text);
    assert!(page.contains("a path is about claims") && !page.contains("--path"), "{page}");
}

/// A form that is sent twice, by an impatient hand or by a browser that loads a page anew.
#[test]
fn the_same_form_does_the_same_thing_once() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    let person = Person::at(&server);
    let fields = [("key", "one-form"), ("to", "BlueLake"), ("subject", "Login"), ("body", "b"), ("thread", "bd-1")];
    let tip = bus.tip();
    let replies: Vec<u16> = (0..3).map(|_| person.post_with("send", &fields).status).collect();
    assert_eq!((replies, bus.tip()), (vec![303; 3], tip + 1));
    let mut other = fields;
    other[3].1 = "another body";
    let refused = person.post_with("send", &other);
    assert!(refused.text.contains("IDEMPOTENCY_REUSED"), "{}", refused.text);
    assert_ne!(field(&refused.text, "key"), "one-form", "what is typed again is another request");
    assert_eq!(bus.tip(), tip + 1);
}

#[test]
fn an_error_shows_its_class_its_steps_and_everything_that_was_typed() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    let person = Person::at(&server);
    let body = "</textarea><script>alert(1)</script> 'x' & \"y\"";
    let fields = [
        ("to", "BlueLak"),
        ("subject", "<i>S</i>"),
        ("body", body),
        ("thread", "bd-1"),
        ("ack_required", "on"),
        ("back", "/p/x?a=1"),
    ];
    let tip = bus.tip();
    let refused = person.post("send", &fields);
    assert_eq!(refused.status, 404, "{refused:?}");
    let page = &refused.text;
    assert!(page.contains("RECIPIENT_NOT_FOUND") && page.contains("BlueLake"), "{page}");
    assert!(!page.contains("<script>alert") && !page.contains("<i>S"), "{page}");
    assert!(page.contains("value=\"BlueLak\""), "{page}");
    assert_eq!((field(page, "subject"), field(page, "thread")), ("<i>S</i>".to_owned(), "bd-1".to_owned()));
    assert_eq!(field(page, "back"), "/p/x?a=1");
    let typed = page.split("<textarea name=\"body\"").nth(1).unwrap().split_once('>').unwrap().1;
    assert_eq!(unescaped(typed.split("</textarea>").next().unwrap()), format!("\n{body}"));
    let action = format!("action=\"{}/send\"", person.place());
    assert!(page.contains(&action) && page.contains("name=\"ack_required\" value=\"1\" checked"), "{page}");
    assert_eq!(bus.tip(), tip);
    // Mended and sent again, it goes.
    let csrf = field(page, "csrf");
    assert_eq!(csrf, person.csrf());
    let mended = [("key", field(page, "key")), ("to", "BlueLake".to_owned()), ("subject", field(page, "subject"))];
    let mended: Vec<(&str, &str)> = mended.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let sent =
        person.post_with("send", &[&mended[..], &[("body", body), ("thread", "bd-1"), ("back", "/p/x?a=1")]].concat());
    assert_eq!((sent.status, sent.header("location")), (303, Some("/p/x?a=1")), "{sent:?}");
    assert_eq!(newest(&bus, "BlueLake")["body"], body);
    // Where one goes back to is a page of this server.
    let away = [("to", "BlueLake"), ("subject", "S"), ("body", "b"), ("thread", "bd-3"), ("back", "//evil.example/")];
    assert_eq!(person.post("send", &away).header("location"), Some(format!("{}/", person.place()).as_str()));
}

/// The button of a step does what the step says.
#[test]
fn a_step_of_a_playbook_is_a_button_that_takes_it() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    std::fs::write(bus.home().join("config.toml"), "[limits]\nunread = 2\n").unwrap();
    let server = Server::start(&bus);
    let person = Person::at(&server);
    let ids = [bus.send("BlueLake", "RedForest", "bd-1", "Login"), bus.send("BlueLake", "RedForest", "bd-1", "Login")];
    let fields = [("to", "RedForest"), ("subject", "Stop"), ("body", "from the human"), ("thread", "bd-2")];
    let refused = person.post("send", &fields);
    assert!(refused.text.contains("INBOX_FULL"), "{refused:?}");
    assert!(refused.text.contains(&format!("action=\"{}/step\"", person.place())), "{}", refused.text);
    let step = field(&refused.text, "step");
    let label = refused.text.split("<button name=\"step\"").nth(1).unwrap().split_once('>').unwrap().1;
    let label = label.split("</button>").next().unwrap();
    assert!(!label.contains("relay recover"), "a sentence, not a command: {label}");
    let button = [("step", step.as_str())];
    assert!(step.contains("\"tool\":\"recover\""), "{step}");
    let early = person.post("step", &button);
    assert!(early.text.contains("INBOX_FULL"), "nothing has changed yet: {}", early.text);
    for id in ids {
        bus.relay("RedForest", ["ack", &id.to_string()]).success();
    }
    let taken = person.post("step", &button);
    assert_eq!(taken.status, 303, "it leads back, with nothing left to send: {taken:?}");
    let told = person.get(&format!("{}/", person.place())).text;
    assert!(told.contains("The same request was made again, and went through."), "{told}");
    assert_eq!(newest(&bus, "RedForest")["body"], "from the human");
    let sent = bus.relay("RedForest", ["poll", "--all"]).success().result()["messages"].as_array().unwrap().len();
    person.post("step", &button);
    let again = bus.relay("RedForest", ["poll", "--all"]).success().result()["messages"].as_array().unwrap().len();
    assert_eq!(sent, again, "and once");
}

/// What the first button of an error sends to this action: the hidden fields of its form, and what it says itself.
fn button(page: &str, action: &str) -> Vec<(String, String)> {
    let (_, trouble) = page.split_once("role=\"alert\"").unwrap_or_else(|| panic!("no error in {page}"));
    let form = trouble.split(&format!("/{action}\"")).nth(1).unwrap_or_else(|| panic!("no {action} in {page}"));
    let form = form.split("</form>").next().unwrap();
    let read = |rest: &str| {
        let (name, rest) = rest.split_once("\" value=\"").unwrap();
        (unescaped(name), unescaped(rest.split('"').next().unwrap()))
    };
    let hidden = form.split("<input type=\"hidden\" name=\"").skip(1);
    let chosen = form.split("<button name=\"").skip(1).take(1);
    hidden.chain(chosen).map(read).filter(|(name, _)| name != "csrf").collect()
}

fn press(person: &Person<'_>, page: &str, action: &str) -> Reply {
    let fields = button(page, action);
    let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    person.post_with(action, &fields)
}

#[test]
fn a_letter_to_a_name_that_is_nearly_right_goes_to_whoever_was_meant() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let server = Server::start(&bus);
    let person = Person::at(&server);
    let fields = [("to", "BlueLake, RedForst"), ("subject", "S"), ("body", "a\r\n\"b\""), ("thread", "bd-1")];
    let page = person.post("send", &fields).text;
    assert!(page.contains("RECIPIENT_NOT_FOUND") && page.contains("Send to RedForest instead</button>"), "{page}");
    let sent = press(&person, &page, "send");
    assert_eq!(sent.status, 303, "{sent:?}");
    for agent in ["BlueLake", "RedForest"] {
        assert_eq!(newest(&bus, agent)["body"], "a\n\"b\"", "{agent}");
    }
}

/// Whom the human has suspended the human lets act again, without losing what was typed for them.
#[test]
fn a_letter_to_somebody_suspended_offers_to_let_them_act_again() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    let person = Person::at(&server);
    person.does("suspend", &[("name", "BlueLake")]);
    let fields = [("to", "BlueLake"), ("subject", "Go on"), ("body", "from the human"), ("thread", "bd-1")];
    let page = person.post("send", &fields).text;
    assert!(page.contains("CONTACT_BLOCKED") && page.contains("Let BlueLake act again</button>"), "{page}");
    let lifted = press(&person, &page, "suspend");
    assert_eq!(lifted.status, 200, "{lifted:?}");
    assert!(
        lifted.text.contains("BlueLake may act again.") && lifted.text.contains("from the human"),
        "{}",
        lifted.text
    );
    assert_eq!(field(&lifted.text, "subject"), "Go on");
    person.does("send", &fields);
    assert_eq!(newest(&bus, "BlueLake")["body"], "from the human");
}

/// A step that fails shows what was typed before it, and nothing of itself.
#[test]
fn what_was_typed_outlives_a_step_that_fails() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    let person = Person::at(&server);
    let asked = bus.send("BlueLake", "human", "bd-1", "Decide").to_string();
    bus.relay("BlueLake", ["retire"]).success();
    let body = "Yes,\r\n</textarea><b>\"go\"</b>";
    let mut page = person.post("send", &[("reply_to", &asked), ("body", body), ("ack_within", "30m")]).text;
    for _ in 0..2 {
        assert!(page.contains("CONTACT_BLOCKED"), "{page}");
        let typed = page.split("<textarea name=\"body\"").nth(1).unwrap().split_once('>').unwrap().1;
        let typed = unescaped(typed.split("</textarea>").next().unwrap());
        assert_eq!(typed.trim_start(), body.replace("\r\n", "\n"), "{page}");
        assert_eq!((field(&page, "reply_to"), field(&page, "ack_within")), (asked.clone(), "30m".to_owned()));
        assert!(!page.contains("What you typed"), "{page}");
        page = press(&person, &page, "step").text;
    }
    assert!(page.contains("aria-label=\"What is answered\""), "{page}");
    let bare = person.post("step", &[("step", "{\"tool\": \"ack\", \"args\": {\"ids\": [4711]}}")]).text;
    assert!(bare.contains("MESSAGE_NOT_FOUND") && !bare.contains("4711}"), "{bare}");
}

#[test]
fn a_step_is_one_of_the_ten_tools_here_and_as_the_human() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    let person = Person::at(&server);
    let step =
        |tool: &str, args: Value| person.post("step", &[("step", &json!({"tool": tool, "args": args}).to_string())]);
    let letter = json!({"to": ["BlueLake"], "subject": "s", "body": "b", "thread": "bd-1"});
    let with = |name: &str, value: &str| {
        let mut letter = letter.clone();
        letter[name] = json!(value);
        letter
    };
    let tip = bus.tip();
    for (tool, args) in [
        ("serve", json!({})),
        ("retire", json!({"name": "BlueLake"})),
        ("", json!({})),
        ("send", with("project", "/somewhere/else")),
        ("send", with("agent", "BlueLake")),
        ("send", with("nonsense", "1")),
        ("send", json!(["to"])),
    ] {
        let refused = step(tool, args.clone());
        assert!(refused.status == 400 && refused.text.contains("INPUT_INVALID"), "{tool} {args}: {refused:?}");
    }
    assert_eq!(bus.tip(), tip, "nothing was written");
    let mut named = with("agent", "human");
    named["project"] = json!(bus.key());
    named["idempotency_key"] = json!("the step's own");
    let sent = [step("send", named.clone()), step("send", named)];
    assert!(sent.iter().all(|reply| reply.status == 303), "{sent:?}");
    assert_eq!(bus.tip(), tip + 1, "the key of the step holds");
    let told = step("look", json!({"what": ["agents"]}));
    assert!(told.status == 200 && told.text.contains("BlueLake"), "{told:?}");
}

/// Whoever wrote goes on where it stands: from the box, and from a conversation. Elsewhere one stays, and is shown the way.
#[test]
fn what_was_written_is_where_one_goes_on() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    let person = Person::at(&server);
    let sent = |back: &str, fields: &[(&str, &str)]| {
        let back = format!("{}{back}", person.place());
        let reply = person.post("send", &[&[("back", back.as_str())], fields].concat());
        let id = newest(&bus, "BlueLake")["id"].to_string();
        let place = reply.header("location").unwrap_or_else(|| panic!("{reply:?}")).to_owned();
        let said = unescaped(&person.get(place.split('#').next().unwrap()).text);
        assert!(said.contains(&format!("Sent #{id} to BlueLake")), "{said}");
        (place.strip_prefix(&person.place()).unwrap().replace(&id, "N"), said.contains(">Show it</a>"))
    };
    let letter = [("to", "BlueLake"), ("subject", "Login"), ("body", "b"), ("thread", "bd-1")];
    let there = "/threads/bd-1#mN".to_owned();
    assert_eq!(sent("/write?to=BlueLake", &letter), (there.clone(), false));
    assert!(sent("/write", &letter[..3]).0.starts_with("/threads/"), "also where the thread gets its name from relay");
    assert_eq!(sent("/threads/bd-1?before=3", &letter), (there, false));
    assert_eq!(sent("/agents/BlueLake", &letter), ("/agents/BlueLake".to_owned(), true));
    assert_eq!(sent("/", &letter), ("/".to_owned(), true));
    bus.relay("BlueLake", ["reserve", "src/**", "--reason", "bd-1"]).success();
    bus.relay("BlueLake", ["release", "--reason", "bd-1", "--done"]).success();
    for path in ["threads/bd-1", "write?thread=bd-1"] {
        let page = person.get(&format!("{}/{path}", person.place())).text;
        assert!(page.contains("This thread is done; writing reopens it."), "{path}: {page}");
    }
    assert_eq!(sent("/threads/bd-1", &letter).0, "/threads/bd-1#mN");
    let page = person.get(&format!("{}/threads/bd-1", person.place())).text;
    assert!(!page.contains("This thread is done"), "{page}");
}
