//! The files that a patch touches, in the form that models write for `apply_patch`.
//!
//! Only the lines that name files are read. What is added, taken out or stands around it is content, also where it looks
//! like such a line.

mod command;

use std::collections::HashSet;
use std::path::Path;

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const NAMES: [&str; 3] = ["*** Add File:", "*** Delete File:", UPDATE];
const UPDATE: &str = "*** Update File:";
const MOVE: &str = "*** Move to:";

/// The files that the patches in a text touch, each once, as they are written there.
pub fn paths(text: &str) -> Vec<String> {
    let (mut paths, mut is_patch, mut is_update) = (Vec::new(), false, false);
    for line in text.lines() {
        // Within an update, a line that begins with a space is one that the file has already.
        let line = if is_update { line.trim_end() } else { line.trim() };
        if line == BEGIN || line == END {
            (is_patch, is_update) = (line == BEGIN, false);
        } else if let Some(path) = is_patch.then(|| named(line, is_update)).flatten() {
            is_update = line.starts_with(UPDATE) || line.starts_with(MOVE);
            paths.push(path.to_owned());
        }
    }
    distinct(paths)
}

fn named(line: &str, is_update: bool) -> Option<&str> {
    let moved = if is_update { line.strip_prefix(MOVE) } else { None };
    let path = moved.or_else(|| NAMES.iter().find_map(|name| line.strip_prefix(name)))?;
    Some(path.trim()).filter(|path| !path.is_empty() && !path.contains('\0'))
}

/// Each path once, where it came first. A patch may name a hundred thousand.
pub fn distinct(mut paths: Vec<String>) -> Vec<String> {
    let mut known = HashSet::new();
    paths.retain(|path| known.insert(path.clone()));
    paths
}

/// The files that a shell command patches with `apply_patch`, seen from where the command begins. What is patched in a
/// folder that only the shell knows is left out.
pub fn paths_in_command(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (folder, patch) in command::patches(text) {
        for path in paths(&patch) {
            match &folder {
                Some(folder) => found.push(folder.join(path).to_string_lossy().into_owned()),
                None if Path::new(&path).is_absolute() => found.push(path),
                None => {}
            }
        }
    }
    distinct(found)
}

#[cfg(test)]
mod tests;
