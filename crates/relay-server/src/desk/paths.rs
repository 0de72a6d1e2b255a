//! Which project a path means. A path leads through links, worktrees and git's own files, on a file system that may not even
//! answer; what was found a moment ago is believed, so that most requests need not look.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use relay_core::domain::name::ProjectKey;
use relay_core::domain::time::Span;
use relay_core::store::Result;
use relay_store::repository;

/// How long it is believed.
const A_MOMENT: Span = Span::seconds(1);
/// How many are remembered before all are forgotten.
const MOST: usize = 1_024;

#[derive(Default)]
pub struct Paths(Mutex<HashMap<String, (ProjectKey, Span)>>);

impl Paths {
    /// What it meant a moment ago.
    pub fn known(&self, path: &str, now: Span) -> Option<ProjectKey> {
        let found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (project, at) = found.get(path)?;
        (now.as_millis() - at.as_millis() < A_MOMENT.as_millis()).then(|| project.clone())
    }

    pub fn find(&self, path: &str, now: Span) -> Result<ProjectKey> {
        let project = repository::resolve(Path::new(path))?;
        let mut found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if found.len() >= MOST {
            found.clear();
        }
        found.insert(path.to_owned(), (project.clone(), now));
        Ok(project)
    }
}
