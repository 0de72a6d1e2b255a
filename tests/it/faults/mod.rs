//! Nothing acknowledged is lost, whatever fails: system calls, processes, the power, the disk, the clock, git.

mod calls;
mod doctored;
mod oracle;

/// Says what was done, for reports: beside the tests' own output, in the file that `RELAY_SUMMARY` names.
fn summary(line: &str) {
    println!("{line}");
    if let Some(path) = std::env::var_os("RELAY_SUMMARY") {
        use std::io::Write;
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes())).unwrap();
    }
}
