//! A server of the benchmark's own, in a folder of its own.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::Client;

const RELAY: &str = env!("CARGO_BIN_EXE_relay");

pub struct Server {
    root: TempDir,
    child: Child,
    host: String,
    token: String,
}

impl Server {
    pub fn start(dir: &Path, before: &[&str]) -> Self {
        let root = tempfile::tempdir_in(dir).unwrap();
        let repo = root.path().join("repo");
        fs::create_dir_all(&repo).unwrap();
        fs::create_dir_all(root.path().join("home")).unwrap();
        // What is measured is the server, not how politely it slows one token down.
        fs::write(root.path().join("home/config.toml"), "[serve]\nrequests_per_second = 1000000\n").unwrap();
        let added = relay(root.path(), &[]).args(["--json", "token", "add", "bench"]).output().unwrap();
        let added: Value = serde_json::from_slice(&added.stdout).unwrap();
        let mut command = relay(root.path(), before);
        command.args(["--json", "serve", "--listen", "127.0.0.1:0"]).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        let host =
            said["result"]["url"].as_str().unwrap().trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
        let token = added["result"]["token"].as_str().unwrap().to_owned();
        Server { root, child, host, token }
    }

    /// The same under strace, which writes down every sync.
    pub fn traced(dir: &Path) -> Self {
        let trace = tempfile::Builder::new().prefix("syncs").tempfile_in(dir).unwrap().into_temp_path();
        let path = trace.to_str().unwrap().to_owned();
        let server = Server::start(
            dir,
            &["strace", "-f", "-qq", "--seccomp-bpf", "-e", "trace=fsync,fdatasync,sync_file_range", "-o", &path],
        );
        fs::rename(&trace, server.trace()).unwrap();
        server
    }

    fn trace(&self) -> PathBuf {
        self.root.path().join("syncs")
    }

    pub fn syncs(&self) -> usize {
        fs::read_to_string(self.trace()).unwrap().lines().filter(|line| line.contains("sync(")).count()
    }

    pub fn client(&self, agent: usize) -> Client {
        let project = self.root.path().join("repo").canonicalize().unwrap();
        Client::new(&self.host, &self.token, project.to_str().unwrap(), &name(agent))
    }

    /// They take mail from each other, so that a send is one event.
    pub fn start_agents(&self, count: usize) {
        for agent in 0..count {
            let mut client = self.client(agent);
            assert_eq!(client.call("prepare", json!({"thread": "bench"}))["ok"], true);
        }
    }

    fn status(&self, field: &str) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        line.trim_start_matches(':').split_whitespace().next().unwrap().parse().unwrap()
    }

    /// In megabytes.
    pub fn resident(&self) -> f64 {
        self.status("VmRSS") / 1024.0
    }

    pub fn threads(&self) -> usize {
        fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap().count()
    }
}

pub fn name(agent: usize) -> String {
    format!("Agent{agent}")
}

fn relay(root: &Path, before: &[&str]) -> Command {
    let words: Vec<&str> = before.iter().copied().chain([RELAY]).collect();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).env_clear().env("PATH", std::env::var("PATH").unwrap());
    command.env("HOME", root).env("RELAY_HOME", root.join("home")).env("RELAY_DRAIN", "later").current_dir(root);
    command
}

impl Drop for Server {
    fn drop(&mut self) {
        // strace does not pass it on: what it runs is told itself.
        let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", self.child.id())).unwrap_or_default();
        let pid = children.split_whitespace().next().map_or(self.child.id(), |pid| pid.parse().unwrap());
        let pid = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.child.wait();
    }
}
