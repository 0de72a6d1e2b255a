//! Commits on their way into the repository: one run of `git fast-import` makes one pack of them, and a draft that only this
//! run names. Nothing public moves here.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};

use relay_core::archive::{Entry, File, message};
use relay_core::store::Result;

use super::git;
use super::repository::DRAFT;

/// Whose commits they are.
pub(super) const COMMITTER: &str = "relay <relay@localhost>";

pub(super) struct Import {
    repository: PathBuf,
    child: Child,
    stream: BufWriter<ChildStdin>,
    /// The parent of the next commit, as the stream names it.
    parent: Option<String>,
    commits: u64,
}

impl Import {
    /// Begins on top of a commit, or of nothing.
    pub fn begin(repository: &Path, parent: Option<&str>) -> Result<Self> {
        let mut command = git::git(repository, &["fast-import", "--quiet", "--done", "--force", "--date-format=raw"])?;
        let mut child = command.stdin(Stdio::piped()).spawn().map_err(|fault| git::missing(&fault))?;
        let stdin = child.stdin.take().ok_or_else(|| git::missing(&std::io::ErrorKind::BrokenPipe.into()))?;
        let stream = BufWriter::with_capacity(1 << 16, stdin);
        Ok(Import { repository: repository.to_owned(), child, stream, parent: parent.map(str::to_owned), commits: 0 })
    }

    /// Adds one commit with these events. What fails here is told by git, when it has ended.
    pub fn commit(&mut self, entries: &[Entry], chain: &str) {
        let _ = self.write_commit(entries, chain);
    }

    fn write_commit(&mut self, entries: &[Entry], chain: &str) -> std::io::Result<()> {
        let Some(last) = entries.last() else { return Ok(()) };
        self.commits += 1;
        let seconds = committed_at(last);
        write!(self.stream, "commit {DRAFT}\nmark :{}\ncommitter {COMMITTER} {seconds} +0000\n", self.commits)?;
        data(&mut self.stream, message(entries, chain).as_bytes())?;
        if let Some(parent) = &self.parent {
            writeln!(self.stream, "from {parent}")?;
        }
        // Like follows like: each file is packed as its difference from the one before it.
        let events = entries.iter().map(Entry::file);
        for file in events.chain(entries.iter().filter_map(Entry::readable)) {
            self.add(&file)?;
        }
        self.parent = Some(format!(":{}", self.commits));
        Ok(())
    }

    fn add(&mut self, file: &File) -> std::io::Result<()> {
        writeln!(self.stream, "M 100644 inline {}", file.path)?;
        data(&mut self.stream, &file.bytes)
    }

    /// Ends the run; the id of the last commit.
    pub fn finish(mut self) -> Result<String> {
        let last = format!("get-mark :{}\ndone\n", self.commits);
        let _ = self.stream.write_all(last.as_bytes()).and_then(|()| self.stream.flush());
        drop(self.stream);
        let output = self.child.wait_with_output().map_err(|fault| git::missing(&fault))?;
        if !output.status.success() {
            return Err(git::failed(&self.repository, &output));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

/// When a commit is dated that ends with this event, in seconds. Before 1970 git knows no dates.
pub(super) fn committed_at(last: &Entry) -> i64 {
    last.payload.at.millis().div_euclid(1000).max(0)
}

fn data(stream: &mut impl Write, bytes: &[u8]) -> std::io::Result<()> {
    writeln!(stream, "data {}", bytes.len())?;
    stream.write_all(bytes)?;
    stream.write_all(b"\n")
}
