//! What the README says to type is typed: everyday use, from top to bottom in a fresh repository.

use std::path::Path;
use std::process::Command;

use crate::bus::{Bus, RELAY};

/// The lines of a chapter's blocks, without those that show what is printed and those that begin with one of `but`.
fn lines(chapter: &str, but: &[&str]) -> String {
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md")).unwrap();
    let chapter = readme.split("\n## ").find(|text| text.starts_with(chapter)).expect("there is such a chapter");
    let blocks = chapter.split("\n```").skip(1).step_by(2).filter(|block| !block.starts_with("\nError:"));
    let lines = blocks.flat_map(|block| block.lines().skip(1));
    lines.filter(|line| !but.iter().any(|first| line.starts_with(first))).map(|line| format!("{line}\n")).collect()
}

#[test]
fn everyday_use_runs_as_it_stands() {
    let bus = Bus::new();
    let script = lines("Everyday use", &[]);
    assert!(script.contains("relay send") && script.contains("relay doctor"), "{script}");
    let mut shell = Command::new("sh");
    bus.environment(&mut shell);
    let folder = Path::new(RELAY).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let ran = shell.args(["-e", "-x", "-c", &script]).env("PATH", path).output().unwrap();
    assert!(ran.status.success(), "{script}\n{}", String::from_utf8_lossy(&ran.stderr));
}
