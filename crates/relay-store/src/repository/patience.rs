//! A look at a repository that takes no longer than somebody is ready to wait. What is in a repository may be large, slow
//! or no file at all; whoever asked goes on in time.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;

use relay_core::domain::time::Span;
use relay_core::domain::worktree::{Seen, Unseen};

/// Set when nobody waits any more.
pub(super) type Over = Arc<AtomicBool>;

/// So many looks at once are more than anybody asks for: the repository does not answer.
const MOST_UNDERWAY: usize = 64;

static UNDERWAY: AtomicUsize = AtomicUsize::new(0);

/// Counts a look while it lasts, however it ends.
struct Counted;

impl Counted {
    fn new() -> Option<Self> {
        let counted = Counted;
        (UNDERWAY.fetch_add(1, Ordering::Relaxed) < MOST_UNDERWAY).then_some(counted)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        UNDERWAY.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Looks in a thread of its own: nothing else ends a wait for what never answers.
pub(super) fn within<T: Send + 'static>(
    patience: Span,
    look: impl FnOnce(&Over) -> Seen<T> + Send + 'static,
) -> Seen<T> {
    if patience <= Span::millis(0) {
        return Err(Unseen::Slow);
    }
    let counted = Counted::new().ok_or(Unseen::Slow)?;
    let over = Over::default();
    let (done, is_done) = mpsc::sync_channel(1);
    let theirs = Arc::clone(&over);
    let run = move || {
        let seen = look(&theirs);
        drop(counted);
        let _ = done.send(seen);
    };
    let started = thread::Builder::new().name("relay-look".to_owned()).spawn(run);
    started.map_err(|fault| Unseen::Unreadable(format!("no thread can be started: {fault}")))?;
    match is_done.recv_timeout(patience.to_std()) {
        Ok(seen) => seen,
        Err(RecvTimeoutError::Timeout) => {
            over.store(true, Ordering::Relaxed);
            Err(Unseen::Slow)
        }
        Err(RecvTimeoutError::Disconnected) => Err(Unseen::Unreadable("looking at the repository failed".to_owned())),
    }
}

/// Between two steps of a look that cannot be interrupted by itself.
pub(super) fn go_on(over: &Over) -> Seen<()> {
    if over.load(Ordering::Relaxed) { Err(Unseen::Slow) } else { Ok(()) }
}

/// The same for what calls back.
pub(super) fn flow(over: &Over) -> ControlFlow<()> {
    if over.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}
