//! The play: three agents meet over one login, and in the second act two coding agents over one file. Each step is a command, what its answer must hold, and a line from it.

use std::path::PathBuf;

use relay_core::domain::plain::escape_line;
use relay_core::error::Code;
use relay_core::store::Result;
use serde_json::Value;

use super::reply::Reply;
use super::second;
use super::stage::Stage;

const BLUE: &str = "BlueLake";
const RED: &str = "RedForest";
const GOLD: &str = "GoldOwl";
const THREAD: &str = "login-42";

/// Where everybody works: RedForest in the linked worktree.
struct Desks {
    blue: PathBuf,
    red: PathBuf,
    gold: PathBuf,
}

pub(super) fn play(stage: &mut Stage) -> Result<()> {
    let desks =
        Desks { blue: stage.main_worktree(), red: stage.linked_worktree(), gold: stage.main_worktree().join("docs") };
    everybody_starts(stage, &desks)?;
    for scene in
        [two_want_the_same_file, they_talk, first_contact, consent_is_asked_for, a_block_holds, all_is_given_back]
    {
        stage.pause();
        scene(stage, &desks)?;
        drain(stage, &desks)?;
    }
    stage.pause();
    second::play(stage)?;
    stage.pause();
    all_is_in_git(stage, &desks)
}

/// The archive follows; here after every scene, elsewhere when a moment has passed.
fn drain(stage: &Stage, desks: &Desks) -> Result<Reply> {
    let reply = stage.run(BLUE, &desks.blue, &["drain", "--wait"])?.success()?;
    let durable = reply.value("/result/durable_up_to")?.clone();
    reply.expect("/result/archive/number", durable)
}

/// Narrates a step in one line.
fn tell(stage: &mut Stage, reply: Reply, template: &str) -> Result<Reply> {
    let line = reply.fill(template)?;
    stage.tell(&reply, &[line]);
    Ok(reply)
}

fn everybody_starts(stage: &mut Stage, desks: &Desks) -> Result<()> {
    let key = std::fs::canonicalize(&desks.blue).unwrap_or_else(|_| desks.blue.clone());
    let key = key.to_string_lossy().into_owned();
    let cast = [
        (
            BLUE,
            &desks.blue,
            "Rewrite the login",
            "{/result/agent/name} is registered: {/result/agent/task}. The bus is {/result/project/key}",
        ),
        (
            RED,
            &desks.red,
            "Expire sessions",
            "{/result/agent/name} stands in a linked worktree and is on the same bus, {/result/project/key}",
        ),
        (
            GOLD,
            &desks.gold,
            "Document the API",
            "{/result/agent/name} is the third, with {/result/inbox/unread} unread messages",
        ),
    ];
    for (agent, folder, task, line) in cast {
        let reply = stage.run(agent, folder, &["start", "--task", task])?.success()?;
        let reply = reply.expect("/result/agent/name", agent)?.expect("/result/project/key", key.as_str())?;
        let reply = reply.expect("/result/new", true)?.expect("/result/agent/task", task)?;
        tell(stage, reply.expect("/result/inbox/unread", 0)?, line)?;
    }
    let reply = stage.run(BLUE, &desks.blue, &["prepare", "--thread", THREAD])?.success()?;
    let reply = reply.expect("/result/thread/id", THREAD)?.expect("/result/participants/0", BLUE)?;
    tell(stage, reply, "opened thread {/result/thread/id}; in it: {/result/participants}")?;
    Ok(())
}

fn two_want_the_same_file(stage: &mut Stage, desks: &Desks) -> Result<()> {
    let reply = stage.run(BLUE, &desks.blue, &["reserve", "src/auth/**", "--reason", THREAD])?.success()?;
    let reply = reply.expect("/result/granted/0/pattern", "src/auth/**")?.expect("/result/conflicts_total", 0)?;
    let line = "granted #{/result/granted/0/id} {/result/granted/0/pattern}, {/result/conflicts_total} conflicts";
    let blues = tell(stage, reply, line)?.value("/result/granted/0/id")?.clone();
    let reply = stage.run(RED, &desks.red, &["reserve", "src/auth/session.rs"])?.success()?;
    let reply = reply.expect("/result/granted/0/pattern", "src/auth/session.rs")?;
    let reply = reply.expect("/result/conflicts/0/id", blues)?.expect("/result/conflicts/0/holder", BLUE)?;
    let reply = reply.expect("/result/conflicts/0/example", "src/auth/session.rs")?;
    let line = "granted #{/result/granted/0/id} all the same, a claim is no lock, with {/result/conflicts_total} conflict: \
        {/result/conflicts/0/holder} holds {/result/conflicts/0/pattern}, and both match {/result/conflicts/0/example}";
    let reds = tell(stage, reply, line)?.value("/result/granted/0/id")?.clone();
    let reply = stage.run(BLUE, &desks.blue, &["poll"])?.success()?;
    let reply = reply.expect("/result/contested/0/id", reds)?.expect("/result/contested/0/holder", RED)?;
    tell(stage, reply, "is told, once: {/result/contested/0/holder} claims {/result/contested/0/overlaps} too")?;
    Ok(())
}

fn they_talk(stage: &mut Stage, desks: &Desks) -> Result<()> {
    let waiting = stage.start_waiting(BLUE, &desks.blue, &["poll", "--wait", "60s", "--bodies"])?;
    let send = ["send", "--to", BLUE, "--thread", THREAD, "--subject", "Login: sessions expire", "--body"];
    let send = [&send[..], &["I need ten minutes in session.rs.", "--ack-required"]].concat();
    let reply = stage.run(RED, &desks.red, &send)?.success()?;
    let reply = reply.expect("/result/message/recipients/0/name", BLUE)?.expect("/result/message/thread", THREAD)?;
    let line = "sent #{/result/message/id} into {/result/message/thread}: {/result/message/recipients/0/state} for \
        {/result/message/recipients/0/name}";
    let id = tell(stage, reply, line)?.value("/result/message/id")?.clone();
    let woken = stage.woken(waiting)?.success()?.expect("/result/messages/0/id", id.clone())?;
    let woken = woken.expect("/result/messages/0/from", RED)?.expect("/result/messages/0/ack_required", true)?;
    let line = "had been waiting, and wakes up with #{/result/messages/0/id} from {/result/messages/0/from}: \
        \"{/result/messages/0/body}\"";
    tell(stage, woken, line)?;
    let number = id.to_string();
    let reply = stage.run(BLUE, &desks.blue, &["ack", &number])?.success()?.expect("/result/acks/0/id", id.clone())?;
    let reply = reply.expect("/result/acks/0/first", true)?;
    let at = tell(stage, reply, "read and acknowledged #{/result/acks/0/id} at {/result/acks/0/acked_at}")?;
    let at = at.value("/result/acks/0/acked_at")?.clone();
    let reply = stage.run(RED, &desks.red, &["look", "message", &number])?.success()?;
    let reply = reply.expect("/result/message/id", id)?.expect("/result/message/recipients/0/acked_at", at)?;
    let line = "the sender sees it: {/result/message/recipients/0/name} {/result/message/recipients/0/state} \
        #{/result/message/id}";
    tell(stage, reply, line)?;
    Ok(())
}

fn first_contact(stage: &mut Stage, desks: &Desks) -> Result<()> {
    let send = [
        "send",
        "--to",
        RED,
        "--thread",
        "docs-7",
        "--subject",
        "How long is a session?",
        "--body",
        "For the API page.",
    ];
    let reply = stage.run(GOLD, &desks.gold, &send)?.success()?;
    let reply = reply.expect("/signals/0/code", "RECOVERED")?.expect("/result/message/recipients/0/name", RED)?;
    let line = "first contact just works, #{/result/message/id} is there; {/signals/0/code}: {/signals/0/text}";
    let id = tell(stage, reply, line)?.value("/result/message/id")?.clone();
    let reply = stage.run(RED, &desks.red, &["poll", "--read"])?.success()?.expect("/result/messages/0/id", id)?;
    tell(stage, reply, "reads #{/result/messages/0/id} from {/result/messages/0/from}: {/result/messages/0/subject}")?;
    Ok(())
}

/// A recipient that wants to be asked: the error's own steps lead to the delivery.
fn consent_is_asked_for(stage: &mut Stage, desks: &Desks) -> Result<()> {
    let reply = stage.run(GOLD, &desks.gold, &["policy", "contacts_only"])?.success()?;
    let reply = reply.expect("/result/policy", "contacts_only")?;
    tell(stage, reply, "from now on takes mail by policy {/result/policy}")?;
    let send = ["send", "--to", GOLD, "--thread", THREAD, "--subject", "Login: new API", "--body", "See src/auth."];
    let refused = stage.run(BLUE, &desks.blue, &send)?.fails(Code::ContactRequired)?;
    tell_refusal(stage, &refused)?;
    let [ask, wait, retry] = printed(&refused)?.try_into().map_err(|steps: Vec<_>| {
        Code::Internal.refuse(format!("CONTACT_REQUIRED has {} steps that can be run, not 3", steps.len()))
    })?;
    let reply = stage.run_printed(BLUE, ask)?.success()?.expect("/result/link/state", "requested")?;
    let link = tell(stage, reply, "step 1, as printed: link #{/result/link/id} is {/result/link/state}")?;
    let link = link.value("/result/link/id")?.clone();
    let reply = stage.run(GOLD, &desks.gold, &["link", "--target", BLUE, "--accept"])?.success()?;
    let reply = reply.expect("/result/link/id", link.clone())?.expect("/result/link/state", "accepted")?;
    tell(stage, reply, "decides: link #{/result/link/id} is {/result/link/state}")?;
    let reply = stage.run_printed(BLUE, wait)?.success()?.expect("/result/link/id", link)?;
    let reply = reply.expect("/result/link/state", "accepted")?;
    tell(stage, reply, "step 2: the answer is there, {/result/link/state}")?;
    let reply = stage.run_printed(BLUE, retry)?.success()?;
    let reply = reply.expect("/result/retried/result/message/recipients/0/name", GOLD)?;
    let line = "step 3: the same {/result/retried/verb} again, and #{/result/retried/result/message/id} is \
        {/result/retried/result/message/recipients/0/state} for {/result/retried/result/message/recipients/0/name}";
    tell(stage, reply, line)?;
    Ok(())
}

/// A block beats every link; what is left is to reroute or to escalate.
fn a_block_holds(stage: &mut Stage, desks: &Desks) -> Result<()> {
    let reply = stage.run(GOLD, &desks.gold, &["link", "--target", RED, "--block"])?.success()?;
    let reply = reply.expect("/result/link/state", "blocked")?;
    tell(stage, reply, "link #{/result/link/id} is {/result/link/state}")?;
    let send = ["send", "--to", GOLD, "--thread", "docs-7", "--subject", "Session length", "--body", "Ten minutes."];
    let refused = stage.run(RED, &desks.red, &send)?.fails(Code::ContactBlocked)?;
    tell_refusal(stage, &refused)?;
    let first = printed(&refused)?.into_iter().next();
    let first = first.ok_or_else(|| Code::Internal.refuse("CONTACT_BLOCKED has no step that can be run"))?;
    let reply = stage.run_printed(RED, first)?.success()?.expect("/result/message/recipients/0/name", "human")?;
    tell(stage, reply, "step 1, as printed: #{/result/message/id} waits for the {/result/message/recipients/0/name}")?;
    Ok(())
}

fn all_is_given_back(stage: &mut Stage, desks: &Desks) -> Result<()> {
    let reply = stage.run(RED, &desks.red, &["release", "--all"])?.success()?;
    let reply = reply.expect("/result/released/0/pattern", "src/auth/session.rs")?;
    tell(stage, reply, "gave back #{/result/released/0/id} {/result/released/0/pattern}")?;
    let reply = stage.run(BLUE, &desks.blue, &["release", "--reason", THREAD, "--done"])?.success()?;
    let reply = reply.expect("/result/released/0/pattern", "src/auth/**")?;
    let reply = reply.expect("/result/thread_done", THREAD)?;
    let line = "gave back #{/result/released/0/id} {/result/released/0/pattern}; {/result/thread_done} is done";
    tell(stage, reply, line)?;
    let reply = stage.run(GOLD, &desks.gold, &["look", "reservations"])?.success()?.expect("/result/total", 0)?;
    tell(stage, reply, "{/result/total} claims are left")?;
    let reply = stage.run(GOLD, &desks.gold, &["log", "--limit", "8"])?.success()?;
    let newest = reply.list("/result/events")?.first().and_then(|event| event["number"].as_u64());
    let reply = reply.expect("/result/cursor", newest)?;
    let mut lines = vec![reply.fill("{/result/cursor} events are on record; the newest of them:")?];
    lines.extend(reply.fill_each("/result/events", "#{/number} {/actor} {/text}")?);
    stage.tell(&reply, &lines);
    Ok(())
}

/// The end is in git: a plain clone shows who did what, and every message as a file.
fn all_is_in_git(stage: &mut Stage, desks: &Desks) -> Result<()> {
    let reply = drain(stage, desks)?;
    let archive = reply.value("/result/archive/path")?.as_str().unwrap_or_default().to_owned();
    let line = "all {/result/archive/number} events are in git as well, in {/result/archive/path}; cloned:";
    tell(stage, reply, line)?;
    stage.clone_archive(&archive)?;
    let log = stage.run_git(&["log", "--oneline", "--no-decorate"])?;
    tell_output(stage, &log)?;
    let found = stage.run_git(&["grep", "--files-with-matches", "I need ten minutes", "--", "threads"])?;
    let path = found.value("/output/0")?.as_str().unwrap_or_default().to_owned();
    let letter = stage.run_git(&["show", &format!("HEAD:{path}")])?;
    tell_output(stage, &letter)
}

/// What git said, line by line.
fn tell_output(stage: &mut Stage, reply: &Reply) -> Result<()> {
    let lines =
        reply.list("/output")?.iter().map(|line| escape_line(line.as_str().unwrap_or_default())).collect::<Vec<_>>();
    stage.tell(reply, &lines);
    Ok(())
}

fn tell_refusal(stage: &mut Stage, refused: &Reply) -> Result<()> {
    let mut lines = vec![refused.fill("{/error/code}: {/error/message}. The way out:")?];
    let steps = refused.fill_each("/error/playbook", "{/step}. {/why}")?;
    for (line, step) in steps.into_iter().zip(refused.list("/error/playbook")?) {
        lines.push(format!("  {line}"));
        if has_command(step) {
            let number = step["step"].as_u64().unwrap_or_default().saturating_sub(1);
            lines.push(refused.fill(&format!("     {{/error/playbook/{number}/run}}"))?);
        }
    }
    stage.tell(refused, &lines);
    Ok(())
}

fn has_command(step: &Value) -> bool {
    step["run"].as_array().is_some_and(|run| !run.is_empty())
}

/// The steps that can be run, as they were printed.
fn printed(refused: &Reply) -> Result<Vec<Vec<String>>> {
    let steps = refused.list("/error/playbook")?;
    let runnable = steps.iter().enumerate().filter(|(_, step)| has_command(step));
    runnable.map(|(index, _)| refused.command(&format!("/error/playbook/{index}/run"))).collect()
}
