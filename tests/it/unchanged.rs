//! Bad input gets a clear error and changes nothing: how that is checked.

use std::path::Path;
use std::process::Command;

use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags};

use crate::bus::{Bus, Run, run};

/// Everything below a home as lines of text: each file with its content, each database with its rows. Left out is what
/// a failed request may leave behind: itself in `failed_requests`, its name on the gate,
/// and its place in the line before it.
pub fn snapshot(home: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    walk(home, &mut lines);
    lines
}

fn walk(path: &Path, lines: &mut Vec<String>) {
    let Ok(metadata) = std::fs::symlink_metadata(path) else { return };
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    if metadata.is_dir() && name == "line" {
        // Whoever takes a turn stands in the line before it, also to be refused.
    } else if metadata.is_dir() {
        lines.push(format!("{}/", path.display()));
        let mut entries: Vec<_> = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        entries.iter().for_each(|entry| walk(entry, lines));
    } else if name == "relay.db" && metadata.len() > 0 {
        let copy = copy_of(path.parent().unwrap());
        let bytes = || vec![format!("{}: {:?}", path.display(), std::fs::read(path).ok())];
        lines.extend(rows(&copy.path().join("relay.db")).unwrap_or_else(|_| bytes()));
    } else if !["gate", "relay.db-wal", "relay.db-shm"].contains(&name.as_str()) {
        lines.push(format!("{}: {:?}", path.display(), std::fs::read(path).ok()));
    }
}

/// The database of a store, somewhere else: looking at it there leaves no trace here.
pub fn copy_of(store: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for name in ["relay.db", "relay.db-wal"] {
        let _ = std::fs::copy(store.join(name), copy.path().join(name));
    }
    copy
}

fn rows(file: &Path) -> rusqlite::Result<Vec<String>> {
    let store = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let mut names = store.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")?;
    let tables: Vec<String> = names.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    let mut lines = Vec::new();
    for table in tables.iter().filter(|table| *table != "failed_requests") {
        let mut statement = store.prepare(&format!("SELECT * FROM \"{table}\" ORDER BY 1, 2"))?;
        let columns = statement.column_count();
        let mut found = statement.query([])?;
        while let Some(row) = found.next()? {
            let values: Vec<Value> = (0..columns).map(|column| row.get(column)).collect::<rusqlite::Result<_>>()?;
            lines.push(format!("{table}: {values:?}"));
        }
    }
    Ok(lines)
}

/// The request is refused with this class, in JSON and in words. The message names the thing, a next step follows, and
/// everything is as it was before.
#[track_caller]
pub fn refused(bus: &Bus, agent: &str, args: &[&str], code: &str, names: &[&str]) -> Run {
    let refusal = refused_by(bus, || bus.args(agent, args), code, names);
    let before = snapshot(&bus.home());
    let words = bus.text(agent, args);
    assert_words(&words, &refusal, code);
    assert_eq!(snapshot(&bus.home()), before, "{args:?} changed something");
    refusal
}

/// The same for a command that the test makes itself; only in JSON.
#[track_caller]
pub fn refused_by(bus: &Bus, command: impl Fn() -> Command, code: &str, names: &[&str]) -> Run {
    let before = snapshot(&bus.home());
    let refusal = run(command()).fails(code);
    assert_eq!(snapshot(&bus.home()), before, "{:?} changed something", command());
    assert_clear(&refusal, names);
    refusal
}

/// The message names the things, and there is a next step.
#[track_caller]
pub fn assert_clear(refusal: &Run, names: &[&str]) {
    let error = refusal.error();
    let message = error["message"].as_str().unwrap();
    for name in names {
        assert!(message.contains(name), "{name:?} is not named in: {message}");
    }
    assert!(!error["playbook"].as_array().unwrap().is_empty(), "no next step: {error}");
}

/// A person reads the same: the message with its class, then the steps, all of it on standard error.
#[track_caller]
fn assert_words(words: &Run, refusal: &Run, code: &str) {
    assert_eq!(words.status, refusal.status, "{words:?}");
    assert_eq!(words.stdout, "", "{words:?}");
    assert!(words.stderr.starts_with("Error: ") && words.stderr.contains(&format!(" [{code}]\n")), "{words:?}");
    assert!(words.stderr.contains("\n  1. "), "{words:?}");
}
