//! What an event says, as half a sentence after its actor's name. It holds names, numbers and patterns, never a free text:
//! those can be erased, and this is written down where erasing is hard.

use super::delivery::Line;
use super::event::{Happened, Number, Recipient};
use super::plain::escape_line;

pub fn tell(what: &Happened) -> String {
    match what {
        Happened::ProjectOpened { path, .. } => format!("opened the project {}", escape_line(path.as_str())),
        Happened::ProjectMoved { to, .. } => format!("moved the project to {}", escape_line(to.as_str())),
        Happened::OtherProjectMoved { from, to } => {
            format!("learned that {} moved to {}", escape_line(from.as_str()), escape_line(to.as_str()))
        }
        Happened::AgentRegistered { .. } => "registered".to_owned(),
        Happened::AgentResumed { .. } => "resumed".to_owned(),
        Happened::AgentSuspended { agent } => format!("suspended {agent}"),
        Happened::AgentReinstated { agent } => format!("let {agent} act again"),
        Happened::AgentRetired { agent } => format!("retired {agent}"),
        Happened::PolicySet { policy, .. } => format!("chose policy {}", policy.as_str()),
        Happened::ThreadPrepared { thread, .. } => format!("joined {thread}"),
        Happened::ThreadLeft { thread, .. } => format!("left {thread}"),
        Happened::ThreadClosed { thread, .. } => format!("closed {thread}"),
        Happened::MessageSent { thread, recipients, .. } => format!("wrote{} in {thread}", names(recipients)),
        Happened::MessageRedacted { message, .. } => format!("erased the texts of #{message}"),
        Happened::HeldLapsed { message, recipient, .. } => format!("gave up delivering #{message} to {recipient}"),
        Happened::MailSurfaced { messages, .. } if messages.is_empty() => "was told of contested claims".to_owned(),
        Happened::MailSurfaced { messages, .. } => format!("was shown {}", numbers(messages)),
        Happened::MailRead { messages, .. } => format!("read {}", numbers(messages)),
        Happened::MailAcked { messages, .. } => format!("acknowledged {}", numbers(messages)),
        Happened::ReservationGranted { pattern, exclusive, reason, expires_at, conflicts, .. } => {
            let reason = reason.as_ref().map(|thread| format!(" for {thread}")).unwrap_or_default();
            let mode = if *exclusive { "" } else { ", shared," };
            let against =
                if conflicts.is_empty() { String::new() } else { format!(", against {}", numbers(conflicts)) };
            format!("reserved {}{reason}{mode} until {}{against}", escape_line(pattern), expires_at.to_the_second())
        }
        Happened::ReservationRenewed { claims, .. } => {
            format!("renewed {}", numbers(&claims.iter().map(|claim| claim.id).collect::<Vec<_>>()))
        }
        Happened::ReservationReleased { claims, .. } => format!("released {}", numbers(claims)),
        Happened::ReservationTaken { id, from, .. } => format!("took #{id} over from {from}"),
        Happened::LinkRequested { to, .. } => format!("asked {to} for contact"),
        Happened::LinkAccepted { link, by, by_policy: true, .. } => {
            format!("came into contact #{link} by {by}'s policy")
        }
        Happened::LinkAccepted { link, .. } => format!("accepted contact #{link}"),
        Happened::LinkBlocked { other, .. } => format!("blocked {other}"),
        Happened::LinkRevoked { link, .. } => format!("revoked contact #{link}"),
    }
}

fn numbers(numbers: &[Number]) -> String {
    numbers.iter().map(|number| format!("#{number}")).collect::<Vec<_>>().join(" ")
}

/// Blind recipients are left out: whoever reads a sentence may not be one of them.
fn names(recipients: &[Recipient]) -> String {
    let seen = recipients.iter().filter(|recipient| recipient.line != Line::Bcc);
    let names: Vec<String> = seen.map(|recipient| recipient.party.to_string()).collect();
    if names.is_empty() { String::new() } else { format!(" to {}", names.join(", ")) }
}
