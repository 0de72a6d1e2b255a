//! `verify`: whether the history is whole, and everything that was made from it.

use relay_core::domain::event::Number;
use relay_core::store::Result;
use relay_core::wire::v1::{Signal, SignalCode};
use relay_store::verify::verify;
use serde_json::json;

use crate::app::{App, Said};
use crate::progress::Progress;
use crate::render;

/// Check the whole history: its chain, its texts, every table made from it, and the git archive
///
/// Looks at one moment of the store while others go on writing, and changes nothing. Where something is wrong it fails,
/// and says what and where. An archive that is behind is fine.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  relay verify\n  relay verify --json")]
pub struct Args {}

impl Args {
    pub fn run(&self, app: &App) -> u8 {
        app.answer("verify", verified(app))
    }
}

fn verified(app: &App) -> Result<Said> {
    let (_, project, folder) = app.folder()?;
    let mut progress = Progress::new(app);
    let report = verify(&folder, |phase, done, of| progress.at(phase, done, of))?;
    drop(progress);
    if let Some(refusal) = report.refusal(&folder) {
        return Err(refusal);
    }
    let (events, archived) = (report.events, report.archived);
    let text = format!(
        "The history of {project} is whole: {}, and everything that is made from them.{}\n",
        count(events, "event"),
        if archived == 0 { String::new() } else { format!(" The archive has the same up to #{archived}.") }
    );
    let behind = events.saturating_sub(archived);
    let lags = (behind > 0).then(|| {
        let text =
            format!("the git archive is {} behind; `relay drain --wait` brings it up to date", count(behind, "event"));
        Signal::new(SignalCode::ArchiveLags, text)
    });
    let next = lags.iter().map(|_| "relay drain --wait".to_owned()).collect();
    let result = json!({"events": events, "archived": archived, "findings": []});
    Ok(Said { result, text, signals: lags.into_iter().collect(), next })
}

fn count(number: Number, of: &str) -> String {
    render::count(usize::try_from(number).unwrap_or(usize::MAX), of)
}
