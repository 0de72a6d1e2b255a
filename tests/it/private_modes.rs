//! What relay keeps is its owner's alone, whatever the umask says.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::bus::{Bus, run};

/// Every path below this one that somebody else could open, or that its owner could not.
fn loose(path: &Path, found: &mut Vec<String>) {
    let metadata = std::fs::symlink_metadata(path).unwrap();
    let (mode, expected) = (metadata.permissions().mode() & 0o777, if metadata.is_dir() { 0o700 } else { 0o600 });
    if mode != expected {
        found.push(format!("{}: {mode:o}", path.display()));
    }
    if metadata.is_dir() {
        std::fs::read_dir(path).unwrap().for_each(|entry| loose(&entry.unwrap().path(), found));
    }
}

#[test]
fn folders_are_0700_and_files_0600_under_any_umask() {
    for umask in ["000", "022", "077", "277", "777"] {
        let bus = Bus::new();
        let relay = |line: &str| {
            let mut command = Command::new("sh");
            bus.environment(&mut command);
            let script = format!("umask {umask} && exec \"$0\" --json {line}");
            command.args(["-c", &script, crate::bus::RELAY]);
            run(command).success();
        };
        relay("--agent BlueLake start --path 'src/**'");
        relay("--agent RedForest prepare --thread bd-1");
        relay("--agent RedForest send --to BlueLake --thread bd-1 --subject S --body b");
        relay("--agent BlueLake poll --wait 1s");
        relay("token human");
        let mut found = Vec::new();
        loose(&bus.home(), &mut found);
        assert_eq!(found, Vec::<String>::new(), "umask {umask}");
    }
}
