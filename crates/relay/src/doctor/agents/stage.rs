//! The bus that synthetic events go to: a home of its own, thrown away afterwards, in which somebody else holds the file that is
//! said to be edited, and edits of what others hold are denied.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use relay_core::error::Code;
use relay_core::store::Result;
use relay_store::filesystem::private_folder;
use tempfile::TempDir;

use super::Time;
use super::synthetic::FILE;
use crate::hook::trace;
use crate::init::{Line, Place};
use crate::{environment, process};

/// Whoever holds it: an answer must name them.
pub const HOLDER: &str = "DoctorsTry";

pub struct Stage {
    /// Removed with all that is in it.
    folder: TempDir,
    /// Where the agents work.
    root: PathBuf,
    interrupted: Arc<AtomicBool>,
}

impl Stage {
    pub fn set(place: &Place, time: Time<'_>) -> Result<Self> {
        let fault = |fault: std::io::Error| Code::StoreIo.refuse(format!("no temporary folder can be used: {fault}"));
        let folder = tempfile::Builder::new().prefix("relay-doctor-").tempdir().map_err(fault)?;
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
            let _ = signal_hook::flag::register(signal, Arc::clone(&interrupted));
        }
        let stage = Stage { folder, root: place.root.clone(), interrupted };
        private_folder(&stage.home())?;
        std::fs::write(stage.home().join("config.toml"), "[hooks]\nedit = \"deny\"\n").map_err(fault)?;
        stage.play(&["start"], time)?;
        stage.play(&["reserve", FILE], time)?;
        Ok(stage)
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Whoever waits no longer is not kept, and nothing stays behind.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// This same program, as the holder.
    fn play(&self, arguments: &[&str], time: Time<'_>) -> Result<()> {
        let lost = |fault: std::io::Error| Code::Internal.refuse(format!("relay cannot run itself: {fault}"));
        let mut command = process::new(environment::own_program().map_err(lost)?);
        command.args(["--json", "--agent", HOLDER]).args(arguments);
        // Nobody else's program is tried out here: on a busy machine it takes its time.
        let output = self.run_within(&mut command, "", time).map_err(lost)?;
        let output = output.ok_or_else(|| Code::StoreBusy.refuse("relay does not come to an end in a new home"))?;
        let said = String::from_utf8_lossy(&output.stdout);
        if output.status.success() {
            Ok(())
        } else {
            Err(Code::Internal.refuse(format!("in a new home: {}", said.trim())))
        }
    }

    /// A command in the project, with nothing of the caller's bus in its environment.
    pub fn run(&self, command: &mut Command, input: &str, time: Time<'_>) -> std::io::Result<Option<Output>> {
        self.run_within(command, input, time.for_one())
    }

    fn run_within(&self, command: &mut Command, input: &str, time: Time<'_>) -> std::io::Result<Option<Output>> {
        for name in environment::of_a_caller() {
            command.env_remove(name);
        }
        command.env("RELAY_HOME", self.home()).env("RELAY_DRAIN", "later").current_dir(&self.root);
        Ok(process::try_out(command, input)?.result(|| time.is_over() || self.is_interrupted()))
    }

    /// What a program runs for a hook, as it runs it.
    pub fn fire(&self, line: &Line, input: &str, time: Time<'_>) -> std::io::Result<Option<Output>> {
        let mut command = match line {
            Line::Shell(line) => {
                let mut shell = process::new("/bin/sh");
                shell.args(["-c", line]);
                shell
            }
            Line::Words(words) => {
                let mut command = process::new(words.first().map_or("", String::as_str));
                command.args(words.iter().skip(1));
                command
            }
        };
        self.run(&mut command, input, time)
    }

    /// Why a hook let the agent go on, where it left a trace here.
    pub fn trace(&self) -> Option<String> {
        trace::read(&self.home()).pop().map(|trace| trace.why)
    }
}
