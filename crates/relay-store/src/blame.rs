//! The commit that last changed a line. Read with gix, like everything in the user's repository: no git runs, and nothing
//! that is configured there runs either. Blobs are compared as they are stored, so no filter and no converter is asked.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use gix::bstr::{BStr, ByteSlice};
use gix::diff::blob::{Algorithm, Diff, InternedInput};
use relay_core::domain::shell;
use relay_core::domain::time::Timestamp;
use relay_core::error::{Code, Refusal};
use relay_core::store::{Change, Result};

/// Where a line is asked for.
pub(crate) struct Place<'a> {
    /// The work tree, or a bare repository.
    pub tree: &'a Path,
    /// The project's folder in it, with a slash at its end; nothing where they are the same.
    pub inside: &'a str,
    /// From that folder.
    pub path: &'a str,
    /// Counted from 1, as the working tree has it.
    pub line: u32,
}

/// The last change of a line that HEAD has. A line that was moved since, or whose text is another now, is found by what was
/// changed around it.
pub(crate) fn last_change(place: &Place<'_>) -> Result<Change> {
    let Place { tree, inside, path, line } = *place;
    let unreadable = |fault: &dyn std::fmt::Display| place.unreadable(fault);
    let repository = gix::open_opts(tree, gix::open::Options::isolated()).map_err(|fault| unreadable(&fault))?;
    let head = match repository.head().map_err(|fault| unreadable(&fault))?.kind {
        gix::head::Kind::Unborn(branch) => {
            let branch = branch.shorten();
            let none = format!("nothing is committed on {branch} in {} yet, so no line has a commit", tree.display());
            return Err(place.refuse(none));
        }
        _ => repository.head_commit().map_err(|fault| unreadable(&fault))?,
    };
    let whole = format!("{inside}{path}");
    let blob = place.blob(&repository, &head, &whole)?;
    let committed = place.committed(&repository, &head, &blob, &whole)?;
    let (commit, then) = origin(&repository, &head, whole.as_str().into(), committed.line).map_err(|fault| match fault {
        Unknown::CutOff => place.refuse(format!(
            "this clone is shallow, and the history that it has does not tell when line {line} of {path} was last changed: `{}` brings the rest",
            place.git(&["fetch", "--unshallow"])
        )),
        Unknown::Elsewhere => place.refuse(format!(
            "this clone is partial, and what tells when line {line} of {path} was last changed is not all here: `{}` fetches it, then ask again",
            place.git(&["blame", "--", &whole])
        )),
        Unknown::Fault(fault) => unreadable(&fault),
    })?;
    let author = commit.author().map_err(|fault| unreadable(&fault))?;
    let seconds = author.time().map_err(|fault| unreadable(&fault))?.seconds;
    let message = commit.message().map_err(|fault| unreadable(&fault))?;
    Ok(Change {
        path: path.to_owned(),
        path_then: then.strip_prefix(inside).map(str::to_owned),
        line,
        committed_line: committed.line,
        commit: commit.id.to_string(),
        author: format!("{} <{}>", author.name, author.email),
        at: Timestamp::from_millis(seconds.saturating_mul(1_000)),
        subject: message.summary().to_string(),
        edited: committed.is_edited,
    })
}

/// A line as HEAD has it.
struct Committed {
    line: u32,
    /// In the working tree its text is another one.
    is_edited: bool,
}

impl Place<'_> {
    fn refuse(&self, why: String) -> Refusal {
        Code::InputInvalid.refuse(why).with("path", self.path).with("line", self.line)
    }

    fn unreadable(&self, fault: &dyn std::fmt::Display) -> Refusal {
        Code::StoreIo.refuse(format!("the repository in {} cannot be read: {fault}", self.tree.display()))
    }

    /// A command of git for a person, wherever that is.
    fn git(&self, args: &[&str]) -> String {
        shell::line(&[&["git", "-C", &*self.tree.to_string_lossy()], args].concat())
    }

    fn blob<'a>(&self, repository: &gix::Repository, head: &gix::Commit<'a>, whole: &str) -> Result<gix::Object<'a>> {
        let (path, at) = (self.path, short(head));
        let tree = head.tree().map_err(|fault| self.unreadable(&fault))?;
        let Some(entry) = tree.lookup_entry_by_path(whole).map_err(|fault| self.unreadable(&fault))? else {
            let ever = self.git(&["log", "--all", "--", whole]);
            let is_there = !repository.is_bare() && self.tree.join(whole).symlink_metadata().is_ok();
            return Err(self.refuse(if is_there {
                format!(
                    "{path} is in the working tree and not in HEAD ({at}): commit it first, or ask by the name that it has there"
                )
            } else {
                format!("there is no {path}, neither in HEAD ({at}) nor in the working tree: `{ever}` shows whether it was ever there")
            }));
        };
        let mode = entry.mode();
        if mode.is_blob() {
            return entry.object().map_err(|fault| self.unreadable(&fault));
        }
        Err(self.refuse(if mode.is_tree() {
            format!("{path} is a folder in HEAD ({at}), and a line is one of a file")
        } else if mode.is_commit() {
            format!("{path} is a repository of its own, bound into HEAD ({at}): ask there, with --project")
        } else {
            format!("{path} is a symbolic link in HEAD ({at}): ask for the file that it leads to")
        }))
    }

    /// The line of HEAD that this line of the working tree is, or was before somebody changed it.
    fn committed(
        &self,
        repository: &gix::Repository,
        head: &gix::Commit<'_>,
        blob: &gix::Object<'_>,
        whole: &str,
    ) -> Result<Committed> {
        let (path, line, at) = (self.path, self.line, short(head));
        let file = self.tree.join(whole);
        let metadata = fs::symlink_metadata(&file).ok().filter(|file| file.is_file() && !repository.is_bare());
        let now = metadata.as_ref().and_then(|_| fs::read(&file).ok());
        let is_as_stored = metadata.is_some_and(|file| is_unchanged(repository, whole, blob.id, &file));
        let counted = |count: usize| format!("{count} {}", if count == 1 { "line" } else { "lines" });
        let too_far =
            |count: usize, of: &str| self.refuse(format!("{path} has {} {of}, and no line {line}", counted(count)));
        let stored: Vec<&[u8]> = blob.data.lines().collect();
        let Some(now) = now.filter(|_| !is_as_stored) else {
            // Nothing was changed, though a filter may show it otherwise; or it is not checked out.
            if line as usize > stored.len() {
                return Err(too_far(stored.len(), &format!("as HEAD ({at}) stores it")));
            }
            return Ok(Committed { line, is_edited: false });
        };
        let now: Vec<&[u8]> = now.lines().collect();
        if line as usize > now.len() {
            return Err(too_far(now.len(), "in the working tree"));
        }
        before(&stored, &now, line - 1).map(|found| Committed { line: found.line + 1, ..found }).ok_or_else(|| {
            let holders = shell::line(&["relay", "reservations", path]);
            self.refuse(format!(
                "line {line} of {path} was added in the working tree and is not committed yet; `{holders}` shows who holds the file now"
            ))
        })
    }
}

/// Which line, counted from 0, of the text before stands in this place of the text after; none when it came in between.
fn before(before: &[&[u8]], after: &[&[u8]], line: u32) -> Option<Committed> {
    let mut input = InternedInput::default();
    input.update_before(before.iter().copied());
    input.update_after(after.iter().copied());
    // The changes end so many lines apart.
    let (mut ended_before, mut ended_after) = (0, 0);
    for hunk in Diff::compute(Algorithm::Histogram, &input).hunks() {
        if line < hunk.after.start {
            break;
        }
        if line < hunk.after.end {
            let was = hunk.before.start + (line - hunk.after.start);
            return (was < hunk.before.end).then_some(Committed { line: was, is_edited: true });
        }
        (ended_before, ended_after) = (hunk.before.end, hunk.after.end);
    }
    Some(Committed { line: line - ended_after + ended_before, is_edited: false })
}

/// Whether the index knows that the file is what HEAD has: then a difference is a filter's work.
fn is_unchanged(repository: &gix::Repository, path: &str, stored: gix::ObjectId, file: &fs::Metadata) -> bool {
    let options = gix_index::decode::Options::default();
    let Ok(index) = gix_index::File::at(repository.index_path(), repository.object_hash(), true, options) else {
        return false;
    };
    index.entry_by_path(path.into()).is_some_and(|entry| {
        let (stat, mtime) = (&entry.stat, &entry.stat.mtime);
        // The index keeps the lower half of each.
        let is_then = i64::from(mtime.secs) == file.mtime() && i64::from(mtime.nsecs) == file.mtime_nsec();
        entry.id == stored && u64::from(stat.size) == file.size() & u64::from(u32::MAX) && is_then
    })
}

fn short(commit: &gix::Commit<'_>) -> String {
    commit.id.to_hex_with_len(8).to_string()
}

enum Unknown {
    /// The history that is there does not go back so far.
    CutOff,
    /// Parts of it were left where it was cloned from.
    Elsewhere,
    Fault(String),
}

/// The commit that brought the line, and the path that the file had there.
fn origin<'a>(
    repository: &'a gix::Repository,
    head: &gix::Commit<'_>,
    path: &BStr,
    line: u32,
) -> std::result::Result<(gix::Commit<'a>, String), Unknown> {
    let fault = |fault: &dyn std::fmt::Display| Unknown::Fault(fault.to_string());
    let boundary = repository.shallow_commits().map_err(|error| fault(&error))?;
    let options = gix::repository::blame_file::Options {
        diff_algorithm: Some(Algorithm::Histogram),
        ranges: gix::blame::BlameRanges::from_one_based_inclusive_range(line..=line).map_err(|error| fault(&error))?,
        since: None,
        rewrites: Some(gix::diff::Rewrites::default()),
    };
    let blamed = repository.blame_file(path, head.id, options).map_err(|error| match &boundary {
        Some(_) => Unknown::CutOff,
        None if is_partial(repository) => Unknown::Elsewhere,
        None => fault(&error),
    })?;
    let entry = blamed.entries.first().ok_or_else(|| fault(&"no commit brought the line"))?;
    if boundary.is_some_and(|commits| commits.contains(&entry.commit_id)) {
        return Err(Unknown::CutOff);
    }
    let then = entry.source_file_name.as_ref().map_or_else(|| path.to_string(), ToString::to_string);
    Ok((repository.find_commit(entry.commit_id).map_err(|error| fault(&error))?, then))
}

/// Whether some remote promised what is not here.
fn is_partial(repository: &gix::Repository) -> bool {
    let config = repository.config_snapshot();
    let mut remotes = config.plumbing().sections_by_name("remote").into_iter().flatten();
    remotes.any(|remote| remote.value("promisor").is_some())
}

/// That there is no repository to ask.
pub(crate) fn none(root: &Path) -> Refusal {
    Code::InputInvalid.refuse(format!("{} is in no git repository, so no line has a commit", root.display()))
}
