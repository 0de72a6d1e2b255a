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

/// Tells relay's half-made files from those of others.
const MARK: &str = "relay-";

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
        Fresh::made(place, replaces, private)
    }

    /// The same for a file that is as open as the umask makes it, in a place where there is none.
    pub fn ordinary(place: &Path) -> Result<Self> {
        Fresh::made(place, false, |path| OpenOptions::new().read(true).write(true).create_new(true).open(path))
    }

    fn made(place: &Path, replaces: bool, create: impl Fn(&Path) -> io::Result<File>) -> Result<Self> {
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
        sweep(folder);
        let path = folder.join(format!(".{}.{MARK}{}.part", name.to_string_lossy(), std::process::id()));
        // Only a process that had our number and died can have left it.
        let _ = fs::remove_file(&path);
        let file = create(&path).map_err(|fault| io_refusal(&path, &fault))?;
        // Where the file system knows no locks, the number of the process has to do.
        let _ = file.try_lock();
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

/// Removes what others left here that were killed: neither does anybody hold it, nor is there a process of its number.
fn sweep(folder: &Path) {
    for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|file| file.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_file = fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_file());
        let is_left = is_file && maker(&name).is_some_and(|pid| !lives(pid));
        if is_left && File::open(&path).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = fs::remove_file(&path);
        }
    }
}

/// Which process a half-made file is of, where it is one of relay's.
fn maker(name: &str) -> Option<u32> {
    let (_, number) = name.strip_prefix('.')?.strip_suffix(".part")?.rsplit_once('.')?;
    number.strip_prefix(MARK)?.parse().ok()
}

fn private(path: &Path) -> io::Result<File> {
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
    fn what_the_dead_left_is_swept_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap_or_else(|fault| panic!("{fault}"));
        let path = |name: &str| folder.path().join(name);
        // No process has a number as high as this.
        let living = format!(".a.db.relay-{}.part", std::process::id());
        let others = [".a.db.2000000000.part", "a.db.relay-2000000000.part", ".relay-.part", &living];
        let held = ".held.db.relay-2000000000.part";
        for name in others.iter().chain([&held, &".a.db.relay-2000000000.part", &".b.relay-1999999999.part"]) {
            assert!(fs::write(path(name), "half").is_ok());
        }
        let lock = File::open(path(held)).unwrap_or_else(|fault| panic!("{fault}"));
        assert!(lock.try_lock().is_ok());
        drop(Fresh::beside(&path("new.db"), false));
        let mut left: Vec<String> = fs::read_dir(folder.path())
            .map(|files| files.flatten().filter_map(|file| file.file_name().into_string().ok()).collect())
            .unwrap_or_default();
        left.sort();
        let mut expected: Vec<&str> = others.into_iter().chain([held]).collect();
        expected.sort_unstable();
        assert_eq!(left, expected);
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
