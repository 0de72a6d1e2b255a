//! A server with the page open, and the browser of `tests/clients/page.mjs` before it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::bus::{Bus, RELAY, run};
use crate::listening::{serve, terminate};
use crate::outside;
use crate::terminal::text;

/// `relay serve --open`. It does not outlive the test.
pub struct Stage<'a> {
    bus: &'a Bus,
    child: Child,
    /// Without a path.
    base: String,
    /// Opens the page once.
    link: String,
}

impl<'a> Stage<'a> {
    pub fn open(bus: &'a Bus) -> Self {
        let mut command = serve(bus, &["--open"]);
        // Nobody sits here whose browser could open.
        command.env("BROWSER", "true");
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap_or_else(|fault| panic!("{fault}: {line:?}"));
        let base = text(&said["result"]["url"]).trim_end_matches("/mcp").to_owned();
        Stage { bus, child, base, link: text(&said["result"]["page"]) }
    }

    /// Plays these scenes in one browser; returns what each found.
    #[track_caller]
    pub fn plays(&self, scenes: &[&str], told: &Value) -> Value {
        let mut node = outside::node(self.bus);
        node.arg(outside::scripts().join("page.mjs")).args(scenes).env("STAGE", self.told(told).to_string());
        let run = run(node).success();
        run.json()
    }

    /// The project's part of an address, if there is one yet.
    fn slug(&self) -> Option<String> {
        let listed = self.bus.relay("", ["project", "list"]).success().result();
        let key = self.bus.key();
        let project = listed["projects"].as_array().unwrap().iter().find(|project| project["key"] == key)?;
        let folder = PathBuf::from(text(&project["store"]));
        Some(folder.file_name().unwrap().to_str().unwrap().to_owned())
    }

    /// What every scene is told, and what these are told beside that.
    fn told(&self, beside: &Value) -> Value {
        let mut told = json!({
            "base": self.base,
            "link": self.link,
            "slug": self.slug(),
            "relay": RELAY,
            "project": self.bus.key(),
            "clock": self.bus.path("clock"),
            "shots": shots(),
        });
        told.as_object_mut().unwrap().extend(beside.as_object().unwrap().clone());
        told
    }
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        terminate(self.child.id());
        let _ = self.child.wait();
    }
}

/// Where pictures of the screens go.
fn shots() -> PathBuf {
    let beside = || Path::new(RELAY).ancestors().nth(2).unwrap().join("page-shots");
    std::env::var_os("RELAY_SHOTS").map_or_else(beside, PathBuf::from)
}
