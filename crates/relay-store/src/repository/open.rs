//! Opening a repository so that nothing which is configured in it can run. gix starts a program only where the
//! configuration names one; what could name one is taken out before anything is asked.

use std::path::Path;

use gix::bstr::BString;
use relay_core::domain::worktree::{Seen, Unseen};

/// What decides how files are stored and compared. Drivers, remotes, aliases and includes are in other sections.
const KEPT: [&str; 3] = ["core", "extensions", "index"];

pub(super) fn unreadable(fault: impl std::fmt::Display) -> Unseen {
    Unseen::Unreadable(format!("the repository cannot be read: {fault}"))
}

/// The repository of a work tree, or a bare one. `ignores` is the user's own list of what is ignored everywhere.
pub(super) fn open(tree: &Path, ignores: Option<&Path>) -> Seen<gix::Repository> {
    let mut repository = gix::open_opts(tree, gix::open::Options::isolated()).map_err(unreadable)?;
    let mut config = repository.config_snapshot_mut();
    let unwanted: Vec<_> = config
        .sections_and_ids()
        .filter(|(section, _)| !KEPT.iter().any(|kept| section.header().name().eq_ignore_ascii_case(kept.as_bytes())))
        .map(|(_, id)| id)
        .collect();
    for id in unwanted {
        config.remove_section_by_id(id);
    }
    // Whoever commits is warned of line endings that do not come back; whoever looks is not.
    config.set_raw_value("core.safecrlf", "false").map_err(unreadable)?;
    // A path from the user's home is another one here, and a missing one fails.
    let has_own = config.string("core.excludesFile").is_some_and(|path| path.starts_with(b"/"));
    if !has_own {
        let path = ignores.and_then(Path::to_str).unwrap_or("/dev/null");
        config.set_raw_value("core.excludesFile", path).map_err(unreadable)?;
    }
    if config.string("core.attributesFile").is_some_and(|path| !path.starts_with(b"/")) {
        config.set_raw_value("core.attributesFile", "/dev/null").map_err(unreadable)?;
    }
    config.commit().map_err(unreadable)?;
    Ok(repository)
}

/// The pattern that takes this folder of the work tree and everything in it.
pub(super) fn only(inside: &str) -> Option<BString> {
    (!inside.is_empty()).then(|| format!(":(top,literal){inside}").into())
}

/// The same for those who match paths by it, without regard to where this process runs.
pub(super) fn pathspec<'a>(
    repository: &'a gix::Repository,
    index: &gix::index::State,
    inside: &str,
) -> Seen<gix::Pathspec<'a>> {
    let source = gix::worktree::stack::state::attributes::Source::IdMapping;
    repository.pathspec(false, only(inside), false, index, source).map_err(unreadable)
}
