//! How soon new mail is heard of: from the moment a send is answered until it has reached the other side.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::Client;
use crate::mix::letter;
use crate::server::Server;

/// By one who waits for it.
pub fn waiting(server: &Server, count: usize) -> Vec<Duration> {
    let (mut sender, mut reader) = (server.client(0), server.client(1));
    let mut cursor = 0;
    let mut times = Vec::new();
    for number in 0..count {
        let waiter = std::thread::spawn(move || {
            let answer = reader.call("poll", json!({"wait": "30s", "after": cursor}));
            (reader, answer["result"]["cursor"].as_u64().unwrap(), Instant::now())
        });
        let sent = send(&mut sender, number);
        let (back, seen, woken) = waiter.join().unwrap();
        (reader, cursor) = (back, seen);
        times.push(woken.saturating_duration_since(sent));
    }
    times.sort();
    times
}

/// By one who has subscribed to its inbox.
pub fn listening(server: &Server, count: usize) -> Vec<Duration> {
    let mut sender = server.client(0);
    let (tell, told) = mpsc::channel();
    let stream = server.client(1).listen();
    std::thread::spawn(move || stream.for_each(|_| tell.send(Instant::now()).unwrap_or_default()));
    let mut times = Vec::new();
    for number in 0..count {
        let sent = send(&mut sender, number);
        let heard = told.recv_timeout(Duration::from_secs(30)).unwrap();
        times.push(heard.saturating_duration_since(sent));
    }
    times.sort();
    times
}

/// When it was answered. The other side should be asleep by then.
fn send(sender: &mut Client, number: usize) -> Instant {
    std::thread::sleep(Duration::from_millis(20));
    let answer = sender.call("send", letter(1, number));
    assert_eq!(answer["ok"], true, "{answer}");
    Instant::now()
}
