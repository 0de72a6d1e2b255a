//! `redact`: the verb erases; what is left of the bytes is cleaned away before the answer says so.

use relay_core::error::Refusal;
use relay_core::store::Result;
use relay_core::verbs::{Outcome, Request, recover, redact};

use super::words;
use crate::app::{App, Opened};
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

impl Args {
    pub fn run(&self, app: &App) -> u8 {
        process::keep_private();
        let asked = self.request().and_then(|request| Ok((app.open(Some(&request))?, request)));
        match asked {
            Ok((opened, request)) => self.erase(app, &opened, &request),
            Err(refusal) => app.fail_outside("redact", &refusal),
        }
    }

    fn request(&self) -> Result<Request> {
        let message = words::number(Some(&self.message))?.unwrap_or_default();
        Ok(Request::Redact(redact::Input { message, why: self.why.clone() }))
    }

    fn erase(&self, app: &App, opened: &Opened, request: &Request) -> u8 {
        let ctx = match app.context(opened) {
            Ok(ctx) => ctx,
            Err(refusal) => return app.fail_outside("redact", &refusal),
        };
        match app.ask(&ctx, request) {
            Ok(mut done) => {
                if let Outcome::Redact(outcome) = &mut done.outcome {
                    outcome.pending = clean_up(opened);
                    outcome.kept = opened.store.kept_beside();
                }
                app.print(&done, ctx.now).status()
            }
            Err(refusal) => app.fail(&recover::failure(&ctx, request, &refusal)),
        }
    }
}

/// What could not be cleaned yet. Every drain tries again.
fn clean_up(opened: &Opened) -> Vec<String> {
    let mut pending = Vec::new();
    match opened.store.clean(opened.limits.gate_wait) {
        Ok(true) => {}
        Ok(false) => pending.push("store: somebody still reads from before".to_owned()),
        Err(refusal) => pending.push(format!("store: {refusal}")),
    }
    if let Err(refusal) = archive_anew(opened) {
        pending.push(format!("archive: {refusal}"));
    }
    pending
}

fn archive_anew(opened: &Opened) -> std::result::Result<(), Refusal> {
    let archive = opened.store.archive();
    archive.drain(&archive.lease()?, &opened.store, |_, _| {}).map(|_| ())
}
