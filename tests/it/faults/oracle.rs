//! The oracle: given a store and what was acknowledged, says everything that is not as it was promised.
//!
//! It compares by identity and never by counts. What was acknowledged it looks for in the files: rows are read with SQLite,
//! commits with git, and payloads and texts out of a clone by a reader of its own, `letters`. What relay itself says comes on
//! top: `verify` has to find nothing, and every file of the archive has to be, byte for byte, what relay would write now.
//! The oracle is itself tested, in `doctored`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use relay_core::archive::{Entry, Erased, KeptText};
use relay_core::domain::event::{hex, text_hash};
use relay_core::error::Code;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};
use serde_json::{Value, json};

use super::letters::{self, Files, Told};

/// One operation that relay said was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    pub verb: String,
    pub agent: String,
    pub key: String,
    /// The number of the message or the claim that it concerns, or of the event that erased something.
    pub id: u64,
    /// The digest of what was sent, the pattern that was claimed, the message that was erased, or that somebody had
    /// acknowledged it before.
    pub what: String,
}

impl Done {
    /// What an answer acknowledges; `what` is the body or the pattern.
    pub fn new(agent: &str, key: &str, what: &str, answer: &Value) -> Done {
        let verb = answer["verb"].as_str().unwrap().to_owned();
        let result = &answer["result"];
        let (id, what) = match verb.as_str() {
            "send" => (&result["message"]["id"], digest(what)),
            // Only the first acknowledgement of a message is an event.
            "ack" if result["acks"][0]["first"] == false => (&result["acks"][0]["id"], "again".to_owned()),
            "ack" => (&result["acks"][0]["id"], String::new()),
            "reserve" => (&result["granted"][0]["id"], what.to_owned()),
            "redact" => (&result["redaction"], result["message"].to_string()),
            other => panic!("{other} acknowledges nothing: {answer}"),
        };
        let id = id.as_u64().unwrap_or_else(|| panic!("no id: {answer}"));
        Done { verb, agent: agent.to_owned(), key: key.to_owned(), id, what }
    }

    fn line(&self) -> String {
        let fields = [&self.verb, &self.agent, &self.key, &self.id.to_string(), &self.what];
        format!("{}\n", json!(fields))
    }

    fn read(line: &str) -> Done {
        let [verb, agent, key, id, what] =
            serde_json::from_str::<[String; 5]>(line).unwrap_or_else(|fault| panic!("{fault}: {line}"));
        Done { verb, agent, key, id: id.parse().unwrap(), what }
    }
}

pub fn digest(text: &str) -> String {
    text_hash(&[], text).0
}

/// The list of what was acknowledged, appended to by many at once: one `write` a line, so that lines do not mix.
pub struct Ledger {
    path: PathBuf,
    file: File,
}

impl Ledger {
    pub fn at(path: PathBuf) -> Self {
        let file = OpenOptions::new().create(true).append(true).open(&path).unwrap();
        Ledger { path, file }
    }

    pub fn note(&self, done: &Done) {
        let line = done.line();
        let written = (&self.file).write(line.as_bytes()).unwrap();
        assert_eq!(written, line.len(), "half a line in the ledger");
    }

    pub fn read(&self) -> Vec<Done> {
        std::fs::read_to_string(&self.path).unwrap().lines().map(Done::read).collect()
    }
}

/// How far the archive has to have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Archive {
    /// The power went while it was written: nobody has looked after it yet, but it leads in no case.
    Torn,
    /// It may lag, and what a dead process left may lie about.
    MayLag,
    /// It has everything, and nothing lies about.
    Complete,
}

/// Everything that is wrong; empty when nothing is.
pub fn findings(folder: &Path, acknowledged: &[Done], archive: Archive) -> Vec<String> {
    let mut findings = match store(folder, acknowledged) {
        Ok(findings) => findings,
        Err(fault) => return vec![format!("the store cannot be read: {fault}")],
    };
    match relay_store::verify::verify(folder, |_, _, _| {}) {
        Ok(report) => {
            let code = report.refusal(folder).map(|refusal| refusal.code);
            let told = report.findings.told().map(|finding| format!("verify: {}: {}", finding.place, finding.what));
            // What the power left of the archive is looked at below.
            findings.extend(told.filter(|_| archive != Archive::Torn || code == Some(Code::StoreDamaged)));
        }
        Err(fault) => findings.push(format!("the store cannot be verified: {fault}")),
    }
    if let Err(fault) = compare_archive(folder, archive, &mut findings) {
        findings.push(format!("the archive: {fault}"));
    }
    findings
}

#[track_caller]
pub fn assert_whole(folder: &Path, acknowledged: &[Done], archive: Archive, after: &str) {
    let findings = findings(folder, acknowledged, archive);
    assert!(findings.is_empty(), "after {after}, in {}:\n{}", folder.display(), findings.join("\n"));
}

/// None of these words is in a file of the store's folder, nor in an object of a repository there, also where nothing leads
/// to it.
#[track_caller]
pub fn assert_nowhere(folder: &Path, words: &[&str], after: &str) {
    if words.is_empty() {
        return;
    }
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for path in std::fs::read_dir(next).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path.clone());
            }
            let bytes = if path.is_file() {
                std::fs::read(&path).unwrap()
            } else if path.join("objects").exists() {
                git(&path, &["cat-file", "--batch-all-objects", "--batch", "--unordered"]).unwrap().stdout
            } else {
                continue;
            };
            // The search index writes in small letters.
            let bytes = bytes.to_ascii_lowercase();
            for word in words.iter().map(|word| word.to_ascii_lowercase()) {
                let is_there = bytes.windows(word.len()).any(|window| window == word.as_bytes());
                assert!(!is_there, "{word} is still in {}\nafter {after}", path.display());
            }
        }
    }
}

/// A connection that leaves the log as it is when it is closed.
pub fn connect(folder: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
    let connection = Connection::open_with_flags(folder.join("relay.db"), flags)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.busy_timeout(std::time::Duration::from_secs(10))?;
    Ok(connection)
}

/// How many events carry this key.
pub fn events_of(folder: &Path, key: &str) -> u64 {
    let count =
        |store: Connection| store.query_row("SELECT count(*) FROM events WHERE key = ?1", [key], |row| row.get(0));
    connect(folder).and_then(count).unwrap_or_else(|fault| panic!("{}: {fault}", folder.display()))
}

fn store(folder: &Path, acknowledged: &[Done]) -> rusqlite::Result<Vec<String>> {
    let store = connect(folder)?;
    let mut findings = Vec::new();
    let mut check = store.prepare("PRAGMA integrity_check")?;
    let said: Vec<String> = check.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    findings.extend(said.into_iter().filter(|line| line != "ok").map(|line| format!("integrity: {line}")));
    let mut numbers = store.prepare("SELECT number FROM events ORDER BY number")?;
    for (number, expected) in numbers.query_map([], |row| row.get::<_, u64>(0))?.zip(1..) {
        let number = number?;
        if number != expected {
            findings.push(format!("a gap before #{number}: #{expected} is missing"));
            break;
        }
    }
    let twice = "SELECT actor, key, kind, count(*) FROM events WHERE key IS NOT NULL AND
        kind IN ('message_sent', 'mail_acked', 'reservation_granted', 'message_redacted') AND actor != 'relay' GROUP BY 1, 2, 3 HAVING count(*) > 1";
    let mut twice = store.prepare(twice)?;
    let twice = twice.query_map([], |row| {
        Ok(format!(
            "twice: {} of {} with the key {}",
            row.get::<_, String>(2)?,
            row.get::<_, String>(0)?,
            row.get::<_, String>(1)?
        ))
    })?;
    findings.extend(twice.collect::<Result<Vec<_>, _>>()?);
    for done in acknowledged {
        findings.extend(missing(&store, done)?.map(|what| format!("acknowledged and {what}: {done:?}")));
    }
    Ok(findings)
}

/// What is not there of something that was acknowledged.
fn missing(store: &Connection, done: &Done) -> rusqlite::Result<Option<String>> {
    let one = |sql: &str, values: &[&dyn rusqlite::ToSql]| {
        store.prepare_cached(sql)?.query_row(values, |row| row.get::<_, String>(0)).optional()
    };
    if done.verb == "ack" {
        let acked = "SELECT 'acked' FROM deliveries WHERE message = ?1 AND recipient = ?2 AND acked_at IS NOT NULL";
        let told = "SELECT 'told' FROM events WHERE kind = 'mail_acked' AND actor = ?1 AND key = ?2";
        let found = (one(acked, params![done.id, done.agent])?, one(told, params![done.agent, done.key])?);
        let is_told = found.1.is_some() || done.what == "again";
        return Ok((found.0.is_none() || !is_told).then(|| "lost".to_owned()));
    }
    let kind = match done.verb.as_str() {
        "send" => "message_sent",
        "redact" => "message_redacted",
        _ => "reservation_granted",
    };
    let event = "SELECT actor || ' ' || key || ' ' || kind FROM events WHERE number = ?1";
    let Some(event) = one(event, params![done.id])? else { return Ok(Some("lost".to_owned())) };
    if event != format!("{} {} {kind}", done.agent, done.key) {
        return Ok(Some(format!("lost, its number is that of {event:?}")));
    }
    let content = match done.verb.as_str() {
        "send" => one("SELECT text FROM texts WHERE event = ?1 AND field = 'body'", params![done.id])?
            .map(|body| digest(&body)),
        "redact" => {
            let erased = "SELECT CAST(number AS TEXT) FROM messages WHERE redacted_by = ?1
                AND NOT EXISTS (SELECT 1 FROM texts WHERE event = messages.number)";
            one(erased, params![done.id])?
        }
        _ => one("SELECT pattern FROM reservations WHERE id = ?1", params![done.id])?,
    };
    Ok((content.as_ref() != Some(&done.what)).then(|| "altered".to_owned()))
}

/// Everything in the archive against what the store says, file by file, as somebody sees it who clones it.
fn compare_archive(folder: &Path, wanted: Archive, findings: &mut Vec<String>) -> Result<(), String> {
    let repository = folder.join("archive.git");
    let newest = newest(folder)?;
    if !repository.join("HEAD").exists() {
        return if wanted == Archive::Complete { Err("it is not there".to_owned()) } else { Ok(()) };
    }
    let checked = git(&repository, &["fsck", "--strict", "--full", "--no-dangling"])?;
    if !checked.status.success() && wanted != Archive::Torn {
        findings.push(format!("git fsck: {}", String::from_utf8_lossy(&checked.stderr)));
    }
    if wanted == Archive::Complete {
        findings.extend(leftovers(folder));
    }
    let value = |name: &str| format!("%(trailers:key={name},valueonly,separator=)");
    let format = format!("--format={} {}", value("Relay-Number"), value("Relay-Chain"));
    let log = git(&repository, &["log", &format, "refs/heads/main", "--"])?;
    if !log.status.success() {
        if wanted == Archive::Complete {
            findings.push(format!("the archive has no ref: {}", String::from_utf8_lossy(&log.stderr)));
        }
        return Ok(());
    }
    let mut cursors = Vec::new();
    for line in String::from_utf8_lossy(&log.stdout).lines() {
        let (number, chain) = line.split_once(' ').unwrap_or_default();
        cursors.push((number.parse::<u64>().map_err(|_| format!("a foreign commit: {line:?}"))?, chain.to_owned()));
    }
    if !cursors.windows(2).all(|pair| pair[0].0 > pair[1].0) {
        findings.push(format!("the archive has gone back: {cursors:?}"));
    }
    let cursor = cursors[0].0;
    if cursor > newest {
        findings.push(format!("the archive leads: it has #{cursor}, the store #{newest}"));
        return Ok(());
    }
    if wanted == Archive::Complete && cursor < newest {
        findings.push(format!("the archive lags: it has #{cursor}, the store #{newest}"));
    }
    if wanted == Archive::Torn {
        return Ok(());
    }
    let told = told(folder, cursor).map_err(|fault| fault.to_string())?;
    for (number, chain) in &cursors {
        if told.hashes.get(number) != Some(chain) {
            findings.push(format!("the chain of the archive differs at #{number}"));
        }
    }
    let (expected, found) = (&told.files, clone(&repository)?);
    for path in expected.keys().chain(found.keys()).collect::<BTreeSet<_>>() {
        match (expected.get(path), found.get(path)) {
            (Some(expected), Some(found)) if expected == found || told.pending.contains(path) => {}
            (Some(_), Some(_)) => findings.push(format!("the archive's {path} differs")),
            (Some(_), None) => findings.push(format!("the archive lacks {path}")),
            _ => findings.push(format!("the archive has {path}, and nobody put it there")),
        }
    }
    for (number, event) in &told.events {
        if letters::read(*number, &found).as_ref() != Some(event) {
            findings.push(format!("the archive does not say of #{number} what the store says"));
        }
    }
    Ok(())
}

fn newest(folder: &Path) -> Result<u64, String> {
    let newest = connect(folder)
        .and_then(|store| store.query_row("SELECT coalesce(max(number), 0) FROM events", [], |row| row.get(0)));
    newest.map_err(|fault| fault.to_string())
}

/// What the archive has to hold up to an event.
#[derive(Default)]
struct Archived {
    /// As relay would write them.
    files: Files,
    /// Those that may still be as they were, because their texts were erased later: the next drain makes the archive anew.
    pending: BTreeSet<String>,
    /// As the rows say, without those that are pending.
    events: BTreeMap<u64, Told>,
    /// The chain's hash at each.
    hashes: BTreeMap<u64, String>,
}

fn told(folder: &Path, up_to: u64) -> rusqlite::Result<Archived> {
    let store = connect(folder)?;
    let erased = erased(&store)?;
    let mut events = store.prepare("SELECT number, payload, hash FROM events WHERE number <= ?1")?;
    let mut texts = store.prepare("SELECT field, salt, text FROM texts WHERE event = ?1")?;
    let mut archived = Archived::default();
    let mut rows = events.query([up_to])?;
    while let Some(row) = rows.next()? {
        let (number, canonical, hash): (u64, String, Vec<u8>) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let texts =
            texts.query_map([number], |row| Ok((row.get(0)?, KeptText { salt: row.get(1)?, text: row.get(2)? })))?;
        let texts: BTreeMap<String, KeptText> = texts.collect::<Result<_, _>>()?;
        let said = texts.iter().map(|(field, kept)| (field.clone(), (hex(&kept.salt), kept.text.clone())));
        let event = Told { payload: canonical.clone(), texts: said.collect() };
        let payload = serde_json::from_str(&canonical).unwrap();
        let erased = erased.get(&number).cloned();
        let is_pending = erased.as_ref().is_some_and(|erased| erased.number > up_to);
        let entry = Entry { number, canonical, payload, texts, erased };
        for file in std::iter::once(entry.file()).chain(entry.readable()) {
            archived.pending.extend(is_pending.then(|| file.path.clone()));
            archived.files.insert(file.path, file.bytes);
        }
        if !is_pending {
            archived.events.insert(number, event);
        }
        archived.hashes.insert(number, hex(&hash));
    }
    Ok(archived)
}

/// The messages of which texts were erased, by the events that did it.
fn erased(store: &Connection) -> rusqlite::Result<BTreeMap<u64, Erased>> {
    let sql = "SELECT number, payload, (SELECT text FROM texts WHERE event = number AND field = 'why') FROM events
        WHERE kind = 'message_redacted' ORDER BY number DESC";
    let mut statement = store.prepare(sql)?;
    let rows = statement.query_map([], |row| Ok((row.get::<_, u64>(0)?, row.get::<_, String>(1)?, row.get(2)?)))?;
    let mut erased = BTreeMap::new();
    for row in rows {
        let (number, payload, why) = row?;
        let payload: Value = serde_json::from_str(&payload).unwrap();
        let by = serde_json::from_value(payload["actor"].clone()).unwrap();
        let whole = Erased { by, number, why, only_subject: false };
        for copy in payload["copies"].as_array().into_iter().flatten().filter_map(Value::as_u64) {
            erased.entry(copy).or_insert_with(|| Erased { only_subject: true, ..whole.clone() });
        }
        erased.extend(payload["message"].as_u64().map(|message| (message, whole)));
    }
    Ok(erased)
}

/// A plain clone, and every file in it.
fn clone(repository: &Path) -> Result<Files, String> {
    let into = tempfile::tempdir().unwrap();
    let path = into.path().join("clone");
    let cloned = git(Path::new("/"), &["clone", "-q", repository.to_str().unwrap(), path.to_str().unwrap()])?;
    if !cloned.status.success() {
        return Err(format!("it cannot be cloned: {}", String::from_utf8_lossy(&cloned.stderr)));
    }
    let mut files = Files::new();
    let mut folders = vec![path.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = entry.strip_prefix(&path).unwrap().to_str().unwrap().to_owned();
            if name == ".git" {
            } else if entry.is_dir() {
                folders.push(entry);
            } else {
                files.insert(name, std::fs::read(entry).unwrap());
            }
        }
    }
    Ok(files)
}

/// What a healed archive has no business to keep: locks, halves of packs, reports of crashes.
fn leftovers(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.join("archive.git")];
    while let Some(next) = folders.pop() {
        for path in std::fs::read_dir(next).into_iter().flatten().map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if name.ends_with(".lock")
                || name.ends_with(".keep")
                || name.ends_with(".pack") && !path.with_extension("idx").exists()
                || name.starts_with("tmp_")
                || name.starts_with("fast_import_crash_")
            {
                found.push(format!("left lying about: {}", path.display()));
            }
        }
    }
    let unfinished = ["archive.fresh", "archive.anew.git", "archive.anew.aside"].map(|name| folder.join(name));
    let unfinished = unfinished.iter().filter(|path| path.exists());
    found.extend(unfinished.map(|path| format!("left lying about: {}", path.display())));
    found
}

fn git(folder: &Path, args: &[&str]) -> Result<Output, String> {
    let mut command = Command::new("git");
    command
        .env_clear()
        .env("PATH", std::env::var("PATH").unwrap())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("HOME", "/nonexistent")
        .env("LC_ALL", "C")
        .current_dir(folder)
        .args(args);
    command.output().map_err(|fault| format!("git cannot be run: {fault}"))
}
