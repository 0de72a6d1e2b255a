//! Who is here, who waits, and being woken; also by other processes, and by their death.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use relay_core::domain::time::{Span, Timestamp};
use relay_core::store::Wait;

use super::{Place, Sqlite, at, begin, each, later, name, party, register, write};

/// A test that hangs says nothing; one that waited this long says where.
const LONG: Duration = Duration::from_secs(60);

/// Where the other process of these tests finds its errand and its place.
const ERRAND: &str = "RELAY_CONTRACT_ERRAND";

fn wait(agent: &str, ticket: u64) -> Wait {
    Wait {
        agent: party(agent),
        verb: "reserve".into(),
        pid: std::process::id(),
        ticket,
        for_whom: vec![party("RedForest")],
        patterns: vec!["src/**".into()],
    }
}

/// Another process of this very test program, which does one thing in the place, says so, and waits for its end.
struct Other(Child);

impl Other {
    fn start(place: &dyn Place, errand: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "presence::a_process_does_its_errand", "--nocapture"])
            .env(ERRAND, format!("{errand} {}", place.address()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().ends_with("done")), "{errand} was not done");
        Other(child)
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Dies as a process dies that cannot say goodbye.
    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Without an errand it is a test of the errands themselves.
#[test]
fn a_process_does_its_errand() {
    let Ok(given) = std::env::var(ERRAND) else {
        let place = Sqlite::new(false);
        for errand in ["enter", "commit", "begin"] {
            do_errand(errand, &place, || {});
        }
        assert!(place.open().read().unwrap().agent(&name("GreenHill")).unwrap().is_some(), "commit");
        assert!(place.open().read().unwrap().agent(&name("BlueLake")).unwrap().is_none(), "begin");
        return;
    };
    let (errand, address) = given.split_once(' ').unwrap();
    do_errand(errand, &*at(address), || {
        writeln!(std::io::stdout(), "done").unwrap();
        // Until it is killed, or whoever started it is gone.
        let _ = std::io::stdin().read_line(&mut String::new());
    });
}

fn do_errand(errand: &str, place: &dyn Place, meanwhile: impl FnOnce()) {
    let store = place.open();
    match errand {
        "enter" => {
            let _entered = store.presence().enter(&wait("GreenHill", 3)).unwrap();
            meanwhile();
        }
        "commit" => {
            write(&*store, |tx| register(tx, "GreenHill"));
            meanwhile();
        }
        "begin" => {
            let mut tx = begin(&*store);
            register(&mut *tx, "BlueLake");
            meanwhile();
        }
        other => panic!("there is no errand {other}"),
    }
}

#[test]
fn an_agent_is_seen_when_it_was_touched_last_in_any_case_of_its_name() {
    each(|place| {
        let (one, other) = (place.open(), place.open());
        assert_eq!(one.presence().seen(&name("BlueLake")), None);
        for at in [later(5), later(1), Timestamp::from_millis(7)] {
            one.presence().touch(&name("BlueLake"), at);
            assert_eq!(other.presence().seen(&name("bluelake")), Some(at));
        }
        assert_eq!(other.presence().seen(&name("RedForest")), None);
        assert_eq!(one.read().unwrap().tip().unwrap().number, 1, "beside the history");
    });
}

#[test]
fn an_announcement_stands_until_its_guard_is_dropped() {
    each(|place| {
        let (one, other) = (place.open(), place.open());
        let first = one.presence().enter(&wait("BlueLake", 5)).unwrap();
        let second = one.presence().enter(&wait("RedForest", 2)).unwrap();
        assert_eq!(other.presence().waits(), [wait("RedForest", 2), wait("BlueLake", 5)], "the oldest first");
        assert!(other.presence().has_process(&name("bluelake")));
        drop(first);
        assert_eq!(other.presence().waits(), [wait("RedForest", 2)]);
        assert!(!other.presence().has_process(&name("BlueLake")));
        drop(second);
        assert_eq!(other.presence().waits(), []);
    });
}

#[test]
fn the_waits_of_one_verb_are_asked_for_alone() {
    each(|place| {
        let (one, other) = (place.open(), place.open());
        let of = |verb: &str, agent: &str, ticket: u64| Wait { verb: verb.into(), ..wait(agent, ticket) };
        let _poll = one.presence().enter(&of("poll", "GreenHill", 1)).unwrap();
        let _late = one.presence().enter(&of("reserve", "BlueLake", 3)).unwrap();
        let _early = one.presence().enter(&of("reserve", "RedForest", 2)).unwrap();
        let of_reserve = [of("reserve", "RedForest", 2), of("reserve", "BlueLake", 3)];
        assert_eq!(other.presence().waits_of("reserve"), of_reserve, "the oldest first");
        assert_eq!(other.presence().waits_of("poll"), [of("poll", "GreenHill", 1)]);
        assert_eq!(other.presence().waits_of("link"), []);
        assert_eq!(other.presence().waits().len(), 3);
    });
}

#[test]
fn an_announcement_is_replaced_and_its_ticket_and_verb_stay() {
    each(|place| {
        let store = place.open();
        let mut guard = store.presence().enter(&wait("BlueLake", 5)).unwrap();
        let changed = Wait { for_whom: vec![party("human")], patterns: vec![], ..wait("BlueLake", 5) };
        guard.update(&Wait { ticket: 99, verb: "poll".into(), ..changed.clone() });
        assert_eq!(place.open().presence().waits(), [changed]);
        drop(guard);
        assert_eq!(store.presence().waits(), []);
    });
}

#[test]
fn a_process_that_dies_without_a_word_is_gone_from_presence() {
    each(|place| {
        let store = place.open();
        let other = Other::start(place, "enter");
        let waits = store.presence().waits();
        assert_eq!((waits.len(), &waits[0].agent, waits[0].ticket), (1, &party("GreenHill"), 3));
        assert_eq!(waits[0].pid, other.pid());
        assert!(store.presence().has_process(&name("GreenHill")));
        assert!(store.presence().process_lives(other.pid()));
        let pid = other.pid();
        other.kill();
        assert!(!store.presence().process_lives(pid));
        assert!(!store.presence().has_process(&name("GreenHill")));
        assert_eq!(store.presence().waits(), []);
        assert!(store.presence().process_lives(std::process::id()));
    });
}

#[test]
fn what_a_process_committed_survives_its_death_and_what_it_had_not_does_not() {
    each(|place| {
        let store = place.open();
        Other::start(place, "commit").kill();
        assert!(store.read().unwrap().agent(&name("GreenHill")).unwrap().is_some());
        let other = Other::start(place, "begin");
        let refusal = store.begin(super::errand(Span::millis(1))).err().unwrap();
        assert!(refusal.details["holder"].as_str().unwrap().contains(&other.pid().to_string()), "{refusal}");
        other.kill();
        // The turn of the dead is over.
        assert!(begin(&*store).agent(&name("BlueLake")).unwrap().is_none());
    });
}

/// Longer than anybody waits for a watch that sleeps through.
const ASLEEP: Span = Span::seconds(120);

/// Whether this comes to its end in time, in a thread of its own.
fn ends(story: impl FnOnce() + Send) -> bool {
    let (done, is_done) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            story();
            done.send(()).unwrap();
        });
        is_done.recv_timeout(LONG).is_ok()
    })
}

#[test]
fn a_commit_after_the_watch_was_armed_wakes_it() {
    each(|place| {
        for process in ["this", "another"] {
            let (armed, is_armed) = mpsc::channel();
            let happen = move || {
                is_armed.recv().unwrap();
                match process {
                    "this" => drop(write(&*place.open(), |tx| register(tx, "BlueLake"))),
                    _ => Other::start(place, "commit").kill(),
                }
            };
            std::thread::scope(|scope| {
                scope.spawn(happen);
                let woke = ends(move || {
                    let store = place.open();
                    let mut watch = store.watch().unwrap();
                    armed.send(()).unwrap();
                    watch.wait(ASLEEP).unwrap();
                });
                assert!(woke, "a commit of {process} process");
            });
        }
    });
}

#[test]
fn a_commit_before_the_first_wait_is_not_missed() {
    each(|place| {
        assert!(ends(|| {
            let store = place.open();
            let mut watch = store.watch().unwrap();
            write(&*place.open(), |tx| register(tx, "BlueLake"));
            watch.wait(ASLEEP).unwrap();
        }));
    });
}

#[test]
fn a_watch_ends_when_its_time_is_over_and_wakes_again_afterwards() {
    each(|place| {
        assert!(ends(|| {
            let store = place.open();
            let mut watch = store.watch().unwrap();
            watch.wait(Span::millis(0)).unwrap();
            watch.wait(Span::millis(5)).unwrap();
            write(&*place.open(), |tx| register(tx, "BlueLake"));
            watch.wait(ASLEEP).unwrap();
        }));
    });
}

#[test]
fn whoever_wakes_sees_what_was_committed() {
    each(|place| {
        let all_seen = ends(|| {
            let store = place.open();
            for (index, agent) in ["BlueLake", "RedForest", "GreenHill"].into_iter().enumerate() {
                let mut watch = store.watch().unwrap();
                std::thread::scope(|scope| {
                    scope.spawn(|| write(&*place.open(), |tx| register(tx, agent)));
                    while store.read().unwrap().agents().unwrap().len() == index {
                        watch.wait(ASLEEP).unwrap();
                    }
                });
            }
        });
        assert!(all_seen);
    });
}
