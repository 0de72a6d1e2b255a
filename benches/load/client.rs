//! One agent's connection: it stays open, and knows no more of HTTP than this server needs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

pub struct Client {
    stream: BufReader<TcpStream>,
    token: String,
    host: String,
    pub agent: String,
    project: String,
}

impl Client {
    pub fn new(host: &str, token: &str, project: &str, agent: &str) -> Self {
        let stream = TcpStream::connect(host).unwrap();
        stream.set_nodelay(true).unwrap();
        let [token, host, agent, project] = [token, host, agent, project].map(str::to_owned);
        Client { stream: BufReader::new(stream), token, host, agent, project }
    }

    /// Calls a tool; returns the one answer.
    pub fn call(&mut self, tool: &str, mut arguments: Value) -> Value {
        arguments["project"] = json!(self.project);
        arguments["agent"] = json!(self.agent);
        self.post("tools/call", &format!("mcp-name: {tool}\r\n"), json!({"name": tool, "arguments": arguments}));
        let answer: Value = serde_json::from_slice(&self.body()).unwrap();
        answer["result"]["structuredContent"].clone()
    }

    /// Becomes a stream of what changes in its inbox, once it is told that it is one.
    pub fn listen(mut self) -> impl Iterator<Item = Value> {
        let (inbox, header) = (format!("relay://inbox/{}", self.agent), format!("relay-project: {}\r\n", self.project));
        self.post("subscriptions/listen", &header, json!({"notifications": {"resourceSubscriptions": [inbox]}}));
        let data = |line: String| line.strip_prefix("data:").and_then(|data| serde_json::from_str(data.trim()).ok());
        let told = self.stream.lines().map_while(Result::ok).filter_map(data);
        // That it is heard, and what was there before.
        told.skip(2)
    }

    fn post(&mut self, method: &str, headers: &str, mut params: Value) {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\n\
             {headers}content-length: {}\r\n\r\n",
            self.host,
            self.token,
            body.len()
        );
        self.stream.get_mut().write_all(format!("{head}{body}").as_bytes()).unwrap();
    }

    fn body(&mut self) -> Vec<u8> {
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).unwrap();
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).unwrap();
        body
    }
}
