//! What relay reads from the repository around a project. It reads files and runs no git, so that nothing which a
//! repository configures can run either: no hook, no fsmonitor, no filter.

use std::fs::{self, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, OnceLock};

use relay_core::domain::name::ProjectKey;
use relay_core::domain::pattern::{Case, PatternFault};
use relay_core::error::{Code, Refusal};
use relay_core::store::{Change, Repository, Result};

use crate::blame::{self, Place};

/// Above this many files breadth is not counted.
const MOST_TRACKED: usize = 50_000;

/// A file that says where another part of a repository is holds one path.
const MOST_PATH: u64 = 64 * 1024;

/// A configuration may list thousands of branches.
const MOST_CONFIG: u64 = 4 * 1024 * 1024;

/// Several times what an index of that many files takes.
const MOST_INDEX: u64 = 64 * 1024 * 1024;

/// The git folder behind a working tree: its own part and the part that its worktrees share.
#[derive(Debug, Clone, PartialEq, Eq)]
struct GitFolder {
    common: PathBuf,
    own: PathBuf,
}

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

/// What `.git` in this folder leads to.
fn git_folder(folder: &Path) -> Option<GitFolder> {
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

fn read_path(file: &Path) -> Option<String> {
    String::from_utf8(read(file, MOST_PATH)?).ok()
}

/// What a file holds, if it is one and no longer than this. Whatever else has its name is not waited for.
fn read(path: &Path, most: u64) -> Option<Vec<u8>> {
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

fn follow(base: &Path, text: &str) -> PathBuf {
    base.join(text.trim_end_matches(['\n', '\r']).trim_start())
}

fn is_bare(folder: &Path) -> bool {
    folder.join("HEAD").is_file() && folder.join("objects").is_dir() && folder.join("refs").is_dir()
}

/// A boolean of the `[core]` section in a repository's own configuration; includes are not followed.
fn flag(git: &Path, name: &str) -> bool {
    config(git).and_then(|file| file.boolean(&format!("core.{name}")).ok().flatten()).unwrap_or(false)
}

/// The same for a text.
fn text(git: &Path, name: &str) -> Option<String> {
    config(git)?.string(&format!("core.{name}")).map(|value| value.to_string())
}

fn config(git: &Path) -> Option<gix_config::File> {
    let text = read(&git.join("config"), MOST_CONFIG)?;
    let local = gix_config::file::Metadata::from(gix_config::Source::Local);
    gix_config::File::from_bytes_no_includes(&text, local, gix_config::file::init::Options::default()).ok()
}

/// The repository of one project, read at most once per command.
#[derive(Debug)]
pub struct Files {
    root: PathBuf,
    seen_from: Vec<PathBuf>,
    git: OnceLock<Option<PathBuf>>,
    case: OnceLock<Case>,
    tracked: OnceLock<Option<Arc<[String]>>>,
}

impl Files {
    pub fn new(project: &ProjectKey) -> Self {
        Files {
            root: PathBuf::from(project.as_str()),
            seen_from: Vec::new(),
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

    fn worktrees(&self) -> Vec<String> {
        let Some(git) = self.git() else { return Vec::new() };
        let entries = fs::read_dir(git.join("worktrees")).into_iter().flatten().filter_map(std::result::Result::ok);
        entries
            .filter_map(|entry| {
                let dot_git = read_path(&entry.path().join("gitdir"))?;
                let root = fs::canonicalize(follow(&entry.path(), &dot_git)).ok()?;
                Some(root.parent()?.to_str()?.to_owned())
            })
            .collect()
    }

    /// The work tree, or the bare repository, that a folder belongs to, and the folder's path from there with a slash.
    fn place(folder: &Path) -> Option<(&Path, String)> {
        let tree = folder.ancestors().find(|folder| git_folder(folder).is_some() || is_bare(folder))?;
        let inside = folder.strip_prefix(tree).ok()?.to_str()?;
        Some((tree, if inside.is_empty() { String::new() } else { format!("{inside}/") }))
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
        fs::metadata(&index).ok().filter(|metadata| metadata.is_file() && metadata.len() <= MOST_INDEX)?;
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
        let mut roots = vec![self.root.to_string_lossy().into_owned()];
        // A folder inside a repository is its own project: the other worktrees are not its roots.
        if git_folder(&self.root).is_some() || is_bare(&self.root) {
            roots.extend(self.worktrees().into_iter().filter(|root| *root != roots[0]).collect::<Vec<_>>());
        }
        roots
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
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    fn well<T>(result: std::result::Result<T, impl std::fmt::Display>) -> T {
        result.unwrap_or_else(|fault| panic!("{fault}"))
    }

    /// A repository, a linked worktree of it, and the part of its git folder that is the worktree's own.
    fn linked() -> (tempfile::TempDir, PathBuf, PathBuf, PathBuf) {
        let folder = well(tempfile::tempdir());
        let root = well(fs::canonicalize(folder.path()));
        let (main, worktree) = (root.join("main"), root.join("worktree"));
        let own = main.join(".git/worktrees/worktree");
        well(fs::create_dir_all(&own));
        well(fs::create_dir(&worktree));
        well(fs::write(main.join(".git/config"), "[core]\n\tignorecase = true\n"));
        well(fs::write(worktree.join(".git"), format!("gitdir: {}\n", own.display())));
        well(fs::write(own.join("commondir"), "../..\n"));
        well(fs::write(own.join("gitdir"), format!("{}/.git\n", worktree.display())));
        (folder, main, worktree, own)
    }

    fn named(path: &Path) -> String {
        well(resolve(path)).as_str().to_owned()
    }

    /// What is read of the repository, in a thread that may hang.
    fn looks(main: &Path, worktree: &Path) -> (String, Vec<String>, Case, bool) {
        let (done, is_done) = mpsc::channel();
        let (main, worktree) = (main.to_owned(), worktree.to_owned());
        let look = move || {
            let files = Files::new(&well(resolve(&main)));
            let _ = done.send((named(&worktree), files.roots(), files.case(), files.tracked().is_some()));
        };
        let _thread = std::thread::Builder::new().spawn(look);
        is_done.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|_| panic!("it waits for what is no file"))
    }

    fn text(path: &Path) -> String {
        path.to_string_lossy().into_owned()
    }

    #[test]
    fn what_is_no_file_is_not_waited_for() {
        let (_folder, main, worktree, own) = linked();
        let roots = vec![text(&main), text(&worktree)];
        assert_eq!(looks(&main, &worktree), (text(&main), roots.clone(), Case::Insensitive, false));
        let check = |path: PathBuf, expected: (&Path, &[String], Case)| {
            let _ = fs::remove_file(&path);
            well(mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0));
            let (key, roots, case) = expected;
            assert_eq!(looks(&main, &worktree), (text(key), roots.to_vec(), case, false), "{}", path.display());
        };
        check(main.join(".git/index"), (&main, &roots, Case::Insensitive));
        check(main.join(".git/config"), (&main, &roots, Case::Sensitive));
        check(own.join("gitdir"), (&main, &roots[..1], Case::Sensitive));
        check(own.join("commondir"), (&worktree, &roots[..1], Case::Sensitive));
        check(worktree.join(".git"), (&worktree, &roots[..1], Case::Sensitive));
        well(fs::remove_dir_all(main.join(".git")));
        check(main.join(".git"), (&worktree, &roots[..1], Case::Sensitive));
    }

    #[test]
    fn what_is_too_long_for_a_path_is_none() {
        let (_folder, main, worktree, _own) = linked();
        let dot_git = worktree.join(".git");
        let line = well(fs::read_to_string(&dot_git));
        let fill = |length: u64| {
            let rest = usize::try_from(length).unwrap_or(usize::MAX) - line.len();
            well(fs::write(&dot_git, format!("{line}{}", "\n".repeat(rest))));
        };
        fill(MOST_PATH);
        assert_eq!(named(&worktree), text(&main));
        fill(MOST_PATH + 1);
        assert_eq!(named(&worktree), text(&worktree));
    }

    #[test]
    fn a_configuration_is_read_up_to_its_limit() {
        let (_folder, main, _worktree, _own) = linked();
        let config = main.join(".git/config");
        let check = |length: u64, expected: Case| {
            let line = b"[core]\n\tignorecase = true\n";
            let mut text = b"\n".repeat(usize::try_from(length).unwrap_or(usize::MAX));
            text[..line.len()].copy_from_slice(line);
            well(fs::write(&config, text));
            assert_eq!(Files::new(&well(resolve(&main))).case(), expected, "{length}");
        };
        check(MOST_CONFIG, Case::Insensitive);
        check(MOST_CONFIG + 1, Case::Sensitive);
    }
}
