//! Fills a store for `scripts/bench`: `fill HOME PROJECT MESSAGES CLAIMS folders|stars|prose|crowd`. Many events to a transaction,
//! each through the same `append` as a verb's. Not part of what is shipped.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a tool that cannot go on should say where")]

use std::collections::BTreeMap;
use std::path::PathBuf;

use relay_core::domain::agent::Policy;
use relay_core::domain::delivery::Line;
use relay_core::domain::event::{Happened, Number, Recipient, Text};
use relay_core::domain::limits::{Limits, TTL_MAX};
use relay_core::domain::message::Importance;
use relay_core::domain::name::{AgentName, Party, ProjectKey, ThreadId};
use relay_core::domain::pattern::{Case, Pattern};
use relay_core::domain::time::{Span, Timestamp};
use relay_core::store::{Errand, Remembered, Store, Tx};
use relay_store::Home;

/// Whom the benchmark plays are the first two; in an empty project they are all there is.
const AGENTS: usize = 50;
/// As many as the human's page should cope with. Of a crowd some owe acknowledgements, have unread mail, contest each other's
/// claims and have asked for contact.
const CROWD: usize = 500;
const THREADS: u64 = 10_000;
const FOLDERS: usize = 1_000;
const BATCH: u64 = 20_000;
/// As much mail as an agent reads at once.
const READ_AT_ONCE: usize = 100;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [home, project, messages, claims, shape] = &arguments[..] else {
        panic!("fill HOME PROJECT MESSAGES CLAIMS folders|stars|prose|crowd")
    };
    let now = i64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap();
    let home = Home::new(PathBuf::from(home), Limits::default(), now);
    let store = home.open_or_create(&ProjectKey::resolved(project.as_str())).unwrap();
    let messages: u64 = messages.parse().unwrap();
    let claims: usize = claims.parse().unwrap();
    let errand = Errand { verb: "fill", agent: "", wait: Span::seconds(60), durable: false };
    let crowd = shape == "crowd";
    let agents = match (messages, crowd) {
        (0, _) => 2,
        (_, true) => CROWD,
        _ => AGENTS,
    };
    let mut fill =
        Fill { now, random: 1, agents, prose: shape == "prose", crowd, unread: BTreeMap::new(), last_claim: 0 };
    let mut tx = store.begin(errand).unwrap();
    for index in 1..=agents {
        fill.register(&mut *tx, index);
    }
    tx.commit().unwrap();
    for start in (0..messages).step_by(usize::try_from(BATCH).unwrap()) {
        let mut tx = store.begin(errand).unwrap();
        for index in start..messages.min(start + BATCH) {
            fill.message(&mut *tx, index, messages);
        }
        if start + BATCH >= messages && !crowd {
            fill.read_all(&mut *tx);
        }
        tx.commit().unwrap();
        store.tidy(Span::seconds(60));
    }
    let mut tx = store.begin(errand).unwrap();
    for index in 0..claims {
        fill.claim(&mut *tx, index, shape == "stars");
    }
    if crowd {
        (0..agents / 5).for_each(|index| fill.link(&mut *tx, index));
    }
    tx.commit().unwrap();
    store.settle(Span::seconds(60)).unwrap();
}

struct Fill {
    now: i64,
    random: u64,
    agents: usize,
    /// Sentences in few threads, as agents write them; else words that do not repeat themselves, in many.
    prose: bool,
    crowd: bool,
    unread: BTreeMap<String, Vec<Number>>,
    last_claim: Number,
}

fn name(index: usize) -> AgentName {
    AgentName::parse(&format!("Agent{index}")).unwrap()
}

impl Fill {
    fn next(&mut self, below: u64) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % below
    }

    /// Words of a vocabulary in which some are common and most are rare.
    fn words(&mut self, count: usize) -> String {
        let words: Vec<String> = (0..count)
            .map(|_| {
                let (one, other) = (self.next(20_000), self.next(20_000));
                format!("w{}", one * other / 20_000)
            })
            .collect();
        words.join(" ")
    }

    fn sentences(&mut self, bytes: usize) -> String {
        let all: Vec<&str> = include_str!("../../../README.md").split_inclusive(['.', '\n']).collect();
        let mut text = String::new();
        while text.len() < bytes {
            text.push_str(all[usize::try_from(self.next(all.len() as u64)).unwrap()]);
        }
        text
    }

    fn salt(&mut self) -> [u8; 16] {
        let mut salt = [0; 16];
        salt.iter_mut().for_each(|byte| *byte = u8::try_from(self.next(256)).unwrap());
        salt
    }

    fn register(&mut self, tx: &mut dyn Tx, index: usize) {
        use std::os::unix::fs::MetadataExt;
        let uid = std::fs::metadata("/proc/self").unwrap().uid();
        let what = Happened::AgentRegistered {
            agent: name(index),
            credential: format!("uid:{uid}"),
            program: None,
            model: None,
            task: None,
            session: None,
            parent: None,
            policy: Policy::default(),
        };
        tx.append(Timestamp::from_millis(self.now), &Party::Agent(name(index)), None, what, Vec::new()).unwrap();
    }

    fn message(&mut self, tx: &mut dyn Tx, index: u64, of: u64) {
        let agents = self.agents as u64;
        let from = usize::try_from(self.next(agents)).unwrap();
        let to = (from + 1 + usize::try_from(self.next(agents - 1)).unwrap()) % self.agents;
        let (from, to) = (Party::Agent(name(from + 1)), Party::Agent(name(to + 1)));
        let to = if self.crowd && index.is_multiple_of((of / 20).max(1)) { Party::Human } else { to };
        let thread = format!("task-{}", self.next(if self.prose { THREADS / 100 } else { THREADS }));
        let subject = self.words(5);
        let body = if self.prose { self.sentences(460) } else { self.words(80) };
        let texts = vec![
            Text { field: "subject", salt: self.salt(), text: subject },
            Text { field: "body", salt: self.salt(), text: body },
        ];
        let what = Happened::MessageSent {
            thread: ThreadId::parse(&thread).unwrap(),
            from: from.clone(),
            recipients: vec![Recipient { party: to.clone(), line: Line::To, held: false }],
            subject: texts[0].hash(),
            body: texts[1].hash(),
            importance: Importance::Normal,
            ack_within_ms: (self.crowd && index.is_multiple_of(50)).then_some(3_600_000),
            reply_to: None,
            twin: None,
        };
        // One every two seconds, up to now.
        let at = Timestamp::from_millis(self.now - i64::try_from(of - index).unwrap() * 2_000);
        let key = format!("{:032x}", u128::from_le_bytes(self.salt()));
        let number = tx.append(at, &from, Some(&key), what, texts).unwrap();
        let answer = format!(
            r#"[{{"message":{{"id":{number},"thread":"{thread}","recipients":[{{"name":"{to}","kind":"to","state":"stored"}}]}}}},[],[]]"#
        );
        let request = format!("{:064x}", u128::from_le_bytes(self.salt()));
        let remembered = Remembered { verb: "send".to_owned(), salt: self.salt(), request, answer, number };
        tx.remember(&from.to_string().to_lowercase(), &key, &remembered).unwrap();
        if to == Party::Human {
            return;
        }
        let unread = self.unread.entry(to.to_string()).or_default();
        unread.push(number);
        if unread.len() == READ_AT_ONCE {
            let messages = std::mem::take(unread);
            tx.append(at, &to, None, Happened::MailRead { agent: to.clone(), messages }, Vec::new()).unwrap();
        }
    }

    fn read_all(&mut self, tx: &mut dyn Tx) {
        for (agent, messages) in std::mem::take(&mut self.unread) {
            let agent = Party::Agent(AgentName::parse(&agent).unwrap());
            let what = Happened::MailRead { agent: agent.clone(), messages };
            tx.append(Timestamp::from_millis(self.now), &agent, None, what, Vec::new()).unwrap();
        }
    }

    fn claim(&mut self, tx: &mut dyn Tx, index: usize, stars: bool) {
        let text = if stars {
            format!("**/file{index}.rs")
        } else {
            format!("src/part{}/file{}.rs", index % FOLDERS, index / FOLDERS)
        };
        // In a crowd some hold what others hold.
        let is_second = self.crowd && index % FOLDERS == 1;
        let text = if is_second { format!("src/part0/file{}.rs", index / FOLDERS) } else { text };
        let pattern = Pattern::from_canonical(&text).unwrap();
        let agent = name(index % self.agents + 1);
        let at = Timestamp::from_millis(self.now);
        let what = Happened::ReservationGranted {
            agent: agent.clone(),
            prefix: pattern.prefix(Case::Sensitive),
            pattern: text,
            exclusive: true,
            reason: None,
            ttl_ms: TTL_MAX.as_millis(),
            first_granted_at: at,
            expires_at: at.plus(TTL_MAX),
            overlaps: if is_second { vec![self.last_claim] } else { Vec::new() },
            conflicts: Vec::new(),
        };
        self.last_claim = tx.append(at, &Party::Agent(agent), None, what, Vec::new()).unwrap();
    }

    fn link(&mut self, tx: &mut dyn Tx, index: usize) {
        let (from, to) = (Party::Agent(name(index + 1)), Party::Agent(name(index + 2)));
        let at = Timestamp::from_millis(self.now);
        let ttl = Span::days(30);
        let (expires_at, ttl_ms) = (at.plus(ttl), ttl.as_millis());
        let what = Happened::LinkRequested { from: from.clone(), to, why: None, ttl_ms, expires_at };
        tx.append(at, &from, None, what, Vec::new()).unwrap();
    }
}
