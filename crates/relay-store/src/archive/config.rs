//! What git goes by in the archive beside objects and refs. Whoever can write there could have git fetch, or start a program, so
//! that nothing is taken but what git writes itself into a new repository or a clone: its own settings, and where a remote is.

use std::fs;
use std::path::Path;

use crate::filesystem::plain_text;

/// More than this nobody writes there.
const MOST: u64 = 64 * 1024;

/// What would lead git elsewhere: to another configuration, to other objects, to another history.
const LEADS_AWAY: [&str; 6] = [
    "commondir",
    "config.worktree",
    "objects/info/alternates",
    "objects/info/http-alternates",
    "info/grafts",
    "shallow",
];

/// What is not as relay and git leave it, as a sentence.
pub(super) fn stranger(repository: &Path) -> Option<String> {
    let is_there = |name: &&str| fs::symlink_metadata(repository.join(name)).is_ok();
    if let Some(name) = LEADS_AWAY.iter().find(|name| is_there(name)) {
        return Some(format!("{name} is not relay's"));
    }
    if !is_there(&"config") {
        return None;
    }
    match plain_text(&repository.join("config"), MOST) {
        Ok(text) => strange_line(&text).map(|line| format!("line {line} of config is not relay's")),
        Err(refusal) => Some(refusal.message.clone()),
    }
}

/// The first line that is not, to the letter, one of those that git writes and that start nothing, counted from 1. What git might
/// read in another way than this, such as a comment or a line that goes on in the next, is strange too.
fn strange_line(text: &str) -> Option<usize> {
    let mut section = "";
    let mut is_known = |line: &str| {
        match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            Some("core") => section = "core",
            Some(header) if is_remote(header) => section = "remote",
            _ => return line.strip_prefix('\t').is_some_and(|line| is_setting(section, line)),
        }
        true
    };
    let lines = text.strip_suffix('\n').unwrap_or(text).split('\n');
    lines.into_iter().position(|line| !is_known(line)).map(|index| index + 1)
}

fn is_remote(header: &str) -> bool {
    let name = header.strip_prefix("remote \"").and_then(|rest| rest.strip_suffix('"'));
    name.is_some_and(|name| is_plain(name) && !name.contains(']'))
}

fn is_setting(section: &str, line: &str) -> bool {
    let Some((name, value)) = line.split_once(" = ") else { return false };
    let is_bool = matches!(value, "true" | "false");
    match (section, name) {
        ("core", "repositoryformatversion") => value == "0",
        ("core", "bare" | "filemode" | "symlinks" | "ignorecase" | "precomposeunicode") | ("remote", "mirror") => {
            is_bool
        }
        ("remote", "url" | "pushurl" | "fetch" | "push") => is_plain(value),
        _ => false,
    }
}

/// Nothing in it means anything to git but itself.
fn is_plain(text: &str) -> bool {
    !text.contains(['"', '\\', '#', ';']) && !text.contains(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n";

    #[test]
    fn what_git_writes_and_where_a_remote_is_are_known() {
        let remote = "[remote \"origin\"]\n\turl = /srv/a b.git\n\tfetch = +refs/*:refs/*\n\tmirror = true\n";
        assert_eq!(strange_line(&format!("{WHOLE}{remote}")), None);
        for (from, to, line) in
            [("bare = t", "bare = T", 4), ("= 0", "= 8", 2), ("e = t", "e C t", 3), ("= t", "=\x0ct", 3), ("]", "}", 1)]
        {
            assert_eq!(strange_line(&WHOLE.replacen(from, to, 1)), Some(line), "{to}");
        }
    }

    #[test]
    fn what_could_start_something_is_strange_however_it_is_written() {
        for added in [
            "[remote \"o\"]\n\tpromisor = true\n",
            "[remote \"o\"]\n\tuploadpack = touch /tmp/x;\n",
            "[remote \"o\"] url = a\n",
            "[remote.o]\n",
            "[include]\n",
            "[core]\n\tsshCommand = x\n",
            "[core]\n\tFSMonitor = x\n",
            "[extensions]\n\tpartialClone = o\n",
            "# a comment that git takes for ended \\\n[include]\n",
            "#bare = true\n",
            "\n[core]\n",
            "[remote \"o\"]\n\turl = a\\\n",
            "[remote \"o\\\"]\n",
            "\tbare\n",
            "\u{feff}[core]\n",
        ] {
            assert!(strange_line(&format!("{WHOLE}{added}")).is_some(), "{added}");
        }
    }

    #[test]
    fn what_leads_git_elsewhere_is_a_stranger() {
        let folder = tempfile::tempdir().unwrap_or_else(|fault| panic!("{fault}"));
        assert!(fs::create_dir_all(folder.path().join("objects/info")).is_ok());
        assert!(fs::create_dir(folder.path().join("info")).is_ok());
        assert_eq!(stranger(folder.path()), None, "one that is about to be made");
        assert!(fs::write(folder.path().join("config"), WHOLE).is_ok());
        assert_eq!(stranger(folder.path()), None);
        for name in LEADS_AWAY {
            assert!(std::os::unix::fs::symlink("/nowhere", folder.path().join(name)).is_ok());
            assert_eq!(stranger(folder.path()), Some(format!("{name} is not relay's")));
            assert!(fs::remove_file(folder.path().join(name)).is_ok());
        }
    }
}
