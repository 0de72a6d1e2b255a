//! A bus in values: what the verbs would answer of a morning with something of everything, of an empty one, and of one whose
//! agents write markup wherever they can.

use relay_core::domain::contact::LinkState;
use relay_core::domain::delivery::{Line, State};
use relay_core::domain::message::Importance;
use relay_core::domain::time::{Span, Timestamp};
use relay_core::store::Size;
use relay_core::verbs::debt::DebtItem;
use relay_core::verbs::lag::ArchiveShape;
use relay_core::verbs::look::{
    AckShape, Busy, Day, Drawn, Events, Layout, Now, Pair, Search, Status, Traffic, WaitShape, draw,
};
use relay_core::verbs::prepare::{OwedAck, ThreadView};
use relay_core::wire::v1::{
    AgentShape, ClaimShape, ContestedShape, EventShape, LinkShape, MessageShape, Reach, RecipientShape, RedactedShape,
    ThreadShape,
};
use serde_json::json;

use crate::web::frame::{Flash, Frame, Place, Screen};

pub const NOW: Timestamp = Timestamp::from_millis(1_794_823_000_000);

pub fn ago(minutes: i64) -> Timestamp {
    NOW.minus(Span::minutes(minutes))
}

pub fn places() -> Vec<Place> {
    let place = |slug: &str, key: &str, waiting| Place { slug: slug.to_owned(), key: key.to_owned(), waiting };
    vec![place("repo-1a2b3c4d", "/home/you/shop", 2), place("website-99aa00bb", "/home/you/website", 1)]
}

/// Calls with a frame of the first project.
pub fn framed(here: Screen, path: &str, flash: Option<&Flash>, page: impl Fn(&Frame<'_>) -> String) -> String {
    let places = places();
    let frame = Frame {
        project: Some(places[0].clone()),
        projects: &places,
        here,
        nonce: "n0nce",
        csrf: "c5rf",
        key: &|| "fresh".to_owned(),
        flash,
        now: NOW,
        path,
    };
    page(&frame)
}

/// What others write, in every place where they can.
pub struct Words {
    pub name: &'static str,
    pub text: &'static str,
    pub thread: &'static str,
    pub path: &'static str,
}

pub const PLAIN: Words =
    Words { name: "BlueLake", text: "Sessions expire too early", thread: "bd-101", path: "src/auth/token.rs" };
pub const HOSTILE: Words = Words {
    name: "\"><script>name</script>",
    text: "</textarea></title><img src=x onerror=alert(1)>'\"\u{202e}",
    thread: "'><svg/onload=alert(1)>",
    path: "src/\"onmouseover=\"alert(1)/<b>*",
};

pub fn agent(name: &str, state: &str, alive: bool, seen: i64, words: &Words) -> AgentShape {
    AgentShape {
        name: name.to_owned(),
        program: Some("claude-code".to_owned()),
        model: Some("claude-opus-5".to_owned()),
        task: Some(words.text.to_owned()),
        policy: Some("open".to_owned()),
        state: state.to_owned(),
        alive,
        seen_at: Some(ago(seen)),
        parent: None,
        thread: Some(words.thread.to_owned()),
    }
}

pub fn claim(id: u64, pattern: &str, holder: &str, exclusive: bool, words: &Words) -> ClaimShape {
    ClaimShape {
        id,
        pattern: pattern.to_owned(),
        holder: holder.to_owned(),
        exclusive,
        expires_at: ago(-38),
        reason: id.is_multiple_of(2).then(|| words.thread.to_owned()),
        generation: 0,
    }
}

pub fn message(id: u64, from: &str, to: &[(&str, State)], words: &Words) -> MessageShape {
    let copy = |(name, state): &(&str, State)| RecipientShape {
        name: (*name).to_owned(),
        kind: if *state == State::Lapsed { Line::Bcc } else { Line::To },
        state: *state,
        surfaced_at: (*state >= State::Surfaced).then(|| ago(6)),
        read_at: (*state >= State::Read).then(|| ago(5)),
        acked_at: (*state >= State::Acked).then(|| ago(4)),
    };
    let for_human = to.iter().any(|(name, _)| *name == "human");
    MessageShape {
        id,
        thread: words.thread.to_owned(),
        from: from.to_owned(),
        subject: Some(words.text.to_owned()),
        importance: if for_human { Importance::High } else { Importance::Normal },
        ack_required: true,
        sent_at: ago(7),
        read_at: None,
        acked_at: None,
        ack_due: for_human.then(|| ago(-113)),
        reply_to: (id > 41).then_some(41),
        recipients: to.iter().map(copy).collect(),
        body: Some(format!(
            "{}\n\nThe session **ends after ten minutes** although `SESSION_TTL` says an hour.\n\n1. `Session::touch` reads the clock twice\n2. the second read loses the zone\n\n> A test that fails is on my branch.\n\n```rust\nlet left = ttl - now.since(self.seen);\n```\n\n| case | before | after |\n|---|---|---|\n| idle | 10 min | 60 min |\n\nSee [the issue](https://example.org/issues/101).",
            words.text
        )),
        excerpt: None,
        redacted: None,
        reach: Reach::Seen,
    }
}

pub fn thread(words: &Words) -> ThreadView {
    let mut erased = message(43, words.name, &[("RedForest", State::Stored)], words);
    (erased.subject, erased.body) = (None, None);
    erased.redacted = Some(Box::new(RedactedShape {
        by: "human".to_owned(),
        at: ago(2),
        number: 50,
        why: Some(words.text.to_owned()),
    }));
    let mut long = message(44, "RedForest", &[(words.name, State::Held), ("GreenHill", State::Lapsed)], words);
    long.body = None;
    ThreadView {
        thread: shape(words),
        participants: vec![words.name.to_owned(), "RedForest".to_owned(), "human".to_owned()],
        messages: vec![
            message(41, words.name, &[("RedForest", State::Acked), ("GreenHill", State::Surfaced)], words),
            message(42, "human", &[(words.name, State::Read)], words),
            erased,
            long,
            message(45, "RedForest", &[("human", State::Stored)], words),
        ],
        before: Some(41),
        acks_owed: vec![OwedAck { message: 41, by: "GreenHill".to_owned(), to: words.name.to_owned(), overdue: true }],
        reservations: vec![claim(12, words.path, words.name, true, words)],
        contested: vec![12],
    }
}

pub fn shape(words: &Words) -> ThreadShape {
    let (id, subject) = (words.thread.to_owned(), Some(words.text.to_owned()));
    ThreadShape { id, subject, done: false, messages: 12, last_at: ago(3) }
}

pub fn search(words: &Words) -> Search {
    let letter = message(45, "RedForest", &[("human", State::Stored)], words);
    let excerpt = Some(format!("…the cookie says {}", words.text));
    Search {
        found: vec![MessageShape { excerpt, body: None, ..letter }],
        before: Some(7),
        agents: agents(words),
        threads: vec![shape(words)],
        reservations: claims(words),
    }
}

pub fn link(id: u64, state: LinkState, words: &Words) -> LinkShape {
    LinkShape {
        id,
        state,
        from: words.name.to_owned(),
        to: "GreenHill".to_owned(),
        by_policy: false,
        expires_at: ago(-600),
        blocked_by: if state == LinkState::Blocked { vec!["GreenHill".to_owned()] } else { Vec::new() },
        why: Some(words.text.to_owned()),
    }
}

pub fn event(number: u64, kind: &str, words: &Words) -> EventShape {
    EventShape {
        number,
        at: ago(90 - i64::try_from(number).unwrap_or(0)),
        actor: if number.is_multiple_of(5) { "human".to_owned() } else { words.name.to_owned() },
        kind: kind.to_owned(),
        text: format!("wrote to RedForest in {}", words.thread),
        data: json!({ "subject": words.text, "thread": words.thread, "why": words.text, "patterns": [words.path] }),
    }
}

pub fn events(words: &Words) -> Vec<EventShape> {
    (30..46)
        .map(|number| {
            event(number, if number.is_multiple_of(3) { "reservation_released" } else { "message_sent" }, words)
        })
        .collect()
}

pub fn history(words: &Words) -> Events {
    Events { events: events(words), cursor: 46, before: Some(30), layout: Layout::default() }
}

pub fn day() -> Day {
    Day {
        day: "2026-11-16".to_owned(),
        from: ago(596),
        to: ago(-843),
        first: Some(2),
        last: Some(46),
        hours: [0, 0, 0, 0, 0, 0, 1, 4, 22, 18].into_iter().chain([0; 14]).collect(),
        earlier: Some(ago(1_600)),
        later: None,
    }
}

pub fn traffic(words: &Words) -> Traffic {
    let pair = |from: &str, to: &str, messages| Pair { from: from.to_owned(), to: to.to_owned(), messages, newest: 45 };
    let mut traffic = vec![
        pair(words.name, "RedForest", 41),
        pair("RedForest", words.name, 36),
        pair("human", words.name, 9),
        pair("GreenHill", "human", 4),
        pair("QuietOwl", "GreenHill", 2),
        pair(words.name, "QuietOwl@/home/you/website", 1),
    ];
    traffic.extend((0..6).map(|n| pair(&format!("Helper{n}"), "RedForest", 1 + n)));
    Traffic { traffic, since: Some(ago(3_000)) }
}

pub fn claims(words: &Words) -> Vec<ClaimShape> {
    vec![
        claim(12, "src/auth/**", words.name, true, words),
        claim(14, words.path, "RedForest", true, words),
        claim(15, "src/search/**", "QuietOwl", true, words),
        claim(16, "docs/**", "GreenHill", false, words),
        claim(17, "res:dev-database", "RedForest", true, words),
        claim(18, "README.md", "GreenHill", true, words),
    ]
}

pub fn agents(words: &Words) -> Vec<AgentShape> {
    vec![
        agent(words.name, "active", true, 1, words),
        agent("RedForest", "active", true, 2, &PLAIN),
        agent("GreenHill", "active", true, 4, &PLAIN),
        agent("QuietOwl", "active", false, 34, &PLAIN),
        agent("GreyWolf", "suspended", false, 1_500, &PLAIN),
    ]
}

fn now(words: &Words) -> Now {
    let claims = claims(words);
    let drawn: Vec<Drawn<'_>> = claims
        .iter()
        .map(|claim| Drawn { claim, contested: [12, 14].contains(&claim.id), silent: claim.holder == "QuietOwl" })
        .collect();
    let busy =
        |agent: &AgentShape| Busy { agent: agent.name.clone(), claims: 2, contested: 1, owes: 1, unread: Some(3) };
    Now {
        busy: agents(words).iter().map(busy).collect(),
        waits: vec![WaitShape {
            who: words.name.to_owned(),
            verb: "reserve".to_owned(),
            for_whom: vec!["RedForest".to_owned()],
            patterns: vec![words.path.to_owned()],
        }],
        tree: draw(&drawn, 120),
        acks: vec![AckShape {
            message: 41,
            thread: words.thread.to_owned(),
            subject: Some(words.text.to_owned()),
            from: words.name.to_owned(),
            by: "GreenHill".to_owned(),
            since: ago(7),
            due: ago(2),
            overdue: true,
        }],
        acks_total: 1,
        requests: vec![link(30, LinkState::Requested, words)],
        debt_total: 1,
        debt: vec![DebtItem {
            kind: "pile".to_owned(),
            who: words.name.to_owned(),
            text: format!("{} has 31 messages that nobody read", words.name),
            about: Some(41),
            pay: "relay poll --agent BlueLake".to_owned(),
        }],
        retired: 1,
        store: Size { bytes: 1_340_000, log_bytes: 64_000 },
    }
}

pub fn status(words: &Words) -> Status {
    Status {
        project: "/home/you/shop".to_owned(),
        tip: 46,
        agents: agents(words),
        live_claims: 6,
        contested: vec![ContestedShape {
            mine: 12,
            pattern: format!("src/auth/** ({})", words.name),
            id: 14,
            holder: "RedForest".to_owned(),
            overlaps: words.path.to_owned(),
            exclusive: true,
            example: Some(words.path.to_owned()),
            ended: false,
        }],
        contested_total: 1,
        open_threads: 3,
        unread: None,
        for_the_human: vec![message(45, "RedForest", &[("human", State::Stored)], words)],
        for_the_human_total: 1,
        questions: Vec::new(),
        contacts_waiting: 1,
        debt: 1,
        work: None,
        archive: ArchiveShape { number: 44, behind: 2, trouble: None },
        now: Some(Box::new(now(words))),
    }
}

/// A project in which nothing is.
pub fn empty() -> Status {
    let archive = ArchiveShape { number: 1, behind: 0, trouble: None };
    Status {
        tip: 1,
        agents: Vec::new(),
        live_claims: 0,
        contested: Vec::new(),
        contested_total: 0,
        open_threads: 0,
        for_the_human: Vec::new(),
        for_the_human_total: 0,
        contacts_waiting: 0,
        debt: 0,
        archive,
        now: None,
        ..status(&PLAIN)
    }
}
