//! Putting relay's part into one file: copied before, written in one step, read back.

use std::collections::BTreeSet;

use super::agents::{Agent, Target};
use super::edit::Edit;
use super::file::{Found, Trouble};
use super::report::{Action, Outcome};
use super::{Work, diff};

impl Work {
    pub(super) fn put_in(&mut self, target: &Target, agents: &BTreeSet<Agent>) -> Outcome {
        self.try_to_put_in(target, agents).unwrap_or_else(|trouble| {
            let by_hand = target.edit.put("").unwrap_or_default();
            Outcome::failed(&target.path, &trouble).by_hand(by_hand)
        })
    }

    fn try_to_put_in(&mut self, target: &Target, agents: &BTreeSet<Agent>) -> Result<Outcome, Trouble> {
        let Target { path, edit } = target;
        let found = Found::at(&self.place.root, path)?;
        let before = found.text.as_deref();
        let after = edit.put(before.unwrap_or_default()).map_err(Trouble::input)?;
        if before == Some(&after) {
            if !self.dry_run {
                self.ledger.is_there(path, agents, &after)?;
            }
            return Ok(self.told(target, Action::Unchanged, &after));
        }
        // Before anything is touched: what would be written must say what is meant.
        must_hold(edit, &after)?;
        let action = if before.is_some() { Action::Changed } else { Action::Created };
        let outcome = self.told(target, action, &after);
        if self.dry_run {
            return Ok(outcome.diff(diff::unified(path, before, Some(&after))));
        }
        let noted = self.ledger.entry(path).cloned();
        self.ledger.will_write(path, agents, before, &after)?;
        let written = self.write(&found, edit, &after);
        if written.is_err() {
            self.ledger.go_back(path, noted)?;
        }
        written.map(|()| outcome)
    }

    fn told(&self, Target { path, edit }: &Target, action: Action, after: &str) -> Outcome {
        let is_named = edit.put("").is_ok_and(|ours| self.place.is_named_in(&ours));
        Outcome::new(path, action).warning(edit.strange(after)).of_this_machine(is_named)
    }

    fn write(&mut self, found: &Found, edit: &Edit, after: &str) -> Result<(), Trouble> {
        let folders = found.missing_folders();
        // Noted before they are there: whoever dies in between leaves nothing that nobody knows of.
        self.ledger.will_make(&folders)?;
        found.make_folders(&folders)?;
        point!("init-after-folders");
        found.write(after)?;
        let now = found.now().unwrap_or_default();
        if now == after && edit.holds(&now) {
            return Ok(());
        }
        found.put_back()?;
        Err(Trouble::input("was not what relay had written when it was read back; it is as it was"))
    }
}

fn must_hold(edit: &Edit, text: &str) -> Result<(), Trouble> {
    let is_in = edit.holds(text);
    if is_in {
        Ok(())
    } else {
        Err(Trouble::input("says something twice, and which of it counts is not relay's to guess"))
    }
}
