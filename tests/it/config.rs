//! `config.toml`: other limits than the protocol's, and a bad file refused by its name.

use crate::bus::Bus;

fn configured(text: &[u8]) -> Bus {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    std::fs::write(bus.home().join("config.toml"), text).unwrap();
    bus
}

/// With this line under `[limits]` the first command passes and the second is refused with the class.
fn check(limit: &str, fits: &[&str], exceeds: &[&str], code: &str) {
    let bus = configured(format!("[limits]\n{limit}\n").as_bytes());
    bus.relay("BlueLake", fits).success();
    let tip = || bus.relay("", ["status"]).success().result()["tip"].clone();
    let before = tip();
    bus.relay("BlueLake", exceeds).fails(code);
    assert_eq!(tip(), before, "{limit}");
}

#[test]
fn a_limit_of_the_operators_holds() {
    let send = ["send", "--to", "RedForest", "--thread", "bd-1"];
    let with = |rest: &[&'static str]| -> Vec<&'static str> { send.into_iter().chain(rest.iter().copied()).collect() };
    check(
        "body_bytes = 4",
        &with(&["--subject", "s", "--body", "four"]),
        &with(&["--subject", "s", "--body", "five!"]),
        "BODY_TOO_LARGE",
    );
    check(
        "subject_chars = 4",
        &with(&["--subject", "four", "--body", "b"]),
        &with(&["--subject", "five!", "--body", "b"]),
        "INPUT_INVALID",
    );
    check(
        "recipients = 1",
        &with(&["--subject", "s", "--body", "b"]),
        &with(&["--subject", "s", "--body", "b", "--cc", "human"]),
        "INPUT_INVALID",
    );
    check("page = 5", &["log", "--limit", "5"], &["log", "--limit", "6"], "INPUT_INVALID");
    check("pattern_bytes = 4", &["reserve", "four"], &["reserve", "five!"], "PATTERN_INVALID");
    check("patterns = 2", &["reserve", "one", "two"], &["reserve", "one", "two", "three"], "INPUT_INVALID");
    check("patterns = 1", &["start", "--path", "one"], &["start", "--path", "one", "--path", "two"], "INPUT_INVALID");
    check("live_claims = 1", &["reserve", "one"], &["reserve", "two"], "INPUT_INVALID");
    check(
        "unread = 1",
        &with(&["--subject", "s", "--body", "b"]),
        &with(&["--subject", "s", "--body", "c"]),
        "INBOX_FULL",
    );
    check("gate_wait = \"90s\"", &["reserve", "one"], &["reserve", ""], "PATTERN_INVALID");
}

#[test]
fn a_bad_file_is_refused_by_its_name_and_nothing_changes() {
    for text in [
        b"[limits]\nbody = 4" as &[u8],
        b"[limits]\nbody_bytes = \"many\"",
        b"[limits]\nbody_bytes = -1",
        b"[limits]\npage = 0",
        b"[limits]\nbody_bytes = 67108865",
        b"[limits]\npatterns = 0",
        b"[limits]\npattern_bytes = 2049",
        b"[limits]\ngate_wait = \"soon\"",
        b"[other]\nx = 1",
        b"no toml",
        b"[limits]\nbody_bytes = 4 # \xff",
    ] {
        let bus = configured(text);
        let file = bus.home().join("config.toml");
        let shown = String::from_utf8_lossy(text).into_owned();
        for args in [&["start"] as &[&str], &["reserve", "src"], &["status"], &["health"], &["project", "list"]] {
            let message = bus.relay("BlueLake", args).fails("INPUT_INVALID").error()["message"].clone();
            let message = message.as_str().unwrap();
            assert!(message.contains(file.to_str().unwrap()), "{shown}: {message}");
            assert!(!message.contains('\n'), "{shown}: {message}");
        }
        std::fs::remove_file(&file).unwrap();
        assert_eq!(bus.relay("", ["reservations"]).success().result()["total"], 0, "{shown}");
    }
}

/// Every command reads it, also those that git and coding agents wait for.
#[test]
fn what_is_no_file_of_ours_is_refused_by_its_name_and_not_waited_for() {
    let bus = Bus::with(&["BlueLake"]);
    let (file, elsewhere) = (bus.home().join("config.toml"), bus.path("elsewhere.toml"));
    std::fs::write(&elsewhere, "").unwrap();
    let makers: [(&str, &dyn Fn()); 4] = [
        ("is a folder", &|| std::fs::create_dir(&file).unwrap()),
        ("is a link", &|| std::os::unix::fs::symlink(&elsewhere, &file).unwrap()),
        ("is neither a file nor a folder", &|| {
            assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
        }),
        ("2000000 bytes", &|| std::fs::write(&file, "#".repeat(2_000_000)).unwrap()),
    ];
    for (why, make) in makers {
        make();
        let message = bus.relay("BlueLake", ["status"]).fails("INPUT_INVALID").error()["message"].clone();
        let message = message.as_str().unwrap();
        assert!(message.contains(file.to_str().unwrap()) && message.contains(why), "{message}");
        let _ = std::fs::remove_file(&file).or_else(|_| std::fs::remove_dir(&file));
    }
    bus.relay("BlueLake", ["status"]).success();
}
