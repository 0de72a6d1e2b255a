//! Where git looks for hooks: git itself says so, and relay, which runs none, must say the same.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that cannot go on should say where")]

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use relay_store::hooks::Hooks;

/// A repository with a linked worktree and a submodule, and configuration of every sort around it.
struct Ground {
    root: tempfile::TempDir,
    variables: HashMap<&'static str, OsString>,
}

impl Ground {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let mut variables = HashMap::new();
        variables.insert("HOME", root.path().join("home").into_os_string());
        variables.insert("GIT_CONFIG_SYSTEM", root.path().join("system").into_os_string());
        let ground = Ground { root, variables };
        for folder in ["home", "main", "part"] {
            fs::create_dir(ground.path(folder)).unwrap();
        }
        for folder in ["main", "part"] {
            ground.git(folder, &["init", "-q", "-b", "main"]);
            ground.git(folder, &["commit", "-q", "--allow-empty", "-m", "first"]);
        }
        ground.git("main", &["worktree", "add", "-q", "../linked"]);
        let part = ground.path("part");
        ground.git("main", &["submodule", "--quiet", "add", part.to_str().unwrap(), "inside"]);
        fs::create_dir_all(ground.path("main/deep/er")).unwrap();
        ground
    }

    fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.root.path()).unwrap().join(name)
    }

    fn git(&self, folder: &str, args: &[&str]) -> String {
        let mut command = Command::new("git");
        command.env_clear().env("PATH", std::env::var("PATH").unwrap()).envs(&self.variables);
        command.args(["-c", "user.name=T", "-c", "user.email=t@example.invalid", "-c", "protocol.file.allow=always"]);
        let output = command.args(args).current_dir(self.path(folder)).output().unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    fn hooks(&self, folder: &str) -> Hooks {
        Hooks::around(&self.path(folder), &|name| self.variables.get(name).cloned())
            .unwrap_or_else(|fault| panic!("{fault}"))
    }

    /// From every folder git and relay look at the same place.
    #[track_caller]
    fn check(&self, what: &str) {
        for folder in ["main", "main/deep/er", "linked", "main/inside"] {
            let hooks = self.hooks(folder);
            // A relative path starts at the root of the work tree, where git runs hooks.
            let top = PathBuf::from(self.git(folder, &["rev-parse", "--show-toplevel"]));
            assert_eq!(hooks.tree, top, "{what} from {folder}");
            let said = top.join(self.git(top.to_str().unwrap(), &["rev-parse", "--git-path", "hooks"]));
            assert_eq!(cleaned(&hooks.folder), cleaned(&said), "{what} from {folder}");
            assert_eq!(
                hooks.configured_in.is_some(),
                !hooks.folder.ends_with(".git/hooks") && !hooks.folder.ends_with("inside/hooks"),
                "{what} from {folder}"
            );
        }
    }
}

/// The same path whatever is on the way.
fn cleaned(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.components().collect())
}

#[test]
fn the_place_is_where_git_looks() {
    let ground = Ground::new();
    ground.check("nothing is configured");
    let set = |file: &str, text: &str| fs::write(ground.path(file), text).unwrap();
    set("system", "[core]\n\thooksPath = /of/the/system\n");
    ground.check("the system's configuration");
    fs::create_dir_all(ground.path("home/.config/git")).unwrap();
    set("home/.config/git/config", "[CORE]\n\tHooksPath = ~/of the user\n");
    ground.check("the user's configuration");
    set("home/more", "[core]\n\thookspath = \"/in cluded\"\n");
    set("home/.gitconfig", "[include]\n\tpath = more\n");
    ground.check("an include");
    let there = ground.path("main/.git/");
    set("home/.gitconfig", &format!("[includeIf \"gitdir:{}\"]\n\tpath = more\n", there.display()));
    ground.check("an include for one repository");
    ground.git("main", &["config", "core.hooksPath", ".githooks"]);
    ground.check("the repository's own, relative");
    ground.git("main/inside", &["config", "core.hooksPath", "../elsewhere/./hooks"]);
    ground.check("a submodule's own");
    ground.git("main", &["config", "extensions.worktreeConfig", "true"]);
    ground.git("linked", &["config", "--worktree", "core.hooksPath", "/of/the/worktree"]);
    ground.check("a worktree's own");
    ground.git("main", &["config", "--unset", "extensions.worktreeConfig"]);
    ground.check("a worktree's own that does not count");
}

#[test]
fn variables_say_which_configuration_counts() {
    let mut ground = Ground::new();
    fs::write(ground.path("system"), "[core]\n\thooksPath = /of/the/system\n").unwrap();
    fs::write(ground.path("home/.gitconfig"), "[core]\n\thooksPath = /of/the/user\n").unwrap();
    ground.variables.insert("GIT_CONFIG_GLOBAL", "/dev/null".into());
    ground.check("the user's does not count");
    ground.variables.insert("GIT_CONFIG_NOSYSTEM", "1".into());
    ground.check("and neither does the system's");
    let other = ground.path("other");
    fs::write(&other, "[core]\n\thooksPath = /of/another\n").unwrap();
    ground.variables.insert("GIT_CONFIG_GLOBAL", other.into_os_string());
    ground.check("another file does");
}

#[test]
fn only_what_lies_in_the_git_folder_is_the_repositorys_own() {
    let ground = Ground::new();
    for (folder, hooks, own) in [
        ("main", "main/.git/hooks", true),
        ("main", "main/.git/not/there/yet", true),
        ("linked", "main/.git/hooks", true),
        ("main/inside", "main/.git/modules/inside/hooks", true),
        ("main/inside", "main/.git/hooks", false),
        ("main", "main/.githooks", false),
        ("main", "home/hooks", false),
        ("linked", "linked/hooks", false),
    ] {
        assert_eq!(ground.hooks(folder).is_own(&ground.path(hooks)), own, "{hooks} from {folder}");
    }
    fs::remove_dir_all(ground.path("main/.git/hooks")).unwrap();
    std::os::unix::fs::symlink(ground.path("home"), ground.path("main/.git/hooks")).unwrap();
    assert!(!ground.hooks("main").is_own(&ground.path("main/.git/hooks")), "a link leads out of it");
}

#[test]
fn outside_a_work_tree_there_are_none() {
    let ground = Ground::new();
    let fails = |folder: &Path| Hooks::around(folder, &|_| None).unwrap_err();
    assert_eq!(fails(&ground.path("home")).code.as_str(), "PROJECT_UNRESOLVED");
    assert_eq!(fails(Path::new("/nowhere")).code.as_str(), "PROJECT_UNRESOLVED");
    ground.git("home", &["init", "-q", "--bare", "bare.git"]);
    let refusal = fails(&ground.path("home/bare.git/objects"));
    assert_eq!(refusal.code.as_str(), "INPUT_INVALID");
    assert!(refusal.message.contains("bare.git is a bare repository"), "{refusal}");
    // Inside the git folder one is still in the repository.
    assert_eq!(ground.hooks("main/.git/refs").tree, ground.path("main"));
}

#[test]
fn a_configuration_that_cannot_be_read_is_not_taken_for_none() {
    let ground = Ground::new();
    fs::write(ground.path("home/.gitconfig"), "[core\n").unwrap();
    let variable = |name: &str| ground.variables.get(name).cloned();
    let refusal = Hooks::around(&ground.path("main"), &variable).unwrap_err();
    assert_eq!(refusal.code.as_str(), "INPUT_INVALID");
}
