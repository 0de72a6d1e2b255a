//! The process that a session runs in, and what it writes down: signs of life that need nobody's help.

use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

use relay_core::domain::time::Timestamp;
use relay_core::store::Harness;

/// Names this machine since it was started.
const MACHINE: &str = "/proc/sys/kernel/random/boot_id";
/// Where the system counts when a process began, after the name: which field that is.
const BEGAN: usize = 19;
/// And its parent.
const PARENT: usize = 1;

/// The process of this number, where it runs on a system that tells when it began.
pub fn of(pid: u32, transcript: Option<String>) -> Option<Harness> {
    let machine = fs::read_to_string(MACHINE).ok()?.trim().to_owned();
    Some(Harness { machine, pid, began: field(pid, BEGAN)?, transcript })
}

/// The process that started this one.
pub fn parent(pid: u32) -> Option<u32> {
    field(pid, PARENT).and_then(|parent| u32::try_from(parent).ok()).filter(|parent| *parent > 1)
}

/// The last part of the name of the program that a process runs.
pub fn program(pid: u32) -> Option<String> {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(name.trim().to_owned())
}

/// What a process was started with.
pub fn arguments(pid: u32) -> Vec<String> {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    words.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// Whether that very process still runs.
pub fn runs(harness: &Harness) -> bool {
    let is_it = of(harness.pid, None).is_some_and(|now| now.machine == harness.machine && now.began == harness.began);
    // One that has ended stays in the table until its parent takes note.
    is_it && fields(harness.pid).is_some_and(|fields| fields.first().is_some_and(|state| state != "Z"))
}

/// When the harness last wrote something down.
pub(crate) fn wrote_at(harness: &Harness) -> Option<Timestamp> {
    let is_here = fs::read_to_string(MACHINE).is_ok_and(|machine| machine.trim() == harness.machine);
    let transcript = harness.transcript.as_ref().filter(|_| is_here)?;
    let written = fs::metadata(Path::new(transcript)).ok()?.modified().ok()?;
    i64::try_from(written.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok().map(Timestamp::from_millis)
}

fn field(pid: u32, index: usize) -> Option<u64> {
    fields(pid)?.get(index)?.parse().ok()
}

/// What the system tells of a process. The name before it may hold anything, and ends with the last bracket.
fn fields(pid: u32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(text.rsplit_once(')')?.1.split_whitespace().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_runs_until_it_has_ended() {
        let own = of(std::process::id(), None).unwrap_or_else(|| panic!("this process runs"));
        assert!(runs(&own));
        assert!(!runs(&Harness { began: own.began + 1, ..own.clone() }));
        assert!(!runs(&Harness { machine: "another".to_owned(), ..own.clone() }));
        assert!(!runs(&Harness { pid: u32::MAX, ..own }));
    }

    #[test]
    fn a_process_has_a_parent_and_a_program() {
        let parent = parent(std::process::id()).unwrap_or_else(|| panic!("somebody runs the tests"));
        assert!(program(parent).is_some_and(|name| !name.is_empty()));
        assert_eq!(super::parent(1), None);
        assert!(arguments(std::process::id()).len() > 1);
        assert_eq!(arguments(u32::MAX), [""]);
    }
}
