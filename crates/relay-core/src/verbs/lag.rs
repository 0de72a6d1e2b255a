//! How far the git archive is behind the store. It may lag; nobody is told before it lags long.

use serde::{Deserialize, Serialize};

use crate::domain::event::Number;
use crate::domain::limits::LAG_TOLERATED;
use crate::domain::time::Timestamp;
use crate::store::{EventQuery, Facts, Result, Store};
use crate::wire::v1::{Signal, SignalCode};

/// What the archive has, for people and scripts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArchiveShape {
    /// The last event in it.
    pub number: Number,
    /// How many events of the store it lacks.
    pub behind: Number,
    /// Why it cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// Whether the archive has everything up to an event, or else everything that there is.
pub fn is_current(store: &dyn Store, up_to: Option<Number>) -> Result<bool> {
    let tip = store.read()?.tip()?.number;
    Ok(store.archived()? >= up_to.map_or(tip, |up_to| up_to.min(tip)))
}

impl ArchiveShape {
    pub fn of(store: &dyn Store, facts: &dyn Facts) -> Result<Self> {
        let tip = facts.tip()?.number;
        let (number, trouble) = match store.archived() {
            Ok(number) => (number, None),
            Err(refusal) => (0, Some(refusal.to_string())),
        };
        Ok(ArchiveShape { number, behind: tip.saturating_sub(number), trouble })
    }

    /// What is said when an event has waited for too long.
    pub fn signal(&self, facts: &dyn Facts, now: Timestamp) -> Result<Option<Signal>> {
        let oldest = EventQuery::between(self.number, self.number + 1);
        let waits_since = facts.events(&oldest)?.first().map(|event| event.payload.at);
        let too_long = waits_since.filter(|since| now.since(*since) > LAG_TOLERATED);
        Ok(too_long.map(|since| Signal::new(SignalCode::ArchiveLags, self.text(since))))
    }

    fn text(&self, since: Timestamp) -> String {
        let behind = if self.behind == 1 { "one event".to_owned() } else { format!("{} events", self.behind) };
        let trouble = self.trouble.as_ref().map(|trouble| format!(": {trouble}")).unwrap_or_default();
        format!("the git archive is {behind} behind, since {since}{trouble}; `relay drain --wait` says more")
    }
}
