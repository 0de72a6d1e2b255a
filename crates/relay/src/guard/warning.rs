//! What a person or an agent reads when a commit meets the claims of others.

use std::fmt::Write;
use std::path::Path;

use owo_colors::OwoColorize;
use relay_core::domain::event::Number;
use relay_core::domain::plain::escape_line;
use relay_core::domain::shell;
use relay_core::domain::time::Timestamp;
use relay_core::verbs::check;
use relay_core::wire::v1::ConflictShape;

use super::Hook;
use crate::config::Mode;
use crate::render;

/// How many claims, and paths of each, are named.
const CLAIMS: usize = 10;
const PATHS: usize = 5;

/// One claim, and the paths that go into it.
struct Met<'a> {
    claim: &'a ConflictShape,
    paths: Vec<&'a str>,
}

fn claims(met: &[ConflictShape]) -> Vec<Met<'_>> {
    let mut claims: Vec<(Number, Met<'_>)> = Vec::new();
    for claim in met {
        match claims.iter_mut().find(|(id, _)| *id == claim.id) {
            Some((_, known)) => known.paths.push(&claim.example),
            None => claims.push((claim.id, Met { claim, paths: vec![&claim.example] })),
        }
    }
    claims.into_iter().map(|(_, met)| met).collect()
}

pub fn warning(hook: Hook, mode: Mode, met: &check::Outcome, home: &Path, now: Timestamp) -> String {
    let deed = match hook {
        Hook::PreCommit => "commit",
        Hook::PrePush => "push",
    };
    let mut text = format!("{} what you are about to {deed} is claimed by others\n", "relay:".yellow().bold());
    let claims = claims(&met.inside);
    for met in claims.iter().take(CLAIMS) {
        text.push_str(&told(met, now));
    }
    let shown: usize = claims.iter().take(CLAIMS).map(|met| met.paths.len()).sum();
    if met.inside_total > shown {
        let _ = writeln!(text, "  … and {} more", met.inside_total - shown);
    }
    if met.agent.is_none() {
        text.push_str("No agent is known here (RELAY_AGENT, or a session), so every live claim counts as another's.\n");
    }
    text.push_str("To coordinate:\n");
    for command in next(met) {
        let _ = writeln!(text, "  {}", command.cyan());
    }
    text.push_str(&verdict(deed, mode, home));
    text
}

fn told(met: &Met<'_>, now: Timestamp) -> String {
    let claim = met.claim;
    let reason = claim.reason.as_ref().map(|reason| format!(" for {reason}")).unwrap_or_default();
    let mut paths: Vec<String> = met.paths.iter().take(PATHS).map(|path| escape_line(path)).collect();
    if met.paths.len() > PATHS {
        paths.push(format!("and {} more", met.paths.len() - PATHS));
    }
    format!(
        "  {} holds {} (#{}){reason} until {} ({}): {}\n",
        claim.holder.bold(),
        escape_line(&claim.pattern).bold(),
        claim.id,
        claim.expires_at,
        render::relative(claim.expires_at, now),
        paths.join(", ")
    )
}

/// The commands to coordinate with each holder.
pub fn next(met: &check::Outcome) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut holders: Vec<&str> = Vec::new();
    for Met { claim, paths } in claims(&met.inside).iter().take(CLAIMS) {
        if holders.contains(&claim.holder.as_str()) {
            continue;
        }
        holders.push(&claim.holder);
        let thread = claim.reason.as_deref().unwrap_or("NEW_THREAD");
        let mut line: Vec<String> =
            ["relay", "send", "--to", &claim.holder, "--thread", thread].map(str::to_owned).into();
        line.extend(shell::flag("--subject", &subject(paths[0], claim.id)));
        line.extend(["--body", "-"].map(str::to_owned));
        if met.agent.is_none() {
            line.extend(["--agent", "human"].map(str::to_owned));
        }
        lines.push(shell::line(&line));
    }
    if let (Some(_), Some(first)) = (&met.agent, met.inside.first()) {
        let pattern =
            if first.overlaps.starts_with('-') { format!("./{}", first.overlaps) } else { first.overlaps.clone() };
        lines.push(shell::line(&["relay", "reserve", &pattern, "--if-free", "--wait", "10m"]));
    }
    lines
}

/// What two have to talk about: the path, unless no subject takes it.
fn subject(path: &str, id: Number) -> String {
    let fits = path.chars().count() <= 150 && !path.chars().any(char::is_control);
    if fits { format!("{path}: both of us") } else { format!("#{id}: both of us") }
}

fn verdict(deed: &str, mode: Mode, home: &Path) -> String {
    let file = home.join("config.toml");
    match mode {
        Mode::Warn => format!(
            "relay warns; it does not block, and this {deed} goes on. `[guard] mode = \"block\"` in {} blocks.\n",
            file.display()
        ),
        Mode::Block => format!(
            "relay blocks this {deed}. Ask the holder to release, or wait until the claim ends; `git {deed} --no-verify` goes past \
             relay, and `[guard] mode = \"warn\"` in {} only warns.\n",
            file.display()
        ),
    }
}
