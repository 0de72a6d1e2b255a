//! What went wrong in a hook. A hook that fails lets the agent go on, so nobody would know: `doctor` shows it.

use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use relay_core::domain::time::Timestamp;
use relay_store::filesystem::{own_text, private_file, private_folder, put_private};
use serde::{Deserialize, Serialize};

/// Above this the older half goes.
const MOST_BYTES: u64 = 64 * 1024;
/// A line says what went wrong, not everything about it.
const MOST_CHARS: usize = 500;

/// One thing that went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    pub at: Timestamp,
    /// Who called: a dialect and its event, or a git hook.
    pub what: String,
    pub why: String,
}

fn file(home: &Path) -> PathBuf {
    home.join("hooks").join("trace.jsonl")
}

/// Leaves a trace, where that can be written.
pub fn note(home: &Path, at: Timestamp, what: &str, why: &str) {
    let why = why.chars().take(MOST_CHARS).collect();
    let trace = Trace { at, what: what.to_owned(), why };
    let _ = write(home, &trace);
}

fn write(home: &Path, trace: &Trace) -> std::io::Result<()> {
    let path = file(home);
    if let Some(folder) = path.parent() {
        private_folder(folder).map_err(|refusal| std::io::Error::other(refusal.to_string()))?;
    }
    let mut file = private_file(&path)?;
    if file.metadata()?.len() > MOST_BYTES {
        let kept = read(home);
        put_private(&path, &kept[kept.len() / 2..].iter().map(line).collect::<String>())?;
        file = private_file(&path)?;
    }
    file.seek(SeekFrom::End(0))?;
    file.write_all(line(trace).as_bytes())
}

fn line(trace: &Trace) -> String {
    format!("{}\n", serde_json::to_string(trace).unwrap_or_default())
}

/// Everything that went wrong lately, oldest first.
pub fn read(home: &Path) -> Vec<Trace> {
    let text = own_text(&file(home), 2 * MOST_BYTES).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_wrong_is_kept_and_does_not_grow() {
        let home = tempfile::tempdir().unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(read(home.path()), []);
        for index in 0..1_000 {
            note(home.path(), Timestamp::from_millis(index), "claude PreToolUse", &"why ".repeat(200));
        }
        let kept = read(home.path());
        assert_eq!(kept.last().map(|trace| trace.at.millis()), Some(999));
        assert!(kept.iter().is_sorted_by_key(|trace| trace.at), "oldest first");
        assert!(kept.iter().all(|trace| trace.why.len() == MOST_CHARS));
        let bytes = std::fs::metadata(file(home.path())).map(|metadata| metadata.len()).unwrap_or_default();
        assert!((1..=MOST_BYTES + 1_000).contains(&bytes), "{bytes}");
    }
}
