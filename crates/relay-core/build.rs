//! Holds every playbook to its rules, and embeds them: a file that does not parse, names a command, flag or value that does
//! not exist, or belongs to no class does not build, and neither does a class without a file.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::exit;

#[path = "src/playbook/file.rs"]
#[allow(dead_code, reason = "the library uses the rest")]
mod file;
#[path = "src/playbook/surface.rs"]
mod surface;

macro_rules! catalogue {
    ($($variant:ident $code:literal $kind:ident $retryable:literal [$($detail:ident)*])*) => {
        const CLASSES: &[(&str, &str, &[&str])] = &[$((stringify!($variant), $code, &[$(stringify!($detail)),*])),*];
    };
}
include!("src/error/rows.rs");

fn main() {
    let playbooks = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../playbooks");
    println!("cargo::rerun-if-changed={}", playbooks.display());
    println!("cargo::rerun-if-changed=src/error/rows.rs");
    println!("cargo::rerun-if-changed=src/playbook");
    let mut faults = Vec::new();
    let mut arms = String::new();
    for (variant, code, details) in CLASSES {
        let path = playbooks.join(format!("{code}.toml"));
        match std::fs::read_to_string(&path) {
            Ok(text) => faults.extend(check(&text, details).into_iter().map(|fault| format!("{code}.toml: {fault}"))),
            Err(fault) => faults.push(format!("{code} has no playbook: {}: {fault}", path.display())),
        }
        let _ = writeln!(arms, "        Code::{variant} => include_str!({path:?}),");
    }
    faults.extend(strangers(&playbooks));
    if !faults.is_empty() {
        faults.iter().for_each(|fault| println!("cargo::error={fault}"));
        exit(1);
    }
    let text = format!("fn text(code: Code) -> &'static str {{\n    match code {{\n{arms}    }}\n}}\n");
    if let Err(fault) = std::fs::write(out(), text) {
        println!("cargo::error=the embedded playbooks cannot be written: {fault}");
        exit(1);
    }
}

#[expect(clippy::disallowed_methods, reason = "this is how cargo talks to a build script")]
fn out() -> PathBuf {
    PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default()).join("playbooks.rs")
}

fn check(text: &str, details: &[&str]) -> Vec<String> {
    match toml::from_str::<file::Playbook>(text) {
        Ok(playbook) => playbook.faults(details, surface::takes),
        Err(fault) => vec![fault.to_string().replace('\n', " ")],
    }
}

/// Files that belong to no class.
fn strangers(playbooks: &Path) -> Vec<String> {
    let listed = std::fs::read_dir(playbooks).map(|entries| entries.flatten().collect::<Vec<_>>()).unwrap_or_default();
    let is_known = |name: &str| CLASSES.iter().any(|(_, code, _)| name == format!("{code}.toml"));
    let names = listed.iter().map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| !is_known(name)).map(|name| format!("{name} belongs to no class")).collect()
}
