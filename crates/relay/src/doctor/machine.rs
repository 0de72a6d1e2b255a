//! The programs, the home and the credentials.

use relay_core::domain::name::HUMAN;
use relay_core::error::Code;
use relay_core::playbook::Setting;
use relay_store::Home;
use relay_store::archive::Archive;
use relay_store::filesystem::check_owner;
use relay_store::fitness;

use super::{Finding, Severity, store::open_to_others};
use crate::human;

pub fn of_the_machine(home: &Home, setting: &Setting) -> Vec<Finding> {
    let mut found = vec![Finding::fine("relay", format!("relay {}", env!("CARGO_PKG_VERSION")))];
    found.push(match Archive::of(home.root()).git_version() {
        Ok(version) => Finding::fine("git", version),
        // Sends go on without it; only the copy does not.
        Err(refusal) => Finding::refused("git", Severity::Warning, &refusal, setting),
    });
    if home.root().is_dir() {
        let text = format!("the stores are in {}", home.root().display());
        let owner = std::fs::metadata(home.root()).ok().and_then(|found| check_owner(home.root(), &found).err());
        found.push(if let Some(refusal) = owner {
            Finding::refused("home", Severity::Error, &refusal, setting)
        } else if !fitness::may_be_written(home.root()) {
            let text = format!("{} cannot be written", home.root().display());
            let refusal = Code::StoreReadonly.refuse(text).with("path", home.root().to_string_lossy());
            Finding::refused("home", Severity::Error, &refusal, setting)
        } else if !fitness::is_open_to_others(home.root()) {
            Finding::fine("home", text)
        } else {
            open_to_others("home", format!("{text}, which others can read"), setting)
        });
    } else {
        found.push(Finding::nobody("home", format!("{} is not there yet", home.root().display()), setting));
    }
    found.push(credential(home, setting));
    found
}

fn credential(home: &Home, setting: &Setting) -> Finding {
    let is_there = home.root().join(HUMAN).exists();
    match human::verify(home.root()) {
        Ok(()) => Finding::fine("human", "the human's credential is on this machine"),
        Err(refusal) => {
            // Nobody needs one before there is something to decide.
            let severity = if is_there { Severity::Error } else { Severity::Note };
            Finding::refused("human", severity, &refusal, setting)
        }
    }
}
