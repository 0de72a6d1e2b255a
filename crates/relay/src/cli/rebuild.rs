//! `rebuild`: the archive from the store, or the store from the archive.

use relay_core::store::Result;
use relay_store::archive::Old;
use serde_json::json;

use crate::app::{App, Said};
use crate::process;
use crate::progress::Progress;

/// Make the git archive anew from the store, or the store from the archive
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  relay rebuild archive\n  relay rebuild store --from-archive")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Write the whole history into a new git archive, and keep the old one beside it
    ///
    /// Heals an archive that is gone, cannot be read, or holds what the store does not know. Clones of the old one do not
    /// follow: its commits may be gathered differently, though the files are the same.
    #[command(after_help = "Example:\n  relay rebuild archive")]
    Archive,
}

impl Args {
    pub fn run(&self, app: &App) -> u8 {
        process::keep_private();
        match &self.what {
            What::Archive => app.answer("rebuild", archive(app)),
        }
    }
}

fn archive(app: &App) -> Result<Said> {
    let opened = app.open(None)?;
    let archive = opened.store.archive();
    let lease = archive.lease()?;
    let mut progress = Progress::new(app);
    let rebuilt = archive.rebuild(&lease, &opened.store, Old::Kept, |done, of| progress.at("archive", done, of))?;
    drop(progress);
    let path = archive.path().to_string_lossy().into_owned();
    let kept = rebuilt.kept.map(|kept| kept.to_string_lossy().into_owned());
    let events = rebuilt.events;
    let mut text = format!("The archive in {path} was made anew and has everything up to #{events}.\n");
    if let Some(kept) = &kept {
        text.push_str(&format!("The old one is kept in {kept}.\n"));
    }
    Ok((json!({"events": events, "path": path, "kept": kept}), text).into())
}
