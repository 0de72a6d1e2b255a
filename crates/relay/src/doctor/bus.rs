//! What the project owes itself, and the questions that lie beside its store.

use relay_core::error::Code;
use relay_core::playbook::Setting;
use relay_core::store::Result;
use relay_core::verbs::debt::DebtItem;
use relay_core::verbs::look::{self, Outcome as Looked};
use relay_core::verbs::{self, Ctx, Outcome, Request};
use relay_store::notes::Note;

use super::{Finding, Severity};

/// What each kind is called, and how much it presses.
const KINDS: [(&str, &str, [&str; 2], Severity); 10] = [
    ("decision", "SOMEONE_WAITS", ["question for the human", "questions for the human"], Severity::Warning),
    ("ack_overdue", "ACK_OVERDUE", ["overdue ack", "overdue acks"], Severity::Warning),
    ("contested_claim", "CONTESTED", ["contested claim", "contested claims"], Severity::Warning),
    ("silent_claim", "HOLDER_SILENT", ["claim of a silent holder", "claims of silent holders"], Severity::Warning),
    ("stale_claim", "STALE_CLAIM", ["stale claim", "stale claims"], Severity::Note),
    ("broad_claim", "BROAD_CLAIM", ["broad claim", "broad claims"], Severity::Note),
    (
        "contact_waiting",
        "CONTACT_WAITING",
        ["unanswered request for contact", "unanswered requests for contact"],
        Severity::Warning,
    ),
    ("unread_pile", "SOMEONE_WAITS", ["inbox that piles up", "inboxes that pile up"], Severity::Note),
    (
        "drifting_thread",
        "TOPIC_DRIFT",
        ["thread that left its subject", "threads that left their subject"],
        Severity::Note,
    ),
    (
        "old_identity",
        "HOLDER_SILENT",
        ["agent that is on the bus by name alone", "agents that are on the bus by name alone"],
        Severity::Note,
    ),
];

pub fn on_the_bus(ctx: &Ctx<'_>, setting: &Setting) -> Result<Vec<Finding>> {
    let mut found = Vec::new();
    let input = look::Input { what: vec!["debt".to_owned()], ..look::Input::default() };
    let debt = match verbs::run(ctx, &Request::Look(input))?.outcome {
        Outcome::Look(Looked::Debt { debt }) => debt,
        _ => Vec::new(),
    };
    for (kind, class, [one, many], severity) in KINDS {
        // What lies beside the store has a finding of its own.
        let items: Vec<&DebtItem> = debt.iter().filter(|item| item.kind == kind && !is_beside(item)).collect();
        let Some(first) = items.first() else { continue };
        let noun = if items.len() == 1 { one } else { many };
        let text = format!("{} {noun}: {}", items.len(), first.text);
        let finding = Finding::told("debt", severity, class, text);
        found.push(finding.step("see each of them with the command that pays it", &["look", "debt"], setting));
    }
    if debt.iter().all(is_beside) {
        found.push(Finding::fine("debt", "no coordination debt"));
    }
    Ok(found)
}

fn is_beside(item: &DebtItem) -> bool {
    item.kind == "decision" && item.about.is_none()
}

/// A question that lies beside the store: the class is in its name.
pub fn beside(note: &Note, setting: &Setting) -> Finding {
    let class = note.class().to_owned();
    let question = note.text.lines().next().filter(|line| !line.is_empty()).unwrap_or(&note.case);
    let text = format!("{question} ({})", note.path.display());
    let finding = Finding::told("question", Severity::Warning, class.as_str(), text);
    let is_the_stores = Code::parse(&class).is_some_and(Code::is_about_the_store);
    if is_the_stores {
        finding.step("see how far its way out holds", &["recover", &class, "--dry-run"], setting)
    } else {
        finding.step("do what it says; then this takes it away, or you do", &["doctor", "--fix"], setting)
    }
}
