//! Time: the one door.

use relay_core::domain::time::{Span, Timestamp};
use relay_core::store::Clock;

/// The operating system's clock.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    started: std::time::Instant,
}

impl SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the door")]
    pub fn new() -> Self {
        SystemClock { started: std::time::Instant::now() }
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the door")]
    fn now(&self) -> Timestamp {
        #[cfg(feature = "test-doors")]
        if let Some(fixed) = fixed() {
            return fixed;
        }
        let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
    }

    fn monotonic(&self) -> Span {
        Span::millis(i64::try_from(self.started.elapsed().as_millis()).unwrap_or(i64::MAX))
    }
}

/// A clock that a test holds: a file with milliseconds in it.
#[cfg(feature = "test-doors")]
fn fixed() -> Option<Timestamp> {
    let path = crate::environment::test_clock()?;
    std::fs::read_to_string(path).ok()?.trim().parse().ok().map(Timestamp::from_millis)
}
