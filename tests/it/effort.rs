//! How much the tests do, which `scripts/long` sets, and what they say that they did.

use std::io::Write;

/// How often a test repeats something that it does `ordinarily` this often; `scripts/long` wants more.
pub fn times(ordinarily: usize) -> usize {
    ordinarily * count("RELAY_TIMES", 1)
}

/// How often something is done: `ordinarily` this often, or as often as the variable says.
pub fn count(variable: &str, ordinarily: usize) -> usize {
    std::env::var(variable).map_or(ordinarily, |count| count.parse().unwrap())
}

/// Says what has been done so far, for those who wait.
pub fn progress(line: &str) {
    summary(&format!("so far: {line}"));
}

/// Says what was done, for reports: in the file that `RELAY_SUMMARY` names, or beside the tests' own output.
pub fn summary(line: &str) {
    let Some(path) = std::env::var_os("RELAY_SUMMARY") else { return println!("{line}") };
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes())).unwrap();
}
