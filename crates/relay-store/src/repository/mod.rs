//! What relay reads from the repository around a project. It reads files and runs no git, so that nothing which a
//! repository configures can run either: no hook, no fsmonitor, no filter.

mod changes;
mod commits;
mod folder;
mod head;
mod ignores;
mod index;
mod merge;
mod open;
mod patience;
mod project;

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, OnceLock};

use relay_core::domain::name::ProjectKey;
use relay_core::domain::pattern::{Case, PatternFault};
use relay_core::domain::time::{Span, Timestamp};
use relay_core::domain::worktree::{Changed, Head, Seen, Unseen, WorkTree};
use relay_core::error::{Code, Refusal};
use relay_core::store::{Change, Repository, Result};

use crate::blame::{self, Place};
pub(crate) use folder::{GitFolder, git_folder, is_bare};
use folder::{flag, follow, read_path};

pub use ignores::User;
pub use project::{around, is_bare_repository, is_git_folder_of, resolve, work_tree};

/// Above this many files breadth is not counted.
const MOST_TRACKED: usize = 50_000;

/// The repository of one project, read at most once per command.
#[derive(Debug)]
pub struct Files {
    root: PathBuf,
    seen_from: Vec<PathBuf>,
    user: Option<User>,
    git: OnceLock<Option<PathBuf>>,
    case: OnceLock<Case>,
    tracked: OnceLock<Option<Arc<[String]>>>,
}

impl Files {
    pub fn new(project: &ProjectKey) -> Self {
        Files {
            root: PathBuf::from(project.as_str()),
            seen_from: Vec::new(),
            user: None,
            git: OnceLock::new(),
            case: OnceLock::new(),
            tracked: OnceLock::new(),
        }
    }

    /// The same for somebody who is in one of these folders, or names it: a linked worktree around it has a HEAD of its own.
    #[must_use]
    pub fn seen_from(self, folders: impl IntoIterator<Item = PathBuf>) -> Self {
        Files { seen_from: folders.into_iter().collect(), ..self }
    }

    /// The same for a user who may want some files ignored in every repository.
    #[must_use]
    pub fn of_user(self, user: User) -> Self {
        Files { user: Some(user), ..self }
    }

    /// The root that a relative path starts from: that of the linked worktree from which one looks, or the project's.
    fn here<'a>(&self, roots: &'a [String]) -> &'a str {
        let nearest = |folder: &PathBuf| {
            let folder = fs::canonicalize(folder).ok()?;
            roots.iter().filter(|root| folder.starts_with(root)).max_by_key(|root| root.len())
        };
        let main = roots[0].as_str();
        self.seen_from.iter().filter_map(nearest).map(String::as_str).find(|root| *root != main).unwrap_or(main)
    }

    /// The root that a path lies under, and the path from there, cleaned as a pattern is; its characters mean themselves.
    fn locate<'a>(&self, path: &str, roots: &'a [String]) -> Result<(&'a str, String)> {
        let outside = || Refusal::from(PatternFault::Outside { path: path.to_owned() }).with("pattern", path);
        let mut parts: Vec<&str> = Vec::new();
        for part in path.split('/') {
            match part {
                "" | "." => {}
                // Above `/` there is only `/` again.
                ".." => match parts.pop() {
                    None if !path.starts_with('/') => return Err(outside()),
                    _ => {}
                },
                name => parts.push(name),
            }
        }
        let cleaned = parts.join("/");
        if !path.starts_with('/') {
            return Ok((self.here(roots), cleaned));
        }
        let cleaned = format!("/{cleaned}");
        let rest =
            |root: &'a String| Some((root.as_str(), Path::new(&cleaned).strip_prefix(root).ok()?.to_str()?.to_owned()));
        // Worktrees may lie inside each other: the nearest root counts.
        roots.iter().filter_map(rest).max_by_key(|(root, _)| root.len()).ok_or_else(outside)
    }

    /// The shared git folder: of this root, or of the repository that the root is a folder of.
    fn git(&self) -> Option<&Path> {
        let find = || {
            let of = |folder: &Path| {
                git_folder(folder).map(|git| git.common).or_else(|| is_bare(folder).then(|| folder.to_owned()))
            };
            self.root.ancestors().find_map(of)
        };
        self.git.get_or_init(find).as_deref()
    }

    /// The linked worktrees, sorted by name, with their roots.
    fn worktrees(&self) -> Vec<(String, String)> {
        let Some(git) = self.git() else { return Vec::new() };
        let entries = fs::read_dir(git.join("worktrees")).into_iter().flatten().filter_map(std::result::Result::ok);
        let mut all: Vec<(String, String)> = entries
            .filter_map(|entry| {
                let dot_git = read_path(&entry.path().join("gitdir"))?;
                let root = fs::canonicalize(follow(&entry.path(), &dot_git)).ok()?;
                Some((entry.file_name().into_string().ok()?, root.parent()?.to_str()?.to_owned()))
            })
            .collect();
        all.sort();
        all
    }

    /// The same where they are the project's: a folder inside a repository is its own project.
    fn linked(&self) -> Vec<(String, String)> {
        let is_whole = git_folder(&self.root).is_some() || is_bare(&self.root);
        if is_whole { self.worktrees() } else { Vec::new() }
    }

    /// The work tree behind a root of this project.
    fn tree(root: &Path) -> Seen<Tree> {
        let (folder, inside) = Self::place(root).ok_or(Unseen::Nowhere)?;
        Ok(Tree { folder: folder.to_owned(), inside })
    }

    /// The work tree, or the bare repository, that a folder belongs to, and the folder's path from there with a slash.
    fn place(folder: &Path) -> Option<(&Path, String)> {
        let tree = folder.ancestors().find(|folder| git_folder(folder).is_some() || is_bare(folder))?;
        let inside = folder.strip_prefix(tree).ok()?.to_str()?;
        Some((tree, if inside.is_empty() { String::new() } else { format!("{inside}/") }))
    }

    fn changing(&self, root: &str) -> Seen<changes::Place> {
        let others = self.worktrees().into_iter().map(|(_, root)| PathBuf::from(root)).collect();
        let ignores = self.user.as_ref().map(User::ignores);
        Ok(changes::Place { tree: Self::tree(Path::new(root))?, ignores, others })
    }

    fn read_index(&self) -> Option<Arc<[String]>> {
        let git = self.git()?;
        let work_tree =
            if git.file_name().is_some_and(|name| name == ".git") { git.parent()? } else { self.root.as_path() };
        let inside = self.root.strip_prefix(work_tree).ok()?;
        let folder: Vec<&str> = inside
            .components()
            .filter_map(|part| if let Component::Normal(part) = part { part.to_str() } else { None })
            .collect();
        let prefix = if folder.is_empty() { String::new() } else { format!("{}/", folder.join("/")) };
        let index = git.join("index");
        // gix waits for whatever is there, and takes it whole.
        fs::metadata(&index).ok().filter(|metadata| metadata.is_file() && metadata.len() <= index::MOST_INDEX)?;
        let index =
            gix_index::File::at(index, gix_index::hash::Kind::Sha1, true, gix_index::decode::Options::default())
                .ok()?;
        if index.entries().len() > MOST_TRACKED {
            return None;
        }
        let path = |entry: &gix_index::Entry| {
            std::str::from_utf8(entry.path(&index)).ok().and_then(|path| path.strip_prefix(&prefix)).map(str::to_owned)
        };
        let mut paths: Vec<String> = index.entries().iter().filter_map(path).collect();
        paths.sort();
        paths.dedup();
        Some(paths.into())
    }
}

impl Repository for Files {
    fn roots(&self) -> Vec<String> {
        let main = self.root.to_string_lossy().into_owned();
        let others = self.linked().into_iter().map(|(_, root)| root).filter(|root| *root != main).collect::<Vec<_>>();
        std::iter::once(main).chain(others).collect()
    }

    fn case(&self) -> Case {
        *self.case.get_or_init(|| match self.git() {
            Some(git) if flag(git, "ignorecase") => Case::Insensitive,
            _ => Case::Sensitive,
        })
    }

    fn is_file(&self, path: &str) -> bool {
        self.root.join(path).is_file()
    }

    fn last_change(&self, path: &str, line: u32) -> Result<Change> {
        let roots = self.roots();
        let (root, path) = self.locate(path, &roots)?;
        if path.is_empty() {
            return Err(Code::InputInvalid.refuse(format!("{root} is the project itself, and a line is one of a file")));
        }
        let (tree, inside) = Self::place(Path::new(root)).ok_or_else(|| blame::none(Path::new(root)))?;
        blame::last_change(&Place { tree, inside: &inside, path: &path, line })
    }

    fn tracked(&self) -> Option<Arc<[String]>> {
        self.tracked.get_or_init(|| self.read_index()).clone()
    }

    fn work_trees(&self) -> Vec<WorkTree> {
        let main = self.root.to_string_lossy().into_owned();
        let linked = self.linked().into_iter().filter(|(_, root)| *root != main);
        let linked = linked.map(|(name, root)| (Some(name), root)).collect::<Vec<_>>();
        let has_own = Self::place(&self.root).is_some_and(|(tree, _)| git_folder(tree).is_some());
        let own = has_own.then_some((None, main));
        own.into_iter().chain(linked).map(|(name, root)| WorkTree { head: self.head(&root), root, name }).collect()
    }

    fn head(&self, root: &str) -> Option<Head> {
        let (tree, _) = Self::place(Path::new(root))?;
        head::of(&git_folder(tree)?)
    }

    fn changes(&self, root: &str, patience: Span) -> Seen<Vec<Changed>> {
        let place = self.changing(root)?;
        patience::within(patience, move |over| place.changes(over))
    }

    fn conflicts(&self, one: &str, other: &str, patience: Span) -> Seen<Vec<String>> {
        let (one, other) = (self.changing(one)?, self.changing(other)?);
        patience::within(patience, move |over| merge::conflicts(&one, &other, over))
    }

    fn staged(&self, root: &str, index: Option<&Path>, patience: Span) -> Seen<Vec<String>> {
        let (tree, index) = (Self::tree(Path::new(root))?, index.map(Path::to_owned));
        patience::within(patience, move |over| commits::staged(&tree, index.as_deref(), over))
    }

    fn between(&self, old: Option<&str>, new: &str, patience: Span) -> Seen<Vec<String>> {
        let tree = Self::tree(&self.root)?;
        let between = commits::Between { tree, old: old.map(str::to_owned), new: new.to_owned() };
        patience::within(patience, move |over| between.paths(over))
    }

    fn committed(&self, root: &str, since: Timestamp, patience: Span) -> Seen<Vec<(String, Timestamp)>> {
        let tree = Self::tree(Path::new(root))?;
        patience::within(patience, move |over| commits::committed(&tree, since, over))
    }
}

/// A work tree, and the folder in it that the project is.
#[derive(Debug, Clone)]
struct Tree {
    /// Of the work tree, or of a bare repository.
    folder: PathBuf,
    /// The project's folder from there, with a slash at its end; nothing where they are the same.
    inside: String,
}

impl Tree {
    /// A path of the repository as the project names it; none where it lies outside.
    fn inside(&self, path: &str) -> Option<String> {
        path.strip_prefix(&self.inside).map(|path| path.trim_end_matches('/').to_owned())
    }
}

#[cfg(test)]
mod tests;
