//! What becomes true once an answer was written out: mail was surfaced, or read.

use std::fmt;
use std::sync::Arc;

use relay_core::verbs::Afterwards;

use super::job::Job;
use super::pending::Mark;
use super::writer;

/// What is left to do for an answer. One that is dropped was never written out, and the mail is shown again.
pub struct Late {
    job: Arc<Job>,
    afterwards: Afterwards,
    mark: Mark,
}

impl Late {
    pub(super) fn new(job: &Arc<Job>, afterwards: Afterwards) -> Self {
        Late { job: job.clone(), afterwards, mark: job.desk.pending.mark(job.name()) }
    }

    /// The answer is out. Whoever asked is not told how this ends: at worst the mail is shown again.
    pub fn commit(self) {
        let Late { job, afterwards, mark } = self;
        writer::written(job, afterwards, mark);
    }
}

impl fmt::Debug for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Late").finish_non_exhaustive()
    }
}
