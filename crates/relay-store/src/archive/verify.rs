//! The archive against the history: whole packs, relay's own commits in one line, and every file as the events give it.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use relay_core::archive::{Entry, File as Expected, message};
use relay_core::domain::event::Number;
use relay_core::store::Result;

use super::import::{COMMITTER, committed_at};
use super::read::{Commit, Shown};
use super::repository::PUBLIC;
use super::{Archive, config};
use crate::filesystem::io_refusal;
use crate::verify::Findings;

const PLACE: &str = "archive";

/// The archive beside a walk through the history, in number order.
pub(crate) struct Beside<'a> {
    shown: Shown<'a>,
    /// The next commit to be met, and the events since the one before it; none when the store could not give them all.
    commit: usize,
    gathered: Option<Vec<Entry>>,
    /// Files that the events give; none when the store could not give them all.
    expected: Option<u64>,
    archived: Number,
}

impl Archive {
    /// Opens it for comparison; none where there is nothing, or nothing that can be compared.
    pub(crate) fn beside(&self, findings: &mut Findings) -> Result<Option<Beside<'_>>> {
        if let Some(displaced) = self.repository.displaced() {
            findings.archive(PLACE, None, displaced.message.clone());
            return Ok(None);
        }
        self.refs_are_whole(findings);
        self.nothing_leads_away(findings);
        if !self.packs_are_whole(findings)? {
            return Ok(None);
        }
        let shown = match self.shown() {
            Ok(Some(shown)) => shown,
            Ok(None) => return Ok(None),
            Err(refusal) => {
                findings.archive(PLACE, None, refusal.message.clone());
                return Ok(None);
            }
        };
        let Some(archived) = shown.cursor().map(|cursor| cursor.number) else {
            findings.archive(PLACE, None, format!("its newest commit {} is not relay's", shown.newest()));
            return Ok(None);
        };
        Ok(Some(Beside { shown, commit: 0, gathered: Some(Vec::new()), expected: Some(0), archived }))
    }

    /// relay goes by the branch itself, and a clone by what HEAD says. A branch without a value is none: a power cut takes it.
    fn refs_are_whole(&self, findings: &mut Findings) {
        let is_digit = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
        let is_commit = |said: &[u8]| {
            said.strip_suffix(b"\n").is_some_and(|commit| commit.len() == 40 && commit.iter().all(is_digit))
        };
        let mut check = |name: &str, is_whole: &dyn Fn(&[u8]) -> bool| {
            if std::fs::read(self.path().join(name)).is_ok_and(|said| !is_whole(&said)) {
                findings.archive(PLACE, None, format!("{name} is not what was written"));
            }
        };
        check("HEAD", &|said| said == format!("ref: {PUBLIC}\n").as_bytes());
        check(PUBLIC, &|said| said.is_empty() || is_commit(said));
    }

    /// git goes by more than objects and refs, and so does a clone.
    fn nothing_leads_away(&self, findings: &mut Findings) {
        if let Some(what) = config::stranger(self.path()) {
            findings.archive(PLACE, None, what);
        }
    }

    /// Every pack, and what belongs to one, ends in a hash of all that stands before it.
    fn packs_are_whole(&self, findings: &mut Findings) -> Result<bool> {
        let folder = self.path().join("objects/pack");
        let before = findings.total();
        let Ok(files) = std::fs::read_dir(&folder) else { return Ok(true) };
        let mut names: Vec<String> = files.flatten().filter_map(|file| file.file_name().into_string().ok()).collect();
        names.sort();
        for name in names.iter().filter(|name| name.starts_with("pack-") || name.starts_with("multi-pack-index")) {
            let path = folder.join(name);
            if !is_whole(&path).map_err(|fault| io_refusal(&path, &fault))? {
                findings.archive(PLACE, None, format!("objects/pack/{name} is not what was written"));
            }
            let pack = name.strip_suffix(".idx").map(|stem| format!("{stem}.pack"));
            if let Some(pack) = pack.filter(|pack| !names.contains(pack)) {
                findings.archive(PLACE, None, format!("objects/pack/{pack} is missing"));
            }
        }
        Ok(findings.total() == before)
    }
}

/// A file that ends in the hash of what stands before it; others are nothing that git reads objects from.
fn is_whole(path: &Path) -> std::io::Result<bool> {
    let ends_in_hash = ["pack", "idx", "rev"].iter().any(|end| path.extension().is_some_and(|found| found == *end))
        || path.file_name().is_some_and(|name| name == "multi-pack-index");
    if !ends_in_hash {
        return Ok(true);
    }
    let kind = gix::hash::Kind::Sha1;
    let mut file = File::open(path)?;
    let Some(mut left) = file.metadata()?.len().checked_sub(kind.len_in_bytes() as u64) else { return Ok(false) };
    let mut hasher = gix::hash::hasher(kind);
    let mut buffer = vec![0; 1 << 16];
    while left > 0 {
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        file.read_exact(&mut buffer[..wanted])?;
        hasher.update(&buffer[..wanted]);
        left -= wanted as u64;
    }
    let mut said = Vec::new();
    file.read_to_end(&mut said)?;
    Ok(hasher.try_finalize().is_ok_and(|id| id.as_bytes() == said))
}

impl Beside<'_> {
    /// How far the archive says that it has come.
    pub fn archived(&self) -> Number {
        self.archived
    }

    /// The next event of the store, with the chain's hash there.
    pub fn meet(&mut self, entry: &Entry, chain: &str, findings: &mut Findings) {
        if entry.number > self.archived {
            return;
        }
        // What was erased since is there as it was, and the next drain makes the archive anew without it.
        let is_pending = entry.erased.as_ref().is_some_and(|erased| erased.number > self.archived);
        for file in std::iter::once(entry.file()).chain(entry.readable()) {
            self.expected = self.expected.map(|count| count + 1);
            if !is_pending {
                self.same(entry.number, &file, findings);
            }
        }
        if let Some(gathered) = &mut self.gathered {
            gathered.push(entry.clone());
        }
        while let Some(commit) = self.shown.commits.get(self.commit).cloned() {
            match &commit.cursor {
                Some(cursor) if cursor.number > entry.number => return,
                Some(cursor) if cursor.number == entry.number => self.is_own(&commit, entry, chain, findings),
                _ => findings.archive(
                    PLACE,
                    Some(entry.number),
                    format!("commit {}, before the one with #{}, is not relay's", commit.id, entry.number),
                ),
            }
            self.next_commit();
        }
    }

    fn next_commit(&mut self) {
        self.commit += 1;
        self.gathered = Some(Vec::new());
    }

    /// An event that the store itself cannot give: nothing is said of its files here.
    pub fn pass(&mut self, number: Number) {
        (self.expected, self.gathered) = (None, None);
        let is_met = |commit: &Commit| commit.cursor.as_ref().is_some_and(|cursor| cursor.number <= number);
        while self.shown.commits.get(self.commit).is_some_and(is_met) {
            self.next_commit();
        }
    }

    fn same(&mut self, number: Number, expected: &Expected, findings: &mut Findings) {
        let what = match self.shown.file(&expected.path) {
            Ok(Some(bytes)) if bytes == expected.bytes => return,
            Ok(Some(_)) => format!("{} differs from the store", expected.path),
            Ok(None) => format!("{} is missing", expected.path),
            Err(refusal) => refusal.message.clone(),
        };
        findings.archive(PLACE, Some(number), what);
    }

    /// A commit that ends with this event says so in relay's own words.
    fn is_own(&self, commit: &Commit, last: &Entry, chain: &str, findings: &mut Findings) {
        let full = match self.shown.full(commit) {
            Ok(full) => full,
            Err(refusal) => return findings.archive(PLACE, Some(last.number), refusal.message.clone()),
        };
        let by = format!("{COMMITTER} {} +0000", committed_at(last));
        let said = self.gathered.as_ref().map(|gathered| message(gathered, chain));
        if commit.cursor.as_ref().is_none_or(|cursor| cursor.chain != chain) {
            findings.archive(
                PLACE,
                Some(last.number),
                format!("#{} is another event in commit {}", last.number, commit.id),
            );
        } else if said.is_some_and(|said| full.message != said) || full.committer != by || full.author != by {
            let what = format!("commit {}, up to #{}, is not as relay writes it", commit.id, last.number);
            findings.archive(PLACE, Some(last.number), what);
        }
    }

    /// After the last event of the store: nothing may be left over.
    pub fn finish(mut self, newest: Number, entry: impl Fn(Number) -> Option<Entry>, findings: &mut Findings) {
        if self.archived > newest {
            let how = format!("it goes to #{} and the store to #{newest}", self.archived);
            return findings.archive(PLACE, Some(self.archived), how);
        }
        if self.commit < self.shown.commits.len() {
            let commit = self.shown.commits[self.commit].id;
            findings.archive(PLACE, None, format!("commit {commit} does not follow the one before it"));
        }
        let mut found = 0;
        let counted = self.shown.walk(|_| {
            found += 1;
            Ok(())
        });
        if let Err(refusal) = counted {
            return findings.archive(PLACE, None, refusal.message.clone());
        }
        if self.expected.is_some_and(|expected| expected != found) {
            self.strangers(entry, findings);
        }
    }

    /// Names what no event gives.
    fn strangers(&mut self, entry: impl Fn(Number) -> Option<Entry>, findings: &mut Findings) {
        let archived = self.archived;
        let is_known = |path: &str| {
            let number = path.rsplit('/').next().and_then(|name| name.split('.').next()?.parse().ok());
            let entry = number.filter(|number| *number <= archived).and_then(&entry);
            entry.is_some_and(|entry| {
                entry.file().path == path || entry.readable().is_some_and(|readable| readable.path == path)
            })
        };
        let _ = self.shown.walk(|path| {
            if !is_known(path) {
                findings.archive(PLACE, None, format!("{path} is of no event"));
            }
            Ok(())
        });
    }
}
