//! `drain`: brings the archive up to date, at once or, as the detached process that commands leave behind, by and by.

use relay_core::domain::event::Number;
use relay_core::domain::time::Span;
use relay_core::store::{Clock, Result, Store};
use relay_store::archive::Archive;
use serde_json::json;

use crate::app::{App, Opened};
use crate::process;

/// How long a detached drainer gathers before it writes, and how many events are enough.
const GATHERING: Span = Span::seconds(2);
const ENOUGH: Number = 100;

/// Why an erased text may still stand in the log.
const STILL_READ: &str =
    "Erased texts still stand in the log: somebody reads from before. The next drain tries again.\n";

/// Make everything written so far durable, and copy it into the git archive
///
/// Commands leave this to a process of its own that they start when they have answered; where none can be started, the
/// next command's does it. Without --wait, somebody else who is draining already is left to it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  relay drain --wait")]
pub struct Args {
    /// Return when the archive has everything
    #[arg(long)]
    wait: bool,
    /// Gather for a moment first, in a session of its own
    #[arg(long, hide = true)]
    background: bool,
}

impl Args {
    pub fn run(&self, app: &App) -> u8 {
        process::keep_private();
        if self.background {
            process::detach();
            // Whatever stands in the way, a later command finds the same events and tries again.
            let _ = app.open(None).and_then(|opened| linger(app, &opened));
            return 0;
        }
        app.answer("drain", self.drain(app))
    }

    fn drain(&self, app: &App) -> Result<(serde_json::Value, String)> {
        let opened = app.open(None)?;
        let number = opened.store.settle(opened.limits.gate_wait)?;
        let pending = if opened.store.clean(opened.limits.gate_wait)? { "" } else { STILL_READ };
        let archive = opened.store.archive();
        let lease = if self.wait { Some(archive.lease()?) } else { archive.try_lease()? };
        let Some(lease) = lease else {
            let text =
                format!("Everything up to #{number} is durable. The archive is being brought up to date.\n{pending}");
            return Ok((json!({"durable_up_to": number, "archive": null, "cleaned": pending.is_empty()}), text));
        };
        let archived = archive.drain(&lease, &opened.store, |_, _| {})?;
        let path = archive.path().to_string_lossy().into_owned();
        let text = format!("Everything up to #{number} is durable, and up to #{archived} in {path}.\n{pending}");
        let archive = json!({"number": archived, "path": path});
        Ok((json!({"durable_up_to": number, "archive": archive, "cleaned": pending.is_empty()}), text))
    }
}

/// Drains for those who committed and left. Whoever commits while we are in office leaves it to us, so we look once more
/// after giving it up.
fn linger(app: &App, opened: &Opened) -> Result<()> {
    let archive = opened.store.archive();
    while let Some(office) = archive.try_office()? {
        gather(app, opened, &archive)?;
        // Somebody may have died between erasing and cleaning up.
        let _ = opened.store.clean(opened.limits.gate_wait);
        let archived = archive.drain(&archive.lease()?, &opened.store, |_, _| {})?;
        drop(office);
        if opened.store.read()?.tip()?.number == archived {
            break;
        }
    }
    Ok(())
}

/// Waits for more to come: one commit for many events is worth a moment.
fn gather(app: &App, opened: &Opened, archive: &Archive) -> Result<()> {
    let archived = archive.tip()?.and_then(|tip| tip.cursor).map_or(0, |cursor| cursor.number);
    let until = app.clock.monotonic().as_millis() + GATHERING.as_millis();
    let mut watch = opened.store.watch()?;
    loop {
        let left = until - app.clock.monotonic().as_millis();
        if left <= 0 || opened.store.read()?.tip()?.number >= archived + ENOUGH {
            return Ok(());
        }
        watch.wait(Span::millis(left))?;
    }
}
