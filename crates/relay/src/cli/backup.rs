//! `backup`: one file with everything in it.

use std::path::PathBuf;

use relay_core::domain::{shell, size};
use relay_core::store::{Clock, Result};
use serde_json::json;

use crate::app::{App, Opened};
use crate::progress::Progress;
use crate::{environment, process};

/// A store of this size takes about a second.
const LONG: u64 = 64 * 1024 * 1024;

/// What a copy is checked for before it gets its name.
const CHECKED: [&str; 6] = ["chain", "texts", "tables", "search", "answers", "file"];

/// Copy the project's store into one file while others go on writing
///
/// The copy is one moment of the store, durable before it gets its name, and readable by you alone. It is checked as `relay
/// verify` checks a store; of one that is not whole, no copy is made. It holds everything that is committed, also what the
/// git archive has yet to take.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  relay backup ~/backups\n  relay backup /mnt/usb/shop.db\n  relay backup /mnt/usb/shop.db --force"
)]
pub struct Args {
    /// A new file, or a folder: in it the file is named after the project and the time
    #[arg(value_name = "DEST")]
    dest: PathBuf,
    /// Replace the file if it is there
    #[arg(long)]
    force: bool,
}

impl Args {
    pub fn run(&self, app: &App) -> u8 {
        process::keep_private();
        app.answer("backup", self.backup(app))
    }

    fn backup(&self, app: &App) -> Result<(serde_json::Value, String)> {
        let opened = app.open(None)?;
        let place = self.place(app, &opened)?;
        opened.home.must_be_outside(&place)?;
        let mut progress = Progress::new(app);
        let store = opened.home.folder(&opened.project).join("relay.db");
        if std::fs::metadata(store).is_ok_and(|metadata| metadata.len() > LONG) {
            progress.busy("copying the store");
        }
        let copied = opened.store.backup(&place, self.force, |phase, done, of| progress.at(phase, done, of))?;
        drop(progress);
        let path = place.to_string_lossy().into_owned();
        let restore = ["relay", "rebuild", "store", "--from-backup", &path, "--project", opened.project.as_str()];
        let text = format!(
            "Everything up to #{} is in {path} ({}), and was checked there: the chain, every text, every table.\nTo go back to it: {}\n",
            copied.number,
            size::told(copied.bytes),
            shell::line(&restore)
        );
        let (number, bytes) = (copied.number, copied.bytes);
        let result = json!({"path": path, "number": number, "bytes": bytes, "checked": CHECKED, "restore": restore});
        Ok((result, text))
    }

    fn place(&self, app: &App, opened: &Opened) -> Result<PathBuf> {
        let dest = environment::working_directory()?.join(&self.dest);
        if !dest.is_dir() {
            return Ok(dest);
        }
        let time: String = app.clock.now().to_string().chars().filter(char::is_ascii_alphanumeric).collect();
        let name = opened.project.basename().replace('/', "");
        Ok(dest.join(format!("{}-{time}.db", if name.is_empty() { "root" } else { &name })))
    }
}
