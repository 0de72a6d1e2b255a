//! How much one credential may ask for at a time, so that one who runs wild does not keep the others from being served.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use relay_core::error::{Code, Refusal};
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

/// One credential's: a bucket that fills with time, and places for those who wait.
#[derive(Debug)]
pub struct Quota {
    bucket: Mutex<Bucket>,
    waits: Arc<Semaphore>,
}

#[derive(Debug)]
struct Bucket {
    rate: f64,
    left: f64,
    at: Instant,
}

impl Quota {
    fn new(limits: &Limits) -> Self {
        let rate = f64::from(limits.requests_per_second.max(1));
        let bucket = Mutex::new(Bucket { rate, left: rate, at: now() });
        Quota { bucket, waits: Arc::new(Semaphore::new(limits.waits)) }
    }

    /// Whether a request is heard at all. What is too fast is told so in the words of the protocol; what does not listen to
    /// that is turned away at the door.
    pub fn may_come_in(&self) -> bool {
        let bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        bucket.filled(now()) > -bucket.rate
    }

    /// Takes what one request costs; where that is not there, says when it will be.
    pub fn ask(&self) -> Result<(), Refusal> {
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        let now = now();
        bucket.left = bucket.filled(now) - 1.0;
        bucket.at = now;
        // Once what is owed has come in, and one more.
        let missing = Duration::from_secs_f64(((1.0 - bucket.left) / bucket.rate).max(0.0));
        if bucket.left >= 0.0 { Ok(()) } else { Err(too_fast(missing)) }
    }

    /// A place for one who waits, until it is dropped.
    pub fn place(&self) -> Option<OwnedSemaphorePermit> {
        self.waits.clone().try_acquire_owned().ok()
    }
}

impl Bucket {
    fn filled(&self, now: Instant) -> f64 {
        (self.left + now.duration_since(self.at).as_secs_f64() * self.rate).min(self.rate)
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
