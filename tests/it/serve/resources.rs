//! What can be looked at without a tool, by one who has to say where.

use serde_json::{Value, json};

use crate::bus::Bus;
use crate::listening::{Server, token};
use crate::terminal::{column, text};

const NOT_FOUND: i64 = -32602;
const FAILED: i64 = -32603;

fn read(server: &Server<'_>, uri: &str) -> Value {
    server.rpc(&server.token, "resources/read", json!({"uri": uri}))
}

#[test]
fn a_template_says_how_the_project_is_named() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let id = bus.send("BlueLake", "RedForest", "bd-1", "Login").to_string();
    let server = Server::start(&bus);
    let listed = server.rpc(&server.token, "resources/templates/list", json!({}));
    let templates: Vec<String> =
        column(&listed["result"]["resourceTemplates"], "uriTemplate").iter().map(text).collect();
    // As RFC 6570 fills them in.
    let project = bus.key().replace('/', "%2F");
    let filled = |template: &String| {
        let path = template.split("{?").next().unwrap();
        let name = if path.contains("message/") { id.as_str() } else { "bd-1" };
        let path = path.replace("{agent}", "RedForest").replace("{id}", name).replace("{code}", "STORE_BUSY");
        if template.contains("{?project") { format!("{path}?project={project}") } else { path }
    };
    assert_eq!(templates.len(), 6, "{templates:?}");
    for template in &templates {
        let uri = filled(template);
        let answer = read(&server, &uri);
        assert!(!text(&answer["result"]["contents"][0]["text"]).is_empty(), "{uri}: {answer}");
    }
    let as_agent = format!("relay://thread/bd-1?project={project}&agent=RedForest");
    assert!(read(&server, &as_agent)["result"].is_object());
}

#[test]
fn what_is_not_there_and_what_cannot_be_read_are_told_apart() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    let project = format!("project={}", bus.key());
    let check = |uri: &str, code: i64, sentence: &str| {
        let answer = read(&server, uri);
        let told = (&answer["error"]["code"], text(&answer["error"]["message"]));
        assert!(*told.0 == code && told.1.contains(sentence), "{uri}: {answer}");
        assert_eq!(answer["error"]["data"]["uri"], uri, "{answer}");
    };
    check(&format!("relay://thread/bd-9?{project}"), NOT_FOUND, "there is no thread `bd-9`");
    check(&format!("relay://message/999?{project}"), NOT_FOUND, "there is no message #999");
    check(&format!("relay://message/x?{project}"), NOT_FOUND, "there is no message \"x\"");
    check(&format!("relay://inbox/Nobody?{project}"), NOT_FOUND, "Nobody");
    check("relay://playbook/NO_SUCH", NOT_FOUND, "\"NO_SUCH\" is no error class");
    check("relay://nothing/at-all", NOT_FOUND, "there is no resource");
    check("relay://agents?project=/no/such/folder", NOT_FOUND, "/no/such/folder");
    check("relay://agents", FAILED, "project");
    bus.relay("BlueLake", ["retire"]).success();
    check(&format!("relay://inbox/BlueLake?{project}"), FAILED, "BlueLake has retired");
}

#[test]
fn an_inbox_of_somebody_else_is_there_and_not_to_be_read() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    let other = token(&bus, "other", &["--separate"]);
    let uri = format!("relay://inbox/BlueLake?project={}", bus.key());
    let answer = server.rpc(&other, "resources/read", json!({"uri": uri}));
    assert_eq!(answer["error"]["code"], FAILED, "{answer}");
    assert!(text(&answer["error"]["message"]).contains("BlueLake belongs to"), "{answer}");
}

#[test]
fn a_playbook_needs_no_project() {
    let bus = Bus::new();
    let server = Server::start(&bus);
    let answer = read(&server, "relay://playbook/CONTACT_REQUIRED");
    assert!(text(&answer["result"]["contents"][0]["text"]).starts_with("CONTACT_REQUIRED"), "{answer}");
    let arguments = json!({"what": ["playbook", "CONTACT_REQUIRED"]});
    let looked = server.rpc(&server.token, "tools/call", json!({"name": "look", "arguments": arguments}));
    assert_eq!(looked["result"]["structuredContent"]["result"]["code"], "CONTACT_REQUIRED", "{looked}");
}
