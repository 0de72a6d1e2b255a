//! `relay watch` on a terminal of its own: live, and gone without a trace.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::bus::{Bus, minutes};
use crate::listening::Server;

/// A process on a terminal, and what that shows.
struct Watching {
    child: Child,
    terminal: File,
    shown: Shown,
}

impl Watching {
    fn start(bus: &Bus, size: (u16, u16), args: &[&str], variables: &[(&str, &str)]) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let path = ptsname(&master, Vec::new()).unwrap();
        tcsetwinsize(&master, Winsize { ws_col: size.0, ws_row: size.1, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let slave = || -> OwnedFd { rustix::fs::open(&*path, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap() };
        // The terminal is the process's own, as a shell's is: no other's size or keys reach it.
        let mut command = Command::new("setsid");
        bus.environment(&mut command);
        command.args(["--ctty", crate::bus::RELAY]).args(args).env("TERM", "xterm-256color");
        command.envs(variables.iter().copied());
        command.stdin(Stdio::from(slave())).stdout(Stdio::from(slave())).stderr(Stdio::from(slave()));
        let child = command.spawn().unwrap();
        Watching { child, terminal: File::from(master), shown: Shown::new(size) }
    }

    fn of(bus: &Bus) -> Self {
        Watching::start(bus, (120, 40), &["watch"], &[])
    }

    /// Reads on until this is so of what is shown.
    #[track_caller]
    fn until(&mut self, is_so: impl Fn(&Shown) -> bool) {
        while !is_so(&self.shown) {
            assert!(self.read(), "it ended:\n{}", self.shown.text());
        }
    }

    #[track_caller]
    fn until_text(&mut self, text: &str) {
        self.until(|shown| shown.text().contains(text));
    }

    /// False when nobody is left who could write.
    fn read(&mut self) -> bool {
        let mut bytes = [0; 4096];
        match self.terminal.read(&mut bytes) {
            Ok(count @ 1..) => {
                self.shown.take(&bytes[..count]);
                true
            }
            _ => false,
        }
    }

    fn press(&mut self, keys: &str) {
        self.terminal.write_all(keys.as_bytes()).unwrap();
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap(), signal).unwrap();
    }

    /// Its exit status; the terminal is as it was before.
    #[track_caller]
    fn end(&mut self) -> i32 {
        while self.read() {}
        let status = self.child.wait().unwrap();
        assert!(self.shown.entered > 0 && !self.shown.alternate && self.shown.cursor, "the screen was not left");
        assert!(self.is_cooked(), "keys are not echoed any more");
        status.code().unwrap_or(-1)
    }

    fn is_cooked(&self) -> bool {
        tcgetattr(&self.terminal)
            .unwrap()
            .local_modes
            .contains(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG)
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// As much of a terminal as the screen makes use of.
struct Shown {
    cells: Vec<Vec<char>>,
    at: (usize, usize),
    pending: Vec<u8>,
    /// How often the screen was taken.
    entered: usize,
    alternate: bool,
    cursor: bool,
}

impl Shown {
    fn new((width, height): (u16, u16)) -> Self {
        let cells = vec![vec![' '; width.into()]; height.into()];
        Shown { cells, at: (0, 0), pending: Vec::new(), entered: 0, alternate: false, cursor: true }
    }

    fn text(&self) -> String {
        self.cells.iter().map(|row| row.iter().collect::<String>() + "\n").collect()
    }

    fn take(&mut self, bytes: &[u8]) {
        self.pending.extend(bytes);
        while let Some(used) = self.step() {
            self.pending.drain(..used);
        }
    }

    /// How many bytes the next thing took; none while it is not there as a whole.
    fn step(&mut self) -> Option<usize> {
        let first = *self.pending.first()?;
        if first != 0x1b {
            let length = match first {
                0..0x80 => 1,
                0x80..0xe0 => 2,
                0xe0..0xf0 => 3,
                _ => 4,
            };
            let character = std::str::from_utf8(self.pending.get(..length)?).unwrap().chars().next()?;
            self.put(character);
            return Some(length);
        }
        if *self.pending.get(1)? != b'[' {
            return Some(2);
        }
        let end = self.pending[2..].iter().position(|byte| (0x40..0x7f).contains(byte))? + 2;
        let words = String::from_utf8(self.pending[2..end].to_vec()).unwrap();
        self.obey(&words, self.pending[end]);
        Some(end + 1)
    }

    fn put(&mut self, character: char) {
        let (row, column) = self.at;
        match character {
            '\r' => self.at.1 = 0,
            '\n' => self.at.0 += 1,
            _ => {
                if let Some(cell) = self.cells.get_mut(row).and_then(|row| row.get_mut(column)) {
                    *cell = character;
                }
                self.at.1 += 1;
            }
        }
    }

    fn obey(&mut self, words: &str, order: u8) {
        match (order, words) {
            (b'H', _) => {
                let mut numbers = words.split(';').map(|word| word.parse().unwrap_or(1_usize) - 1);
                self.at = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
            }
            (b'J', _) => self.cells.iter_mut().flatten().for_each(|cell| *cell = ' '),
            (b'h', "?1049") => {
                (self.alternate, self.entered) = (true, self.entered + 1);
                self.obey("2", b'J');
            }
            (b'l', "?1049") => self.alternate = false,
            (b'h' | b'l', "?25") => self.cursor = order == b'h',
            _ => {}
        }
    }
}

#[test]
fn it_shows_what_happens_without_a_key_and_is_gone_with_one() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    for keys in ["q", "\u{1b}", "\u{3}"] {
        let mut watching = Watching::of(&bus);
        watching.until_text("BlueLake");
        watching.until(|shown| shown.alternate && !shown.cursor);
        assert!(!watching.is_cooked());
        bus.relay("BlueLake", ["reserve", "scripts/**"]).success();
        watching.until_text("scripts/");
        bus.relay("RedForest", ["reserve", "scripts/test"]).success();
        watching.until_text("contested");
        for agent in ["BlueLake", "RedForest"] {
            bus.relay(agent, ["release", "--all"]).success();
        }
        watching.until_text("Nobody holds anything");
        watching.press(keys);
        assert_eq!(watching.end(), 0);
    }
}

#[test]
fn silence_and_lateness_are_seen_though_they_are_no_events() {
    let bus = Bus::with(&["BlueLake"]);
    let mut watching = Watching::of(&bus);
    watching.until_text("1 alive, 0 silent");
    bus.advance(minutes(11));
    watching.until_text("0 alive, 1 silent");
    watching.press("q");
    assert_eq!(watching.end(), 0);
}

#[test]
fn a_signal_leaves_the_terminal_as_it_was() {
    let bus = Bus::with(&["BlueLake"]);
    for (signal, status) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let mut watching = Watching::of(&bus);
        watching.until_text("BlueLake");
        watching.signal(signal);
        assert_eq!(watching.end(), status);
    }
}

#[test]
fn keys_turn_panes_tell_themselves_and_put_it_aside() {
    let bus = Bus::with(&["BlueLake"]);
    bus.relay("BlueLake", ["reserve", "src/**"]).success();
    let mut watching = Watching::start(&bus, (80, 24), &["watch"], &[("NO_COLOR", "1")]);
    watching.until_text("BlueLake alive");
    watching.press("\t");
    watching.until_text("ends in 1h");
    watching.press("\u{1b}[Z");
    watching.until_text("BlueLake alive");
    watching.press("?");
    watching.until_text("look again at once");
    // Nobody is there to whom the terminal could be given, so it is taken again at once.
    watching.press("?\u{1a}r");
    watching.until(|shown| shown.alternate && shown.entered == 2 && shown.text().contains("BlueLake alive"));
    assert!(!watching.shown.text().contains("look again at once"));
    watching.press("q");
    assert_eq!(watching.end(), 0);
}

#[test]
fn it_is_drawn_anew_for_a_terminal_of_another_size() {
    let bus = Bus::with(&["BlueLake"]);
    let mut watching = Watching::start(&bus, (120, 40), &["watch"], &[]);
    watching.until_text("Nobody holds anything");
    tcsetwinsize(&watching.terminal, Winsize { ws_col: 80, ws_row: 24, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    watching.until(|shown| shown.text().contains(" Claims 0 ") && !shown.text().contains("Nobody holds anything"));
    watching.press("q");
    assert_eq!(watching.end(), 0);
}

#[test]
fn the_human_sees_what_waits_for_the_human() {
    let bus = Bus::with(&["BlueLake"]);
    bus.relay("", ["token", "human"]).success();
    bus.send("BlueLake", "human", "bd-1", "Which API?");
    let mut watching = Watching::start(&bus, (120, 40), &["watch", "--agent", "human"], &[]);
    watching.until_text("Which API?");
    watching.press("q");
    assert_eq!(watching.end(), 0);
}

#[test]
fn a_store_that_is_away_for_a_moment_is_waited_for() {
    let bus = Bus::with(&["BlueLake"]);
    let mut watching = Watching::of(&bus);
    watching.until_text("BlueLake");
    let (store, aside) = (bus.store(), bus.path("aside"));
    std::fs::rename(&store, &aside).unwrap();
    watching.press("r");
    watching.until_text("tried again: AGENT_NOT_REGISTERED");
    assert!(watching.shown.text().contains("BlueLake"));
    std::fs::rename(&aside, &store).unwrap();
    watching.until(|shown| !shown.text().contains("This is older"));
    watching.press("q");
    assert_eq!(watching.end(), 0);
}

#[test]
fn it_looks_at_the_bus_of_a_server_too() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    let variables = [("RELAY_URL", server.url.as_str()), ("RELAY_TOKEN", server.token.as_str())];
    let mut watching = Watching::start(&bus, (120, 40), &["watch"], &variables);
    watching.until_text("BlueLake");
    bus.relay("BlueLake", ["reserve", "scripts/**"]).success();
    watching.until_text("scripts/");
    server.stop();
    watching.until_text("STORE_UNREACHABLE");
    watching.press("q");
    assert_eq!(watching.end(), 0);
}

#[test]
fn where_there_is_no_screen_it_names_the_other_way() {
    let bus = Bus::with(&["BlueLake"]);
    let piped = bus.text("", ["watch"]);
    assert_eq!((piped.status, piped.stdout.as_str()), (2, ""));
    assert!(piped.stderr.contains("`relay status`") && piped.stderr.contains("[INPUT_INVALID]"), "{}", piped.stderr);
    let error = bus.relay("", ["watch"]).fails("INPUT_INVALID").error();
    assert!(error["message"].as_str().unwrap().contains("`relay status --json`"), "{error}");
}

#[test]
fn what_is_wrong_from_the_start_is_said_without_a_screen() {
    let bus = Bus::new();
    for (args, says, status) in [
        (&["watch"] as &[&str], "AGENT_NOT_REGISTERED", 3),
        (&["watch", "--agent", "human"], "UNAUTHORIZED", 8),
        (&["watch", "--idempotency-key", "k"], "INPUT_INVALID", 2),
    ] {
        let mut watching = Watching::start(&bus, (120, 40), args, &[]);
        while watching.read() {}
        assert_eq!(watching.child.wait().unwrap().code(), Some(status), "{args:?}");
        assert!(watching.shown.entered == 0 && watching.shown.text().contains(says), "{}", watching.shown.text());
    }
}
