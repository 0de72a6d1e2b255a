//! Randomness: the one door.

use relay_core::store::Random;

#[derive(Debug, Clone, Copy)]
pub struct SystemRandom;

impl Random for SystemRandom {
    fn bytes(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        // Without randomness neither keys nor salts mean anything; there is nothing to fall back to.
        #[expect(clippy::disallowed_methods, reason = "this is the door")]
        getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
        bytes
    }
}
