//! kill -9 at random times, of random processes: senders, detached drainers, and the gits that these run.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::oracle::{Archive, Ledger, assert_whole};
use super::senders::{Dice, SENDERS, Senders};
use crate::bus::Bus;
use crate::effort::{count, progress, summary};

/// So many kills, and everything is looked at.
const ROUND: usize = 50;
/// So many kills, and a new bus begins.
const GENERATION: usize = 1000;

#[test]
fn nothing_acknowledged_is_lost_to_kills_at_random_times() {
    let wanted = count("RELAY_KILLS", 300);
    let mut killed: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut acknowledged, mut unanswered, mut settled) = (0, 0, 0);
    let total = |killed: &BTreeMap<&str, usize>| killed.values().sum::<usize>();
    while total(&killed) < wanted {
        let bus = Bus::new();
        let ledger = Ledger::at(bus.path("ledger"));
        let senders = Senders::new(&bus, ledger, &|command| command, &[]);
        senders.start();
        let until = wanted.min(total(&killed) + GENERATION);
        while total(&killed) < until {
            let enough = until.min(total(&killed) + ROUND);
            senders.work_while(|| {
                let mut dice = Dice::new();
                while total(&killed) < enough {
                    std::thread::sleep(Duration::from_micros(dice.roll(20_000) as u64));
                    if let Some(kind) = kill_one(&senders, &mut dice, total(&killed)) {
                        *killed.entry(kind).or_default() += 1;
                    }
                }
            });
            settled += senders.settle();
            senders.quiet();
            crate::bus::run(bus.args("", ["drain", "--wait"])).success();
            let done = senders.ledger.read();
            assert_whole(&bus.store(), &done, Archive::Complete, "kills");
            progress(&format!("{} of {wanted} kills, {} acknowledged", total(&killed), acknowledged + done.len()));
        }
        acknowledged += senders.ledger.read().len();
        unanswered += senders.unanswered.load(Ordering::SeqCst);
    }
    let kinds: Vec<String> = killed.iter().map(|(kind, count)| format!("{count} {kind}s")).collect();
    for kind in ["sender", "drainer", "git"] {
        assert!(killed.contains_key(kind), "no {kind} was killed: {killed:?}");
    }
    summary(&format!(
        "{} kills ({}), {SENDERS} senders, {acknowledged} acknowledged, {unanswered} without an answer, {settled} settled by \
         the same key, 0 lost, 0 twice",
        total(&killed),
        kinds.join(", ")
    ));
}

/// Kills one of them. Senders are many; of twenty kills one takes a git, as soon as one runs, one the drainer over its git,
/// and one a drainer wherever it stands.
fn kill_one(senders: &Senders<'_>, dice: &mut Dice, killed: usize) -> Option<&'static str> {
    let kind = match killed % 20 {
        0 => "git",
        5 | 10 => "drainer",
        _ => "sender",
    };
    let runs_git = || senders.processes().iter().any(|process| process.kind() == "git");
    if matches!(killed % 20, 0 | 5) && !(0..1_000).any(|_| runs_git()) {
        return None;
    }
    let mut of_kind = senders.processes();
    of_kind.retain(|process| process.kind() == kind);
    if of_kind.is_empty() {
        return None;
    }
    of_kind[dice.roll(of_kind.len())].kill().then_some(kind)
}
