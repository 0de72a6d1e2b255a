//! A client of relay's MCP server that a test can see through: what it writes is what is sent, over both transports and in both
//! revisions.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::bus::Bus;
use crate::listening::Server;

pub const CURRENT: &str = "2026-07-28";
pub const BEFORE: &str = "2025-11-25";

pub struct Client {
    way: Way,
    revision: &'static str,
    asked: u64,
}

enum Way {
    Pipe { child: Child, input: Option<ChildStdin>, output: BufReader<ChildStdout> },
    Http { url: String, token: String, session: Option<String> },
}

impl Client {
    /// Starts `relay mcp` in the bus's repository.
    pub fn over_pipe(bus: &Bus, revision: &'static str) -> Self {
        Client::started(bus, &["mcp"], revision)
    }

    /// The same with other words.
    pub fn started(bus: &Bus, args: &[&str], revision: &'static str) -> Self {
        let mut command = bus.command();
        let mut child = command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Client { way: Way::Pipe { child, input, output }, revision, asked: 0 }.met()
    }

    pub fn over_http(server: &Server<'_>, revision: &'static str) -> Self {
        let way = Way::Http { url: server.mcp(), token: server.token.clone(), session: None };
        Client { way, revision, asked: 0 }.met()
    }

    /// Older clients introduce themselves.
    fn met(mut self) -> Self {
        if self.revision == BEFORE {
            let client = json!({"name": "test", "version": "1"});
            self.ask("initialize", json!({"protocolVersion": BEFORE, "capabilities": {}, "clientInfo": client}));
            self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        }
        self
    }

    /// The result, exactly as it was written.
    pub fn ask(&mut self, method: &str, params: Value) -> String {
        #[derive(serde::Deserialize)]
        struct Response<'a> {
            #[serde(borrow)]
            result: Option<&'a RawValue>,
        }
        self.asked += 1;
        let mut params = params;
        if self.revision == CURRENT {
            // Nothing is remembered between two requests, so each says it all.
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": CURRENT,
                "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        let text = self.send(&json!({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params}));
        let response: Response<'_> = serde_json::from_str(&text).unwrap_or_else(|fault| panic!("{fault}: {text}"));
        response.result.unwrap_or_else(|| panic!("{method}: {text}")).get().to_owned()
    }

    /// What a tool answers: relay's own answer, which is the structured content.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let result = self.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        let result: Value = serde_json::from_str(&result).unwrap();
        let answer = result["structuredContent"].clone();
        assert_eq!(result["isError"] == true, answer["ok"] == false, "{tool} {arguments}: {result:#}");
        answer
    }

    /// Sends a message and reads the line that answers it; a notification has none.
    fn send(&mut self, message: &Value) -> String {
        let revision = self.revision;
        match &mut self.way {
            Way::Pipe { input, output, .. } => {
                writeln!(input.as_mut().unwrap(), "{message}").unwrap();
                let mut line = String::new();
                if message.get("id").is_some() {
                    output.read_line(&mut line).unwrap();
                }
                line
            }
            Way::Http { url, token, session } => post(url, token, session, revision, message),
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Way::Pipe { child, input, .. } = &mut self.way {
            // It ends with its input.
            drop(input.take());
            let _ = child.wait();
        }
    }
}

fn post(url: &str, token: &str, session: &mut Option<String>, revision: &str, message: &Value) -> String {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let mut request = agent
        .post(url)
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", revision)
        .header("mcp-method", message["method"].as_str().unwrap());
    for (header, value) in [("mcp-name", message["params"]["name"].as_str()), ("mcp-session-id", session.as_deref())] {
        if let Some(value) = value {
            request = request.header(header, value);
        }
    }
    let mut response = request.send(message.to_string()).unwrap();
    let given = response.headers().get("mcp-session-id").map(|given| given.to_str().unwrap().to_owned());
    *session = given.or(session.take());
    let body = response.body_mut().read_to_string().unwrap();
    // An older client is answered on a stream, whose last line with something in it is the answer.
    let line =
        body.lines().rev().filter_map(|line| line.strip_prefix("data:")).map(str::trim).find(|line| !line.is_empty());
    line.map_or(body.clone(), str::to_owned)
}
