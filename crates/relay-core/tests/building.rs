//! A playbook that breaks its rules does not build. The rules have tests where they are written; here cargo itself says no.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that cannot go on should say where")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// The sources of this crate, where they can be spoilt.
struct Copy(tempfile::TempDir);

impl Copy {
    fn new() -> Self {
        let (root, copy) = (Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."), Copy(tempfile::tempdir().unwrap()));
        copy_folder(&root.join("playbooks"), &copy.path("playbooks"));
        copy_folder(&root.join("crates/relay-core"), &copy.path("crates/relay-core"));
        fs::copy(root.join("Cargo.lock"), copy.path("Cargo.lock")).unwrap();
        let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
        let is_of_others = |line: &&str| !line.starts_with("members") && !line.starts_with("default-members");
        let lines: Vec<&str> = manifest.lines().filter(is_of_others).collect();
        let manifest = lines.join("\n").replacen("[workspace]", "[workspace]\nmembers = [\"crates/relay-core\"]", 1);
        fs::write(copy.path("Cargo.toml"), manifest).unwrap();
        copy
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.0.path().join(path)
    }

    fn playbook(&self, name: &str) -> std::path::PathBuf {
        self.path("playbooks").join(format!("{name}.toml"))
    }

    fn check(&self) -> Output {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["check", "--offline", "--quiet"]).current_dir(self.0.path());
        cargo.env("CARGO_TARGET_DIR", self.path("target")).output().unwrap()
    }

    #[track_caller]
    fn does_not_build(&self, because: &str) {
        let output = self.check();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(because), "expected {because:?}, and cargo said: {said}");
    }
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn a_playbook_that_breaks_its_rules_fails_the_build_and_says_why() {
    let copy = Copy::new();
    let whole = fs::read_to_string(copy.playbook("CONTACT_REQUIRED")).unwrap();
    let spoil = |text: &str| fs::write(copy.playbook("CONTACT_REQUIRED"), text).unwrap();
    let step = |line: &str| format!("symptom = \"s\"\n\n[[step]]\nwhy = \"w\"\n{line}\nafter = {{ acting = true }}\n");

    spoil("symptom = ");
    copy.does_not_build("CONTACT_REQUIRED.toml");
    spoil(&step("command = \"teleport\""));
    copy.does_not_build("teleport");
    spoil(&step("command = \"start\"\nargs = { warp = true }"));
    copy.does_not_build("warp");
    spoil(&step("command = \"link\"\nargs = { target = \"{nobody}\" }"));
    copy.does_not_build("nobody");
    spoil(&whole);
    fs::write(copy.playbook("SKY_FALLS"), &whole).unwrap();
    copy.does_not_build("SKY_FALLS.toml belongs to no class");
    fs::remove_file(copy.playbook("SKY_FALLS")).unwrap();
    fs::remove_file(copy.playbook("CONTACT_REQUIRED")).unwrap();
    copy.does_not_build("CONTACT_REQUIRED has no playbook");
    spoil(&whole);
    let output = copy.check();
    assert!(output.status.success(), "as they are they build: {}", String::from_utf8_lossy(&output.stderr));
}
