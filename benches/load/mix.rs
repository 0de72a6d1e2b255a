//! What the agents do, and how long each of it took.

use std::sync::{Barrier, mpsc};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::Client;
use crate::server::{Server, name};

pub struct Seen {
    times: Vec<Duration>,
    pub errors: usize,
    took: Duration,
}

impl Seen {
    #[expect(clippy::cast_precision_loss, reason = "counts are small")]
    pub fn rate(&self) -> f64 {
        self.times.len() as f64 / self.took.as_secs_f64()
    }

    pub fn at(&self, share: f64) -> Duration {
        at(&self.times, share)
    }
}

/// The time within which this share of them came; they are sorted.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
pub fn at(times: &[Duration], share: f64) -> Duration {
    times[((times.len() - 1) as f64 * share) as usize]
}

pub fn letter(to: usize, number: usize) -> Value {
    let body =
        format!("{number}: the session expires after ten minutes of silence; see src/auth/session.rs. ").repeat(6);
    json!({"to": [name(to)], "thread": "bench", "subject": "bench", "body": body})
}

/// Each agent writes to the next, reads, acknowledges, claims and gives back, one after the other.
pub fn run(server: &Server, agents: usize, time: Duration) -> Seen {
    let begun = Instant::now();
    let (tell, told) = mpsc::channel();
    std::thread::scope(|scope| {
        for agent in 0..agents {
            let (tell, mut client) = (tell.clone(), server.client(agent));
            scope.spawn(move || {
                let mut number = 0;
                while begun.elapsed() < time {
                    number += 1;
                    round(&mut client, agent, (agent + 1) % agents, number, &tell);
                }
            });
        }
    });
    drop(tell);
    let took = begun.elapsed();
    let all: Vec<(Duration, bool)> = told.into_iter().collect();
    let mut times: Vec<Duration> = all.iter().map(|(time, _)| *time).collect();
    times.sort();
    Seen { times, errors: all.iter().filter(|(_, ok)| !ok).count(), took }
}

fn round(client: &mut Client, agent: usize, to: usize, number: usize, tell: &mpsc::Sender<(Duration, bool)>) {
    let mut timed = |tool: &str, arguments: Value| {
        let begun = Instant::now();
        let answer = client.call(tool, arguments);
        tell.send((begun.elapsed(), answer["ok"] == true)).unwrap();
        answer
    };
    timed("send", letter(to, number));
    let inbox = timed("poll", json!({"limit": 5}));
    let ids: Vec<u64> = inbox["result"]["messages"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|message| message["id"].as_u64())
        .collect();
    if !ids.is_empty() {
        timed("ack", json!({"ids": ids}));
    }
    let pattern = format!("src/{agent}/{}.rs", number % 10);
    timed("reserve", json!({"patterns": [pattern]}));
    timed("release", json!({"patterns": [pattern]}));
}

/// So many senders at once, each so many times, all to one who reads nothing.
pub fn send(server: &Server, senders: usize, each: usize) {
    let ready = Barrier::new(senders);
    std::thread::scope(|scope| {
        for sender in 0..senders {
            let (ready, mut client) = (&ready, server.client(sender));
            scope.spawn(move || {
                ready.wait();
                for number in 0..each {
                    let answer = client.call("send", letter(senders, number));
                    assert_eq!(answer["ok"], true, "{answer}");
                }
            });
        }
    });
}
