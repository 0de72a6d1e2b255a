//! The sizes relay accepts. The defaults are the protocol's; an operator may set others in `config.toml`.

use serde::Deserialize;

use super::time::Span;

/// A claim lives at least this long.
pub const TTL_MIN: Span = Span::seconds(60);
/// A claim lives at most this long without being asked for again.
pub const TTL_MAX: Span = Span::hours(24);
pub const TTL_DEFAULT: Span = Span::hours(1);
/// What a hook claims for an agent that edits lives this long after the last sign of the agent's activity.
pub const HOOK_TTL: Span = Span::minutes(45);
/// A claim for longer than this earns the signal `LONG_TTL`.
pub const TTL_LONG: Span = Span::hours(4);
/// An acknowledgement is due this long after delivery when the sender names no time.
pub const ACK_WITHIN_DEFAULT: Span = Span::hours(1);
/// A verb, a hook or a live process within this time makes an agent alive.
pub const ALIVE_WITHIN: Span = Span::minutes(10);
/// An agent unseen for this long has retired by itself.
pub const RETIRED_AFTER: Span = Span::days(7);
/// Somebody who wrote to me this recently may be answered.
pub const WROTE_WITHIN: Span = Span::hours(24);
/// `@all` reaches the agents seen within this time.
pub const ALL_SEEN_WITHIN: Span = Span::hours(24);
/// The same text again within this time is probably an accident.
pub const DUPLICATE_WITHIN: Span = Span::minutes(1);
/// And among so many of a sender's newest messages: one who sends all the time pays for each of them with every send.
pub const DUPLICATE_AMONG: usize = 100;
/// A contact link, asked for or accepted, lapses after this time unless the asker says otherwise.
pub const LINK_TTL_DEFAULT: Span = Span::days(7);
pub const LINK_TTL_MAX: Span = Span::days(365);
/// A claim older than this is stale: coordination debt.
pub const STALE_AFTER: Span = Span::hours(12);
/// An inbox with more unread mail than this is piling up.
pub const PILE: usize = 20;
/// An active agent that was not seen for this long is on the bus by name alone.
pub const OLD_AFTER: Span = Span::hours(24);
/// How long an event may wait for its copy in the archive before somebody is told.
pub const LAG_TOLERATED: Span = Span::minutes(1);
/// How many conflicts one answer spells out.
pub const CONFLICTS_SHOWN: usize = 50;
/// How many of each thing that it found a look at the work trees spells out.
pub const FOUND_SHOWN: usize = 50;
/// How long `check` looks at the work trees, all together.
pub const CHECK_PATIENCE: Span = Span::seconds(20);
/// How long `status` does: whoever asks where things stand does not wait for it.
pub const STATUS_PATIENCE: Span = Span::millis(150);
/// How many failed requests of one agent are kept, and for how long.
pub const FAILURES_KEPT: usize = 20;
pub const FAILURES_KEPT_FOR: Span = Span::hours(24);
/// Messages that one sender may have waiting for one recipient's consent. It keeps the mail that one acceptance
/// delivers within a page.
pub const HELD_MAX: usize = 100;
/// How many questions may lie beside a store for the human: beyond that nobody reads them.
pub const QUESTIONS_MAX: usize = 100;
/// The longest name that a harness gives to a session.
pub const SESSION_BYTES: usize = 200;
/// The longest reason that a takeover or a request for contact gives.
pub const WHY_BYTES: usize = 2_000;

/// The longest body that is read at all, whatever an operator allows.
pub const BODY_MAX: usize = 64 * 1024 * 1024;

#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// At most `BODY_MAX`.
    pub body_bytes: usize,
    pub subject_chars: usize,
    pub recipients: usize,
    pub page: usize,
    /// At most `pattern::MAX_BYTES`.
    pub pattern_bytes: usize,
    /// Named in one request.
    pub patterns: usize,
    pub live_claims: usize,
    pub unread: usize,
    /// How long a writer waits for its turn before it says `STORE_BUSY`.
    pub gate_wait: Span,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            body_bytes: 256 * 1024,
            subject_chars: 200,
            recipients: 50,
            page: 100,
            pattern_bytes: 512,
            patterns: 1_000,
            live_claims: 20_000,
            unread: 10_000,
            gate_wait: Span::seconds(10),
        }
    }
}
