//! What surrounds every screen: where it stands, what its forms carry, and what was done last.
//!
//! The door makes it and the screens show it. A screen gets nothing else of the request that it answers.

use relay_core::domain::time::Timestamp;

/// One project of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The name of its folder, as it stands in the page's addresses.
    pub slug: String,
    /// The path that it belongs to.
    pub key: String,
    /// How many decisions wait for the human there, as far as is known.
    pub waiting: usize,
}

/// The entries of the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Screen {
    Projects,
    Now,
    Threads,
    Search,
    Agents,
    Contacts,
    Reservations,
    History,
    Replay,
    Talk,
    Write,
    /// The door's own pages: none of the entries is lit.
    Door,
}

/// What an action did. It is shown once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flash {
    pub text: String,
    pub signals: Vec<String>,
    /// Where on this page it can be seen.
    pub link: Option<String>,
}

/// What surrounds every screen.
pub struct Frame<'a> {
    /// None on `/` and on the door's own pages.
    pub project: Option<Place>,
    /// All of this machine, for the switcher.
    pub projects: &'a [Place],
    /// Which entry of the navigation is lit.
    pub here: Screen,
    pub nonce: &'a str,
    /// Empty where there is no session.
    pub csrf: &'a str,
    /// A fresh idempotency key for each form.
    pub key: &'a dyn Fn() -> String,
    pub flash: Option<&'a Flash>,
    pub now: Timestamp,
    /// Path and query of this page, for `back`.
    pub path: &'a str,
}
