//! How much one credential may ask for at a time, so that one who runs wild does not keep the others from being served.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use relay_core::error::{Code, Refusal};
use relay_store::tokens::{Keyring, Token};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::http::Limits;

pub struct Quotas {
    limits: Limits,
    of: Mutex<HashMap<String, Arc<Quota>>>,
}

impl Quotas {
    pub fn new(limits: Limits) -> Self {
        Quotas { limits, of: Mutex::default() }
    }

    pub fn of(&self, token: &str) -> Arc<Quota> {
        let mut quotas = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        quotas.entry(token.to_owned()).or_insert_with(|| Arc::new(Quota::new(&self.limits))).clone()
    }
}

/// What a token lets through, for as long as it is not revoked.
#[derive(Debug, Clone)]
pub struct Pass {
    pub token: Token,
    pub tokens: Arc<Keyring>,
    pub quota: Arc<Quota>,
    /// It came too fast: whoever can be told so in the words of the protocol is.
    pub too_fast: Option<Refusal>,
}

impl Pass {
    /// Whether it would be turned away by now.
    pub fn was_revoked(&self) -> bool {
        !self.tokens.list().is_ok_and(|tokens| tokens.contains(&self.token))
    }

    /// A place for one who waits, until it is dropped.
    pub fn place(&self) -> Option<OwnedSemaphorePermit> {
        self.quota.waits.clone().try_acquire_owned().ok()
    }
}

/// One credential's: a bucket that fills with time, and places for those who wait.
#[derive(Debug)]
pub struct Quota {
    asked: Mutex<Bucket>,
    /// Those who came too fast and are told so.
    told: Mutex<Bucket>,
    waits: Arc<Semaphore>,
}

/// What comes of one who knocks.
#[derive(Debug, PartialEq)]
pub enum Entry {
    Free,
    /// It comes too fast, and is told so; this is when it may ask again.
    Told(Duration),
    /// It was told so often enough.
    Closed,
}

#[derive(Debug)]
struct Bucket {
    rate: f64,
    left: f64,
    at: Instant,
}

impl Quota {
    fn new(limits: &Limits) -> Self {
        let bucket = || Mutex::new(Bucket::full(limits.requests_per_second, now()));
        Quota { asked: bucket(), told: bucket(), waits: Arc::new(Semaphore::new(limits.waits)) }
    }

    /// Takes what one request costs. Only what is let in costs: whoever asks a little too fast is slowed down, not stopped.
    pub fn enter(&self) -> Entry {
        let now = now();
        let take = |bucket: &Mutex<Bucket>| bucket.lock().unwrap_or_else(PoisonError::into_inner).take(now);
        match take(&self.asked) {
            Ok(()) => Entry::Free,
            Err(until) if take(&self.told).is_ok() => Entry::Told(until),
            Err(_) => Entry::Closed,
        }
    }
}

impl Bucket {
    fn full(rate: u32, now: Instant) -> Self {
        let rate = f64::from(rate.max(1));
        Bucket { rate, left: rate, at: now }
    }

    /// One, or when there will be one.
    fn take(&mut self, now: Instant) -> Result<(), Duration> {
        self.left = (self.left + now.duration_since(self.at).as_secs_f64() * self.rate).min(self.rate);
        self.at = now;
        if self.left < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - self.left) / self.rate));
        }
        self.left -= 1.0;
        Ok(())
    }
}

#[expect(clippy::disallowed_methods, reason = "a rate is measured against time that only goes forward")]
fn now() -> Instant {
    Instant::now()
}

pub fn too_fast(until: Duration) -> Refusal {
    let millis = until.as_millis() + 1;
    Code::RateLimited.refuse(format!(
        "this credential asks faster than this server allows; ask again in {millis} ms (`requests_per_second` in its config.toml)"
    ))
}

pub fn too_many_wait() -> Refusal {
    Code::RateLimited.refuse(
        "too many requests of this credential wait already; `waits` in the server's config.toml says how many may",
    )
}

pub fn revoked() -> Refusal {
    Code::Unauthorized.refuse("this token was revoked").with("served", true).with("token", true)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever asks a little too fast gets what is allowed, second after second.
    #[test]
    fn a_bucket_gives_its_rate_however_much_is_asked_for() {
        let begun = now();
        let mut bucket = Bucket::full(40, begun);
        let mut second = |second: u32| {
            let at = |number: u32| begun + Duration::from_secs(second.into()) + Duration::from_secs(1) * number / 60;
            (0..60).filter(|number| bucket.take(at(*number)).is_ok()).count()
        };
        assert_eq!(second(0), 60, "what was saved up, and what came in meanwhile");
        let given: Vec<usize> = (1..20).map(&mut second).collect();
        assert!(given.iter().skip(2).all(|count| (39..=41).contains(count)), "{given:?}");
    }

    #[test]
    fn one_who_does_not_listen_is_told_so_only_so_often() {
        let quota = Quota::new(&Limits { requests_per_second: 1, waits: 1 });
        let entries: Vec<Entry> = (0..3).map(|_| quota.enter()).collect();
        assert_eq!(entries[0], Entry::Free);
        assert!(matches!(entries[1], Entry::Told(until) if until <= Duration::from_secs(1)), "{entries:?}");
        assert_eq!(entries[2], Entry::Closed);
    }
}
