//! Where a text is not as relay wants it, named so that a person finds it.

/// One thing that is not as it is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    pub how: How,
    /// As its file calls it.
    pub what: String,
    /// Whether relay does not reach the agent without it.
    pub is_vital: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// It is not there.
    Missing,
    /// Another relay wrote it, or somebody has edited it.
    Different,
    /// Another relay wrote it, and this one has no use for it.
    LeftOver,
}

impl Gap {
    pub fn vital(how: How, what: impl Into<String>) -> Self {
        Gap { how, what: what.into(), is_vital: true }
    }

    pub fn minor(how: How, what: impl Into<String>) -> Self {
        Gap { how, what: what.into(), is_vital: false }
    }
}

/// How something is there that should be.
pub fn of(is_there: bool, is_as_wanted: bool) -> Option<How> {
    match (is_there, is_as_wanted) {
        (false, _) => Some(How::Missing),
        (true, false) => Some(How::Different),
        (true, true) => None,
    }
}
