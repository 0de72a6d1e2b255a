//! Where git looks for the hooks of a repository: in its own git folder, or where `core.hooksPath` points. Configuration is
//! read as files, and nothing that it names is run.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use gix_config::file::{Metadata, includes, init};
use gix_config::{File, Source};
use relay_core::error::{Code, Refusal};
use relay_core::store::Result;

use crate::repository::{GitFolder, git_folder, is_bare};

/// Where the hooks are, seen from one work tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hooks {
    /// The root of the work tree, from where git runs them.
    pub tree: PathBuf,
    /// The git folder that all work trees of the repository share.
    pub git: PathBuf,
    /// Where git looks for them.
    pub folder: PathBuf,
    /// The file that says `core.hooksPath`, where one does.
    pub configured_in: Option<PathBuf>,
}

impl Hooks {
    /// The hooks of the repository around a folder. `variable` tells what stands in the environment: it decides which of the
    /// user's configuration files git reads.
    pub fn around(directory: &Path, variable: &dyn Fn(&str) -> Option<OsString>) -> Result<Self> {
        let place = fs::canonicalize(directory).map_err(|fault| unresolved(directory, &format!(": {fault}")))?;
        for folder in place.ancestors() {
            if let Some(git) = git_folder(folder) {
                return Self::of(folder, &git, variable);
            }
            if is_bare(folder) && folder.file_name().is_none_or(|name| name != ".git") {
                return Err(bare(folder));
            }
        }
        Err(unresolved(directory, ""))
    }

    fn of(tree: &Path, git: &GitFolder, variable: &dyn Fn(&str) -> Option<OsString>) -> Result<Self> {
        let said = configured(git, variable)?;
        let folder = match &said {
            // A relative path starts where git runs the hook.
            Some((path, _)) => tree.join(path),
            None => git.common.join("hooks"),
        };
        let (tree, git) = (tree.to_owned(), git.common.clone());
        Ok(Hooks { tree, git, folder, configured_in: said.map(|(_, file)| file) })
    }

    /// The folder that the repository has for its hooks, whether or not git looks there.
    pub fn own_folder(&self) -> PathBuf {
        self.git.join("hooks")
    }

    /// Whether a folder of hooks is this repository's alone: it lies in its git folder, links followed.
    pub fn is_own(&self, folder: &Path) -> bool {
        let there = folder.ancestors().find_map(|part| fs::canonicalize(part).ok());
        there.is_some_and(|there| there.starts_with(&self.git))
    }
}

fn unresolved(directory: &Path, why: &str) -> Refusal {
    Code::ProjectUnresolved.refuse(format!("{} is in no git repository{why}", directory.display()))
}

fn bare(folder: &Path) -> Refusal {
    let text = format!(
        "{} is a bare repository, and nothing is committed in it; go to one of its work trees",
        folder.display()
    );
    Code::InputInvalid.refuse(text).with("path", folder.to_string_lossy())
}

/// `core.hooksPath` and the file that says it: the last one counts, from the system's configuration to the work tree's.
fn configured(git: &GitFolder, variable: &dyn Fn(&str) -> Option<OsString>) -> Result<Option<(PathBuf, PathBuf)>> {
    let home = variable("HOME").map(PathBuf::from);
    let interpolate = gix_config::path::interpolate::Context {
        home_dir: home.as_deref(),
        home_for_user: Some(gix_config::path::interpolate::home_for_user),
        ..Default::default()
    };
    let conditional = includes::conditional::Context { git_dir: Some(&git.own), branch_name: None };
    let options = init::Options { includes: includes::Options::follow(interpolate, conditional), ..Default::default() };
    let unread = |fault: &dyn std::fmt::Display| {
        Code::InputInvalid
            .refuse(format!("git's configuration cannot be read, so nobody knows where hooks are: {fault}"))
    };
    let files = files(git, variable);
    let Some(config) = File::from_paths_metadata(files, options).map_err(|fault| unread(&fault))? else {
        return Ok(None);
    };
    let sections = config.sections_by_name("core").into_iter().flatten();
    let plain = sections.filter(|section| section.header().subsection_name().is_none());
    let said = plain.filter_map(|section| Some((section.value("hooksPath")?, section.meta().path.clone()?))).last();
    let Some((value, file)) = said else { return Ok(None) };
    if value.is_empty() {
        // git puts a slash and the hook's name after it.
        return Ok(Some((PathBuf::from("/"), file)));
    }
    let path = gix_config::Path::from(value).interpolate(interpolate).map_err(|fault| unread(&fault))?;
    Ok(Some((path, file)))
}

/// The files of configuration that are there, from the weakest to the strongest.
fn files(git: &GitFolder, variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<Metadata> {
    let mut variable = |name: &str| variable(name);
    let sources = [Source::System, Source::Git, Source::User, Source::Local, Source::Worktree];
    let file = |source: Source| {
        let base = if source == Source::Worktree { &git.own } else { &git.common };
        let path = base.join(source.storage_location(&mut variable)?);
        let is_meant = source != Source::Worktree || has_own_configurations(git);
        (is_meant && path.is_file()).then(|| Metadata::from(source).at(path))
    };
    sources.into_iter().filter_map(file).collect()
}

/// `extensions.worktreeConfig`: each work tree has a configuration of its own.
fn has_own_configurations(git: &GitFolder) -> bool {
    let local = File::from_path_no_includes(git.common.join("config"), Source::Local);
    local.ok().and_then(|file| file.boolean("extensions.worktreeConfig").ok().flatten()).unwrap_or(false)
}
