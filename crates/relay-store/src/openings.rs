//! One-time links to the human's page: a private file each, under the hash of a code that is nowhere kept.
//!
//! Whoever can make such a file holds the human's credential or could read it. The file is taken away by whoever brings the
//! code, so a code opens the page once; and it opens it only at the server that it was made for, so that a stranger who
//! listens in that server's place learns nothing that is of use anywhere else. One that was handed to a browser stands in that
//! one's arguments, where other users may read it: it opens the page to this user's own processes alone.

use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use relay_core::domain::event::hex;
use relay_core::domain::time::{Span, Timestamp};
use relay_core::error::Code;
use relay_core::store::{Random, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::filesystem::{io_refusal, new_private_file, own_text, private_folder_below};
use crate::sockets::Ends;

/// How long a link waits to be opened.
pub const LASTS: Span = Span::seconds(120);
/// No file of one is longer.
const MOST_BYTES: u64 = 1024;

#[derive(Debug, Clone)]
pub struct Openings {
    home: PathBuf,
    folder: PathBuf,
}

/// What is kept of a link.
#[derive(Debug, Serialize, Deserialize)]
struct Opening {
    until: Timestamp,
    /// Where the server listens that it opens.
    at: SocketAddr,
    /// Others may have seen it.
    is_seen: bool,
}

impl Opening {
    fn read(path: &Path) -> Option<Self> {
        serde_json::from_str(&own_text(path, MOST_BYTES)?).ok()
    }

    /// One that listens everywhere listens there too.
    fn is_for(&self, server: SocketAddr) -> bool {
        self.at.port() == server.port() && (self.at.ip() == server.ip() || server.ip().is_unspecified())
    }
}

impl Openings {
    pub fn of(home: &Path) -> Self {
        Openings { home: home.to_owned(), folder: home.join("pages") }
    }

    /// Makes a code for the page of the server that listens there, and says it, for the only time. `is_seen` where it goes where
    /// other users look.
    pub fn make(&self, at: SocketAddr, is_seen: bool, now: Timestamp, random: &dyn Random) -> Result<String> {
        private_folder_below(&self.home, &self.folder)?;
        self.clear(now);
        let code = hex(&random.bytes());
        let path = self.path(&code);
        let opening = Opening { until: now.plus(LASTS), at, is_seen };
        let text = serde_json::to_string(&opening).map_err(|fault| Code::Internal.refuse(fault.to_string()))?;
        // Nobody needs it after a power cut: it is not synced.
        let written = new_private_file(&path).and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|fault| io_refusal(&path, &fault))?;
        Ok(code)
    }

    /// Takes a code that somebody brings to this server, and says whether it opens the page. Nobody is told why it does not. One
    /// that another user has seen is left where it is, for whom it was made.
    pub fn take(&self, code: &str, server: SocketAddr, ends: &Ends, now: Timestamp) -> bool {
        let path = self.path(code);
        let opening = Opening::read(&path);
        if opening.as_ref().is_some_and(|opening| opening.is_seen && !ends.are_of_one_user()) {
            return false;
        }
        // Of several who bring the same at once, one takes it away.
        let is_ours = fs::remove_file(&path).is_ok();
        self.clear(now);
        is_ours && opening.is_some_and(|opening| now < opening.until && opening.is_for(server))
    }

    /// Takes away what nobody has opened in time.
    fn clear(&self, now: Timestamp) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            if Opening::read(&entry.path()).is_some_and(|opening| opening.until <= now) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    fn path(&self, code: &str) -> PathBuf {
        self.folder.join(hex(&Sha256::digest(code.as_bytes())))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::SystemRandom;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap_or_else(|fault| panic!("{text}: {fault}"))
    }

    /// Somebody of this machine, and somebody of another.
    fn from(theirs: &str) -> Ends {
        Ends { theirs: address(theirs), ours: address("127.0.0.1:1") }
    }

    const HERE: &str = "127.0.0.1:1";

    fn later(seconds: i64) -> Timestamp {
        Timestamp::from_millis(1_794_700_800_000).plus(Span::seconds(seconds))
    }

    /// Made for one address, brought to a server at another.
    #[track_caller]
    fn check(made_for: &str, brought_to: &str, after: i64, opens: bool) {
        let home = tempfile::tempdir().unwrap_or_else(|fault| panic!("{fault}"));
        let openings = Openings::of(&home.path().join("home"));
        let code = openings.make(address(made_for), false, later(0), &SystemRandom).unwrap_or_default();
        assert_eq!(code.len(), 32, "128 bits");
        assert!(
            !openings.take(&code[1..], address(brought_to), &from(HERE), later(after)),
            "another code opens nothing"
        );
        assert_eq!(
            openings.take(&code, address(brought_to), &from(HERE), later(after)),
            opens,
            "{made_for} {brought_to} {after}"
        );
        assert!(!openings.take(&code, address(made_for), &from(HERE), later(0)), "and nothing opens twice");
    }

    #[test]
    fn a_code_opens_the_page_once_in_time_and_where_it_was_made_for() {
        let here = "127.0.0.1:7717";
        check(here, here, 0, true);
        check(here, here, 119, true);
        check(here, here, 120, false);
        check(here, "127.0.0.1:7718", 0, false);
        check(here, "[::1]:7717", 0, false);
        check(here, "0.0.0.0:7717", 0, true);
        check("0.0.0.0:7717", here, 0, false);
    }

    #[test]
    fn only_the_hash_of_a_code_is_kept_where_nobody_else_reads_and_no_longer_than_it_opens() -> Result<()> {
        let home = tempfile::tempdir().unwrap_or_else(|fault| panic!("{fault}"));
        let (openings, folder) = (Openings::of(home.path()), home.path().join("pages"));
        let code = openings.make(address(HERE), false, later(0), &SystemRandom)?;
        let kept =
            || -> Vec<PathBuf> { fs::read_dir(&folder).into_iter().flatten().flatten().map(|e| e.path()).collect() };
        let [file] = kept().try_into().unwrap_or_else(|more| panic!("{more:?}"));
        let mode = |path: &Path| fs::metadata(path).map_or(0, |metadata| metadata.mode() & 0o777);
        assert_eq!((mode(&folder), mode(&file)), (0o700, 0o600));
        let text = format!("{} {}", file.display(), fs::read_to_string(&file).unwrap_or_default());
        assert!(!text.contains(&code), "{text}");
        openings.make(address(HERE), false, later(60), &SystemRandom)?;
        assert_eq!(kept().len(), 2);
        openings.take("unknown", address(HERE), &from(HERE), later(130));
        assert_eq!(kept().len(), 1, "what is too old is gone, and the other is not");
        Ok(())
    }

    #[test]
    fn a_code_that_others_may_have_seen_is_of_no_use_to_them_and_stays() -> Result<()> {
        let home = tempfile::tempdir().unwrap_or_else(|fault| panic!("{fault}"));
        let openings = Openings::of(home.path());
        let elsewhere = from("192.0.2.7:1");
        let unseen = openings.make(address(HERE), false, later(0), &SystemRandom)?;
        assert!(openings.take(&unseen, address(HERE), &elsewhere, later(0)));
        let seen = openings.make(address(HERE), true, later(0), &SystemRandom)?;
        assert!(!openings.take(&seen, address(HERE), &elsewhere, later(0)));
        assert!(openings.take(&seen, address(HERE), &from(HERE), later(0)));
        Ok(())
    }

    #[test]
    fn what_somebody_else_could_have_written_opens_nothing() -> Result<()> {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap_or_else(|fault| panic!("{fault}"));
        let openings = Openings::of(home.path());
        let code = openings.make(address(HERE), false, later(0), &SystemRandom)?;
        let path = openings.path(&code);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o622)).unwrap_or_else(|fault| panic!("{fault}"));
        assert!(!openings.take(&code, address(HERE), &from(HERE), later(0)));
        Ok(())
    }
}
