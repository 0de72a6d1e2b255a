//! Which project a path means: the main work tree of the repository around it, wherever one stands.

use std::fs;
use std::path::{Path, PathBuf};

use relay_core::domain::name::ProjectKey;
use relay_core::error::{Code, Refusal};
use relay_core::store::Result;

use super::folder::{flag, git_folder, is_bare, text};

/// The project that an absolute path names. A linked worktree's root means the main worktree.
pub fn resolve(path: &Path) -> Result<ProjectKey> {
    let invalid = |why: &str| {
        Code::ProjectKeyInvalid
            .refuse(format!("{:?} {why}", path.display().to_string()))
            .with("path", path.to_string_lossy())
    };
    if path.as_os_str().is_empty() {
        return Err(invalid("is empty; name an absolute path"));
    }
    if !path.is_absolute() {
        return Err(invalid("is relative; name an absolute path"));
    }
    let cleaned = fs::canonicalize(path).map_err(|fault| invalid(&format!("cannot be found: {fault}")))?;
    if !cleaned.is_dir() {
        return Err(invalid("is not a folder"));
    }
    key(&main_root(&cleaned).unwrap_or(cleaned))
}

/// The project around a working directory.
pub fn around(directory: &Path) -> Result<ProjectKey> {
    let unresolved = || {
        Code::ProjectUnresolved
            .refuse(format!("no project is named, and {} is in no git repository", directory.display()))
    };
    let cleaned = fs::canonicalize(directory).map_err(|_| unresolved())?;
    for folder in cleaned.ancestors() {
        if let Some(root) = main_root(folder) {
            return key(&root);
        }
        if folder.join(".git").exists() || is_bare(folder) {
            return key(folder);
        }
    }
    Err(unresolved())
}

/// The root of the work tree around a folder, its links followed; none in a bare repository.
pub fn work_tree(folder: &Path) -> Option<PathBuf> {
    let folder = fs::canonicalize(folder).ok()?;
    folder.ancestors().find(|folder| git_folder(folder).is_some()).map(Path::to_owned)
}

/// Whether a folder is a repository without files of its own.
pub fn is_bare_repository(folder: &Path) -> bool {
    git_folder(folder).is_none() && is_bare(folder)
}

/// Whether this is the git folder behind a work tree, and not one that is only used with it.
pub fn is_git_folder_of(tree: &Path, git: &Path) -> bool {
    let known = git_folder(tree).map(|git| git.own);
    known.is_some() && known == fs::canonicalize(git).ok()
}

fn key(path: &Path) -> Result<ProjectKey> {
    let text = path.to_str().ok_or_else(|| -> Refusal {
        Code::ProjectKeyInvalid
            .refuse(format!("{} is not valid UTF-8, and a project key is text", path.display()))
            .with("path", path.to_string_lossy())
    })?;
    Ok(ProjectKey::resolved(text))
}

/// The root of the main worktree, when `folder` is the root of a linked one.
fn main_root(folder: &Path) -> Option<PathBuf> {
    let git = git_folder(folder)?;
    if git.common == git.own {
        return None;
    }
    if flag(&git.common, "bare") {
        // A bare repository has no main worktree: its own path stands for it.
        return Some(git.common);
    }
    // The git folder of a submodule lies far from its work tree and names it.
    if let Some(work_tree) = text(&git.common, "worktree") {
        return fs::canonicalize(git.common.join(work_tree)).ok();
    }
    let is_dot_git = git.common.file_name().is_some_and(|name| name == ".git");
    if is_dot_git { git.common.parent().map(Path::to_owned) } else { Some(git.common) }
}
