//! The other projects, as seen from inside a batch: not at all. Two gates are never held at once, so whoever asks for
//! another project there is undone, and runs on its own.

use std::cell::Cell;

use relay_core::domain::name::ProjectKey;
use relay_core::error::{Code, Refusal};
use relay_core::store::{Bus, Result, Store};

#[derive(Default)]
pub struct Guarded {
    asked: Cell<bool>,
}

impl Guarded {
    pub fn was_asked(&self) -> bool {
        self.asked.get()
    }

    fn refuse(&self) -> Refusal {
        self.asked.set(true);
        Code::StoreBusy.refuse("another project is not looked at while this one is written to")
    }
}

impl Bus for Guarded {
    fn open(&self, _: &ProjectKey) -> Result<Option<(ProjectKey, Box<dyn Store>)>> {
        Err(self.refuse())
    }

    fn find(&self, _: &str) -> Result<Vec<ProjectKey>> {
        Err(self.refuse())
    }
}
