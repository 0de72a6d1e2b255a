//! Nothing acknowledged is lost, whatever fails: system calls, processes, the power, the disk, the clock, git.

mod calls;
mod cuts;
mod doctored;
mod doubt;
mod erasing;
mod kills;
mod letters;
mod oracle;
mod senders;
pub mod steps;
mod troubles;

/// Says what has been done so far, for those who wait.
fn progress(line: &str) {
    summary(&format!("so far: {line}"));
}

/// Says what was done, for reports: beside the tests' own output, in the file that `RELAY_SUMMARY` names.
fn summary(line: &str) {
    println!("{line}");
    if let Some(path) = std::env::var_os("RELAY_SUMMARY") {
        use std::io::Write;
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes())).unwrap();
    }
}

/// How often something is done: `ordinarily` this often, or as often as the variable says.
fn count(variable: &str, ordinarily: usize) -> usize {
    std::env::var(variable).map_or(ordinarily, |count| count.parse().unwrap())
}
