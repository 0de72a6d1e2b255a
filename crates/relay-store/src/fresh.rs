//! A file that a person asked for: made beside its place, private, and put there when it is whole.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use relay_core::error::Code;
use relay_core::store::Result;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::filesystem::{io_refusal, sync_folder};
use crate::presence::lives;

/// Removed when it is dropped before it was published.
#[derive(Debug)]
pub struct Fresh {
    path: PathBuf,
    place: PathBuf,
    file: File,
    replaces: bool,
}

impl Fresh {
    /// Refuses a place that is taken, unless what is there may be replaced and is a file.
    pub fn beside(place: &Path, replaces: bool) -> Result<Self> {
        let refuse = |why: &str| {
            Code::InputInvalid.refuse(format!("{} {why}", place.display())).with("path", place.to_string_lossy())
        };
        let Some(name) = place.file_name() else { return Err(refuse("names no file")) };
        match fs::symlink_metadata(place) {
            Ok(metadata) if !metadata.is_file() => return Err(refuse("is there already, and is no file")),
            Ok(_) if !replaces => return Err(refuse("is there already; --force replaces it")),
            _ => {}
        }
        let folder = folder_of(place);
        if !folder.is_dir() {
            return Err(refuse(&format!("cannot be made: there is no folder {}", folder.display())));
        }
        sweep(folder, &name.to_string_lossy());
        let path = folder.join(format!(".{}.{}.part", name.to_string_lossy(), std::process::id()));
        let file = create(&path).map_err(|fault| io_refusal(&path, &fault))?;
        Ok(Fresh { path, place: place.to_owned(), file, replaces })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Makes it durable and puts it in its place. Somebody else's file that came there meanwhile is not replaced.
    pub fn publish(self) -> Result<()> {
        self.file.sync_all().map_err(|fault| io_refusal(&self.place, &fault))?;
        if self.replaces {
            fs::rename(&self.path, &self.place)
        } else {
            match renameat_with(CWD, &self.path, CWD, &self.place, RenameFlags::NOREPLACE) {
                // Not every file system can tell in one step.
                Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                    fs::hard_link(&self.path, &self.place).and_then(|()| fs::remove_file(&self.path))
                }
                renamed => renamed.map_err(io::Error::from),
            }
        }
        .map_err(|fault| io_refusal(&self.place, &fault))?;
        sync_folder(folder_of(&self.place))
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Removes what processes that died have left of this name. Only one that had our own number can have left ours.
fn sweep(folder: &Path, name: &str) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let file = entry.file_name();
        let pid = file.to_str().and_then(|file| {
            file.strip_prefix('.')?.strip_prefix(name)?.strip_prefix('.')?.strip_suffix(".part")?.parse::<u32>().ok()
        });
        if pid.is_some_and(|pid| pid == std::process::id() || !lives(pid)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn create(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    Ok(file)
}

fn folder_of(place: &Path) -> &Path {
    place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn check(folder: &Path, name: &str, replaces: bool, expected: std::result::Result<(), Code>) {
        let made = Fresh::beside(&folder.join(name), replaces).and_then(|mut fresh| {
            fresh.file().write_all(b"new").unwrap_or_else(|fault| panic!("{fault}"));
            fresh.publish()
        });
        assert_eq!(made.map_err(|refusal| refusal.code), expected, "{name} {replaces}");
        let left = fs::read_dir(folder).map_or(0, |entries| {
            entries.flatten().filter(|entry| entry.file_name().to_string_lossy().ends_with(".part")).count()
        });
        assert_eq!(left, 0, "{name} {replaces}");
    }

    #[test]
    fn a_place_that_is_taken_is_left_alone_unless_asked() {
        let folder = tempfile::tempdir().unwrap_or_else(|fault| panic!("{fault}"));
        let path = folder.path();
        assert!(fs::write(path.join("taken"), "old").is_ok() && fs::create_dir(path.join("folder")).is_ok());
        assert!(std::os::unix::fs::symlink(path.join("taken"), path.join("link")).is_ok());
        check(path, "new", false, Ok(()));
        check(path, "taken", false, Err(Code::InputInvalid));
        assert_eq!(fs::read_to_string(path.join("taken")).ok().as_deref(), Some("old"));
        check(path, "taken", true, Ok(()));
        assert_eq!(fs::read_to_string(path.join("taken")).ok().as_deref(), Some("new"));
        check(path, "folder", true, Err(Code::InputInvalid));
        check(path, "link", true, Err(Code::InputInvalid));
        check(path, "missing/new", false, Err(Code::InputInvalid));
        check(path, "..", true, Err(Code::InputInvalid));
        let mode = fs::metadata(path.join("new")).map(|metadata| metadata.permissions().mode() & 0o777);
        assert_eq!(mode.ok(), Some(0o600));
    }

    #[test]
    fn what_the_dead_have_left_is_swept_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap_or_else(|fault| panic!("{fault}"));
        let mut child = std::process::Command::new("true").spawn().unwrap_or_else(|fault| panic!("{fault}"));
        assert!(child.wait().is_ok());
        let (dead, own, alive) = (child.id(), std::process::id(), std::os::unix::process::parent_id());
        let kept = [
            format!(".place.{alive}.part"),
            format!(".placed.{dead}.part"),
            format!(".place.{dead}.party"),
            ".place.x.part".to_owned(),
        ];
        let swept = [format!(".place.{dead}.part"), format!(".place.{own}.part")];
        for name in kept.iter().chain(&swept) {
            assert!(fs::write(folder.path().join(name), "left").is_ok());
        }
        let fresh = Fresh::beside(&folder.path().join("place"), false).unwrap_or_else(|refusal| panic!("{refusal}"));
        assert!(fresh.publish().is_ok());
        let left = |name: &String| folder.path().join(name).exists();
        assert_eq!((kept.iter().all(left), swept.iter().any(left)), (true, false));
    }

    #[test]
    fn what_came_meanwhile_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap_or_else(|fault| panic!("{fault}"));
        let place = folder.path().join("place");
        let fresh = Fresh::beside(&place, false).unwrap_or_else(|refusal| panic!("{refusal}"));
        assert!(fs::write(&place, "somebody else's").is_ok());
        assert!(fresh.publish().is_err());
        assert_eq!(fs::read_to_string(&place).ok().as_deref(), Some("somebody else's"));
    }
}
