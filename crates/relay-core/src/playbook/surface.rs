//! The commands that a playbook may name, with their arguments by their long names with `_`. The build reads this table, and
//! a test of the binary holds it to what the command line takes.

/// A command's own arguments; those that every command takes are added.
pub const COMMANDS: [(&str, &[&str]); 12] = [
    ("start", &["program", "model", "task", "session", "take_over", "path"]),
    ("prepare", &["thread", "limit", "program", "model", "task", "session", "take_over", "path"]),
    ("reserve", &["patterns", "ttl", "shared", "reason", "if_free", "wait"]),
    ("release", &["patterns", "id", "reason", "done", "all", "keep", "renew", "force", "why"]),
    ("link", &["target", "why", "ttl", "accept", "block", "revoke", "list", "wait", "id"]),
    (
        "send",
        &[
            "to",
            "cc",
            "bcc",
            "subject",
            "body",
            "body_file",
            "thread",
            "reply_to",
            "importance",
            "ack_required",
            "ack_within",
            "hold",
            "no_recover",
        ],
    ),
    ("poll", &["limit", "after", "thread", "urgent", "from", "all", "bodies", "read", "wait"]),
    ("ack", &["ids", "read"]),
    ("recover", &["code", "set", "yes", "dry_run", "retry", "escalate"]),
    ("drain", &["wait"]),
    ("rebuild", &["what", "from_archive", "from_backup", "lose_after"]),
    ("token", &["what"]),
];

/// What every command takes and a step may say.
pub const COMMON: [&str; 3] = ["project", "agent", "idempotency_key"];

/// The arguments of a command, or none where there is no such command.
pub fn takes(command: &str) -> Option<Vec<String>> {
    let (_, own) = COMMANDS.iter().find(|(name, _)| *name == command)?;
    Some(own.iter().chain(&COMMON).map(|name| (*name).to_owned()).collect())
}
