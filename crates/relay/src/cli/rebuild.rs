//! `rebuild`: the archive from the store, or the store from the archive.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use relay_core::domain::event::Number;
use relay_core::domain::limits::Limits;
use relay_core::domain::name::ProjectKey;
use relay_core::error::{Code, Refusal};
use relay_core::store::Result;
use relay_store::archive::Old;
use relay_store::sqlite::rebuild::{self, Rebuilt};
use relay_store::sqlite::restore::{self, Restored};
use serde_json::json;

use crate::app::{App, Said};
use crate::environment;
use crate::process;
use crate::progress::Progress;
use crate::render;

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
    /// Make the store anew from the git archive, in a new file, and keep the old one beside it
    ///
    /// For a store that is damaged or gone; nobody can write meanwhile. The archive has every event that was drained, and
    /// not what stands beside the history: answers that were remembered for repeated requests, failed requests kept for
    /// `recover --retry`, and what another project was yet to be told. A key that was used before the rebuild stays used.
    /// Where the old store can still be read and has events that the archive lacks, this is refused: `relay drain --wait`
    /// copies them first.
    ///
    /// Also where relay's home has nothing left of the project: a backup is enough, and so is a clone of the archive that is
    /// put back in its place. Texts that were erased after the backup was made, or after the archive's last event, are
    /// erased again where the old store or the archive can still say which; where neither can, they are readable again.
    #[command(
        after_help = "Examples:\n  relay rebuild store --from-archive\n  relay rebuild store --from-archive --lose-after 120\n  relay rebuild store --from-backup /mnt/usb/shop.db"
    )]
    Store {
        /// Take the git archive for the truth
        #[arg(long)]
        from_archive: bool,
        /// Take a file of `relay backup` for the truth
        #[arg(long, value_name = "FILE", conflicts_with = "from_archive")]
        from_backup: Option<PathBuf>,
        /// Go on although events after this one, the last of the archive or the backup, are in the old store alone
        #[arg(long, value_name = "NUMBER")]
        lose_after: Option<Number>,
    },
}

impl Args {
    pub fn run(&self, app: &App) -> u8 {
        process::keep_private();
        match &self.what {
            What::Archive => app.answer("rebuild", archive(app)),
            What::Store { from_backup: Some(file), lose_after, .. } => {
                app.answer("rebuild", restore(app, file, *lose_after))
            }
            What::Store { from_archive: true, lose_after, .. } => app.answer("rebuild", store(app, *lose_after)),
            What::Store { .. } => {
                let message = "say from what: `relay rebuild store --from-archive`, or `--from-backup FILE`";
                app.fail_outside("rebuild", &Code::InputInvalid.refuse(message))
            }
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
        let _ = writeln!(text, "The old one is kept in {kept}.");
    }
    Ok((json!({"events": events, "path": path, "kept": kept}), text).into())
}

fn store(app: &App, lose_after: Option<Number>) -> Result<Said> {
    let (project, folder, limits) = place(app)?;
    let mut progress = Progress::new(app);
    let at = |done, of| progress.at("store", done, of);
    let rebuilt = rebuild::rebuild(&folder, &project, lose_after, limits.gate_wait, at);
    let rebuilt = rebuilt.map_err(|refusal| match app.folder() {
        Err(nobody) if refusal.code == Code::ArchiveBehind => both(&nobody, &refusal),
        _ => refusal,
    })?;
    drop(progress);
    let missing = missing(&rebuilt);
    let events = rebuilt.events;
    let mut text =
        format!("The store of {project} was made anew from its archive and has everything up to #{events}.\n");
    let kept = rebuilt.kept.map(|kept| kept.to_string_lossy().into_owned());
    if let Some(kept) = &kept {
        let _ = writeln!(text, "The old one is kept in {kept}.");
    }
    text.push_str(&erased_again(&rebuilt.erased));
    let _ = writeln!(text, "What could be missing:");
    for line in &missing {
        let _ = writeln!(text, "  {line}");
    }
    let result = json!({
        "events": events, "kept": kept, "keys_used": rebuilt.keys, "missing": missing, "erased_again": rebuilt.erased
    });
    Ok(Said { result, text, signals: Vec::new(), next: vec!["relay verify".to_owned()] })
}

/// Where there is neither a project nor an archive of one, both are said; of one that is elsewhere, so is its archive.
fn both(nobody: &Refusal, nothing: &Refusal) -> Refusal {
    if nobody.code == Code::StoreUnreachable {
        return nobody.clone();
    }
    let both = nobody.code.refuse(format!("{}, and {}", nobody.message, nothing.message));
    let details = nobody.details.iter().chain(&nothing.details);
    details.fold(both, |both, (name, value)| both.with(name, value.clone()))
}

/// The project and its folder, which may be gone altogether.
fn place(app: &App) -> Result<(ProjectKey, PathBuf, Limits)> {
    let (home, limits) = app.home()?;
    let project = app.project()?;
    // The history of one that was moved is where it is now.
    if !home.moved_from(|path| path == project.as_str())?.is_empty() {
        app.folder()?;
    }
    let folder = home.folder(&project);
    Ok((project, folder, limits))
}

fn erased_again(messages: &[Number]) -> String {
    if messages.is_empty() {
        return String::new();
    }
    let numbers: Vec<String> = messages.iter().map(|number| format!("#{number}")).collect();
    format!("Erased again, as it was before: {}.\n", numbers.join(", "))
}

/// The store as a backup has it. An archive that knows more than that is made anew with it, or it would be in the way of
/// everything that comes.
fn restore(app: &App, file: &Path, lose_after: Option<Number>) -> Result<Said> {
    let (project, folder, limits) = place(app)?;
    let file = environment::working_directory()?.join(file);
    let restored = restore::restore(&folder, &project, &file, limits.gate_wait, lose_after)?;
    let missing = lost(&restored);
    let events = restored.number;
    let mut text = format!("The store of {project} is as its backup was and has everything up to #{events}.\n");
    let kept = restored.kept.map(|kept| kept.to_string_lossy().into_owned());
    if let Some(kept) = &kept {
        let _ = writeln!(text, "The old one is kept in {kept}.");
    }
    if restored.lost > 0 {
        let lost = render::count(usize::try_from(restored.lost).unwrap_or(usize::MAX), "event");
        let _ = writeln!(text, "Lost with it: {lost}, up to #{}.", restored.known);
    }
    text.push_str(&erased_again(&restored.erased));
    if let Some(missing) = &missing {
        let _ = writeln!(text, "What could be missing: {missing}.");
    }
    let mut next = vec!["relay verify".to_owned()];
    let mut made_anew = serde_json::Value::Null;
    if restored.archive_leads {
        match archive(app) {
            Ok(said) => {
                text.push_str(&said.text);
                made_anew = said.result;
            }
            Err(refusal) => {
                let _ = writeln!(text, "The archive knows more than that, and could not be made anew: {refusal}");
                next.insert(0, "relay rebuild archive".to_owned());
            }
        }
    }
    let result = json!({
        "events": events, "lost": restored.lost, "missing": missing, "kept": kept, "archive": made_anew,
        "erased_again": restored.erased
    });
    Ok(Said { result, text, signals: Vec::new(), next })
}

const READABLE_AGAIN: &str =
    "what was erased since may be readable again: the old file cannot say what was, and `relay redact` erases it anew";

/// What a backup could not give back, in words.
fn lost(restored: &Restored) -> Option<String> {
    match restored.old {
        rebuild::Old::Read(_) if restored.erased_more => Some(READABLE_AGAIN.to_owned()),
        rebuild::Old::Read(newest) if restored.parted => Some(of_another(newest)),
        _ => unknown(&restored.old, restored.known),
    }
}

/// What an old file that says nothing may have had after this event, in words.
fn unknown(old: &rebuild::Old, after: Number) -> Option<String> {
    let how = match old {
        rebuild::Old::Read(_) => return None,
        rebuild::Old::Gone => "is gone".to_owned(),
        rebuild::Old::Aside(path) => format!("was moved to {} before this", path.display()),
        rebuild::Old::Unreadable => "cannot be read".to_owned(),
    };
    Some(format!(
        "events after #{after}; the old file {how} and cannot say how many, and what they erased is readable again"
    ))
}

/// What is not here though it is known.
fn of_another(newest: Number) -> String {
    format!("what is only in the old file, whose history is another and goes to #{newest}")
}

/// What the archive could not give back, in words.
fn missing(rebuilt: &Rebuilt) -> Vec<String> {
    let after = rebuilt.events - rebuilt.erased.len() as Number;
    let events = unknown(&rebuilt.old, after).unwrap_or_else(|| match rebuilt.old {
        rebuild::Old::Read(newest) if rebuilt.parted => of_another(newest),
        rebuild::Old::Read(newest) if newest > after => {
            format!("events #{} to #{newest}, which are in the old file", after + 1)
        }
        _ => "no events: the old file had none that the archive lacks".to_owned(),
    });
    let answers = format!(
        "the answers to {}: a repeated request gets IDEMPOTENCY_REUSED instead",
        render::count(usize::try_from(rebuilt.keys).unwrap_or(usize::MAX), "used key")
    );
    let rest = ["failed requests kept for `recover --retry`", "what another project was yet to be told"];
    let erased =
        (rebuilt.erased_more && matches!(rebuilt.old, rebuild::Old::Read(_))).then(|| READABLE_AGAIN.to_owned());
    [vec![events, answers], rest.map(str::to_owned).to_vec(), erased.into_iter().collect()].concat()
}
