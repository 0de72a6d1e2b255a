//! Whether the store and its archive are what they say: what is wrong, and where. Nothing is written, and nobody waits
//! for it but the archive's next writer.

use std::path::Path;

use relay_core::domain::event::Number;
use relay_core::error::{Code, Refusal};
use relay_core::store::Result;
use serde::Serialize;

use crate::archive::{Archive, Beside};
use crate::sqlite::{Replayed, Snapshot};

/// How many findings are told one by one.
const TOLD: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    #[serde(rename = "where")]
    pub place: String,
    pub what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<Number>,
}

/// What is wrong, as it is found; the first are told, all are counted.
#[derive(Debug, Default)]
pub struct Findings {
    in_store: Vec<Finding>,
    in_archive: Vec<Finding>,
    store_total: u64,
    archive_total: u64,
}

impl Findings {
    pub(crate) fn store(&mut self, place: &str, number: Option<Number>, what: impl Into<String>) {
        self.store_total += 1;
        tell(&mut self.in_store, place, number, what);
    }

    pub(crate) fn archive(&mut self, place: &str, number: Option<Number>, what: impl Into<String>) {
        self.archive_total += 1;
        tell(&mut self.in_archive, place, number, what);
    }

    pub fn total(&self) -> u64 {
        self.store_total + self.archive_total
    }

    /// The first of them, the store's before the archive's.
    pub fn told(&self) -> impl Iterator<Item = &Finding> {
        self.in_store.iter().chain(&self.in_archive).take(TOLD)
    }

    /// The first of them, and how many there are.
    pub(crate) fn summary(&self) -> Option<String> {
        let first = self.told().next()?;
        let more = match self.total() {
            1 => String::new(),
            total => format!(" ({total} findings)"),
        };
        Some(format!("{}: {}{more}", first.place, first.what))
    }

    /// The class of what is wrong, if anything is.
    fn code(&self) -> Option<Code> {
        match (self.store_total, self.archive_total) {
            (0, 0) => None,
            (0, _) => Some(Code::ArchiveDiverged),
            _ => Some(Code::StoreDamaged),
        }
    }
}

fn tell(findings: &mut Vec<Finding>, place: &str, number: Option<Number>, what: impl Into<String>) {
    if findings.len() < TOLD {
        findings.push(Finding { place: place.to_owned(), what: what.into(), number });
    }
}

/// The refusal of a store that cannot even be opened, told as what was found.
fn found(refusal: Refusal) -> Refusal {
    if refusal.code != Code::StoreDamaged {
        return refusal;
    }
    let finding = Finding { place: "file".to_owned(), what: refusal.message.clone(), number: None };
    let findings: Vec<serde_json::Value> = serde_json::to_value(finding).into_iter().collect();
    refusal.with("findings_total", findings.len()).with("findings", findings)
}

#[derive(Debug)]
pub struct Report {
    /// The newest event of the store.
    pub events: Number,
    /// The last one in the archive.
    pub archived: Number,
    pub findings: Findings,
}

impl Report {
    /// The refusal of a store or an archive in which something is wrong.
    pub fn refusal(&self, folder: &Path) -> Option<Refusal> {
        let code = self.findings.code()?;
        let path = if code == Code::StoreDamaged { folder.to_owned() } else { folder.join("archive.git") };
        let findings: Vec<serde_json::Value> =
            self.findings.told().filter_map(|finding| serde_json::to_value(finding).ok()).collect();
        Some(
            code.refuse(self.findings.summary()?)
                .with("path", path.to_string_lossy())
                .with("findings", findings)
                .with("findings_total", self.findings.total()),
        )
    }
}

/// Verifies the store of a folder, and its archive as far as it has come, as both are at one moment. `progress` hears the
/// phase, how far it is, and of how much.
pub fn verify(folder: &Path, mut progress: impl FnMut(&str, Number, Number)) -> Result<Report> {
    let mut findings = Findings::default();
    let archive = Archive::of(folder);
    // While it is compared, nobody writes to it; and since it never leads, what the store shows afterwards includes it.
    let lease = archive.lease().ok();
    progress("archive", 0, 1);
    let mut beside = archive.beside(&mut findings)?;
    let archived = beside.as_ref().map_or(0, Beside::archived);
    let snapshot = Snapshot::open(folder).map_err(found)?;
    let events = snapshot.newest(&mut findings)?;
    let replayed = snapshot.events(&mut findings, |sound, findings| {
        if let Some(beside) = &mut beside {
            match sound {
                Ok((entry, chain)) => beside.meet(entry, chain, findings),
                Err(number) => beside.pass(number),
            }
        }
        let number = sound.map_or_else(|number| number, |(entry, _)| entry.number);
        progress("history", number, events);
    })?;
    if let Some(beside) = beside {
        beside.finish(events, |number| snapshot.entry(number), &mut findings);
    }
    drop(lease);
    beside_the_history(&snapshot, replayed, events, &mut findings, &mut progress)?;
    Ok(Report { events, archived, findings })
}

/// Verifies a copy of a store by itself, whatever its name is. `folder` is the store's, which is named where reading fails.
pub(crate) fn verify_copy(
    copy: &Path,
    folder: &Path,
    mut progress: impl FnMut(&str, Number, Number),
) -> Result<Findings> {
    let mut findings = Findings::default();
    let snapshot = Snapshot::of(copy, folder)?;
    let events = snapshot.newest(&mut findings)?;
    let replayed = snapshot.events(&mut findings, |sound, _| {
        progress("history", sound.map_or_else(|number| number, |(entry, _)| entry.number), events);
    })?;
    beside_the_history(&snapshot, replayed, events, &mut findings, &mut progress)?;
    Ok(findings)
}

/// What was made from the history, as far as that could be replayed, and what is kept beside it.
fn beside_the_history(
    snapshot: &Snapshot,
    replayed: Option<Replayed>,
    events: Number,
    findings: &mut Findings,
    progress: &mut impl FnMut(&str, Number, Number),
) -> Result<()> {
    if let Some(replayed) = replayed {
        snapshot.projections(&replayed, findings, |done, of| progress("tables", done, of))?;
        progress("search", 0, 1);
        snapshot.search(&replayed, findings)?;
        progress("answers", 0, 1);
        snapshot.answered(&replayed, findings)?;
    }
    progress("file", 0, 1);
    snapshot.rest(events, findings)
}
