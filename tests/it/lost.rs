//! A project of which relay's home has nothing left, and somebody a backup, or a clone of the archive. What another project
//! left in its place is not taken for its own.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::bus::Bus;
use crate::terminal::text;

/// What is left of a project.
enum Left {
    Backup(PathBuf),
    Clone(PathBuf),
}

/// Both are of the same moment.
fn both(bus: &Bus) -> [Left; 2] {
    let (file, clone) = (bus.path("shop.db"), bus.path("clone"));
    bus.relay("", ["drain", "--wait"]).success();
    bus.relay("", ["backup", file.to_str().unwrap()]).success();
    let archive = bus.store().join("archive.git");
    bus.git_in(&bus.path(""), &["clone", "-q", archive.to_str().unwrap(), clone.to_str().unwrap()]);
    [Left::Backup(file), Left::Clone(clone)]
}

/// The command that brings it back; a clone is put where the archive was, as the refusal says.
fn way_back(bus: &Bus, left: &Left) -> Vec<String> {
    let mut words = ["rebuild", "store"].map(str::to_owned).to_vec();
    match left {
        Left::Backup(file) => words.extend(["--from-backup".to_owned(), text(&Value::from(file.to_str().unwrap()))]),
        Left::Clone(clone) => {
            words.push("--from-archive".to_owned());
            let refused = bus.relay("", &words).json();
            // An archive that another history has begun since is not asked for.
            let named = text(&refused["error"]["details"]["path"]);
            let archive = Path::new(&named);
            let _ = fs::remove_dir_all(archive);
            bus.git_in(&bus.path(""), &["clone", "-q", "--bare", clone.to_str().unwrap(), archive.to_str().unwrap()]);
        }
    }
    words
}

#[test]
fn a_project_comes_back_into_a_home_that_has_nothing_of_it() {
    for index in 0..2 {
        let bus = Bus::with(&["BlueLake", "RedForest"]);
        bus.send("BlueLake", "RedForest", "bd-1", "Login");
        let (left, last) = (&both(&bus)[index], bus.tip());
        fs::remove_dir_all(bus.home()).unwrap();
        let words = way_back(&bus, left);
        let restored = bus.relay("", &words).success().result();
        assert_eq!((&restored["events"], &restored["kept"]), (&last.into(), &Value::Null), "{restored}");
        let inbox = bus.relay("RedForest", ["poll"]).success().result();
        assert_eq!(inbox["messages"][0]["subject"], "Login");
        assert_eq!(bus.relay("", ["project", "list"]).success().result()["projects"][0]["key"], bus.key());
        bus.send("BlueLake", "RedForest", "bd-1", "Further");
        bus.relay("", ["drain", "--wait"]).success();
        assert_eq!(bus.relay("", ["verify"]).success().signals(), [""; 0]);
    }
}

#[test]
fn a_history_that_was_begun_anew_under_the_same_path_goes_only_by_consent() {
    for (index, drained) in [(0, false), (0, true), (1, false), (1, true)] {
        let bus = Bus::with(&["BlueLake", "RedForest"]);
        bus.send("BlueLake", "RedForest", "bd-1", "Login");
        let (left, last) = (&both(&bus)[index], bus.tip().to_string());
        fs::remove_dir_all(bus.store()).unwrap();
        bus.relay("GreenHill", ["start"]).success();
        if drained {
            bus.relay("", ["drain", "--wait"]).success();
        }
        let newest = bus.tip();
        let mut words = if let Left::Clone(clone) = left {
            let archive = bus.store().join("archive.git");
            let _ = fs::remove_dir_all(&archive);
            bus.git_in(&bus.path(""), &["clone", "-q", "--bare", clone.to_str().unwrap(), archive.to_str().unwrap()]);
            ["rebuild", "store", "--from-archive"].map(str::to_owned).to_vec()
        } else {
            way_back(&bus, left)
        };
        let refused = bus.relay("", &words);
        let said = text(&refused.error()["message"]);
        if index == 0 {
            refused.fails("INPUT_INVALID");
            assert!(said.contains(&format!("begun another history since, which goes to #{newest}")), "{said}");
        } else {
            refused.fails("ARCHIVE_DIVERGED");
        }
        assert!(said.contains(&format!("--lose-after {last}")), "{said}");
        assert_eq!(bus.tip(), newest, "nothing happened");
        words.extend(["--lose-after".to_owned(), last.clone()]);
        let restored = bus.relay("", &words).success().result();
        assert_eq!(restored["events"].to_string(), last);
        assert!(Path::new(restored["kept"].as_str().unwrap()).exists(), "{restored}");
        assert!(restored["missing"].to_string().contains("in the old file"), "{restored}");
        bus.send("BlueLake", "RedForest", "bd-1", "Further");
        bus.relay("", ["drain", "--wait"]).success();
        assert_eq!(bus.relay("", ["verify"]).success().signals(), [""; 0]);
    }
}

/// Another repository with a project of its own in the same home.
fn neighbour(bus: &Bus) -> String {
    let folder = bus.path("neighbour");
    fs::create_dir(&folder).unwrap();
    let folder = folder.to_str().unwrap().to_owned();
    bus.relay("BlueLake", ["start", "--project", &folder]).success();
    folder
}

#[test]
fn what_is_left_of_one_project_is_not_restored_as_another() {
    for left in [true, false] {
        let bus = Bus::with(&["BlueLake"]);
        let [Left::Backup(file), Left::Clone(clone)] = both(&bus) else { panic!("one of each") };
        let other = neighbour(&bus);
        let listed = bus.relay("", ["project", "list"]).success().result();
        let stores = listed["projects"].as_array().unwrap().iter();
        let store = stores.filter(|project| project["key"] == *other).map(|project| text(&project["store"])).next();
        let store = PathBuf::from(store.unwrap());
        if left {
            fs::remove_file(store.join("relay.db")).unwrap();
            let _ = fs::remove_file(store.join("relay.db-wal"));
        } else {
            fs::remove_dir_all(&store).unwrap();
        }
        let backup = ["rebuild", "store", "--project", &other, "--from-backup", file.to_str().unwrap()];
        let refused = bus.relay("", backup).fails("INPUT_INVALID").error();
        assert!(text(&refused["message"]).contains(&format!("is a backup of {}, and not of {other}", bus.key())));
        assert_eq!(store.exists(), left, "nothing was made for it");
        let archive = store.join("archive.git");
        bus.git_in(&bus.path(""), &["clone", "-q", "--bare", clone.to_str().unwrap(), archive.to_str().unwrap()]);
        for consent in [&[] as &[&str], &["--lose-after", &bus.tip().to_string()]] {
            let archive = ["rebuild", "store", "--project", &other, "--from-archive"];
            let refused = bus.relay("", [&archive[..], consent].concat()).fails("ARCHIVE_DIVERGED").error();
            assert!(text(&refused["message"]).contains(&format!("is of {}, and not of {other}", bus.key())));
            assert!(!store.join("relay.db").exists() && !store.join("relay.anew.db").exists());
        }
    }
}

/// By the words of the refusal: into the path that the backup knows, and then after the repository.
#[test]
fn a_backup_from_before_a_move_that_nobody_remembers_is_followed() {
    let bus = Bus::with(&["BlueLake"]);
    let (file, old) = (bus.path("shop.db"), bus.key());
    bus.relay("", ["backup", file.to_str().unwrap()]).success();
    fs::remove_dir_all(bus.home()).unwrap();
    let new = bus.path("new-home");
    fs::rename(bus.repo(), &new).unwrap();
    fs::create_dir(bus.repo()).unwrap();
    let restore = |project: &str| {
        bus.relay("", ["rebuild", "store", "--from-backup", file.to_str().unwrap(), "--project", project])
    };
    let new = new.to_str().unwrap();
    let refused = restore(new).fails("INPUT_INVALID").error();
    assert!(text(&refused["message"]).contains(&format!("--project {old}")), "{refused}");
    assert!(text(&refused["message"]).contains(&format!("relay project move {old} {new}")), "{refused}");
    restore(&old).success();
    bus.relay("", ["project", "move", &old, new]).success();
    bus.relay("BlueLake", ["poll", "--project", new]).success();
    // What lives on under its new path does not come back under the old one as well.
    restore(&old).fails("AGENT_NOT_REGISTERED");
}

/// The steps of a refusal that are commands, as they are printed.
fn commands(error: &Value) -> Vec<Vec<String>> {
    let steps = error["playbook"].as_array().unwrap().iter();
    steps.filter_map(|step| serde_json::from_value(step["run"].clone()).ok()).collect()
}

/// An event that is damaged before it was copied: nothing but the old file has it, and that cannot give it.
#[test]
fn the_steps_out_of_a_damaged_store_lead_out() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("", ["drain", "--wait"]).success();
    let last = bus.tip();
    bus.send("BlueLake", "RedForest", "bd-1", "Login");
    let store = rusqlite::Connection::open(bus.store().join("relay.db")).unwrap();
    store.execute("UPDATE texts SET text = 'tent' WHERE field = 'body'", []).unwrap();
    drop(store);
    let mut error = bus.relay("", ["verify"]).fails("STORE_DAMAGED").error();
    let [ask, drain, rebuild] = &commands(&error)[..] else { panic!("{error}") };
    bus.relay("", &ask[1..]).success();
    let refused = bus.relay("", &drain[1..]).fails("STORE_DAMAGED").error();
    assert!(commands(&refused).ends_with(&[drain.clone(), rebuild.clone()]), "{refused}");
    error = bus.relay("", &rebuild[1..]).fails("ARCHIVE_BEHIND").error();
    let [give_up] = &commands(&error)[..] else { panic!("what cannot be drained is not drained: {error}") };
    let rebuilt = bus.relay("", &give_up[1..]).success().result();
    assert_eq!(rebuilt["events"], last);
    assert_eq!(bus.relay("", ["verify"]).success().signals(), [""; 0]);
}

#[test]
fn a_command_that_remembers_no_answer_takes_no_key() {
    let bus = Bus::with(&["BlueLake"]);
    let place = bus.path("shop.db");
    for args in [&["backup", place.to_str().unwrap()] as &[&str], &["rebuild", "archive"], &["drain"], &["verify"]] {
        let refused = bus.relay("", [args, &["--idempotency-key", "K"]].concat()).fails("INPUT_INVALID").error();
        assert!(text(&refused["message"]).contains("without --idempotency-key"), "{refused}");
        bus.relay("", args).success();
    }
}

#[test]
fn a_file_that_a_killed_attempt_moved_away_is_named_by_the_next() {
    for index in 0..2 {
        let bus = Bus::with(&["BlueLake", "RedForest"]);
        let (left, store) = (&both(&bus)[index], bus.store());
        let words = match left {
            Left::Backup(file) => vec!["rebuild", "store", "--from-backup", file.to_str().unwrap()],
            Left::Clone(_) => vec!["rebuild", "store", "--from-archive"],
        };
        let mut command = bus.args("", &words);
        let died = command.env("FAILPOINTS", "store-amid-aside=2*off->return(abort)").output().unwrap();
        assert!(!died.status.success() && !store.join("relay.db").exists());
        let again = bus.relay("", &words).success().result();
        let missing = text(if index == 0 { &again["missing"] } else { &again["missing"][0] });
        let aside = store.join("relay.before-1.db");
        assert!(missing.contains(&format!("was moved to {}", aside.display())), "{missing}");
        assert!(!store.join("restoring").exists() && !store.join("relay.anew.db").exists());
        bus.relay("BlueLake", ["poll"]).success();
    }
}
