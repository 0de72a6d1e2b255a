//! The commit that last changed a line. Read with gix, like everything in the user's repository: no git runs, and nothing
//! that is configured there runs either. Blobs are compared as they are stored, so no filter and no converter is asked.

use std::path::Path;

use gix::bstr::{BStr, ByteSlice};
use relay_core::domain::time::Timestamp;
use relay_core::error::{Code, Refusal};
use relay_core::store::{Change, Result};

/// The last change of a line, counted from 1, in the file as HEAD has it. `root` is the work tree, or a bare repository;
/// `path` is relative to `inside`, a folder of it.
pub(crate) fn last_change(root: &Path, inside: &str, path: &str, line: u32) -> Result<Change> {
    let refuse = |why: String| Code::InputInvalid.refuse(why).with("path", path).with("line", line);
    let unreadable = |fault: &dyn std::fmt::Display| {
        Code::StoreIo.refuse(format!("the repository in {} cannot be read: {fault}", root.display()))
    };
    let repository = gix::open_opts(root, gix::open::Options::isolated()).map_err(|fault| unreadable(&fault))?;
    let Ok(head) = repository.head_commit() else {
        return Err(refuse("nothing is committed yet, so no line has a commit".to_owned()));
    };
    let whole = format!("{inside}{path}");
    let blob = head
        .tree()
        .ok()
        .and_then(|tree| tree.lookup_entry_by_path(&whole).ok().flatten())
        .filter(|entry| entry.mode().is_blob())
        .and_then(|entry| entry.object().ok())
        .ok_or_else(|| refuse(format!("{path} is no file in HEAD ({}): it is not committed yet", short(&head))))?;
    let committed = blob.data.lines().nth(line as usize - 1).map(<[u8]>::to_vec);
    let Some(committed) = committed else {
        let count = blob.data.lines().count();
        return Err(refuse(format!(
            "{path} has {count} {} in HEAD ({}), so line {line} is not committed",
            if count == 1 { "line" } else { "lines" },
            short(&head)
        )));
    };
    let (commit, then) = origin(&repository, &head, whole.as_str().into(), line).map_err(|fault| match fault {
        Unknown::CutOff => refuse(format!(
            "this clone is shallow, and its history ends before line {line} of {path} was changed: `git fetch --unshallow` brings it"
        )),
        Unknown::Fault(fault) => unreadable(&fault),
    })?;
    let author = commit.author().map_err(|fault| unreadable(&fault))?;
    let seconds = author.time().map_err(|fault| unreadable(&fault))?.seconds;
    let message = commit.message().map_err(|fault| unreadable(&fault))?;
    let now = std::fs::read(root.join(&whole)).ok();
    let differs = now.is_some_and(|bytes| bytes.lines().nth(line as usize - 1) != Some(&committed[..]));
    Ok(Change {
        path: path.to_owned(),
        path_then: then.strip_prefix(inside).unwrap_or(&then).to_owned(),
        line,
        commit: commit.id.to_string(),
        author: format!("{} <{}>", author.name, author.email),
        at: Timestamp::from_millis(seconds.saturating_mul(1_000)),
        subject: message.summary().to_string(),
        edited: differs,
    })
}

fn short(commit: &gix::Commit<'_>) -> String {
    commit.id.to_hex_with_len(8).to_string()
}

enum Unknown {
    /// The history that is there does not go back so far.
    CutOff,
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
        diff_algorithm: Some(gix::diff::blob::Algorithm::Histogram),
        ranges: gix::blame::BlameRanges::from_one_based_inclusive_range(line..=line).map_err(|error| fault(&error))?,
        since: None,
        rewrites: Some(gix::diff::Rewrites::default()),
    };
    let blamed = repository.blame_file(path, head.id, options).map_err(|error| match &boundary {
        Some(_) => Unknown::CutOff,
        None => fault(&error),
    })?;
    let entry = blamed.entries.first().ok_or_else(|| fault(&"no commit brought the line"))?;
    if boundary.is_some_and(|commits| commits.contains(&entry.commit_id)) {
        return Err(Unknown::CutOff);
    }
    let then = entry.source_file_name.as_ref().map_or_else(|| path.to_string(), ToString::to_string);
    Ok((repository.find_commit(entry.commit_id).map_err(|error| fault(&error))?, then))
}

/// That there is no repository to ask.
pub(crate) fn none(root: &Path) -> Refusal {
    Code::InputInvalid.refuse(format!("{} is in no git repository, so no line has a commit", root.display()))
}
