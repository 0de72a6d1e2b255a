//! Taking relay's part out of one file: as it was before relay came, where nobody has edited it since; otherwise only relay's
//! part goes.

use super::agents::{Agent, Setting};
use super::edit::Edit;
use super::file::{Found, Trouble};
use super::ledger::{Entry, hash};
use super::report::{Action, Outcome};
use super::{Work, diff};

impl Work {
    /// Nothing where there is nothing of relay's.
    pub(super) fn take_from(&mut self, path: &str, edit: Option<&Edit>, agents: &[Agent]) -> Option<Outcome> {
        self.try_to_take(path, edit, agents).unwrap_or_else(|trouble| Some(Outcome::failed(path, &trouble)))
    }

    fn try_to_take(&mut self, path: &str, edit: Option<&Edit>, leaving: &[Agent]) -> Result<Option<Outcome>, Trouble> {
        let entry = self.ledger.entry(path).cloned();
        let found = Found::at(&self.place.root, path)?;
        let Some(text) = found.text.as_deref() else { return self.is_gone(path) };
        if let Some(agent) = self.staying(path, entry.as_ref(), leaving).first() {
            if entry.is_some() && !self.dry_run {
                self.ledger.no_longer_for(path, leaving)?;
            }
            let is_ours = edit.is_some_and(|edit| has_part(edit, text));
            let outcome = Outcome::new(path, Action::Unchanged).because(format!("{} uses it", agent.title()));
            return Ok(is_ours.then_some(outcome));
        }
        let Some((action, after)) = self.without(text, entry.as_ref(), edit)? else { return self.is_gone(path) };
        let outcome = Outcome::new(path, action);
        if self.dry_run {
            return Ok(Some(outcome.diff(diff::unified(path, Some(text), after.as_deref()))));
        }
        self.replace(&found, text, after.as_deref())?;
        self.ledger.forget(path)?;
        Ok(Some(outcome))
    }

    /// Nothing of relay's is in a file, whatever the ledger says.
    fn is_gone(&mut self, path: &str) -> Result<Option<Outcome>, Trouble> {
        if self.ledger.entry(path).is_some() && !self.dry_run {
            self.ledger.forget(path)?;
        }
        Ok(None)
    }

    fn replace(&self, found: &Found, text: &str, after: Option<&str>) -> Result<(), Trouble> {
        self.ledger.keep(text)?;
        match after {
            Some(after) => found.write(after)?,
            None => found.delete()?,
        }
        let is_so = found.now().as_deref() == after;
        if is_so { Ok(()) } else { Err(Trouble::input("was not what relay had written when it was read back")) }
    }

    /// What becomes of a file, if anything.
    fn without(
        &self,
        text: &str,
        entry: Option<&Entry>,
        edit: Option<&Edit>,
    ) -> Result<Option<(Action, Option<String>)>, Trouble> {
        if let Some(entry) = entry.filter(|entry| entry.exact && hash(text) == entry.after) {
            let before = entry.before.as_ref().map(|before| self.ledger.copy(before)).transpose()?;
            if edit.is_none_or(|edit| comes_from(edit, before.as_deref().unwrap_or_default(), text)) {
                return Ok(Some((if before.is_some() { Action::Restored } else { Action::Removed }, before)));
            }
        }
        let Some(edit) = edit else {
            let copy = entry
                .and_then(|entry| entry.before.as_deref())
                .map(|before| self.ledger.place_of(before).display().to_string());
            let copy = copy.map(|copy| format!("; as it was before: {copy}")).unwrap_or_default();
            return Err(Trouble::input(format!(
                "has been edited since relay changed it, and what of it is relay's is not known any more{copy}"
            )));
        };
        let left = edit.take(text).map_err(Trouble::input)?;
        let relay_made_it = entry.is_none_or(Entry::was_made_by_relay);
        Ok(match left == text {
            true => None,
            false if relay_made_it && edit.is_hollow(&left) => Some((Action::Removed, None)),
            false => Some((Action::Changed, Some(left))),
        })
    }

    /// Who else needs relay's part of a file: those that the ledger names, or, where it knows nothing of the file, those that are set
    /// up in files of their own.
    fn staying(&self, path: &str, entry: Option<&Entry>, leaving: &[Agent]) -> Vec<Agent> {
        if let Some(entry) = entry {
            return entry.agents.iter().copied().filter(|agent| !leaving.contains(agent)).collect();
        }
        let others = Agent::ALL.into_iter().filter(|agent| !leaving.contains(agent));
        others.filter(|agent| self.targets(*agent).contains(&path.to_owned()) && self.is_set_up(*agent)).collect()
    }

    fn targets(&self, agent: Agent) -> Vec<String> {
        let setting = Setting { place: &self.place, chosen: &[agent] };
        agent.targets(&setting).into_iter().map(|target| target.path).collect()
    }

    fn is_set_up(&self, agent: Agent) -> bool {
        let is_its_own =
            |path: &String| !Agent::ALL.into_iter().any(|other| other != agent && self.targets(other).contains(path));
        self.targets(agent).into_iter().filter(is_its_own).any(|path| {
            let text = Found::at(&self.place.root, &path).ok().and_then(|found| found.text);
            text.is_some_and(|text| self.edit_of(&path).is_some_and(|edit| has_part(&edit, &text)))
        })
    }
}

/// Whether a text is this one with relay's part in it, whichever relay put that in: others can write to the ledger, and what they
/// put there must not get into a file by way of relay.
fn comes_from(edit: &Edit, before: &str, text: &str) -> bool {
    let bare = |text: &str| text.split_whitespace().collect::<String>();
    edit.put(before).is_ok_and(|put| put == text) || edit.take(text).is_ok_and(|left| bare(&left) == bare(before))
}

fn has_part(edit: &Edit, text: &str) -> bool {
    edit.take(text).is_ok_and(|left| left != text)
}
