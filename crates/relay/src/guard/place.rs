//! The place of one hook: what is in it now.

use std::io::Read;
use std::path::{Path, PathBuf};

use relay_core::store::Result;

use super::Hook;
use super::call::is_called_in;
use super::install::unwritable;
use super::script::{Author, BEFORE, author};

/// More of a hook is not looked at.
const MOST: u64 = 1024 * 1024;

#[derive(Debug)]
pub struct Place {
    pub hook: Hook,
    pub path: PathBuf,
    /// Where what was there before is kept.
    pub before: PathBuf,
    pub found: Found,
    /// git runs what is there.
    pub is_run: bool,
}

#[derive(Debug)]
pub enum Found {
    Nothing,
    Relays {
        text: Vec<u8>,
        made_folder: bool,
    },
    /// relay's, with somebody else's changes.
    Changed,
    Foreign(Vec<u8>),
    /// Somebody else's, and it calls the guard itself.
    Calls,
    /// A folder, or something else that is no file.
    Strange,
}

impl Place {
    pub fn of(folder: &Path, hook: Hook) -> Result<Self> {
        let path = folder.join(hook.as_str());
        let before = folder.join(format!("{}{BEFORE}", hook.as_str()));
        let found = found(&path, hook)?;
        let is_run = rustix::fs::access(&path, rustix::fs::Access::EXEC_OK).is_ok();
        Ok(Place { hook, path, before, found, is_run })
    }

    pub fn both(folder: &Path) -> Result<[Place; 2]> {
        let [first, second] = Hook::ALL;
        Ok([Place::of(folder, first)?, Place::of(folder, second)?])
    }

    pub fn has_before(&self) -> bool {
        std::fs::symlink_metadata(&self.before).is_ok()
    }

    /// What was there before is there again under its own name as well: an installation was cut off between its two steps.
    pub fn is_before(&self) -> bool {
        use std::os::unix::fs::MetadataExt;
        let id = |path: &Path| std::fs::symlink_metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()));
        let here = id(&self.path);
        here.is_some() && here == id(&self.before)
    }
}

fn found(path: &Path, hook: Hook) -> Result<Found> {
    let Ok(link) = std::fs::symlink_metadata(path) else { return Ok(Found::Nothing) };
    match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => return Ok(Found::Strange),
        // A link to nothing is somebody's all the same.
        Err(_) => return Ok(Found::Foreign(Vec::new())),
        Ok(_) => {}
    }
    let mut text = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(MOST).read_to_end(&mut text));
    read.map_err(|fault| unwritable(path, &fault))?;
    Ok(match author(&text) {
        // relay makes no links, so one that leads to a text of relay's is somebody else's.
        Author::Relay { made_folder } if !link.is_symlink() => Found::Relays { text, made_folder },
        Author::Both => Found::Changed,
        Author::Another if is_called_in(&text, hook) => Found::Calls,
        _ => Found::Foreign(text),
    })
}
