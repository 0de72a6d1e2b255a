//! The server that has the stores, where the environment names one.

use relay_core::error::Refusal;
use relay_core::playbook::Setting;

use super::{Finding, Severity};
use crate::remote::Remote;

/// Whether it answers, and takes the token. None where no server is named.
pub fn of_the_server(setting: &Setting) -> Option<Finding> {
    let refused = |refusal: &Refusal| Finding::refused("server", Severity::Error, refusal, setting);
    match Remote::named() {
        Ok(None) => None,
        Ok(Some(remote)) => Some(match remote.knock() {
            Ok(()) => Finding::fine("server", format!("the server at {} answers and takes the token", remote.url)),
            Err(refusal) => refused(&refusal),
        }),
        Err(refusal) => Some(refused(&refusal)),
    }
}
