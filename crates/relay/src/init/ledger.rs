//! What was set up, for taking it out again: per file, what it was before and what relay left there. It lies in relay's
//! folder of the project, with a copy of every file as it was before relay changed it, under the name of its hash.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use relay_core::domain::event::hex;
use relay_core::error::Code;
use relay_core::store::Result;
use relay_store::filesystem::{io_refusal, private_file, private_folder_below};
use relay_store::fresh::Fresh;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::agents::Agent;
use super::file::is_below;

#[derive(Debug)]
pub struct Ledger {
    folder: PathBuf,
    /// Which work tree this is about: nothing for the main one, so that a project which moves keeps it.
    tree: Option<String>,
    manifest: Manifest,
    _lock: Option<File>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Manifest {
    files: Vec<Entry>,
    /// Folders that relay made.
    folders: BTreeSet<(Option<String>, String)>,
}

impl Manifest {
    fn believed(mut self) -> Self {
        self.files.retain(|entry| is_below(&entry.path));
        self.folders.retain(|(_, folder)| is_below(folder));
        self
    }
}

/// One file that relay has a part in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    tree: Option<String>,
    path: String,
    /// The agents that it is there for.
    pub agents: BTreeSet<Agent>,
    /// The hash of what was there before relay came; nothing where there was no file.
    pub before: Option<String>,
    /// The hash of what relay left.
    pub after: String,
    /// Whether what was there before is what to go back to: not where somebody else's edits came in between.
    pub exact: bool,
}

impl Entry {
    /// Whether there was no file before relay came, or none without relay's part in it.
    pub fn was_made_by_relay(&self) -> bool {
        self.before.as_ref().is_none_or(|before| *before == self.after)
    }
}

pub fn hash(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

impl Ledger {
    /// The ledger as it is, for those who change nothing.
    pub fn read(folder: &Path, tree: Option<&Path>) -> Result<Self> {
        let folder = folder.join("init");
        let tree = tree.map(|tree| tree.to_string_lossy().into_owned());
        Ok(Ledger { tree, manifest: manifest(&folder)?, folder, _lock: None })
    }

    /// The same for the one who writes, alone.
    pub fn open(folder: &Path, tree: Option<&Path>) -> Result<Self> {
        let inner = folder.join("init");
        private_folder_below(folder, &inner)?;
        let path = inner.join("lock");
        let lock = private_file(&path).map_err(|fault| io_refusal(&path, &fault))?;
        lock.lock().map_err(|fault| io_refusal(&path, &fault))?;
        Ok(Ledger { _lock: Some(lock), ..Ledger::read(folder, tree)? })
    }

    pub fn entry(&self, path: &str) -> Option<&Entry> {
        self.manifest.files.iter().find(|entry| entry.tree == self.tree && entry.path == path)
    }

    /// The files of this work tree that relay has a part in, and for whom.
    pub fn files(&self) -> Vec<(String, BTreeSet<Agent>)> {
        let here = self.manifest.files.iter().filter(|entry| entry.tree == self.tree);
        here.map(|entry| (entry.path.clone(), entry.agents.clone())).collect()
    }

    /// Takes note of what is about to be written, with a copy of what is there.
    pub fn will_write(
        &mut self,
        path: &str,
        agents: &BTreeSet<Agent>,
        before: Option<&str>,
        after: &str,
    ) -> Result<()> {
        if let Some(text) = before {
            self.keep(text)?;
        }
        let found = before.map(hash);
        let mut entry = match self.entry(path).cloned() {
            // As relay left it: what was there before relay came stays what to go back to.
            Some(entry) if found.as_ref() == Some(&entry.after) => entry,
            // Somebody has put it back, or deleted it: relay comes anew.
            Some(entry) if found.is_none() || found == entry.before => self.new_entry(path, found, true),
            Some(entry) => Entry { exact: false, ..entry },
            None => self.new_entry(path, found, true),
        };
        entry.after = hash(after);
        self.note(entry, agents)
    }

    /// Takes note of a file that has relay's part already, however that came.
    pub fn is_there(&mut self, path: &str, agents: &BTreeSet<Agent>, text: &str) -> Result<()> {
        let found = Some(hash(text));
        let entry = self.entry(path).cloned();
        if entry.as_ref().is_some_and(|entry| agents.is_subset(&entry.agents)) {
            return Ok(());
        }
        let entry = entry.unwrap_or_else(|| Entry { after: hash(text), ..self.new_entry(path, found, false) });
        self.note(entry, agents)
    }

    /// These agents no longer need it; who still does.
    pub fn no_longer_for(&mut self, path: &str, agents: &[Agent]) -> Result<BTreeSet<Agent>> {
        let Some(mut entry) = self.entry(path).cloned() else { return Ok(BTreeSet::new()) };
        entry.agents.retain(|agent| !agents.contains(agent));
        let left = entry.agents.clone();
        if !left.is_empty() {
            self.note(entry, &BTreeSet::new())?;
        }
        Ok(left)
    }

    /// What was noted is not so after all.
    pub fn go_back(&mut self, path: &str, entry: Option<Entry>) -> Result<()> {
        match entry {
            Some(entry) => self.note(entry, &BTreeSet::new()),
            None => self.forget(path),
        }
    }

    pub fn forget(&mut self, path: &str) -> Result<()> {
        self.manifest.files.retain(|entry| !(entry.tree == self.tree && entry.path == path));
        self.save()
    }

    /// Takes note of folders that are about to be made.
    pub fn will_make(&mut self, folders: &[String]) -> Result<()> {
        if folders.is_empty() {
            return Ok(());
        }
        self.manifest.folders.extend(folders.iter().map(|folder| (self.tree.clone(), folder.clone())));
        self.save()
    }

    /// Folders that relay made go when nothing is in them any more.
    pub fn remove_folders(&mut self, root: &Path) -> Result<()> {
        let mut here: Vec<String> = self
            .manifest
            .folders
            .iter()
            .filter(|(tree, _)| *tree == self.tree)
            .map(|(_, folder)| folder.clone())
            .collect();
        // The inner ones first.
        here.sort_by_key(|folder| std::cmp::Reverse(folder.matches('/').count()));
        for folder in here {
            let path = root.join(&folder);
            let is_here = fs::canonicalize(&path).is_ok_and(|real| real == path);
            if (is_here && fs::remove_dir(&path).is_ok()) || !path.exists() {
                self.manifest.folders.remove(&(self.tree.clone(), folder));
            }
        }
        self.save()
    }

    /// Where the copy of a text is.
    pub fn place_of(&self, hash_before: &str) -> PathBuf {
        self.folder.join(hash_before)
    }

    /// A file as it was before relay came.
    pub fn copy(&self, hash_before: &str) -> Result<String> {
        let path = self.place_of(hash_before);
        let text = fs::read_to_string(&path).map_err(|fault| io_refusal(&path, &fault))?;
        if hash(&text) == hash_before {
            return Ok(text);
        }
        Err(Code::StoreIo
            .refuse(format!("{} is not what relay put there", path.display()))
            .with("path", path.to_string_lossy()))
    }

    fn new_entry(&self, path: &str, before: Option<String>, exact: bool) -> Entry {
        let (tree, path) = (self.tree.clone(), path.to_owned());
        Entry { tree, path, agents: BTreeSet::new(), before, after: String::new(), exact }
    }

    fn note(&mut self, mut entry: Entry, agents: &BTreeSet<Agent>) -> Result<()> {
        entry.agents.extend(agents);
        self.manifest.files.retain(|other| (&other.tree, &other.path) != (&entry.tree, &entry.path));
        self.manifest.files.push(entry);
        self.save()
    }

    /// Keeps a copy of a text that is about to be replaced.
    pub fn keep(&self, text: &str) -> Result<()> {
        let path = self.folder.join(hash(text));
        if path.exists() { Ok(()) } else { write(&path, text) }
    }

    fn save(&self) -> Result<()> {
        let text =
            serde_json::to_string_pretty(&self.manifest).map_err(|fault| Code::Internal.refuse(fault.to_string()))?;
        write(&self.folder.join("manifest.json"), &format!("{text}\n"))
    }
}

/// Others can write it: a sandboxed agent, for one. So it is not believed of any path that relay could not have written.
fn manifest(folder: &Path) -> Result<Manifest> {
    let path = folder.join("manifest.json");
    match fs::read_to_string(&path) {
        Ok(text) => serde_json::from_str(&text).map(Manifest::believed).map_err(|fault| {
            let text = format!(
                "{} cannot be read: {fault}; move it away, and `relay init --remove` takes out what it finds",
                path.display()
            );
            Code::StoreIo.refuse(text).with("path", path.to_string_lossy())
        }),
        Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => Ok(Manifest::default()),
        Err(fault) => Err(io_refusal(&path, &fault)),
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    let mut fresh = Fresh::beside(path, true)?;
    fresh.file().write_all(text.as_bytes()).map_err(|fault| io_refusal(path, &fault))?;
    fresh.publish()
}
