//! The fixtures in `tests/fixtures/hooks`, and the test that holds every dialect to them.
//!
//! `RELAY_BLESS=1` writes anew what is read and answered; without it that is compared.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Dialect;
use crate::hook::event::{Answer, Call, Deed, Event, Reply, Verdict};

#[derive(Serialize, Deserialize)]
struct Fixture {
    program: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// `recorded`, or `from documentation`.
    how: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    event: String,
    /// As it was recorded, to the letter.
    stdin: Box<RawValue>,
    #[serde(flatten)]
    told: Told,
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Told {
    dialect: Option<String>,
    reads: Value,
    /// To each of [`replies`], the exact stdout.
    answers: BTreeMap<String, String>,
}

/// What the answers of a fixture reply with.
pub fn replies() -> [(&'static str, Reply); 6] {
    let context = || Some("CONTEXT".to_owned());
    let deny = || Some(Verdict::Deny("REASON".to_owned()));
    [
        ("nothing", Reply::default()),
        ("context", Reply { context: context(), ..Reply::default() }),
        ("deny", Reply { verdict: deny(), ..Reply::default() }),
        ("deny_with_context", Reply { verdict: deny(), context: context(), ..Reply::default() }),
        ("ask", Reply { verdict: Some(Verdict::Ask("REASON".to_owned())), ..Reply::default() }),
        ("go_on", Reply { go_on: Some("GO ON".to_owned()), ..Reply::default() }),
    ]
}

/// What programs say, one for each fixture.
pub fn stdins() -> Vec<Value> {
    all().into_iter().map(|(path, fixture)| stdin(&path, &fixture)).collect()
}

fn all() -> Vec<(PathBuf, Fixture)> {
    Dialect::ALL.into_iter().flat_map(of).collect()
}

fn of(dialect: Dialect) -> Vec<(PathBuf, Fixture)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/hooks").join(dialect.name());
    let files = std::fs::read_dir(&folder).unwrap_or_else(|fault| panic!("{}: {fault}", folder.display()));
    let paths = files.map(|file| file.unwrap_or_else(|fault| panic!("{}: {fault}", folder.display())).path());
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap_or_else(|fault| panic!("{}: {fault}", path.display()));
        let fixture = serde_json::from_str(&text).unwrap_or_else(|fault| panic!("{}: {fault}", path.display()));
        (path, fixture)
    };
    paths.map(read).collect()
}

fn stdin(path: &Path, fixture: &Fixture) -> Value {
    serde_json::from_str(fixture.stdin.get()).unwrap_or_else(|fault| panic!("{}: {fault}", path.display()))
}

fn told(stdin: &Value) -> Told {
    let Some(dialect) = Dialect::of(stdin) else { return Told::default() };
    let event = dialect.read(stdin);
    let answers = match &event {
        Some(event) => {
            replies().into_iter().map(|(name, reply)| (name.to_owned(), stdout(dialect.write(event, &reply)))).collect()
        }
        None => BTreeMap::from([("nothing".to_owned(), stdout(dialect.silence()))]),
    };
    let reads = event.map(|event| read_of(dialect, &event)).unwrap_or_default();
    Told { dialect: Some(dialect.name().to_owned()), reads, answers }
}

/// No answer needs anything beside stdout.
fn stdout(answer: Answer) -> String {
    assert_eq!((answer.stderr.as_str(), answer.status), ("", 0));
    answer.stdout
}

fn read_of(dialect: Dialect, event: &Event) -> Value {
    json!({
        "moment": event.moment,
        "session": event.session,
        "subagent": event.subagent,
        "cwd": event.cwd,
        "transcript": event.transcript,
        "model": event.model,
        "call": event.call.as_ref().map(call_of),
        "again": event.again,
        "carries_on": event.carries_on,
        "hears": dialect.hears(event),
    })
}

fn call_of(call: &Call) -> Value {
    let deed = match &call.deed {
        Deed::Edit(paths) => json!({"edit": paths}),
        Deed::Shell(command) => json!({"shell": command}),
        Deed::Other => json!("other"),
    };
    json!({"id": call.id, "failed": call.failed, "deed": deed})
}

#[expect(clippy::disallowed_methods, reason = "a wish of whoever runs the tests")]
fn is_blessed() -> bool {
    std::env::var_os("RELAY_BLESS").is_some_and(|wish| wish == "1")
}

#[test]
fn every_dialect_keeps_to_its_fixtures() {
    for (path, mut fixture) in all() {
        let told = told(&stdin(&path, &fixture));
        if is_blessed() {
            fixture.told = told;
            let text = serde_json::to_string_pretty(&fixture).map(|text| text + "\n");
            std::fs::write(&path, text.unwrap_or_default()).unwrap_or_else(|fault| panic!("{fault}"));
            continue;
        }
        assert_eq!(fixture.told, told, "{}\nIf that is meant, write it anew with RELAY_BLESS=1.", path.display());
    }
}

#[test]
fn every_event_of_every_dialect_has_a_fixture_that_says_where_it_is_from() {
    for dialect in Dialect::ALL {
        let mut found = BTreeSet::new();
        for (path, fixture) in of(dialect) {
            let name = fixture.event;
            let file = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            assert!(file == name || file.starts_with(&format!("{name}-")), "{file} is of {name}");
            let is_sourced = match fixture.how.as_str() {
                "recorded" => fixture.version.is_some(),
                "from documentation" => fixture.source.is_some(),
                _ => false,
            };
            assert!(is_sourced, "{} does not say where it is from", path.display());
            assert_eq!(fixture.program, dialect.program(), "{}", path.display());
            assert_eq!(fixture.told.dialect.as_deref(), Some(dialect.name()), "{}", path.display());
            found.insert(name);
        }
        let recorded = of(dialect).into_iter().filter_map(|(_, fixture)| fixture.version).collect::<BTreeSet<_>>();
        assert_eq!(recorded, dialect.seen().map(str::to_owned).into_iter().collect(), "{dialect:?}");
        let known: BTreeSet<String> = dialect.grammar().events.iter().map(|known| known.name.to_owned()).collect();
        assert_eq!(found, known, "{dialect:?}");
    }
}
