//! Puts relay's hooks where git looks for them, and takes them away again. Whatever else is there stays byte for byte as it
//! is: moved aside and run first, or left alone.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use relay_core::error::{Code, Refusal};
use relay_core::store::Result;
use relay_store::hooks::Hooks;

use super::owner::{Owner, owner};
use super::place::{Found, Place};
use super::script::Script;
use super::{Row, State};

/// Puts both hooks in their places, or neither.
pub fn install(hooks: &Hooks, program: &str) -> Result<Vec<Row>> {
    let places = Place::both(&hooks.folder)?;
    if let Some(owner) = owner(hooks, &places) {
        return called(hooks, &owner).ok_or_else(|| owner.refusal(hooks));
    }
    for place in &places {
        is_free(place)?;
    }
    let made_folder = make_folder(&hooks.folder)?;
    let mut rows = Vec::new();
    for place in &places {
        match put(place, program, made_folder) {
            Ok(row) => rows.push(row),
            Err(refusal) => {
                for place in Place::both(&hooks.folder)?.iter().take(rows.len()) {
                    take_away(place)?;
                }
                if made_folder {
                    let _ = fs::remove_dir(&hooks.folder);
                }
                return Err(refusal);
            }
        }
    }
    Ok(rows)
}

/// Somebody else's hooks call the guard already, all of them that have to.
fn called(hooks: &Hooks, owner: &Owner) -> Option<Vec<Row>> {
    let row = |hook| {
        let path = owner.calls(hooks, hook)?.to_string_lossy().into_owned();
        Some(Row { hook, state: State::Called, path, note: None })
    };
    super::Hook::ALL.into_iter().map(row).collect()
}

/// Whether relay's hook may take the place.
fn is_free(place: &Place) -> Result<()> {
    let (path, before) = (place.path.display(), place.before.display());
    let refuse = |text: String| Err(Code::InputInvalid.refuse(text).with("path", path.to_string()));
    let in_the_way = place.has_before() && !place.is_before();
    match &place.found {
        Found::Strange => refuse(format!("{path} is no file; move it away and install again")),
        Found::Changed => refuse(format!(
            "{path} is relay's hook with lines of somebody else's; put those into a file of their own and install again"
        )),
        Found::Foreign(_) if in_the_way => refuse(format!(
            "{path} was put over relay's hook, and {before} is what was there before; keep one of the two under the first \
             name, take the other away, and install again"
        )),
        Found::Nothing if in_the_way => refuse(format!(
            "{before} is left from an installation whose hook is gone; `relay guard remove` puts it back, then install again"
        )),
        _ => Ok(()),
    }
}

fn make_folder(folder: &Path) -> Result<bool> {
    match fs::create_dir(folder) {
        Ok(()) => Ok(true),
        Err(fault) if fault.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(fault) => Err(unwritable(folder, &fault)),
    }
}

fn put(place: &Place, program: &str, made_folder: bool) -> Result<Row> {
    let row = |state, note| Row { hook: place.hook, state, path: place.path.to_string_lossy().into_owned(), note };
    if matches!(place.found, Found::Calls) {
        return Ok(row(State::Called, None));
    }
    let chains = !matches!(place.found, Found::Nothing) && (place.has_before() || is_foreign(place));
    let made_folder = made_folder || matches!(place.found, Found::Relays { made_folder: true, .. });
    let script = Script { hook: place.hook, program: program.to_owned(), chains, made_folder };
    let text = script.text();
    let is_there =
        matches!(&place.found, Found::Relays { text: there, .. } if there == text.as_bytes()) && place.is_run;
    if !is_there {
        write(place, &text).map_err(|fault| unwritable(&place.path, &fault))?;
    }
    let ignored = chains && rustix::fs::access(&place.before, rustix::fs::Access::EXEC_OK).is_err();
    let note = match (chains, ignored) {
        (false, _) => None,
        (true, false) => Some(format!("what was there runs first, from {}", place.before.display())),
        (true, true) => Some(format!(
            "what was there is not executable, so git ignored it and still does; it is kept as {}",
            place.before.display()
        )),
    };
    let state = if chains && !ignored { State::Chained } else { State::Installed };
    Ok(row(state, note))
}

fn is_foreign(place: &Place) -> bool {
    matches!(place.found, Found::Foreign(_))
}

/// Writes relay's hook whole or not at all. What it replaces has its second name before it loses the first, so that there is no
/// moment without it.
fn write(place: &Place, text: &str) -> io::Result<()> {
    let folder = place.path.parent().unwrap_or(Path::new("/"));
    let mut file = tempfile::NamedTempFile::with_prefix_in(".relay-guard", folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().set_permissions(fs::Permissions::from_mode(0o755))?;
    if is_foreign(place) && !place.has_before() {
        // Some file systems have no second names.
        fs::hard_link(&place.path, &place.before).or_else(|_| fs::rename(&place.path, &place.before))?;
    }
    let put = match place.found {
        Found::Nothing => file.persist_noclobber(&place.path),
        _ => file.persist(&place.path),
    };
    put.map(drop).map_err(|fault| fault.error)
}

/// Takes relay's hooks away from wherever this repository has them, and puts back what was there before.
pub fn remove(hooks: &Hooks) -> Result<Vec<Row>> {
    let mut folders = vec![hooks.folder.clone(), hooks.own_folder()];
    folders.retain(|folder| hooks.is_own(folder));
    folders.dedup();
    let mut places = Vec::new();
    for folder in &folders {
        places.extend(Place::both(folder)?);
    }
    if let Some(changed) = places.iter().find(|place| matches!(place.found, Found::Changed)) {
        let path = changed.path.display().to_string();
        let text = "is relay's hook with lines of somebody else's; take relay's lines out of it by hand";
        return Err(Code::InputInvalid.refuse(format!("{path} {text}")).with("path", path));
    }
    let mut rows = Vec::new();
    for place in &places {
        rows.extend(take_away(place)?);
    }
    let made = places.iter().filter(|place| matches!(place.found, Found::Relays { made_folder: true, .. }));
    for folder in made.filter_map(|place| place.path.parent()) {
        // Somebody else may have put something there since.
        let _ = fs::remove_dir(folder);
    }
    Ok(rows)
}

/// What became of one place, where there was something to do or to say.
fn take_away(place: &Place) -> Result<Option<Row>> {
    let (path, before) = (&place.path, &place.before);
    let row = |state, note: Option<String>| {
        Some(Row { hook: place.hook, state, path: path.to_string_lossy().into_owned(), note })
    };
    let failed = |fault: io::Error| unwritable(path, &fault);
    Ok(match &place.found {
        Found::Relays { .. } | Found::Nothing if place.has_before() => {
            fs::rename(before, path).map_err(failed)?;
            row(State::Foreign, Some("is what was there before".to_owned()))
        }
        Found::Relays { .. } => {
            fs::remove_file(path).map_err(failed)?;
            row(State::Missing, None)
        }
        Found::Foreign(_) if place.is_before() => {
            fs::remove_file(before).map_err(failed)?;
            row(State::Foreign, Some("is what was there before".to_owned()))
        }
        Found::Foreign(_) if place.has_before() => {
            let note =
                format!("was put over relay's hook and stays; what was there before that is {}", before.display());
            row(State::Foreign, Some(note))
        }
        Found::Foreign(_) => row(State::Foreign, Some("is somebody else's, and stays".to_owned())),
        Found::Calls => {
            row(State::Called, Some("is somebody else's, and stays: take the call out of it by hand".to_owned()))
        }
        _ => None,
    })
}

pub fn unwritable(path: &Path, fault: &io::Error) -> Refusal {
    let name = path.to_string_lossy();
    Code::InputInvalid.refuse(format!("{name} cannot be read or written: {fault}")).with("path", name.clone())
}
