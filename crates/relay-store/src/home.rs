//! `$RELAY_HOME`: one folder per project, and the project that each belongs to.

use std::cell::Cell;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use relay_core::domain::limits::Limits;
use relay_core::domain::name::ProjectKey;
use relay_core::error::{Code, Refusal};
use relay_core::store::{Bus, Result, Store};
use sha2::{Digest, Sha256};

use crate::filesystem::{io_refusal, private_file, private_folder, sync_folder};
use crate::sqlite::Sqlite;

#[derive(Debug, Clone)]
pub struct Home {
    root: PathBuf,
    limits: Limits,
    /// The time that stamps the first event of a new project.
    now: Cell<i64>,
}

impl Home {
    /// A root that is itself a link is the user's own choice and is followed; below it relay follows none.
    pub fn new(root: PathBuf, limits: Limits, now: i64) -> Self {
        let root = if root.is_symlink() { fs::canonicalize(&root).unwrap_or(root) } else { root };
        Home { root, limits, now: Cell::new(now) }
    }

    /// Refuses a place for somebody's file among the stores: it would take the place of one of relay's own.
    pub fn must_be_outside(&self, place: &Path) -> Result<()> {
        let folder = place.parent().unwrap_or(place);
        let resolved = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if !resolved(folder).starts_with(resolved(&self.root)) {
            return Ok(());
        }
        let text =
            format!("{} is among relay's own files; name a place outside of {}", place.display(), self.root.display());
        Err(Code::InputInvalid.refuse(text))
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// `<basename>-<8 hex of the key's SHA-256>`.
    pub fn folder(&self, project: &ProjectKey) -> PathBuf {
        let digest = relay_core::domain::event::hex(&Sha256::digest(project.as_str().as_bytes()));
        let basename: String = project
            .basename()
            .chars()
            .map(|c| if c.is_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '_' })
            .take(64)
            .collect();
        self.root.join(format!("{basename}-{}", &digest[..8]))
    }

    /// The store of a project, made if it is new.
    pub fn open_or_create(&self, project: &ProjectKey) -> Result<Sqlite> {
        private_folder(&self.root)?;
        let folder = self.folder(project);
        private_folder(&folder)?;
        let store = Sqlite::open(&folder, project, self.limits.gate_wait, self.now.get())?;
        name_project(&folder, project)?;
        Ok(store)
    }

    /// The store of a project that somebody has started in.
    pub fn open_existing(&self, project: &ProjectKey) -> Result<Option<Sqlite>> {
        let folder = self.folder(project);
        if !Sqlite::exists(&folder)? {
            return Ok(None);
        }
        private_folder(&folder)?;
        let store = Sqlite::open(&folder, project, self.limits.gate_wait, self.now.get())?;
        name_project(&folder, project)?;
        Ok(Some(store))
    }

    /// The folder of a project that has a history, also where its store is lost.
    pub fn known(&self, project: &ProjectKey) -> Result<Option<PathBuf>> {
        let folder = self.folder(project);
        if !Sqlite::exists(&folder)? {
            return Ok(None);
        }
        private_folder(&folder)?;
        Ok(Some(folder))
    }

    /// Every project on this bus and its folder, by key.
    pub fn projects(&self) -> Result<Vec<(ProjectKey, PathBuf)>> {
        let entries = match fs::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(fault) => return Err(io_refusal(&self.root, &fault)),
        };
        let mut projects: Vec<(ProjectKey, PathBuf)> = entries
            .filter_map(std::result::Result::ok)
            .filter_map(|entry| {
                Some((ProjectKey::resolved(fs::read_to_string(entry.path().join("project")).ok()?), entry.path()))
            })
            .collect();
        projects.sort();
        Ok(projects)
    }

    /// The same with the name of each folder, for those who name a project by it. A folder that is another's by its name is
    /// left out: whoever opened it by that name would come to the other one.
    pub fn places(&self) -> Result<Vec<(ProjectKey, String)>> {
        let place = |(key, folder): (ProjectKey, PathBuf)| {
            let name = folder.file_name()?.to_str()?.to_owned();
            (self.folder(&key) == self.root.join(&name)).then_some((key, name))
        };
        Ok(self.projects()?.into_iter().filter_map(place).collect())
    }

    /// The projects that had such a path before they were moved.
    pub fn moved_from(&self, is_meant: impl Fn(&str) -> bool) -> Result<Vec<ProjectKey>> {
        let had = |folder: &Path| former_paths(folder).iter().any(|path| is_meant(path));
        Ok(self.projects()?.into_iter().filter(|(_, folder)| had(folder)).map(|(key, _)| key).collect())
    }

    /// The refusal of whoever comes to a project in which nobody has started.
    pub fn nobody_in(&self, project: &ProjectKey, named: Option<&str>) -> Refusal {
        let moved = self.moved_from(|path| path == project.as_str()).unwrap_or_default();
        let moved: String = moved.iter().map(|now| format!("; the project that was here is now {now}")).collect();
        let refusal = Code::AgentNotRegistered.refuse(format!("nobody has started in {project} yet{moved}"));
        match named {
            Some(name) => refusal.with("name", name),
            None => refusal,
        }
    }

    /// Follows a repository that was moved: the history goes on under the new path.
    pub fn move_project(&self, old: &ProjectKey, new: &ProjectKey) -> Result<()> {
        let (from, to) = (self.folder(old), self.folder(new));
        // Somebody who died after the folder had moved is asked to do so again.
        if !Sqlite::exists(&from)? && former_paths(&to).last().is_some_and(|last| last == old.as_str()) {
            return write_name(&to, new);
        }
        if !Sqlite::exists(&from)? {
            return Err(Code::ProjectKeyInvalid
                .refuse(format!("relay knows no project {old}"))
                .with("path", old.as_str()));
        }
        if to.exists() {
            return Err(Code::ProjectKeyInvalid
                .refuse(format!("{new} has a history of its own already"))
                .with("path", new.as_str()));
        }
        let store = Sqlite::open(&from, old, self.limits.gate_wait, self.now.get())?;
        store.note_move(old, new, self.now.get())?;
        drop(store);
        Sqlite::while_still(&from, "move", self.limits.gate_wait, || {
            write_file(&from, "formerly", &[former_paths(&from), vec![old.to_string()]].concat().join("\n"))?;
            fs::rename(&from, &to).map_err(|fault| io_refusal(&to, &fault))?;
            sync_folder(&self.root)?;
            point!("move-after-rename", StoreIo);
            // Last: whoever dies before is found under the new path, and the next command there writes the name.
            write_name(&to, new)
        })
    }
}

/// The paths that a project had before.
pub(crate) fn former_paths(folder: &Path) -> Vec<String> {
    fs::read_to_string(folder.join("formerly")).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// The folder says which project it belongs to, for those who list projects.
pub(crate) fn name_project(folder: &Path, project: &ProjectKey) -> Result<()> {
    // A name without a letter in it is what a power cut can leave of one, and another name what a move can.
    if fs::read_to_string(folder.join("project")).is_ok_and(|name| name == project.as_str()) {
        return Ok(());
    }
    write_name(folder, project)?;
    // The folder is as new as its name.
    folder.parent().map_or(Ok(()), sync_folder)
}

fn write_name(folder: &Path, project: &ProjectKey) -> Result<()> {
    write_file(folder, "project", project.as_str())
}

/// Writes a file that is there with all of its text or not at all, also after a power cut.
fn write_file(folder: &Path, name: &str, text: &str) -> Result<()> {
    let (path, fresh) = (folder.join(name), folder.join(format!("{name}.{}", std::process::id())));
    let written = private_file(&fresh)
        .and_then(|mut file| {
            file.set_len(0)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&fresh, &path));
    written.map_err(|fault| io_refusal(&path, &fault))?;
    sync_folder(folder)
}

impl Bus for Home {
    fn open(&self, project: &ProjectKey) -> Result<Option<(ProjectKey, Box<dyn Store>)>> {
        let boxed = |key: &ProjectKey, store: Sqlite| (key.clone(), Box::new(store) as Box<dyn Store>);
        if let Some(store) = self.open_existing(project)? {
            return Ok(Some(boxed(project, store)));
        }
        match self.moved_from(|path| path == project.as_str())?.as_slice() {
            [now] => Ok(self.open_existing(now)?.map(|store| boxed(now, store))),
            _ => Ok(None),
        }
    }

    fn find(&self, text: &str) -> Result<Vec<ProjectKey>> {
        let resolved = crate::repository::resolve(Path::new(text)).ok();
        let wanted = resolved.as_ref().map_or(text, ProjectKey::as_str);
        let is_meant = |path: &str| {
            if text.starts_with('/') { path == wanted } else { ProjectKey::resolved(path).basename() == text }
        };
        let known: Vec<ProjectKey> =
            self.projects()?.into_iter().map(|(key, _)| key).filter(|key| is_meant(key.as_str())).collect();
        if known.is_empty() { self.moved_from(is_meant) } else { Ok(known) }
    }
}
