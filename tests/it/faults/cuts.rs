//! Power cuts: a file system on a loop device is shut down with everything that was not yet synced thrown away, as when the
//! machine loses its power, and mounted again. Store and archive are both on it; the ledger is not.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::oracle::{Archive, Done, Ledger, assert_whole};
use super::senders::{Dice, SENDERS, Senders};
use crate::bus::{Bus, Run, run};
use crate::effort::{count, progress, summary};
use crate::privilege::{AS_ROOT, Stage, is_root};

/// So many cuts, and a new file system begins: making a store and its archive is cut off too.
const GENERATION: usize = 5;

/// `EXT4_IOC_SHUTDOWN` without flushing the journal.
const SHUTDOWN: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
int main(int count, char **words) {
    unsigned int how = 2;
    int folder = count > 1 ? open(words[1], O_RDONLY) : -1;
    if (folder < 0 || ioctl(folder, _IOR('X', 125, unsigned int), &how) != 0) {
        perror("shutdown");
        return 1;
    }
    return 0;
}
"#;

/// A disk that can lose its power.
struct Disk {
    stage: Stage,
    image: PathBuf,
    at: PathBuf,
    shutdown: PathBuf,
}

impl Disk {
    /// A new one for a bus, which has its home on it.
    fn new(bus: &Bus) -> Self {
        assert!(is_root(), "a power cut needs root, to mount a loop device; run `{AS_ROOT}`");
        let (image, at, shutdown) = (bus.path("image"), bus.path("home"), bus.path("shutdown"));
        std::fs::create_dir(&at).unwrap();
        std::fs::File::create(&image).and_then(|file| file.set_len(256 << 20)).unwrap();
        succeed(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image), "e2fsprogs");
        let source = bus.path("shutdown.c");
        std::fs::write(&source, SHUTDOWN).unwrap();
        succeed(Command::new("cc").arg("-o").arg(&shutdown).arg(&source), "gcc");
        let disk = Disk { stage: Stage::new(), image, at, shutdown };
        disk.mount();
        disk
    }

    fn mount(&self) {
        let source = self.image.to_str().unwrap();
        self.stage.mount(&["-o", "loop", source], &self.at);
    }

    fn enter(&self, command: &Command) -> Command {
        self.stage.enter(command)
    }

    /// The power goes: from now on nothing reaches the disk.
    fn cut(&self) {
        succeed(&mut self.enter(Command::new(&self.shutdown).arg(&self.at)), "a kernel with EXT4_IOC_SHUTDOWN");
    }

    /// The power comes back.
    fn restore(&self) {
        while !self.enter(Command::new("umount").arg(&self.at)).output().unwrap().status.success() {
            std::thread::yield_now();
        }
        self.mount();
    }

    /// The store of the bus, copied to where nobody else looks: the oracle leaves no trace in the real one.
    fn store(&self) -> PathBuf {
        let mut folders = std::fs::read_dir(self.stage.look(&self.at)).unwrap().map(|entry| entry.unwrap().path());
        let store = folders.find(|folder| folder.join("relay.db").exists()).unwrap();
        let copy = self.image.with_file_name("seen");
        let _ = std::fs::remove_dir_all(&copy);
        succeed(Command::new("cp").arg("-a").arg(store).arg(&copy), "coreutils");
        copy
    }

    fn relay(&self, bus: &Bus, agent: &str, args: &[&str]) -> Run {
        run(self.enter(&bus.args(agent, args)))
    }
}

#[track_caller]
fn succeed(command: &mut Command, needs: &str) {
    let output = command.output().unwrap_or_else(|fault| panic!("{command:?} (of {needs}) cannot be run: {fault}"));
    assert!(output.status.success(), "{command:?}, which needs {needs}: {}", String::from_utf8_lossy(&output.stderr));
}

/// While the power goes, commands see what a broken disk shows them.
const EXPECTED: [&str; 4] = ["STORE_IO", "STORE_READONLY", "STORE_BUSY", "STORE_FULL"];

#[test]
fn nothing_acknowledged_is_lost_to_power_cuts() {
    let wanted = count("RELAY_CUTS", 10);
    let (mut cuts, mut acknowledged, mut settled, mut lags) = (0, 0, 0, 0);
    while cuts < wanted {
        let bus = Bus::new();
        let disk = Disk::new(&bus);
        let enter = |command: Command| disk.enter(&command);
        let senders = Senders::new(&bus, Ledger::at(bus.path("ledger")), &enter, &EXPECTED);
        senders.start();
        let mut dice = Dice::new();
        for _ in 0..GENERATION.min(wanted - cuts) {
            senders.work_while(|| {
                let until = Instant::now() + Duration::from_millis(50 + dice.roll(1500) as u64);
                std::thread::scope(|scope| {
                    // Drainers gather for a while first; this one does not, so that the power goes while git writes.
                    scope.spawn(|| senders.drain_on());
                    std::thread::sleep(until.saturating_duration_since(Instant::now()));
                    senders.darken();
                    disk.cut();
                });
            });
            cuts += 1;
            senders.kill_all();
            disk.restore();
            let after = format!("power cut {cuts}");
            let done = senders.ledger.read();
            assert_whole(&disk.store(), &done, Archive::Torn, &after);
            lags += usize::from(!is_complete(&disk.store(), &done));
            settled += senders.settle();
            senders.quiet();
            disk.relay(&bus, "", &["drain", "--wait"]).success();
            let done = senders.ledger.read();
            assert_whole(&disk.store(), &done, Archive::Complete, &after);
            progress(&format!("{cuts} of {wanted} power cuts, {} acknowledged", acknowledged + done.len()));
        }
        acknowledged += senders.ledger.read().len();
        senders.kill_all();
        bus.forget();
    }
    summary(&format!(
        "{cuts} power cuts, {SENDERS} senders, {acknowledged} acknowledged, {settled} settled by the same key, the archive \
         behind after {lags} and ahead after 0, 0 lost, 0 twice"
    ));
}

fn is_complete(store: &Path, done: &[Done]) -> bool {
    super::oracle::findings(store, done, Archive::Complete).is_empty()
}

/// A process that was killed between its commit and its sync leaves what everybody sees and a power cut takes. Whoever then
/// answers that it is done, without having to write anything, has it synced first.
#[test]
fn what_a_killed_process_left_unsynced_is_synced_before_it_is_acknowledged() {
    let send = ["send", "--to", "RedForest", "--thread", "bd-1", "--subject", "Login", "--body", "text"];
    let again = [&send[..], &["--idempotency-key", "K1"]].concat();
    for (agent, args) in [("BlueLake", &again[..]), ("RedForest", &["ack", "6"])] {
        let bus = Bus::new();
        let disk = Disk::new(&bus);
        for agent in ["BlueLake", "RedForest"] {
            disk.relay(&bus, agent, &["start"]).success();
        }
        let first = disk.relay(&bus, "BlueLake", &send).success().result();
        assert_eq!(first["message"]["id"], 6, "the one that is acknowledged");
        let command = bus.args(agent, args);
        let mut strace = Command::new("strace");
        strace.args([
            "-f",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            "trace=fsync",
            "-e",
            "inject=fsync:signal=KILL:when=1",
            "--",
        ]);
        bus.environment(strace.arg(command.get_program()).args(command.get_args()));
        assert_eq!(run(disk.enter(&strace)).stdout, "", "it lived to answer");
        let answer = disk.relay(&bus, agent, args).success().json();
        disk.cut();
        disk.restore();
        let done = Done::new(agent, "K1", "text", &answer);
        assert_whole(&disk.store(), &[done], Archive::Torn, &format!("{args:?}"));
        bus.forget();
    }
}

/// The name of the project was written without a sync, and could be empty afterwards.
#[test]
fn a_new_project_keeps_its_name_through_a_power_cut() {
    let bus = Bus::new();
    let disk = Disk::new(&bus);
    for agent in ["BlueLake", "RedForest"] {
        disk.relay(&bus, agent, &["start"]).success();
    }
    disk.cut();
    disk.restore();
    let listed = disk.relay(&bus, "", &["project", "list"]).success().result();
    assert_eq!(listed["projects"][0]["key"], bus.key(), "{listed}");
    let agents = disk.relay(&bus, "BlueLake", &["agents"]).success().result();
    assert_eq!(agents["agents"].as_array().unwrap().len(), 2, "{agents}");
    assert_whole(&disk.store(), &[], Archive::Torn, "a power cut");
    bus.forget();
}
