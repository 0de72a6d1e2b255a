//! A server of a bus's own: the real `relay serve` on a port that was free, and a token that opens it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

use crate::bus::{Bus, run};
use crate::mcp::CURRENT;
use crate::privilege::Stage;
use crate::terminal::text;

/// Tells the tokens of several servers on one bus apart.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// A server on this bus. It does not outlive the test.
pub struct Server<'a> {
    pub bus: &'a Bus,
    child: Child,
    /// Without a path.
    pub url: String,
    /// A token that stands for the owner.
    pub token: String,
}

/// What came back.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub text: String,
}

impl Reply {
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|fault| panic!("{fault}: {self:?}"))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl<'a> Server<'a> {
    pub fn start(bus: &'a Bus) -> Self {
        Server::with(bus, &[])
    }

    pub fn with(bus: &'a Bus, args: &[&str]) -> Self {
        Server::run(bus, serve(bus, args))
    }

    /// Serves the bus's project to those who name none.
    pub fn of_the_project(bus: &'a Bus) -> Self {
        Server::with(bus, &["--project", &bus.key()])
    }

    /// The same in a network of its own, in which there is nothing else.
    pub fn apart(bus: &'a Bus) -> Self {
        let mut command = Command::new("unshare");
        command.args(["--net", "sh", "-c", r#"ip link set lo up && exec "$0" "$@""#]);
        Server::run(bus, behind(command, &serve(bus, &["--project", &bus.key()])))
    }

    /// A command that runs in the server's network.
    pub fn beside(&self, command: &Command) -> Command {
        let mut nsenter = Command::new("nsenter");
        nsenter.args([&format!("--net=/proc/{}/ns/net", self.pid()), "--"]);
        behind(nsenter, command)
    }

    /// Host and port.
    pub fn address(&self) -> &str {
        self.url.trim_start_matches("http://")
    }

    /// Where MCP is spoken.
    pub fn mcp(&self) -> String {
        format!("{}/mcp", self.url)
    }

    /// On a disk that only the stage has.
    pub fn staged(bus: &'a Bus, stage: &Stage) -> Self {
        let token = secret(stage.enter(&bus.args("", ["token", "add", "owner"])));
        Server::up(bus, token, stage.enter(&serve(bus, &[])))
    }

    pub fn run(bus: &'a Bus, command: Command) -> Self {
        let token = token(bus, &format!("owner-{}", COUNT.fetch_add(1, Ordering::Relaxed)), &[]);
        Server::up(bus, token, command)
    }

    /// Waits until it says where it listens.
    fn up(bus: &'a Bus, token: String, mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap_or_else(|fault| panic!("{fault}: {line:?}"));
        let url = text(&said["result"]["url"]).trim_end_matches("/mcp").to_owned();
        Server { bus, child, url, token }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to stop, and returns how it ended.
    pub fn stop(mut self) -> i32 {
        terminate(self.pid());
        self.child.wait().unwrap().code().unwrap_or(-1)
    }

    /// How it ended, after it was told to.
    pub fn stop_waited(mut self) -> i32 {
        self.child.wait().unwrap().code().unwrap_or(-1)
    }

    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Any request, with these headers and no others.
    pub fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        // What leads elsewhere is an answer, and not followed.
        let config = ureq::Agent::config_builder().http_status_as_error(false).user_agent("");
        let agent: ureq::Agent = config.max_redirects(0).max_redirects_will_error(false).build().into();
        let mut request = ureq::http::Request::builder().method(method).uri(format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut response = agent.run(request.body(body.to_owned()).unwrap()).unwrap();
        let headers = response.headers().iter();
        let headers =
            headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap_or("").to_owned())).collect();
        let status = response.status().as_u16();
        Reply { status, headers, text: response.body_mut().read_to_string().unwrap() }
    }

    /// Exactly these bytes, as far as they are taken, and what comes back.
    pub fn raw(&self, bytes: &str) -> String {
        let mut stream = TcpStream::connect(self.address()).unwrap();
        // One who has heard enough closes, whatever is still to come.
        let _ = stream.write_all(bytes.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// The whole inbox of an agent, page by page, as (id, body).
    pub fn inbox(&self, agent: &str) -> Vec<(u64, String)> {
        let mut found = Vec::new();
        let mut after = 0;
        loop {
            let page = self.does(agent, "poll", json!({"bodies": true, "after": after}));
            let messages = page["messages"].as_array().unwrap().clone();
            if messages.is_empty() {
                return found;
            }
            found.extend(messages.iter().map(|message| (message["id"].as_u64().unwrap(), text(&message["body"]))));
            after = page["cursor"].as_u64().unwrap();
        }
    }

    /// A message of the protocol, in the name of a token.
    #[track_caller]
    pub fn rpc(&self, token: &str, method: &str, mut params: Value) -> Value {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": CURRENT,
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let bearer = format!("Bearer {token}");
        let name = params["name"].as_str().or(params["uri"].as_str()).unwrap_or("").to_owned();
        let mut headers = vec![
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", CURRENT),
            ("mcp-method", method),
        ];
        if !name.is_empty() {
            headers.push(("mcp-name", &name));
        }
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        self.request("POST", "/mcp", &headers, &body).json()
    }

    /// Calls a tool as an agent of this bus's project; returns the one answer.
    #[track_caller]
    pub fn call(&self, agent: &str, tool: &str, arguments: Value) -> Value {
        self.call_with(&self.token, agent, tool, arguments)
    }

    #[track_caller]
    pub fn call_with(&self, token: &str, agent: &str, tool: &str, mut arguments: Value) -> Value {
        arguments["project"] = json!(self.bus.key());
        if !agent.is_empty() {
            arguments["agent"] = json!(agent);
        }
        let answer = self.rpc(token, "tools/call", json!({"name": tool, "arguments": arguments}));
        let result = &answer["result"];
        assert_eq!(result["isError"] == true, result["structuredContent"]["ok"] == false, "{answer}");
        result["structuredContent"].clone()
    }

    /// The same, and it must go well.
    #[track_caller]
    pub fn does(&self, agent: &str, tool: &str, arguments: Value) -> Value {
        let answer = self.call(agent, tool, arguments);
        assert_eq!(answer["ok"], true, "{answer}");
        answer["result"].clone()
    }

    /// A command line that finds this server instead of the stores.
    pub fn args(&self, agent: &str, args: &[&str]) -> Command {
        let mut command = self.bus.args(agent, args);
        command.env("RELAY_URL", &self.url).env("RELAY_TOKEN", &self.token);
        command
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn serve(bus: &Bus, args: &[&str]) -> Command {
    bus.args("", [&["serve", "--listen", "127.0.0.1:0"], args].concat())
}

/// The same command, started by another.
pub fn behind(mut first: Command, command: &Command) -> Command {
    first.arg(command.get_program()).args(command.get_args()).env_clear().stdin(Stdio::null());
    first.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(folder) = command.get_current_dir() {
        first.current_dir(folder);
    }
    first
}

pub fn terminate(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
}

/// A new token of this bus.
pub fn token(bus: &Bus, name: &str, flags: &[&str]) -> String {
    let args = [&["token", "add", name], flags].concat();
    secret(bus.args("", args))
}

fn secret(made: Command) -> String {
    text(&run(made).success().result()["token"])
}
