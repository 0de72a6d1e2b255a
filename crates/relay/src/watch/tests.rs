//! The screen is a function of values: drawn into a buffer, it is read back as text.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::Color;
use relay_core::domain::time::Timestamp;
use relay_core::verbs::look::Status;
use serde_json::{Value, json};

use super::draw::draw;
use super::look::Seen;
use super::state::{Pane, State};

const NOW: Timestamp = Timestamp::from_millis(1_794_704_400_000);

fn agent(name: &str, alive: bool, task: &str) -> Value {
    json!({"name": name, "state": "active", "alive": alive, "seen_at": "2026-11-15T00:59:30.000Z", "program": "codex",
        "thread": "bd-1", "task": task})
}

fn busy(name: &str) -> Value {
    json!({"agent": name, "claims": 1, "contested": 1, "owes": 1, "unread": 100})
}

fn leaf(id: u64, name: &str, holder: &str) -> Value {
    json!({"name": name, "contested": true, "silent": holder == "RedForest", "id": id, "pattern": name, "holder": holder,
        "exclusive": true, "expires_at": "2026-11-15T01:30:00.000Z", "generation": 0})
}

fn ack(overdue: bool, due: &str) -> Value {
    json!({"message": 9, "thread": "bd-1", "subject": "Login", "from": "BlueLake", "by": "RedForest",
        "since": "2026-11-15T00:00:00.000Z", "due": due, "overdue": overdue})
}

/// Two agents who contest a file, two acks of which one is late, a request for contact, and a question to the human.
fn story() -> Value {
    json!({
        "project": "/srv/app", "tip": 42,
        "agents": [agent("BlueLake", true, "Fix the login"), agent("RedForest", false, "\u{1b}[2J日本語\u{202e}")],
        "live_claims": 2, "contested": [{"mine": 7, "pattern": "src/**", "id": 8, "holder": "RedForest", "overlaps": "src/a.rs",
            "exclusive": true, "example": "src/a.rs", "ended": false}], "contested_total": 1, "for_the_human_total": 1, "open_threads": 1, "contacts_waiting": 1, "debt": 1,
        "for_the_human": [{"id": 12, "thread": "bd-1", "from": "RedForest", "subject": "Which API?", "importance": "urgent",
            "ack_required": true, "sent_at": "2026-11-15T00:10:00.000Z", "read_at": null, "acked_at": null,
            "ack_due": "2026-11-15T00:40:00.000Z", "recipients": []}],
        "archive": {"number": 40, "behind": 2},
        "now": {
            "busy": [busy("BlueLake"), busy("RedForest")],
            "waits": [{"who": "BlueLake", "verb": "reserve", "for_whom": ["RedForest"], "patterns": ["src/a.rs"]}],
            "tree": {"name": "", "path": "", "claims": 2, "contested": 2, "branches": [{"name": "src", "path": "src",
                "claims": 2, "contested": 2, "leaves": [leaf(7, "**", "BlueLake"), leaf(8, "a.rs", "RedForest")]}]},
            "acks": [ack(true, "2026-11-15T00:30:00.000Z"), ack(false, "2026-11-15T01:30:00.000Z")],
            "acks_total": 2,
            "requests": [{"id": 30, "state": "requested", "from": "RedForest", "to": "GoldOwl", "by_policy": false,
                "expires_at": "2026-11-20T00:00:00.000Z", "why": "the parser"}],
            "debt": [{"kind": "broad_claim", "who": "BlueLake", "text": "BlueLake holds **", "pay": "relay release"},
                {"kind": "ack_overdue", "who": "RedForest", "text": "told by its ack", "pay": "relay ack 9"}],
            "retired": 3, "store": {"bytes": 20480, "log_bytes": 4096},
        },
    })
}

fn seen(story: Value) -> Seen {
    let status: Status = serde_json::from_value(story).unwrap_or_else(|fault| panic!("{fault}"));
    let now = status.now.clone().unwrap_or_else(|| panic!("nothing is told of now"));
    Seen { status, now: *now }
}

fn buffer(seen: &Seen, state: &mut State, (width, height): (u16, u16)) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap_or_else(|fault| match fault {});
    terminal.draw(|frame| draw(frame, seen, state, NOW)).unwrap_or_else(|fault| match fault {});
    terminal.backend().buffer().clone()
}

fn text(buffer: &Buffer) -> String {
    let row = |cells: &[ratatui::buffer::Cell]| cells.iter().map(ratatui::buffer::Cell::symbol).collect::<String>();
    buffer.content.chunks(usize::from(buffer.area.width).max(1)).map(|cells| row(cells) + "\n").collect()
}

#[track_caller]
fn check(size: (u16, u16), pane: Pane, has: &[&str], lacks: &[&str]) {
    let mut state = State::new(true, pane);
    let text = text(&buffer(&seen(story()), &mut state, size));
    for word in has {
        assert!(text.contains(word), "{word:?} is not on the screen:\n{text}");
    }
    for word in lacks {
        assert!(!text.contains(word), "{word:?} is on the screen:\n{text}");
    }
}

#[test]
fn a_wide_screen_shows_everything_at_once() {
    let head = "2 to decide, 1 overdue, 1 contested pair, 1 alive, 1 silent, 2 claims in /srv/app at #42";
    let has = [
        head,
        "To decide 2",
        "#12 RedForest, 50m ago, overdue: Which API?",
        "relay send --agent human --reply-to 12 --body TEXT",
        "contact RedForest asks GoldOwl: the parser",
        "BlueLake  alive  30s ago",
        "RedForest silent 30s ago",
        "1 claim (1 contested), owes 1 ack, 100+ unread, waits for RedForest",
        "└─ src/",
        "├─ ** contested BlueLake #7, ends in 30m",
        "└─ a.rs contested RedForest (silent) #8, ends in 30m",
        "ack #9 RedForest owes BlueLake, asked 1h ago, overdue 30m",
        "ack #9 RedForest owes BlueLake, asked 1h ago, due in 30m",
        "BlueLake waits for RedForest to give back src/a.rs",
        "broad claim BlueLake holds **",
        "The archive is 2 events behind. The store takes 20 KB and 4.0 KB of log. 1 open thread; 3 retired.",
        "q quit  Tab pane",
    ];
    check((200, 60), Pane::Agents, &has, &["told by its ack"]);
    check((140, 40), Pane::Agents, &has, &[]);
    check((100, 20), Pane::Agents, &["To decide 2", "Agents 2", "Claims 2", "Owed and awaited"], &[]);
}

#[test]
fn a_narrow_screen_shows_one_pane_and_names_the_others() {
    for (size, pane, has, lacks) in [
        ((80, 24), Pane::Agents, "BlueLake  alive", "contested BlueLake"),
        ((80, 24), Pane::Claims, "contested BlueLake #7", "BlueLake  alive"),
        ((99, 60), Pane::Decide, "Which API?", "BlueLake  alive"),
        ((200, 19), Pane::Owed, "overdue 30m", "BlueLake  alive"),
    ] {
        check(size, pane, &[has, " To decide 2 ", " Agents 2 ", " Claims 2 ", " Owed and awaited 4 "], &[lacks]);
    }
}

#[test]
fn a_screen_of_any_size_is_drawn() {
    let (seen, mut state) = (seen(story()), State::new(true, Pane::Agents));
    for help in [false, true] {
        (state.help, state.trouble) = (help, help.then(|| "STORE_BUSY: somebody writes".to_owned()));
        for width in [1, 2, 3, 10, 40, 99, 100, 101, 300] {
            for height in [1, 2, 3, 4, 7, 19, 20, 21, 90] {
                buffer(&seen, &mut state, (width, height));
            }
        }
    }
}

#[test]
fn what_others_wrote_neither_steers_the_terminal_nor_moves_the_frame() {
    let (seen, mut state) = (seen(story()), State::new(true, Pane::Agents));
    let drawn = buffer(&seen, &mut state, (160, 40));
    let text = text(&drawn);
    assert!(text.contains("\\u{1b}[2J") && text.contains("\\u{202e}"), "{text}");
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text}");
    let edges: Vec<u16> = (0..160).filter(|x| drawn[(*x, 10)].symbol() == "│").collect();
    for y in 8..20 {
        for x in &edges {
            assert_eq!(drawn[(*x, y)].symbol(), "│", "{y} {x}\n{text}");
        }
    }
    // A line that is longer than its place says so.
    assert!(buffer_text(&seen, (30, 12)).contains('…'));
}

fn buffer_text(seen: &Seen, size: (u16, u16)) -> String {
    text(&buffer(seen, &mut State::new(true, Pane::Agents), size))
}

#[test]
fn colours_are_left_out_where_they_are_not_wanted_and_words_stay() {
    let seen = seen(story());
    for colour in [true, false] {
        let drawn = buffer(&seen, &mut State::new(colour, Pane::Agents), (160, 40));
        let used: Vec<Color> = drawn.content.iter().map(|cell| cell.fg).filter(|fg| *fg != Color::Reset).collect();
        assert_eq!(used.is_empty(), !colour);
        let text = text(&drawn);
        assert!(["contested", "overdue", "silent"].iter().all(|word| text.contains(word)), "{text}");
    }
}

#[test]
fn trouble_is_said_while_what_was_seen_stays() {
    let mut state = State::new(true, Pane::Agents);
    state.trouble = Some("STORE_DAMAGED: it is not whole".to_owned());
    let text = text(&buffer(&seen(story()), &mut state, (120, 30)));
    assert!(
        text.contains("This is older, and it is tried again: STORE_DAMAGED: it is not whole")
            && text.contains("BlueLake"),
        "{text}"
    );
}

#[test]
fn a_project_of_hundreds_is_scrolled_and_no_line_is_lost() {
    let mut large = story();
    let names: Vec<String> = (0..500).map(|number| format!("Agent{number:03}")).collect();
    large["agents"] = names.iter().map(|name| agent(name, true, "t")).collect();
    large["now"]["busy"] = names.iter().map(|name| busy(name)).collect();
    let (seen, mut state) = (seen(large), State::new(true, Pane::Agents));
    let mut found = 0;
    for _ in 0..100 {
        let text = text(&buffer(&seen, &mut state, (80, 24)));
        found += names[found..].iter().take_while(|name| text.contains(&format!("{name} "))).count();
        state.scroll[Pane::Agents as usize] += state.room;
    }
    assert_eq!(found, 500);
    // Past the end there is nothing to scroll to: one line up is one line up.
    let last = state.scroll[Pane::Agents as usize] - state.room;
    let text = text(&buffer(&seen, &mut state, (80, 24)));
    assert!(text.contains("Agent499") && text.contains("above, 0 below"), "{text}");
    assert!(state.scroll[Pane::Agents as usize] <= last);
}

#[test]
fn an_empty_project_says_what_to_do() {
    let mut empty = story();
    for list in ["agents", "for_the_human"] {
        empty[list] = json!([]);
    }
    empty["live_claims"] = json!(0);
    empty["now"] = json!({"busy": [], "waits": [], "tree": {"name": "", "path": "", "claims": 0, "contested": 0}, "acks": [],
        "acks_total": 0, "requests": [], "debt": [], "retired": 0, "store": {"bytes": 0, "log_bytes": 0}});
    let text = buffer_text(&seen(empty), (140, 40));
    for word in
        ["`relay start` registers an agent", "Nobody holds anything", "Nobody waits for a person", "Nobody owes"]
    {
        assert!(text.contains(word), "{word}\n{text}");
    }
}
