//! The past: what was held after an event, what a day was, and who wrote to whom.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::bus::{Bus, EPOCH, days, hours, minutes};
use crate::terminal::{column, text};

const AGENTS: [&str; 3] = ["BlueLake", "RedForest", "GreenHill"];
const PATTERNS: [&str; 5] = ["src/**", "src/a.rs", "docs", "res:port", "*.md"];
const STEPS: usize = 90;

/// The live claims as they were seen when they were live, by the newest event of that moment.
struct Story {
    bus: Bus,
    seen: Vec<(u64, Value)>,
    chance: u64,
}

impl Story {
    fn new() -> Self {
        let bus = Bus::with(&AGENTS);
        bus.relay("", ["token", "human"]).success();
        Story { bus, seen: Vec::new(), chance: 7 }
    }

    /// Something of a few, the same in every run.
    fn any<T: Copy>(&mut self, of: &[T]) -> T {
        self.chance = self.chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        of[(self.chance >> 33) as usize % of.len()]
    }

    fn look(&mut self) {
        let live = self.bus.relay("", ["reservations"]).success().result();
        let tip = self.bus.tip();
        // Time that passes is no event: what was live after one is what was live at its time.
        if self.seen.last().is_none_or(|(last, _)| *last < tip) {
            self.seen.push((tip, live));
        }
    }

    /// What fails changes nothing, and is as good as any other step.
    fn act(&mut self, agent: &str, words: &[&str]) {
        self.bus.relay(agent, words);
        self.look();
    }

    fn step(&mut self) {
        let (agent, pattern) = (self.any(&AGENTS), self.any(&PATTERNS));
        let ttl = self.any(&["2m", "1h", "20h", "24h"]);
        match self.any(&[0, 0, 0, 1, 1, 2, 3, 3, 4, 5, 6, 6, 6]) {
            0 => self.act(agent, &["reserve", pattern, "--ttl", ttl]),
            1 => self.act(agent, &["reserve", pattern, "--ttl", ttl, "--shared", "--reason", "bd-1"]),
            2 => self.act(agent, &["release", pattern]),
            3 => self.act(agent, &["release", pattern, "--renew", ttl]),
            4 => self.act(agent, &["release", pattern, "--force", "--why", "it is silent"]),
            5 => self.act("human", &["release", pattern, "--force", "--why", "I decide"]),
            _ => {
                let time = self.any(&[minutes(1), minutes(11), hours(1), hours(9)]);
                self.bus.advance(time);
            }
        }
    }

    /// More events than are read at once, about other claims.
    fn much_else(&self) {
        for folder in ["one", "other"] {
            let patterns: Vec<String> = (0..600).map(|number| format!("{folder}/{number}")).collect();
            let reserve = ["reserve"].into_iter().chain(patterns.iter().map(String::as_str));
            self.bus.relay("GreenHill", reserve).success();
        }
        self.bus.relay("GreenHill", ["release", "--all"]).success();
    }

    /// What is told of each moment now is what was seen then.
    #[track_caller]
    fn check(&self) {
        for (tip, live) in &self.seen {
            let told = self.bus.relay("", ["reservations", "--at", &tip.to_string()]).success().result();
            assert_eq!(&told, live, "after #{tip}");
        }
    }
}

#[test]
fn what_was_held_after_an_event_is_what_was_live_then() {
    let mut story = Story::new();
    for _ in 0..STEPS {
        story.step();
    }
    let kinds: BTreeSet<String> = story.bus.kinds(0).into_iter().collect();
    for kind in ["reservation_granted", "reservation_renewed", "reservation_released", "reservation_taken"] {
        assert!(kinds.contains(kind), "the story has no {kind}");
    }
    assert!(story.seen.len() > STEPS / 3, "only {} moments", story.seen.len());
    let contested = story.seen.iter().filter(|(_, live)| live.get("contested").is_some()).count();
    assert!((1..story.seen.len()).contains(&contested), "{contested} moments of {} were contested", story.seen.len());
    story.check();
}

/// What a claim is contested by counts, also where only the claim itself was asked for.
#[test]
fn what_was_contested_then_is_told_with_what_was_held() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let claim = |agent: &str, words: &[&str]| {
        let claimed = bus.relay(agent, ["reserve"].iter().chain(words)).success().result();
        claimed["granted"][0]["id"].clone()
    };
    let all = claim("BlueLake", &["src/**", "--shared"]);
    let one = claim("RedForest", &["src/a.rs", "--shared"]);
    let shared = bus.tip();
    claim("RedForest", &["src/a.rs"]);
    let met = bus.tip();
    bus.relay("RedForest", ["release", "src/a.rs"]).success();
    let then = |at: u64, path: &str| {
        let told = bus.relay("", ["reservations", path, "--at", &at.to_string()]).success().result();
        (column(&told["reservations"], "id"), told.get("contested").cloned())
    };
    assert_eq!(then(shared, "src"), (vec![all.clone(), one.clone()], None));
    assert_eq!(then(met, "src"), (vec![all.clone(), one.clone()], Some(json!([all.clone(), one]))));
    assert_eq!(then(met, "src/b.rs"), (vec![all.clone()], Some(json!([all.clone()]))));
    assert_eq!(then(bus.tip(), "src"), (vec![all], None));
    let told = bus.text("", ["reservations", "--at", &met.to_string()]).success().stdout;
    assert!(told.contains("contested #"), "{told}");
}

#[test]
fn a_claim_that_was_kept_for_days_is_told_with_whose_turn_it_was() {
    let mut story = Story::new();
    for pattern in ["kept", "lost", "mode"] {
        story.act("BlueLake", &["reserve", pattern, "--ttl", "24h"]);
    }
    story.bus.advance(hours(1));
    story.act("BlueLake", &["reserve", "mode", "--ttl", "24h", "--shared"]);
    story.act("RedForest", &["release", "lost", "--force", "--why", "it is silent"]);
    assert_eq!(story.seen.last().unwrap().1["total"], 3);
    story.bus.advance(minutes(11));
    story.act("RedForest", &["release", "lost", "--force", "--why", "it is silent"]);
    story.much_else();
    // The claims live on, each long after the events of its first day.
    for round in 0..4 {
        story.bus.advance(hours(20));
        story.act("BlueLake", &["release", "kept", "--renew", "24h"]);
        if round == 0 {
            story.bus.advance(hours(4) - minutes(12));
            story.act("GreenHill", &["release", "mode", "--force", "--why", "it is silent"]);
            story.act("BlueLake", &["release", "kept", "--renew", "24h"]);
            story.act("RedForest", &["release", "lost", "--renew", "24h"]);
            story.bus.advance(hours(2));
        } else {
            story.act("RedForest", &["release", "lost", "--renew", "24h"]);
        }
        story.act("RedForest", &["send", "--to", "human", "--subject", "Still here", "--body", "b"]);
    }
    let last = &story.seen.last().unwrap().1["reservations"];
    assert_eq!(
        (column(last, "pattern"), column(last, "generation")),
        (vec![json!("kept"), json!("lost")], vec![json!(0), json!(1)])
    );
    assert_eq!(column(last, "holder"), ["BlueLake", "RedForest"]);
    let shared =
        story.seen.iter().find(|(_, live)| column(&live["reservations"], "holder").contains(&json!("GreenHill")));
    assert_eq!(column(&shared.unwrap().1["reservations"], "exclusive"), [true, true, false]);
    story.check();
    // Of a path alone.
    let (tip, _) = story.seen.last().unwrap();
    let told = story.bus.relay("", ["reservations", "lost/a.rs", "--at", &tip.to_string()]).success().result();
    assert_eq!((column(&told["reservations"], "holder"), &told["total"]), (vec![json!("RedForest")], &json!(1)));
}

#[test]
fn a_day_is_counted_by_its_hours() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    for advance in [minutes(30), minutes(29), minutes(2), hours(5), hours(17), minutes(59), minutes(1), hours(30)] {
        bus.advance(advance);
        bus.send("BlueLake", "RedForest", "bd-1", "Login");
    }
    let events = bus.events(0);
    let look = |date: &str| bus.relay("", ["look", "day", date]).success().result();
    for (date, begins) in
        [("2026-11-14", -1), ("2026-11-15", 0), ("2026-11-16", 1), ("2026-11-17", 2), ("2026-11-18", 3)]
    {
        let begins = EPOCH + days(begins);
        let of = |event: &&Value| {
            let at = text(&event["at"]);
            let hour: i64 = at[11..13].parse().unwrap();
            at.starts_with(date).then_some(hour)
        };
        let told = look(date);
        let hours: Vec<u64> =
            (0..24).map(|hour| events.iter().filter(|event| of(event) == Some(hour)).count() as u64).collect();
        assert_eq!(told["hours"], json!(hours), "{date}");
        let numbers: Vec<&Value> =
            events.iter().filter(|event| of(event).is_some()).map(|event| &event["number"]).collect();
        assert_eq!(
            (told.get("first"), told.get("last")),
            (numbers.first().copied(), numbers.last().copied()),
            "{date}"
        );
        assert_eq!((text(&told["from"]), &told["day"]), (format!("{date}T00:00:00.000Z"), &json!(date)), "{begins}");
        let earlier = events.iter().rfind(|event| text(&event["at"])[..10] < *date).map(|event| &event["at"]);
        let later = events.iter().find(|event| text(&event["at"])[..10] > *date).map(|event| &event["at"]);
        assert_eq!((told.get("earlier"), told.get("later")), (earlier, later), "{date}");
    }
    assert!(bus.text("", ["look", "day", "2026-11-14"]).success().stdout.contains("Nothing happened on 2026-11-14."));
    assert!(bus.text("", ["look", "day", "2026-11-15"]).success().stdout.contains("06:00"));
    for far in ["0000-01-01", "0001-01-01", "9999-12-30"] {
        assert_eq!(look(far).get("first"), None, "{far}");
    }
}

#[test]
fn who_writes_to_whom_is_counted_the_busiest_first() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    assert_eq!(bus.relay("", ["look", "traffic"]).success().result()["traffic"], json!([]));
    assert_eq!(bus.text("", ["look", "traffic"]).success().stdout, "Nobody has written to anybody yet.\n");
    bus.send("BlueLake", "human", "bd-1", "Login");
    let newest = [(); 2].map(|()| bus.send("RedForest", "BlueLake", "bd-1", "Login"))[1];
    let told = bus.relay("", ["look", "traffic"]).success().result();
    let expected = json!({"from": "RedForest", "to": "BlueLake", "messages": 2, "newest": newest});
    assert_eq!((&told["traffic"][0], told["traffic"].as_array().unwrap().len()), (&expected, 2));
    assert_eq!(text(&told["since"]), "2026-11-15T00:00:00.000Z");
    let one = bus.relay("", ["look", "traffic", "-n", "1"]).success().result();
    assert_eq!(one["traffic"], json!([expected]));
}
