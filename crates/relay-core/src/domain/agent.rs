//! An agent: an identity inside one project.

use serde::{Deserialize, Serialize};

use super::limits::{ALIVE_WITHIN, RETIRED_AFTER};
use super::name::AgentName;
use super::time::Timestamp;

/// Whose mail an agent takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// Anyone in the project.
    Open,
    /// Anyone in the project with whom there is shared context.
    #[default]
    Auto,
    /// Accepted contact links only.
    ContactsOnly,
    /// Nobody but the human.
    BlockAll,
}

impl Policy {
    pub const ALL: [Policy; 4] = [Policy::Open, Policy::Auto, Policy::ContactsOnly, Policy::BlockAll];

    pub fn as_str(self) -> &'static str {
        match self {
            Policy::Open => "open",
            Policy::Auto => "auto",
            Policy::ContactsOnly => "contacts_only",
            Policy::BlockAll => "block_all",
        }
    }

    /// Whose mail is taken, in words.
    pub fn whose(self) -> &'static str {
        match self {
            Policy::Open => "anyone in the project",
            Policy::Auto => "anyone in the project it shares work with",
            Policy::ContactsOnly => "accepted contacts only",
            Policy::BlockAll => "nobody but the human",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Policy::ALL.into_iter().find(|policy| policy.as_str() == text)
    }
}

/// What was decided about an agent. Whether it went quiet is computed, see [`Agent::state`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    Active,
    Suspended,
    Retired,
}

impl Standing {
    pub fn as_str(self) -> &'static str {
        match self {
            Standing::Active => "active",
            Standing::Suspended => "suspended",
            Standing::Retired => "retired",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Standing::Active, Standing::Suspended, Standing::Retired].into_iter().find(|s| s.as_str() == text)
    }

    /// Only `start` revives: a suspension of somebody retired would be a way back without it.
    pub fn suspended(self) -> Option<Self> {
        (self != Standing::Retired).then_some(Standing::Suspended)
    }

    /// Lifting a suspension where there is none changes nothing.
    pub fn reinstated(self) -> Self {
        if self == Standing::Suspended { Standing::Active } else { self }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Agent {
    pub name: AgentName,
    /// The credential that registered it, and the only one that may act as it.
    pub credential: String,
    pub program: Option<String>,
    pub model: Option<String>,
    pub task: Option<String>,
    pub policy: Policy,
    pub session: Option<String>,
    /// Set for a subagent.
    pub parent: Option<AgentName>,
    pub standing: Standing,
    pub registered_at: Timestamp,
    /// The time of its newest event.
    pub acted_at: Timestamp,
    /// The thread it prepared last.
    pub thread: Option<super::name::ThreadId>,
}

impl Agent {
    /// The later of the two times that are believable: its newest event and its last presence.
    pub fn seen_at(&self, presence: Option<Timestamp>, now: Timestamp) -> Timestamp {
        let presence = presence.filter(|seen| seen.is_believable(now));
        match presence {
            Some(seen) if !self.acted_at.is_believable(now) => seen,
            Some(seen) => seen.max(self.acted_at),
            None => self.acted_at,
        }
    }

    /// The standing at `now`: an agent unseen for a week has retired by itself.
    pub fn state(&self, seen_at: Timestamp, now: Timestamp) -> Standing {
        match self.standing {
            Standing::Active if now.since(seen_at) > RETIRED_AFTER => Standing::Retired,
            standing => standing,
        }
    }

    /// Whether this session still speaks for the agent that it once started: the newest one does, and no other.
    pub fn is_bound_to(&self, session: &str) -> bool {
        self.session.as_deref() == Some(session)
    }

    /// The session that this agent is bound to by starting, of the one that it gives and the harness's own.
    ///
    /// A subagent runs inside its parent's session, and a call from there is its parent's: only a session that it gives
    /// can be its own.
    pub fn session_to_bind<'a>(
        is_subagent: bool,
        given: Option<&'a String>,
        harness: Option<&'a String>,
    ) -> Option<&'a String> {
        given.or(harness.filter(|_| !is_subagent))
    }

    /// Whether the two are one party towards others: a subagent shares its parent's claims, siblings do not.
    pub fn shares_claims_with(&self, other: &Agent) -> bool {
        let is_parent = |child: &Agent, other: &Agent| child.parent.as_ref().is_some_and(|p| p.same_as(&other.name));
        self.name.same_as(&other.name) || is_parent(self, other) || is_parent(other, self)
    }
}

/// Whether somebody last seen at `seen_at` is alive, when no process of it is known to run.
pub fn is_alive(seen_at: Timestamp, now: Timestamp) -> bool {
    seen_at.is_believable(now) && now.since(seen_at) <= ALIVE_WITHIN
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::Span;

    const NOW: Timestamp = Timestamp::from_millis(1_794_700_800_000);

    fn agent(standing: Standing, acted_at: Timestamp) -> Agent {
        Agent {
            name: AgentName::parse("BlueLake").unwrap_or_else(|fault| panic!("{fault}")),
            credential: "uid:1".into(),
            program: None,
            model: None,
            task: None,
            policy: Policy::Auto,
            session: None,
            parent: None,
            standing,
            registered_at: acted_at,
            acted_at,
            thread: None,
        }
    }

    #[test]
    fn an_agent_unseen_for_a_week_has_retired_by_itself() {
        let check = |standing, ago: Span, expected| {
            let seen = NOW.minus(ago);
            assert_eq!(agent(standing, seen).state(seen, NOW), expected, "{standing:?} {ago}");
        };
        check(Standing::Active, Span::days(7), Standing::Active);
        check(Standing::Active, Span::millis(7 * 86_400_000 + 1), Standing::Retired);
        check(Standing::Suspended, Span::days(8), Standing::Suspended);
        check(Standing::Retired, Span::seconds(1), Standing::Retired);
    }

    #[test]
    fn alive_means_seen_within_ten_minutes_by_a_believable_clock() {
        assert!(is_alive(NOW, NOW));
        assert!(is_alive(NOW.minus(Span::minutes(10)), NOW));
        assert!(!is_alive(NOW.minus(Span::millis(600_001)), NOW));
        assert!(is_alive(NOW.plus(Span::minutes(5)), NOW));
        assert!(!is_alive(NOW.plus(Span::minutes(6)), NOW));
    }

    #[test]
    fn presence_counts_where_it_is_later_and_believable() {
        let old = NOW.minus(Span::hours(1));
        let future = NOW.plus(Span::days(3650));
        assert_eq!(agent(Standing::Active, old).seen_at(None, NOW), old);
        assert_eq!(agent(Standing::Active, old).seen_at(Some(NOW), NOW), NOW);
        assert_eq!(agent(Standing::Active, NOW).seen_at(Some(old), NOW), NOW);
        assert_eq!(agent(Standing::Active, old).seen_at(Some(future), NOW), old);
        assert_eq!(agent(Standing::Active, future).seen_at(Some(old), NOW), old);
    }

    #[test]
    fn a_policy_and_a_standing_read_back_from_their_words() {
        for (policy, word) in Policy::ALL.into_iter().zip(["open", "auto", "contacts_only", "block_all"]) {
            assert_eq!((policy.as_str(), Policy::parse(word)), (word, Some(policy)));
        }
        assert_eq!((Policy::parse("closed"), Policy::default()), (None, Policy::Auto));
        for (standing, word) in
            [(Standing::Active, "active"), (Standing::Suspended, "suspended"), (Standing::Retired, "retired")]
        {
            assert_eq!((standing.as_str(), Standing::parse(word)), (word, Some(standing)));
        }
        assert_eq!(Standing::parse("gone"), None);
    }

    #[test]
    fn only_start_revives() {
        use Standing::*;
        for (before, suspended, reinstated) in
            [(Active, Some(Suspended), Active), (Suspended, Some(Suspended), Active), (Retired, None, Retired)]
        {
            assert_eq!((before.suspended(), before.reinstated()), (suspended, reinstated), "{before:?}");
        }
    }

    #[test]
    fn only_the_newest_session_speaks_for_an_agent() {
        let bound =
            |session: Option<&str>| Agent { session: session.map(str::to_owned), ..agent(Standing::Active, NOW) };
        for (session, asked, expected) in [(Some("s2"), "s2", true), (Some("s2"), "s1", false), (None, "s1", false)] {
            assert_eq!(bound(session).is_bound_to(asked), expected, "{session:?} {asked}");
        }
    }

    #[test]
    fn a_subagent_never_takes_the_session_that_it_runs_in() {
        let (given, harness) = ("own".to_owned(), "parents".to_owned());
        for (is_subagent, given, harness, expected) in [
            (false, None, None, None),
            (false, None, Some(&harness), Some("parents")),
            (false, Some(&given), Some(&harness), Some("own")),
            (true, None, Some(&harness), None),
            (true, Some(&given), Some(&harness), Some("own")),
        ] {
            let bound = Agent::session_to_bind(is_subagent, given, harness);
            assert_eq!(bound.map(String::as_str), expected, "{is_subagent} {given:?} {harness:?}");
        }
    }

    #[test]
    fn a_subagent_shares_claims_with_its_parent_and_not_with_its_sibling() {
        let named = |name: &str, parent: Option<&str>| Agent {
            name: AgentName::parse(name).unwrap_or_else(|fault| panic!("{fault}")),
            parent: parent.map(|parent| AgentName::parse(parent).unwrap_or_else(|fault| panic!("{fault}"))),
            ..agent(Standing::Active, NOW)
        };
        let (parent, one, two) = (named("Lead", None), named("One", Some("lead")), named("Two", Some("Lead")));
        let grandchild = named("Deep", Some("One"));
        for (left, right, shares) in [
            (&parent, &parent, true),
            (&parent, &named("LEAD", None), true),
            (&parent, &one, true),
            (&one, &two, false),
            (&parent, &grandchild, false),
            (&one, &grandchild, true),
            (&parent, &named("Other", None), false),
        ] {
            assert_eq!(left.shares_claims_with(right), shares, "{} {}", left.name, right.name);
            assert_eq!(right.shares_claims_with(left), shares, "{} {}", right.name, left.name);
        }
    }
}
