//! What a commit costs whoever keeps a store open: `strace -f -ce fsync,fdatasync batch HOME BATCHES REQUESTS`. Each request is a
//! message with its remembered answer, as `send` writes them. Not part of what is shipped.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a tool that cannot go on should say where")]

use std::path::PathBuf;

use relay_core::domain::agent::Policy;
use relay_core::domain::delivery::Line;
use relay_core::domain::event::{Happened, Recipient, Text};
use relay_core::domain::limits::Limits;
use relay_core::domain::message::Importance;
use relay_core::domain::name::{AgentName, Party, ProjectKey, ThreadId};
use relay_core::domain::time::{Span, Timestamp};
use relay_core::store::{Errand, Remembered, Store, Tx};
use relay_store::Home;

const WAIT: Span = Span::seconds(60);
const AGENTS: usize = 32;
const NOW: Timestamp = Timestamp::from_millis(1_794_700_800_000);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [home, batches, requests] = &arguments[..] else { panic!("batch HOME BATCHES REQUESTS") };
    let (batches, requests): (usize, usize) = (batches.parse().unwrap(), requests.parse().unwrap());
    let home = Home::new(PathBuf::from(home), Limits::default(), NOW.millis());
    let project = ProjectKey::resolved("/srv/app");
    let store = home.open_or_create(&project).unwrap();
    let errand = Errand { verb: "send", agent: "", wait: WAIT, durable: true };
    let mut tx = store.begin(errand).unwrap();
    for agent in (0..AGENTS).map(name) {
        if tx.agent(&agent).unwrap().is_none() {
            register(&mut *tx, agent);
        }
    }
    tx.commit().unwrap();
    let log = home.folder(&project).join("relay.db-wal");
    let log_bytes = || std::fs::metadata(&log).unwrap().len();
    let (mut written, mut longest) = (0, 0);
    for batch in 0..batches {
        let before = log_bytes();
        let together = store.batch(errand).unwrap();
        for request in 0..requests {
            let send = |store: &dyn Store| {
                let mut tx = store.begin(errand).unwrap();
                send(&mut *tx, batch * requests + request);
                (tx.commit().unwrap(), true)
            };
            together.request(send).unwrap();
        }
        together.commit().unwrap();
        written += log_bytes() - before;
        longest = longest.max(log_bytes());
        store.tidy_between(WAIT);
    }
    let each = written / batches as u64;
    let text = format!("{batches} batches of {requests}: {each} bytes of log for each, at most {longest} at a time\n");
    std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes()).unwrap();
}

fn name(index: usize) -> AgentName {
    AgentName::parse(&format!("Agent{}", index % AGENTS + 1)).unwrap()
}

fn register(tx: &mut dyn Tx, agent: AgentName) {
    let what = Happened::AgentRegistered {
        agent: agent.clone(),
        credential: "uid:1".into(),
        program: None,
        model: None,
        task: None,
        session: None,
        parent: None,
        policy: Policy::default(),
    };
    tx.append(NOW, &Party::Agent(agent), None, what, Vec::new()).unwrap();
}

fn send(tx: &mut dyn Tx, index: usize) {
    let (from, to) = (Party::Agent(name(index)), Party::Agent(name(index * 7 + 1)));
    let text = |field, text: String| Text { field, salt: [7; 16], text };
    let body = format!("The session {index} expires after ten minutes of silence; see src/auth/session.rs. ").repeat(6);
    let texts = vec![text("subject", format!("Login {index}")), text("body", body)];
    let what = Happened::MessageSent {
        thread: ThreadId::parse(&format!("task-{}", index % 100)).unwrap(),
        from: from.clone(),
        recipients: vec![Recipient { party: to, line: Line::To, held: false }],
        subject: texts[0].hash(),
        body: texts[1].hash(),
        importance: Importance::Normal,
        ack_within_ms: None,
        reply_to: None,
        twin: None,
    };
    let key = format!("{:032x}", (index as u128 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_0c4b_2d1f_6a35));
    let number = tx.append(NOW, &from, Some(&key), what, texts).unwrap();
    let answer = format!(r#"[{{"message":{{"id":{number},"recipients":[{{"kind":"to","state":"stored"}}]}}}},[],[]]"#);
    let remembered = Remembered { verb: "send".into(), salt: [7; 16], request: "0".repeat(64), answer, number };
    tx.remember(&from.to_string().to_lowercase(), &key, &remembered).unwrap();
}
