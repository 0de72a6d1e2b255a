//! Many agents at one server: what they get out of it, beside what the disk and bare SQLite give in the same run.
//!
//! `cargo bench -p relay --bench load -- [--agents N] [--seconds N] [--sends N] [--dir DIR] [--only idle,mixed,syncs,wakes]`. Prints a row per figure and asserts nothing: machines are
//! noisy, and whoever reads the figures compares them with what stands beside them.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a benchmark that cannot go on should say where"
)]

mod bare;
mod client;
mod mix;
mod server;
mod wakes;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use server::Server;

/// What is asked for on the command line.
struct Wanted {
    agents: usize,
    seconds: u64,
    sends: usize,
    dir: PathBuf,
    only: Option<String>,
}

impl Wanted {
    fn read() -> Self {
        let words: Vec<String> = std::env::args().collect();
        let value = |name: &str| words.iter().position(|word| word == name).and_then(|at| words.get(at + 1)).cloned();
        let number = |name: &str, otherwise: usize| value(name).map_or(otherwise, |value| value.parse().unwrap());
        Wanted {
            agents: number("--agents", 32),
            seconds: number("--seconds", 10) as u64,
            sends: number("--sends", 1_000),
            only: value("--only"),
            // A store in memory syncs for nothing.
            dir: value("--dir").map_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")), PathBuf::from),
        }
    }
}

fn main() {
    let wanted = Wanted::read();
    let disk = bare::disk(&wanted.dir);
    row("the disk: fdatasync, p50", "-", &format!("{:.2} ms", millis(disk)));
    let wants = |part: &str| wanted.only.as_ref().is_none_or(|only| only.split(',').any(|name| name == part));
    if wants("idle") {
        idle(&wanted);
    }
    if wants("mixed") {
        mixed(&wanted, disk);
    }
    if wants("syncs") {
        syncs(&wanted);
    }
    if wants("wakes") {
        wakes(&wanted);
    }
}

/// Before anybody asks.
fn idle(wanted: &Wanted) {
    let begun = Instant::now();
    let server = Server::start(&wanted.dir, &[]);
    let ready = begun.elapsed();
    server.start_agents(1);
    row("idle server: resident", "30 MB", &format!("{:.1} MB, {} threads", server.resident(), server.threads()));
    row("idle server: ready", "100 ms", &format!("{:.0} ms", millis(ready)));
}

fn mixed(wanted: &Wanted, disk: Duration) {
    let server = Server::start(&wanted.dir, &[]);
    server.start_agents(wanted.agents);
    let seen = mix::run(&server, wanted.agents, Duration::from_secs(wanted.seconds));
    let bare = bare::transactions(&wanted.dir, Duration::from_secs(wanted.seconds.min(5)));
    let what = format!("{} agents, mixed send/poll/ack/reserve/release", wanted.agents);
    row(&what, "-", &format!("{:.0} operations/s, {} errors", seen.rate(), seen.errors));
    row("bare SQLite transactions of the same shape", "-", &format!("{bare:.0} operations/s"));
    row("server ÷ bare", "≥ 0.5", &format!("{:.2}", seen.rate() / bare));
    let [half, most, nearly] = [0.50, 0.95, 0.99].map(|share| seen.at(share));
    let hold = 20.0 * millis(disk) + 20.0;
    row(
        "latency p50, p95, p99",
        &format!("p99 ≤ {hold:.0} ms"),
        &format!("{:.1}, {:.1}, {:.1} ms", millis(half), millis(most), millis(nearly)),
    );
    row("loaded server: resident", "-", &format!("{:.1} MB, {} threads", server.resident(), server.threads()));
}

/// Counted by strace, which makes everything slower: only the counts are told.
fn syncs(wanted: &Wanted) {
    for (senders, hold) in [(1, "1.1"), (64, "0.25")] {
        let server = Server::traced(&wanted.dir);
        server.start_agents(senders + 1);
        let sends = wanted.sends.next_multiple_of(senders);
        let before = server.syncs();
        mix::send(&server, senders, sends / senders);
        let counted = server.syncs() - before;
        #[expect(clippy::cast_precision_loss, reason = "counts are small")]
        let each = counted as f64 / sends as f64;
        let what = format!("syncs per durable send, {senders} at once");
        row(&what, hold, &format!("{each:.3} ({counted} for {sends})"));
    }
}

fn wakes(wanted: &Wanted) {
    let server = Server::start(&wanted.dir, &[]);
    server.start_agents(2);
    for (who, times) in
        [("a waiter", wakes::waiting(&server, 200)), ("one who has subscribed", wakes::listening(&server, 200))]
    {
        let at = |share: f64| millis(mix::at(&times, share));
        let what = format!("new mail reaches {who}, p50, p99");
        row(&what, "50 ms", &format!("{:.1}, {:.1} ms", at(0.5), at(0.99)));
    }
}

fn row(what: &str, hold: &str, seen: &str) {
    println!("{what} | {hold} | {seen}");
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}
