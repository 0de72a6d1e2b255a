//! The line before a gate: numbered places, and everybody waits for the place before its own alone.
//!
//! A place is a file that is locked, and the files are used in turn. The lock on the counter is the door: whoever has it may
//! take the next place, and keeps the others out until that place is free. Whatever is waited for here is a lock of the
//! kernel, which lets go of it however a process ends.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::filesystem::private_file;

const PLACES: u64 = 256;

fn place(line: &Path, number: u64) -> io::Result<File> {
    private_file(&line.join((number % PLACES).to_string()))
}

/// Waits until nobody else is at the door; says which place comes next.
pub(super) fn door(line: &Path) -> io::Result<(File, u64)> {
    let counter = private_file(&line.join("last"))?;
    counter.lock()?;
    let mut text = [0; 20];
    let length = counter.read_at(&mut text, 0)?;
    let last: u64 = std::str::from_utf8(&text[..length]).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    Ok((counter, last.wrapping_add(1)))
}

/// Waits until a place is free and takes it, for whoever is at the door.
pub(super) fn take(line: &Path, number: u64) -> io::Result<File> {
    // Whoever has the file after it came behind the one who had this file before. Until it is through, it may still wait for
    // that one here, and would wait for us, who come after it.
    place(line, number.wrapping_add(1))?.lock_shared()?;
    let own = place(line, number)?;
    own.lock()?;
    Ok(own)
}

/// Notes at the door that a place is taken.
pub(super) fn note(door: &File, number: u64) -> io::Result<()> {
    door.write_all_at(format!("{number:<20}").as_bytes(), 0)
}

/// Waits until the one before a place is done with the gate, has gone, or is dead.
pub(super) fn wait_behind(line: &Path, number: u64) -> io::Result<()> {
    place(line, number.wrapping_sub(1))?.lock_shared()
}
