//! Sixty-four processes on one project: nobody is told that it is busy, nothing is lost, nothing happens twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Barrier;

use serde_json::Value;

use crate::bus::{Bus, Run};
use crate::effort::times;

const PROCESSES: usize = 64;

/// Runs as many stories at once as there are, all from the same moment, and returns what each came to.
fn at_once<T: Send>(count: usize, story: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let (start, story) = (Barrier::new(count), &story);
    std::thread::scope(|scope| {
        let lane = |index| {
            let start = &start;
            scope.spawn(move || {
                start.wait();
                story(index)
            })
        };
        let lanes: Vec<_> = (0..count).map(lane).collect();
        lanes.into_iter().map(|lane| lane.join().unwrap()).collect()
    })
}

fn name(index: usize) -> String {
    format!("Agent{index:02}")
}

/// The whole history; fails where a number is missing.
fn history(bus: &Bus) -> Vec<Value> {
    let mut events: Vec<Value> = Vec::new();
    loop {
        let after = events.len().to_string();
        let page = bus.relay("", ["look", "events", "--after", &after]).success().result();
        let page = page["events"].as_array().unwrap();
        if page.is_empty() {
            break;
        }
        events.extend(page.iter().cloned());
    }
    for (index, event) in events.iter().enumerate() {
        assert_eq!(event["number"], index as u64 + 1, "the numbers have a gap");
    }
    events
}

fn count(events: &[Value], kind: &str) -> usize {
    events.iter().filter(|event| event["kind"] == kind).count()
}

/// The numbers of all mail that an agent has, read or not.
fn inbox(bus: &Bus, agent: &str) -> Vec<u64> {
    let (mut ids, mut cursor) = (Vec::new(), 0);
    loop {
        let page = bus.relay(agent, ["poll", "--all", "--after", &cursor.to_string()]).success().result();
        let messages = page["messages"].as_array().unwrap();
        if messages.is_empty() {
            return ids;
        }
        ids.extend(messages.iter().map(|message| message["id"].as_u64().unwrap()));
        cursor = page["cursor"].as_u64().unwrap();
    }
}

/// One process after the other for this agent; returns the numbers of the messages it was told are sent, by recipient.
fn busy_agent(bus: &Bus, index: usize, loops: usize) -> Vec<(String, u64)> {
    let me = name(index);
    let run = |args: &[&str]| bus.relay(&me, args).success().result();
    let mut sent = Vec::new();
    for turn in 0..loops {
        // Everybody but oneself, in turn.
        let to = name((index + 1 + turn % (PROCESSES - 1)) % PROCESSES);
        let body = format!("{me} {turn}");
        let answer =
            run(&["send", "--to", &to, "--thread", "bd-1", "--subject", "Work", "--body", &body, "--ack-required"]);
        sent.push((to, answer["message"]["id"].as_u64().unwrap()));
        let claim = format!("src/{}/**", index % 8);
        run(&["reserve", &claim, "--reason", "bd-1"]);
        for message in run(&["poll"])["messages"].as_array().unwrap() {
            let acks = run(&["ack", &message["id"].to_string()]);
            assert_eq!(acks["acks"][0]["id"], message["id"]);
        }
        run(&["look", "reservations"]);
        run(&["release", &claim]);
        run(&["prepare", "--thread", "bd-1", "--limit", "3"]);
    }
    sent
}

#[test]
fn sixty_four_processes_with_mixed_verbs_lose_nothing_and_are_never_told_busy() {
    let bus = Bus::new();
    at_once(PROCESSES, |index| bus.relay(&name(index), ["start"]).success());
    let loops = times(4);
    let sent: Vec<(String, u64)> = at_once(PROCESSES, |index| busy_agent(&bus, index, loops)).concat();
    let events = history(&bus);
    assert_eq!(count(&events, "project_opened"), 1);
    assert_eq!(count(&events, "agent_registered"), PROCESSES);
    assert_eq!(count(&events, "reservation_granted"), PROCESSES * loops);
    assert_eq!(count(&events, "reservation_released"), PROCESSES * loops);
    let recorded: Vec<u64> = events
        .iter()
        .filter(|event| event["kind"] == "message_sent")
        .map(|event| event["number"].as_u64().unwrap())
        .collect();
    let told: BTreeSet<u64> = sent.iter().map(|(_, id)| *id).collect();
    assert_eq!(told.len(), PROCESSES * loops, "two sends were given one number");
    assert_eq!(recorded, told.into_iter().collect::<Vec<_>>(), "acknowledged and recorded sends differ");
    let mut expected: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    sent.into_iter().for_each(|(to, id)| assert!(expected.entry(to).or_default().insert(id)));
    for (agent, ids) in expected {
        let got = inbox(&bus, &agent);
        assert_eq!(got, ids.into_iter().collect::<Vec<_>>(), "the inbox of {agent}");
    }
}

#[test]
fn of_two_racing_claims_exactly_one_sees_the_other_and_the_other_learns_of_it() {
    const LANES: usize = 4;
    let agents: Vec<String> = (0..2 * LANES).map(name).collect();
    let bus = Bus::with(&agents.iter().map(String::as_str).collect::<Vec<_>>());
    let round = |lane: usize, round: usize| {
        let pair = [&agents[2 * lane], &agents[2 * lane + 1]];
        let folder = format!("lane{lane}/round{round}");
        let patterns = [format!("{folder}/**"), format!("{folder}/*.rs")];
        let claims = at_once(2, |side| bus.relay(pair[side], ["reserve", &patterns[side]]).success().result());
        let saw: Vec<usize> = (0..2).filter(|side| claims[*side]["conflicts"] != Value::Array(Vec::new())).collect();
        assert_eq!(saw.len(), 1, "{folder}: {claims:?}");
        let (newcomer, holder) = (saw[0], 1 - saw[0]);
        assert_eq!(claims[newcomer]["conflicts"][0]["id"], claims[holder]["granted"][0]["id"]);
        let told =
            |side: usize| bus.relay(pair[side], ["poll"]).success().result()["contested"].as_array().unwrap().clone();
        let contested = told(holder);
        assert_eq!(contested.len(), 1, "{folder}: {contested:?}");
        assert_eq!(contested[0]["id"], claims[newcomer]["granted"][0]["id"]);
        assert_eq!(told(newcomer), Vec::<Value>::new(), "{folder}: the newcomer knows already");
        for (side, agent) in pair.iter().enumerate() {
            bus.relay(agent, ["release", "--all"]).success();
            // The end of the contest is news as well; it must not stand in the way of the next round.
            told(side);
        }
    };
    at_once(LANES, |lane| (0..times(25)).for_each(|turn| round(lane, turn)));
    history(&bus);
}

#[test]
fn of_racing_claims_that_insist_on_being_free_exactly_one_is_granted() {
    let bus = Bus::with(&(0..8).map(name).collect::<Vec<_>>().iter().map(String::as_str).collect::<Vec<_>>());
    for round in 0..8 {
        let path = format!("src/{round}.rs");
        let runs = at_once(8, |index| bus.relay(&name(index), ["reserve", &path, "--if-free"]));
        let granted = runs.iter().filter(|run| run.status == 0).count();
        assert_eq!(granted, 1, "{path}");
        runs.into_iter().filter(|run| run.status != 0).for_each(|run| drop(run.fails("FILE_RESERVATION_CONFLICT")));
    }
}

#[test]
fn writers_pass_the_gate_in_the_order_in_which_they_came() {
    let agents: Vec<String> = (0..16).map(name).collect();
    let bus = Bus::with(&agents.iter().map(String::as_str).collect::<Vec<_>>());
    let spawn = |agent: &str, failpoint: &str| {
        let mut command = bus.args(agent, ["reserve", "src"]);
        command.env("FAILPOINTS", failpoint).stdout(std::process::Stdio::null()).spawn().unwrap()
    };
    let last = bus.store().join("line/last");
    let in_line = || std::fs::read_to_string(&last).unwrap().trim().parse::<u64>().unwrap();
    let begin = |agent: &str, failpoint: &str| {
        let before = in_line();
        let child = spawn(agent, failpoint);
        while in_line() == before {
            std::thread::yield_now();
        }
        child
    };
    let mut holder = begin(&agents[0], "store-before-commit=pause");
    let waiters: Vec<_> = agents[1..].iter().map(|agent| begin(agent, "")).collect();
    holder.kill().unwrap();
    holder.wait().unwrap();
    waiters.into_iter().for_each(|mut waiter| assert!(waiter.wait().unwrap().success()));
    let events = history(&bus);
    let granted = events.iter().filter(|event| event["kind"] == "reservation_granted");
    let order: Vec<&str> = granted.map(|event| event["actor"].as_str().unwrap()).collect();
    assert_eq!(order, agents[1..]);
}

#[test]
fn more_writers_than_the_line_has_places_are_all_served() {
    const CROWD: u64 = 280;
    let bus = Bus::with(&["BlueLake"]);
    // Longer than so many processes take to start.
    std::fs::write(bus.home().join("config.toml"), "[limits]\ngate_wait = \"1m\"\n").unwrap();
    let gate = std::fs::File::open(bus.store().join("gate")).unwrap();
    gate.lock().unwrap();
    let last = bus.store().join("line/last");
    let in_line = || std::fs::read_to_string(&last).unwrap().trim().parse::<u64>().unwrap();
    let before = in_line();
    let spawn = |index| bus.spawn("BlueLake", &["reserve", &format!("src/{index}.rs")]);
    let writers: Vec<_> = (0..CROWD).map(spawn).collect();
    while in_line() < before + 255 {
        std::thread::yield_now();
    }
    drop(gate);
    writers.into_iter().for_each(|writer| drop(writer.finish().success()));
    assert_eq!(count(&history(&bus), "reservation_granted") as u64, CROWD);
}

/// Many starts at once on a project that nobody has opened yet, several times over.
fn first_starts(args: impl Fn(usize) -> Vec<String> + Sync, check: impl Fn(&Bus, Vec<Run>)) {
    for _ in 0..4 {
        let bus = Bus::new();
        let runs = at_once(16, |index| bus.relay("", args(index)));
        check(&bus, runs);
        assert_eq!(count(&history(&bus), "project_opened"), 1);
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn agents_of(runs: Vec<Run>) -> BTreeSet<String> {
    runs.into_iter().map(|run| run.success().result()["agent"]["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn first_starts_without_a_name_become_as_many_agents() {
    first_starts(|_| words(&["start"]), |_, runs| assert_eq!(agents_of(runs).len(), 16));
}

#[test]
fn first_starts_for_one_name_become_one_agent() {
    let check = |bus: &Bus, runs: Vec<Run>| {
        assert_eq!(agents_of(runs), BTreeSet::from(["BlueLake".to_owned()]));
        assert_eq!(count(&history(bus), "agent_registered"), 1);
    };
    first_starts(|_| words(&["start", "--agent", "BlueLake"]), check);
}

#[test]
fn first_starts_of_one_session_become_one_agent() {
    let check = |bus: &Bus, runs: Vec<Run>| {
        assert_eq!(agents_of(runs).len(), 1);
        assert_eq!(count(&history(bus), "agent_registered"), 1);
    };
    first_starts(|_| words(&["start", "--session", "s-1"]), check);
}

#[test]
fn of_first_starts_of_several_sessions_one_has_the_name() {
    let check = |_: &Bus, runs: Vec<Run>| {
        let (won, lost): (Vec<Run>, Vec<Run>) = runs.into_iter().partition(|run| run.status == 0);
        assert_eq!(won.len(), 1);
        lost.into_iter().for_each(|run| drop(run.fails("AGENT_NAME_TAKEN")));
    };
    first_starts(|index| words(&["start", "--agent", "BlueLake", "--session", &format!("s-{index}")]), check);
}

#[test]
fn nothing_acknowledged_is_lost_while_the_store_is_rebuilt() {
    let agents = ["BlueLake", "RedForest", "GreenHill"];
    let bus = Bus::with(&agents);
    bus.send("BlueLake", "RedForest", "bd-1", "First");
    let send = |from: &str, index: usize| {
        let (to, subject) = (if from == "BlueLake" { "RedForest" } else { "BlueLake" }, format!("{from} {index}"));
        let args = ["send", "--to", to, "--thread", "bd-1", "--subject", &subject, "--body", "text"];
        let keyed = [&args[..], &["--idempotency-key", &subject]].concat();
        // Only where nobody has sent since the drain is the store rebuilt: some of the time they read.
        for _ in 0..4 {
            let run = bus.relay(from, ["agents"]);
            assert!(run.status == 0 || run.json()["error"]["code"] == "STORE_BUSY", "{}", run.stdout);
        }
        loop {
            let run = bus.relay(from, &keyed);
            match run.json()["error"]["code"].as_str() {
                // It acted; a store without its answer took the place of the one that had it.
                None | Some("IDEMPOTENCY_REUSED") => return subject,
                Some("STORE_BUSY") => {}
                Some(_) => panic!("{}", run.stdout),
            }
        }
    };
    let mut rebuilt = 0;
    let sent: Vec<String> = std::thread::scope(|scope| {
        let send = &send;
        let senders = agents.map(|agent| scope.spawn(move || (0..times(20)).map(|index| send(agent, index)).collect()));
        while senders.iter().any(|sender| !sender.is_finished()) || rebuilt == 0 {
            bus.relay("", ["drain", "--wait"]);
            let run = bus.relay("", ["rebuild", "store", "--from-archive"]);
            match run.json()["error"]["code"].as_str() {
                None => rebuilt += 1,
                Some("ARCHIVE_BEHIND" | "STORE_BUSY") => {}
                Some(_) => panic!("{}", run.stdout),
            }
        }
        senders.into_iter().flat_map(|sender| -> Vec<String> { sender.join().unwrap() }).collect()
    });
    let texts = rusqlite::Connection::open(bus.store().join("relay.db")).unwrap();
    let mut statement = texts.prepare("SELECT text FROM texts WHERE field = 'subject' ORDER BY text").unwrap();
    let found: Vec<String> = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let mut expected = [vec!["First".to_owned()], sent].concat();
    expected.sort();
    assert_eq!(found, expected, "after {rebuilt} rebuilds");
}
