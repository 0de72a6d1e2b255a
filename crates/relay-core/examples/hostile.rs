//! How long the exact overlap takes for hostile patterns, for `scripts/bench`: milliseconds, compiling included.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a tool that cannot go on should say where"
)]

use std::time::Instant;

use relay_core::domain::pattern::{Case, Pattern};

fn main() {
    let marks = |count: usize| "?".repeat(count);
    let pairs = [
        (format!("*a{}", marks(500)), format!("*b{}", marks(500))),
        (format!("*a{}", marks(400)), format!("*a{}", marks(401))),
        ("*a".repeat(250), "*b".repeat(250)),
        ("a*".repeat(250), format!("{}b", "a*".repeat(250))),
        ("**/a/".repeat(100) + "x", "**/b/".repeat(100) + "y"),
        ("{a,b}".repeat(100), "[ab]".repeat(100)),
        ("{a,{b,{c,{d,*}}}}".repeat(28), "*d".repeat(200)),
        ("[a-y]*".repeat(80), "[b-z]*".repeat(80)),
    ];
    for (one, other) in &pairs {
        let times: Vec<f64> = (0..9).map(|_| once(one, other)).collect();
        let median = {
            let mut sorted = times.clone();
            sorted.sort_by(f64::total_cmp);
            sorted[sorted.len() / 2]
        };
        println!("{median:.3}");
    }
}

fn once(one: &str, other: &str) -> f64 {
    let started = Instant::now();
    let one = Pattern::from_canonical(one).unwrap().compile(Case::Sensitive);
    let other = Pattern::from_canonical(other).unwrap().compile(Case::Sensitive);
    std::hint::black_box(one.overlap(&other));
    started.elapsed().as_secs_f64() * 1_000.0
}
