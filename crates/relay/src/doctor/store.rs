//! The store's files, the disk that they lie on, and the archive.

use std::path::Path;

use relay_core::domain::event::Number;
use relay_core::domain::name::ProjectKey;
use relay_core::domain::size;
use relay_core::domain::time::{Span, Timestamp};
use relay_core::error::Code;
use relay_core::playbook::{Setting, Step, Who};
use relay_core::store::{Errand, EventQuery, Facts, Result, Store};
use relay_core::verbs::lag::ArchiveShape;
use relay_core::wire::v1::SignalCode;
use relay_store::sqlite::Sqlite;
use relay_store::{Home, fitness};

use super::{Finding, Severity};

/// Beyond this a log is not folded by itself: somebody keeps an old view of the store open.
const LOG_MUCH: u64 = 64 * 1024 * 1024;
/// Less room than this is little.
const ROOM_LITTLE: u64 = 256 * 1024 * 1024;
const ROOM_NONE: u64 = 1024 * 1024;
/// How long a look at the gate waits for its turn.
const GATE_PATIENCE: Span = Span::seconds(2);
/// Over so many events the growth is told.
const RECENT: Number = 1_000;

/// One of several, at a glance: whether it opens and its end is sound. A look from inside it says more.
pub fn of_a_project(home: &Home, key: &ProjectKey) -> Finding {
    let setting = Setting { project: Some(key.to_string()), ..Setting::default() };
    let looked = home.open_existing(key).and_then(|store| store.map(|store| store.check_chain_tip()).transpose());
    match looked {
        Ok(Some(())) => Finding::fine("project", format!("the store of {key} opens")),
        Ok(None) => Finding::nobody("project", format!("the store of {key} was never begun"), &setting),
        Err(refusal) => Finding::refused("project", Severity::Error, &refusal, &setting),
    }
}

/// Before it is opened: opening mends some of it.
pub fn of_the_files(folder: &Path, setting: &Setting) -> Vec<Finding> {
    let mut found = Vec::new();
    let open = fitness::open_to_others(folder);
    found.push(match open.first() {
        None => Finding::fine("permissions", "nobody else can read the store"),
        Some(first) => {
            let more = if open.len() > 1 { format!(" and {} more", open.len() - 1) } else { String::new() };
            open_to_others("permissions", format!("others can read {}{more}", first.display()), setting)
        }
    });
    found.push(disk(folder, setting));
    let left = fitness::leftovers(folder).into_iter().next().map(|path| (SignalCode::Recovered, "leftovers", path));
    let locks = fitness::stale_locks(folder).into_iter().map(|path| (SignalCode::ArchiveLags, "locks", path));
    for (class, check, path) in left.into_iter().chain(locks) {
        let text = format!("a process died at its work; nothing is lost, and it left {}", path.display());
        let finding = Finding::told(check, Severity::Note, class.as_str(), text);
        found.push(finding.step("a drain takes it away", &["drain", "--wait"], setting));
    }
    if folder.join("unsynced").exists() {
        let text = format!("the disk of {} once failed to take what was written", folder.display());
        let refusal = Code::StoreIo.refuse(text).with("path", folder.to_string_lossy());
        found.push(Finding::refused("disk", Severity::Warning, &refusal, setting));
    }
    found
}

/// It is still its owner's own, but not alone.
pub fn open_to_others(check: &'static str, text: String, setting: &Setting) -> Finding {
    let finding = Finding::told(check, Severity::Warning, Code::StoreForeign.to_string(), text);
    finding.step("close it to others", &["doctor", "--fix"], setting)
}

fn disk(folder: &Path, setting: &Setting) -> Finding {
    let Some((free, total)) = fitness::room(folder) else {
        let refusal = Code::StoreIo.refuse("how much room the disk has cannot be said");
        return Finding::refused("room", Severity::Note, &refusal.with("path", folder.to_string_lossy()), setting);
    };
    let text = format!("{} of {} are free on the disk of the store", size::told(free), size::told(total));
    if free >= ROOM_LITTLE {
        return Finding::fine("room", text);
    }
    let severity = if free < ROOM_NONE { Severity::Error } else { Severity::Warning };
    let refusal = Code::StoreFull.refuse(text).with("path", folder.to_string_lossy());
    Finding::refused("room", severity, &refusal, setting)
}

/// With the store open.
pub fn of_the_store(store: &Sqlite, folder: &Path, now: Timestamp, setting: &Setting) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut ask = |check: &'static str, severity: Severity, asked: Result<Vec<Finding>>| match asked {
        Ok(findings) => found.extend(findings),
        Err(refusal) => found.push(Finding::refused(check, severity, &refusal, setting)),
    };
    ask("store", Severity::Error, health(store, folder, setting));
    let chain = store.check_chain_tip();
    ask("chain", Severity::Error, chain.map(|()| vec![Finding::fine("chain", "its end is as it was written")]));
    let gate = gate(store);
    // Whoever waits for long is busy; whoever cannot write at all is not.
    let is_busy = gate.as_ref().is_err_and(|refusal| refusal.code == Code::StoreBusy);
    ask("gate", if is_busy { Severity::Warning } else { Severity::Error }, gate);
    ask("clock", Severity::Error, clock(store, now));
    ask("archive", Severity::Error, archive(store, now, setting));
    ask("growth", Severity::Error, growth(store, folder));
    found
}

fn health(store: &Sqlite, folder: &Path, setting: &Setting) -> Result<Vec<Finding>> {
    let health = store.health()?;
    let text = format!(
        "{} is whole: {} events in {}, SQLite {}",
        folder.display(),
        health.events,
        size::told(health.bytes),
        health.sqlite
    );
    let log = format!("{} of log wait to be folded into the store", size::told(health.log_bytes));
    let much = health.log_bytes > LOG_MUCH;
    let log = if much { format!("{log}; somebody keeps an old view of it open") } else { log };
    let log = if much {
        let finding = Finding::told("log", Severity::Warning, Code::StoreBusy.to_string(), log);
        finding.step("once that one is gone, a drain folds it", &["drain", "--wait"], setting)
    } else {
        Finding::fine("log", log)
    };
    Ok(vec![Finding::fine("store", text), log])
}

/// Takes a turn and gives it back: whoever holds the gate for long is named.
fn gate(store: &Sqlite) -> Result<Vec<Finding>> {
    let errand = Errand { verb: "doctor", agent: "", wait: GATE_PATIENCE, durable: false };
    store.begin(errand).map(drop)?;
    Ok(vec![Finding::fine("gate", "the gate is free")])
}

fn clock(store: &Sqlite, now: Timestamp) -> Result<Vec<Finding>> {
    let tip = store.read()?.tip()?;
    let ahead = tip.at.filter(|at| !at.is_believable(now));
    Ok(ahead
        .map(|at| {
            let text = format!("event #{} is dated {at}, ahead of this clock", tip.number);
            let why = "a person sets the clock; nothing is lost, since order comes from the numbers";
            let step = Step { step: 1, why: why.to_owned(), who: Some(Who::Person), ..Step::default() };
            let finding = Finding::told("clock", Severity::Warning, SignalCode::ClockJumped.as_str(), text);
            Finding { playbook: vec![step], ..finding }
        })
        .into_iter()
        .collect())
}

fn archive(store: &Sqlite, now: Timestamp, setting: &Setting) -> Result<Vec<Finding>> {
    let facts = store.read()?;
    store.archived()?;
    let archive = ArchiveShape::of(store, &*facts)?;
    Ok(vec![match archive.signal(&*facts, now)? {
        None => Finding::fine("archive", format!("the git archive is at #{}", archive.number)),
        Some(signal) => {
            let refusal = Code::ArchiveBehind.refuse(signal.text).with("archived", archive.number);
            Finding::refused("archive", Severity::Warning, &refusal, setting)
        }
    }])
}

fn growth(store: &Sqlite, folder: &Path) -> Result<Vec<Finding>> {
    let facts = store.read()?;
    let tip = facts.tip()?.number;
    let store_bytes = std::fs::metadata(folder.join("relay.db")).map_or(0, |file| file.len());
    let archive_bytes = fitness::bytes_under(&folder.join("archive.git"));
    let per_event = store_bytes.checked_div(tip).unwrap_or(0);
    let pace = pace(&*facts, tip)?.map(|pace| format!(", lately {pace} a day")).unwrap_or_default();
    let text = format!(
        "{tip} events{pace}, {} each in the store; the archive has {}",
        size::told(per_event),
        size::told(archive_bytes)
    );
    Ok(vec![Finding::fine("growth", text)])
}

/// How many events a day there were lately.
fn pace(facts: &dyn Facts, tip: Number) -> Result<Option<u64>> {
    let events = facts.events(&EventQuery::between(tip.saturating_sub(RECENT), tip))?;
    let (Some(first), Some(last)) = (events.first(), events.last()) else { return Ok(None) };
    let millis = u64::try_from(last.payload.at.since(first.payload.at).as_millis()).unwrap_or(0);
    let pace = (events.len() as u64).saturating_mul(86_400_000).checked_div(millis);
    // Over a shorter time it says nothing about a day.
    Ok(pace.filter(|_| millis > 3_600_000))
}
