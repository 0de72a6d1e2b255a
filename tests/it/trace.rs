//! What a command asks of the kernel, counted with strace. Where strace cannot run, the tests that need it fail.

use std::path::PathBuf;
use std::process::Command;

use crate::bus::{Bus, Run, run};

/// The system calls of one command and all its threads and children, one line each.
pub struct Trace {
    pub run: Run,
    pub calls: Vec<String>,
}

/// Runs a command under strace; `filter` names what is wanted, as `-e` takes it.
pub fn trace(bus: &Bus, command: &Command, filter: Option<&str>) -> Trace {
    let out = out_file(bus);
    let mut strace = Command::new("strace");
    bus.environment(&mut strace);
    strace.args(["-f", "-q", "-s", "64", "-o"]).arg(&out);
    if let Some(filter) = filter {
        strace.args(["-e", filter]);
    }
    strace.arg("--").arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => strace.env(name, value),
            None => strace.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        strace.current_dir(folder);
    }
    let run = run(strace);
    let text = std::fs::read(&out).unwrap_or_default();
    let calls: Vec<String> = String::from_utf8_lossy(&text).lines().map(call).filter(|call| !call.is_empty()).collect();
    assert!(calls.iter().any(|call| call.starts_with("execve(")), "strace saw nothing; can it run here? {run:?}");
    Trace { run, calls }
}

fn out_file(bus: &Bus) -> PathBuf {
    static TRACES: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    bus.path(&format!("strace.{}", TRACES.fetch_add(1, std::sync::atomic::Ordering::Relaxed)))
}

/// A line without its process number. A call that another interrupted counts where it began.
fn call(line: &str) -> String {
    let text = line.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
    if text.starts_with("<...") || text.starts_with("+++") || text.starts_with("---") {
        String::new()
    } else {
        text.to_owned()
    }
}

impl Trace {
    pub fn count(&self, name: &str) -> usize {
        self.calls.iter().filter(|call| call.starts_with(&format!("{name}("))).count()
    }
}
