//! What the project owes itself, and the questions that lie beside its store.

use relay_core::playbook::Setting;
use relay_core::store::Result;
use relay_core::verbs::debt::DebtItem;
use relay_core::verbs::look::{self, Outcome as Looked};
use relay_core::verbs::{self, Ctx, Outcome, Request};
use relay_store::notes::Note;

use super::{Finding, Severity};
use crate::render;

/// What each kind is called, and how much it presses.
const KINDS: [(&str, &str, &str, Severity); 10] = [
    ("decision", "SOMEONE_WAITS", "question for the human", Severity::Warning),
    ("ack_overdue", "ACK_OVERDUE", "overdue ack", Severity::Warning),
    ("contested_claim", "CONTESTED", "contested claim", Severity::Warning),
    ("silent_claim", "HOLDER_SILENT", "claim of a silent holder", Severity::Warning),
    ("stale_claim", "STALE_CLAIM", "stale claim", Severity::Note),
    ("broad_claim", "BROAD_CLAIM", "broad claim", Severity::Note),
    ("contact_waiting", "CONTACT_WAITING", "request for contact without an answer", Severity::Warning),
    ("unread_pile", "SOMEONE_WAITS", "inbox that piles up", Severity::Note),
    ("drifting_thread", "TOPIC_DRIFT", "thread that left its subject", Severity::Note),
    ("old_identity", "HOLDER_SILENT", "agent that is on the bus by name alone", Severity::Note),
];

pub fn on_the_bus(ctx: &Ctx<'_>, notes: &[Note], setting: &Setting) -> Result<Vec<Finding>> {
    let mut found: Vec<Finding> = notes.iter().map(|note| beside(note, setting)).collect();
    let input = look::Input { what: vec!["debt".to_owned()], ..look::Input::default() };
    let debt = match verbs::run(ctx, &Request::Look(input))?.outcome {
        Outcome::Look(Looked::Debt { debt }) => debt,
        _ => Vec::new(),
    };
    for (kind, class, noun, severity) in KINDS {
        let items: Vec<&DebtItem> = debt.iter().filter(|item| item.kind == kind).collect();
        let Some(first) = items.first() else { continue };
        let text = format!("{}: {}", render::count(items.len(), noun), first.text);
        let finding = Finding { class: Some(class.to_owned()), ..Finding::new("debt", severity, text) };
        found.push(finding.step("see each of them with the command that pays it", &["look", "debt"], setting));
    }
    if debt.is_empty() {
        found.push(Finding::new("debt", Severity::Ok, "no coordination debt"));
    }
    Ok(found)
}

/// A question that lies beside the store: the class is in its name.
fn beside(note: &Note, setting: &Setting) -> Finding {
    let class = note.class().to_owned();
    let question = note.text.lines().next().filter(|line| !line.is_empty()).unwrap_or(&note.case);
    let text = format!("{question} ({})", note.path.display());
    let finding = Finding::new("question", Severity::Warning, text);
    let finding = finding.step("see how far its way out holds", &["recover", &class, "--dry-run"], setting);
    Finding { class: Some(class), ..finding }
}
