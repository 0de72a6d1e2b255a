//! Questions to the person in charge that lie beside a store: where the store itself is the problem, or nobody may write to
//! it. One file a question, for people to read and to delete. Its name says the class, also where a full disk took no more
//! than that; where the store's folder takes nothing at all, it lies in the user's own folder, where a person looks.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use relay_core::domain::event::text_hash;
use relay_core::domain::time::Timestamp;
use relay_core::playbook::Escalation;

use crate::filesystem::private_file;

const PREFIX: &str = "for-the-human.";
const SUFFIX: &str = ".txt";

/// A question that nobody has taken away.
#[derive(Debug, Clone, PartialEq)]
pub struct Note {
    /// What names it: the class, and what tells its questions apart.
    pub case: String,
    pub text: String,
    pub path: PathBuf,
}

/// Where the questions about one store may lie: beside it, or for want of that in the user's own folder, under its name.
#[derive(Debug, Clone)]
pub struct Places {
    pub beside: PathBuf,
    pub elsewhere: PathBuf,
}

impl Places {
    fn all(&self) -> [(PathBuf, String); 2] {
        [(self.beside.clone(), PREFIX.to_owned()), (self.elsewhere.clone(), format!("relay-{}.{PREFIX}", self.name()))]
    }

    /// What tells this store from others of the same user, also those of another home.
    pub fn name(&self) -> String {
        let store = self.beside.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let home = self.beside.parent().unwrap_or(&self.beside).to_string_lossy();
        format!("{store}-{}", &text_hash(&[], &home).0[..8])
    }

    /// Puts a question there, once. None where nothing can be written.
    pub fn add(&self, escalation: &Escalation, at: Timestamp) -> Option<PathBuf> {
        let paths = self.all().map(|(folder, prefix)| folder.join(format!("{prefix}{}{SUFFIX}", escalation.case)));
        if let Some(path) = paths.iter().find(|path| is_ours(path)) {
            return Some(path.clone());
        }
        let text = format!("{}\n\nAsked {at}. Delete this file when it is settled.\n", escalation.question);
        paths.into_iter().find(|path| {
            // What somebody else has put there is not written to.
            let is_free = fs::symlink_metadata(path).is_err();
            let Some(mut file) = is_free.then(|| private_file(path).ok()).flatten() else { return false };
            // A full disk may have room for the name and not for the text.
            let _ = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
            is_ours(path)
        })
    }

    pub fn has(&self, case: &str) -> bool {
        self.all().iter().any(|(folder, prefix)| is_ours(&folder.join(format!("{prefix}{case}{SUFFIX}"))))
    }

    /// Every question that lies there, by name.
    pub fn notes(&self) -> Vec<Note> {
        let mut notes: Vec<Note> = self.all().iter().flat_map(|(folder, prefix)| in_folder(folder, prefix)).collect();
        notes.sort_by(|one, other| one.case.cmp(&other.case));
        notes
    }
}

/// What somebody else has put there says nothing.
fn is_ours(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.uid() == rustix::process::geteuid().as_raw())
}

fn in_folder(folder: &Path, prefix: &str) -> Vec<Note> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let path = entry.path();
            let case = path.file_name()?.to_str()?.strip_prefix(prefix)?.strip_suffix(SUFFIX)?.to_owned();
            let text = is_ours(&path).then(|| fs::read_to_string(&path).ok())??;
            Some(Note { case, text, path })
        })
        .collect()
}

impl Note {
    /// The error class that it is about.
    pub fn class(&self) -> &str {
        self.case.split('.').next().unwrap_or_default()
    }

    /// Takes away a question that is settled.
    pub fn remove(&self) -> std::io::Result<()> {
        match fs::remove_file(&self.path) {
            Err(fault) if fault.kind() != ErrorKind::NotFound => Err(fault),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_lies_there_once_until_it_is_taken_away() {
        let root = tempfile::tempdir().unwrap_or_else(|fault| panic!("{fault}"));
        let question = Escalation { case: "STORE_FULL.1".to_owned(), question: "Full?".to_owned(), beside: true };
        let now = Timestamp::from_millis(1_794_700_800_000);
        let check = |places: &Places, expected: &Path| {
            assert!(!places.has("STORE_FULL.1") && places.notes().is_empty());
            assert_eq!(places.add(&question, now).as_deref(), Some(expected));
            assert_eq!(places.add(&question, now).as_deref(), Some(expected));
            let notes = places.notes();
            assert!(places.has("STORE_FULL.1") && notes.len() == 1 && notes[0].text.starts_with("Full?\n"));
            assert!(notes[0].remove().and_then(|()| notes[0].remove()).is_ok());
            assert!(places.notes().is_empty());
        };
        let here = Places { beside: root.path().to_owned(), elsewhere: root.path().to_owned() };
        check(&here, &root.path().join("for-the-human.STORE_FULL.1.txt"));
        let gone = Places { beside: root.path().join("gone/store-1"), elsewhere: root.path().to_owned() };
        check(&gone, &root.path().join(format!("relay-{}.for-the-human.STORE_FULL.1.txt", gone.name())));
        let nowhere = Places { beside: root.path().join("gone"), elsewhere: root.path().join("gone") };
        assert_eq!(nowhere.add(&question, now), None);
    }
}
