//! The files that make a folder a repository: where its parts are, and what its own configuration says. Only files are
//! read, never waited for, and no more of them than can be meant.

use std::fs::{self, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A file that says where another part of a repository is holds one path.
pub(super) const MOST_PATH: u64 = 64 * 1024;

/// A configuration may list thousands of branches.
pub(super) const MOST_CONFIG: u64 = 4 * 1024 * 1024;

/// The git folder behind a working tree: its own part and the part that its worktrees share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GitFolder {
    pub common: PathBuf,
    pub own: PathBuf,
}

/// What `.git` in this folder leads to.
pub(crate) fn git_folder(folder: &Path) -> Option<GitFolder> {
    let dot_git = folder.join(".git");
    let metadata = fs::metadata(&dot_git).ok()?;
    let own = if metadata.is_dir() { dot_git } else { follow(folder, read_path(&dot_git)?.strip_prefix("gitdir:")?) };
    let own = fs::canonicalize(own).ok()?;
    let common = match read_path(&own.join("commondir")) {
        Some(text) => fs::canonicalize(follow(&own, &text)).ok()?,
        None => own.clone(),
    };
    Some(GitFolder { common, own })
}

pub(super) fn read_path(file: &Path) -> Option<String> {
    String::from_utf8(read(file, MOST_PATH)?).ok()
}

/// What a file holds, if it is one and no longer than this. Whatever else has its name is not waited for.
pub(super) fn read(path: &Path, most: u64) -> Option<Vec<u8>> {
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).ok()?;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    // It may grow while it is read.
    file.take(most + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= most).then_some(bytes)
}

pub(super) fn follow(base: &Path, text: &str) -> PathBuf {
    base.join(text.trim_end_matches(['\n', '\r']).trim_start())
}

pub(crate) fn is_bare(folder: &Path) -> bool {
    folder.join("HEAD").is_file() && folder.join("objects").is_dir() && folder.join("refs").is_dir()
}

/// A boolean of the `[core]` section in a repository's own configuration; includes are not followed.
pub(super) fn flag(git: &Path, name: &str) -> bool {
    config(git).and_then(|file| file.boolean(&format!("core.{name}")).ok().flatten()).unwrap_or(false)
}

/// The same for a text.
pub(super) fn text(git: &Path, name: &str) -> Option<String> {
    config(git)?.string(&format!("core.{name}")).map(|value| value.to_string())
}

fn config(git: &Path) -> Option<gix_config::File> {
    let text = read(&git.join("config"), MOST_CONFIG)?;
    let local = gix_config::file::Metadata::from(gix_config::Source::Local);
    gix_config::File::from_bytes_no_includes(&text, local, gix_config::file::init::Options::default()).ok()
}
