//! `doctor`: one look at everything, each finding with its class and the way out of it.
//!
//! It finds nothing that other commands would not: it asks the same questions, and what is busy, behind or unread is not
//! called damaged.

pub mod agents;
mod bus;
mod hooks;
mod machine;
mod server;
mod store;

use relay_core::error::{Code, Refusal};
use relay_core::playbook::{self, Setting, Step};
use serde::Serialize;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// As it should be.
    Ok,
    /// Worth knowing.
    Note,
    /// Somebody should do something.
    Warning,
    /// Something does not work.
    Error,
}

/// One thing that was looked at.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    pub check: &'static str,
    pub severity: Severity,
    pub text: String,
    /// The error class, or the signal, that says the same elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub playbook: Vec<Step>,
    #[serde(skip)]
    pub code: Option<Code>,
}

impl Finding {
    /// As it should be.
    pub fn fine(check: &'static str, text: impl Into<String>) -> Self {
        let (severity, text) = (Severity::Ok, text.into());
        Finding { check, severity, text, class: None, playbook: Vec::new(), code: None }
    }

    /// What the class says elsewhere, found before it gets in anybody's way; the step is this finding's own.
    pub fn told(check: &'static str, severity: Severity, class: impl Into<String>, text: impl Into<String>) -> Self {
        Finding { severity, class: Some(class.into()), ..Finding::fine(check, text) }
    }

    /// What an error would have said here.
    pub fn refused(check: &'static str, severity: Severity, refusal: &Refusal, setting: &Setting) -> Self {
        let steps = playbook::steps(&playbook::playbook(refusal.code), refusal, setting);
        let finding = Finding::told(check, severity, refusal.code.to_string(), refusal.message.clone());
        Finding { code: Some(refusal.code), playbook: steps, ..finding }
    }

    /// Nobody is here yet, and that is no fault.
    pub fn nobody(check: &'static str, text: impl Into<String>, setting: &Setting) -> Self {
        let finding = Finding::told(check, Severity::Note, Code::AgentNotRegistered.to_string(), text);
        finding.step("the first agent begins it", &["start"], setting)
    }

    /// The one command that helps.
    fn step(self, why: &str, command: &[&str], setting: &Setting) -> Self {
        let project = setting.project.as_deref().map(|project| ["--project", project]);
        let words = ["relay"].iter().chain(command).copied().chain(project.into_iter().flatten());
        let run = words.map(str::to_owned).collect();
        Finding { playbook: vec![Step { step: 1, why: why.to_owned(), run, ..Step::default() }], ..self }
    }
}

pub use bus::{beside, on_the_bus};
pub use hooks::{of_the_agents, of_the_hooks};
pub use machine::of_the_machine;
pub use server::of_the_server;
pub use store::{of_a_project, of_the_files, of_the_store};
