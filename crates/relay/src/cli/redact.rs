//! `redact`: the verb erases; what is left of the bytes is cleaned away before the answer says so.

use relay_core::domain::time::Span;
use relay_core::error::Refusal;
use relay_core::store::Result;
use relay_core::verbs::look::parse_number;
use relay_core::verbs::{Outcome, Request, redact};
use relay_store::sqlite::Sqlite;
use serde_json::json;

use super::Asks;
use crate::process;

/// Erase the texts of a message everywhere
///
/// Subject and body go from the store, its search index, its log and the archive, and with them all failed requests that
/// were kept for a retry. The event stays, with a tombstone that says who erased them and why. Who wrote a message may
/// erase it, and the human may erase any. Store and archive are written anew for it, which takes a while where they are
/// large; others wait to write meanwhile. Existing clones of the archive, backups and what agents have read keep what they
/// have.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  relay redact 128 --why 'it held a token'")]
pub struct Args {
    /// The message
    #[arg(value_name = "N")]
    message: String,
    /// Why, for those who find the tombstone
    #[arg(long, value_name = "TEXT")]
    why: Option<String>,
}

impl Asks for Args {
    fn request(&self) -> Result<Request> {
        let message = parse_number(&self.message)?;
        Ok(Request::Redact(redact::Input { message, why: self.why.clone() }))
    }
}

/// After texts were erased, at once or by a retry: cleans up, and tells in the outcome what is left of them.
pub fn clean_up_after(store: &Sqlite, gate_wait: Span, outcome: &mut Outcome) {
    match outcome {
        Outcome::Redact(outcome) => {
            outcome.pending = clean_up(store, gate_wait);
            outcome.kept = store.kept_beside();
        }
        Outcome::Recover(outcome) => {
            if let Some(retried) = outcome.retried.as_mut().filter(|retried| retried.verb == "redact") {
                retried.result["pending"] = json!(clean_up(store, gate_wait));
                retried.result["kept"] = json!(store.kept_beside());
            }
        }
        _ => {}
    }
}

/// What could not be cleaned yet. Every drain tries again.
fn clean_up(store: &Sqlite, gate_wait: Span) -> Vec<String> {
    process::keep_private();
    let mut pending = Vec::new();
    match store.clean(gate_wait) {
        Ok(true) => {}
        Ok(false) => pending.push("store: somebody still reads from before".to_owned()),
        Err(refusal) => pending.push(format!("store: {refusal}")),
    }
    if let Err(refusal) = archive_anew(store) {
        pending.push(format!("archive: {refusal}"));
    }
    pending
}

fn archive_anew(store: &Sqlite) -> std::result::Result<(), Refusal> {
    let archive = store.archive();
    archive.drain(&archive.lease()?, store, |_, _| {}).map(|_| ())
}
