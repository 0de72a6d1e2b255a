//! The store of a project that cannot be opened, for `recover`: it answers everything with why.

use relay_core::domain::event::Number;
use relay_core::domain::name::AgentName;
use relay_core::domain::time::{Span, Timestamp};
use relay_core::error::Refusal;
use relay_core::store::{Errand, Facts, Guard, Harness, Presence, Result, Size, Store, Tx, Wait, Watch};

pub struct Closed(pub Refusal);

impl Store for Closed {
    fn begin(&self, _: Errand<'_>) -> Result<Box<dyn Tx + '_>> {
        Err(self.0.clone())
    }

    fn read(&self) -> Result<Box<dyn Facts + '_>> {
        Err(self.0.clone())
    }

    fn sync(&self) -> Result<()> {
        Err(self.0.clone())
    }

    fn settle(&self, _: Span) -> Result<()> {
        Err(self.0.clone())
    }

    fn presence(&self) -> &dyn Presence {
        self
    }

    fn watch(&self) -> Result<Box<dyn Watch>> {
        Err(self.0.clone())
    }

    fn archived(&self) -> Result<Number> {
        Err(self.0.clone())
    }

    fn size(&self) -> Size {
        Size::default()
    }
}

/// Nobody is seen through a closed door.
impl Presence for Closed {
    fn seen(&self, _: &AgentName) -> Option<Timestamp> {
        None
    }

    fn touch(&self, _: &AgentName, _: Timestamp) {}

    fn has_process(&self, _: &AgentName) -> bool {
        false
    }

    fn note(&self, _: &AgentName, _: &Harness) {}

    fn forget(&self, _: &AgentName) {}

    fn process_lives(&self, _: u32) -> bool {
        true
    }

    fn enter(&self, _: &Wait) -> Result<Box<dyn Guard>> {
        Err(self.0.clone())
    }

    fn waits(&self) -> Vec<Wait> {
        Vec::new()
    }

    fn waits_of(&self, _: &str) -> Vec<Wait> {
        Vec::new()
    }
}
