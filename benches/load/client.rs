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
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\n\
             mcp-name: {tool}\r\ncontent-length: {}\r\n\r\n",
            self.host,
            self.token,
            body.len()
        );
        self.stream.get_mut().write_all(format!("{head}{body}").as_bytes()).unwrap();
        let answer: Value = serde_json::from_slice(&self.body()).unwrap();
        answer["result"]["structuredContent"].clone()
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
