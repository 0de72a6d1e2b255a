//! Who is here, and who waits for whom: small files beside the store, never synced.
//!
//! A living process holds a lock on its file. The kernel lets go of it however the process ends, so a file that can be
//! locked speaks of the dead and is removed.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use relay_core::domain::name::AgentName;
use relay_core::domain::time::Timestamp;
use relay_core::store::{Guard, Presence, Result, Wait};

use crate::filesystem::{io_refusal, private_file, private_folder};

#[derive(Debug)]
pub struct Files {
    folder: PathBuf,
}

/// Tells several announcements of one process apart.
static ENTERED: AtomicU32 = AtomicU32::new(0);

impl Files {
    pub fn open(store: &Path) -> Result<Self> {
        let folder = store.join("presence");
        if !folder.is_dir() {
            private_folder(&folder)?;
        }
        Ok(Files { folder })
    }

    fn seen_file(&self, agent: &AgentName) -> PathBuf {
        self.folder.join(format!("{}.seen", agent.key()))
    }

    /// Announcements whose process lives; the others are cleared away.
    fn living(&self) -> Vec<Wait> {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return Vec::new();
        };
        let is_announcement = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "live");
        entries
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .filter(is_announcement)
            .filter_map(|path| read_living(&path))
            .collect()
    }
}

fn read_living(path: &Path) -> Option<Wait> {
    let mut file = File::open(path).ok()?;
    if file.try_lock_shared().is_ok() {
        let _ = fs::remove_file(path);
        return None;
    }
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

impl Presence for Files {
    fn seen(&self, agent: &AgentName) -> Option<Timestamp> {
        let text = fs::read_to_string(self.seen_file(agent)).ok()?;
        text.trim().parse().ok().map(Timestamp::from_millis)
    }

    fn touch(&self, agent: &AgentName, now: Timestamp) {
        // Presence is a hint: a disk that refuses it does not fail a verb. A fixed width makes the write atomic enough.
        if let Ok(mut file) = private_file(&self.seen_file(agent)) {
            let _ = file.write_all(format!("{:<20}", now.millis()).as_bytes());
        }
    }

    fn has_process(&self, agent: &AgentName) -> bool {
        self.living().iter().any(|wait| wait.agent.is(agent))
    }

    fn process_lives(&self, pid: u32) -> bool {
        let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
        pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
    }

    fn enter(&self, wait: &Wait) -> Result<Box<dyn Guard>> {
        let ordinal = ENTERED.fetch_add(1, Ordering::Relaxed);
        let path = self.folder.join(format!("{}-{ordinal}.live", std::process::id()));
        let lock = announce(&path, wait).map_err(|fault| io_refusal(&path, &fault))?;
        Ok(Box::new(Entered { lock, path }))
    }

    fn waits(&self) -> Vec<Wait> {
        let mut waits = self.living();
        waits.sort_by_key(|wait| (wait.ticket, wait.pid));
        waits
    }
}

/// Locked and written before it has the name that others look for: an unlocked announcement speaks of the dead.
fn announce(path: &Path, wait: &Wait) -> std::io::Result<File> {
    let fresh = path.with_extension("fresh");
    let mut file = private_file(&fresh)?;
    file.lock()?;
    file.set_len(0)?;
    file.write_all(serde_json::to_string(wait).unwrap_or_default().as_bytes())?;
    fs::rename(&fresh, path)?;
    Ok(file)
}

struct Entered {
    lock: File,
    path: PathBuf,
}

impl Guard for Entered {
    fn update(&mut self, wait: &Wait) {
        if let Ok(lock) = announce(&self.path, wait) {
            self.lock = lock;
        }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
