//! The archive made anew: the same files, whatever stood in its place before.

use std::path::Path;

use relay_store::archive::{Old, Rebuilt, Sizes};

use crate::{Place, git};

fn rebuild(place: &Place, old: Old) -> Rebuilt {
    let archive = place.archive();
    let lease = archive.lease().unwrap();
    archive.rebuild(&lease, &place.store, old, |_, _| {}).unwrap()
}

/// Everything in the store's folder whose name begins like an archive's.
fn archives(place: &Place) -> Vec<String> {
    let entries = std::fs::read_dir(&place.folder).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name.starts_with("archive.") && name != "archive.lease");
    names.sort();
    names
}

fn filled() -> (Place, String) {
    let place = Place::new();
    for index in 0..250 {
        place.send(&format!("bd-{}", index % 7), "Subject", &format!("body {index}"));
    }
    place.drain(&place.archive().sized(Sizes { batch: 33, round: 99 }));
    let tree = place.git(&["rev-parse", "main^{tree}"]);
    (place, tree)
}

#[test]
fn whatever_stood_there_the_new_one_has_the_same_tree() {
    let (place, tree) = filled();
    let check = |spoil: &dyn Fn(&Path), keeps: bool| {
        let current = place.folder.join("archive.git");
        spoil(&current);
        let rebuilt = rebuild(&place, Old::Kept);
        assert_eq!(rebuilt.events, 253);
        assert_eq!(place.git(&["rev-parse", "main^{tree}"]), tree);
        assert_eq!(place.git(&["fsck", "--strict", "--full"]), "");
        assert_eq!(rebuilt.kept.is_some(), keeps, "{rebuilt:?}");
        assert!(rebuilt.kept.is_none_or(|kept| kept.symlink_metadata().is_ok()));
        // It goes on from there.
        place.drain(&place.archive());
        assert_eq!(place.git(&["rev-parse", "main^{tree}"]), tree);
    };
    let pack = |archive: &Path| {
        let packs = archive.join("objects/pack");
        std::fs::read_dir(packs)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .find(|path| path.extension().is_some_and(|end| end == "pack"))
            .unwrap()
    };
    check(&|_| {}, true);
    check(&|archive| std::fs::remove_dir_all(archive).unwrap(), false);
    check(&|archive| std::fs::remove_file(pack(archive)).unwrap(), true);
    check(&|archive| std::fs::write(pack(archive).with_extension("idx"), "x").unwrap(), true);
    check(&|archive| std::fs::remove_dir_all(archive.join("objects")).unwrap(), true);
    check(&|archive| std::fs::write(archive.join("HEAD"), "x").unwrap(), true);
    check(&|archive| std::fs::remove_dir_all(archive).and_then(|()| std::fs::write(archive, "x")).unwrap(), true);
    check(
        &|archive| {
            let by = ["-c", "user.name=Somebody", "-c", "user.email=some@body"];
            let made = git(archive, &[&by[..], &["commit-tree", "-p", "main", "-m", "x", "main^{tree}"]].concat());
            git(archive, &["update-ref", "refs/heads/main", made.trim()]);
        },
        true,
    );
    let kept: Vec<String> = (1..=7).map(|number| format!("archive.before-{number}.git")).collect();
    assert_eq!(archives(&place), [&kept[..], &["archive.git".to_owned()]].concat());
    let log = git(&place.folder.join("archive.before-7.git"), &["log", "-1", "--format=%an"]);
    assert_eq!(log, "Somebody\n", "the old one is kept as it was");
}

#[test]
fn an_old_one_that_is_not_to_be_kept_is_gone() {
    let (place, tree) = filled();
    assert_eq!(rebuild(&place, Old::Erased), Rebuilt { events: 253, kept: None });
    assert_eq!(place.git(&["rev-parse", "main^{tree}"]), tree);
    assert_eq!(archives(&place), ["archive.git"]);
}

#[test]
fn what_a_dead_rebuild_left_is_cleared_away_by_the_next_writer() {
    let (place, tree) = filled();
    let leave = |name: &str| {
        std::fs::create_dir(place.folder.join(name)).unwrap();
        std::fs::write(place.folder.join(name).join("HEAD"), "half").unwrap();
    };
    leave("archive.anew.git");
    leave("archive.anew.fresh");
    rebuild(&place, Old::Erased);
    assert_eq!(archives(&place), ["archive.git"]);
    leave("archive.anew.git");
    place.drain(&place.archive());
    assert_eq!(archives(&place), ["archive.git"], "also by one that only drains");
    assert_eq!(place.git(&["rev-parse", "main^{tree}"]), tree);
}
