//! Waking up: a watch on the gate's file.
//!
//! The write-ahead log is written *before* a commit becomes visible, so whoever wakes by it may look too early and then
//! sleep through. A writer closes the gate's file after its commit, and the kernel closes it for one that was killed.

use std::path::Path;

use relay_core::domain::time::Span;
use relay_core::store::{Result, Watch};

use crate::filesystem::{io_refusal, private_file};

#[cfg(target_os = "linux")]
pub(super) fn arm(folder: &Path) -> Result<Box<dyn Watch>> {
    Ok(Box::new(bell(folder)?))
}

#[cfg(target_os = "linux")]
pub(super) fn bell(folder: &Path) -> Result<Bell> {
    use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};

    let path = super::gate::path(folder);
    let refuse = |fault: rustix::io::Errno| io_refusal(&path, &fault.into());
    private_file(&path).map_err(|fault| io_refusal(&path, &fault))?;
    let descriptor = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).map_err(refuse)?;
    add_watch(&descriptor, &path, WatchFlags::CLOSE_WRITE).map_err(refuse)?;
    Ok(Bell { descriptor, path: path.clone() })
}

/// The bytes of an event about a file that is watched itself: the watch, what happened, and two fields of no use here.
#[cfg(target_os = "linux")]
const EVENT: usize = 16;

/// Whether the kernel says that it watches no longer.
#[cfg(target_os = "linux")]
fn is_the_last(event: &[u8]) -> bool {
    use rustix::fs::inotify::ReadFlags;
    let mask = event[4..8].try_into().map_or(0, u32::from_ne_bytes);
    ReadFlags::from_bits_retain(mask).contains(ReadFlags::IGNORED)
}

/// Rings after every commit. Its descriptor can be read from when it has, for those who wait for many things at once.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub struct Bell {
    descriptor: std::os::fd::OwnedFd,
    path: std::path::PathBuf,
}

#[cfg(target_os = "linux")]
impl std::os::fd::AsRawFd for Bell {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.descriptor.as_raw_fd()
    }
}

#[cfg(target_os = "linux")]
impl Bell {
    /// One wake for everything that happened meanwhile: what matters is read from the store. False when the file that rings
    /// is gone, and the bell with it.
    pub fn quieten(&mut self) -> bool {
        let mut buffer = [0_u8; 64 * EVENT];
        let mut is_there = true;
        while let Ok(count @ 1..) = rustix::io::read(&self.descriptor, &mut buffer) {
            is_there &= !buffer[..count].chunks_exact(EVENT).any(is_the_last);
        }
        is_there
    }
}

#[cfg(target_os = "linux")]
impl Watch for Bell {
    fn wait(&mut self, at_most: Span) -> Result<()> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        use rustix::io::Errno;

        let duration = at_most.to_std();
        let timeout = Timespec {
            tv_sec: duration.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: duration.subsec_nanos().into(),
        };
        match poll(&mut [PollFd::new(&self.descriptor, PollFlags::IN)], Some(&timeout)) {
            Ok(0) | Err(Errno::INTR) => return Ok(()),
            Ok(_) => {}
            Err(fault) => return Err(io_refusal(&self.path, &fault.into())),
        }
        if !self.quieten() {
            // The next look finds out what has become of the store.
            if let Ok(anew) = bell(self.path.parent().unwrap_or(&self.path)) {
                *self = anew;
            }
        }
        Ok(())
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn arm(folder: &Path) -> Result<Box<dyn Watch>> {
    private_file(&super::gate::path(folder)).map_err(|fault| io_refusal(folder, &fault))?;
    Ok(Box::new(SlowLook))
}

/// Where the kernel offers no watch, a look every quarter of a second.
#[cfg(not(target_os = "linux"))]
struct SlowLook;

#[cfg(not(target_os = "linux"))]
impl Watch for SlowLook {
    fn wait(&mut self, at_most: Span) -> Result<()> {
        #[expect(clippy::disallowed_methods, reason = "there is no watch to wait on")]
        std::thread::sleep(at_most.to_std().min(std::time::Duration::from_millis(250)));
        Ok(())
    }
}
