//! The machine around a store, for `recover`: it runs the steps of a playbook as this same program, asks the person at the
//! terminal, and looks at what no verb can look at.

use std::io::{BufRead, IsTerminal, Write};
use std::path::PathBuf;
use std::process::Stdio;

use owo_colors::OwoColorize;
use relay_core::domain::name::ProjectKey;
use relay_core::domain::plain::escape_line;
use relay_core::domain::shell;
use relay_core::domain::time::Timestamp;
use relay_core::error::{Code, Refusal};
use relay_core::installation::{Installation, Question};
use relay_core::playbook::{Condition, Escalation, State, Step};
use relay_core::store::Result;
use relay_core::verbs::lag;
use relay_server::Speech;
use relay_store::notes::{Note, Places};
use relay_store::{Home, fitness, tries};
use serde_json::Value;

use crate::output::Output;
use crate::remote::Remote;
use crate::{environment, human, process, render};

/// What is around one project's store, whatever state that is in.
pub struct Here {
    pub home: Home,
    pub project: ProjectKey,
    pub output: Output,
}

impl Here {
    fn place(&self) -> PathBuf {
        self.home.folder(&self.project)
    }

    pub fn notes(&self) -> Places {
        Places { beside: self.place(), elsewhere: environment::user_folder() }
    }

    /// Where tries are counted: beside the store, or where that takes nothing.
    fn tried(&self) -> [PathBuf; 2] {
        let places = self.notes();
        [places.beside.join("tries"), places.elsewhere.join(format!(".relay-{}.tries", places.name()))]
    }

    /// A person sits there and sees what is asked.
    fn is_watched(&self) -> bool {
        !self.output.json && std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
    }
}

impl Installation for Here {
    fn folder(&self) -> String {
        let folder = self.place();
        let place = if folder.is_dir() { &folder } else { self.home.root() };
        place.to_string_lossy().into_owned()
    }

    fn run(&self, argv: &[String]) -> Result<Value> {
        let lost = |fault: std::io::Error| Code::Internal.refuse(format!("relay cannot run itself: {fault}"));
        let mut command = process::new(environment::own_program().map_err(lost)?);
        command.args(argv.iter().skip(1)).arg("--json").stdin(Stdio::null());
        // The store is the one around here, also where this process serves others.
        command.env_remove("RELAY_URL");
        let output = command.output().map_err(lost)?;
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        // What it has to say to a person is said.
        self.output.complain(&String::from_utf8_lossy(&output.stderr));
        if output.status.success() { Ok(answer["result"].clone()) } else { Err(told(&answer, &output.stderr)) }
    }

    fn show(&self, steps: &[Step]) {
        if self.is_watched() {
            self.output.complain(&format!("The steps:\n{}", render::steps(steps, Speech::Commands)));
        }
    }

    fn agrees(&self, step: &Step) -> bool {
        if !self.is_watched() {
            return false;
        }
        let command = escape_line(&shell::line(&step.run));
        let question = format!("Step {}: {}\n  {}\nRun it? [y/N] ", step.step, escape_line(&step.why), command.cyan());
        let mut out = std::io::stderr().lock();
        let mut answer = String::new();
        let asked = out.write_all(question.as_bytes()).and_then(|()| out.flush());
        let heard = asked.and_then(|()| std::io::stdin().lock().read_line(&mut answer));
        heard.is_ok() && ["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str())
    }

    fn holds(&self, condition: &Condition) -> Result<bool> {
        let folder = self.place();
        Ok(match condition {
            Condition::Noted(case) => self.notes().has(case),
            Condition::Credential(_) => human::verify(self.home.root()).is_ok(),
            Condition::Store(State::Writable) => fitness::store_is_writable(&folder),
            Condition::Store(_) => fitness::store_is_sound(&folder)?,
            Condition::Archive(State::Writable) => fitness::archive_is_writable(&folder),
            Condition::Archive(State::Current) => match self.home.open_existing(&self.project)? {
                Some(store) => lag::is_current(&store, None)?,
                None => false,
            },
            Condition::Archive(_) => fitness::archive_is_sound(&folder)?,
            Condition::Server(_) => Remote::named()?.is_some_and(|remote| remote.knock().is_ok()),
            _ => false,
        })
    }

    fn note(&self, escalation: &Escalation, at: Timestamp) -> Option<String> {
        let path = self.notes().add(escalation, at);
        let asks = format!("{} {}\n", "For the person in charge:".bold(), escape_line(&escalation.question));
        self.output.complain(&asks);
        path.map(|path| path.to_string_lossy().into_owned())
    }

    fn questions(&self) -> Vec<Question> {
        let question = |note: Note| {
            let text = note.text.lines().next().unwrap_or_default().to_owned();
            Question { case: note.case, text, path: note.path.to_string_lossy().into_owned() }
        };
        self.notes().notes().into_iter().map(question).collect()
    }

    fn settle(&self, case: &str) {
        for note in self.notes().notes().iter().filter(|note| note.case == case) {
            // Best effort: `doctor` shows what is left.
            let _ = note.remove();
        }
    }

    fn tries(&self, cause: &str, since: Timestamp) -> usize {
        tries::count(&self.tried(), cause, since)
    }

    fn note_try(&self, cause: &str, at: Timestamp) {
        tries::note(&self.tried(), cause, at);
    }

    fn forget_tries(&self, cause: &str, at: Timestamp) {
        tries::forget(&self.tried(), cause, at);
    }
}

/// What a command that failed said: its error, or else its last words.
fn told(answer: &Value, stderr: &[u8]) -> Refusal {
    let error = &answer["error"];
    let code = error["code"].as_str().and_then(Code::parse);
    match (code, error["message"].as_str()) {
        (Some(code), Some(message)) => code.refuse(message),
        _ => {
            let said = String::from_utf8_lossy(stderr);
            Code::Internal.refuse(said.lines().last().unwrap_or("it failed and said nothing").to_owned())
        }
    }
}
