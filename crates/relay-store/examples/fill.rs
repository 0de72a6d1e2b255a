//! Fills a store for `scripts/bench`: `fill HOME PROJECT MESSAGES CLAIMS folders|stars|prose`. Many events to a transaction,
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
const THREADS: u64 = 10_000;
const FOLDERS: usize = 1_000;
const BATCH: u64 = 20_000;
/// As much mail as an agent reads at once.
const READ_AT_ONCE: usize = 100;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [home, project, messages, claims, shape] = &arguments[..] else {
        panic!("fill HOME PROJECT MESSAGES CLAIMS folders|stars|prose")
    };
    let now = i64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap();
    let home = Home::new(PathBuf::from(home), Limits::default(), now);
    let store = home.open_or_create(&ProjectKey::resolved(project.as_str())).unwrap();
    let messages: u64 = messages.parse().unwrap();
    let claims: usize = claims.parse().unwrap();
    let errand = Errand { verb: "fill", agent: "", wait: Span::seconds(60), durable: false };
    let agents = if messages == 0 { 2 } else { AGENTS };
    let mut fill = Fill { now, random: 1, prose: shape == "prose", unread: BTreeMap::new() };
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
        if start + BATCH >= messages {
            fill.read_all(&mut *tx);
        }
        tx.commit().unwrap();
        store.tidy(Span::seconds(60));
    }
    let mut tx = store.begin(errand).unwrap();
    for index in 0..claims {
        fill.claim(&mut *tx, index, shape == "stars");
    }
    tx.commit().unwrap();
    store.settle(Span::seconds(60)).unwrap();
}

struct Fill {
    now: i64,
    random: u64,
    /// Sentences in few threads, as agents write them; else words that do not repeat themselves, in many.
    prose: bool,
    unread: BTreeMap<String, Vec<Number>>,
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
        let from = usize::try_from(self.next(AGENTS as u64)).unwrap();
        let to = (from + 1 + usize::try_from(self.next(AGENTS as u64 - 1)).unwrap()) % AGENTS;
        let (from, to) = (Party::Agent(name(from + 1)), Party::Agent(name(to + 1)));
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
            ack_within_ms: None,
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
        let pattern = Pattern::from_canonical(&text).unwrap();
        let agent = name(index % AGENTS + 1);
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
            overlaps: Vec::new(),
            conflicts: Vec::new(),
        };
        tx.append(at, &Party::Agent(agent), None, what, Vec::new()).unwrap();
    }
}
