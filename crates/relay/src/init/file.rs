//! One file of somebody else's: found without being led out of the project, read as text, and replaced in one step.

use std::ffi::OsStr;
use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Component, Path, PathBuf};

use relay_core::error::{Kind, Refusal};
use relay_store::fresh::Fresh;
use relay_store::repository;

/// Why nothing was done with a file, as the end of a sentence, and what sort of trouble that is.
#[derive(Debug, Clone, PartialEq)]
pub struct Trouble {
    pub why: String,
    pub kind: Kind,
}

impl Trouble {
    pub fn input(why: impl Into<String>) -> Self {
        Trouble { why: why.into(), kind: Kind::Input }
    }

    fn disk(why: impl Into<String>) -> Self {
        Trouble { why: why.into(), kind: Kind::Busy }
    }
}

impl From<Refusal> for Trouble {
    fn from(refusal: Refusal) -> Self {
        Trouble { why: format!("cannot be written: {}", refusal.message), kind: refusal.code.kind() }
    }
}

/// A file as it was found.
#[derive(Debug)]
pub struct Found {
    /// Where it really is, behind links.
    place: PathBuf,
    root: PathBuf,
    /// What is in it; nothing where there is no such file.
    pub text: Option<String>,
    mode: u32,
}

impl Found {
    /// A link is followed as long as it stays in the project.
    pub fn at(root: &Path, path: &str) -> Result<Self, Trouble> {
        let place = inside(root, &root.join(path))?;
        let text = match fs::read(&place) {
            Ok(bytes) => Some(String::from_utf8(bytes).map_err(|_| Trouble::input("is no text in UTF-8"))?),
            Err(fault) if fault.kind() == ErrorKind::NotFound => None,
            Err(fault) => return Err(Trouble::disk(format!("cannot be read: {fault}"))),
        };
        let mode = fs::metadata(&place).map_or(0, |metadata| metadata.permissions().mode() & 0o7777);
        Ok(Found { place, root: root.to_owned(), text, mode })
    }

    /// Replaces what is in it, in one step where nothing but the text is another then.
    pub fn write(&self, text: &str) -> Result<(), Trouble> {
        self.may_change()?;
        let unwritten = |fault: std::io::Error| Trouble::disk(format!("cannot be written: {fault}"));
        let mut fresh = match self.text {
            Some(_) => Fresh::beside(&self.place, true)?,
            None => Fresh::ordinary(&self.place)?,
        };
        if self.text.is_some() && !self.is_taken_after_by(fresh.file()) {
            self.must_be_as_found()?;
            return self.write_over(text).map_err(unwritten);
        }
        fresh.file().write_all(text.as_bytes()).map_err(unwritten)?;
        self.must_be_as_found()?;
        Ok(fresh.publish()?)
    }

    /// Gives another file its owner and its mode. That is not enough where it has other names, which would keep the old text.
    fn is_taken_after_by(&self, other: &fs::File) -> bool {
        let Ok(metadata) = fs::metadata(&self.place) else { return false };
        let (user, group) = (Some(metadata.uid()), Some(metadata.gid()));
        metadata.nlink() == 1
            && fchown(other, user, group).is_ok()
            && other.set_permissions(fs::Permissions::from_mode(self.mode)).is_ok()
    }

    /// What was there is among relay's copies, where it breaks off.
    fn write_over(&self, text: &str) -> std::io::Result<()> {
        let mut file = fs::OpenOptions::new().write(true).truncate(true).open(&self.place)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    }

    pub fn delete(&self) -> Result<(), Trouble> {
        self.may_change()?;
        self.must_be_as_found()?;
        fs::remove_file(&self.place).map_err(|fault| Trouble::disk(format!("cannot be deleted: {fault}")))
    }

    /// As it was found, whatever has become of it.
    pub fn put_back(&self) -> Result<(), Trouble> {
        let result = match &self.text {
            Some(text) => fs::write(&self.place, text),
            None => fs::remove_file(&self.place),
        };
        result.map_err(|fault| Trouble::disk(format!("cannot be put back as it was: {fault}")))
    }

    /// What is in it now.
    pub fn now(&self) -> Option<String> {
        fs::read_to_string(&self.place).ok()
    }

    /// Whoever took away the right to write meant it, whatever the folder allows.
    fn may_change(&self) -> Result<(), Trouble> {
        let is_closed = self.text.is_some() && self.mode & 0o222 == 0;
        if is_closed { Err(Trouble::disk("is read-only")) } else { Ok(()) }
    }

    fn must_be_as_found(&self) -> Result<(), Trouble> {
        let is_same = self.now() == self.text;
        if is_same { Ok(()) } else { Err(Trouble::disk("was changed by somebody else just now; run it again")) }
    }

    /// The folders that it needs and that are not there, from the root of the project, the outer ones first.
    pub fn missing_folders(&self) -> Vec<String> {
        let missing = self.place.ancestors().skip(1).take_while(|folder| !folder.exists());
        let below = missing.filter_map(|folder| folder.strip_prefix(&self.root).ok());
        let mut names: Vec<String> = below.map(|folder| folder.to_string_lossy().into_owned()).collect();
        names.reverse();
        names
    }

    pub fn make_folders(&self, names: &[String]) -> Result<(), Trouble> {
        names.iter().try_for_each(|name| {
            fs::create_dir(self.root.join(name))
                .map_err(|fault| Trouble::disk(format!("has no folder, and none can be made: {fault}")))
        })
    }
}

/// Whether a path from the root is one that relay could have written: it stays below the root, and out of git's folder.
pub fn is_below(path: &str) -> bool {
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(name) if !is_gits(name));
    !path.is_empty() && Path::new(path).components().all(is_plain)
}

/// Not every file system tells large letters from small ones.
fn is_gits(name: &OsStr) -> bool {
    name.eq_ignore_ascii_case(".git")
}

/// Where a path leads, which must be a file or nothing, in the project and not in git's folder: what stands there is run.
fn inside(root: &Path, path: &Path) -> Result<PathBuf, Trouble> {
    let place = in_project(root, path)?;
    let below = place.strip_prefix(root).unwrap_or(&place);
    let is_git =
        |folder: &&Path| folder.file_name().is_some_and(is_gits) || repository::is_bare_repository(&root.join(folder));
    match below.ancestors().filter(|folder| !folder.as_os_str().is_empty()).find(is_git) {
        Some(folder) => Err(Trouble::input(format!(
            "leads into {}, which is git's, and relay writes nothing there",
            folder.display()
        ))),
        None => Ok(place),
    }
}

fn in_project(root: &Path, path: &Path) -> Result<PathBuf, Trouble> {
    let leads_out = || Trouble::input("leads out of the project, and relay writes nothing there");
    if fs::symlink_metadata(path).is_ok() {
        let place =
            fs::canonicalize(path).map_err(|fault| Trouble::input(format!("is a link that leads nowhere: {fault}")))?;
        return match place.is_file() {
            _ if !place.starts_with(root) => Err(leads_out()),
            true => Ok(place),
            false => Err(Trouble::input("is no file")),
        };
    }
    let above = path.ancestors().skip(1).find(|folder| fs::symlink_metadata(folder).is_ok()).unwrap_or(root);
    let real = fs::canonicalize(above)
        .map_err(|fault| Trouble::input(format!("is behind a link that leads nowhere: {fault}")))?;
    let rest = path.strip_prefix(above).map_err(|_| leads_out())?;
    match real.is_dir() {
        _ if !real.starts_with(root) => Err(leads_out()),
        true => Ok(real.join(rest)),
        false => Err(Trouble::input(format!("cannot be made: {} is no folder", above.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_relay_could_not_have_written_is_told() {
        for path in [".mcp.json", ".claude/skills/relay/SKILL.md", ".github/hooks/relay.json", ".gitignore"] {
            assert!(is_below(path), "{path}");
        }
        for path in ["", "/etc/passwd", "../a", "a/../../b", ".git/config", ".GIT/hooks/x", "sub/.git/config", "./.git"]
        {
            assert!(!is_below(path), "{path}");
        }
    }

    #[test]
    fn nothing_is_found_in_gits_folder_whatever_it_is_called() {
        let folder = tempfile::tempdir().unwrap_or_else(|fault| panic!("{fault}"));
        let root = fs::canonicalize(folder.path()).unwrap_or_else(|fault| panic!("{fault}"));
        for git in [".git", "apart"] {
            assert!(fs::create_dir_all(root.join(git).join("objects")).is_ok());
            assert!(fs::create_dir_all(root.join(git).join("refs")).is_ok());
            assert!(fs::write(root.join(git).join("HEAD"), "ref: refs/heads/main\n").is_ok());
            for path in [format!("{git}/HEAD"), format!("{git}/hooks/pre-commit")] {
                let trouble = Found::at(&root, &path).err().unwrap_or_else(|| panic!("{path} was taken"));
                assert!(trouble.why.contains(&format!("leads into {git}, which is git's")), "{}", trouble.why);
            }
        }
        assert!(Found::at(&root, ".gitattributes").is_ok());
    }
}
