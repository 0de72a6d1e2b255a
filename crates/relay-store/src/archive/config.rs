//! The archive's own configuration, as far as it decides whether git can read the repository. Users may add to it, such as a
//! remote; verify runs no git, so that it looks at the lines itself.

/// What git takes for a blank; a form feed is none.
const BLANK: [char; 3] = [' ', '\t', '\r'];

/// The first line that git would stumble over, counted from 1.
pub(super) fn stumbles_at(text: &str) -> Option<usize> {
    let mut section = String::new();
    let mut goes_on = false;
    for (index, line) in text.lines().enumerate() {
        let is_sound = goes_on || is_sound(line, &mut section);
        if !is_sound {
            return Some(index + 1);
        }
        goes_on = line.ends_with('\\');
    }
    None
}

fn is_sound(line: &str, section: &mut String) -> bool {
    let line = line.trim_matches(BLANK);
    if line.is_empty() || line.starts_with(['#', ';']) {
        return true;
    }
    if let Some(header) = line.strip_prefix('[') {
        let Some((name, rest)) = header.split_once(']') else { return false };
        let (name, sub) = name.split_once(' ').unwrap_or((name, "\"\""));
        *section = name.to_ascii_lowercase();
        let is_quoted = sub.len() >= 2 && sub.starts_with('"') && sub.ends_with('"');
        return is_quoted && is_name(name, "-.") && is_sound(rest, section);
    }
    let (name, value) = match line.split_once('=') {
        Some((name, value)) => (name.trim_end_matches(BLANK), Some(value.trim_matches(BLANK))),
        None => (line, None),
    };
    is_name(name, "-") && name.starts_with(|first: char| first.is_ascii_alphabetic()) && fits(section, name, value)
}

fn is_name(name: &str, also: &str) -> bool {
    !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || also.contains(letter))
}

/// What git has written there itself has one of few values.
fn fits(section: &str, name: &str, value: Option<&str>) -> bool {
    match (section, name.to_ascii_lowercase().as_str()) {
        ("core", "repositoryformatversion") => value == Some("0"),
        ("core", "bare" | "filemode" | "symlinks" | "ignorecase" | "precomposeunicode") => {
            matches!(value, Some("true" | "false"))
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::stumbles_at;

    #[test]
    fn what_git_writes_and_users_add_is_sound() {
        let whole = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n";
        let remote = "# mine\n[remote \"origin\"]\n\turl = a\\\n = b\n\tmirror\n[x] y = z\n";
        assert_eq!(stumbles_at(&format!("{whole}{remote}")), None);
        for (from, to, line) in
            [("bare = t", "bare = T", 4), ("= 0", "= 8", 2), ("e = t", "e C t", 3), ("= t", "=\x0ct", 3), ("]", "}", 1)]
        {
            assert_eq!(stumbles_at(&whole.replacen(from, to, 1)), Some(line), "{to}");
        }
    }
}
