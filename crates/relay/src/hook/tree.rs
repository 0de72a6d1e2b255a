//! Where a session is: its work tree, and the paths that it names.

use std::path::{Component, Path, PathBuf};

use relay_core::store::Repository;
use relay_store::repository::Files;

/// No call edits more than this one by one.
const MOST_PATHS: usize = 1_000;

/// The root of the work tree that a folder lies in.
pub fn around(files: &Files, folder: &Path) -> Option<String> {
    let folder = std::fs::canonicalize(folder).ok()?;
    let trees = files.work_trees().into_iter().map(|tree| tree.root);
    trees.filter(|root| folder.starts_with(root)).max_by_key(String::len)
}

/// The resource that stands for a checkout: HEAD and the index are a work tree's own.
pub fn checkout(files: &Files, root: Option<&str>) -> Option<String> {
    let tree = files.work_trees().into_iter().find(|tree| Some(tree.root.as_str()) == root)?;
    Some(tree.name.map_or_else(|| "res:git".to_owned(), |name| format!("res:git-{}", plain(&name))))
}

/// A name of a work tree, as a resource may be named.
fn plain(name: &str) -> String {
    name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).take(60).collect()
}

/// Absolute paths, through no link but the last part: that may be one itself, and then what it leads to is meant too, or may not be
/// there yet.
pub fn resolved(paths: &[String], cwd: &Path) -> Vec<String> {
    let mut resolved = Vec::new();
    for path in paths.iter().take(MOST_PATHS) {
        let path = clean(&cwd.join(path));
        let Some(found) = through_folders(&path) else { continue };
        let target = std::fs::symlink_metadata(&found).ok().filter(std::fs::Metadata::is_symlink);
        let target = target.and_then(|_| std::fs::canonicalize(&found).ok());
        resolved
            .extend([Some(found), target].into_iter().flatten().filter_map(|path| path.to_str().map(str::to_owned)));
    }
    resolved
}

fn through_folders(path: &Path) -> Option<PathBuf> {
    let (folder, name) = (path.parent()?, path.file_name()?);
    let nearest = folder.ancestors().find_map(|above| Some((above, std::fs::canonicalize(above).ok()?)))?;
    Some(nearest.1.join(folder.strip_prefix(nearest.0).ok()?).join(name))
}

/// Of absolute paths those inside a work tree, from there.
pub fn inside(paths: &[String], root: &str) -> Vec<String> {
    let inside = |path: &String| Some(Path::new(path).strip_prefix(root).ok()?.to_str()?.to_owned());
    paths.iter().filter_map(inside).collect()
}

fn clean(path: &Path) -> PathBuf {
    let mut cleaned = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                cleaned.pop();
            }
            part => cleaned.push(part),
        }
    }
    cleaned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_resolved_as_far_as_it_is_there() {
        let folder = tempfile::tempdir().unwrap_or_else(|fault| panic!("{fault}"));
        let root = std::fs::canonicalize(folder.path()).unwrap_or_else(|fault| panic!("{fault}"));
        std::fs::create_dir(root.join("real")).unwrap_or_else(|fault| panic!("{fault}"));
        std::os::unix::fs::symlink(root.join("real"), root.join("link")).unwrap_or_else(|fault| panic!("{fault}"));
        let text = |path: &str| root.join(path).to_string_lossy().into_owned();
        for (path, expected) in [
            ("a.rs", text("a.rs")),
            ("./x/../a.rs", text("a.rs")),
            ("new/deep/a.rs", text("new/deep/a.rs")),
            ("link/a.rs", text("real/a.rs")),
            (&text("link/new/a.rs"), text("real/new/a.rs")),
            ("/etc/../etc/hostname", "/etc/hostname".to_owned()),
        ] {
            assert_eq!(resolved(&[path.to_owned()], &root), [expected], "{path}");
        }
        let both = [text("link"), text("real")];
        assert_eq!(resolved(&["link".to_owned()], &root), both, "what it leads to is edited with it");
        assert_eq!(resolved(&["/".to_owned(), String::new()], Path::new("/")), [""; 0]);
    }

    #[test]
    fn paths_outside_a_work_tree_are_left_out() {
        let paths = ["/repo/a".to_owned(), "/repository/b".to_owned(), "/repo/c/d".to_owned()];
        assert_eq!(inside(&paths, "/repo"), ["a", "c/d"]);
    }
}
