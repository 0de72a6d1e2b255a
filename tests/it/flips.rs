//! One byte that is not as it was written, wherever the history is kept: verify finds it, and says where.

use std::fs;
use std::path::{Path, PathBuf};

use relay_core::error::Code;
use relay_store::archive::Archive;
use relay_store::verify::{Finding, verify};
use rusqlite::Connection;
use rusqlite::types::Value;

use crate::bus::Bus;
use crate::effort::{summary, times};

/// A store with something of everything in it, all of it in the archive too.
fn filled() -> Bus {
    let bus = Bus::with(&["BlueLake", "RedForest", "GreenHill"]);
    let relay = |agent: &str, args: &[&str]| {
        bus.advance(1_000);
        bus.relay(agent, args).success()
    };
    relay("BlueLake", &["start", "--task", "the login", "--program", "editor", "--session", "s-1"]);
    relay("BlueLake", &["prepare", "--thread", "bd-1"]);
    for subject in ["Login", "Session", "Cookie"] {
        bus.send("BlueLake", "RedForest", "bd-1", subject);
    }
    let wide =
        ["--to", "RedForest", "--cc", "GreenHill", "--thread", "bd-2", "--subject", "Plan", "--body", "Here it is."];
    let id =
        relay("BlueLake", &[&["send", "--ack-within", "1h"], &wide[..]].concat()).result()["message"]["id"].to_string();
    relay("RedForest", &["poll", "--read"]);
    relay("RedForest", &["ack", &id]);
    relay("RedForest", &["link", "--target", "GreenHill", "--why", "we share the parser"]);
    relay("BlueLake", &["reserve", "src/**", "--reason", "bd-1"]);
    relay("RedForest", &["reserve", "src/auth", "--shared"]);
    relay("GreenHill", &["reserve", "docs/"]);
    relay("GreenHill", &["release", "--all"]);
    relay("", &["drain", "--wait"]);
    bus
}

const PAGE: usize = 4096;
/// A page of the texts' tree that has others below it.
const INNER: u8 = 2;

/// A folder in which one thing after the other is spoilt.
struct Scratch {
    bus: Bus,
    folder: PathBuf,
    /// The store's file as it should be.
    whole: Vec<u8>,
    random: u64,
}

impl Scratch {
    fn new() -> Self {
        let bus = filled();
        let folder = bus.store();
        // Pages that were used before hold copies of what stands elsewhere now.
        let store = Connection::open(folder.join("relay.db")).unwrap();
        store.execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        let whole = fs::read(folder.join("relay.db")).unwrap();
        assert_eq!(fs::metadata(folder.join("relay.db-wal")).unwrap().len(), 0, "everything is in the file");
        drop(store);
        Scratch { bus, folder, whole, random: 1 }
    }

    fn next(&mut self, below: usize) -> usize {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.random >> 33).unwrap() % below
    }

    /// Another byte in place of one of these.
    fn flip(&mut self, bytes: &mut [u8], from: &[usize]) -> usize {
        let (place, mask) = (from[self.next(from.len())], 1 + self.next(255));
        bytes[place] ^= u8::try_from(mask).unwrap();
        place
    }

    /// The store with these bytes in its file, and without its archive, so that what is found is found in the store.
    fn store_of(&self, bytes: &[u8]) -> tempfile::TempDir {
        let copy = tempfile::tempdir().unwrap();
        fs::write(copy.path().join("relay.db"), bytes).unwrap();
        fs::write(copy.path().join("project"), self.bus.key()).unwrap();
        copy
    }

    fn read(&self) -> Connection {
        Connection::open(self.folder.join("relay.db")).unwrap()
    }

    /// Where in the file the columns of an event stand.
    fn event_cells(&self) -> Vec<(u64, Vec<usize>)> {
        let store = self.read();
        let mut statement = store.prepare("SELECT number, kind, actor, key, payload, previous FROM events").unwrap();
        let rows = statement.query_map([], |row| {
            let (key, previous): (Option<String>, Vec<u8>) = (row.get(3)?, row.get(5)?);
            let words: (String, String, String) = (row.get(1)?, row.get(2)?, row.get(4)?);
            Ok((row.get::<_, u64>(0)?, words, key, previous.len()))
        });
        let cell = |(number, (kind, actor, payload), key, previous): (
            u64,
            (String, String, String),
            Option<String>,
            usize,
        )| {
            let key = key.unwrap_or_default();
            let columns = [kind.as_bytes(), b"\0\0\0\0\0\0", actor.as_bytes(), key.as_bytes()].map(<[u8]>::len);
            let begins = self.only(payload.as_bytes()) - columns.iter().sum::<usize>();
            (number, (begins..begins + columns.iter().sum::<usize>() + payload.len() + previous + 32).collect())
        };
        rows.unwrap().map(|row| cell(row.unwrap())).collect()
    }

    /// Where in the file a text stands, with its salt and its field before it.
    fn text_cells(&self) -> Vec<(u64, Vec<usize>)> {
        let store = self.read();
        let mut statement = store.prepare("SELECT event, field, salt, text FROM texts").unwrap();
        let rows = statement.query_map([], |row| {
            Ok((row.get::<_, u64>(0)?, row.get::<_, String>(1)?, row.get::<_, Vec<u8>>(2)?, row.get::<_, String>(3)?))
        });
        let cell = |(event, field, salt, text): (u64, String, Vec<u8>, String)| {
            let begins = self.only(&salt) - field.len();
            (event, (begins..begins + field.len() + salt.len() + text.len()).collect())
        };
        rows.unwrap().map(|row| cell(row.unwrap())).collect()
    }

    /// What stands before the columns of a row: how long it is, its number, and the type of each column.
    fn headers(&self, cells: Vec<(u64, Vec<usize>)>) -> Vec<(u64, Vec<usize>)> {
        let header = |(number, columns): (u64, Vec<usize>)| (number, (self.cell_at(columns[0])..columns[0]).collect());
        cells.into_iter().map(header).collect()
    }

    /// Where the cell begins that a place lies in, by the list at the head of its page.
    fn cell_at(&self, place: usize) -> usize {
        let base = place / PAGE * PAGE;
        let page = &self.whole[base..][..PAGE];
        let number = |at: usize| usize::from(u16::from_be_bytes([page[at], page[at + 1]]));
        let list = if page[0] == INNER { 12 } else { 8 };
        let cells = (0..number(3)).map(|index| base + number(list + 2 * index));
        cells.filter(|begins| *begins <= place).max().unwrap()
    }

    /// The one place in the file where these bytes stand and are read.
    fn only(&self, bytes: &[u8]) -> usize {
        let windows = self.whole.windows(bytes.len()).enumerate();
        let mut places = windows.filter(|(place, window)| *window == bytes && self.is_read(*place));
        let (place, _) = places.next().unwrap();
        assert!(places.next().is_none(), "{:?} stands there twice", String::from_utf8_lossy(bytes));
        place
    }

    /// Whether SQLite keeps a row there. A page that was made anew has remains of what it was in its gap.
    fn is_read(&self, place: usize) -> bool {
        const WITH_ROWS: [u8; 3] = [INNER, 10, 13];
        let page = &self.whole[place / PAGE * PAGE..][..PAGE];
        let rows_begin = usize::from(u16::from_be_bytes([page[5], page[6]]));
        WITH_ROWS.contains(&page[0]) && place % PAGE >= rows_begin
    }
}

fn found(folder: &Path, what: &str) -> Vec<Finding> {
    let findings: Vec<Finding> = match verify(folder, |_, _, _| {}) {
        Ok(report) => report.findings.told().cloned().collect(),
        // What SQLite cannot open at all has no places to name.
        Err(refusal) => panic!("{what}: {refusal}"),
    };
    assert!(!findings.is_empty(), "{what} was not found");
    findings
}

fn names(findings: &[Finding], number: u64, what: &str) {
    let is_near = |finding: &Finding| finding.number.is_some_and(|found| found == number || found == number + 1);
    assert!(findings.iter().any(is_near), "{what} is not named: {findings:?}");
}

fn flip_cells(scratch: &mut Scratch, cells: &[(u64, Vec<usize>)], count: usize) {
    for _ in 0..count {
        let (number, places) = &cells[scratch.next(cells.len())];
        let mut bytes = scratch.whole.clone();
        let place = scratch.flip(&mut bytes, places);
        let what = format!("byte {place} of #{number}: {:#x} for {:#x}", bytes[place], scratch.whole[place]);
        names(&found(scratch.store_of(&bytes).path(), &what), *number, &what);
    }
}

#[test]
fn a_byte_of_an_event_is_found() {
    let mut scratch = Scratch::new();
    assert!(found_nothing(scratch.store_of(&scratch.whole).path()));
    let cells = scratch.event_cells();
    flip_cells(&mut scratch, &cells, times(400));
    summary(&format!("flips in event rows: {}, all found", times(400)));
}

/// Flips before the columns. SQLite may find no row there any more, so that nobody can say which one it was.
fn flip_headers(
    scratch: &mut Scratch,
    headers: &[(u64, Vec<usize>)],
    is_the_same: impl Fn(&Scratch, &[usize], usize, u8) -> bool,
) {
    let mut done = 0;
    while done < times(300) {
        let (number, places) = &headers[scratch.next(headers.len())];
        let mut bytes = scratch.whole.clone();
        let place = scratch.flip(&mut bytes, places);
        if is_the_same(scratch, places, place, bytes[place]) {
            continue;
        }
        let what = format!("byte {place} before #{number}: {:#x} for {:#x}", bytes[place], scratch.whole[place]);
        match verify(scratch.store_of(&bytes).path(), |_, _, _| {}) {
            Ok(report) => assert_ne!(report.findings.total(), 0, "{what} was not found"),
            Err(refusal) => assert_eq!(refusal.code, Code::StoreDamaged, "{what}: {refusal}"),
        }
        done += 1;
    }
    summary(&format!("flips before rows: {done}, all found"));
}

#[test]
fn a_byte_before_an_event_is_found() {
    let mut scratch = Scratch::new();
    let headers = scratch.headers(scratch.event_cells());
    assert!(headers.iter().all(|(_, places)| (11..=14).contains(&places.len())), "{headers:?}");
    // The row's own number stands before the columns, and again as an empty column that nobody reads: of the types that
    // take no room, one is as good as the other there.
    let is_number_again = |scratch: &Scratch, places: &[usize], place: usize| {
        let size = if scratch.whole[places[0]] < 0x80 { 1 } else { 2 };
        place == places[0] + size + 2
    };
    flip_headers(&mut scratch, &headers, |scratch, places, place, byte| {
        is_number_again(scratch, places, place) && (8..=13).contains(&byte)
    });
}

#[test]
fn a_byte_before_a_text_is_found() {
    let mut scratch = Scratch::new();
    let headers = scratch.headers(scratch.text_cells());
    assert!(headers.iter().all(|(_, places)| (6..=12).contains(&places.len())), "{headers:?}");
    flip_headers(&mut scratch, &headers, |_, _, _, _| false);
}

fn found_nothing(folder: &Path) -> bool {
    verify(folder, |_, _, _| {}).unwrap().findings.total() == 0
}

#[test]
fn a_byte_of_a_text_is_found() {
    let mut scratch = Scratch::new();
    let cells = scratch.text_cells();
    assert!(cells.len() >= 10);
    flip_cells(&mut scratch, &cells, times(200));
    summary(&format!("flips in texts: {}, all found", times(200)));
}

#[test]
fn a_byte_of_a_pack_or_its_index_is_found() {
    let mut scratch = Scratch::new();
    let packs = scratch.folder.join("archive.git/objects/pack");
    let files: Vec<PathBuf> = fs::read_dir(packs).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() >= 2, "{files:?}");
    for count in 0..times(300) {
        let file = &files[count % files.len()];
        let whole = fs::read(file).unwrap();
        let mut bytes = whole.clone();
        let places: Vec<usize> = (0..bytes.len()).collect();
        let place = scratch.flip(&mut bytes, &places);
        write(file, &bytes);
        let findings = found(&scratch.folder, &format!("byte {place} of {}", file.display()));
        // Whoever asks how far it has come gets an answer or a refusal.
        let _ = Archive::of(&scratch.folder).archived();
        let name = file.file_name().unwrap().to_str().unwrap();
        assert!(findings.iter().all(|finding| finding.place == "archive"), "{findings:?}");
        assert!(findings.iter().any(|finding| finding.what.contains(name)), "{name}: {findings:?}");
        write(file, &whole);
    }
    summary(&format!("flips in packs and their indexes: {}, all found", times(300)));
}

/// Whatever of the repository is no object: where its history ends, which branch a clone takes, and how it is to be read.
#[test]
fn a_byte_of_a_ref_or_of_the_configuration_is_found() {
    let mut scratch = Scratch::new();
    let archive = scratch.folder.join("archive.git");
    for name in ["refs/heads/main", "HEAD", "config"] {
        let file = archive.join(name);
        let whole = fs::read(&file).unwrap();
        let places: Vec<usize> = (0..whole.len()).collect();
        for _ in 0..times(150) {
            let mut bytes = whole.clone();
            let place = scratch.flip(&mut bytes, &places);
            fs::write(&file, &bytes).unwrap();
            let what = format!("byte {place} of {name}: {:?}", String::from_utf8_lossy(&bytes));
            let findings = verify(&scratch.folder, |_, _, _| {}).unwrap().findings;
            assert!(findings.told().all(|finding| finding.place == "archive"), "{what}");
            assert_ne!(findings.total(), 0, "{what} was not found");
        }
        fs::write(&file, &whole).unwrap();
    }
}

/// git makes its packs read-only.
fn write(path: &Path, bytes: &[u8]) {
    let _ = fs::remove_file(path);
    fs::write(path, bytes).unwrap();
}

const TABLES: [&str; 11] = [
    "project",
    "agents",
    "sessions",
    "threads",
    "members",
    "messages",
    "deliveries",
    "reservations",
    "overlaps",
    "told",
    "links",
];

#[test]
fn a_byte_of_a_table_is_found() {
    let mut scratch = Scratch::new();
    let mut done = 0;
    while done < times(100) {
        let copy = scratch.store_of(&scratch.whole);
        let store = Connection::open(copy.path().join("relay.db")).unwrap();
        store.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
        let table = TABLES[scratch.next(TABLES.len())];
        let columns: Vec<String> = store
            .prepare("SELECT name FROM pragma_table_info(?1)")
            .unwrap()
            .query_map([table], |row| row.get(0))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        let column = &columns[scratch.next(columns.len())];
        let rows: usize = store.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap();
        assert!(rows > 0, "{table} is empty");
        let all: Vec<Value> = (0..columns.len()).map(|_| Value::Null).collect();
        let row = row_at(&store, table, scratch.next(rows), all);
        let place = columns.iter().position(|name| name == column).unwrap();
        let changed = spoilt(&row[place], &mut scratch);
        let by_row: Vec<String> =
            columns.iter().enumerate().map(|(index, name)| format!("{name} IS ?{}", index + 1)).collect();
        let sql = format!("UPDATE {table} SET {column} = ?{} WHERE {}", columns.len() + 1, by_row.join(" AND "));
        let values = row.iter().chain([&changed]);
        // What the table itself does not take is no damage that could be there.
        if store.execute(&sql, rusqlite::params_from_iter(values)).is_err() {
            continue;
        }
        drop(store);
        let what = format!("{table}.{column}: {changed:?} for {:?}", row[place]);
        let findings = found(copy.path(), &what);
        assert!(findings.iter().any(|finding| finding.place == table), "{what}: {findings:?}");
        done += 1;
    }
}

fn row_at(store: &Connection, table: &str, index: usize, mut row: Vec<Value>) -> Vec<Value> {
    let mut statement = store.prepare(&format!("SELECT * FROM {table} LIMIT 1 OFFSET {index}")).unwrap();
    statement
        .query_row([], |found| {
            for (place, value) in row.iter_mut().enumerate() {
                *value = found.get(place)?;
            }
            Ok(row)
        })
        .unwrap()
}

/// The value with one byte that is another, of the same type.
fn spoilt(value: &Value, scratch: &mut Scratch) -> Value {
    match value {
        Value::Null => Value::Integer(1),
        Value::Integer(number) => Value::Integer(number ^ (1 << scratch.next(40))),
        Value::Text(text) => {
            let mut letters: Vec<char> = text.chars().collect();
            let place = scratch.next(letters.len().max(1));
            match letters.get_mut(place) {
                Some(letter) if letter.is_ascii_alphabetic() => *letter = char::from(*letter as u8 ^ 0x20),
                Some(letter) => *letter = 'x',
                None => letters.push('x'),
            }
            Value::Text(letters.into_iter().collect())
        }
        other => other.clone(),
    }
}

#[test]
fn words_that_the_search_index_has_wrong_are_found() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    for index in 0..40 {
        bus.send("BlueLake", "RedForest", "bd-1", &format!("Word{index}"));
    }
    bus.relay("", ["drain"]).success();
    for spoil in [
        "DELETE FROM search WHERE rowid = 10",
        "INSERT OR REPLACE INTO search (rowid, subject, body) VALUES (10, 'Other', 'text')",
        "INSERT INTO search (rowid, subject, body) VALUES (999, 'Word', 'text')",
    ] {
        let copy = tempfile::tempdir().unwrap();
        for name in ["relay.db", "project"] {
            fs::copy(bus.store().join(name), copy.path().join(name)).unwrap();
        }
        assert!(found_nothing(copy.path()));
        Connection::open(copy.path().join("relay.db")).unwrap().execute_batch(spoil).unwrap();
        let findings = found(copy.path(), spoil);
        assert!(findings.iter().any(|finding| finding.place == "search"), "{spoil}: {findings:?}");
    }
}

#[test]
fn the_command_says_what_is_wrong_and_where() {
    let mut scratch = Scratch::new();
    let (events, file) = (scratch.event_cells(), scratch.folder.join("relay.db"));
    for _ in 0..24 {
        let (number, places) = &events[scratch.next(events.len())];
        let mut bytes = scratch.whole.clone();
        scratch.flip(&mut bytes, places);
        fs::write(&file, &bytes).unwrap();
        let error = scratch.bus.relay("", ["verify"]).fails("STORE_DAMAGED").error();
        let findings = error["details"]["findings"].as_array().unwrap();
        assert!(findings.len() as u64 <= error["details"]["findings_total"].as_u64().unwrap());
        let first = &findings[0];
        assert!(error["message"].as_str().unwrap().contains(first["what"].as_str().unwrap()), "{error}");
        assert!(findings.iter().all(|found| found["where"] != "archive"), "the archive is whole: {error}");
        let near = [*number, *number + 1];
        assert!(
            findings.iter().any(|found| near.iter().any(|number| found["number"] == *number)),
            "#{number}: {error}"
        );
        fs::write(&file, &scratch.whole).unwrap();
    }
    scratch.bus.relay("", ["verify"]).success();
}
